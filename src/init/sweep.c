/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sweeps of the full probe: every system call number and every kind of socket that the filter refuses is asked for.
 *
 * How it works: the interpreter of confine/bpf_run.c says what the program we meant to load answers; where that is an errno, the
 * call is made and the kernel must answer the same. What the program lets pass is not called. Arguments are all ones: should the
 * filter not be there, no call does anything with them. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/bpf_run.h"
#include "confine/seccomp.h"
#include "init/probe.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this?"
#endif

#define CALLS_MAX 1024
#define FAMILIES_MAX 64
#define NO_SUCH_TYPE 15 /* the kernel refuses it with EINVAL, so that an answer tells who gave it */

/* The errno the filter should answer, or 0 where it lets the call pass or does something else. */
static int refusal(enum policy_seccomp profile, int nr, uint64_t a, uint64_t b, uint64_t c, uint64_t rest)
{
    const struct seccomp_program *p = seccomp_for(profile);
    struct seccomp_data d = {.nr = nr, .arch = ARCH, .args = {a, b, c, rest, rest, rest}};
    uint32_t answer = 0;
    if (!bpf_run(p->code, p->len, &d, NULL, &answer) || (answer & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
        return 0;
    return (int)(answer & SECCOMP_RET_DATA);
}

/* uretprobe and uprobe: the kernel lets them pass every filter, and refuses them itself unless they come from a trampoline of its
 * own, the first with a signal. */
static bool is_beyond_filters(int nr)
{
#if defined(__x86_64__)
    return nr == 335 || nr == 336;
#else
    (void)nr;
    return false;
#endif
}

uint32_t sweep_calls(enum policy_seccomp profile)
{
    uint32_t wrong = 0;
    for (int nr = 0; nr < CALLS_MAX; nr++) {
        int want = refusal(profile, nr, ~0ull, ~0ull, ~0ull, ~0ull);
        if (want == 0 || is_beyond_filters(nr))
            continue;
        errno = 0;
        long r = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
        wrong += r >= 0 || errno != want;
    }
    return wrong;
}

static uint32_t sweep_socket(enum policy_seccomp profile, int family, int type, int protocol)
{
    int want = refusal(profile, SYS_socket, (uint64_t)family, (uint64_t)type, (uint64_t)protocol, 0);
    if (want == 0)
        return 0;
    errno = 0;
    int s = socket(family, type, protocol);
    if (s >= 0)
        close(s);
    return s >= 0 || errno != want;
}

uint32_t sweep_sockets(enum policy_seccomp profile)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_PACKET, NO_SUCH_TYPE};
    static const int ip[] = {AF_INET, AF_INET6};
    uint32_t wrong = 0;
    for (int family = 0; family < FAMILIES_MAX; family++)
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
            wrong += sweep_socket(profile, family, types[t], 0);
    for (int protocol = 0; protocol < 32; protocol++)
        wrong += sweep_socket(profile, AF_NETLINK, SOCK_RAW, protocol) + sweep_socket(profile, AF_NETLINK, NO_SUCH_TYPE, protocol);
    for (size_t i = 0; i < 2; i++)
        for (int protocol = 0; protocol <= 262; protocol++) /* the last is MPTCP */
            wrong += sweep_socket(profile, ip[i], SOCK_STREAM, protocol) + sweep_socket(profile, ip[i], NO_SUCH_TYPE, protocol);
    return wrong;
}

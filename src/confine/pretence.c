/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pretence of being root. */
#include "confine/pretence.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "say here which AUDIT_ARCH_ value this architecture has"
#endif

/* The low word of an argument; both architectures have it first. */
#define ARG(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8u * (n)))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define GIVE(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define PRETEND GIVE(SECCOMP_RET_ERRNO)
#define LET GIVE(SECCOMP_RET_ALLOW)
/* When it is this call: success. */
#define ALWAYS(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), PRETEND
/* When it is this call and its mode is a device's: success. Else the loaded number is gone, and nothing below has it. */
#define DEVICES(call, arg)                                                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 6), LOAD(ARG(arg)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, S_IFMT),                   \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, S_IFCHR, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, S_IFBLK, 0, 1), PRETEND, LET

int pretence_load(struct pale_err *e)
{
    static struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),
        LET, /* not ours to judge: the filter below this one refuses it */
        LOAD(offsetof(struct seccomp_data, nr)),
        ALWAYS(fchown),
        ALWAYS(fchownat),
#ifdef __NR_chown
        ALWAYS(chown),
        ALWAYS(lchown),
#endif
        ALWAYS(setuid),
        ALWAYS(setgid),
        ALWAYS(setreuid),
        ALWAYS(setregid),
        ALWAYS(setresuid),
        ALWAYS(setresgid),
        ALWAYS(setfsuid),
        ALWAYS(setfsgid),
        ALWAYS(setgroups),
        ALWAYS(capset),
#ifdef __NR_mknod
        DEVICES(mknod, 1),
#endif
        DEVICES(mknodat, 2),
        LET,
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? err_os(e, "load the pretence of root") : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the giving up of rights by pale-policy. */
#include "reader/lock.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/weak.h"
#include "confine/seccomp.h"

/* A file of POLICY_TEXT_MAX bytes needs some megabytes and milliseconds; this is where something is wrong. Sanitizers map
 * their shadow over the whole address space, and look for leaks with a thread and files that cannot be had any more;
 * their own system calls are on no list. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED true
#define MEMORY_MOST RLIM_INFINITY
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#else
#define SANITIZED false
#define MEMORY_MOST (512u << 20)
#endif

static const struct most {
    int which;
    rlim_t value;
} mosts[] = {
    {RLIMIT_AS, MEMORY_MOST}, {RLIMIT_CPU, 10}, {RLIMIT_CORE, 0}, {RLIMIT_NPROC, 0}, {RLIMIT_NOFILE, 0},
};

int lock_self(struct pale_err *e)
{
    if (weak_word("reader-lock"))
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
        struct rlimit old, most = {mosts[i].value, mosts[i].value};
        if (getrlimit(mosts[i].which, &old) < 0)
            return err_os(e, "read a limit of this process");
        if (most.rlim_max > old.rlim_max)
            most = (struct rlimit){old.rlim_max, old.rlim_max};
        if (setrlimit(mosts[i].which, &most) < 0)
            return err_os(e, "limit this process");
    }
    int fd = dup(STDERR_FILENO);
    if (fd >= 0 || errno != EMFILE) {
        if (fd >= 0)
            close(fd);
        return err_set(e, PALE_INTERNAL, "limit this process: a descriptor could still be had");
    }
    return SANITIZED ? 0 : seccomp_load(seccomp_for_program(OWN_READER), e);
}

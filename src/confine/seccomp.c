/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the finished filters and the one call that loads one.
 *
 * SECCOMP_FILTER_FLAG_SPEC_ALLOW is not passed: it would lift the kernel's guard against speculative store bypass for
 * the box where the host has chosen that guard, and where it has not (the default since Linux 5.16) it changes nothing. */
#include "confine/seccomp.h"

#include <assert.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/seccomp_programs.inc"

#define PROGRAM(c)                                                                                                                         \
    {                                                                                                                                      \
        (c), sizeof(c) / sizeof((c)[0])                                                                                                    \
    }

static const struct seccomp_program profile_programs[] = {
    [SECCOMP_STRICT] = PROGRAM(code_strict),
    [SECCOMP_DEBUG] = PROGRAM(code_debug),
    [SECCOMP_IMAGE_BUILD] = PROGRAM(code_image_build),
};
static_assert(sizeof(profile_programs) / sizeof(profile_programs[0]) == SECCOMP_COUNT, "a program for every profile");

static const struct seccomp_program own_programs[] = {
    [OWN_KEEPER] = PROGRAM(code_keeper),           [OWN_INIT] = PROGRAM(code_init),       [OWN_READER] = PROGRAM(code_reader),
    [OWN_DAEMON] = PROGRAM(code_daemon),           [OWN_DIAL] = PROGRAM(code_dial),       [OWN_WARDEN] = PROGRAM(code_warden),
    [OWN_MANTLE] = PROGRAM(code_mantle),           [OWN_GATEWAY] = PROGRAM(code_gateway), [OWN_TREE_READER] = PROGRAM(code_tree_reader),
    [OWN_TREE_WRITER] = PROGRAM(code_tree_writer),
};
static_assert(sizeof(own_programs) / sizeof(own_programs[0]) == OWN_COUNT, "a program for every program");

const struct seccomp_program *seccomp_for(enum policy_seccomp profile)
{
    assert((unsigned)profile < SECCOMP_COUNT);
    return &profile_programs[profile];
}

const struct seccomp_program *seccomp_for_program(enum seccomp_own own)
{
    assert((unsigned)own < OWN_COUNT);
    return &own_programs[own];
}

int seccomp_load(const struct seccomp_program *p, struct pale_err *e)
{
    /* The kernel only reads the code; its struct lacks the const. */
    struct sock_fprog prog = {.len = p->len, .filter = (struct sock_filter *)p->code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0)
        return err_os(e, "load the system call filter");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filters: made when we build (seccompgen), loaded in one call, without allocation. */
#pragma once

#include <linux/filter.h>

#include "base/err.h"
#include "policy/policy.h"

struct seccomp_program {
    const struct sock_filter *code;
    unsigned short len; /* instructions */
};

/* Programs of ours that lock themselves up, and work on trees in whichever of them it is done. */
enum seccomp_own {
    OWN_KEEPER,
    OWN_INIT,
    OWN_READER,
    OWN_DAEMON,
    OWN_DIAL,
    OWN_WARDEN,
    OWN_MANTLE,
    OWN_GATEWAY,
    OWN_TREE_READER,
    OWN_TREE_WRITER,
    OWN_COUNT
};

/* The filter of a box's commands. The programs are constants and live for ever. Neither function fails: a value outside
 * its enum is a mistake of ours and ends the process. */
const struct seccomp_program *seccomp_for(enum policy_seccomp profile);
const struct seccomp_program *seccomp_for_program(enum seccomp_own own);

/* Puts the filter on the calling thread, for good, and on all it starts afterwards. The process must have no other
 * thread, and must have set PR_SET_NO_NEW_PRIVS (or be able to administer its user namespace). Fails with PALE_DENIED if
 * it has not, PALE_OS if the kernel takes no filters; nothing has changed then. */
int seccomp_load(const struct seccomp_program *p, struct pale_err *e) MUST_CHECK;

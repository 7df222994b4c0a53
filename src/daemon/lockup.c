/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the giving up of rights by paled. */
#include "daemon/lockup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own.h"
#include "base/weak.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"

/* Sanitizers look for leaks with a thread and files that cannot be had any more. */
#if defined(__SANITIZE_ADDRESS__)
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* What must not be there any more. Programs and the network cannot be tried: the attempt would end us. */
static int verify(bool landlock, struct pale_err *e)
{
    own_fd root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (landlock && (root >= 0 || errno != EACCES))
        return err_set(e, PALE_INTERNAL, "paled could still read the host's files; it does not serve so");
    return 0;
}

int lockup_self(const char *state_dir, struct pale_err *e)
{
    const char *paths[] = {state_dir};
    int r, abi = landlock_abi();
    if (weak_word("daemon-lock"))
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return err_os(e, "give up core files");
    /* A kernel without Landlock has the system call list alone; `pale doctor` says so. */
    if (abi != 0 && (r = landlock_restrict_all(paths, 1, e)) < 0)
        return r;
    if ((r = verify(abi != 0, e)) < 0)
        return r;
    if ((r = seccomp_load(seccomp_for_program(OWN_DAEMON), e)) < 0)
        return r;
    return 0;
}

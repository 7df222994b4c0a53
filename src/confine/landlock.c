/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the Landlock domain. */
#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "confine/kernel.h"

/* Newer than the headers of Debian 12. */
#define ACCESS_REFER (1ULL << 13)
#define ACCESS_TRUNCATE (1ULL << 14)
#define ACCESS_IOCTL_DEV (1ULL << 15)
#define NET_BIND_TCP (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

#define WRITES_V1                                                                                                                          \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |       \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |             \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* What makes sense on a single file. */
#define FILE_WRITES (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

int landlock_abi(void)
{
    long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (v >= 0)
        return (int)v;
    return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -1;
}

static uint64_t writes_of(int abi)
{
    uint64_t w = WRITES_V1;
    if (abi >= 2)
        w |= ACCESS_REFER;
    if (abi >= 3)
        w |= ACCESS_TRUNCATE;
    if (abi >= 5)
        w |= ACCESS_IOCTL_DEV;
    return w;
}

static int allow_beneath(int ruleset, const char *path, uint64_t access, struct pale_err *e)
{
    own_fd fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return 0;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "Landlock rule for %s", path);
    if (!S_ISDIR(st.st_mode))
        access &= FILE_WRITES;
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_os(e, "Landlock rule for %s", path);
    return 0;
}

static int make_ruleset(int abi, const struct ruleset_attr *attr, struct pale_err *e)
{
    /* Older kernels want the size they know when the rest is not theirs. */
    size_t size = abi >= 6 ? sizeof(*attr) : abi >= 4 ? 16 : 8;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, attr, size, 0);
    return ruleset < 0 ? err_os(e, "make a Landlock ruleset") : ruleset;
}

/* Everything that attr handles is closed but beneath the paths. */
static int enter(int abi, struct ruleset_attr *attr, const char *const *paths, size_t count, struct pale_err *e)
{
    own_fd ruleset = make_ruleset(abi, attr, e);
    if (ruleset < 0)
        return ruleset;
    for (size_t i = 0; i < count; i++) {
        int r = allow_beneath(ruleset, paths[i], attr->handled_access_fs & ~LANDLOCK_ACCESS_FS_EXECUTE, e);
        if (r < 0)
            return r;
    }
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return err_os(e, "enter the Landlock domain");
    return 0;
}

static int known_abi(int *ret, struct pale_err *e)
{
    *ret = landlock_abi();
    if (*ret < 0)
        return err_os(e, "ask for Landlock");
    if (*ret < 1)
        return err_set(e, PALE_UNSUPPORTED, "Landlock is not in this kernel (5.13 or newer with CONFIG_SECURITY_LANDLOCK needed)");
    return 0;
}

int landlock_restrict_writes(const char *const *paths, size_t count, bool scoped, struct pale_err *e)
{
    int abi = 0, r = known_abi(&abi, e);
    if (r < 0)
        return r;
    struct ruleset_attr attr = {.handled_access_fs = writes_of(abi), .scoped = scoped && abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0};
    return enter(abi, &attr, paths, count, e);
}

/* All that a kernel of this age can hold. */
static struct ruleset_attr everything(int abi)
{
    return (struct ruleset_attr){.handled_access_fs = writes_of(abi) | READS | LANDLOCK_ACCESS_FS_EXECUTE,
                                 .handled_access_net = abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
                                 .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0};
}

int landlock_restrict_all(const char *const *paths, size_t count, struct pale_err *e)
{
    int abi = 0, r = known_abi(&abi, e);
    if (r < 0)
        return r;
    struct ruleset_attr attr = everything(abi);
    return enter(abi, &attr, paths, count, e);
}

int landlock_restrict_to_connect(struct pale_err *e)
{
    int abi = 0, r = known_abi(&abi, e);
    if (r < 0)
        return r;
    struct ruleset_attr attr = everything(abi);
    attr.handled_access_net &= ~(uint64_t)NET_CONNECT_TCP;
    return enter(abi, &attr, NULL, 0, e);
}

/* Nothing that boxes leave on the disk is a device, but for the marks of what is gone, which are character devices. */
#define MAKES                                                                                                                              \
    (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |             \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
static const uint64_t uses[LANDLOCK_USE_COUNT] = {
    [LANDLOCK_READ] = READS,
    [LANDLOCK_LINK] = READS | ACCESS_REFER,
    [LANDLOCK_FILL] = READS | ACCESS_REFER | MAKES,
    [LANDLOCK_WRITE] = READS | ACCESS_REFER | MAKES | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                       LANDLOCK_ACCESS_FS_REMOVE_FILE,
};

int landlock_restrict_to(const struct landlock_place *places, size_t count, struct pale_err *e)
{
    int abi = 0, r = known_abi(&abi, e);
    if (r < 0)
        return r;
    struct ruleset_attr attr = everything(abi);
    own_fd ruleset = make_ruleset(abi, &attr, e);
    if (ruleset < 0)
        return ruleset;
    for (size_t i = 0; i < count; i++) {
        struct landlock_path_beneath_attr rule = {.allowed_access = attr.handled_access_fs & uses[places[i].use],
                                                  .parent_fd = places[i].fd};
        if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
            return err_os(e, "Landlock rule for an open folder");
    }
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? err_os(e, "enter the Landlock domain") : 0;
}

/* The kernel stops at 16, before 5.19 at 64. Runs beside its parent in the same memory, errno included, which it therefore leaves
 * alone. */
static int count_domains(void *arg)
{
    uint64_t handled = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
    long ruleset = k_raw(SYS_landlock_create_ruleset, (long)&handled, sizeof(handled), 0, 0, 0);
    int left = 0;
    if (ruleset < 0 || k_raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 1;
    while (left < 65 && k_raw(SYS_landlock_restrict_self, ruleset, 0, 0, 0, 0) == 0)
        left++;
    *(int *)arg = left;
    return 0;
}

void landlock_count_start(struct landlock_count *c)
{
    static _Alignas(16) char stack[8192];
    c->left = -1;
    c->pid = clone(count_domains, stack + sizeof(stack), CLONE_VM | SIGCHLD, &c->left);
}

int landlock_count_end(struct landlock_count *c)
{
    int status = -1;
    while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return c->pid > 0 && status == 0 ? c->left : -1;
}

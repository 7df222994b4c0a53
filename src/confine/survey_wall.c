/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the attempts at what walls are made of: namespaces, mounts, locks, system calls. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/caps.h"
#include "confine/detour.h"
#include "confine/kernel.h"
#include "confine/landlock.h"
#include "confine/mounts.h"
#include "confine/seccomp.h"
#include "confine/survey.h"

#define WALL_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS)

/* --- namespaces --- */

/* A namespace that gives no capabilities is worth nothing; AppArmor can make it so. */
static void try_userns(struct attempt *a)
{
    if (unshare(CLONE_NEWNS) < 0)
        attempt_os(&a->answer, FINDING_MISSING, "it is made but gives no rights (AppArmor?)");
}

/* A child in a user namespace below ours; returns its pid, or -1 with the answer filled. */
static pid_t nest(struct attempt *a, int proc_fd)
{
    struct clone_args c = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    struct pale_err e = {0};
    pid_t pid = k_clone3(&c);
    if (pid < 0)
        attempt_os(&a->answer, FINDING_MISSING, "make a user namespace in a user namespace");
    if (pid <= 0)
        return pid;
    if (ids_write_inner(&a->ids, proc_fd, pid, &e) == 0)
        return pid;
    attempt_err(&a->answer, FINDING_MISSING, &e);
    kill(pid, SIGKILL);
    return -1;
}

static void try_nested(struct attempt *a)
{
    own_fd proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = nest(a, proc);
    if (pid == 0)
        for (;;)
            pause();
    if (pid > 0)
        kill(pid, SIGKILL);
}

static void try_namespaces(struct attempt *a)
{
    static const struct {
        int flag;
        const char *name;
    } rows[] = {{CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"}, {CLONE_NEWNET, "net"},
                {CLONE_NEWIPC, "ipc"},  {CLONE_NEWUTS, "uts"}, {CLONE_NEWCGROUP, "cgroup"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (unshare(rows[i].flag) < 0) {
            attempt_os(&a->answer, FINDING_MISSING, rows[i].name);
            return;
        }
}

/* Sets a limit through a procfs of its own, as the wall does, and runs into it. */
static void try_user_max(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd proc = mounts_proc(&e);
    if (proc < 0) {
        attempt_err(&a->answer, FINDING_MISSING, &e);
        return;
    }
    own_fd fd = openat(proc, "sys/user/max_ipc_namespaces", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        attempt_os(&a->answer, FINDING_MISSING, "set user.max_ipc_namespaces");
    else if (unshare(CLONE_NEWIPC) == 0)
        attempt_say(&a->answer, FINDING_MISSING, "user.max_ipc_namespaces is set and does not hold");
}

enum { NPROC_LIMIT = 6, NPROC_TRIES = 18 };

/* Forks until it is refused; the number of processes goes back as the exit status. */
static void __attribute__((noreturn)) count_forks(const struct attempt *a)
{
    struct pale_err e;
    sigset_t usr;
    pid_t kids[NPROC_TRIES];
    int sig, n = 0;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigwait(&usr, &sig); /* until our ids are written */
    if (setresgid(a->ids.gid, a->ids.gid, a->ids.gid) < 0 || setresuid(a->ids.uid, a->ids.uid, a->ids.uid) < 0 || caps_drop_all(&e) < 0)
        _exit(255);
    while (n < NPROC_TRIES && (kids[n] = fork()) >= 0) {
        if (kids[n] == 0)
            for (;;)
                pause();
        n++;
    }
    for (int i = 0; i < n; i++)
        kill(kids[i], SIGKILL);
    _exit(n + 1);
}

static void try_nproc(struct attempt *a)
{
    struct rlimit old, lim = {.rlim_cur = NPROC_LIMIT};
    sigset_t usr;
    int status = 0;
    own_fd proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr, NULL);
    if (getrlimit(RLIMIT_NPROC, &old) < 0 || (lim.rlim_max = old.rlim_max, setrlimit(RLIMIT_NPROC, &lim)) < 0) {
        attempt_os(&a->answer, FINDING_MISSING, "set the process limit");
        return;
    }
    pid_t pid = nest(a, proc);
    if (pid == 0) {
        setrlimit(RLIMIT_NPROC, &old); /* what binds is the limit the namespace was born with */
        count_forks(a);
    }
    if (pid < 0)
        return;
    kill(pid, SIGUSR1);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    int n = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    if (n > NPROC_LIMIT)
        attempt_say(&a->answer, FINDING_MISSING, "a namespace born with a limit of %d had %d processes", NPROC_LIMIT, n);
    else
        attempt_say(&a->answer, FINDING_OK, "a limit of %d stopped at %d", NPROC_LIMIT, n);
}

/* --- mounts --- */

/* A tmpfs over a folder of this namespace, which nobody else sees. */
static int hang_tmpfs(struct pale_err *e)
{
    static const char *const places[] = {"tmp", "run", "mnt", "usr"};
    int r = mounts_make_private(e);
    own_fd host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), root = -1;
    if (r < 0 || (root = mounts_tmpfs(1 << 20, 64, 0755, e)) < 0)
        return r < 0 ? r : root;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if ((r = mounts_attach(root, host, places[i], e)) == 0)
            return take_fd(&root);
    return r;
}

static void try_mount_api(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd root = hang_tmpfs(&e);
    own_fd usr = root < 0 ? -1 : mounts_clone(AT_FDCWD, "/usr", MOUNTS_RO | MOUNTS_RECURSIVE, false, &e);
    if (usr < 0 || mkdirat(root, "u", 0755) < 0 || mounts_attach(usr, root, "u", &e) < 0) {
        attempt_err(&a->answer, FINDING_MISSING, &e);
        return;
    }
    own_fd test = openat(root, "u/.pale-doctor", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (test >= 0 || errno != EROFS)
        attempt_say(&a->answer, FINDING_MISSING, "a read-only copy of /usr does not answer EROFS");
    else
        attempt_say(&a->answer, FINDING_OK, "open_tree, move_mount, fsopen, fsmount, mount_setattr");
}

static void try_pivot_root(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd root = hang_tmpfs(&e);
    if (root < 0 || mounts_enter_root(root, &e) < 0)
        attempt_err(&a->answer, FINDING_MISSING, &e);
    else if (access("/usr", F_OK) == 0)
        attempt_say(&a->answer, FINDING_MISSING, "the host's tree is still there afterwards");
}

static void try_proc(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd proc = mounts_proc(&e);
    if (proc < 0)
        attempt_err(&a->answer, FINDING_MISSING, &e);
}

static void try_tmpfs(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd fs = mounts_tmpfs(1 << 20, 16, 0755, &e);
    if (fs < 0)
        attempt_err(&a->answer, FINDING_MISSING, &e);
}

static void try_devpts(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd pts = mounts_devpts(a->ids.uid, a->ids.gid, 1, &e);
    if (pts < 0)
        attempt_err(&a->answer, FINDING_MISSING, &e);
}

static void try_overlay(struct attempt *a)
{
    struct pale_err e = {0};
    own_fd root = hang_tmpfs(&e);
    if (root < 0 || mounts_enter_root(root, &e) < 0) {
        attempt_err(&a->answer, FINDING_DEGRADED, &e);
        return;
    }
    static const char *const dirs[] = {"/l", "/u", "/w", "/m"};
    for (size_t i = 0; i < 4; i++)
        if (mkdir(dirs[i], 0755) < 0)
            attempt_os(&a->answer, FINDING_DEGRADED, "mkdir");
    if (mount("o", "/m", "overlay", 0, "lowerdir=/l,upperdir=/u,workdir=/w,userxattr") < 0)
        attempt_os(&a->answer, FINDING_DEGRADED, "mount an overlay");
}

static void try_idmap(struct attempt *a)
{
    const struct survey_target *t = a->arg;
    struct pale_err e = {0};
    struct ids ids;
    if (ids_choose(&ids, 0, IDS_WANT_ONE, &e) < 0) {
        attempt_err(&a->answer, FINDING_DEGRADED, &e);
        return;
    }
    if (!ids.idmap_mounts) {
        attempt_say(&a->answer, FINDING_OK, "not needed: your boxes have your own id");
        return;
    }
    own_fd userns = ids_mount_userns(&ids, &e);
    own_fd tree = userns < 0 ? -1 : mounts_clone(AT_FDCWD, t->data_dir, 0, true, &e);
    if (tree < 0 || mounts_idmap(tree, userns, &e) < 0)
        attempt_err(&a->answer, FINDING_DEGRADED, &e);
    else
        attempt_say(&a->answer, FINDING_OK, "on the file system of %.200s", t->data_dir);
}

/* --- locks --- */

static void try_landlock(struct attempt *a)
{
    static const char *const allowed[] = {"/tmp"};
    static const char *const adds[] = {"files",         "moving between folders",       "truncation",      "TCP (not used)",
                                       "device ioctls", "signals and abstract sockets", "audit (not used)"};
    struct pale_err e = {0};
    int abi = landlock_abi();
    if (abi < 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || landlock_restrict_writes(allowed, 1, true, &e) < 0) {
        attempt_err(&a->answer, FINDING_MISSING, &e);
        if (abi < 1)
            attempt_say(&a->answer, FINDING_MISSING, "not in this kernel, or not switched on (lsm=…,landlock)");
        return;
    }
    own_fd null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        attempt_say(&a->answer, FINDING_MISSING, "it was entered and does not hold");
        return;
    }
    int most = (int)(sizeof(adds) / sizeof(adds[0]));
    int n = snprintf(a->answer.detail, sizeof(a->answer.detail), "ABI %d:", abi);
    for (int i = 0; i < most && n > 0 && (size_t)n < sizeof(a->answer.detail); i++)
        n += snprintf(a->answer.detail + n, sizeof(a->answer.detail) - (size_t)n, "%s %s%s", i ? "," : "", i < abi ? "" : "not ", adds[i]);
    a->answer.state = abi >= 6 ? FINDING_OK : FINDING_DEGRADED;
}

static void try_seccomp(struct attempt *a)
{
    struct pale_err e = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(seccomp_for(SECCOMP_STRICT), &e) < 0)
        attempt_err(&a->answer, FINDING_MISSING, &e);
    else if (syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != ENOSYS)
        attempt_say(&a->answer, FINDING_MISSING, "the filter was taken and does not hold");
}

static void try_no_new_privs(struct attempt *a)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        attempt_os(&a->answer, FINDING_MISSING, "prctl");
}

/* --- system calls --- */

static void try_pidfd(struct attempt *a)
{
    int pidfd = -1;
    struct clone_args c = {.flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid_t pid = k_clone3(&c);
    if (pid == 0)
        for (;;)
            pause();
    if (pid < 0 || k_pidfd_signal(pidfd, SIGKILL) < 0) {
        attempt_os(&a->answer, FINDING_MISSING, "clone3 with CLONE_PIDFD");
        if (pid > 0)
            kill(pid, SIGKILL);
    }
}

static void try_openat2(struct attempt *a)
{
    own_fd dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd in = fd_open_beneath(dir, "uptime", O_RDONLY, 0);
    if (in < 0) {
        attempt_os(&a->answer, FINDING_MISSING, "openat2");
        return;
    }
    own_fd out = fd_open_beneath(dir, "../etc", O_RDONLY, 0);
    own_fd magic = fd_open_beneath(dir, "self/root", O_RDONLY, 0);
    if (out >= 0 || magic >= 0)
        attempt_say(&a->answer, FINDING_MISSING, "a path led out of its folder");
}

static void try_close_range(struct attempt *a)
{
    if (k_close_range(100, ~0u, 0) < 0)
        attempt_os(&a->answer, FINDING_MISSING, "close_range");
}

static void try_subreaper(struct attempt *a)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        attempt_os(&a->answer, FINDING_MISSING, "PR_SET_CHILD_SUBREAPER");
}

#define USERNS_REMEDY                                                                                                                      \
    "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, on Ubuntu "          \
    "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for pale-keeper with userns; or run pale as root"
#define KERNEL_REMEDY "a newer kernel, or leave the container that forbids it"

/* --- the network --- */

static void try_detour(struct attempt *a)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    own_fd s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct pale_err e = {0};
    int sockets[DETOUR_SOCKETS];
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &lo) < 0) {
        attempt_os(&a->answer, FINDING_MISSING, "raise lo in a network namespace");
        return;
    }
    if (detour_make(sockets, &e) < 0) {
        attempt_err(&a->answer, FINDING_MISSING, &e);
        return;
    }
    bool six = sockets[DETOUR_TCP6] >= 0, told = sockets[DETOUR_REFUSED] >= 0;
    attempt_say(&a->answer, told ? FINDING_OK : FINDING_DEGRADED, "%s%s", six ? "IPv4 and IPv6" : "IPv4 alone",
                told ? "" : "; datagrams that are refused are not in the audit (nfnetlink_log is missing)");
    detour_close(sockets);
}

const struct survey_row survey_wall[] = {
    {"Namespaces", "user namespace", true, "C1 C2 C6 C8 C9 C12 C13 C15", USERNS_REMEDY, try_userns, CLONE_NEWUSER, NULL},
    {"Namespaces", "nested user namespace", true, "C2 C9 C13 C24", USERNS_REMEDY, try_nested, CLONE_NEWUSER, NULL},
    {"Namespaces", "mount, pid, net, ipc, uts, cgroup", true, "C1 C6 C8 C15 C17 C18", KERNEL_REMEDY, try_namespaces, CLONE_NEWUSER, NULL},
    {"Namespaces", "user.max_* limits", true, "C13 C16", "Linux 4.9 or newer", try_user_max, WALL_NAMESPACES | CLONE_NEWPID, NULL},
    {"Namespaces", "process limit of a namespace", false, "C16", "Linux 5.14 or newer", try_nproc, CLONE_NEWUSER, NULL},
    {"Mounts", "mount API", true, "C1 C2", "Linux 5.12 or newer", try_mount_api, WALL_NAMESPACES, NULL},
    {"Mounts", "pivot_root", true, "C1", KERNEL_REMEDY, try_pivot_root, WALL_NAMESPACES, NULL},
    {"Mounts", "procfs", true, "C8 C9", "in a container: let its /proc be whole (--security-opt unmask=ALL, or privileged)", try_proc,
     WALL_NAMESPACES | CLONE_NEWPID, NULL},
    {"Mounts", "tmpfs", true, "C1", KERNEL_REMEDY, try_tmpfs, WALL_NAMESPACES, NULL},
    {"Mounts", "devpts", true, "C5 C10", KERNEL_REMEDY, try_devpts, WALL_NAMESPACES, NULL},
    {"Mounts", "overlay", false, "", "Linux 5.11 or newer; boxes that keep their files, projects under review and images need it",
     try_overlay, WALL_NAMESPACES, NULL},
    {"Mounts", "idmapped mounts", false, "C12",
     "keep boxes and projects of root on a file system that has them (ext4, xfs, btrfs, tmpfs …)", try_idmap, 0, NULL},
    {"Locks", "Landlock", true, "C2 C6 C8", "Linux 6.12 or newer for all of it; below 5.13, or without it, no box starts", try_landlock, 0,
     NULL},
    {"Locks", "seccomp filter", true, "C5 C13 C14 C22", "a kernel with CONFIG_SECCOMP_FILTER", try_seccomp, 0, NULL},
    {"Locks", "no new privileges", true, "C11 C14", KERNEL_REMEDY, try_no_new_privs, 0, NULL},
    {"Network", "detour", false, "",
     "nftables with nat, redirect and reject in the kernel (nf_tables, nft_redir, nft_reject_inet, nf_conntrack); without it a box can "
     "have no network but the host's",
     try_detour, CLONE_NEWUSER | CLONE_NEWNET, NULL},
    {"System calls", "clone3, pidfd", true, "C18", "Linux 5.3 or newer; a container's filter may forbid clone3", try_pidfd, 0, NULL},
    {"System calls", "openat2", true, "C3 C31 C35", "Linux 5.6 or newer", try_openat2, 0, NULL},
    {"System calls", "close_range", true, "C4", "Linux 5.9 or newer", try_close_range, 0, NULL},
    {"System calls", "child subreaper", true, "C17", KERNEL_REMEDY, try_subreaper, 0, NULL},
    {0},
};

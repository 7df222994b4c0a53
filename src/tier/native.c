/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the native wall: one clone into new namespaces, one builder that becomes pale-init.
 *
 * How it works: the keeper clones a builder into a user namespace of its own (the outer one) together with mount, pid, net, ipc,
 * uts and cgroup namespaces that it therefore owns. The keeper maps its ids, whereupon the builder goes on, and puts it into the
 * box's cgroup meanwhile. The builder opens everything it needs from the host, builds the root (tier/root.c), enters it, makes the inner
 * user namespace for commands, joins the box's layers to its root, locks itself up with Landlock and becomes pale-init by exec. Every step
 * that fails is reported over a pipe that closes at exec; until then no code but ours has run. */
#include "tier/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
#include "confine/weaken.h"
#include "tier/root.h"

#define BUILD_TIMEOUT_MS 30000

/* What the builder has in hand: its ends of the pipes and the sources the keeper opened for it. */
struct builder {
    const struct wall_plan *plan;
    struct root_sources sources;
    int go_fd, report_fd, wire_fd;
};

/* A network namespace takes as long to make as all the mounts together, so a child makes it meanwhile. It ends with the number of the
 * namespace's descriptor, which is ours too, or with an errno above NET_FAILED. */
#define NET_FAILED 128

struct network {
    int proc_fd; /* opened by the builder, whose root may be another by then; the child closes it for both */
    int gateway_fd, report_fd;
    bool is_published; /* some port of the box is led to from the host */
};

/* Runs beside the builder, and must leave its errno alone. */
static int make_network(void *arg)
{
    const struct network *n = arg;
    long r = k_raw(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0);
    struct ifreq lo = {.ifr_name = "lo"};
    lo.ifr_flags = IFF_UP | IFF_RUNNING;
    long s = r < 0 ? r : k_raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);
    r = s < 0 ? s : k_raw(SYS_ioctl, s, SIOCSIFFLAGS, (long)&lo, 0, 0);
    if (s >= 0)
        k_raw(SYS_close, s, 0, 0, 0, 0);
    if (r >= 0)
        r = k_raw(SYS_openat, n->proc_fd, (long)"self/ns/net", O_RDONLY | O_CLOEXEC, 0, 0);
    k_raw(SYS_close, n->proc_fd, 0, 0, 0, 0);
    return (int)(r >= 0 && r < NET_FAILED ? r : NET_FAILED + (r < 0 ? -r & 127 : EMFILE));
}

/* The same with a way out, in memory of its own. What goes wrong it tells itself. */
static int make_detour(void *arg)
{
    const struct network *n = arg;
    int sockets[DETOUR_SOCKETS], status = make_network(arg);
    struct pale_err e = {0};
    if (status >= NET_FAILED)
        return status;
    int r = detour_make(sockets, &e);
    if (r == 0) {
        r = detour_hand_over(n->gateway_fd, sockets, &e);
        detour_close(sockets);
        if (r == 0)
            r = detour_hand_over_inward(n->gateway_fd, n->is_published ? DETOUR_INWARD : 0, &e);
    }
    if (r < 0)
        fd_write_full(n->report_fd, &e, sizeof(e));
    return r < 0 ? NET_FAILED + EPERM : status;
}

static pid_t start_network(const struct builder *b)
{
    static _Alignas(16) char stack[32768];
    static struct network n;
    bool out = b->plan->gateway_fd >= 0;
    n = (struct network){open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), b->plan->gateway_fd, b->report_fd,
                         b->plan->policy->publish_count > 0};
    if (n.proc_fd < 0)
        return -1;
    pid_t pid = clone(out ? make_detour : make_network, stack + sizeof(stack), (out ? 0 : CLONE_VM) | CLONE_FILES | SIGCHLD, &n);
    if (pid < 0)
        own_close(&n.proc_fd);
    return pid;
}

static int join_network(pid_t pid, struct pale_err *e)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_os(e, "wait for the box's network namespace");
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= NET_FAILED) {
        errno = WIFEXITED(status) ? WEXITSTATUS(status) - NET_FAILED : EINTR;
        return err_os(e, "make the box's network namespace");
    }
    own_fd ns = WEXITSTATUS(status);
    return setns(ns, CLONE_NEWNET) < 0 ? err_os(e, "enter the box's network namespace") : 0;
}

/* Needs: sys/user of the box's own procfs, opened before it was made read-only. Gives up: making namespaces, which counts the
 * detached mounts of the steps before. The limits bind all that descends from this user namespace. */
static int limit_namespace(int user_fd, struct pale_err *e)
{
    static const struct {
        const char *file, *value;
    } rows[] = {
        {"max_user_namespaces", "1"}, /* the inner one */
        {"max_mnt_namespaces", "0"},      {"max_pid_namespaces", "0"},    {"max_net_namespaces", "0"},  {"max_ipc_namespaces", "0"},
        {"max_uts_namespaces", "0"},      {"max_cgroup_namespaces", "0"}, {"max_time_namespaces", "0"}, {"max_fanotify_groups", "0"},
        {"max_inotify_instances", "64"}, /* the user's own editors need some of the 128 there usually are */
        {"max_inotify_watches", "65536"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        own_fd fd = openat(user_fd, rows[i].file, O_WRONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue; /* a kernel without that kind has nothing to limit */
        ssize_t n = (ssize_t)strlen(rows[i].value);
        if (fd < 0 || write(fd, rows[i].value, (size_t)n) != n)
            return err_os(e, "set user.%s", rows[i].file);
    }
    return 0;
}

/* Gives up: most of what the kernel counts per user and not per box, and any right to a better priority that the host gave the
 * user. Set before the inner namespace is made, which is born with these limits for all its ids together. */
static int limit_shares(struct pale_err *e)
{
    static const struct {
        int what;
        rlim_t most;
        const char *name;
    } rows[] = {
        {RLIMIT_SIGPENDING, 4096, "queued signals and timers"},
        {RLIMIT_MSGQUEUE, 96 << 10, "message queues"}, /* one of the usual size */
        {RLIMIT_MEMLOCK, 1 << 20, "locked memory"},    /* a few secrets */
        {RLIMIT_NICE, 0, "priority"},
        {RLIMIT_RTPRIO, 0, "real-time priority"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rlimit lim;
        if (getrlimit(rows[i].what, &lim) < 0)
            return err_os(e, "read the limit of %s", rows[i].name);
        if (lim.rlim_max > rows[i].most)
            lim.rlim_max = rows[i].most;
        if (lim.rlim_cur > lim.rlim_max)
            lim.rlim_cur = lim.rlim_max;
        if (setrlimit(rows[i].what, &lim) < 0)
            return err_os(e, "set the limit of %s", rows[i].name);
    }
    return 0;
}

static int hold(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return 0;
}

/* The user namespace of all commands: made by a child that shares our memory (it only waits), and is
 * gone again once we hold the namespace's descriptor. */
static int inner_userns(const struct wall_plan *plan, int proc_fd, struct pale_err *e)
{
    struct rlimit old, lim;
    if (getrlimit(RLIMIT_NPROC, &old) < 0)
        return err_os(e, "read the process limit");
    uint64_t most = plan->policy->limits[LIMIT_PROCESSES].value;
    lim = old;
    /* Commands have the limit as their own; this one, which a namespace is born with, binds all its ids together and counts our
     * runners too, one for each command, and init and the spare pair. */
    uint64_t all = 2 * most + 4;
    if (most && !is_weak(plan->weaken, WEAKEN_LIMITS) && (old.rlim_cur == RLIM_INFINITY || all < old.rlim_cur))
        lim.rlim_cur = all;
    if (setrlimit(RLIMIT_NPROC, &lim) < 0)
        return err_os(e, "set the process limit");
    static _Alignas(16) char stack[16384];
    pid_t pid = clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);
    int r = pid < 0 ? err_os(e, "make the inner user namespace") : 0;
    if (setrlimit(RLIMIT_NPROC, &old) < 0 && r == 0)
        r = err_os(e, "restore the process limit");
    if (pid < 0)
        return r;
    if (r == 0)
        r = ids_write_inner(&plan->ids, proc_fd, pid, e);
    if (r == 0) {
        char path[64];
        snprintf(path, sizeof(path), "%d/ns/user", (int)pid);
        r = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
        if (r < 0)
            r = err_os(e, "open the inner user namespace");
    }
    /* It must not live on: it is the builder still, with the host's memory. A failed attempt ends it with the box's first process. */
    if (kill(pid, SIGKILL) < 0) {
        if (r >= 0)
            close(r);
        return err_os(e, "end the maker of the inner user namespace");
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* Needs: the box's root. Gives up: writing outside the box's writable folders, mounting, signals and abstract sockets beyond
 * the box. */
static int lock_files(const struct builder *b, struct pale_err *e)
{
    const char *paths[ROOT_WRITABLE_MAX];
    size_t n = root_writable(b->plan, paths);
    return landlock_restrict_writes(paths, n, true, e);
}

/* Needs: everything above. Gives up: every capability at exec, and every descriptor but the wire (3) and the inner user
 * namespace (4). */
static int become_init(struct builder *b, int userns_fd, struct pale_err *e)
{
    int init = b->sources.init_fd;
    own_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_os(e, "open /dev/null in the box");
    /* Out of the way of the numbers we are about to use. */
    int high[5] = {null, b->wire_fd, userns_fd, init, b->report_fd};
    for (int i = 0; i < 5; i++)
        if ((high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, 32)) < 0)
            return err_os(e, "move a descriptor");
    for (int i = 0; i < 3; i++)
        if (dup2(high[0], i) < 0)
            return err_os(e, "give pale-init its descriptors");
    if (dup2(high[1], 3) < 0 || dup2(high[2], 4) < 0)
        return err_os(e, "give pale-init its descriptors");
    if (k_close_range(5, 31, 0) < 0)
        return err_os(e, "close the host's descriptors");
    b->report_fd = high[4];
    /* Here, because a user who is not the box's root has no capability left after exec to drop anything with. */
    int r = keeps_caps(b->plan->weaken) ? 0 : caps_drop_bounding(e);
    if (r < 0)
        return r;
#ifdef PALE_WEAKEN
    if (keeps_caps(b->plan->weaken))
        caps_keep();
#endif
    char *argv[] = {(char *)"pale-init", NULL};
    k_execveat(high[3], argv, weaken_envp());
    return err_os(e, "start %s", b->plan->init_path);
}

/* The keeper says three times that we may go on: once our ids are mapped, once the box's layers are nobody else's, once we are in its
 * cgroup. */
static int await_keeper(const struct builder *b, struct pale_err *e)
{
    char go;
    return fd_read_full(b->go_fd, &go, 1) == 1 ? 0 : err_set(e, PALE_GONE, "the keeper went away while the wall was built");
}

static int await_layers(void *arg, struct pale_err *e)
{
    return await_keeper(arg, e);
}

/* Gives up: a life without the keeper. Once more after every change of ids, which clears it, the last being that of whoever joins layers. A
 * keeper that died before has closed the pipe that we read next. */
static int tie_life(const struct wall_plan *plan, struct pale_err *e)
{
    return !is_weak(plan->weaken, WEAKEN_DEATH) && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? err_os(e, "tie the box's life to its keeper's")
                                                                                        : 0;
}

/* Needs: the keeper has put us into the box's cgroup, which then becomes the root of what the box sees. That may take the kernel
 * longer than all the mounts, which are made meanwhile. Gives up: the host's cgroups, and a life without the keeper. */
static int enter_cgroup(const struct builder *b, struct pale_err *e)
{
    int r = tie_life(b->plan, e);
    if (r == 0)
        r = await_keeper(b, e);
    if (r == 0 && !is_weak(b->plan->weaken, WEAKEN_CGROUPNS) && unshare(CLONE_NEWCGROUP) < 0)
        r = err_os(e, "make the box's cgroup namespace");
    return r;
}

/* Needs: the keeper has mapped our ids. Gives up: the host's session and groups, and being seen to mount. */
static int settle(const struct wall_plan *plan, struct pale_err *e)
{
    if (setsid() < 0)
        return err_os(e, "leave the host's session");
    /* With a range, the builder is the box's root, which commands are not. With one id the kernel keeps our groups; else they are given up
     * when the user's folders are open, some of which may be reached by a group alone (root_open_sources). */
    if (plan->ids.kind == IDS_RANGE && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        return err_os(e, "become the box's supervisor");
    /* The host's root is nobody there; an ordinary user is the box's one id already. */
    if (plan->image_root &&
        (setresgid(plan->ids.gid, plan->ids.gid, plan->ids.gid) < 0 || setresuid(plan->ids.uid, plan->ids.uid, plan->ids.uid) < 0))
        return err_os(e, "become the box's one user");
    /* Changing ids hides a process's /proc entries even from itself in a new namespace; nothing foreign runs here yet. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_os(e, "prctl");
    umask(022);
    int r = tie_life(plan, e);
    return r < 0 ? r : mounts_make_private(e);
}

static int build(struct builder *b, struct pale_err *e)
{
    const struct wall_plan *plan = b->plan;
    int r;
    pid_t network = is_weak(plan->weaken, WEAKEN_NETNS) || plan->policy->network == NETWORK_HOST ? 0 : start_network(b);
    if (network < 0)
        return err_os(e, "start making the box's network namespace");
    if ((r = await_keeper(b, e)) < 0 || (r = settle(plan, e)) < 0)
        return r;
    own_root root;
    root_init(&root);
    b->sources.layers.await = await_layers;
    b->sources.layers.arg = b;
    if ((r = root_open_sources(plan, &b->sources, e)) < 0 || (r = root_build(plan, &b->sources, &root, e)) < 0)
        return r;
    if (sethostname(plan->hostname, strlen(plan->hostname)) < 0)
        return err_os(e, "set the box's host name");
    if (network > 0 && (r = join_network(network, e)) < 0)
        return r;
    if (!is_weak(plan->weaken, WEAKEN_LIMITS) && (r = limit_shares(e)) < 0)
        return r;
    own_fd userns = inner_userns(plan, root.proc_fd, e);
    if (userns < 0)
        return userns;
    own_fd user = openat(root.proc_fd, "sys/user", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (user < 0)
        return err_os(e, "open the limits of the user namespace");
    if ((r = root_finish(plan, &root, e)) < 0 || (r = root_open_up(plan, &b->sources, &root, e)) < 0 || (r = enter_cgroup(b, e)) < 0)
        return r;
    if (!is_weak(plan->weaken, WEAKEN_USER_MAX) && (r = limit_namespace(user, e)) < 0)
        return r;
    if (!is_weak(plan->weaken, WEAKEN_LANDLOCK) && (r = lock_files(b, e)) < 0)
        return r;
    return become_init(b, userns, e);
}

static void __attribute__((noreturn)) builder_main(struct builder *b)
{
    struct pale_err e = {0};
    build(b, &e);
    fd_write_full(b->report_fd, &e, sizeof(e));
    _exit(125);
}

static uint64_t namespaces(uint64_t weaken)
{
    static const struct {
        enum weaken off;
        uint64_t flag;
    } optional[] = {{WEAKEN_IPCNS, CLONE_NEWIPC}, {WEAKEN_PIDNS, CLONE_NEWPID}};
    uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS;
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
        if (!is_weak(weaken, optional[i].off))
            flags |= optional[i].flag;
    return flags;
}

int wall_await(struct wall *w, struct pale_err *e)
{
    struct pollfd p = {.fd = w->report_fd, .events = POLLIN};
    struct pale_err report = {0};
    int n;
    if (w->report_fd < 0)
        return err_set(e, PALE_GONE, "the box was ended before it was ready");
    while ((n = poll(&p, 1, BUILD_TIMEOUT_MS)) < 0 && errno == EINTR)
        ;
    if (n == 0)
        return err_set(e, PALE_TIMEOUT, "the wall was not built within %d s; is a host folder on a dead file server?",
                       BUILD_TIMEOUT_MS / 1000);
    ssize_t got = fd_read_full(w->report_fd, &report, sizeof(report));
    own_close(&w->report_fd);
    if (got == 0)
        return 0; /* closed by exec: pale-init runs */
    if (got != (ssize_t)sizeof(report) || report.code <= PALE_OK || report.code >= PALE_CODE_COUNT)
        return err_set(e, PALE_INTERNAL, "the builder of the wall died");
    report.text[sizeof(report.text) - 1] = 0;
    if (e)
        *e = report;
    return -(int)report.code;
}

/* The builder about to be cloned, and what became of it. */
struct spawn {
    struct builder *builder;
    struct clone_args args;
    int go_fd, report_fd, wire_fd; /* the keeper's ends, which are none of the builder's business */
    pid_t pid;                     /* -1 with os if it could not be made */
    int os;
    bool in_home; /* … where its maps are written already; mapped: how that went */
    int mapped;
    struct pale_err e;
};

static void clone_builder(struct spawn *s)
{
    s->pid = k_clone3(&s->args);
    s->os = errno;
    if (s->pid == 0) {
        close(s->go_fd);
        close(s->report_fd);
        close(s->wire_fd);
        builder_main(s->builder);
    }
}

/* In a child that shares our memory and descriptors, while we wait: the builder is made in the home, as the keeper's child. Whoever
 * is in the home may write its maps. */
static int clone_in_home(void *arg)
{
    struct spawn *s = arg;
    const struct wall_plan *plan = s->builder->plan;
    struct ids by_hand = plan->ids;
    by_hand.by_helper = false;
    if (setns(plan->ids_home, CLONE_NEWUSER) < 0)
        return 1;
    s->in_home = true;
    s->args.flags |= CLONE_PARENT;
    s->args.exit_signal = 0; /* that of this child */
    clone_builder(s);
    if (s->pid > 0)
        s->mapped = ids_write_maps(&by_hand, s->pid, &s->e);
    return 0;
}

#define HOME_STACK_BYTES (1u << 20) /* the builder goes on with it */

static void spawn_builder(struct spawn *s)
{
    void *stack = MAP_FAILED;
    s->pid = -1;
    if (s->builder->plan->ids_home >= 0)
        stack = mmap(NULL, HOME_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack != MAP_FAILED) {
        s->os = ECHILD; /* until it has told us otherwise */
        s->mapped = err_set(&s->e, PALE_GONE, "the process that writes the box's id maps died");
        pid_t maker = clone(clone_in_home, (char *)stack + HOME_STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, s);
        while (maker > 0 && waitpid(maker, NULL, 0) < 0 && errno == EINTR)
            ;
        munmap(stack, HOME_STACK_BYTES);
    }
    /* Without a home, or where it cannot be entered: here, and the helpers write the maps. */
    if (!s->in_home)
        clone_builder(s);
}

static int release(int go_fd, struct pale_err *e)
{
    return write(go_fd, "", 1) == 1 ? 0 : err_os(e, "release the builder");
}

static int open_namespace(pid_t pid, const char *which, struct pale_err *e)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_os(e, "open the box's %s namespace", which) : fd;
}

/* While the builder waits and is still ours to look at: it soon changes its ids. */
static int note_namespaces(struct wall *w, struct pale_err *e)
{
    struct stat st;
    if ((w->user_ns = open_namespace(w->pid, "user", e)) < 0)
        return w->user_ns;
    if ((w->mount_ns = open_namespace(w->pid, "mnt", e)) < 0)
        return w->mount_ns;
    if (fstat(w->user_ns, &st) < 0)
        return err_os(e, "look at the box's user namespace");
    w->user_space = (uint32_t)st.st_ino;
    return 0;
}

/* What only the keeper can do for the new process: its ids, unless it was born in a home, and its cgroup. */
static int admit(const struct wall_plan *plan, const struct spawn *s, struct wall *w, struct pale_err *e)
{
    int r = note_namespaces(w, e);
    if (r == 0 && !s->in_home)
        r = ids_write_maps(&plan->ids, s->pid, e);
    bool at_once = plan->ahead || wall_admits_late(1); /* whatever version there is */
    if (r == 0 && at_once && (r = release(w->go_fd, e)) == 0 && !plan->ahead)
        r = release(w->go_fd, e);
    if (r < 0 || plan->ahead)
        return r;
    if (plan->admit)
        r = plan->admit(plan->admit_arg, s->pid, e);
    for (int i = at_once ? 1 : 3; r == 0 && i > 0; i--)
        r = release(w->go_fd, e);
    own_close(&w->go_fd);
    return r;
}

bool wall_admits_late(int version)
{
    return version != 1 || geteuid() == 0;
}

/* Some step has failed. A builder that has ended by itself says why. */
static int tell_why(struct wall *w, struct pale_err *own, struct pale_err *e)
{
    struct pale_err why = {0};
    if (w->pid > 0 && (own->os == EPIPE || own->os == ESRCH) && wall_await(w, &why) < 0)
        *own = why;
    if (e)
        *e = *own;
    return -(int)own->code;
}

int wall_take_layers(struct wall *w, struct pale_err *e)
{
    struct pale_err own = {0};
    return release(w->go_fd, &own) < 0 ? tell_why(w, &own, e) : 0;
}

int wall_admit(struct wall *w, wall_admission *admission, void *arg, struct pale_err *e)
{
    struct pale_err own = {0};
    int r = admission ? admission(arg, w->pid, &own) : 0;
    if (r == 0)
        r = release(w->go_fd, &own);
    own_close(&w->go_fd);
    return r < 0 ? tell_why(w, &own, e) : 0;
}

int native_start(const struct wall_plan *plan, struct wall *ret, struct pale_err *e)
{
    struct builder b = {.plan = plan, .go_fd = -1, .report_fd = -1, .wire_fd = -1};
    int go[2], report[2], wire[2], pidfd = -1;
    struct pale_err own = {0};
    root_sources_init(&b.sources);
    int r = plan->ids.idmap_mounts ? root_open_private_sources(plan, &b.sources, e) : 0;
    if (r < 0) {
        root_sources_done(&b.sources);
        return r;
    }
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire) < 0) {
        r = err_os(e, "make the pipes to a new box");
        root_sources_done(&b.sources);
        return r;
    }
    b.go_fd = go[0];
    b.report_fd = report[1];
    b.wire_fd = wire[1];
    struct spawn s = {
        .builder = &b,
        .args = {.flags = namespaces(plan->weaken) | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD},
        .go_fd = go[1],
        .report_fd = report[0],
        .wire_fd = wire[0],
    };
    spawn_builder(&s);
    pid_t pid = s.pid;
    *ret = (struct wall){
        .pid = pid, .pidfd = pidfd, .wire_fd = wire[0], .report_fd = report[0], .go_fd = go[1], .user_ns = -1, .mount_ns = -1};
    close(go[0]);
    close(report[1]);
    close(wire[1]);
    root_sources_done(&b.sources);
    if (pid < 0) {
        errno = s.os;
        r = err_os(&own, "make the box's namespaces (are unprivileged user namespaces allowed here? `pale doctor` says)");
    } else if (s.in_home && (r = s.mapped) < 0) {
        own = s.e;
    } else {
        r = admit(plan, &s, ret, &own);
    }
    if (r < 0) {
        own_close(&ret->go_fd);
        r = tell_why(ret, &own, e);
        wall_destroy(ret);
    }
    return r;
}

void wall_destroy(struct wall *w)
{
    /* Without its wire init ends by itself, should the signal ever not reach it. */
    own_close(&w->wire_fd);
    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    own_close(&w->pidfd);
    own_close(&w->report_fd);
    own_close(&w->go_fd);
    own_close(&w->user_ns);
    own_close(&w->mount_ns);
    w->pid = -1;
}

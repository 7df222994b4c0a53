/* SPDX-License-Identifier: Apache-2.0 */
/* Owns runners and the last steps of a command before its program runs. */
#include "init/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/caps.h"
#include "confine/kernel.h"
#include "confine/pretence.h"
#include "confine/seccomp.h"
#include "confine/slice.h"
#include "confine/weaken.h"
#include "init/builtin.h"

/* The command's side of a runner. */
struct child {
    const struct runner_setup *setup;
    uint32_t slot, generation;
    const struct runner_stdio *io;
    int report_fd;
    int request_fd;                   /* a spare's, or -1 */
    const struct runner_probe *probe; /* what a spare tries first, or NULL */
};

void runner_close_stdio(struct runner_stdio *io)
{
    own_close(&io->in);
    own_close(&io->out);
    own_close(&io->err);
    own_close(&io->terminal);
}

static void send_report(int fd, const struct report *r)
{
    fd_write_full(fd, r, sizeof(*r));
}

static void __attribute__((noreturn)) fail(const struct child *c, enum exec_stage stage, int os)
{
    struct report r = {.slot = c->slot, .generation = c->generation, .kind = REPORT_FAILED, .value = os, .stage = stage};
    send_report(c->report_fd, &r);
    _exit(127);
}

/* Needs: init's ownership of the inner user namespace. Gives up: the outer one, and with it all say over mounts, network, host
 * name and limits. */
static void enter_inner(const struct child *c)
{
    if (is_weak(c->setup->config.weaken, WEAKEN_INNER_USERNS))
        return;
    if (setns(c->setup->userns_fd, CLONE_NEWUSER) < 0)
        fail(c, STAGE_CONFINE, errno);
}

/* Needs: capabilities in the inner user namespace. Gives up: every one of them, for good. */
static void become_user(const struct child *c, uint32_t uid, uint32_t gid)
{
    const struct msg_config *conf = &c->setup->config;
    struct pale_err e;
    bool keep_caps = is_weak(conf->weaken, WEAKEN_CAPS);
    if (!keep_caps && caps_drop_bounding(&e) < 0)
        fail(c, STAGE_CONFINE, e.os);
    if (!conf->one_id && setgroups(0, NULL) < 0)
        fail(c, STAGE_USER, errno);
#ifdef PALE_WEAKEN
    if (keep_caps)
        caps_keep();
#endif
    if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        fail(c, STAGE_USER, errno);
#ifdef PALE_WEAKEN
    if (keep_caps)
        caps_keep();
#endif
    if (!keep_caps && caps_drop_all(&e) < 0)
        fail(c, STAGE_CONFINE, e.os ? e.os : EPERM);
}

/* Init blocks all signals and ignores SIGPIPE; a program expects neither. */
static void reset_signals(void)
{
    sigset_t none;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void set_limits(const struct child *c)
{
    const struct msg_config *conf = &c->setup->config;
    struct rlimit none = {0, 0}, files = {conf->nofile, conf->nofile}, tasks = {conf->processes, conf->processes};
    /* Counted in the inner user namespace, where only commands are: exact, but for a waiting spare that takes one. */
    if (conf->processes && setrlimit(RLIMIT_NPROC, &tasks) < 0)
        fail(c, STAGE_CONFINE, errno);
    bool core = is_weak(conf->weaken, WEAKEN_CORE);
    if ((!core && setrlimit(RLIMIT_CORE, &none) < 0) || (conf->nofile && setrlimit(RLIMIT_NOFILE, &files) < 0 && errno != EPERM))
        fail(c, STAGE_CONFINE, errno);
}

/* Needs: no privilege. Gives up: gaining any, and every system call the profile does not list. */
static void lock_syscalls(const struct child *c)
{
    const struct msg_config *conf = &c->setup->config;
    struct pale_err e;
    if (!is_weak(conf->weaken, WEAKEN_NNP) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail(c, STAGE_CONFINE, errno);
    bool bare = is_weak(conf->weaken, WEAKEN_SECCOMP) || is_weak(conf->weaken, WEAKEN_PROFILE);
    if ((!bare && seccomp_load(seccomp_for((enum policy_seccomp)conf->seccomp), &e) < 0) || (conf->pretence && pretence_load(&e) < 0))
        fail(c, STAGE_CONFINE, e.os);
}

/* Tries to take back what was given up. */
static void verify(const struct child *c, uint32_t uid)
{
    uint64_t weak = c->setup->config.weaken;
    if (!is_weak(weak, WEAKEN_CAPS) && caps_has(-1))
        fail(c, STAGE_CONFINE, EPERM);
    if (!is_weak(weak, WEAKEN_NNP) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        fail(c, STAGE_CONFINE, EPERM);
    if (!is_weak(weak, WEAKEN_SECCOMP) && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
        fail(c, STAGE_CONFINE, EPERM);
    if (uid != 0 && !is_weak(weak, WEAKEN_CAPS) && setresuid(0, 0, 0) == 0)
        fail(c, STAGE_CONFINE, EPERM);
}

static void confine(const struct child *c, uint32_t uid, uint32_t gid)
{
    enter_inner(c);
    become_user(c, uid, gid);
    /* Until its program runs nobody in the box looks into it, whatever the host says of processes that change ids. */
    if (!is_weak(c->setup->config.weaken, WEAKEN_DUMPABLE) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        fail(c, STAGE_CONFINE, errno);
    set_limits(c);
    umask(022);
    lock_syscalls(c);
    verify(c, uid);
}

/* Where a command's descriptors stand before its program starts. Those above the standard three close themselves at exec. */
enum { CHILD_REPORT_FD = 3, CHILD_NULL_FD, CHILD_REQUEST_FD, CHILD_PROBE_FD, CHILD_FDS };

static void put_fd(struct child *c, int from, int at)
{
    if (dup3(from, at, at > 2 ? O_CLOEXEC : 0) < 0)
        fail(c, STAGE_CONFINE, errno);
}

/* Standard descriptors in place, and of the others only those of the list above. */
static void settle_stdio(struct child *c)
{
    const struct runner_stdio *io = c->io;
    bool tty = io->terminal >= 0;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0)
        fail(c, STAGE_CONFINE, errno);
    /* First out of the way of each other. */
    int from[CHILD_FDS] = {tty           ? io->terminal
                           : io->in >= 0 ? io->in
                                         : null,
                           tty ? io->terminal : io->out,
                           tty ? io->terminal : io->err,
                           c->report_fd,
                           null,
                           c->request_fd,
                           c->probe ? c->probe->report_fd : -1};
    for (int i = 0; i < CHILD_FDS; i++)
        if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
            fail(c, STAGE_CONFINE, errno);
    c->report_fd = from[CHILD_REPORT_FD];
    for (int i = 0; i < CHILD_FDS; i++)
        if (from[i] >= 0)
            put_fd(c, from[i], i);
    if (is_weak(c->setup->config.weaken, WEAKEN_FDS)) {
        for (int fd = 3; fd < 16; fd++)
            fcntl(fd, F_SETFD, 0);
        return;
    }
    unsigned foreign = c->probe ? CHILD_FDS : c->request_fd >= 0 ? CHILD_PROBE_FD : CHILD_REQUEST_FD;
    if (k_close_range(foreign, ~0u, 0) < 0)
        fail(c, STAGE_CONFINE, errno);
    c->report_fd = CHILD_REPORT_FD;
}

static void take_terminal(const struct child *c)
{
    if (setsid() < 0 && errno != EPERM)
        fail(c, STAGE_TERMINAL, errno);
    if (c->io->terminal >= 0 && ioctl(c->io->terminal, TIOCSCTTY, 0) < 0)
        fail(c, STAGE_TERMINAL, errno);
}

/* execve by one path; a script without an interpreter line goes to the shell, as execvp does. */
static int try_exec(const char *path, const struct msg_exec *m)
{
    execve(path, (char *const *)m->argv, (char *const *)m->env);
    if (errno != ENOEXEC)
        return errno;
    static const char *argv[EXEC_STRINGS_MAX + 3];
    argv[0] = "/bin/sh";
    argv[1] = path;
    for (size_t i = 1; i <= m->argc; i++)
        argv[i + 1] = m->argv[i];
    execve(argv[0], (char *const *)argv, (char *const *)m->env);
    return ENOEXEC;
}

static const char *env_value(const struct msg_exec *m, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < m->envc; i++)
        if (strncmp(m->env[i], name, n) == 0 && m->env[i][n] == '=')
            return m->env[i] + n + 1;
    return NULL;
}

/* Looks the program up in the command's own PATH, inside the box. Returns the errno that tells most. */
static int exec_by_path(const struct msg_exec *m)
{
    const char *name = m->argv[0], *path = env_value(m, "PATH");
    if (strchr(name, '/'))
        return try_exec(name, m);
    int best = ENOENT;
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        char full[PATH_BYTES_MAX];
        size_t n = strcspn(at, ":"), len = strlen(name);
        if (n > 0 && n + len + 2 <= sizeof(full)) {
            memcpy(full, at, n);
            full[n] = '/';
            memcpy(full + n + 1, name, len + 1);
            int os = try_exec(full, m);
            if (os != ENOENT && os != ENOTDIR)
                best = os;
        }
        at += n;
        at += *at == ':';
    }
    return best;
}

static void set_cpu_limit(const struct msg_exec *m)
{
    if (!m->cpu_ms)
        return;
    /* A backstop for one process; init counts the whole tree. */
    rlim_t s = m->cpu_ms / 1000 + 1;
    struct rlimit lim = {s, s + 1};
    setrlimit(RLIMIT_CPU, &lim);
}

static void __attribute__((noreturn)) launch(struct child *c, const struct msg_exec *m)
{
    c->setup->begun[c->slot] = c->generation;
    /* Only now: a signal that came before the program is the command's, and not a spare that was killed. */
    reset_signals();
    set_cpu_limit(m);
    if (chdir(m->cwd[0] ? m->cwd : "/") < 0)
        fail(c, STAGE_CWD, errno);
    if (m->flags & EXEC_BUILTIN) {
        /* No exec will close them, nor take the page away that we share with init. */
        if (!is_weak(c->setup->config.weaken, WEAKEN_FDS) && k_close_range(CHILD_REPORT_FD, ~0u, 0) < 0)
            fail(c, STAGE_CONFINE, errno);
        munmap(c->setup->begun, JOBS_MAX * sizeof(*c->setup->begun));
        _exit(builtin_run(m));
    }
    fail(c, STAGE_EXEC, exec_by_path(m));
}

static void __attribute__((noreturn)) child_main(struct child *c, const struct msg_exec *m)
{
    const struct msg_config *conf = &c->setup->config;
    bool default_user = m->uid == RUNNER_DEFAULT_ID;
    take_terminal(c);
    confine(c, default_user ? conf->uid : m->uid, default_user ? conf->gid : m->gid);
    settle_stdio(c);
    launch(c, m);
}

/* A request of init's own making: a length and a parsed-once record. */
static const struct msg_exec *await_request(struct child *c, int fd)
{
    static uint8_t bytes[sizeof(uint32_t) + RUNNER_SPARE_MAX];
    static struct msg_exec m;
    uint32_t n = 0;
    size_t got = 0;
    /* Pages that will be needed are made ready while there is time. */
    bytes[0] = 0;
    m.argv[0] = m.env[0] = m.cwd = NULL;
    /* Init writes it in one piece; a pipe may hand it over in several. */
    while (got < sizeof(n) || got < sizeof(n) + n) {
        ssize_t r = read(fd, bytes + got, sizeof(bytes) - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            fail(c, STAGE_FORK, errno);
        if (r == 0)
            _exit(0); /* init closed the pipe: this spare is not wanted */
        got += (size_t)r;
        if (got >= sizeof(n))
            memcpy(&n, bytes, sizeof(n));
        if (n > RUNNER_SPARE_MAX)
            fail(c, STAGE_FORK, EPROTO);
    }
    if (!msg_exec_parse(bytes + sizeof(n), n, &m))
        fail(c, STAGE_FORK, EPROTO);
    return &m;
}

/* The process that a request will find here is the one that is tried. */
static void confine_and_probe(struct child *c)
{
    const struct msg_config *conf = &c->setup->config;
    struct probe_report r;
    struct landlock_count count;
    if (c->probe)
        probe_early(&count, &r);
    confine(c, conf->uid, conf->gid);
    settle_stdio(c);
    if (!c->probe)
        return;
    probe_run(c->probe->ask, (enum policy_seccomp)conf->seccomp, CHILD_FDS, &count, &r);
    fd_write_full(CHILD_PROBE_FD, &r, sizeof(r));
    close(CHILD_PROBE_FD);
}

static void __attribute__((noreturn)) spare_main(struct child *c)
{
    take_terminal(c);
    confine_and_probe(c);
    const struct msg_exec *m = await_request(c, CHILD_REQUEST_FD);
    if (!(m->flags & EXEC_STDIN))
        put_fd(c, CHILD_NULL_FD, 0);
    if (m->flags & EXEC_SHARE)
        put_fd(c, 1, 2);
    launch(c, m);
}

static uint64_t micros(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The rest of a runner's life: reap, report the command's end, stay until its last descendant has ended. */
static void __attribute__((noreturn)) reap(uint32_t slot, uint32_t generation, pid_t command, int report_fd)
{
    for (;;) {
        int status = 0;
        pid_t pid = wait4(-1, &status, 0, NULL);
        if (pid < 0 && errno != ECHILD)
            continue;
        if (pid < 0)
            _exit(0);
        if (pid != command)
            continue;
        struct rusage u = {0};
        getrusage(RUSAGE_CHILDREN, &u);
        struct report r = {.slot = slot, .generation = generation, .kind = REPORT_EXIT, .value = status};
        r.cpu_us = micros(&u.ru_utime) + micros(&u.ru_stime);
        r.peak_kib = (uint64_t)u.ru_maxrss;
        r.last = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
        send_report(report_fd, &r);
        if (r.last)
            _exit(0);
    }
}

/* Closes every descriptor but the standard ones and these. Init's own would otherwise live on here: a copy of another command's
 * input pipe, held by a waiting spare, would keep that command from ever seeing the end of its input. */
static void keep_only(const int *keep, int count)
{
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0u;
        for (int i = 0; i < count; i++)
            if (keep[i] >= (int)from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            k_close_range(from, next == ~0u ? ~0u : next - 1, 0);
        if (next == ~0u)
            return;
        from = next + 1;
    }
}

static void keep_own(const struct child *c)
{
    const struct runner_setup *s = c->setup;
    const struct runner_stdio *io = c->io;
    int probe = c->probe ? c->probe->report_fd : -1;
    const int keep[] = {s->report_fd, s->userns_fd, c->request_fd, probe, io->in, io->out, io->err, io->terminal};
    if (!is_weak(s->config.weaken, WEAKEN_FDS))
        keep_only(keep, sizeof(keep) / sizeof(keep[0]));
}

/* Forks the command alone; m is NULL for a spare. */
static pid_t start_bare(struct child *c, const struct msg_exec *m)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    keep_own(c);
    if (m)
        child_main(c, m);
    spare_main(c);
}

/* Forks the runner and, in it, the command; m is NULL for a spare. */
static pid_t start(struct child *c, const struct msg_exec *m)
{
    const struct runner_setup *s = c->setup;
    pid_t runner = fork();
    if (runner != 0)
        return runner;
    keep_own(c);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        fail(c, STAGE_FORK, errno);
    pid_t command = fork();
    if (command < 0)
        fail(c, STAGE_FORK, errno);
    if (command == 0) {
        if (m)
            child_main(c, m);
        spare_main(c);
    }
    struct report r = {.slot = c->slot, .generation = c->generation, .kind = REPORT_PID, .value = command};
    send_report(s->report_fd, &r);
    /* With copies of the output pipes in the runner, their end does not wake init just before the report that tells the command's
     * own end. */
    const int keep[] = {s->report_fd, c->io->out, c->io->err};
    keep_only(keep, sizeof(keep) / sizeof(keep[0]));
    slice_shorten();
    reap(c->slot, c->generation, command, s->report_fd);
}

static struct child child_of(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct runner_stdio *io)
{
    return (struct child){.setup = s, .slot = slot, .generation = generation, .io = io, .report_fd = s->report_fd, .request_fd = -1};
}

pid_t runner_start_bare(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                        const struct runner_stdio *io)
{
    struct child c = child_of(s, slot, generation, io);
    return start_bare(&c, m);
}

pid_t runner_start(const struct runner_setup *s, uint32_t slot, uint32_t generation, const struct msg_exec *m,
                   const struct runner_stdio *io)
{
    struct child c = child_of(s, slot, generation, io);
    return start(&c, m);
}

pid_t runner_start_spare(const struct runner_setup *s, uint32_t slot, uint32_t generation, int request_fd, const struct runner_probe *probe,
                         const struct runner_stdio *io)
{
    struct child c = child_of(s, slot, generation, io);
    c.request_fd = request_fd;
    c.probe = probe;
    return s->config.solo ? start_bare(&c, NULL) : start(&c, NULL);
}

bool runner_spare_fits(const struct msg_exec *m, size_t n)
{
    return m->uid == RUNNER_DEFAULT_ID && !(m->flags & EXEC_TTY) && n <= RUNNER_SPARE_MAX;
}

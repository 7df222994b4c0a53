/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command of ours with everything it starts, counts the system calls of our programs by role, and spoils one of them.
 *
 *     fault-inject [--limit MS] [--report FILE] MODE -- COMMAND … [:: COMMAND …]
 *
 *     MODE   count                  spoil nothing
 *            fail ROLE K ERRNO      the K-th call of that role that can fail is not made and returns -ERRNO
 *            short ROLE K           the K-th call that moves bytes is given room for one
 *            half ROLE K            … for half of them
 *            kill ROLE K            SIGKILL on the way into the K-th call
 *            killexit ROLE K        SIGKILL on the way out of it
 *            nosync ROLE K          from the K-th on, a call that asks for something to be on the disk is not made and succeeds
 *     K      a number, or NR:N, the N-th call with the number NR
 *
 * Of several commands separated by :: only the last is counted and spoilt; those before it set the stage, and what they leave
 * running (a keeper, its box) belongs to the play.
 *
 * How it works: ptrace, with every descendant seized at its birth. A role is the program's name, or for a fork of one of ours what
 * it was forked for. Only the role under test stops at its calls; the others stop at fork and exec. The program a box was asked to
 * run is let go the moment it is executed, and so is newuidmap before it is, for a traced program gets no privilege. The end is when
 * the command has ended and what is left does nothing; it is let go then. After the time limit whatever lives is told and killed. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 512
#define IDLE_MS 12
#define CALLS 512
#define PROC_MAGIC 0x9fa0
#define SYSFS_MAGIC 0x62656572
#define CGROUP_MAGIC 0x27e0eb
#define CGROUP2_MAGIC 0x63677270

enum role {
    ROLE_NEW, /* born, its parent's word still missing */
    ROLE_STUB,
    ROLE_CLI,
    ROLE_SPAWN,
    ROLE_POLICY,
    ROLE_SEAL,
    ROLE_KEEPER,
    ROLE_ERRAND,
    ROLE_BUILDER,
    ROLE_NETNS,
    ROLE_HOLDER,
    ROLE_INIT,
    ROLE_RUNNER,
    ROLE_CHILD,
    ROLE_PAYLOAD,
    ROLE_COUNT
};

static const char *const role_names[ROLE_COUNT] = {"new",     "stub",  "cli",    "spawn", "policy", "seal",  "keeper", "errand",
                                                   "builder", "netns", "holder", "init",  "runner", "child", "payload"};

enum mode { MODE_COUNT, MODE_FAIL, MODE_SHORT, MODE_HALF, MODE_KILL, MODE_KILLEXIT, MODE_NOSYNC };

struct task {
    pid_t pid;
    enum role role;
    int forks;        /* how many it has made */
    bool waits;       /* stopped at its birth until its parent's event names it */
    bool interrupted; /* we have asked it to stop */
    bool hit;         /* its present call is the spoilt one */
    bool made;        /* … and was made nevertheless */
    long result;      /* … what it is to return, if it was not made or lied about */
    bool lie;
    uint64_t loader, loader_end; /* where the dynamic loader's code stands, whose calls are not ours */
    struct user_regs_struct saved;
    uint64_t iov_at, iov_len[8]; /* what was cut, to be put back */
    int iov_count;
};

struct happening {
    enum role role;
    pid_t pid;
    int signal;
    char where[600];
};

struct list {
    struct happening at[32];
    int count;
};

static struct {
    enum mode mode;
    enum role role;
    long k, call; /* the k-th of all calls, or of those with this number */
    int error;
    int limit_ms;
    const char *report;
    struct task task[TASKS_MAX];
    int tasks;
    bool counting, done; /* done: the fault is in */
    long calls[ROLE_COUNT][CALLS];
    long all[ROLE_COUNT], can_fail[ROLE_COUNT], can_short[ROLE_COUNT];
    struct list crashes, hangs, left, ends, payloads;
    bool hit;
    enum role hit_role;
    pid_t hit_pid;
    long hit_call, hit_arg[3];
    bool skipped; /* the call was of no use for this fault */
    pid_t main_pid;
    int main_status;
    bool main_ended;
    int64_t last_event_ms;
} s;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void note(struct list *l, const struct task *t, int signal)
{
    if (l->count == 32)
        return;
    struct happening *h = &l->at[l->count++];
    *h = (struct happening){.role = t->role, .pid = t->pid, .signal = signal};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)t->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, h->where, sizeof(h->where) - 1);
    h->where[n > 0 ? strcspn(h->where, "\n") : 0] = 0;
    if (fd >= 0)
        close(fd);
}

/* The cgroups of what a box runs, as the host sees them. */
static void note_payload(const struct task *t)
{
    char path[64];
    struct list *l = &s.payloads;
    note(l, t, 0);
    char *text = l->at[l->count - 1].where;
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)t->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(l->at[0].where) - 1);
    text[n > 0 ? n : 0] = 0;
    for (char *at = text; *at; at++)
        if (*at == '\n' || *at == '"' || *at == '\\')
            *at = ' ';
    if (fd >= 0)
        close(fd);
    /* One that was killed meanwhile has left its groups already, and tells nothing. */
    unsigned long word;
    if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &word) < 0)
        l->count--;
}

/* --- tasks --- */

static struct task *find(pid_t pid)
{
    for (int i = 0; i < s.tasks; i++)
        if (s.task[i].pid == pid)
            return &s.task[i];
    return NULL;
}

static struct task *add(pid_t pid, enum role role)
{
    if (s.tasks == TASKS_MAX) {
        fprintf(stderr, "fault-inject: more than %d processes\n", TASKS_MAX);
        exit(2);
    }
    struct task *t = &s.task[s.tasks++];
    *t = (struct task){.pid = pid, .role = role};
    return t;
}

static void forget(struct task *t)
{
    *t = s.task[--s.tasks];
}

static bool is_counted(enum role r)
{
    return r > ROLE_STUB && r < ROLE_PAYLOAD;
}

static bool wants_calls(const struct task *t)
{
    if (t->hit || t->role == ROLE_SPAWN || t->role == ROLE_ERRAND)
        return true;
    return s.counting && !s.done && (s.mode == MODE_COUNT ? is_counted(t->role) : t->role == s.role);
}

static void resume(struct task *t, int signal)
{
    ptrace(wants_calls(t) ? PTRACE_SYSCALL : PTRACE_CONT, t->pid, NULL, (void *)(long)signal);
}

/* What a fork of one of ours is for. Builders make two: the network's and the one that holds the inner namespace. */
static enum role child_role(struct task *parent, int event)
{
    parent->forks++;
    switch (parent->role) {
    case ROLE_CLI:
    case ROLE_KEEPER:
        if (event == PTRACE_EVENT_VFORK)
            return ROLE_SPAWN;
        return parent->role == ROLE_KEEPER ? ROLE_BUILDER : ROLE_ERRAND;
    case ROLE_SPAWN: /* it runs no program: it makes the builder in the home of the box's ids */
        return ROLE_BUILDER;
    case ROLE_BUILDER:
        return parent->forks == 1 ? ROLE_NETNS : ROLE_HOLDER;
    case ROLE_INIT:
        return ROLE_RUNNER;
    case ROLE_RUNNER:
        return ROLE_CHILD;
    default:
        return parent->role;
    }
}

static enum role program_role(pid_t pid, enum role before)
{
    static const struct {
        const char *name;
        enum role role;
    } programs[] = {
        {"pale", ROLE_CLI}, {"pale-policy", ROLE_POLICY}, {"pale-seal", ROLE_SEAL}, {"pale-keeper", ROLE_KEEPER}, {"pale-init", ROLE_INIT}};
    char path[64], name[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
    if (fd >= 0)
        close(fd);
    if (n > 0)
        name[strcspn(name, "\n")] = 0;
    if (before == ROLE_BUILDER)
        return ROLE_INIT; /* run by descriptor: its name is a number */
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (strcmp(programs[i].name, name) == 0)
            return programs[i].role;
    return ROLE_PAYLOAD;
}

static void find_loader(struct task *t)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
    FILE *f = fopen(path, "re");
    t->loader = t->loader_end = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char *end;
        if (!strstr(line, "/ld-"))
            continue;
        uint64_t from = strtoull(line, &end, 16), to = strtoull(end + 1, NULL, 16);
        t->loader = t->loader ? t->loader : from;
        t->loader_end = to;
    }
    if (f)
        fclose(f);
}

/* --- calls --- */

/* Calls that always succeed, or whose failure the caller could not live to see. rt_sigprocmask fails only where its arguments make no
 * sense, and the C library's fork counts on that. */
static bool never_fails(long nr)
{
    static const long list[] = {
        SYS_exit,        SYS_exit_group,      SYS_rt_sigreturn,    SYS_getpid,         SYS_gettid, SYS_getppid,
        SYS_getuid,      SYS_geteuid,         SYS_getgid,          SYS_getegid,        SYS_umask,  SYS_set_tid_address,
        SYS_sched_yield, SYS_set_robust_list, SYS_restart_syscall, SYS_rt_sigprocmask,
#ifdef SYS_arch_prctl
        SYS_arch_prctl,
#endif
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        if (list[i] == nr)
            return true;
    return false;
}

/* Calls that move bytes: which argument holds the length, or the vector (then negative), or the msghdr (0). -100: none. */
static int bytes_arg(long nr)
{
    switch (nr) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_recvfrom:
        return 2;
    case SYS_readv:
    case SYS_writev:
        return -1;
    case SYS_sendmsg:
    case SYS_recvmsg:
        return 0;
    default:
        return -100;
    }
}

#ifdef __x86_64__
#define REG_ARG0(r) ((r)->rdi)
#define REG_ARG1(r) ((r)->rsi)
#define REG_ARG2(r) ((r)->rdx)
#define REG_RESULT(r) ((r)->rax)
static void set_number(pid_t pid, struct user_regs_struct *r, long nr)
{
    (void)pid;
    r->orig_rax = (unsigned long)nr;
}
#elif defined(__aarch64__)
#define REG_ARG0(r) ((r)->regs[0])
#define REG_ARG1(r) ((r)->regs[1])
#define REG_ARG2(r) ((r)->regs[2])
#define REG_RESULT(r) ((r)->regs[0])
#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif
static void set_number(pid_t pid, struct user_regs_struct *r, long nr)
{
    int value = (int)nr;
    struct iovec v = {&value, sizeof(value)};
    (void)r;
    ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &v);
}
#else
#error "no registers known for this machine"
#endif

static bool get_regs(pid_t pid, struct user_regs_struct *r)
{
    struct iovec v = {r, sizeof(*r)};
    return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0;
}

static void put_regs(pid_t pid, struct user_regs_struct *r)
{
    struct iovec v = {r, sizeof(*r)};
    ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v);
}

static bool peek(pid_t pid, uint64_t at, uint64_t *ret)
{
    errno = 0;
    long v = ptrace(PTRACE_PEEKDATA, pid, (void *)at, NULL);
    *ret = (uint64_t)v;
    return errno == 0;
}

/* A file of the kernel's takes a value whole or not at all, and a part of a number is another number: nothing of it is written. */
static bool is_kernel_file(pid_t pid, long fd)
{
    char path[64];
    struct statfs f;
    snprintf(path, sizeof(path), "/proc/%d/fd/%ld", (int)pid, fd);
    int own = open(path, O_PATH | O_CLOEXEC);
    bool yes = own >= 0 && fstatfs(own, &f) == 0 &&
               (f.f_type == PROC_MAGIC || f.f_type == SYSFS_MAGIC || f.f_type == CGROUP_MAGIC || f.f_type == CGROUP2_MAGIC);
    if (own >= 0)
        close(own);
    return yes;
}

/* A pipe takes and gives what fits a page whole: a part of it is no fault that happens. Where we cannot look, take it for one. */
static bool is_pipe(pid_t pid, long fd)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/fd/%ld", (int)pid, fd);
    return stat(path, &st) < 0 || S_ISFIFO(st.st_mode);
}

static uint64_t cut(uint64_t n)
{
    return s.mode == MODE_HALF ? n / 2 : 1;
}

static bool cut_vector(struct task *t, uint64_t at, uint64_t count)
{
    uint64_t total = 0;
    if (count > 8)
        count = 8;
    for (uint64_t i = 0; i < count; i++) {
        if (!peek(t->pid, at + 16 * i + 8, &t->iov_len[i]))
            return false;
        total += t->iov_len[i];
    }
    if (total < 2)
        return false;
    uint64_t left = cut(total);
    t->iov_at = at;
    t->iov_count = (int)count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t n = t->iov_len[i] < left ? t->iov_len[i] : left;
        left -= n;
        if (ptrace(PTRACE_POKEDATA, t->pid, (void *)(at + 16 * i + 8), (void *)n) < 0)
            return false;
    }
    return true;
}

static bool spoil_short(struct task *t, long nr)
{
    struct user_regs_struct r = t->saved;
    int where = bytes_arg(nr);
    uint64_t at = 0, count = 0;
    t->made = true;
    if (where == 2) {
        if (REG_ARG2(&r) < 2 || ((nr == SYS_write || t->role >= ROLE_INIT) && REG_ARG2(&r) <= 4096 && is_pipe(t->pid, (long)REG_ARG0(&r))))
            return false;
        if (nr == SYS_write && is_kernel_file(t->pid, (long)REG_ARG0(&r))) {
            t->made = false;
            t->result = (long)cut(REG_ARG2(&r));
            set_number(t->pid, &r, SYS_close);
            REG_ARG0(&r) = (unsigned long)-1;
        } else {
            REG_ARG2(&r) = cut(REG_ARG2(&r));
        }
        put_regs(t->pid, &r);
        return true;
    }
    if (where == -1)
        return cut_vector(t, REG_ARG1(&r), REG_ARG2(&r));
    return peek(t->pid, REG_ARG1(&r) + 16, &at) && peek(t->pid, REG_ARG1(&r) + 24, &count) && cut_vector(t, at, count);
}

/* The call is replaced by one that every list of ours allows and that does nothing. A close that fails has closed all the same. */
static void spoil_fail(struct task *t, long nr)
{
    struct user_regs_struct r = t->saved;
    t->result = -s.error;
    t->made = t->lie = nr == SYS_close;
    if (t->made)
        return;
    if (nr == SYS_brk) {
        /* It has no errors: one that fails returns where the break is, as does one that asks. */
        t->made = true;
        REG_ARG0(&r) = 0;
        put_regs(t->pid, &r);
        return;
    }
    set_number(t->pid, &r, SYS_close);
    REG_ARG0(&r) = (unsigned long)-1;
    put_regs(t->pid, &r);
}

static void spoil(struct task *t, const struct __ptrace_syscall_info *i)
{
    long nr = (long)i->entry.nr;
    s.hit = true;
    s.done = s.mode != MODE_NOSYNC;
    s.hit_role = t->role;
    s.hit_pid = t->pid;
    s.hit_call = nr;
    for (int a = 0; a < 3; a++)
        s.hit_arg[a] = (long)i->entry.args[a];
    if (s.mode == MODE_KILL) {
        kill(t->pid, SIGKILL);
        return;
    }
    t->hit = true;
    if (s.mode == MODE_KILLEXIT)
        return;
    if (!get_regs(t->pid, &t->saved)) {
        s.skipped = true;
        t->hit = false;
        return;
    }
    if (s.mode == MODE_FAIL || s.mode == MODE_NOSYNC) {
        spoil_fail(t, nr);
    } else if (!spoil_short(t, nr)) {
        s.skipped = true;
        t->hit = false;
    }
}

static void restore(struct task *t)
{
    struct user_regs_struct r;
    t->hit = false;
    if (s.mode == MODE_KILLEXIT) {
        kill(t->pid, SIGKILL);
        return;
    }
    for (int i = 0; i < t->iov_count; i++)
        ptrace(PTRACE_POKEDATA, t->pid, (void *)(t->iov_at + 16 * (uint64_t)i + 8), (void *)t->iov_len[i]);
    t->iov_count = 0;
    if (!get_regs(t->pid, &r))
        return;
    REG_ARG2(&r) = REG_ARG2(&t->saved);
    REG_ARG1(&r) = REG_ARG1(&t->saved);
#ifdef __x86_64__
    REG_ARG0(&r) = REG_ARG0(&t->saved);
#endif
    if (!t->made || t->lie)
        REG_RESULT(&r) = (unsigned long)t->result;
    put_regs(t->pid, &r);
}

/* Does this execve run a program that must have its privilege? */
static bool runs_privileged(const struct task *t, const struct __ptrace_syscall_info *i)
{
    char path[256] = "";
    if (i->entry.nr != SYS_execve)
        return false;
    for (size_t at = 0; at + 8 < sizeof(path); at += 8) {
        uint64_t word;
        if (!peek(t->pid, i->entry.args[0] + at, &word))
            break;
        memcpy(path + at, &word, 8);
        if (memchr(&word, 0, 8))
            break;
    }
    const char *name = strrchr(path, '/');
    return name && (strcmp(name, "/newuidmap") == 0 || strcmp(name, "/newgidmap") == 0);
}

/* Counts the call; true if it is the one to be spoiled. */
static bool is_the_one(const struct task *t, long nr)
{
    bool fails = !never_fails(nr), moves = bytes_arg(nr) != -100;
    if (nr >= 0 && nr < CALLS)
        s.calls[t->role][nr]++;
    bool counts = s.call < 0 || s.call == nr;
    long n = s.all[t->role] += counts, f = s.can_fail[t->role] += counts && fails, m = s.can_short[t->role] += counts && moves;
    if (!counts || s.done || s.mode == MODE_COUNT || t->role != s.role)
        return false;
    switch (s.mode) {
    case MODE_FAIL:
        return fails && f == s.k;
    case MODE_SHORT:
    case MODE_HALF:
        return moves && m == s.k;
    case MODE_KILL:
    case MODE_KILLEXIT:
        return n == s.k;
    case MODE_NOSYNC:
        return n >= s.k && (nr == SYS_fsync || nr == SYS_fdatasync || nr == SYS_syncfs || nr == SYS_sync);
    default:
        return false;
    }
}

/* False if the task was let go. */
static bool at_call(struct task *t)
{
    struct __ptrace_syscall_info i = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof(i), &i) <= 0)
        return true;
    if (i.op == PTRACE_SYSCALL_INFO_EXIT && t->hit) {
        restore(t);
        return true;
    }
    if (i.op != PTRACE_SYSCALL_INFO_ENTRY)
        return true;
    bool own = i.instruction_pointer < t->loader || i.instruction_pointer >= t->loader_end;
    if (s.counting && own && is_counted(t->role) && is_the_one(t, (long)i.entry.nr))
        spoil(t, &i);
    if ((t->role == ROLE_SPAWN || t->role == ROLE_ERRAND) && !t->hit && runs_privileged(t, &i)) {
        ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
        forget(t);
        return false;
    }
    return true;
}

/* --- events --- */

static void ended(struct task *t, int status)
{
    if (t->pid == s.main_pid) {
        s.main_ended = true;
        s.main_status = status;
    }
    if (t->role != ROLE_PAYLOAD && WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        bool crash = sig == SIGSEGV || sig == SIGABRT || sig == SIGBUS || sig == SIGSYS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP;
        note(crash ? &s.crashes : &s.ends, t, sig);
    }
    forget(t);
}

static void born(struct task *parent, int event)
{
    unsigned long pid = 0;
    if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0)
        return;
    enum role role = child_role(parent, event);
    struct task *child = find((pid_t)pid);
    if (!child) {
        add((pid_t)pid, role);
        return;
    }
    child->role = role;
    if (child->waits) {
        child->waits = false;
        resume(child, 0);
    }
}

static void stopped(pid_t pid, int status)
{
    int event = status >> 16, sig = WSTOPSIG(status);
    struct task *t = find(pid);
    if (!t) {
        add(pid, ROLE_NEW)->waits = true;
        return;
    }
    if (sig == (SIGTRAP | 0x80)) {
        if (at_call(t))
            resume(t, 0);
        return;
    }
    switch (event) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        born(t, event);
        resume(t, 0);
        return;
    case PTRACE_EVENT_EXEC:
        t->role = program_role(pid, t->role);
        t->forks = 0;
        find_loader(t);
        if (t->role == ROLE_PAYLOAD && pid != s.main_pid && !t->hit) {
            note_payload(t);
            ptrace(PTRACE_DETACH, pid, NULL, NULL);
            forget(t);
            return;
        }
        resume(t, 0);
        return;
    case PTRACE_EVENT_STOP:
        t->interrupted = false;
        if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
            ptrace(PTRACE_LISTEN, pid, NULL, NULL);
        else
            resume(t, 0);
        return;
    default:
        resume(t, sig);
    }
}

/* Takes all that has happened. */
static void take_events(void)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
        s.last_event_ms = now_ms();
        struct task *t = find(pid);
        if (WIFSTOPPED(status))
            stopped(pid, status);
        else if (t)
            ended(t, status);
    }
}

static void wait_event(int ms)
{
    sigset_t set;
    struct timespec most = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigtimedwait(&set, NULL, &most);
}

static bool sleeps(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return true;
    text[n] = 0;
    const char *state = strrchr(text, ')');
    return state && (state[2] == 'S' || state[2] == 'T' || state[2] == 'Z');
}

static bool is_idle(void)
{
    if (now_ms() - s.last_event_ms < IDLE_MS)
        return false;
    for (int i = 0; i < s.tasks; i++)
        if (!sleeps(s.task[i].pid))
            return false;
    return true;
}

static void kill_all(void)
{
    int64_t until = now_ms() + 2000;
    for (int i = 0; i < s.tasks; i++)
        kill(s.task[i].pid, SIGKILL);
    while (s.tasks > 0 && now_ms() < until) {
        take_events();
        for (int i = 0; i < s.tasks; i++)
            kill(s.task[i].pid, SIGKILL);
        wait_event(2);
    }
}

/* --- the play --- */

static volatile sig_atomic_t told_to_end;

static void end_asked(int sig)
{
    (void)sig;
    told_to_end = 1;
}

static void start(char **argv)
{
    int go[2];
    char byte = 0;
    if (pipe2(go, O_CLOEXEC) < 0)
        exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execv(argv[0], argv);
        _exit(127);
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (pid < 0 || ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0) {
        perror("fault-inject: ptrace");
        exit(2);
    }
    add(pid, ROLE_STUB);
    s.main_pid = pid;
    s.main_ended = false;
    if (write(go[1], "", 1) != 1)
        exit(2);
    close(go[0]);
    close(go[1]);
}

/* False: the time is over. */
static bool play(void)
{
    int64_t until = now_ms() + s.limit_ms;
    s.last_event_ms = now_ms();
    for (;;) {
        take_events();
        if (s.main_ended && (s.tasks == 0 || is_idle()))
            return true;
        if (now_ms() > until || told_to_end)
            return s.main_ended; /* what is left may go on */
        wait_event(s.main_ended ? 2 : 20);
    }
}

/* From now on calls are counted; what runs already is stopped once to learn of it. */
static void arm(void)
{
    int64_t until = now_ms() + 1000;
    bool waiting = true;
    s.counting = true;
    for (int i = 0; i < s.tasks; i++)
        if (wants_calls(&s.task[i]) && ptrace(PTRACE_INTERRUPT, s.task[i].pid, NULL, NULL) == 0)
            s.task[i].interrupted = true;
    while (waiting && now_ms() < until) {
        take_events();
        waiting = false;
        for (int i = 0; i < s.tasks; i++)
            waiting = waiting || s.task[i].interrupted;
        if (waiting)
            wait_event(1);
    }
}

static void print_list(FILE *f, const char *name, const struct list *l)
{
    fprintf(f, ",\"%s\":[", name);
    for (int i = 0; i < l->count; i++)
        fprintf(f, "%s{\"role\":\"%s\",\"pid\":%d,\"signal\":%d,\"where\":\"%s\"}", i ? "," : "", role_names[l->at[i].role],
                (int)l->at[i].pid, l->at[i].signal, l->at[i].where);
    fprintf(f, "]");
}

static void print_report(bool staged)
{
    FILE *f = s.report ? fopen(s.report, "we") : stderr;
    if (!f)
        exit(2);
    fprintf(f, "{\"staged\":%s", staged ? "true" : "false");
    if (s.main_ended && WIFEXITED(s.main_status))
        fprintf(f, ",\"exit\":%d", WEXITSTATUS(s.main_status));
    else
        fprintf(f, ",\"exit\":null,\"signal\":%d", s.main_ended ? WTERMSIG(s.main_status) : 0);
    fprintf(f, ",\"counts\":{");
    for (int r = ROLE_CLI, first = 1; r < ROLE_PAYLOAD; r++)
        if (s.all[r]) {
            fprintf(f, "%s\"%s\":{\"all\":%ld,\"fail\":%ld,\"short\":%ld,\"calls\":{", first ? "" : ",", role_names[r], s.all[r],
                    s.can_fail[r], s.can_short[r]);
            for (int c = 0, none = 1; c < CALLS; c++)
                if (s.calls[r][c]) {
                    fprintf(f, "%s\"%d\":%ld", none ? "" : ",", c, s.calls[r][c]);
                    none = 0;
                }
            fprintf(f, "}}");
            first = 0;
        }
    fprintf(f, "}");
    if (s.hit)
        fprintf(f, ",\"hit\":{\"role\":\"%s\",\"pid\":%d,\"call\":%ld,\"args\":[%ld,%ld,%ld],\"skipped\":%s}", role_names[s.hit_role],
                (int)s.hit_pid, s.hit_call, s.hit_arg[0], s.hit_arg[1], s.hit_arg[2], s.skipped ? "true" : "false");
    print_list(f, "crashes", &s.crashes);
    print_list(f, "hangs", &s.hangs);
    print_list(f, "left", &s.left);
    print_list(f, "killed", &s.ends);
    print_list(f, "payloads", &s.payloads);
    fprintf(f, "}\n");
    if (fclose(f) != 0)
        exit(2);
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: fault-inject [--limit MS] [--report FILE] count | fail ROLE K ERRNO | short|half|kill|killexit|nosync ROLE K -- COMMAND …"
        " [:: COMMAND …]\n");
    return 2;
}

static bool parse_mode(int *at, char **argv)
{
    static const char *const modes[] = {"count", "fail", "short", "half", "kill", "killexit", "nosync"};
    const char *word = argv[(*at)++];
    int mode = 0;
    while (mode < 7 && strcmp(word ? word : "", modes[mode]) != 0)
        mode++;
    if (mode == 7)
        return false;
    s.mode = (enum mode)mode;
    if (s.mode == MODE_COUNT)
        return true;
    if (!argv[*at] || !argv[*at + 1] || (s.mode == MODE_FAIL && !argv[*at + 2]))
        return false;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (strcmp(role_names[r], argv[*at]) == 0)
            s.role = (enum role)r;
    char *rest;
    s.call = -1;
    s.k = strtol(argv[*at + 1], &rest, 10);
    if (*rest == ':') {
        s.call = s.k;
        s.k = strtol(rest + 1, NULL, 10);
    }
    s.error = s.mode == MODE_FAIL ? (int)strtol(argv[*at + 2], NULL, 10) : 0;
    *at += s.mode == MODE_FAIL ? 3 : 2;
    return is_counted(s.role) && s.k > 0 && (s.mode != MODE_FAIL || s.error > 0);
}

static void hush(void)
{
    sigset_t block;
    struct sigaction a = {.sa_handler = end_asked};
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigprocmask(SIG_BLOCK, &block, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

int main(int argc, char **argv)
{
    int at = 1;
    s.limit_ms = 5000;
    s.call = -1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--limit") == 0)
            s.limit_ms = (int)strtol(argv[at + 1], NULL, 10);
        else if (strcmp(argv[at], "--report") == 0)
            s.report = argv[at + 1];
        else
            return usage();
    }
    if (at >= argc || !parse_mode(&at, argv) || !argv[at] || strcmp(argv[at++], "--") != 0 || !argv[at])
        return usage();
    hush();
    bool staged = true, in_time = true;
    while (staged && in_time && at < argc) {
        int end = at;
        while (end < argc && strcmp(argv[end], "::") != 0)
            end++;
        bool last = end == argc;
        argv[end] = NULL;
        if (last)
            arm();
        start(argv + at);
        in_time = play();
        staged = last || (in_time && WIFEXITED(s.main_status) && WEXITSTATUS(s.main_status) == 0);
        at = end + 1;
    }
    for (int i = 0; i < s.tasks; i++)
        note(in_time ? &s.left : &s.hangs, &s.task[i], 0);
    if (!in_time || !staged || told_to_end)
        kill_all();
    print_report(staged);
    return 0;
}

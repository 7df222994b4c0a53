/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: init's, the host's, those of other boxes. */
#include "attack.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* attach PID / seize PID: to trace it. A tracee that we got is let go at once. */
static void attach(int argc, char **argv)
{
    long pid = number(argc, argv, 1);
    int request = strcmp(argv[0], "seize") == 0 ? PTRACE_SEIZE : PTRACE_ATTACH;
    long r = CALL(__NR_ptrace, request, pid, 0, 0);
    int os = errno;
    if (r == 0 && request == PTRACE_ATTACH) {
        waitpid((pid_t)pid, NULL, __WALL);
        CALL(__NR_ptrace, PTRACE_DETACH, pid, 0, 0);
    }
    errno = os;
    judge_any(argv[0], r);
}

/* A child of our own: is tracing there at all? */
static void trace_me(int argc, char **argv)
{
    (void)argc;
    judge_any(argv[0], CALL(__NR_ptrace, PTRACE_TRACEME, 0, 0, 0));
}

/* The first address that a process maps, from its own file; a guess where that is closed. */
static unsigned long some_address(long pid)
{
    char path[64], line[128];
    snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
    FILE *f = fopen(path, "re");
    return f && fgets(line, sizeof(line), f) ? strtoul(line, NULL, 16) : 0x400000;
}

/* vm-read PID */
static void vm_read(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, ESRCH, 0};
    long pid = number(argc, argv, 1);
    char block[16];
    struct iovec own = {block, sizeof(block)}, theirs = {(void *)some_address(pid), sizeof(block)};
    judge(argv[0], CALL(__NR_process_vm_readv, pid, &own, 1, &theirs, 1, 0), refusals);
}

/* take-fd PID FD */
static void take_fd(int argc, char **argv)
{
    long p = CALL(__NR_pidfd_open, number(argc, argv, 1), 0);
    if (p < 0)
        held("pidfd_open: %s", strerror(errno));
    judge_any(argv[0], CALL(__NR_pidfd_getfd, p, number(argc, argv, 2), 0));
}

/* link-of PATH: can the link be read or the file behind it be opened? */
static void link_of(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char to[512];
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    if (n >= 0)
        leak("%s leads to %.*s", path, (int)n, to);
    int fd = open(path, O_PATH);
    if (fd >= 0)
        leak("%s could be opened", path);
    held("%s: %s", path, strerror(errno));
}

/* reads PATH: can it be opened and a byte be read at a mapped place? */
static void reads(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char byte;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        held("%s: %s", path, strerror(errno));
    if (read(fd, &byte, 1) < 0 && (errno == EACCES || errno == EPERM || errno == ESRCH))
        held("%s: %s", path, strerror(errno));
    leak("%s was opened", path);
}

/* init-exe: a descriptor on the program of pid 1, then the same for writing, by every process that shows one. */
static void runtime_exe(int argc, char **argv)
{
    (void)argc;
    struct stat own, st;
    DIR *d = opendir("/proc");
    const struct dirent *en;
    stat("/proc/self/exe", &own);
    while (d && (en = readdir(d))) {
        char path[300], again[64];
        if (en->d_name[0] < '0' || en->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/exe", en->d_name);
        int fd = open(path, O_PATH);
        if (fd < 0 || fstat(fd, &st) < 0 || (st.st_dev == own.st_dev && st.st_ino == own.st_ino))
            continue;
        snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
        int w = open(again, O_WRONLY);
        leak("%s: process %s, %s", argv[0], en->d_name, w >= 0 ? "for writing" : "open, not for writing");
    }
    held("no program of the runtime is within reach");
}

/* A script whose interpreter is /proc/self/exe: whoever runs it runs itself. It runs us, not the runtime. */
static void script(int argc, char **argv)
{
    (void)argc;
    char to[512];
    int fd = open("/tmp/script", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    (void)!write(fd, "#!/proc/self/exe\n", 17);
    close(fd);
    ssize_t n = readlink("/proc/self/exe", to, sizeof(to) - 1);
    if (n > 0 && memmem(to, (size_t)n, "pale", 4) && !memmem(to, (size_t)n, "attack", 6))
        leak("%s: we are %.*s", argv[0], (int)n, to);
    held("we are %.*s", (int)(n > 0 ? n : 0), to);
}

/* signal PID NUMBER */
static void send_signal(int argc, char **argv)
{
    judge_any("kill", kill((pid_t)number(argc, argv, 1), (int)number(argc, argv, 2)));
}

/* signal-pidfd PID NUMBER */
static void pidfd_signal(int argc, char **argv)
{
    long p = CALL(__NR_pidfd_open, number(argc, argv, 1), 0);
    if (p < 0)
        held("pidfd_open: %s", strerror(errno));
    judge_any("pidfd_send_signal", CALL(__NR_pidfd_send_signal, p, number(argc, argv, 2), 0, 0));
}

/* signal-all TEXT: signal 0 to every number there can be; who answers beyond our own few is another's. */
static void signal_all(int argc, char **argv)
{
    (void)argc;
    int answered = 0, last = 0;
    for (int pid = 2; pid < 32768; pid++)
        if (pid != getpid() && (kill(pid, 0) == 0 || errno == EPERM)) {
            answered++;
            last = pid;
        }
    if (answered > 8)
        leak("%s: %d processes answered, the last is %d", argv[0], answered, last);
    held("%d processes answered", answered);
}

/* count-processes: how many does /proc show? */
static void count_processes(int argc, char **argv)
{
    int n = 0;
    DIR *d = opendir("/proc");
    const struct dirent *en;
    (void)argc;
    while (d && (en = readdir(d)))
        n += en->d_name[0] >= '1' && en->d_name[0] <= '9';
    if (n > 8)
        leak("%s: %d", argv[0], n);
    held("%d processes", n);
}

/* cmdlines: prints the words and variables of every process that speaks of a canary, for the judge outside. */
static void cmdlines(int argc, char **argv)
{
    (void)argc, (void)argv;
    DIR *d = opendir("/proc");
    const struct dirent *en;
    while (d && (en = readdir(d))) {
        char path[300], text[4096];
        if (en->d_name[0] < '0' || en->d_name[0] > '9')
            continue;
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof(path), "/proc/%s/%s", en->d_name, i ? "environ" : "cmdline");
            int fd = open(path, O_RDONLY);
            ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
            for (ssize_t k = 0; k < n; k++)
                if (!text[k])
                    text[k] = ' ';
            if (n > 0 && memmem(text, (size_t)n, "canary-", 7))
                (void)!write(1, text, (size_t)n);
            if (fd >= 0)
                close(fd);
        }
    }
    dprintf(1, "\n");
    tried();
}

/* limit-other PID: changes a limit of another process. */
static void limit_other(int argc, char **argv)
{
    long pid = number(argc, argv, 1);
    struct rlimit lim;
    if (pid == 0)
        pid = getppid();
    judge_any(argv[0], CALL(__NR_prlimit64, pid, RLIMIT_CORE, NULL, &lim));
}

/* oom PID SCORE: makes the kernel choose another when memory ends. */
static void oom(int argc, char **argv)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/oom_score_adj", word(argc, argv, 1));
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        held("%s: %s", path, strerror(errno));
    const char *score = word(argc, argv, 2);
    judge_any(path, write(fd, score, strlen(score)));
}

const struct attack process_attacks[] = {
    {"attach", attach},
    {"seize", attach},
    {"trace-me", trace_me},
    {"vm-read", vm_read},
    {"take-fd", take_fd},
    {"link-of", link_of},
    {"reads", reads},
    {"runtime-exe", runtime_exe},
    {"script", script},
    {"signal", send_signal},
    {"signal-pidfd", pidfd_signal},
    {"signal-all", signal_all},
    {"count-processes", count_processes},
    {"cmdlines", cmdlines},
    {"limit-other", limit_other},
    {"oom", oom},
    {0},
};

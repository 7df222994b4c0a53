/* SPDX-License-Identifier: Apache-2.0 */
/* Taking more than the box was given. */
#include "attack.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static void above(const char *what, long got, long most)
{
    if (got > most)
        leak("%s: %ld, more than %ld", what, got, most);
    held("%s: %ld of %ld", what, got, most);
}

/* forks MOST: children that stay. */
static void forks(int argc, char **argv)
{
    long most = number(argc, argv, 1), n = 0;
    while (n < most + 60) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            pause();
            _exit(0);
        }
        n++;
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    above("processes", n, most);
}

/* bomb MOST: each child forks too, for a while; counted through a pipe. */
static void bomb(int argc, char **argv)
{
    long most = number(argc, argv, 1), n = 0;
    int p[2];
    char byte;
    (void)!pipe(p);
    signal(SIGTERM, SIG_DFL);
    if (fork() == 0) {
        close(p[0]);
        for (int i = 0; i < 8; i++)
            if (fork() == 0)
                (void)!write(p[1], "x", 1);
        usleep(300000);
        _exit(0);
    }
    close(p[1]);
    while (read(p[0], &byte, 1) == 1)
        n++;
    above("processes of a bomb", n, most);
}

/* threads MOST */
static int idle(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return 0;
}

static void threads(int argc, char **argv)
{
    long most = number(argc, argv, 1), n = 0;
    static char stacks[200][4096] __attribute__((aligned(16)));
    while (n < 200 && clone(idle, stacks[n] + 4096, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) >= 0)
        n++;
    above("threads", n, most);
}

/* zombies MOST: orphans whose parent never asks. */
static void zombies(int argc, char **argv)
{
    long most = number(argc, argv, 1), n = 0;
    while (n < most + 60) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            _exit(0);
        n++;
    }
    above("zombies", n, most);
}

#define MIB (1L << 20)

/* anon MIB */
static void anon(int argc, char **argv)
{
    long n = number(argc, argv, 1);
    for (long i = 0; i < n; i++) {
        char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            held("mmap: %s", strerror(errno));
        memset(p, 1, MIB);
    }
    leak("%ld MiB of memory", n);
}

/* fill PATH|memfd MIB */
static void fill(int argc, char **argv)
{
    static char block[MIB];
    const char *path = word(argc, argv, 1);
    long n = number(argc, argv, 2);
    int fd = strcmp(path, "memfd") == 0 ? (int)CALL(__NR_memfd_create, "x", 0) : open(path, O_WRONLY | O_CREAT, 0600);
    memset(block, 1, sizeof(block));
    for (long i = 0; i < n; i++)
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            held("%s after %ld MiB: %s", path, i, strerror(errno));
    leak("%ld MiB in %s", n, path);
}

/* many-files FOLDER MOST: empty ones, which cost no bytes. */
static void many_files(int argc, char **argv)
{
    const char *folder = word(argc, argv, 1);
    long most = number(argc, argv, 2), n = 0;
    char path[512];
    for (int fd; n <= most; n++) {
        snprintf(path, sizeof(path), "%s/%ld", folder, n);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    above("files", n, most);
}

/* pipes MIB: full pipes that nobody reads, each in a process where descriptors end. */
static void pipes(int argc, char **argv)
{
    static char block[65536];
    long want = number(argc, argv, 1) * MIB, got = 0;
    memset(block, 1, sizeof(block));
    while (got < want) {
        int p[2];
        if (pipe2(p, O_NONBLOCK) < 0)
            break;
        for (ssize_t n; (n = write(p[1], block, sizeof(block))) > 0;)
            got += n;
    }
    above("bytes in pipes", got, want - 1);
}

/* socket-buffers MIB */
static void socket_buffers(int argc, char **argv)
{
    static char block[65536];
    long want = number(argc, argv, 1) * MIB, got = 0;
    while (got < want) {
        int s[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s) < 0)
            break;
        for (ssize_t n; (n = send(s[0], block, sizeof(block), MSG_NOSIGNAL)) > 0;)
            got += n;
    }
    above("bytes in sockets", got, want - 1);
}

/* inotify MOST */
static void inotify(int argc, char **argv)
{
    long n = 0, most = number(argc, argv, 1);
    while (n < 1000 && inotify_init1(0) >= 0)
        n++;
    above("inotify instances", n, most);
}

/* timers MOST */
static void timers(int argc, char **argv)
{
    long n = 0, most = number(argc, argv, 1);
    struct sigevent e = {.sigev_notify = SIGEV_NONE};
    int id;
    while (n < most + 1000 && CALL(__NR_timer_create, CLOCK_MONOTONIC, &e, &id) == 0)
        n++;
    above("timers", n, most);
}

/* terminals MOST */
static void terminals(int argc, char **argv)
{
    long n = 0, most = number(argc, argv, 1);
    while (n < most + 100 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        n++;
    above("terminals", n, most);
}

/* limit NAME MOST: the hard limit that is left. */
static void limit(int argc, char **argv)
{
    static const struct {
        const char *name;
        int what;
    } rows[] = {{"msgqueue", RLIMIT_MSGQUEUE}, {"memlock", RLIMIT_MEMLOCK}, {"nice", RLIMIT_NICE},
                {"rtprio", RLIMIT_RTPRIO},     {"core", RLIMIT_CORE},       {"sigpending", RLIMIT_SIGPENDING}};
    struct rlimit lim;
    const char *name = word(argc, argv, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0 && getrlimit(rows[i].what, &lim) == 0) {
            if (lim.rlim_max > (rlim_t)number(argc, argv, 2))
                leak("%s: %llu", name, (unsigned long long)lim.rlim_max);
            held("%s: %llu", name, (unsigned long long)lim.rlim_max);
        }
    broken("no limit %s", name);
}

/* burn MS: CPU time of each of two children that leave their session. */
static void burn(int argc, char **argv)
{
    long ms = number(argc, argv, 1);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            struct timespec used;
            setsid();
            do
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    leak("2 times %ld ms were burnt", ms);
}

/* stay SECONDS */
static void stay(int argc, char **argv)
{
    long s = number(argc, argv, 1);
    sleep((unsigned)s);
    leak("still there after %ld s", s);
}

/* flood BYTES: the host counts what arrives. */
static void flood(int argc, char **argv)
{
    static char block[65536];
    memset(block, 'x', sizeof(block));
    for (long left = number(argc, argv, 1); left > 0;) {
        ssize_t n = write(1, block, left < (long)sizeof(block) ? (size_t)left : sizeof(block));
        if (n <= 0)
            break;
        left -= n;
    }
    _exit(0);
}

/* escape: a process that left session, group and parent, and takes no signal it can refuse; says its start, then stays. */
static void escape(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int s = 1; s < 65; s++)
        signal(s, SIG_IGN);
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (int i = 0; i < 600; i++)
                usleep(100000);
        _exit(0);
    }
    dprintf(1, "up\n");
    for (int i = 0; i < 600; i++)
        usleep(100000);
    _exit(0);
}

const struct attack exhaust_attacks[] = {
    {"forks", forks},           {"bomb", bomb},     {"threads", threads},
    {"zombies", zombies},       {"anon", anon},     {"fill", fill},
    {"many-files", many_files}, {"pipes", pipes},   {"socket-buffers", socket_buffers},
    {"inotify", inotify},       {"timers", timers}, {"terminals", terminals},
    {"limit", limit},           {"burn", burn},     {"stay", stay},
    {"flood", flood},           {"escape", escape}, {0},
};

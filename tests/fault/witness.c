/* SPDX-License-Identifier: Apache-2.0 */
/* The program that the boxes of the fault tests run: is it as confined as was asked?
 *
 *     fault-witness VERDICT SECRET PROCESSES LAYERS NAMESPACE=INODE …
 *
 * VERDICT: the file its answer goes to, beside standard output, so that the answer is there even if nobody was left to print it.
 * SECRET: a file of the host that must not be readable. PROCESSES: the limit asked for. LAYERS: how many Landlock domains a process
 * of the host may add; one inside may add fewer. NAMESPACE=INODE: the host's.
 * Says CONFINED and ends with 0, or LESS and what is missing and ends with 42. With the one word "layers" it prints LAYERS. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char answer[1024] = "LESS";

static void less(const char *what)
{
    size_t n = strlen(answer);
    snprintf(answer + n, sizeof(answer) - n, " %s", what);
}

static bool is_zero(const char *value)
{
    value += strspn(value, " \t");
    return strspn(value, "0\n") == strlen(value);
}

static void check_status(void)
{
    static const char *const caps[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    char line[256];
    int seen = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f)) {
        for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
            if (strncmp(line, caps[i], 7) == 0) {
                seen++;
                if (!is_zero(line + 7))
                    less("caps");
            }
        if (strncmp(line, "NoNewPrivs:", 11) == 0) {
            seen++;
            if (strcmp(line, "NoNewPrivs:\t1\n") != 0)
                less("nnp");
        }
        if (strncmp(line, "Seccomp:", 8) == 0) {
            seen++;
            if (strcmp(line, "Seccomp:\t2\n") != 0)
                less("seccomp");
        }
    }
    if (f)
        fclose(f);
    if (seen != 7)
        less("status");
}

static void check_namespaces(char **words)
{
    for (; *words; words++) {
        char path[64], what[64];
        const char *equals = strchr(*words, '=');
        int n = equals ? (int)(equals - *words) : 0;
        struct stat st;
        snprintf(path, sizeof(path), "/proc/self/ns/%.*s", n, *words);
        snprintf(what, sizeof(what), "namespace-%.*s", n, *words);
        if (!equals || stat(path, &st) < 0 || (unsigned long)st.st_ino == strtoul(equals + 1, NULL, 10))
            less(what);
    }
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool is_writable_mount(const char *path)
{
    struct statvfs v;
    return statvfs(path, &v) < 0 || !(v.f_flag & ST_RDONLY);
}

static void check_files(const char *secret)
{
    if (opens(secret, O_RDONLY))
        less("secret");
    if (is_writable_mount("/") || is_writable_mount("/usr") || is_writable_mount("/etc") || opens("/usr/w", O_WRONLY | O_CREAT) ||
        opens("/etc/passwd", O_WRONLY) || opens("/w", O_WRONLY | O_CREAT))
        less("readonly");
    if (opens("/proc/sys/kernel/hostname", O_WRONLY) || opens("/proc/sys/kernel/core_pattern", O_WRONLY))
        less("proc-sys");
    if (opens("/proc/1/environ", O_RDONLY) || opens("/proc/1/mem", O_RDONLY))
        less("dumpable");
    char byte;
    int fd = open("/proc/interrupts", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &byte, 1) > 0)
        less("proc-mask");
    if (fd >= 0)
        close(fd);
}

static void check_limits(const char *processes)
{
    static const struct {
        int what;
        rlim_t most;
        const char *name;
    } rows[] = {{RLIMIT_CORE, 0, "limit-core"},
                {RLIMIT_SIGPENDING, 4096, "limit-sigpending"},
                {RLIMIT_MSGQUEUE, 96 << 10, "limit-msgqueue"},
                {RLIMIT_MEMLOCK, 1 << 20, "limit-memlock"},
                {RLIMIT_NICE, 0, "limit-nice"},
                {RLIMIT_RTPRIO, 0, "limit-rtprio"}};
    struct rlimit l;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (getrlimit((__typeof__(RLIMIT_CORE))rows[i].what, &l) < 0 || l.rlim_max > rows[i].most)
            less(rows[i].name);
    if (getrlimit(RLIMIT_NPROC, &l) < 0 || l.rlim_max > strtoul(processes, NULL, 10))
        less("limit-processes");
}

static void check_descriptors(void)
{
    for (int fd = 3; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            less("descriptors");
            return;
        }
}

static void check_environment(void)
{
    static const char *const known[] = {"PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=", "LANG=", "PALE_BOX="};
    for (char **at = environ; *at; at++) {
        bool found = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found = found || strncmp(*at, known[i], strlen(known[i])) == 0;
        if (!found) {
            less("environment");
            return;
        }
    }
}

static void check_calls(void)
{
    if (unshare(CLONE_NEWUSER) == 0)
        less("user-namespace");
    if (setresuid(0, 0, 0) == 0)
        less("root");
    if (syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL) == 0)
        less("mount");
}

/* The kernel stacks so many domains and no more: how many may still be added tells how many there are. -1: no Landlock here. */
static int layers(void)
{
    struct {
        uint64_t fs;
    } a = {.fs = 1 << 12}; /* making symlinks, which we do not */
    int n = 0;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a), 0);
    if (ruleset < 0)
        return -1;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    while (n < 64 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0)
        n++;
    close(ruleset);
    return n;
}

static void tell(const char *path)
{
    size_t n = strlen(answer);
    answer[n++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, answer, n) != (ssize_t)n)
        fprintf(stderr, "witness: no verdict in %s: %m\n", path);
    if (write(1, answer, n) != (ssize_t)n)
        _exit(43);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "layers") == 0) {
        printf("%d\n", layers());
        return 0;
    }
    if (argc < 6)
        return 2;
    check_descriptors();
    check_status();
    check_namespaces(argv + 5);
    check_files(argv[2]);
    check_limits(argv[3]);
    check_environment();
    check_calls();
    long most = strtol(argv[4], NULL, 10);
    int verdict = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (most > 0 && layers() >= most)
        less("landlock");
    if (verdict >= 0)
        close(verdict);
    bool good = strcmp(answer, "LESS") == 0;
    if (good)
        snprintf(answer, sizeof(answer), "CONFINED");
    tell(argv[1]);
    return good ? 0 : 42;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* calls: what system calls and small files cost where it runs.
 *
 *     calls say                    prints "ran": shows that a peer really runs something
 *     calls pause                  sleeps until it is killed: the least a living box can hold
 *     calls syscalls N             prints nanoseconds per call of getppid, ioctl, openat with close, and stat
 *     calls files N DIR            prints microseconds to create, stat and remove N files of 64 bytes in DIR, 1000 to a folder
 *
 * Times are measured inside, so that the cost of getting in is not part of them. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PER_FOLDER 1000

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int syscalls(int n)
{
    struct stat st;
    int pipe_fds[2], waiting;
    if (pipe(pipe_fds) < 0)
        return 1;
    double a = now_us();
    for (int i = 0; i < n; i++)
        syscall(SYS_getppid);
    double b = now_us();
    for (int i = 0; i < n; i++)
        if (ioctl(pipe_fds[0], FIONREAD, &waiting) < 0)
            return 1;
    double c = now_us();
    for (int i = 0; i < n / 4; i++) {
        int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return 1;
        close(fd);
    }
    double d = now_us();
    for (int i = 0; i < n / 4; i++)
        if (stat("/usr/bin/env", &st) < 0)
            return 1;
    double e = now_us();
    printf("getppid %.1f ioctl %.1f openat+close %.1f stat %.1f\n", (b - a) * 1e3 / n, (c - b) * 1e3 / n, (d - c) * 4e3 / n,
           (e - d) * 4e3 / n);
    return 0;
}

static const char *name_of(const char *dir, int i, int is_folder)
{
    static char path[4096];
    if (is_folder)
        snprintf(path, sizeof(path), "%s/d%d", dir, i / PER_FOLDER);
    else
        snprintf(path, sizeof(path), "%s/d%d/f%d", dir, i / PER_FOLDER, i);
    return path;
}

static int make_file(const char *dir, int i)
{
    char text[64];
    memset(text, 'x', sizeof(text));
    if (i % PER_FOLDER == 0 && mkdir(name_of(dir, i, 1), 0700) < 0)
        return perror("mkdir"), 1;
    int fd = open(name_of(dir, i, 0), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
        return perror("create"), 1;
    return close(fd);
}

static int files(int n, const char *dir)
{
    struct stat st;
    double a = now_us();
    for (int i = 0; i < n; i++)
        if (make_file(dir, i))
            return 1;
    double b = now_us();
    for (int i = 0; i < n; i++)
        if (stat(name_of(dir, i, 0), &st) < 0)
            return 1;
    double c = now_us();
    for (int i = 0; i < n; i++)
        if (unlink(name_of(dir, i, 0)) < 0 || ((i + 1) % PER_FOLDER == 0 && rmdir(name_of(dir, i, 1)) < 0))
            return 1;
    double d = now_us();
    printf("create %.0f stat %.0f remove %.0f\n", b - a, c - b, d - c);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "say") == 0)
        return puts("ran") < 0;
    if (argc == 2 && strcmp(argv[1], "pause") == 0)
        for (;;)
            pause();
    if (argc == 3 && strcmp(argv[1], "syscalls") == 0)
        return syscalls(atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "files") == 0)
        return files(atoi(argv[2]), argv[3]);
    return 2;
}

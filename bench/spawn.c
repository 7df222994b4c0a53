/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: starts commands in turn and measures each from before fork to after wait.
 *
 *     spawn [-v] -n RUNS -w WARMUP -- A ARGS … --- B ARGS … [--- C …]
 *
 * Prints one line per command: the runs in microseconds, in the order they were made. The commands take turns (A B C, C B A, …),
 * so that whatever else the machine does hits them alike. Output of the commands goes to /dev/null; one that fails ends the
 * measurement. -v uses vfork in place of fork. Small and static, so that fork has little to copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8

struct command {
    char **argv;
    double *us;
};

static struct command commands[COMMANDS_MAX];
static int count, null_fd;
static int use_vfork;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void child(char **argv)
{
    extern char **environ;
    dup2(null_fd, 0);
    dup2(null_fd, 1);
    execve(argv[0], argv, environ);
    _exit(127);
}

static double run(char **argv)
{
    int status = 0;
    double start = now_us();
    pid_t pid = use_vfork ? vfork() : fork();
    if (pid == 0)
        child(argv);
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    double took = now_us() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "spawn: %s ended with status %x\n", argv[0], status);
        exit(1);
    }
    return took;
}

static int split(char **argv)
{
    for (char **at = argv; *at; at++) {
        if (at == argv || strcmp(*at, "---") == 0) {
            if (at != argv)
                *at++ = NULL;
            if (!*at || count == COMMANDS_MAX)
                return 0;
            commands[count++].argv = at;
        }
    }
    return count > 0;
}

int main(int argc, char **argv)
{
    int opt, runs = 200, warm = 20;
    while ((opt = getopt(argc, argv, "+vn:w:")) != -1)
        switch (opt) {
        case 'v':
            use_vfork = 1;
            break;
        case 'n':
            runs = atoi(optarg);
            break;
        case 'w':
            warm = atoi(optarg);
            break;
        default:
            return 2;
        }
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (runs < 1 || !split(argv + optind))
        return 2;
    for (int c = 0; c < count; c++)
        commands[c].us = calloc((size_t)runs, sizeof(double));
    for (int i = -warm; i < runs; i++)
        for (int k = 0; k < count; k++) {
            struct command *c = &commands[i & 1 ? count - 1 - k : k];
            double us = run(c->argv);
            if (i >= 0)
                c->us[i] = us;
        }
    for (int c = 0; c < count; c++)
        for (int i = 0; i < runs; i++)
            printf("%.1f%c", commands[c].us[i], i + 1 < runs ? ' ' : '\n');
    return 0;
}

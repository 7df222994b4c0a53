/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: starts commands in turn and measures each from before fork to after wait.
 *
 *     spawn [-v] [-k] [-n RUNS] [-w WARMUP] [-r RANGE] -- A ARGS … [+++ AFTER …] [--- B ARGS … [+++ AFTER …]] …
 *     spawn -j JOBS [-k] [-n RUNS] -- A ARGS …
 *
 * Prints one line per command: the runs in microseconds, in the order they were made. The commands take turns (A B C, C B A, …),
 * so that whatever else the machine does hits them alike. What stands after +++ is run after each run of its command and not
 * measured: it clears away. "{}" in an argument becomes the number of the run, or with -r one of 0 … RANGE-1, all in turn.
 * Output of the commands goes to /dev/null; one that fails ends the measurement; with -k its run is -1.0.
 * With -j, JOBS processes share the runs of one command, and a second line has the time of all together. SIGTERM ends the
 * measurement early, with the runs made so far. -v uses vfork in place of fork. Small and static, so that fork has little to copy. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 16
#define WORDS_MAX 512
#define WORD_BYTES 4096

struct command {
    char **argv, **after;
    double *us;
};

struct shared {
    atomic_int next;
    double us[];
};

static struct command commands[COMMANDS_MAX];
static int count, null_fd, use_vfork, keep_going, range, failures;
static volatile sig_atomic_t stop;

static void on_term(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* argv with "{}" replaced; in static memory, so that a child of vfork may read it. */
static char **numbered(char **argv, int number)
{
    static char *words[WORDS_MAX];
    static char text[16][WORD_BYTES];
    int changed = 0, n = 0;
    for (; argv[n] && n < WORDS_MAX - 1; n++) {
        char *at = strstr(argv[n], "{}");
        words[n] = argv[n];
        if (at && changed < 16) {
            snprintf(text[changed], WORD_BYTES, "%.*s%d%s", (int)(at - argv[n]), argv[n], number, at + 2);
            words[n] = text[changed++];
        }
    }
    words[n] = NULL;
    return words;
}

static void child(char **argv)
{
    extern char **environ;
    dup2(null_fd, 0);
    dup2(null_fd, 1);
    execve(argv[0], argv, environ);
    _exit(127);
}

static double run(char **template, int number)
{
    int status = 0;
    char **argv = numbered(template, range ? (int)((long)number * 7919 % range) : number);
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
        if (!failures++)
            fprintf(stderr, "spawn: %s ended with status %x\n", argv[0], status);
        if (!keep_going)
            exit(1);
        return -1;
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
        } else if (strcmp(*at, "+++") == 0 && at[1]) {
            *at++ = NULL;
            commands[count - 1].after = at;
        }
    }
    return count > 0;
}

static void print_runs(const double *us, int n)
{
    for (int i = 0; i < n; i++)
        printf("%.1f%c", us[i], i + 1 < n ? ' ' : '\n');
    if (n == 0)
        printf("\n");
}

static void work(struct shared *s, int runs)
{
    for (int i; !stop && (i = atomic_fetch_add(&s->next, 1)) < runs;)
        s->us[i] = run(commands[0].argv, i);
}

static int in_parallel(int runs, int jobs)
{
    struct shared *s =
        mmap(NULL, sizeof(*s) + (size_t)runs * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return 1;
    double start = now_us();
    for (int j = 0; j < jobs; j++) {
        pid_t pid = fork();
        if (pid < 0)
            return perror("fork"), 1;
        if (pid == 0) {
            work(s, runs);
            _exit(0);
        }
    }
    int status, bad = 0;
    while (wait(&status) > 0 || errno == EINTR)
        bad |= status;
    double took = now_us() - start;
    print_runs(s->us, runs);
    printf("%.1f\n", took);
    return bad != 0;
}

static int in_turns(int runs, int warm)
{
    int made = 0;
    for (int c = 0; c < count; c++)
        if (!(commands[c].us = calloc((size_t)runs, sizeof(double))))
            return 1;
    for (int i = -warm; i < runs && !stop; i++) {
        for (int k = 0; k < count; k++) {
            struct command *c = &commands[i & 1 ? count - 1 - k : k];
            double us = run(c->argv, i + warm);
            if (c->after)
                run(c->after, i + warm);
            if (i >= 0)
                c->us[i] = us;
        }
        made = i + 1;
    }
    for (int c = 0; c < count; c++)
        print_runs(commands[c].us, made > 0 ? made : 0);
    return 0;
}

int main(int argc, char **argv)
{
    int opt, runs = 200, warm = 0, jobs = 0;
    while ((opt = getopt(argc, argv, "+vkn:w:j:r:")) != -1)
        switch (opt) {
        case 'v':
            use_vfork = 1;
            break;
        case 'k':
            keep_going = 1;
            break;
        case 'n':
            runs = atoi(optarg);
            break;
        case 'w':
            warm = atoi(optarg);
            break;
        case 'j':
            jobs = atoi(optarg);
            break;
        case 'r':
            range = atoi(optarg);
            break;
        default:
            return 2;
        }
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGTERM, on_term);
    if (runs < 1 || null_fd < 0 || !split(argv + optind))
        return 2;
    return jobs > 0 ? in_parallel(runs, jobs) : in_turns(runs, warm);
}

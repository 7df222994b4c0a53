/* SPDX-License-Identifier: Apache-2.0 */
/* Landing against two neighbours who swap folders for links, files for FIFOs and hard links, in the layer and in the target, as fast as
 * they can. Usage: landing-race SWAPS [FOLDER]. Ends with one line, and with 1 if anything outside was touched or read, 0 if not.
 *
 * How it works: `outside` holds canaries of the names that are landed, so whoever follows a link writes or reads one. The files of the
 * layer change from round to round through a descriptor that no swap can move. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "tree/landing.h"

#define FILES 8
#define CANARY "CANARY: a file outside\n"

static int top_fd;
static volatile uint64_t *swaps; /* shared by all */
static uint64_t results[LANDING_RESULT_COUNT], leaks;

static void count_swap(void)
{
    __atomic_add_fetch(swaps, 1, __ATOMIC_RELAXED);
}

static void write_at(int dir_fd, const char *name, const char *text)
{
    own_fd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || !fd_write_full(fd, text, strlen(text)))
        perror(name);
}

/* A folder is a link until the next time: two names are exchanged, so there is never a moment without one. */
static void swap_folder(const char *name, const char *link)
{
    if (syscall(SYS_renameat2, top_fd, name, top_fd, link, 2) == 0)
        count_swap();
}

/* A file is something else for a moment: a link, a FIFO, another name of a canary. */
static void swap_file(const char *name, const char *to, unsigned turn)
{
    (void)unlinkat(top_fd, name, 0);
    if (turn % 3 == 0)
        (void)!symlinkat(to, top_fd, name);
    else if (turn % 3 == 1)
        (void)mkfifoat(top_fd, name, 0644);
    else
        (void)!linkat(top_fd, "outside/hard", top_fd, name, 0);
    count_swap();
}

static pid_t attack(bool in_layer)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned turn = 0;; turn++) {
        swap_folder(in_layer ? "layer/d" : "target/d", in_layer ? "layer-d" : "target-d");
        if (in_layer && turn % 16 == 0)
            swap_file("layer/e/f0", "../../outside/f0", turn / 16 % 2);
        if (!in_layer && turn % 16 == 0)
            swap_file("target/e/f0", "../../outside/f0", turn / 16);
        if (!in_layer && turn % 16 == 8)
            swap_folder("target/.pale-landing", "target-hidden");
    }
}

static void check_outside(void)
{
    char path[32], text[64];
    for (int i = 0; i <= FILES; i++) {
        struct stat st = {0};
        snprintf(path, sizeof(path), i < FILES ? "outside/f%d" : "outside/hard", i);
        own_fd fd = openat(top_fd, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 || fstat(fd, &st) < 0 ? -1 : fd_read_full(fd, text, sizeof(text));
        leaks += n != (ssize_t)strlen(CANARY) || memcmp(text, CANARY, strlen(CANARY)) != 0 || (st.st_mode & 07777) != 0600;
    }
    leaks += faccessat(top_fd, "outside/new", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    leaks += faccessat(top_fd, "outside/gone", F_OK, AT_SYMLINK_NOFOLLOW) != 0;
}

/* A file that landed holds what the layer's own file held, never what a link in the layer led to. */
static void check_landed(int real_target)
{
    for (int i = 0; i < FILES; i++) {
        char name[16], text[64] = {0};
        snprintf(name, sizeof(name), "f%d", i);
        own_fd fd = openat(real_target, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && fd_read_full(fd, text, sizeof(text) - 1) >= 0)
            leaks += strncmp(text, "CANARY", 6) == 0;
    }
}

static void note(void *arg, const struct landing_report *r)
{
    (void)arg;
    results[r->result]++;
}

static void put_tree(void)
{
    static const char *const folders[] = {"outside", "target", "layer", "target/d", "target/e", "layer/d", "layer/e"};
    char path[64];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        (void)mkdirat(top_fd, folders[i], 0755);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof(path), "outside/f%d", i);
        write_at(top_fd, path, CANARY);
        (void)!fchmodat(top_fd, path, 0600, 0);
        snprintf(path, sizeof(path), "target/d/f%d", i);
        write_at(top_fd, path, "old\n");
    }
    (void)!symlinkat("../outside", top_fd, "layer-d");
    (void)!symlinkat("../outside", top_fd, "target-d");
    (void)!symlinkat("../outside", top_fd, "target-hidden");
    write_at(top_fd, "outside/hard", CANARY);
    (void)!fchmodat(top_fd, "outside/hard", 0600, 0);
    write_at(top_fd, "outside/gone", CANARY);
}

/* What this round is to land: files with new content, a new one, and one that goes. */
static void put_round(int real_layer, int real_target, unsigned round)
{
    char name[16], text[32];
    snprintf(text, sizeof(text), "round %u\n", round);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        write_at(real_layer, name, text);
    }
    write_at(real_layer, "new", text);
    write_at(real_target, "gone", "to be deleted\n");
    (void)mknodat(real_layer, "gone", S_IFCHR | 0600, 0);
}

static unsigned race(uint64_t most)
{
    own_fd target = openat(top_fd, "target", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd layer = openat(top_fd, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd real_target = openat(target, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd real_layer = openat(layer, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct view was = {.base_fd = target}, is = {target, &layer, 1};
    pid_t attackers[2] = {attack(false), attack(true)};
    unsigned round = 0;
    for (; *swaps < most && leaks == 0; round++) {
        struct landing l = {.target_fd = target, .was_view = &was, .is_view = &is, .origin_fd = -1, .tell = note};
        l.since.tv_sec = INT32_MAX; /* take every target for untouched, so that everything is tried; links out are held */
        put_round(real_layer, real_target, round);
        (void)!landing_run(&l, NULL);
        check_outside();
        check_landed(real_target);
    }
    for (int i = 0; i < 2; i++) {
        kill(attackers[i], SIGKILL);
        waitpid(attackers[i], NULL, 0);
    }
    return round;
}

int main(int argc, char **argv)
{
    char top[PATH_BYTES_MAX];
    uint64_t most = 0;
    struct pale_err e = {0};
    if (argc < 2 || !number_u64(argv[1], UINT64_MAX, &most)) {
        fprintf(stderr, "usage: landing-race SWAPS [FOLDER]\n");
        return 2;
    }
    snprintf(top, sizeof(top), "%s/pale-race-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    swaps = mmap(NULL, sizeof(*swaps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (swaps == MAP_FAILED || !mkdtemp(top) || (top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        perror("landing-race");
        return 2;
    }
    put_tree();
    unsigned rounds = race(most);
    printf("%llu swaps, %u landings, %llu leaks;", (unsigned long long)*swaps, rounds, (unsigned long long)leaks);
    for (int i = 0; i < LANDING_RESULT_COUNT; i++)
        printf(" %s %llu", landing_word((enum landing_result)i), (unsigned long long)results[i]);
    printf("\n");
    close(top_fd);
    if (fd_remove_tree(AT_FDCWD, top, &e) < 0)
        fprintf(stderr, "%s\n", e.text);
    return leaks ? 1 : 0;
}

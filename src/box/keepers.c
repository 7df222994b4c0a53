/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the keepers that run by their processes. */
#include "box/keepers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "base/path.h"
#include "box/identity.h"
#include "confine/kernel.h"

#define PROGRAM "pale-keeper"
#define LINE_MAX_BYTES (3 * PATH_BYTES_MAX + 1024)
#define WORDS 8 /* pale-keeper MODE NAME ID DATA STATE SOCKET CALLER */

static ssize_t read_file(int proc, const char *pid, const char *name, char *ret, size_t cap)
{
    char path[40];
    snprintf(path, sizeof(path), "%.20s/%s", pid, name);
    own_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
    return n;
}

/* How many pid namespaces the process is in, as this /proc has it. */
static size_t count_numbers(const char *status)
{
    const char *at = strstr(status, "\nNSpid:");
    size_t n = 0;
    for (at = at ? at + strlen("\nNSpid:") : NULL; at && *at && *at != '\n'; at++)
        n += *at == '\t';
    return n;
}

/* Non-dumpable processes are owned by root in /proc, so the owner of the folder says nothing. */
static bool is_ours(int proc, const char *pid)
{
    char text[2048], own[2048], want[40];
    snprintf(want, sizeof(want), "\nUid:\t%u\t", (unsigned)getuid());
    return read_file(proc, pid, "status", text, sizeof(text)) > 0 && strstr(text, want) && strncmp(text, "Name:\t" PROGRAM "\n", 18) == 0 &&
           read_file(proc, "self", "status", own, sizeof(own)) > 0 && count_numbers(text) == count_numbers(own);
}

/* The words of a command line that ends in a zero. Fewer than are asked for: false. */
static bool cut_words(char *line, size_t len, char *ret[WORDS], size_t want)
{
    size_t n = 0;
    for (char *at = line; n < want && at < line + len; at += strlen(at) + 1)
        ret[n++] = at;
    return n == want;
}

static bool copy_word(char *ret, size_t cap, const char *word)
{
    return (size_t)snprintf(ret, cap, "%s", word) < cap;
}

/* Is it the keeper of a box whose state folder lies in boxes, or of a one-shot box? */
static bool read_keeper(char *line, size_t len, const char *boxes, struct keepers_one *ret)
{
    char *w[WORDS], above[PATH_BYTES_MAX];
    struct place *p = &ret->place;
    if (!cut_words(line, len, w, 4) || strcmp(w[0], PROGRAM) != 0 || !path_is_box_name(w[2]) || !identity_is_id(w[3]))
        return false;
    snprintf(p->name, sizeof(p->name), "%s", w[2]);
    snprintf(p->id, sizeof(p->id), "%s", w[3]);
    ret->is_once = strcmp(w[1], "once") == 0;
    if (ret->is_once)
        return true;
    if ((strcmp(w[1], "box") != 0 && strcmp(w[1], "next") != 0) || !cut_words(line, len, w, WORDS) || w[4][0] != '/' || w[5][0] != '/' ||
        !copy_word(p->data, sizeof(p->data), w[4]) || !copy_word(p->state, sizeof(p->state), w[5]) ||
        !copy_word(p->socket, sizeof(p->socket), w[6]))
        return false;
    place_above(p->state, above);
    place_set_owner(p);
    p->lost = access(p->state, F_OK) < 0 || !identity_is_at(p->data, p->id);
    return strcmp(above, boxes) == 0;
}

static int look_at_process(int proc, const char *pid, const char *boxes, char *line, struct keepers_one *ret)
{
    uint64_t number;
    *ret = (struct keepers_one){0};
    if (!number_u64(pid, INT32_MAX, &number))
        return 0;
    ssize_t n = read_file(proc, pid, "cmdline", line, LINE_MAX_BYTES);
    if (n <= (ssize_t)sizeof(PROGRAM) || memcmp(line, PROGRAM, sizeof(PROGRAM)) != 0 || !read_keeper(line, (size_t)n, boxes, ret))
        return 0;
    ret->pid = (pid_t)number;
    return is_ours(proc, pid);
}

int keepers_each(int (*fn)(void *arg, const struct keepers_one *k), void *arg, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX];
    int r = place_state_dir(boxes, sizeof(boxes) - 8, e);
    if (r < 0)
        return r;
    memcpy(boxes + strlen(boxes), "/boxes", 7);
    own_mem char *line = malloc(LINE_MAX_BYTES);
    DIR *proc = line ? opendir("/proc") : NULL;
    if (!proc)
        return line ? err_os(e, "open /proc") : err_nomem(e);
    for (const struct dirent *d; r >= 0 && (d = readdir(proc));) {
        struct keepers_one k;
        if (look_at_process(dirfd(proc), d->d_name, boxes, line, &k) > 0)
            r = fn(arg, &k);
    }
    closedir(proc);
    return r < 0 ? r : 0;
}

struct wanted {
    const char *id;
    struct keepers_one *found;
    bool is_found;
};

static int match_id(void *arg, const struct keepers_one *k)
{
    struct wanted *w = arg;
    if (strcmp(k->place.id, w->id) == 0) {
        *w->found = *k;
        w->is_found = true;
    }
    return 0;
}

int keepers_find(const char *id, struct keepers_one *ret, struct pale_err *e)
{
    struct wanted w = {.id = id, .found = ret};
    int r = keepers_each(match_id, &w, e);
    return r < 0 ? r : w.is_found;
}

bool keepers_signal(const struct keepers_one *k, int signal)
{
    char pid[16], line[sizeof(PROGRAM) + 80];
    snprintf(pid, sizeof(pid), "%d", (int)k->pid);
    own_fd fd = k_pidfd_open(k->pid);
    own_fd proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Still the same after it was opened: so it is that process. */
    return fd >= 0 && proc >= 0 && is_ours(proc, pid) && read_file(proc, pid, "cmdline", line, sizeof(line)) > 0 &&
           k_pidfd_signal(fd, signal) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns walks.
 *
 * How it works: the names of a folder are gathered, sorted if that is wanted, and gone through; a folder among them is opened by its
 * name in the folder above, without following a link, and gone through before the next. Names stand on one stack of fixed size. A
 * folder takes at most a part of what is left of it: one that is larger is gone through in portions, each sorted in itself. What other
 * processes of the box do to the tree meanwhile can make this see too little or too much, and cannot lead it out of the tree, make it
 * grow or keep it for longer than its time. */
#include "init/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "init/memory.h"

#define NAMES_BYTES (16u << 20)
#define NAMES_MAX (NAMES_BYTES / 4) /* a name is its type, a letter or more, and a NUL */
#define PORTION 8                   /* the part of what is left that one folder may take */
#define BLOCK 32768
#define LOOK_AT_CLOCK 64

/* One per process. */
static struct stack {
    char *names;
    uint32_t *index;
    size_t used, count;
    struct wildcard_state state[WALK_DEPTH + 2];
    char path[PATH_BYTES_MAX];
    int64_t since_ms;
} s;

static int walk_folder(struct walk *w, int fd, dev_t dev, int depth, size_t len);

bool walk_is_late(int64_t since_ms)
{
    return clock_ms() - since_ms > WALK_MS;
}

/* --- names --- */

static char type_of(int dir, const struct dirent *d)
{
    struct stat st;
    switch (d->d_type) {
    case DT_REG:
        return 'f';
    case DT_DIR:
        return 'd';
    case DT_LNK:
        return 'l';
    case DT_UNKNOWN:
        if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return S_ISREG(st.st_mode) ? 'f' : S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : '?';
    }
    return '?';
}

static void push_name(int dir, const struct dirent *d)
{
    size_t n = strlen(d->d_name) + 1;
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return;
    s.index[s.count++] = (uint32_t)s.used;
    s.names[s.used++] = type_of(dir, d);
    memcpy(s.names + s.used, d->d_name, n);
    s.used += n;
}

/* Names of a folder, as many as it may have at once. 1: there may be more, 0: these were the last, -1: no room, or it cannot be read. */
static int gather(int fd)
{
    static _Alignas(8) char block[BLOCK];
    size_t most = s.used + (NAMES_BYTES - s.used) / PORTION;
    do {
        if (NAMES_BYTES - s.used < BLOCK || NAMES_MAX - s.count < BLOCK / 8)
            return -1;
        long n = fd_entries(fd, block, sizeof(block));
        if (n <= 0)
            return (int)n;
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            push_name(fd, d);
        }
    } while (s.used + BLOCK <= most);
    return 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(s.names + *(const uint32_t *)a + 1, s.names + *(const uint32_t *)b + 1);
}

/* --- entries --- */

/* The kernel's own state, which has no end. */
static bool is_kernels(int fd)
{
    static const unsigned long types[] = {0x9fa0 /* proc */, 0x62656572 /* sysfs */, 0x63677270 /* cgroup2 */, 0x27e0eb /* cgroup */};
    struct statfs st;
    if (fstatfs(fd, &st) < 0)
        return true;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if ((unsigned long)st.f_type == types[i])
            return true;
    return false;
}

static int enter(struct walk *w, const struct walk_entry *en, dev_t dev, int depth, size_t len)
{
    struct stat st;
    if (depth == WALK_DEPTH) {
        w->partial = true;
        return 0;
    }
    own_fd fd = openat(en->dir_fd, en->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        w->partial = true;
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_dev != dev && is_kernels(fd)))
        return 0;
    return walk_folder(w, fd, st.st_dev, depth + 1, len);
}

/* Does the pattern want it, and what is below it? */
static bool is_wanted(const struct walk *w, const struct walk_entry *en, int depth, bool *ret_below)
{
    bool dotted = en->type == 'd' && en->name[0] == '.' && !w->hidden;
    if (!w->pattern)
        return *ret_below = !dotted;
    wildcard_step(w->pattern, &s.state[depth], en->name, dotted, &s.state[depth + 1]);
    *ret_below = en->type == 'd' && wildcard_goes_on(w->pattern, &s.state[depth + 1]);
    return wildcard_is_match(w->pattern, &s.state[depth + 1]);
}

/* 1: the walk is over. */
static int take_entry(struct walk *w, int fd, dev_t dev, int depth, size_t len, const char *record)
{
    struct walk_entry en = {.dir_fd = fd, .name = record + 1, .path = s.path, .type = record[0]};
    size_t n = strlen(en.name);
    bool below = false;
    w->seen++;
    if (w->seen % LOOK_AT_CLOCK == 0 && walk_is_late(s.since_ms))
        return w->partial = true;
    if (en.type == 'd' && strcmp(en.name, ".git") == 0)
        return 0;
    if (len + n + 2 > sizeof(s.path)) {
        w->partial = true;
        return 0;
    }
    memcpy(s.path + len, en.name, n + 1);
    if (is_wanted(w, &en, depth, &below) && !w->visit(w->arg, &en))
        return w->ended = true;
    if (en.type != 'd' || !below)
        return 0;
    s.path[len + n] = '/';
    int r = enter(w, &en, dev, depth, len + n + 1);
    s.path[len] = 0;
    return r;
}

static int walk_folder(struct walk *w, int fd, dev_t dev, int depth, size_t len)
{
    size_t used = s.used, count = s.count;
    int more = 1, over = 0;
    while (more > 0 && !over) {
        more = gather(fd);
        if (more < 0)
            w->partial = true;
        if (w->sorted)
            qsort(s.index + count, s.count - count, sizeof(*s.index), by_name);
        for (size_t i = count, end = s.count; i < end && !over; i++)
            over = take_entry(w, fd, dev, depth, len, s.names + s.index[i]);
        s.used = used;
        s.count = count;
    }
    return over;
}

int walk_run(struct walk *w, const char *top, struct pale_err *e)
{
    struct stat st;
    own_fd fd = open(top[0] ? top : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        return err_set(e, PALE_BAD_INPUT, "%.400s is no folder", top);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open %.400s", top[0] ? top : ".");
    s.names = memory_map(NAMES_BYTES, e);
    s.index = s.names ? memory_map(NAMES_MAX * sizeof(*s.index), e) : NULL;
    if (!s.index)
        return -(int)e->code;
    s.since_ms = clock_ms();
    if (w->pattern)
        wildcard_begin(w->pattern, &s.state[0]);
    walk_folder(w, fd, st.st_dev, 0, 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that finds names by pattern.
 *
 * How it works: of what matches, the newest are kept, as many as are wanted: a heap with the oldest of them on top, which goes when a
 * newer one comes. Their paths stand one after the other in memory; when that is full, those that are still kept move to a second
 * memory of the same size. So the memory is the same for ten matches and for ten million. */
#include "init/glob.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/number.h"
#include "init/builtin.h"
#include "init/memory.h"
#include "init/tell.h"
#include "init/walk.h"

#define PATHS_BYTES (4u << 20)
#define KEPT_BYTES (PATHS_BYTES / 2) /* of paths: what is told at most, and half of what there is room for */

struct found {
    struct timespec mtime;
    uint64_t size;
    char type;
    const char *path;
    size_t len;
};

/* One per process. */
static struct glob {
    struct wildcard pattern;
    struct found kept[GLOB_ITEMS_MAX + 1];
    size_t count, limit, kept_bytes;
    char *paths, *other;
    size_t used;
    bool dropped;
} g;

/* --- the heap --- */

/* Does a go before b? Of two that are as old the one that is told later. */
static bool is_older(const struct found *a, const struct found *b)
{
    if (a->mtime.tv_sec != b->mtime.tv_sec)
        return a->mtime.tv_sec < b->mtime.tv_sec;
    if (a->mtime.tv_nsec != b->mtime.tv_nsec)
        return a->mtime.tv_nsec < b->mtime.tv_nsec;
    return strcmp(a->path, b->path) > 0;
}

static void swap(size_t a, size_t b)
{
    struct found f = g.kept[a];
    g.kept[a] = g.kept[b];
    g.kept[b] = f;
}

static void sift_up(size_t i)
{
    for (; i > 0 && is_older(&g.kept[i], &g.kept[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static void sift_down(size_t i)
{
    for (;;) {
        size_t oldest = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < g.count; k++)
            if (is_older(&g.kept[k], &g.kept[oldest]))
                oldest = k;
        if (oldest == i)
            return;
        swap(i, oldest);
        i = oldest;
    }
}

static void drop_oldest(void)
{
    g.kept_bytes -= g.kept[0].len + 1;
    g.kept[0] = g.kept[--g.count];
    sift_down(0);
    g.dropped = true;
}

/* --- paths --- */

static void move_paths(void)
{
    size_t used = 0;
    for (size_t i = 0; i < g.count; i++) {
        memcpy(g.other + used, g.kept[i].path, g.kept[i].len + 1);
        g.kept[i].path = g.other + used;
        used += g.kept[i].len + 1;
    }
    char *paths = g.paths;
    g.paths = g.other;
    g.other = paths;
    g.used = used;
}

static void keep(struct found *f)
{
    if (g.count == g.limit && (g.count == 0 || is_older(f, &g.kept[0]))) {
        g.dropped = true;
        return;
    }
    if (PATHS_BYTES - g.used < f->len + 1)
        move_paths();
    memcpy(g.paths + g.used, f->path, f->len + 1);
    f->path = g.paths + g.used;
    g.used += f->len + 1;
    g.kept_bytes += f->len + 1;
    g.kept[g.count++] = *f;
    sift_up(g.count - 1);
    while (g.count > g.limit || g.kept_bytes > KEPT_BYTES)
        drop_oldest();
}

static bool visit(void *arg, const struct walk_entry *en)
{
    struct stat st;
    (void)arg;
    if (fstatat(en->dir_fd, en->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true; /* it is gone */
    struct found f = {.mtime = st.st_mtim, .size = st.st_size > 0 ? (uint64_t)st.st_size : 0, .path = en->path, .len = strlen(en->path)};
    f.type = builtin_type_letter(st.st_mode);
    keep(&f);
    return true;
}

/* --- telling --- */

static int newest_first(const void *a, const void *b)
{
    return is_older(a, b) ? 1 : is_older(b, a) ? -1 : 0;
}

static bool tell_all(const struct walk *w)
{
    bool good = true;
    qsort(g.kept, g.count, sizeof(g.kept[0]), newest_first);
    for (size_t i = 0; good && i < g.count; i++) {
        const struct found *f = &g.kept[i];
        struct answer a = {.kind = ANSWER_ENTRY, .type = f->type, .size = f->size, .mtime = f->mtime.tv_sec, .path = f->path};
        good = tell_answer(&a);
    }
    struct answer end = {.kind = ANSWER_END, .seen = w->seen, .flags = g.dropped || w->partial ? ANSWER_MORE : 0};
    return good && tell_answer(&end) && tell_flush();
}

int glob_run(const struct msg_exec *m)
{
    struct walk w = {.pattern = &g.pattern, .visit = visit, .hidden = strcmp(m->argv[4], "hidden") == 0};
    struct pale_err e;
    uint64_t limit = 0;
    if (!number_u64(m->argv[3], GLOB_ITEMS_MAX, &limit) || (!w.hidden && strcmp(m->argv[4], "plain") != 0))
        return builtin_bad_words(m);
    g.limit = (size_t)limit;
    int r = wildcard_parse(&g.pattern, m->argv[2], false, &e);
    if (r == 0 && (!(g.paths = memory_map(PATHS_BYTES, &e)) || !(g.other = memory_map(PATHS_BYTES, &e))))
        r = -1;
    if (r == 0)
        r = walk_run(&w, m->argv[1], &e);
    if (r < 0)
        return builtin_fail(&e);
    return tell_all(&w) ? 0 : builtin_fail_os("glob", m->argv[1]);
}

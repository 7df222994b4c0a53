/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of files with several names. */
#include "tree/twins.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#define FIRST 64

struct twin {
    uint64_t ino;
    dev_t dev;
    char *path;
};

void twins_done(struct twins *t)
{
    for (size_t i = 0; i < t->cap; i++)
        free(t->table[i].path);
    free(t->table);
    *t = (struct twins){0};
}

/* Where it is, or would be. */
static struct twin *slot(struct twin *table, size_t cap, uint64_t ino, dev_t dev)
{
    uint64_t at = ino * 0x9e3779b97f4a7c15u >> 20;
    while (table[at & (cap - 1)].path && (table[at & (cap - 1)].ino != ino || table[at & (cap - 1)].dev != dev))
        at++;
    return &table[at & (cap - 1)];
}

const char *twins_find(const struct twins *t, const struct stat *st)
{
    return t->cap ? slot(t->table, t->cap, st->st_ino, st->st_dev)->path : NULL;
}

static int grow(struct twins *t, bool *ret_full, struct pale_err *e)
{
    size_t cap = t->cap ? t->cap * 2 : FIRST;
    *ret_full = false;
    if (t->count * 2 < t->cap)
        return 0;
    *ret_full = cap > LAYERCOPY_TWINS_MAX;
    if (*ret_full)
        return 0;
    struct twin *table = calloc(cap, sizeof(*table));
    if (!table)
        return err_nomem(e);
    for (size_t i = 0; i < t->cap; i++)
        if (t->table[i].path)
            *slot(table, cap, t->table[i].ino, t->table[i].dev) = t->table[i];
    free(t->table);
    t->table = table;
    t->cap = cap;
    return 0;
}

int twins_add(struct twins *t, const struct stat *st, const char *path, bool *ret_full, struct pale_err *e)
{
    int r = grow(t, ret_full, e);
    if (r < 0 || *ret_full || twins_find(t, st))
        return r;
    char *own = strdup(path);
    if (!own)
        return err_nomem(e);
    *slot(t->table, t->cap, st->st_ino, st->st_dev) = (struct twin){.ino = st->st_ino, .dev = st->st_dev, .path = own};
    t->count++;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of watched folders. A folder's place is what was true when it was last seen: whoever uses it opens the path and sees
 * by the watch whether it still leads there. */
#include "warden/folders.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"

#define FIRST_CAP 64u

void folders_done(struct folders *f)
{
    for (unsigned i = 1; i < f->cap; i++)
        free(f->item[i].name);
    free(f->item);
    free(f->bucket);
    *f = (struct folders){0};
}

static unsigned *bucket_of(const struct folders *f, int wd)
{
    return &f->bucket[((unsigned)wd * 2654435761u) & (f->buckets - 1)];
}

unsigned folders_find(const struct folders *f, int wd)
{
    unsigned n = f->buckets ? *bucket_of(f, wd) : 0;
    while (n && f->item[n].wd != wd)
        n = f->item[n].next;
    return n;
}

static bool grow(struct folders *f)
{
    unsigned cap = f->cap ? 2 * f->cap : FIRST_CAP;
    struct folder *item = realloc(f->item, cap * sizeof(*item));
    if (!item)
        return false;
    f->item = item;
    unsigned *bucket = calloc(cap, sizeof(*bucket));
    if (!bucket)
        return false;
    unsigned first = f->cap ? f->cap : 1;
    memset(item + (f->cap ? f->cap : 0), 0, (cap - f->cap) * sizeof(*item));
    free(f->bucket);
    f->bucket = bucket;
    f->buckets = cap;
    for (unsigned i = 1; i < f->cap; i++)
        if (item[i].name) {
            unsigned *at = bucket_of(f, item[i].wd);
            item[i].next = *at;
            *at = i;
        }
    for (unsigned i = first; i < cap; i++) {
        item[i].next = i + 1 < cap ? i + 1 : 0;
    }
    f->free = first;
    f->cap = cap;
    return true;
}

unsigned folders_put(struct folders *f, int wd, unsigned parent, const char *name, bool *ret_new)
{
    unsigned n = folders_find(f, wd);
    own_mem char *copy = n && strcmp(f->item[n].name, name) == 0 ? NULL : strdup(name);
    bool same = n && !copy && strcmp(f->item[n].name, name) == 0;
    *ret_new = !n;
    if (!copy && !same)
        return 0;
    if (!n) {
        if (!f->free && !grow(f))
            return 0;
        n = f->free;
        f->free = f->item[n].next;
        unsigned *at = bucket_of(f, wd);
        f->item[n] = (struct folder){.wd = wd, .serial = ++f->serial, .next = *at};
        *at = n;
        f->count++;
    }
    struct folder *d = &f->item[n];
    if (copy) {
        free(d->name);
        d->name = take_mem(&copy);
    }
    d->parent = parent;
    d->parent_serial = parent ? f->item[parent].serial : 0;
    return n;
}

void folders_drop(struct folders *f, unsigned n)
{
    unsigned *at = bucket_of(f, f->item[n].wd);
    while (*at != n)
        at = &f->item[*at].next;
    *at = f->item[n].next;
    free(f->item[n].name);
    f->item[n] = (struct folder){.next = f->free};
    f->free = n;
    f->count--;
}

/* Writes name before what stands at *at, with a slash if anything does. */
static bool put_before(char *ret, size_t *at, const char *name, bool slash)
{
    size_t n = strlen(name);
    if (*at < n + slash)
        return false;
    if (slash)
        ret[--*at] = '/';
    *at -= n;
    memcpy(ret + *at, name, n);
    return true;
}

/* From the folder up, filled from the end. */
static bool climb(const struct folders *f, unsigned n, size_t components, bool as_looked_up, char *ret, size_t cap)
{
    size_t at = cap - 1;
    bool any = false;
    ret[at] = 0;
    for (size_t steps = 0; n != FOLDER_ROOT || (as_looked_up && f->item[n].is_repository); any = true) {
        const struct folder *d = &f->item[n];
        if (steps++ == components)
            break;
        if (as_looked_up && d->is_repository) {
            if (!put_before(ret, &at, ".git", any))
                return false;
            break;
        }
        if (!d->name || !put_before(ret, &at, d->name, any))
            return false;
        if (!d->parent || f->item[d->parent].serial != d->parent_serial)
            return false;
        n = d->parent;
    }
    memmove(ret, ret + at, cap - at);
    return true;
}

bool folders_path(const struct folders *f, unsigned n, char *ret, size_t cap)
{
    return climb(f, n, PATH_BYTES_MAX, false, ret, cap);
}

bool folders_look_path(const struct folders *f, unsigned n, size_t components, char *ret, size_t cap)
{
    return climb(f, n, components, true, ret, cap);
}

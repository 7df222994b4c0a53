/* SPDX-License-Identifier: Apache-2.0 */
/* Owns sorted lists of the names in folders. */
#include "tree/roster.h"

#include <dirent.h>
#include <string.h>

#include "base/fd.h"

#define BLOCK 32768
#define NUMBER_COST sizeof(uint32_t)

void roster_done(struct roster *l)
{
    free(l->bytes);
    free(l->at);
    *l = (struct roster){0};
}

static bool grow(void *p, size_t have, size_t want, size_t unit, size_t *ret_cap)
{
    size_t cap = *ret_cap ? *ret_cap : 64;
    if (have + want <= *ret_cap)
        return true;
    while (cap < have + want)
        cap *= 2;
    void *more = realloc(*(void **)p, cap * unit);
    if (!more)
        return false;
    *(void **)p = more;
    *ret_cap = cap;
    return true;
}

int roster_add(struct roster *l, const char *name, size_t *budget, struct pale_err *e)
{
    size_t n = strlen(name) + 1;
    if (n + NUMBER_COST > *budget)
        return err_set(e, PALE_LIMIT, "the folder holds more names than are looked at");
    if (!grow(&l->bytes, l->len, n, 1, &l->cap) || !grow(&l->at, l->count, 1, sizeof(*l->at), &l->room))
        return err_nomem(e);
    memcpy(l->bytes + l->len, name, n);
    l->at[l->count++] = (uint32_t)l->len;
    l->len += n;
    *budget -= n + NUMBER_COST;
    l->cost += n + NUMBER_COST;
    return 0;
}

int roster_add_folder(struct roster *l, int fd, size_t *budget, struct pale_err *e)
{
    own_mem char *block = malloc(BLOCK);
    if (!block)
        return err_nomem(e);
    for (long n; (n = fd_entries(fd, block, BLOCK)) != 0;) {
        if (n < 0)
            return err_os(e, "read a folder");
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            int r = roster_add(l, d->d_name, budget, e);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int by_bytes(const void *a, const void *b, void *bytes)
{
    return strcmp((const char *)bytes + *(const uint32_t *)a, (const char *)bytes + *(const uint32_t *)b);
}

void roster_sort(struct roster *l)
{
    size_t kept = 0;
    if (l->count > 1)
        qsort_r(l->at, l->count, sizeof(*l->at), by_bytes, l->bytes);
    for (size_t i = 0; i < l->count; i++)
        if (kept == 0 || strcmp(roster_name(l, kept - 1), l->bytes + l->at[i]) != 0)
            l->at[kept++] = l->at[i];
    l->count = kept;
}

const char *roster_name(const struct roster *l, size_t i)
{
    return l->bytes + l->at[i];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the index of a git repository.
 *
 * How it works: whoever could write the repository may have written it. A cursor checks every step; entries are read up to the count that
 * the head tells, and what follows them (extensions, the sum) is not needed. */
#include "box/gitindex.h"

#include <stdbool.h>
#include <string.h>

#define FIXED_BYTES 40
#define ASSUME_VALID 0x8000u
#define EXTENDED 0x4000u
#define STAGE 0x3000u
#define LATER_FLAGS 0x6000u /* skip-worktree and intent-to-add */

struct cursor {
    const uint8_t *at, *end;
    uint32_t version;
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool has(const struct cursor *c, size_t n)
{
    return (size_t)(c->end - c->at) >= n;
}

/* How many bytes of the last name are not of this one, as version 4 writes it. */
static bool read_strip(struct cursor *c, size_t *ret)
{
    size_t v = 0;
    for (int i = 0; i < 4 && has(c, 1); i++) {
        uint8_t b = *c->at++;
        v = (v << 7) + (b & 0x7f);
        if (!(b & 0x80)) {
            *ret = v;
            return true;
        }
        v++;
    }
    return false;
}

static bool read_name(struct cursor *c, const uint8_t *begin, char path[PATH_BYTES_MAX])
{
    size_t keep = 0, strip = 0;
    if (c->version == 4) {
        keep = strlen(path);
        if (!read_strip(c, &strip) || strip > keep)
            return false;
        keep -= strip;
    }
    const uint8_t *zero = memchr(c->at, 0, (size_t)(c->end - c->at));
    size_t n = zero ? (size_t)(zero - c->at) : 0;
    if (!zero || keep + n == 0 || keep + n >= PATH_BYTES_MAX)
        return false;
    memcpy(path + keep, c->at, n + 1);
    c->at = zero + 1;
    if (c->version == 4)
        return true;
    size_t padded = ((size_t)(zero - begin) + 8) & ~(size_t)7;
    if ((size_t)(c->end - begin) < padded)
        return false;
    c->at = begin + padded;
    return true;
}

/* 1: it stands for a file; 0: it does not; -1: it is damaged. */
static int read_entry(struct cursor *c, struct gitindex_entry *e)
{
    const uint8_t *begin = c->at, *p = begin;
    if (!has(c, FIXED_BYTES + GITINDEX_OID_BYTES + 2))
        return -1;
    e->ctime[0] = be32(p);
    e->ctime[1] = be32(p + 4);
    e->mtime[0] = be32(p + 8);
    e->mtime[1] = be32(p + 12);
    e->ino = be32(p + 20);
    e->mode = be32(p + 24);
    e->size = be32(p + 36);
    memcpy(e->oid, p + FIXED_BYTES, sizeof(e->oid));
    c->at = p + FIXED_BYTES + GITINDEX_OID_BYTES;
    uint32_t flags = (uint32_t)c->at[0] << 8 | c->at[1], later = 0;
    c->at += 2;
    if (flags & EXTENDED) {
        if (c->version < 3 || !has(c, 2))
            return -1;
        later = (uint32_t)c->at[0] << 8 | c->at[1];
        c->at += 2;
    }
    if (!read_name(c, begin, e->path))
        return -1;
    return !(flags & (ASSUME_VALID | STAGE)) && !(later & LATER_FLAGS);
}

int gitindex_read(const uint8_t *p, size_t n, int (*tell)(void *arg, const struct gitindex_entry *entry, struct pale_err *e), void *arg,
                  struct pale_err *e)
{
    struct gitindex_entry entry = {.path = ""};
    if (n < 12 || memcmp(p, "DIRC", 4) != 0 || be32(p + 4) < 2 || be32(p + 4) > 4)
        return err_set(e, PALE_UNSUPPORTED, "this is no index of git of a version that is known");
    struct cursor c = {.at = p + 12, .end = p + n, .version = be32(p + 4)};
    for (uint32_t i = be32(p + 8); i > 0; i--) {
        int found = read_entry(&c, &entry);
        if (found < 0)
            return err_set(e, PALE_CORRUPT, "the index of git is damaged");
        int r = found ? tell(arg, &entry, e) : 0;
        if (r != 0)
            return r;
    }
    return 0;
}

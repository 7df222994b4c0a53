/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the header block of tar. */
#include "net/tarhead.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* As POSIX has them. GNU's own format has other things where the prefix stands. */
struct fields {
    char name[TAR_NAME_FIELD], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[TAR_NAME_FIELD], magic[8], uname[32],
        gname[32], major[8], minor[8], prefix[TAR_PREFIX_FIELD], rest[12];
};
static_assert(sizeof(struct fields) == TAR_BLOCK, "a header is one block");

#define MAGIC_POSIX "ustar\00000"
#define MAGIC_GNU "ustar  "

/* The bytes, with spaces where their own sum is kept. */
static unsigned sum_of(const uint8_t *p)
{
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += p[i];
    for (size_t i = 0; i < 8; i++)
        sum -= p[offsetof(struct fields, sum) + i];
    return sum;
}

/* Octal digits, with spaces before and spaces or zeros after. */
static bool get_octal(const char *p, size_t n, int64_t *ret)
{
    size_t i = 0, first;
    int64_t v = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (first = i; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (p[i] - '0');
    if (i == first)
        return false;
    for (; i < n; i++)
        if (p[i] != 0 && p[i] != ' ')
            return false;
    *ret = v;
    return true;
}

/* A number as GNU writes one that octal digits cannot hold: big endian, two's complement, the first bit set to tell. */
static bool get_binary(const char *field, int64_t *ret)
{
    const uint8_t *p = (const uint8_t *)field;
    uint8_t fill = p[0] == 0xff ? 0xff : 0;
    uint64_t v = 0;
    if (p[0] != 0xff && p[0] != 0x80)
        return false;
    for (size_t i = 1; i < 12; i++) {
        if (i < 4 && p[i] != fill)
            return false;
        v = v << 8 | p[i];
    }
    *ret = (int64_t)v;
    return (*ret < 0) == (fill != 0);
}

static bool get_long(const char field[12], int64_t *ret)
{
    return (uint8_t)field[0] & 0x80 ? get_binary(field, ret) : get_octal(field, 12, ret);
}

static void get_names(const struct fields *f, struct tar_head *ret)
{
    bool prefixed = memcmp(f->magic, MAGIC_POSIX, 8) == 0 && f->prefix[0];
    snprintf(ret->name, sizeof(ret->name), "%.*s%s%.*s", prefixed ? (int)TAR_PREFIX_FIELD : 0, f->prefix, prefixed ? "/" : "",
             (int)TAR_NAME_FIELD, f->name);
    snprintf(ret->link, sizeof(ret->link), "%.*s", (int)TAR_NAME_FIELD, f->link);
}

int tar_head_parse(const uint8_t p[TAR_BLOCK], struct tar_head *ret, struct pale_err *e)
{
    static const uint8_t zeros[TAR_BLOCK];
    struct fields f;
    int64_t sum, mode = 0;
    *ret = (struct tar_head){0};
    if (memcmp(p, zeros, TAR_BLOCK) == 0)
        return 0;
    memcpy(&f, p, sizeof(f));
    if (!get_octal(f.sum, sizeof(f.sum), &sum) || sum != sum_of(p))
        return err_set(e, PALE_BAD_INPUT, "this is no tar header, or a damaged one (a compressed archive must be uncompressed first)");
    get_names(&f, ret);
    if (memcmp(f.magic, MAGIC_POSIX, 8) != 0 && memcmp(f.magic, MAGIC_GNU, 8) != 0)
        return err_set(e, PALE_BAD_INPUT, "its header is neither ustar, pax nor GNU; tar --format=pax makes one that is");
    ret->type = f.type ? (uint8_t)f.type : TAR_FILE;
    if (!get_long(f.size, &ret->size) || ret->size < 0)
        return err_set(e, PALE_BAD_INPUT, "its size is no number");
    /* Headers about other headers have modes and times that nobody looks at, and some writers leave a time empty. */
    if (ret->type >= '0' && ret->type <= '7' &&
        (!get_octal(f.mode, sizeof(f.mode), &mode) || (f.mtime[0] && !get_long(f.mtime, &ret->mtime))))
        return err_set(e, PALE_BAD_INPUT, "its mode or its time is no number");
    ret->mode = (unsigned)mode & 0777;
    ret->set_bits = (unsigned)mode & 07000;
    return 1;
}

unsigned tar_padding(uint64_t size)
{
    return (unsigned)(-size % TAR_BLOCK);
}

size_t tar_parent(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n ? n - 1 : 0;
}

size_t tar_split(const char *path, size_t n)
{
    if (n <= TAR_NAME_FIELD)
        return 0;
    /* The last byte stays in the name, which must not be empty. */
    for (size_t at = n - TAR_NAME_FIELD - 1; at <= TAR_PREFIX_FIELD && at + 1 < n; at++)
        if (path[at] == '/' && at > 0)
            return at;
    return SIZE_MAX;
}

static void put_octal(char *field, size_t bytes, int64_t v)
{
    char text[32];
    snprintf(text, sizeof(text), "%0*llo", (int)bytes - 1, v < 0 || v > TAR_NUMBER_MAX ? 0ull : (unsigned long long)v);
    memcpy(field, text, bytes);
}

void tar_head_put(uint8_t ret[TAR_BLOCK], const struct tar_head *h)
{
    struct fields f = {.type = (char)h->type, .magic = MAGIC_POSIX};
    size_t n = strlen(h->name), split = tar_split(h->name, n), from = 0;
    if (split != 0 && split != SIZE_MAX) {
        memcpy(f.prefix, h->name, split);
        from = split + 1;
    }
    memcpy(f.name, h->name + from, n - from < TAR_NAME_FIELD ? n - from : TAR_NAME_FIELD);
    memcpy(f.link, h->link, strlen(h->link));
    put_octal(f.mode, sizeof(f.mode), h->mode);
    put_octal(f.uid, sizeof(f.uid), 0);
    put_octal(f.gid, sizeof(f.gid), 0);
    put_octal(f.size, sizeof(f.size), h->size);
    put_octal(f.mtime, sizeof(f.mtime), h->mtime);
    put_octal(f.major, sizeof(f.major), 0);
    put_octal(f.minor, sizeof(f.minor), 0);
    memcpy(ret, &f, sizeof(f));
    /* Six digits, a zero and a space. */
    char sum[9];
    snprintf(sum, sizeof(sum), "%06o", sum_of(ret));
    sum[7] = ' ';
    memcpy(ret + offsetof(struct fields, sum), sum, 8);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the headers of an archive's entries. */
#include "net/tarentry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net/tarpax.h"

/* The records for what an entry's header cannot hold, into ret; their length. */
static size_t put_records(const struct tar_head *h, const char *path, const char *target, char ret[TARENTRY_RECORDS_MAX])
{
    char number[32];
    size_t n = 0;
    if (tar_split(path, strlen(path)) == SIZE_MAX)
        n += tarpax_put(ret + n, "path", path);
    if (strlen(target) > TAR_NAME_FIELD)
        n += tarpax_put(ret + n, "linkpath", target);
    if (h->size > TAR_NUMBER_MAX) {
        snprintf(number, sizeof(number), "%lld", (long long)h->size);
        n += tarpax_put(ret + n, "size", number);
    }
    if (h->mtime < 0 || h->mtime > TAR_NUMBER_MAX) {
        snprintf(number, sizeof(number), "%lld", (long long)h->mtime);
        n += tarpax_put(ret + n, "mtime", number);
    }
    return n;
}

static_assert(TARENTRY_RECORDS_MAX >= 2 * PATH_BYTES_MAX + 4 * (TARPAX_RECORD_MORE + 16) + 2 * 24, "all records at once");

/* The header before the entry's own, of records of that length. */
static void put_extra(uint8_t ret[TAR_BLOCK], size_t n)
{
    const struct tar_head pax = {.type = TAR_PAX, .mode = 0644, .size = (int64_t)n, .name = "././@PaxHeader"};
    tar_head_put(ret, &pax);
}

static void put_own(uint8_t ret[TAR_BLOCK], const struct tar_head *h, const char *path, const char *target)
{
    struct tar_head own = *h;
    snprintf(own.name, sizeof(own.name), "%.*s", (int)TAR_NAME_MAX, path);
    snprintf(own.link, sizeof(own.link), "%.*s", (int)TAR_NAME_FIELD, target);
    tar_head_put(ret, &own);
}

size_t tarentry_put(uint8_t ret[TARENTRY_BYTES_MAX], const struct tar_head *h, const char *path, const char *target)
{
    size_t at = 0, n = put_records(h, path, target, (char *)ret + TAR_BLOCK);
    if (n > 0) {
        put_extra(ret, n);
        memset(ret + TAR_BLOCK + n, 0, tar_padding(n));
        at = TAR_BLOCK + n + tar_padding(n);
    }
    put_own(ret + at, h, path, target);
    return at + TAR_BLOCK;
}

void tarentry_add(struct buf *out, const struct tar_head *h, const char *path, const char *target, const struct buf *records)
{
    static const uint8_t zeros[TAR_BLOCK];
    char usual[TARENTRY_RECORDS_MAX];
    uint8_t block[TAR_BLOCK];
    size_t n = put_records(h, path, target, usual);
    if (n + records->len > 0) {
        put_extra(block, n + records->len);
        buf_add(out, block, sizeof(block));
        buf_add(out, usual, n);
        if (records->len)
            buf_add(out, records->data, records->len);
        buf_add(out, zeros, tar_padding(n + records->len));
    }
    put_own(block, h, path, target);
    buf_add(out, block, sizeof(block));
}

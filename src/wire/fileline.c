/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers of file requests. Pure. */
#include "wire/fileline.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/scan.h"

/* --- the exit status --- */

/* Some errors have several reasons; what a client does about each is the same. */
static const struct {
    int os;
    enum pale_code code;
} os_rows[] = {
    {ENOENT, PALE_NOT_FOUND}, {ENOTDIR, PALE_NOT_FOUND}, {EEXIST, PALE_EXISTS},      {ENOTEMPTY, PALE_EXISTS},
    {EACCES, PALE_DENIED},    {EPERM, PALE_DENIED},      {EROFS, PALE_DENIED},       {ENOSPC, PALE_LIMIT},
    {EDQUOT, PALE_LIMIT},     {EFBIG, PALE_LIMIT},       {EMFILE, PALE_LIMIT},       {ENFILE, PALE_LIMIT},
    {ENOMEM, PALE_LIMIT},     {EMLINK, PALE_LIMIT},      {EBUSY, PALE_BUSY},         {ETXTBSY, PALE_BUSY},
    {EISDIR, PALE_BAD_INPUT}, {EINVAL, PALE_BAD_INPUT},  {ELOOP, PALE_BAD_INPUT},    {ENAMETOOLONG, PALE_BAD_INPUT},
    {EXDEV, PALE_BAD_INPUT},  {EOVERFLOW, PALE_DENIED},  {ENOSYS, PALE_UNSUPPORTED}, {EOPNOTSUPP, PALE_UNSUPPORTED},
};

int file_status(const struct pale_err *e)
{
    enum pale_code code = e->os ? PALE_OS : e->code;
    for (size_t i = 0; e->os && i < sizeof(os_rows) / sizeof(os_rows[0]); i++)
        if (os_rows[i].os == e->os)
            code = os_rows[i].code;
    return FILE_STATUS_BASE + (int)code;
}

enum pale_code file_status_code(uint64_t status)
{
    if (status == 0)
        return PALE_OK;
    return status > FILE_STATUS_BASE && status < FILE_STATUS_BASE + PALE_CODE_COUNT ? (enum pale_code)(status - FILE_STATUS_BASE) : PALE_OS;
}

static_assert(FILE_STATUS_BASE + PALE_CODE_COUNT < 124, "below the statuses with a meaning of their own");

/* --- entries --- */

size_t file_entry_write(const struct file_entry *en, char *ret)
{
    int n = snprintf(ret, FILE_ENTRY_MAX, "%c %o %llu %lld %u %llu %s%c%s", en->type, en->mode, (unsigned long long)en->size,
                     (long long)en->mtime, en->mtime_ns, (unsigned long long)en->inode, en->name, 0, en->target);
    assert(n > 0 && n < FILE_ENTRY_MAX);
    return (size_t)n + 1;
}

int file_entry_parse(const void *p, size_t n, struct file_entry *ret, size_t *ret_used)
{
    struct scan c = {.p = p, .n = n};
    struct file_entry en;
    uint64_t mode = 0, ns = 0;
    int r;
    if ((r = scan_letter(&c, "fdlpscb?", &en.type)) <= 0 || (r = scan_space(&c)) <= 0 || (r = scan_number(&c, 8, 07777, &mode)) <= 0 ||
        (r = scan_number(&c, 10, INT64_MAX, &en.size)) <= 0 || (r = scan_signed(&c, &en.mtime)) <= 0 ||
        (r = scan_number(&c, 10, 999999999, &ns)) <= 0 || (r = scan_number(&c, 10, UINT64_MAX, &en.inode)) <= 0 ||
        (r = scan_text(&c, FILE_NAME_MAX + 1, &en.name)) <= 0 || (r = scan_text(&c, PATH_BYTES_MAX, &en.target)) <= 0)
        return r;
    if (!scan_is_plain_name(en.name) || (en.target[0] && en.type != 'l'))
        return -1;
    en.mode = (uint32_t)mode;
    en.mtime_ns = (uint32_t)ns;
    *ret = en;
    *ret_used = c.at;
    return 1;
}

/* --- happenings --- */

static const char *const happenings[] = {
    [FILE_READY] = "ready",         [FILE_CREATED] = "created",       [FILE_CHANGED] = "changed",
    [FILE_REMOVED] = "removed",     [FILE_MOVED_FROM] = "moved-from", [FILE_MOVED_TO] = "moved-to",
    [FILE_UNWATCHED] = "unwatched", [FILE_OVERFLOW] = "overflow",     [FILE_LIMIT] = "limit",
};
static_assert(sizeof(happenings) / sizeof(happenings[0]) == FILE_HAPPENING_COUNT, "a name for every happening");

const char *file_happening_name(enum file_happening kind)
{
    return happenings[kind];
}

size_t file_event_write(const struct file_event *ev, char *ret)
{
    int n = snprintf(ret, FILE_EVENT_MAX, "%s %c %s", happenings[ev->kind], ev->folder ? 'd' : '-', ev->name);
    assert(n > 0 && n < FILE_EVENT_MAX);
    return (size_t)n + 1;
}

static int take_happening(struct scan *c, enum file_happening *ret)
{
    size_t left = c->n - c->at;
    bool begun = false; /* what is there may become one */
    for (int i = 0; i < FILE_HAPPENING_COUNT; i++) {
        size_t n = strlen(happenings[i]);
        if (left > n && memcmp(c->p + c->at, happenings[i], n) == 0 && c->p[c->at + n] == ' ') {
            *ret = (enum file_happening)i;
            c->at += n + 1;
            return 1;
        }
        begun = begun || (left <= n && memcmp(c->p + c->at, happenings[i], left) == 0);
    }
    return begun ? 0 : -1;
}

int file_event_parse(const void *p, size_t n, struct file_event *ret, size_t *ret_used)
{
    struct scan c = {.p = p, .n = n};
    struct file_event ev;
    char type = 0;
    int r;
    if (n == 0)
        return 0;
    if ((r = take_happening(&c, &ev.kind)) <= 0 || (r = scan_letter(&c, "d-", &type)) <= 0 || (r = scan_space(&c)) <= 0 ||
        (r = scan_text(&c, PATH_BYTES_MAX, &ev.name)) <= 0)
        return r;
    if (!scan_is_relative(ev.name) || (ev.name[0] && (ev.kind == FILE_READY || ev.kind == FILE_OVERFLOW)))
        return -1;
    ev.folder = type == 'd';
    *ret = ev;
    *ret_used = c.at;
    return 1;
}

/* --- what goes in --- */

bool file_mode_parse(const char *s, uint32_t *ret)
{
    uint32_t v = 0;
    size_t n = strlen(s);
    if (n < 1 || n > 4)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '7')
            return false;
        v = v * 8 + (uint32_t)(*s - '0');
    }
    *ret = v;
    return true;
}

void file_piece_head(uint32_t n, uint8_t ret[FILE_PIECE_HEAD])
{
    for (int i = 0; i < FILE_PIECE_HEAD; i++)
        ret[i] = (uint8_t)(n >> (8 * i));
}

uint32_t file_piece_length(const uint8_t head[FILE_PIECE_HEAD])
{
    uint32_t n = 0;
    for (int i = 0; i < FILE_PIECE_HEAD; i++)
        n |= (uint32_t)head[i] << (8 * i);
    return n;
}

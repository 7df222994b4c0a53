/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a command has printed. */
#include "wire/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "wire/frame.h"

void spool_init(struct spool *s, const char *dir, uint64_t number, uint64_t cap)
{
    *s = (struct spool){.dir = dir, .number = number, .cap = cap, .fd = -1};
}

void spool_done(struct spool *s)
{
    own_close(&s->fd);
    free(s->mem);
    s->mem = NULL;
}

static bool file_name(const struct spool *s, char *ret, size_t cap)
{
    int n = snprintf(ret, cap, "%s/job-%llu.log", s->dir, (unsigned long long)s->number);
    return n >= 0 && (size_t)n < cap;
}

void spool_forget(struct spool *s)
{
    char path[PATH_BYTES_MAX];
    if (s->fd >= 0 && file_name(s, path, sizeof(path)))
        unlink(path);
    spool_done(s);
}

/* The file is a ring: a position is its remainder. */
static bool put(struct spool *s, uint64_t at, const uint8_t *p, size_t n)
{
    while (n > 0) {
        uint64_t off = at % s->cap;
        size_t part = s->cap - off < n ? (size_t)(s->cap - off) : n;
        ssize_t w = pwrite(s->fd, p, part, (off_t)off);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        at += (uint64_t)w;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

static bool get(const struct spool *s, uint64_t at, uint8_t *p, size_t n)
{
    if (s->fd < 0) {
        memcpy(p, s->mem + at, n);
        return true;
    }
    while (n > 0) {
        uint64_t off = at % s->cap;
        size_t part = s->cap - off < n ? (size_t)(s->cap - off) : n;
        ssize_t r = pread(s->fd, p, part, (off_t)off);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return false;
        at += (uint64_t)r;
        p += r;
        n -= (size_t)r;
    }
    return true;
}

static uint32_t length_in(const uint8_t head[FRAME_HEAD])
{
    return (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
}

void spool_drop(struct spool *s)
{
    uint8_t head[FRAME_HEAD];
    if (s->fd < 0)
        return; /* a page of memory is no room to be had */
    for (; s->begin < s->end && get(s, s->begin, head, sizeof(head)); s->begin += FRAME_HEAD + length_in(head))
        s->lost += length_in(head);
    s->begin = s->base = s->end;
    if (ftruncate(s->fd, 0) < 0)
        s->broken = true;
}

uint64_t spool_stored(const struct spool *s)
{
    uint64_t n = s->end - s->base;
    return s->fd < 0 ? 0 : n < s->cap ? n : s->cap;
}

static bool drop_first(struct spool *s)
{
    uint8_t head[FRAME_HEAD];
    if (!get(s, s->begin, head, sizeof(head)))
        return false;
    s->lost += length_in(head);
    s->begin += FRAME_HEAD + length_in(head);
    return s->begin <= s->end;
}

/* Memory no longer suffices. */
static bool spill(struct spool *s)
{
    char path[PATH_BYTES_MAX];
    if (!file_name(s, path, sizeof(path)) || (s->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
        return false;
    if (!put(s, 0, s->mem, (size_t)s->end)) {
        own_close(&s->fd);
        return false;
    }
    free(s->mem);
    s->mem = NULL;
    return true;
}

bool spool_add(struct spool *s, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    uint64_t need = FRAME_HEAD + (uint64_t)n;
    if (n == 0)
        return true;
    if (s->broken || need > s->cap || n > FRAME_PAYLOAD_MAX)
        return false;
    frame_put_head(head, type, 0, (uint32_t)n);
    if (s->fd < 0 && s->end + need <= SPOOL_MEMORY) {
        if (!s->mem && !(s->mem = malloc(SPOOL_MEMORY)))
            return false;
        memcpy(s->mem + s->end, head, FRAME_HEAD);
        memcpy(s->mem + s->end + FRAME_HEAD, p, n);
        s->end += need;
        return true;
    }
    bool good = s->fd >= 0 || spill(s);
    while (good && s->end - s->begin + need > s->cap)
        good = drop_first(s);
    good = good && put(s, s->end, head, FRAME_HEAD) && put(s, s->end + FRAME_HEAD, p, n);
    if (good)
        s->end += need;
    s->broken = !good;
    return good;
}

size_t spool_read(const struct spool *s, struct spool_mark *m, void *p, size_t room, uint64_t *ret_missed)
{
    uint8_t *out = p;
    size_t used = 0;
    *ret_missed = 0;
    if (m->at < s->begin) {
        *ret_missed = s->lost - m->bytes;
        *m = (struct spool_mark){.at = s->begin, .bytes = s->lost};
    }
    size_t n = s->end - m->at < room ? (size_t)(s->end - m->at) : room;
    if (n == 0 || !get(s, m->at, out, n))
        return 0;
    while (n - used >= FRAME_HEAD && n - used - FRAME_HEAD >= length_in(out + used)) {
        m->bytes += length_in(out + used);
        used += FRAME_HEAD + length_in(out + used);
    }
    m->at += used;
    return used;
}

void spool_seek(const struct spool *s, uint64_t offset, struct spool_mark *ret)
{
    uint8_t head[FRAME_HEAD];
    struct spool_mark m = {.at = s->begin, .bytes = s->lost};
    while (m.at < s->end && get(s, m.at, head, sizeof(head)) && m.bytes + length_in(head) <= offset) {
        m.bytes += length_in(head);
        m.at += FRAME_HEAD + length_in(head);
    }
    *ret = m;
}

struct spool_kept spool_keep(const struct spool *s, void *p, size_t *ret)
{
    *ret = s->fd < 0 ? (size_t)s->end : 0;
    if (*ret)
        memcpy(p, s->mem, *ret);
    return (struct spool_kept){.begin = s->begin, .end = s->end, .lost = s->lost, .in_file = s->fd >= 0};
}

bool spool_resume(struct spool *s, const struct spool_kept *k, const void *p, size_t n)
{
    char path[PATH_BYTES_MAX];
    if (k->begin > k->end || k->end - k->begin > s->cap || (!k->in_file && (n > SPOOL_MEMORY || k->end != n || k->begin)))
        return false;
    if (k->in_file && (!file_name(s, path, sizeof(path)) || (s->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)) < 0))
        return false;
    if (n > 0 && !(s->mem = malloc(SPOOL_MEMORY)))
        return false;
    if (n > 0)
        memcpy(s->mem, p, n);
    s->begin = s->base = k->begin;
    s->end = k->end;
    s->lost = k->lost;
    return true;
}

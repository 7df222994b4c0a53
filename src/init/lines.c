/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that tells lines.
 *
 * How it works: the file is read once from its beginning, block by block. Lines before the first that is wanted are only counted;
 * those wanted are kept, as far as they are whole and there is room; then counting goes on to the end if that is near, so that the
 * number of all lines is told where it costs little. The last lines need all of that number, and are then read backwards from where
 * the reading ended. Memory is a block and the room, whatever the file is; who changes the file meanwhile changes what is told. */
#include "init/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "init/builtin.h"
#include "init/tell.h"

#define BINARY_LOOK 8192       /* a NUL in the first so many bytes makes a file binary */
#define CHEAP_BYTES (16 << 20) /* so much more is read to know the number of all lines */

struct window {
    uint64_t first, count, room;
    char *text;
    size_t len, begun; /* begun: where the line that is not whole yet begins */
    uint64_t line;     /* its number, or that of the next */
    uint64_t last;
    bool full, cut;
};

struct reading {
    int fd;
    uint64_t size;     /* as the file said; 0 of one that does not say */
    uint64_t bytes;    /* read so far */
    uint64_t newlines; /* in them */
    char end;          /* the last of them */
    bool ended, binary;
};

static char block[131072];
static char text[LINES_BYTES_MAX + 1];

/* Eight bytes at a time: a search for each newline takes several times as long where lines are short. */
static uint64_t count_newlines(const char *p, size_t n)
{
    const uint64_t ones = 0x0101010101010101u, low = 0x7f7f7f7f7f7f7f7fu;
    uint64_t found = 0;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= ones * '\n';
        v = ~(((v & low) + low) | v | low); /* the high bit of each byte that was a newline */
        found += ((v >> 7) * ones) >> 56;
    }
    for (; n > 0; p++, n--)
        found += *p == '\n';
    return found;
}

/* --- the window --- */

/* Ends it before a line that has no room; of the first there is as much as fits. */
static void fill_up(struct window *w, const char *p)
{
    w->full = true;
    if (w->begun > 0) {
        w->len = w->begun;
        return;
    }
    memcpy(w->text + w->len, p, w->room - w->len);
    w->len = w->room;
    w->last = w->line;
    w->cut = true;
}

static void end_line(struct window *w)
{
    w->last = w->line++;
    w->begun = w->len;
    w->full = w->last - w->first + 1 >= w->count;
}

static void keep(struct window *w, const char *p, size_t n)
{
    while (n > 0 && !w->full) {
        const char *nl = memchr(p, '\n', n);
        size_t step = nl ? (size_t)(nl - p) + 1 : n;
        if (step > w->room - w->len)
            return fill_up(w, p);
        memcpy(w->text + w->len, p, step);
        w->len += step;
        if (nl)
            end_line(w);
        p += step;
        n -= step;
    }
}

static void offer(struct window *w, const char *p, size_t n, uint64_t newlines)
{
    if (w->full)
        return;
    if (w->line + newlines < w->first) {
        w->line += newlines;
        return;
    }
    for (const char *nl; w->line < w->first && (nl = memchr(p, '\n', n)); w->line++) {
        n -= (size_t)(nl - p) + 1;
        p = nl + 1;
    }
    keep(w, p, n);
}

/* A character of several bytes is told whole or not at all. */
static size_t whole_characters(const char *p, size_t n)
{
    size_t back = 1;
    while (back < 4 && back < n && ((unsigned char)p[n - back] & 0xc0) == 0x80)
        back++;
    unsigned char lead = n > back ? (unsigned char)p[n - back] : 0;
    size_t needs = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return needs > back ? n - back : n;
}

/* --- reading --- */

/* The next block: its length, 0 at the end, -1 with errno. */
static ssize_t next_block(struct reading *r)
{
    ssize_t n;
    do
        n = read(r->fd, block, sizeof(block));
    while (n < 0 && errno == EINTR);
    r->ended = n == 0;
    if (n <= 0)
        return n;
    if (r->bytes == 0)
        r->binary = memchr(block, 0, (size_t)n < BINARY_LOOK ? (size_t)n : BINARY_LOOK) != NULL;
    r->bytes += (uint64_t)n;
    r->end = block[n - 1];
    return n;
}

static uint64_t all_lines(const struct reading *r)
{
    return r->newlines + (r->bytes > 0 && r->end != '\n');
}

/* From the beginning until the window is full and the end is reached or far. */
static int read_through(struct reading *r, struct window *w, uint64_t enough)
{
    uint64_t since = 0; /* bytes read since the window was full */
    for (;;) {
        ssize_t n = next_block(r);
        if (n <= 0 || r->binary)
            return n < 0 ? -1 : 0;
        uint64_t newlines = count_newlines(block, (size_t)n);
        r->newlines += newlines;
        since += w->full ? (uint64_t)n : 0;
        offer(w, block, (size_t)n, newlines);
        uint64_t left = r->size > r->bytes ? r->size - r->bytes : 0;
        if (w->full && (since > enough || left > enough))
            return 0;
    }
}

static int tell_lines(const struct reading *r, const struct window *w)
{
    uint64_t total = all_lines(r), before = w->last ? w->last : w->first - 1;
    bool known = r->ended && !r->binary, more = !r->binary && (!known || total > before);
    struct answer a = {.kind = ANSWER_LINES, .line = w->first, .last = w->last, .total = known ? total : 0, .size = r->size};
    a.flags = (more ? ANSWER_MORE : 0) | (r->binary ? ANSWER_BINARY : 0) | (w->cut ? ANSWER_CUT : 0) | (known ? ANSWER_TOTAL : 0);
    a.text = w->text;
    a.text_len = w->len;
    return tell_answer(&a) && tell_flush() ? 0 : -1;
}

static int tell_from(struct reading *r, struct window *w)
{
    w->full = w->count == 0;
    if (read_through(r, w, CHEAP_BYTES) < 0)
        return -1;
    if (r->ended && !w->full && w->len > w->begun)
        end_line(w); /* which has no newline */
    if (w->cut)
        w->len = whole_characters(w->text, w->len);
    return tell_lines(r, w);
}

/* --- the last ones --- */

/* Where in the window's text, whose byte before the first is at[-1], the last lines begin that are wanted; counts them. */
static size_t find_last(const char *at, size_t n, bool from_start, uint64_t want, uint64_t *ret_lines)
{
    size_t start = n;
    *ret_lines = 0;
    for (size_t i = n; i > 0 && *ret_lines < want; i--) {
        bool begins = i == 1 ? from_start || at[-1] == '\n' : at[i - 2] == '\n';
        if (begins) {
            start = i - 1;
            ++*ret_lines;
        }
    }
    return start;
}

static int tell_tail(struct reading *r, struct window *w, uint64_t want)
{
    struct window none = {.full = true};
    if (read_through(r, &none, UINT64_MAX) < 0)
        return -1;
    uint64_t total = all_lines(r), lines = 0;
    size_t n = r->bytes < w->room ? (size_t)r->bytes : (size_t)w->room, extra = r->bytes > n;
    w->first = total + 1;
    if (r->binary || want == 0 || n == 0)
        return w->first = r->binary || total == 0 ? 1 : w->first, tell_lines(r, w);
    ssize_t got = pread(r->fd, text, n + extra, (off_t)(r->bytes - n - extra));
    if (got < 0)
        return -1;
    if ((size_t)got < n + extra)
        return errno = EBUSY, -1; /* it became shorter meanwhile */
    size_t start = find_last(text + extra, n, !extra, want, &lines);
    if (lines == 0) { /* the last line has no room: its end is told */
        for (start = 0; start < 3 && start + 1 < n && ((unsigned char)text[extra + start] & 0xc0) == 0x80;)
            start++;
        lines = 1;
        w->cut = true;
    }
    w->text = text + extra + start;
    w->len = n - start;
    w->first = total - lines + 1;
    w->last = total;
    return tell_lines(r, w);
}

int lines_run(const struct msg_exec *m)
{
    struct stat st = {0};
    struct window w = {.text = text, .line = 1};
    struct reading r = {0};
    uint64_t n = 0;
    bool tail = strcmp(m->argv[2], "tail") == 0;
    if ((!tail && strcmp(m->argv[2], "from") != 0) || !number_u64(m->argv[3], INT64_MAX, &n) || (!tail && n == 0) ||
        !number_u64(m->argv[4], INT64_MAX, &w.count) || !number_u64(m->argv[5], LINES_BYTES_MAX, &w.room) || w.room == 0)
        return builtin_bad_words(m);
    own_fd fd = builtin_open_plain(m->argv[1], &st);
    if (fd < 0)
        return builtin_fail_os("lines of", m->argv[1]);
    r.fd = fd;
    r.size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    w.first = n;
    return (tail ? tell_tail(&r, &w, n < w.count ? n : w.count) : tell_from(&r, &w)) < 0 ? builtin_fail_os("lines of", m->argv[1]) : 0;
}

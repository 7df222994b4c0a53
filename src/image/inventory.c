/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines of an inventory. */
#include "image/inventory.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/quote.h"

#define PENDING_BYTES 65536u
/* A path and a target, every byte of which takes four; or a line of the preface. */
#define LINE_MAX_BYTES (INVENTORY_PREFACE_MAX + 2 * 4 * PATH_BYTES_MAX + 256u)

int inventory_open(struct inventory *l, int out_fd, int expected_fd, struct pale_err *e)
{
    *l = (struct inventory){.out_fd = out_fd, .expected_fd = expected_fd};
    sha256_init(&l->digest);
    buf_init(&l->line, LINE_MAX_BYTES);
    buf_init(&l->pending, PENDING_BYTES + LINE_MAX_BYTES);
    buf_init(&l->expected, PENDING_BYTES + LINE_MAX_BYTES);
    return buf_reserve(&l->pending, PENDING_BYTES) ? 0 : err_nomem(e);
}

void inventory_drop(struct inventory *l)
{
    buf_done(&l->line);
    buf_done(&l->pending);
    buf_done(&l->expected);
}

static int flush(struct inventory *l, struct pale_err *e)
{
    if (l->out_fd >= 0 && !fd_write_full(l->out_fd, l->pending.data, l->pending.len))
        return err_os(e, "write the image's inventory");
    buf_clear(&l->pending);
    return 0;
}

/* The next expected line with its newline; *ret_n is 0 at the end. Valid until the next call. */
static int next_expected(struct inventory *l, const char **ret, size_t *ret_n, struct pale_err *e)
{
    for (;;) {
        const uint8_t *from = l->expected.data + l->at;
        size_t there = l->expected.len - l->at;
        const uint8_t *end = there ? memchr(from, '\n', there) : NULL;
        if (end) {
            *ret = (const char *)from;
            *ret_n = (size_t)(end - from) + 1;
            l->at += *ret_n;
            return 0;
        }
        buf_consume(&l->expected, l->at);
        l->at = 0;
        if (!buf_reserve(&l->expected, PENDING_BYTES))
            return err_set(e, PALE_CORRUPT, "the image's inventory has a line that is too long");
        ssize_t n = fd_read_full(l->expected_fd, l->expected.data + l->expected.len, PENDING_BYTES);
        if (n < 0)
            return err_os(e, "read the image's inventory");
        if (n == 0 && l->expected.len)
            return err_set(e, PALE_CORRUPT, "the image's inventory is cut");
        if (n == 0) {
            *ret_n = 0;
            return 0;
        }
        l->expected.len += (size_t)n;
    }
}

/* The path of a line: between the first tab and the next, or the end. */
static const char *path_in(const char *line, size_t n, size_t *ret_n)
{
    const char *tab = n ? memchr(line, '\t', n) : NULL;
    const char *from = tab ? tab + 1 : line;
    size_t rest = n - (size_t)(from - line), len = 0;
    while (len < rest && from[len] != '\t' && from[len] != '\n')
        len++;
    *ret_n = len;
    return from;
}

/* Which of two paths an inventory has first: a folder's entries come before its longer-named neighbours. */
static int compare_paths(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t n = a_n < b_n ? a_n : b_n, i = 0;
    while (i < n && a[i] == b[i])
        i++;
    int x = i == a_n ? -2 : a[i] == '/' ? -1 : (unsigned char)a[i], y = i == b_n ? -2 : b[i] == '/' ? -1 : (unsigned char)b[i];
    return x - y;
}

static int tell_difference(struct inventory *l, const char *expected, size_t n, struct pale_err *e)
{
    char shown[256];
    size_t want_n, got_n;
    const char *want = path_in(expected, n, &want_n), *got = path_in((const char *)l->line.data, l->line.len, &got_n);
    int order = n == 0 ? 1 : l->line.len == 0 ? -1 : compare_paths(want, want_n, got, got_n);
    if (order < 0)
        return err_set(e, PALE_CORRUPT, "%s is missing from the image", quote_into(shown, sizeof(shown), want, want_n));
    quote_into(shown, sizeof(shown), got, got_n);
    if (order > 0)
        return err_set(e, PALE_CORRUPT, "%s is in the image and was not when it was built", shown);
    const char *what = expected[0] != (char)l->line.data[0]              ? "kind"
                       : expected[0] == 'l'                              ? "target"
                       : n < 7 || memcmp(expected, l->line.data, 6) != 0 ? "mode"
                                                                         : "content";
    return err_set(e, PALE_CORRUPT, "%s is not what it was when the image was built: its %s has changed", shown, what);
}

/* The line that was made: digested, compared, and in time written. */
static int put_line(struct inventory *l, struct pale_err *e)
{
    const char *expected = "";
    size_t n = 0;
    if (l->line.failed)
        return err_nomem(e);
    if (l->expected_fd >= 0) {
        int r = next_expected(l, &expected, &n, e);
        if (r < 0)
            return r;
        if (n != l->line.len || memcmp(expected, l->line.data, n) != 0)
            return tell_difference(l, expected, n, e);
    }
    sha256_add(&l->digest, l->line.data, l->line.len);
    if (l->out_fd < 0)
        return 0;
    buf_add(&l->pending, l->line.data, l->line.len);
    return l->pending.len >= PENDING_BYTES ? flush(l, e) : 0;
}

int inventory_preface(struct inventory *l, const char *lines, struct pale_err *e)
{
    int r = 0;
    for (const char *at = lines; r == 0 && *at;) {
        size_t n = strcspn(at, "\n") + 1;
        buf_clear(&l->line);
        buf_add(&l->line, at, n);
        r = put_line(l, e);
        at += n;
    }
    return r;
}

void inventory_add_name(struct buf *b, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c > ' ' && *c < 0x7f && *c != '\\')
            buf_add(b, c, 1);
        else
            buf_addf(b, "\\x%02x", *c);
}

int inventory_put(struct inventory *l, const struct inventory_line *line, struct pale_err *e)
{
    buf_clear(&l->line);
    buf_add(&l->line, &line->kind, 1);
    if (line->kind != 'l')
        buf_addf(&l->line, " %04o", line->mode);
    if (line->kind == 'f')
        buf_addf(&l->line, " %llu %s", (unsigned long long)line->size, line->content);
    buf_add_text(&l->line, "\t");
    inventory_add_name(&l->line, line->path);
    if (line->kind == 'l') {
        buf_add_text(&l->line, "\t");
        inventory_add_name(&l->line, line->target);
    }
    buf_add_text(&l->line, "\n");
    return put_line(l, e);
}

int inventory_close(struct inventory *l, char ret[SHA256_HEX], struct pale_err *e)
{
    uint8_t d[SHA256_BYTES];
    const char *expected = "";
    size_t n = 0;
    int r = l->expected_fd >= 0 ? next_expected(l, &expected, &n, e) : 0;
    buf_clear(&l->line);
    if (r == 0 && n)
        r = tell_difference(l, expected, n, e);
    if (r == 0)
        r = flush(l, e);
    inventory_drop(l);
    sha256_final(&l->digest, d);
    if (r == 0)
        sha256_to_hex(d, ret);
    return r;
}

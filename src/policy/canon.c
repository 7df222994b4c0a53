/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the canonical text of a policy.
 *
 * How it works: a first line that names the format, then the keys in the order of the field table, `key value`, a list key
 * once for each item; limits carry ` asked` or ` default`; the last line is `end`, so that no cut-off text is a policy.
 * Bytes of a value that are not printable ASCII, blanks and % are written %XX. The text may be hostile. The parser takes
 * line after line through a cursor and sets each value as a flag would; at the end it writes what it understood and compares:
 * text that is not byte for byte the canonical form of its meaning is refused, so each policy has one text and one digest. */
#include <string.h>

#include "base/limits.h"
#include "policy/field.h"

#define FIRST_LINE "pale-policy 1"
#define LAST_LINE "end"
#define ASKED " asked"
#define DEFAULT " default"

static bool is_plain(unsigned char c)
{
    return c > 0x20 && c < 0x7f && c != '%';
}

/* Writes the bytes of out from `start` on again, escaped. Most values need none of it. */
static void escape_value(struct buf *out, size_t start)
{
    size_t at = start;
    while (at < out->len && is_plain(out->data[at]))
        at++;
    if (at == out->len)
        return;
    own_buf raw = {0};
    buf_init(&raw, POLICY_TEXT_MAX);
    buf_add(&raw, out->data + start, out->len - start);
    out->failed |= raw.failed;
    out->len = start;
    for (size_t i = 0; i < raw.len; i++) {
        if (is_plain(raw.data[i]))
            buf_add(out, &raw.data[i], 1);
        else
            buf_addf(out, "%%%02X", raw.data[i]);
    }
}

static void write_line(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    buf_add_text(out, f->key);
    buf_add_text(out, " ");
    size_t start = out->len;
    f->kind->text(f, p, i, out);
    escape_value(out, start);
    if (f->kind == &limit_kind)
        buf_add_text(out, ((const struct policy_limit *)field_value_const(f, p))->asked ? ASKED : DEFAULT);
    buf_add_text(out, "\n");
}

void policy_write(const struct policy *p, struct buf *out)
{
    const struct field *f;
    buf_add_text(out, FIRST_LINE "\n");
    for (size_t k = 0; (f = field_at(k)); k++)
        for (size_t i = 0; i < f->kind->count(f, p); i++)
            write_line(f, p, i, out);
    buf_add_text(out, LAST_LINE "\n");
}

void policy_digest(const struct policy *p, char ret[SHA256_HEX])
{
    own_buf text = {0};
    buf_init(&text, SIZE_MAX / 2);
    policy_write(p, &text);
    if (text.failed)
        ret[0] = 0;
    else
        sha256_hex(text.data, text.len, ret);
}

struct cursor {
    const char *at, *end;
    size_t line; /* that at stands on, from 1 */
};

/* The line under the cursor, without its newline; false at the end or where the newline is missing. */
static bool peek(const struct cursor *c, size_t *ret_len)
{
    const char *nl = memchr(c->at, '\n', (size_t)(c->end - c->at));
    if (!nl)
        return false;
    *ret_len = (size_t)(nl - c->at);
    return true;
}

static void advance(struct cursor *c, size_t len)
{
    c->at += len + 1;
    c->line++;
}

static bool take_exact(struct cursor *c, const char *want)
{
    size_t len;
    if (!peek(c, &len) || len != strlen(want) || memcmp(c->at, want, len) != 0)
        return false;
    advance(c, len);
    return true;
}

static bool has_key(const struct cursor *c, const char *key, size_t *ret_len)
{
    size_t n = strlen(key);
    return peek(c, ret_len) && *ret_len > n && memcmp(c->at, key, n) == 0 && c->at[n] == ' ';
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes write_value. A NUL cannot be part of any value. */
static bool read_value(const char *s, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_digit(s[i + 1]) : -1, low = high >= 0 ? hex_digit(s[i + 2]) : -1;
            if (low < 0 || high + low == 0)
                return false;
            c = (unsigned char)(high << 4 | low);
            i += 2;
        } else if (c <= 0x20 || c >= 0x7f) {
            return false;
        }
        buf_add(out, &c, 1);
    }
    return !out->failed;
}

static bool ends_with(const char *s, size_t len, const char *tail)
{
    size_t n = strlen(tail);
    return len >= n && memcmp(s + len - n, tail, n) == 0;
}

/* One line whose key is already known to be f's. */
static int read_line(struct cursor *c, const struct field *f, size_t len, struct policy *p, struct pale_err *e)
{
    char mem[256]; /* most values are no longer */
    own_buf value = {0};
    const char *s = c->at + strlen(f->key) + 1;
    size_t n = len - strlen(f->key) - 1;
    bool is_limit = f->kind == &limit_kind, asked = ends_with(s, n, ASKED);
    buf_init_lent(&value, POLICY_TEXT_MAX, mem, sizeof(mem));
    if (is_limit) {
        if (!asked && !ends_with(s, n, DEFAULT))
            return err_set(e, PALE_CORRUPT, "policy text line %zu: %s says neither asked nor default", c->line, f->key);
        n -= strlen(asked ? ASKED : DEFAULT);
    }
    if (!read_value(s, n, &value))
        return err_set(e, PALE_CORRUPT, "policy text line %zu: the value of %s is not in its canonical form", c->line, f->key);
    if (f->kind->set(f, p, buf_text(&value), e) < 0)
        return err_prefix(e, "policy text line %zu: %s", c->line, f->key);
    if (is_limit) {
        struct policy_limit *l = field_value(f, p);
        l->asked = asked && l->value;
    }
    advance(c, len);
    return 0;
}

static int read_field(struct cursor *c, const struct field *f, struct policy *p, struct pale_err *e)
{
    size_t len = 0;
    if (f->kind->shape == SHAPE_ONE) {
        if (!has_key(c, f->key, &len))
            return err_set(e, PALE_CORRUPT, "policy text line %zu: %s is missing", c->line, f->key);
        return read_line(c, f, len, p, e);
    }
    while (has_key(c, f->key, &len)) {
        int r = read_line(c, f, len, p, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int is_canonical(const struct policy *p, const char *text, size_t len, struct pale_err *e)
{
    own_buf again = {0};
    buf_init(&again, POLICY_TEXT_MAX + 1);
    policy_write(p, &again);
    if (again.len != len || memcmp(again.data, text, len) != 0)
        return err_set(e, PALE_CORRUPT, "policy text: it is not in its canonical form (order, doubles or spelling of a value)");
    return 0;
}

int policy_parse(const char *text, size_t len, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    const struct field *f;
    struct cursor c = {text, text + len, 1};
    if (len > POLICY_TEXT_MAX)
        return err_set(e, PALE_LIMIT, "policy text: it is longer than %u bytes", POLICY_TEXT_MAX);
    if (!take_exact(&c, FIRST_LINE))
        return err_set(e, PALE_CORRUPT, "policy text line 1: it does not begin with \"" FIRST_LINE "\"");
    for (size_t i = 0; (f = field_at(i)); i++) {
        int r = read_field(&c, f, &p, e);
        if (r < 0)
            return r;
    }
    if (!take_exact(&c, LAST_LINE))
        return err_set(e, PALE_CORRUPT, "policy text line %zu: an unknown or misplaced line, or the end is cut off", c.line);
    if (c.at != c.end)
        return err_set(e, PALE_CORRUPT, "policy text line %zu: something stands after the end", c.line);
    int r = is_canonical(&p, text, len, e);
    if (r < 0)
        return r;
    *ret = p;
    p = (struct policy){0};
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of JSON. */
#include "base/jsonread.h"

#include <string.h>

#include "base/quote.h"

struct scan {
    const char *at, *end;
};

static void blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool take(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* After the opening quote. */
static bool scan_text(struct scan *s, struct jsonread *ret)
{
    *ret = (struct jsonread){.kind = JSONREAD_TEXT, .at = s->at};
    while (s->at < s->end && *s->at != '"') {
        unsigned point;
        if ((unsigned char)*s->at < 0x20)
            return false;
        if (*s->at != '\\') {
            size_t n = quote_utf8((const unsigned char *)s->at, (size_t)(s->end - s->at), &point);
            if (n == 0)
                return false;
            s->at += n;
            continue;
        }
        s->at++;
        if (s->at == s->end || !memchr("\"\\/bfnrtu", *s->at, 9))
            return false;
        if (*s->at++ == 'u')
            for (int i = 0; i < 4; i++)
                if (s->at == s->end || hex_digit(*s->at++) < 0)
                    return false;
    }
    ret->len = (size_t)(s->at - ret->at);
    return take(s, '"');
}

static bool digits(struct scan *s)
{
    const char *from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > from;
}

static bool scan_number(struct scan *s, struct jsonread *ret)
{
    *ret = (struct jsonread){.kind = JSONREAD_NUMBER, .at = s->at};
    (void)take(s, '-');
    if (!take(s, '0') && !digits(s))
        return false;
    if (take(s, '.') && !digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            (void)take(s, '-');
        if (!digits(s))
            return false;
    }
    ret->len = (size_t)(s->at - ret->at);
    return true;
}

static bool scan_word(struct scan *s, const char *word, enum jsonread_kind kind, struct jsonread *ret)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    *ret = (struct jsonread){.kind = kind, .at = s->at, .len = n};
    s->at += n;
    return true;
}

static bool scan_value(struct scan *s, int depth, struct jsonread *ret);

static bool scan_item(struct scan *s, int depth, bool is_object, struct jsonread *key, struct jsonread *ret)
{
    blanks(s);
    *key = (struct jsonread){.kind = JSONREAD_TEXT, .at = s->at};
    if (is_object) {
        if (!take(s, '"') || !scan_text(s, key))
            return false;
        blanks(s);
        if (!take(s, ':'))
            return false;
        blanks(s);
    }
    return scan_value(s, depth, ret);
}

static bool scan_many(struct scan *s, int depth, bool is_object, struct jsonread *ret)
{
    struct jsonread key, item;
    *ret = (struct jsonread){.kind = is_object ? JSONREAD_OBJECT : JSONREAD_LIST, .at = s->at};
    s->at++;
    blanks(s);
    bool more = !take(s, is_object ? '}' : ']');
    while (more) {
        if (!scan_item(s, depth, is_object, &key, &item))
            return false;
        blanks(s);
        more = take(s, ',');
        if (!more && !take(s, is_object ? '}' : ']'))
            return false;
    }
    ret->len = (size_t)(s->at - ret->at);
    return true;
}

static bool scan_value(struct scan *s, int depth, struct jsonread *ret)
{
    if (s->at == s->end || depth == 0)
        return false;
    switch (*s->at) {
    case '{':
    case '[':
        return scan_many(s, depth - 1, *s->at == '{', ret);
    case '"':
        s->at++;
        return scan_text(s, ret);
    case 't':
        return scan_word(s, "true", JSONREAD_TRUE, ret);
    case 'f':
        return scan_word(s, "false", JSONREAD_FALSE, ret);
    case 'n':
        return scan_word(s, "null", JSONREAD_NULL, ret);
    default:
        return scan_number(s, ret);
    }
}

bool jsonread_parse(const char *p, size_t n, struct jsonread *ret)
{
    struct scan s = {p, p + n};
    blanks(&s);
    if (!scan_value(&s, JSONREAD_DEPTH, ret))
        return false;
    blanks(&s);
    return s.at == s.end;
}

bool jsonread_next(const struct jsonread *v, size_t *pos, struct jsonread *key, struct jsonread *ret)
{
    struct jsonread none;
    bool is_object = v->kind == JSONREAD_OBJECT;
    if (!is_object && v->kind != JSONREAD_LIST)
        return false;
    struct scan s = {v->at + (*pos ? *pos : 1), v->at + v->len - 1};
    blanks(&s);
    if (s.at == s.end || !scan_item(&s, JSONREAD_DEPTH, is_object, key ? key : &none, ret))
        return false;
    blanks(&s);
    (void)take(&s, ',');
    *pos = (size_t)(s.at - v->at);
    return true;
}

bool jsonread_get(const struct jsonread *v, const char *key, struct jsonread *ret)
{
    struct jsonread name, item;
    size_t pos = 0, n = strlen(key);
    if (v->kind != JSONREAD_OBJECT)
        return false;
    while (jsonread_next(v, &pos, &name, &item))
        if (name.len == n && memcmp(name.at, key, n) == 0) {
            *ret = item;
            return true;
        }
    return false;
}

/* Four hex digits that were checked already. */
static unsigned unit(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)hex_digit(p[i]);
    return v;
}

static size_t put_utf8(unsigned point, char out[4])
{
    if (point < 0x80)
        return out[0] = (char)point, 1;
    if (point < 0x800)
        return out[0] = (char)(0xc0 | point >> 6), out[1] = (char)(0x80 | (point & 63)), 2;
    if (point < 0x10000)
        return out[0] = (char)(0xe0 | point >> 12), out[1] = (char)(0x80 | (point >> 6 & 63)), out[2] = (char)(0x80 | (point & 63)), 3;
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 63));
    out[2] = (char)(0x80 | (point >> 6 & 63));
    out[3] = (char)(0x80 | (point & 63));
    return 4;
}

/* An escape, after its backslash; *at moves behind it. Halves of pairs that stand alone, and NUL, become U+FFFD. */
static unsigned escape(const char **at, const char *end)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    char c = *(*at)++;
    const char *found = strchr(from, c);
    if (c != 'u')
        return (unsigned char)(found && c ? to[found - from] : c);
    unsigned point = unit(*at);
    *at += 4;
    if (point >= 0xd800 && point < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        unsigned low = unit(*at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            return 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return point == 0 || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
}

const char *jsonread_text(const struct jsonread *v, char *ret, size_t cap)
{
    size_t n = 0;
    const char *at = v->at, *end = v->at + (v->kind == JSONREAD_TEXT ? v->len : 0);
    while (at < end) {
        char out[4];
        size_t m = 1;
        out[0] = *at++;
        if (out[0] == '\\')
            m = put_utf8(escape(&at, end), out);
        if (n + m >= cap)
            break;
        memcpy(ret + n, out, m);
        n += m;
    }
    ret[n] = 0;
    return ret;
}

bool jsonread_u64(const struct jsonread *v, uint64_t *ret)
{
    uint64_t n = 0;
    if (v->kind != JSONREAD_NUMBER || v->len == 0)
        return false;
    for (size_t i = 0; i < v->len; i++) {
        unsigned d = (unsigned)(v->at[i] - '0');
        if (d > 9 || n > (UINT64_MAX - d) / 10)
            return false;
        n = n * 10 + d;
    }
    *ret = n;
    return true;
}

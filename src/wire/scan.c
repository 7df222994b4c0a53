/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of short texts. Pure. */
#include "wire/scan.h"

#include <string.h>

int scan_letter(struct scan *c, const char *letters, char *ret)
{
    if (c->at == c->n)
        return 0;
    char found = c->p[c->at];
    if (!found || !strchr(letters, found))
        return -1;
    *ret = found;
    c->at++;
    return 1;
}

int scan_space(struct scan *c)
{
    char space;
    return scan_letter(c, " ", &space);
}

int scan_number(struct scan *c, unsigned base, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    size_t digits = 0;
    for (; c->at < c->n; c->at++, digits++) {
        char d = c->p[c->at];
        if (d == ' ' && digits > 0) {
            c->at++;
            *ret = v;
            return 1;
        }
        if (d < '0' || d >= '0' + (char)base || (digits > 0 && v == 0))
            return -1;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, (uint64_t)(d - '0'), &v) || v > max)
            return -1;
    }
    return 0;
}

int scan_signed(struct scan *c, int64_t *ret)
{
    uint64_t v = 0;
    if (c->at == c->n)
        return 0;
    bool negative = c->p[c->at] == '-';
    c->at += negative;
    int r = scan_number(c, 10, (uint64_t)INT64_MAX + negative, &v);
    if (r <= 0)
        return r;
    if (negative && v == 0)
        return -1;
    *ret = negative ? -(int64_t)(v - 1) - 1 : (int64_t)v;
    return 1;
}

int scan_text(struct scan *c, size_t cap, const char **ret)
{
    size_t left = c->n - c->at;
    const char *begin = c->p + c->at, *nul = left ? memchr(begin, 0, left < cap ? left : cap) : NULL;
    if (!nul)
        return left < cap ? 0 : -1;
    *ret = begin;
    c->at += (size_t)(nul - begin) + 1;
    return 1;
}

int scan_bytes(struct scan *c, size_t n, const char **ret)
{
    if (c->n - c->at < n)
        return 0;
    *ret = c->p + c->at;
    c->at += n;
    return 1;
}

static bool is_dots(const char *s, size_t n)
{
    return (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.');
}

bool scan_is_plain_name(const char *s)
{
    return !strchr(s, '/') && !is_dots(s, strlen(s));
}

bool scan_is_relative(const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "/");
        if (n == 0 || is_dots(s, n) || (s[n] == '/' && !s[n + 1]))
            return false;
        s += n;
        s += *s == '/';
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the canonical form of host names. Pure.
 *
 * How it works: the bytes come from a box, from the network or from a policy and may be hostile. They are read once, with their length,
 * into the canonical form; everything after this point compares that form and nothing else. Whatever does not fit it is refused and never
 * repaired, but for upper case and one dot at the end, which mean the same to every reader of names. */
#include "net/hostname.h"

#include <assert.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum hostname_trouble look_at_label(const char *s, size_t n)
{
    if (n == 0 || n > DOMAIN_LABEL_MAX)
        return HOSTNAME_LABEL;
    for (size_t i = 0; i < n; i++)
        if (!(s[i] >= 'a' && s[i] <= 'z') && !is_digit(s[i]) && s[i] != '-')
            return HOSTNAME_BYTE;
    return s[0] == '-' || s[n - 1] == '-' ? HOSTNAME_HYPHEN : HOSTNAME_GOOD;
}

/* A last label of digits, or one that begins like a hexadecimal number, is how addresses look to inet_aton and its like. */
static bool is_number(const char *s, size_t n)
{
    if (n >= 2 && s[0] == '0' && s[1] == 'x')
        return true;
    for (size_t i = 0; i < n; i++)
        if (!is_digit(s[i]))
            return false;
    return true;
}

/* Looks at a name in lower case, without its last dot. */
static enum hostname_trouble look_at(const char *s, size_t n, bool single)
{
    size_t from = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && s[i] != '.')
            continue;
        enum hostname_trouble t = look_at_label(s + from, i - from);
        if (t != HOSTNAME_GOOD)
            return t;
        if (i == n && is_number(s + from, i - from))
            return HOSTNAME_NUMBER;
        if (i == n && from == 0 && !single)
            return HOSTNAME_SINGLE;
        from = i + 1;
    }
    return HOSTNAME_GOOD;
}

/* Lower case, and the last dot gone; false if that is empty or too long. */
static bool fold(const char *p, size_t n, struct hostname *ret)
{
    if (n > 0 && p[n - 1] == '.')
        n--;
    if (n == 0 || n > DOMAIN_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        ret->text[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] - 'A' + 'a') : p[i];
    ret->text[n] = 0;
    ret->len = n;
    return true;
}

enum hostname_trouble hostname_canon(const char *p, size_t n, bool single, struct hostname *ret)
{
    struct hostname h;
    if (!fold(p, n, &h))
        return HOSTNAME_LENGTH;
    enum hostname_trouble t = look_at(h.text, h.len, single);
    if (t == HOSTNAME_GOOD)
        *ret = h;
    return t;
}

enum hostname_trouble hostname_pattern(const char *p, size_t n, bool single, struct hostname *ret)
{
    struct hostname h;
    if (n == 1 && p[0] == '*') {
        *ret = (struct hostname){.len = 1, .text = "*"};
        return HOSTNAME_GOOD;
    }
    /* The star takes as much room as the shortest label that it stands for, so that the limit is that of a name. */
    if (!fold(p, n, &h))
        return HOSTNAME_LENGTH;
    size_t star = h.len >= 2 && h.text[0] == '*' && h.text[1] == '.' ? 2 : 0;
    enum hostname_trouble t = look_at(h.text + star, h.len - star, single);
    if (t == HOSTNAME_GOOD)
        *ret = h;
    return t;
}

bool hostname_covers(const char *outer, const char *inner)
{
    if (strcmp(outer, inner) == 0 || strcmp(outer, "*") == 0)
        return true;
    if (outer[0] != '*')
        return false;
    /* "*.x.org" covers what ends with ".x.org" and has something before it; "*.a.x.org" does. */
    size_t suffix = strlen(outer) - 1, n = strlen(inner);
    return n > suffix && strcmp(inner + n - suffix, outer + 1) == 0;
}

const char *hostname_trouble_text(enum hostname_trouble t)
{
    static const char *const texts[] = {
        [HOSTNAME_GOOD] = "is a host name",
        [HOSTNAME_LENGTH] = "is no host name of 1 to 253 bytes",
        [HOSTNAME_BYTE] = "is no host name; labels are letters, digits and inner hyphens (write other scripts as xn--…)",
        [HOSTNAME_LABEL] = "is no host name; between the dots there are 1 to 63 bytes",
        [HOSTNAME_HYPHEN] = "is no host name; a label neither begins nor ends with a hyphen",
        [HOSTNAME_NUMBER] = "is an address or could be read as one; a host name is wanted",
        [HOSTNAME_SINGLE] = "is only part of a host name; write all of it, as in www.example.org",
    };
    static_assert(sizeof(texts) / sizeof(texts[0]) == HOSTNAME_TROUBLES, "a text each");
    return texts[t];
}

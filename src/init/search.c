/* SPDX-License-Identifier: Apache-2.0 */
/* Owns searches.
 *
 * How it works: if every match has a certain text in it, that is looked for in all that is left, and the library is asked only about
 * lines that have it; a pattern that is nothing but such a text needs no library. Else the library looks through all that is left at
 * once, and a match that runs over a line's end is tried again on its first line alone. The library gives up at bytes that are no
 * characters of its locale, so there are two expressions: one for UTF-8, and one that takes every byte for a character. */
#include "init/search.h"

#include <string.h>

/* --- the literal --- */

static unsigned char small(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool starts_small(const char *p, const char *literal, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (small(p[i]) != (unsigned char)literal[i])
            return false;
    return true;
}

/* memmem for a literal in small letters. */
static const char *find_small(const char *p, size_t len, const char *literal, size_t n)
{
    unsigned char first = (unsigned char)literal[0];
    for (size_t i = 0; i + n <= len; i++)
        if (small(p[i]) == first && starts_small(p + i, literal, n))
            return p + i;
    return NULL;
}

static const char *find_literal(const struct search *s, const char *p, size_t n)
{
    const struct pattern *k = &s->pattern;
    return k->ignore_case ? find_small(p, n, k->literal, k->literal_len) : memmem(p, n, k->literal, k->literal_len);
}

/* --- the library --- */

static int compile(struct search *s, regex_t *re, struct pale_err *e)
{
    char why[200];
    int r = regcomp(re, s->pattern.regex, REG_EXTENDED | REG_NEWLINE | (s->pattern.ignore_case ? REG_ICASE : 0));
    if (r == 0)
        return 0;
    regerror(r, re, why, sizeof(why));
    return err_set(e, r == REG_ESPACE ? PALE_LIMIT : PALE_BAD_INPUT, "the pattern is no regular expression: %s", why);
}

int search_init(struct search *s, const char *pattern, bool fixed, bool ignore_case, struct pale_err *e)
{
    int r = pattern_read(&s->pattern, pattern, fixed, ignore_case, e);
    if (r < 0 || s->pattern.plain)
        return r;
    s->bytes = newlocale(LC_ALL_MASK, "C", NULL);
    s->characters = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
    if (!s->bytes)
        return err_nomem(e);
    if (!s->characters)
        s->characters = s->bytes;
    uselocale(s->bytes);
    r = compile(s, &s->of_bytes, e);
    if (r < 0)
        return r;
    uselocale(s->characters);
    return compile(s, &s->of_characters, e);
}

static bool matches(const struct search *s, const struct search_text *t, size_t from, regmatch_t *ret)
{
    return regexec(t->is_utf8 ? &s->of_characters : &s->of_bytes, t->at + from, 1, ret, 0) == 0;
}

static bool line_matches(const struct search *s, struct search_text *t, size_t begin, size_t end)
{
    regmatch_t m;
    char was = t->at[end];
    t->at[end] = 0;
    bool found = matches(s, t, begin, &m);
    t->at[end] = was;
    return found;
}

/* --- lines --- */

static size_t line_begin(const struct search_text *t, size_t from, size_t at)
{
    const char *nl = at > from ? memrchr(t->at + from, '\n', at - from) : NULL;
    return nl ? (size_t)(nl - t->at) + 1 : from;
}

static size_t line_end(const struct search_text *t, size_t at)
{
    const char *nl = memchr(t->at + at, '\n', t->len - at);
    return nl ? (size_t)(nl - t->at) : t->len;
}

static bool next_by_literal(struct search *s, struct search_text *t, size_t from, size_t *ret_begin, size_t *ret_end)
{
    while (from < t->len) {
        const char *found = find_literal(s, t->at + from, t->len - from);
        if (!found)
            return false;
        *ret_begin = line_begin(t, from, (size_t)(found - t->at));
        *ret_end = line_end(t, (size_t)(found - t->at));
        if (s->pattern.plain || line_matches(s, t, *ret_begin, *ret_end))
            return true;
        from = *ret_end + 1;
    }
    return false;
}

bool search_next(struct search *s, struct search_text *t, size_t from, size_t *ret_begin, size_t *ret_end)
{
    regmatch_t m;
    if (!s->pattern.plain)
        uselocale(t->is_utf8 ? s->characters : s->bytes);
    if (s->pattern.literal_len > 0)
        return next_by_literal(s, t, from, ret_begin, ret_end);
    while (from < t->len && matches(s, t, from, &m)) {
        size_t at = from + (size_t)m.rm_so;
        if (at >= t->len && t->len > 0 && t->at[t->len - 1] == '\n')
            return false; /* behind the last line's end there is none */
        *ret_begin = line_begin(t, from, at);
        *ret_end = line_end(t, at);
        if (from + (size_t)m.rm_eo <= *ret_end || line_matches(s, t, *ret_begin, *ret_end))
            return true;
        from = *ret_end + 1;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns patterns for paths. Pure. */
#include "base/wildcard.h"

#include <string.h>

#include "base/quote.h"

/* --- one name --- */

/* The character at s, or the byte if it is none. Returns its length. */
static size_t character(const char *s, unsigned *ret)
{
    size_t n = strnlen(s, 4), step = quote_utf8((const unsigned char *)s, n, ret);
    if (step > 0)
        return step;
    *ret = (unsigned char)*s + 0x110000u;
    return 1;
}

static size_t class_character(const char *p, unsigned *ret)
{
    return *p == '\\' && p[1] ? 1 + character(p + 1, ret) : character(p, ret);
}

/* A class at p, which is '['. Returns its length, 0 if it has no end; says whether c is in it. */
static size_t class_fits(const char *p, unsigned c, bool *ret)
{
    const char *at = p + 1;
    bool negative = *at == '!' || *at == '^', in = false;
    at += negative;
    for (bool first = true; *at && (*at != ']' || first); first = false) {
        unsigned low, high;
        at += class_character(at, &low);
        high = low;
        if (at[0] == '-' && at[1] && at[1] != ']')
            at += 1 + class_character(at + 1, &high);
        in = in || (c >= low && c <= high);
    }
    *ret = in != negative;
    return *at == ']' ? (size_t)(at - p) + 1 : 0;
}

/* One part of a pattern that is not a star, against the character at name. Returns the part's length, 0 if it does not fit. */
static size_t one_fits(const char *part, const char *name, size_t *ret_step)
{
    unsigned c, want;
    bool in = false;
    if (!*name)
        return 0;
    *ret_step = character(name, &c);
    if (*part == '?')
        return 1;
    size_t n = *part == '[' ? class_fits(part, c, &in) : 0;
    if (n > 0)
        return in ? n : 0;
    n = class_character(part, &want);
    return want == c ? n : 0;
}

bool wildcard_name_fits(const char *part, const char *name)
{
    const char *star = NULL, *star_name = NULL;
    while (*part || *name) {
        size_t step = 0, n;
        if (*part == '*') {
            star = ++part;
            star_name = name;
        } else if (*part && (n = one_fits(part, name, &step)) > 0) {
            part += n;
            name += step;
        } else if (star && *star_name) { /* the star takes one more */
            unsigned c;
            star_name += character(star_name, &c);
            part = star;
            name = star_name;
        } else
            return false;
    }
    return true;
}

/* --- braces --- */

/* The length of a group with a choice at p, which is '{'; 0 if it is none. */
static size_t group_length(const char *p)
{
    size_t depth = 0, i = 0;
    bool choice = false;
    for (; p[i]; i++) {
        if (p[i] == '\\' && p[i + 1])
            i++;
        else if (p[i] == '{')
            depth++;
        else if (p[i] == '}' && --depth == 0)
            return choice ? i + 1 : 0;
        else if (p[i] == ',' && depth == 1)
            choice = true;
    }
    return 0;
}

/* The first group with a choice; NULL if there is none. */
static const char *find_group(const char *s, size_t *ret_len)
{
    for (; *s; s++) {
        if (*s == '\\' && s[1])
            s++;
        else if (*s == '{' && (*ret_len = group_length(s)) > 0)
            return s;
    }
    return NULL;
}

/* The end of the choice at p: the next comma or brace of its own depth. */
static const char *choice_end(const char *p)
{
    for (size_t depth = 0;; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '{')
            depth++;
        else if (depth == 0 && (*p == ',' || *p == '}'))
            return p;
        else if (*p == '}')
            depth--;
    }
}

static char *add_text(struct wildcard *w, const char *p, size_t n)
{
    char *at = w->text + w->used;
    if (n >= sizeof(w->text) - w->used)
        return NULL;
    memcpy(at, p, n);
    at[n] = 0;
    w->used += n;
    return at;
}

static int too_much(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "the pattern has more than %d alternatives, or is too long", WILDCARD_ALTERNATIVES);
}

#define SPREAD_MAX (4 * WILDCARD_ALTERNATIVES)

struct spread {
    const char *text[SPREAD_MAX];
    size_t count;
};

/* Each choice of a group, with what stands around it. */
static int spread_group(struct wildcard *w, struct spread *s, const char *whole, const char *group, size_t len, struct pale_err *e)
{
    for (const char *at = group + 1, *end; at < group + len; at = end + 1) {
        end = choice_end(at);
        char *text = s->count < SPREAD_MAX ? add_text(w, whole, (size_t)(group - whole)) : NULL;
        if (!text || !add_text(w, at, (size_t)(end - at)) || !add_text(w, group + len, strlen(group + len)))
            return too_much(e);
        w->used++;
        s->text[s->count++] = text;
    }
    return 0;
}

/* --- the pattern --- */

static int add_name(struct wildcard_row *row, const char *name, struct pale_err *e)
{
    if (strcmp(name, "..") == 0)
        return err_set(e, PALE_BAD_INPUT, "the pattern leads upwards; give another path instead");
    if (!name[0] || strcmp(name, ".") == 0)
        return 0;
    if (row->names == WILDCARD_NAMES)
        return err_set(e, PALE_BAD_INPUT, "the pattern has more than %d names", WILDCARD_NAMES);
    bool deep = strcmp(name, "**") == 0;
    if (deep && row->names > 0 && (row->deep >> (row->names - 1) & 1))
        return 0;
    row->deep |= (uint32_t)deep << row->names;
    row->name[row->names++] = name;
    return 0;
}

/* Splits one alternative, in its own text, into names. */
static int add_row(struct wildcard *w, char *text, bool anywhere, struct pale_err *e)
{
    struct wildcard_row *row = &w->row[w->count];
    int r = 0;
    if (w->count == WILDCARD_ALTERNATIVES)
        return too_much(e);
    *row = (struct wildcard_row){0};
    if (text[0] == '/')
        return err_set(e, PALE_BAD_INPUT, "the pattern is relative to the path; only all of it may begin with a slash");
    if (anywhere && !strchr(text, '/'))
        r = add_name(row, "**", e);
    for (char *at = text, *slash; r == 0 && at; at = slash) {
        slash = strchr(at, '/');
        if (slash)
            *slash++ = 0;
        r = add_name(row, at, e);
    }
    if (r == 0 && row->names > 0 && (row->deep >> (row->names - 1) & 1))
        r = add_name(row, "*", e); /* what is below a folder, and not the folder */
    if (r == 0 && row->names == 0)
        return err_set(e, PALE_BAD_INPUT, "the pattern has no name in it");
    w->count += r == 0;
    return r;
}

int wildcard_parse(struct wildcard *w, const char *pattern, bool anywhere, struct pale_err *e)
{
    struct spread s = {.count = 1};
    int r = 0;
    w->count = w->used = 0;
    if (strlen(pattern) > PATTERN_BYTES_MAX)
        return err_set(e, PALE_BAD_INPUT, "the pattern is longer than %d bytes", PATTERN_BYTES_MAX);
    s.text[0] = add_text(w, pattern, strlen(pattern));
    w->used++;
    for (size_t i = 0; r == 0 && i < s.count; i++) {
        size_t len = 0;
        const char *group = find_group(s.text[i], &len);
        r = group ? spread_group(w, &s, s.text[i], group, len, e) : add_row(w, (char *)s.text[i], anywhere, e);
    }
    return r;
}

const char *wildcard_split(const char *pattern, char *ret_folder, size_t cap)
{
    const char *rest = pattern;
    for (const char *at = pattern; *at && !strchr("*?[{\\", *at); at++)
        if (*at == '/')
            rest = at + 1;
    if (!strpbrk(rest, "*?[{\\") && !*rest && rest > pattern + 1) /* the last name of a pattern that has none is a match, not the folder */
        for (rest--; rest > pattern && rest[-1] != '/';)
            rest--;
    size_t n = (size_t)(rest - pattern);
    while (n > 1 && pattern[n - 1] == '/')
        n--;
    if (n >= cap)
        n = 0, rest = pattern;
    memcpy(ret_folder, pattern, n);
    ret_folder[n] = 0;
    return rest;
}

/* --- walking --- */

/* A ** may stand for no folder at all. */
static uint32_t with_none(const struct wildcard_row *row, uint32_t at)
{
    for (size_t i = 0; i < row->names; i++)
        if ((at >> i & 1) && (row->deep >> i & 1))
            at |= 1u << (i + 1);
    return at;
}

void wildcard_begin(const struct wildcard *w, struct wildcard_state *ret)
{
    for (size_t k = 0; k < w->count; k++)
        ret->at[k] = with_none(&w->row[k], 1);
}

static uint32_t step_row(const struct wildcard_row *row, uint32_t from, const char *name, bool dotted)
{
    uint32_t to = 0;
    for (size_t i = 0; i < row->names; i++) {
        bool deep = row->deep >> i & 1;
        if (!(from >> i & 1) || (dotted && row->name[i][0] != '.'))
            continue;
        if (deep)
            to |= 1u << i;
        else if (wildcard_name_fits(row->name[i], name))
            to |= 1u << (i + 1);
    }
    return with_none(row, to);
}

void wildcard_step(const struct wildcard *w, const struct wildcard_state *from, const char *name, bool dotted, struct wildcard_state *ret)
{
    for (size_t k = 0; k < w->count; k++)
        ret->at[k] = from->at[k] ? step_row(&w->row[k], from->at[k], name, dotted) : 0;
}

bool wildcard_is_match(const struct wildcard *w, const struct wildcard_state *s)
{
    for (size_t k = 0; k < w->count; k++)
        if (s->at[k] >> w->row[k].names & 1)
            return true;
    return false;
}

bool wildcard_goes_on(const struct wildcard *w, const struct wildcard_state *s)
{
    for (size_t k = 0; k < w->count; k++)
        if (s->at[k] & ((1u << w->row[k].names) - 1))
            return true;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the application of hunks. Pure. */
#include "init/hunks.h"

#include <string.h>

struct work {
    const char *path;
    const char *at;
    size_t len;
    uint32_t *index; /* where each line begins; behind the last, where the text ends */
    size_t lines;
    size_t done;   /* lines that are used */
    int64_t shift; /* by how much the last hunk stood elsewhere than it said */
    size_t number; /* of the hunk, from 1 */
    char *out;
    size_t out_len;
};

static void find_lines(struct work *w)
{
    for (size_t at = 0; at < w->len;) {
        const char *nl = memchr(w->at + at, '\n', w->len - at);
        w->index[w->lines++] = (uint32_t)at;
        at = nl ? (size_t)(nl - w->at) + 1 : w->len;
    }
    w->index[w->lines] = (uint32_t)w->len;
}

/* --- comparing --- */

/* Is this line of the file that of a hunk? One that says it has no newline is the last, and has none. */
static bool is_same(const struct work *w, size_t line, const struct change_line *l)
{
    size_t at = w->index[line], n = w->index[line + 1] - at;
    bool ended = n > 0 && w->at[at + n - 1] == '\n';
    n -= ended;
    return n == l->len && !(l->bare && ended) && memcmp(w->at + at, l->at, n) == 0;
}

static bool stands_at(const struct work *w, const struct change_hunk *h, size_t line)
{
    struct change_line l;
    for (size_t at = 0; change_next_line(h, &at, &l);) {
        if (l.mark != ' ' && l.mark != '-')
            continue;
        if (line >= w->lines || !is_same(w, line, &l))
            return false;
        line++;
    }
    return true;
}

static size_t old_lines(const struct change_hunk *h)
{
    struct change_line l;
    size_t n = 0;
    for (size_t at = 0; change_next_line(h, &at, &l);)
        n += l.mark == ' ' || l.mark == '-';
    return n;
}

/* --- errors --- */

static int is_not_there(const struct work *w, const struct change_hunk *h, struct pale_err *e)
{
    struct change_line l = {0};
    for (size_t at = 0; change_next_line(h, &at, &l) && l.mark != ' ' && l.mark != '-';)
        l = (struct change_line){0};
    const char *why = w->len > 1 && memmem(w->at, w->len, "\r\n", 2) && !memmem(h->text, h->len, "\r\n", 2)
                          ? "the file's lines end in \\r\\n"
                          : "read the file again, and give its lines exactly";
    return err_set(e, PALE_BAD_INPUT, "%.250s: hunk %zu, which begins with \"%.*s\", does not stand in the file: %s", w->path, w->number,
                   l.len < 100 ? (int)l.len : 100, l.at ? l.at : "", why);
}

static int is_ambiguous(const struct work *w, size_t one, size_t other, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "%.250s: hunk %zu stands in the file in line %zu and in line %zu; give more lines around it", w->path,
                   w->number, one + 1, other + 1);
}

/* --- finding --- */

static void put(struct work *w, const char *p, size_t n)
{
    memcpy(w->out + w->out_len, p, n);
    w->out_len += n;
}

static void put_old(struct work *w, size_t to)
{
    put(w, w->at + w->index[w->done], w->index[to] - w->index[w->done]);
    w->done = to;
}

static bool find_from(const struct work *w, const struct change_hunk *h, size_t from, size_t last, size_t *ret)
{
    for (; from <= last; from++)
        if (stands_at(w, h, from)) {
            *ret = from;
            return true;
        }
    return false;
}

/* Near the line it names. */
static int find_near(const struct work *w, const struct change_hunk *h, size_t last, bool inserts, size_t *ret, struct pale_err *e)
{
    int64_t want = (int64_t)h->line - !inserts + w->shift, low = (int64_t)w->done, high = (int64_t)last;
    want = want < low ? low : want > high ? high : want;
    for (int64_t away = 0; want - away >= low || want + away <= high; away++) {
        bool below = want - away >= low && stands_at(w, h, (size_t)(want - away));
        bool above = away > 0 && want + away <= high && stands_at(w, h, (size_t)(want + away));
        if (below && above)
            return is_ambiguous(w, (size_t)(want - away), (size_t)(want + away), e);
        if (below || above) {
            *ret = (size_t)(below ? want - away : want + away);
            return 0;
        }
    }
    return is_not_there(w, h, e);
}

static bool is_anchor(const struct work *w, size_t line, const struct change_hunk *h)
{
    const char *p = w->at + w->index[line];
    size_t n = w->index[line + 1] - w->index[line];
    while (n > 0 && strchr(" \t\r\n", p[n - 1]) && p[n - 1])
        n--;
    while (n > 0 && (*p == ' ' || *p == '\t'))
        p++, n--;
    return n == h->anchor_len && memcmp(p, h->anchor, n) == 0;
}

/* Moves to the line that a hunk names; it may be the hunk's own first line too. */
static int find_anchor(struct work *w, const struct change_hunk *h, struct pale_err *e)
{
    for (size_t line = w->done; line < w->lines; line++)
        if (is_anchor(w, line, h)) {
            put_old(w, h->len > 0 ? line : line + 1);
            return 0;
        }
    return err_set(e, PALE_BAD_INPUT, "%.250s: hunk %zu stands behind \"%.*s\", and the file has no such line there", w->path, w->number,
                   h->anchor_len < 100 ? (int)h->anchor_len : 100, h->anchor);
}

static int find(const struct work *w, const struct change_hunk *h, size_t *ret, struct pale_err *e)
{
    size_t n = old_lines(h), other = 0;
    if (n > w->lines - w->done)
        return is_not_there(w, h, e);
    size_t last = w->lines - n;
    if (h->counted)
        return find_near(w, h, last, n == 0, ret, e);
    if (n == 0) { /* nothing but new lines */
        *ret = h->anchor && !h->at_end ? w->done + 1 : w->lines;
        return 0;
    }
    if (!find_from(w, h, h->at_end ? last : w->done, last, ret))
        return is_not_there(w, h, e);
    if (!h->anchor && find_from(w, h, *ret + 1, last, &other))
        return is_ambiguous(w, *ret, other, e);
    return 0;
}

/* --- writing --- */

static void put_new(struct work *w, const struct change_line *l)
{
    if (w->out_len > 0 && w->out[w->out_len - 1] != '\n')
        put(w, "\n", 1); /* what was the last line is so no more */
    put(w, l->at, l->len);
    if (!l->bare)
        put(w, "\n", 1);
}

static void replace(struct work *w, const struct change_hunk *h, size_t line)
{
    struct change_line l;
    put_old(w, line);
    for (size_t at = 0; change_next_line(h, &at, &l);) {
        if (l.mark == ' ')
            put_old(w, w->done + 1);
        else if (l.mark == '-')
            w->done++;
        else if (l.mark == '+')
            put_new(w, &l);
    }
    if (h->counted)
        w->shift = (int64_t)line - ((int64_t)h->line - (old_lines(h) > 0));
}

int hunks_apply(const struct changes *c, const struct change *ch, const struct hunks_text *old, uint32_t *index, char *out, size_t *ret_len,
                struct pale_err *e)
{
    struct work w = {.path = ch->path, .at = old->at, .len = old->len, .index = index, .out = out};
    find_lines(&w);
    for (size_t i = 0; i < ch->hunks; i++) {
        const struct change_hunk *h = &c->hunk[ch->first + i];
        size_t line = 0;
        w.number = i + 1;
        int r = h->anchor ? find_anchor(&w, h, e) : 0;
        if (r == 0 && h->len > 0)
            r = find(&w, h, &line, e);
        if (r < 0)
            return r;
        if (h->len > 0)
            replace(&w, h, line);
    }
    put_old(&w, w.lines);
    *ret_len = w.out_len;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the three-way merge of texts. Pure. */
#include "tree/merge3.h"

#include <string.h>

#include "tree/script.h"

/* One of the two changes, and how far it is merged. */
struct way {
    const struct script *s;
    struct script_hunk h; /* the next run; valid if more */
    bool more;
    int64_t shift; /* of a line of the base that no run has touched: where it stands here, less where it stands there */
};

static void advance(struct way *w)
{
    w->shift = (int64_t)w->h.is_to - w->h.was_to;
    w->more = script_next(w->s, &w->h);
}

/* A stretch of the base that at least one side has changed, and the same stretch on one side. */
struct stretch {
    uint32_t from, to;
};

struct part {
    bool changed;
    int64_t from, to;
};

/* Takes up every run of one side that touches the stretch, which grows by it. */
static bool absorb(struct way *w, struct stretch *s, struct part *p)
{
    bool any = false;
    while (w->more && w->h.was_from <= s->to) {
        if (!p->changed)
            p->from = (int64_t)s->from + w->shift;
        p->changed = any = true;
        s->to = w->h.was_to > s->to ? w->h.was_to : s->to;
        advance(w);
    }
    return any;
}

static const uint8_t *part_bytes(const struct way *w, const struct part *p, size_t *ret_len)
{
    return script_lines(&w->s->is, (uint32_t)p->from, (uint32_t)p->to, ret_len);
}

/* The next stretch; false if it is in conflict. */
static bool merge_stretch(struct way *ours, struct way *theirs, uint32_t *at, struct buf *out)
{
    uint32_t first = !theirs->more || (ours->more && ours->h.was_from < theirs->h.was_from) ? ours->h.was_from : theirs->h.was_from;
    struct stretch s = {first, first};
    struct part a = {0}, b = {0};
    a.from = (int64_t)first + ours->shift;
    b.from = (int64_t)first + theirs->shift;
    for (bool grew = true; grew;) {
        grew = absorb(ours, &s, &a);
        grew = absorb(theirs, &s, &b) || grew;
    }
    a.to = (int64_t)s.to + ours->shift;
    b.to = (int64_t)s.to + theirs->shift;
    size_t n, m, kept;
    const uint8_t *before = script_lines(&ours->s->was, *at, s.from, &kept);
    const uint8_t *p = part_bytes(ours, &a, &n), *q = part_bytes(theirs, &b, &m);
    if (a.changed && b.changed && (n != m || memcmp(p, q, n) != 0))
        return false;
    buf_add(out, before, kept);
    buf_add(out, a.changed ? p : q, a.changed ? n : m);
    *at = s.to;
    return true;
}

int merge3_run(struct merge3_text base, struct merge3_text ours, struct merge3_text theirs, bool *ret_clean, struct buf *out,
               struct pale_err *e)
{
    own_script to_ours = {0}, to_theirs = {0};
    size_t had = out->len, kept;
    uint32_t at = 0;
    if (script_is_binary(base.at, base.len) || script_is_binary(ours.at, ours.len) || script_is_binary(theirs.at, theirs.len)) {
        *ret_clean = false;
        return 0;
    }
    int r = script_init(&to_ours, base.at, base.len, ours.at, ours.len, e);
    if (r == 0)
        r = script_init(&to_theirs, base.at, base.len, theirs.at, theirs.len, e);
    if (r < 0)
        return r;
    struct way a = {.s = &to_ours}, b = {.s = &to_theirs};
    advance(&a);
    advance(&b);
    bool clean = true;
    while (clean && (a.more || b.more))
        clean = merge_stretch(&a, &b, &at, out);
    if (clean) {
        const uint8_t *rest = script_lines(&to_ours.was, at, to_ours.was.count, &kept);
        buf_add(out, rest, kept);
    }
    if (!clean || out->failed)
        out->len = had;
    *ret_clean = clean;
    return out->failed ? err_set(e, PALE_LIMIT, "the merged text is longer than %zu bytes", out->max) : 0;
}

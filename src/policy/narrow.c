/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question whether one policy lies within another.
 *
 * How it works: key by key through the field table, then the keys that bring host folders in, together. A policy lies
 * within another only if it does so in every field; what cannot be compared counts as wider. */
#include "base/limits.h"
#include "policy/field.h"
#include "policy/share.h"

#define SHOWN_MOST 160

/* The value of a key as one short text. */
static const char *all_items(const struct field *f, const struct policy *p, struct buf *out)
{
    size_t n = f->kind->count(f, p);
    buf_init(out, POLICY_TEXT_MAX);
    if (n == 0)
        buf_add_text(out, "nothing");
    for (size_t i = 0; i < n && out->len < SHOWN_MOST; i++) {
        if (i)
            buf_add_text(out, ", ");
        field_show(f, p, i, out);
    }
    if (out->len <= SHOWN_MOST)
        return buf_text(out);
    /* Cut before a character, not within one. */
    size_t end = SHOWN_MOST;
    while (end > 0 && (out->data[end] & 0xc0) == 0x80)
        end--;
    out->len = end;
    buf_add_text(out, "…");
    return buf_text(out);
}

static int widens(const struct field *f, const struct policy *parent, const struct policy *child, struct pale_err *e)
{
    own_buf from = {0}, to = {0};
    return err_set(e, PALE_DENIED, "%s: widened from %s to %s; only the operator may widen a policy", f->key, all_items(f, parent, &from),
                   all_items(f, child, &to));
}

int policy_narrow(const struct policy *parent, const struct policy *child, struct pale_err *e)
{
    const struct field *f;
    for (size_t i = 0; (f = field_at(i)); i++)
        if (f->kind->within && !f->kind->within(f, parent, child))
            return widens(f, parent, child, e);
    own_shares ours = {0}, theirs = {0};
    int r = shares_init(&theirs, parent, e);
    if (r == 0)
        r = shares_init(&ours, child, e);
    if (r == 0)
        r = shares_narrow(&theirs, &ours, e);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keys that are lists of plain texts: host paths, and guard names. */
#include "policy/list.h"

#include <string.h>

#include "base/quote.h"
#include "policy/guard.h"
#include "policy/hostpath.h"
#include "policy/strlist.h"

size_t list_count(const struct field *f, const struct policy *p)
{
    const struct policy_strings *l = field_value_const(f, p);
    return l->count;
}

void list_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_strings *l = field_value_const(f, p);
    buf_add_text(out, l->item[i]);
}

void list_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_strings *l = field_value_const(f, p);
    quote_text(out, l->item[i], strlen(l->item[i]), 200);
}

void list_done(const struct field *f, struct policy *p)
{
    strlist_done(field_value(f, p));
}

static int paths_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    const struct path_row *row = f->row;
    int r = hostpath_check(value, row->use, e);
    return r < 0 ? r : strlist_add(field_value(f, p), value, e);
}

const struct field_kind paths_kind = {.shape = SHAPE_LIST,
                                      .count = list_count,
                                      .text = list_text,
                                      .show = list_show,
                                      .set = paths_set,
                                      .weight = field_weight_wider,
                                      .done = list_done};

/* "-NAME" takes a name out, so that a default can be given up knowingly, one by one. */
static int guards_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    struct policy_strings *l = field_value(f, p);
    bool take_out = value[0] == '-';
    const char *name = value + take_out;
    int r = guard_check(name, e);
    if (r < 0)
        return r;
    if (!take_out)
        return strlist_add(l, name, e);
    size_t at = strlist_find(l, name);
    if (at == l->count) {
        char shown[100];
        quote_into(shown, sizeof(shown), name, strlen(name));
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not in the list, so it cannot be taken out; pale policy show lists it", shown);
    }
    strlist_drop(l, at);
    return 0;
}

static bool guards_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct policy_strings *a = field_value_const(f, parent), *b = field_value_const(f, child);
    for (size_t i = 0; i < a->count; i++)
        if (!guard_hit(b, a->item[i]))
            return false;
    return true;
}

static int guards_weight(const struct field *f, const struct policy *p, size_t i)
{
    (void)f, (void)p, (void)i;
    return -1;
}

const struct field_kind guards_kind = {.shape = SHAPE_LIST,
                                       .count = list_count,
                                       .text = list_text,
                                       .show = list_show,
                                       .set = guards_set,
                                       .within = guards_within,
                                       .weight = guards_weight,
                                       .done = list_done};

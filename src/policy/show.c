/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a policy as people and machines read it: listing, JSON, and the difference between two. */
#include <string.h>

#include "base/limits.h"
#include "policy/field.h"

#define KEY_WIDTH 20

void policy_show(const struct policy *p, struct buf *out)
{
    const struct field *f;
    for (size_t k = 0; (f = field_at(k)); k++) {
        size_t n = f->kind->count(f, p);
        buf_addf(out, "%-*s", KEY_WIDTH, f->key);
        if (n == 0)
            buf_add_text(out, "none");
        for (size_t i = 0; i < n; i++) {
            if (i)
                buf_addf(out, "\n%-*s", KEY_WIDTH, "");
            field_show(f, p, i, out);
        }
        buf_add_text(out, "\n");
    }
}

static void item_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    own_buf text = {0};
    if (f->kind->json) {
        f->kind->json(f, p, i, j, key);
        return;
    }
    buf_init(&text, POLICY_TEXT_MAX);
    f->kind->text(f, p, i, &text);
    json_text(j, key, buf_text(&text));
}

static void field_json(const struct field *f, const struct policy *p, struct json *j, const char *key)
{
    size_t n = f->kind->count(f, p);
    bool pairs = f->kind->shape == SHAPE_PAIRS;
    if (f->kind->shape == SHAPE_ONE) {
        item_json(f, p, 0, j, key);
        return;
    }
    if (pairs)
        json_begin_object(j, key);
    else
        json_begin_list(j, key);
    for (size_t i = 0; i < n; i++)
        item_json(f, p, i, j, NULL);
    if (pairs)
        json_end_object(j);
    else
        json_end_list(j);
}

/* Which variables that env.allow names do not come in, as far as their names tell. */
static void held_back_json(const struct policy *p, struct json *j)
{
    json_begin_list(j, "held_back");
    for (size_t i = 0; i < p->env_allow.count; i++)
        if (policy_env_verdict(p, p->env_allow.item[i], NULL) == ENV_HELD_BACK)
            json_text(j, NULL, p->env_allow.item[i]);
    json_end_list(j);
}

/* Keys with a dot stand in an object named by what is before it; the table keeps such keys together. */
void policy_json(const struct policy *p, struct json *j, const char *key)
{
    const struct field *f;
    char open[32] = "";
    json_begin_object(j, key);
    for (size_t k = 0; (f = field_at(k)); k++) {
        const char *dot = strchr(f->key, '.');
        size_t n = dot ? (size_t)(dot - f->key) : 0;
        if (strlen(open) != n || memcmp(open, f->key, n) != 0) {
            if (open[0])
                json_end_object(j);
            memset(open, 0, sizeof(open));
            memcpy(open, f->key, n);
            if (n)
                json_begin_object(j, open);
        }
        field_json(f, p, j, dot ? dot + 1 : f->key);
        if (f->kind == &env_allow_kind)
            held_back_json(p, j);
    }
    if (open[0])
        json_end_object(j);
    json_end_object(j);
}

struct report {
    struct buf *out;
    struct json *j;
    size_t count;
};

/* from or to may be NULL: the item is new, or gone. */
static void tell(struct report *r, const struct field *f, const char *from, const char *to, const char *effect)
{
    r->count++;
    if (r->out) {
        buf_addf(r->out, "%s: ", f->key);
        if (from && to)
            buf_addf(r->out, "%s -> %s", from, to);
        else
            buf_addf(r->out, "%c %s", from ? '-' : '+', from ? from : to);
        buf_addf(r->out, " (%s)\n", effect);
    }
    if (r->j) {
        json_begin_object(r->j, NULL);
        json_text(r->j, "key", f->key);
        if (from)
            json_text(r->j, "from", from);
        if (to)
            json_text(r->j, "to", to);
        json_text(r->j, "effect", effect);
        json_end_object(r->j);
    }
}

static void text_of(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    buf_init(out, POLICY_TEXT_MAX);
    f->kind->text(f, p, i, out);
}

static const char *effect_of_one(const struct field *f, const struct policy *a, const struct policy *b)
{
    bool less, more;
    if (f->kind == &choice_kind && !((const struct choice_row *)f->row)->within) {
        /* The values of such a set rise from narrow to wide. */
        unsigned from = *(const unsigned *)field_value_const(f, a), to = *(const unsigned *)field_value_const(f, b);
        return from < to ? "wider" : "narrower";
    }
    if (!f->kind->within || (f->kind == &path_kind && !((const struct path_row *)f->row)->within))
        return "different";
    less = f->kind->within(f, a, b);
    more = f->kind->within(f, b, a);
    return less && !more ? "narrower" : more && !less ? "wider" : "different";
}

static void diff_one(struct report *r, const struct field *f, const struct policy *a, const struct policy *b)
{
    own_buf from = {0}, to = {0}, from_shown = {0}, to_shown = {0};
    text_of(f, a, 0, &from);
    text_of(f, b, 0, &to);
    buf_init(&from_shown, POLICY_TEXT_MAX);
    buf_init(&to_shown, POLICY_TEXT_MAX);
    field_show(f, a, 0, &from_shown);
    field_show(f, b, 0, &to_shown);
    bool same_text = strcmp(buf_text(&from), buf_text(&to)) == 0, same_shown = strcmp(buf_text(&from_shown), buf_text(&to_shown)) == 0;
    if (same_text && same_shown)
        return;
    /* Rounding may show two values alike. */
    bool exact = same_shown;
    tell(r, f, buf_text(exact ? &from : &from_shown), buf_text(exact ? &to : &to_shown), effect_of_one(f, a, b));
}

static bool has_item(const struct field *f, const struct policy *p, const char *text)
{
    for (size_t i = 0; i < f->kind->count(f, p); i++) {
        own_buf one = {0};
        text_of(f, p, i, &one);
        if (strcmp(buf_text(&one), text) == 0)
            return true;
    }
    return false;
}

/* Tells the items of p that other lacks. */
static void diff_items(struct report *r, const struct field *f, const struct policy *p, const struct policy *other, bool gone)
{
    for (size_t i = 0; i < f->kind->count(f, p); i++) {
        own_buf text = {0}, shown = {0};
        text_of(f, p, i, &text);
        if (has_item(f, other, buf_text(&text)))
            continue;
        int weight = f->kind->weight(f, p, i) * (gone ? -1 : 1);
        buf_init(&shown, POLICY_TEXT_MAX);
        field_show(f, p, i, &shown);
        tell(r, f, gone ? buf_text(&shown) : NULL, gone ? NULL : buf_text(&shown),
             weight > 0   ? "wider"
             : weight < 0 ? "narrower"
                          : "different");
    }
}

size_t policy_diff(const struct policy *a, const struct policy *b, struct buf *out, struct json *j)
{
    const struct field *f;
    struct report r = {out, j, 0};
    for (size_t k = 0; (f = field_at(k)); k++) {
        if (f->kind->shape == SHAPE_ONE) {
            diff_one(&r, f, a, b);
            continue;
        }
        diff_items(&r, f, a, b, true);
        diff_items(&r, f, b, a, false);
    }
    return r.count;
}

static bool is_live_key(const char *key)
{
    static const char *const live[] = {"network.mode", "network.egress", "network.presets"};
    for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
        if (strcmp(key, live[i]) == 0)
            return true;
    return false;
}

const char *policy_needs_start(const struct policy *old, const struct policy *new, bool has_gateway)
{
    const struct field *f;
    for (size_t k = 0; (f = field_at(k)); k++) {
        struct report r = {NULL, NULL, 0};
        if (has_gateway && new->network != NETWORK_HOST && is_live_key(f->key))
            continue;
        if (f->kind->shape == SHAPE_ONE)
            diff_one(&r, f, old, new);
        else {
            diff_items(&r, f, old, new, true);
            diff_items(&r, f, new, old, false);
        }
        if (r.count > 0)
            return f->key;
    }
    return NULL;
}

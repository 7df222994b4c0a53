/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a policy as a file would say it: what differs from the defaults, and nothing else. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "policy/field.h"

/* Item i as policy_set takes it. Returns the text, valid until out changes. */
static const char *item(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    buf_clear(out);
    f->kind->text(f, p, i, out);
    return buf_text(out);
}

/* Does the other policy have an item of this text? */
static bool has(const struct field *f, const struct policy *p, const char *text)
{
    own_buf other = {0};
    buf_init(&other, POLICY_TEXT_MAX);
    for (size_t i = 0; i < f->kind->count(f, p); i++)
        if (strcmp(item(f, p, i, &other), text) == 0)
            return true;
    return false;
}

static bool is_default(const struct field *f, const struct policy *p, const struct policy *usual)
{
    own_buf text = {0};
    size_t n = f->kind->count(f, p);
    buf_init(&text, POLICY_TEXT_MAX);
    if (f->kind == &limit_kind && ((const struct policy_limit *)field_value_const(f, p))->asked)
        return false;
    if (n != f->kind->count(f, usual))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!has(f, usual, item(f, p, i, &text)))
            return false;
    return true;
}

static void write_items(const struct field *f, const struct policy *p, const struct policy *usual, struct json *j)
{
    own_buf text = {0}, less = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    buf_init(&less, POLICY_TEXT_MAX);
    for (size_t i = 0; i < f->kind->count(f, p); i++) {
        const char *s = item(f, p, i, &text), *equals = strchr(s, '=');
        char name[ENV_NAME_MAX + 1];
        if (f->kind->shape == SHAPE_PAIRS && equals) {
            snprintf(name, sizeof(name), "%.*s", (int)(equals - s), s);
            json_text(j, name, equals + 1);
        } else if (!has(f, usual, s))
            json_text(j, NULL, s);
    }
    /* What the defaults have and this has not is taken out by name; only guards can be. */
    for (size_t i = 0; f->kind->shape == SHAPE_LIST && i < f->kind->count(f, usual); i++) {
        const char *s = item(f, usual, i, &text);
        if (has(f, p, s))
            continue;
        buf_clear(&less);
        buf_addf(&less, "-%s", s);
        json_text(j, NULL, buf_text(&less));
    }
}

/* A value that nobody insists on, and not the usual one. */
static bool has_default_value(const struct field *f, const struct policy *p)
{
    const struct policy_limit *l = field_value_const(f, p);
    return l->value && !l->asked;
}

static void write_field(const struct field *f, const struct policy *p, const struct policy *usual, struct json *j, const char *key)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    if (f->kind->shape == SHAPE_ONE) {
        (void)item(f, p, 0, &text);
        if (f->kind == &limit_kind && has_default_value(f, p))
            buf_add_text(&text, " default");
        return json_text(j, key, buf_text(&text));
    }
    if (f->kind->shape == SHAPE_PAIRS)
        json_begin_object(j, key);
    else
        json_begin_list(j, key);
    write_items(f, p, usual, j);
    if (f->kind->shape == SHAPE_PAIRS)
        json_end_object(j);
    else
        json_end_list(j);
}

int policy_source(const struct policy *p, struct json *j, const char *key, struct pale_err *e)
{
    own_policy usual = {0};
    const struct field *f;
    char open[32] = "";
    int r = policy_init(&usual, e);
    if (r < 0)
        return r;
    json_begin_object(j, key);
    for (size_t k = 0; (f = field_at(k)); k++) {
        const char *dot = strchr(f->key, '.');
        size_t n = dot ? (size_t)(dot - f->key) : 0;
        if (is_default(f, p, &usual))
            continue;
        if (strlen(open) != n || memcmp(open, f->key, n) != 0) {
            if (open[0])
                json_end_object(j);
            snprintf(open, sizeof(open), "%.*s", (int)n, f->key);
            if (n)
                json_begin_object(j, open);
        }
        write_field(f, p, &usual, j, dot ? dot + 1 : f->key);
    }
    if (open[0])
        json_end_object(j);
    json_end_object(j);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keys with one value: a word of a closed set, an image name, a path that may be absent. Absent is written "-". */
#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "policy/field.h"
#include "policy/hostpath.h"

#define ABSENT "-"

/* A choice is read and written as unsigned, whatever enum it is. */
static_assert(sizeof(enum policy_tier) == sizeof(unsigned) && sizeof(enum policy_project) == sizeof(unsigned) &&
                  sizeof(enum policy_network) == sizeof(unsigned) && sizeof(enum policy_scratch) == sizeof(unsigned) &&
                  sizeof(enum policy_seccomp) == sizeof(unsigned),
              "enums are as wide as unsigned");

static unsigned choice_of(const struct field *f, const struct policy *p)
{
    return *(const unsigned *)field_value_const(f, p);
}

static void choice_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct choice_row *row = f->row;
    unsigned v = choice_of(f, p);
    (void)i;
    buf_add_text(out, v < row->count ? row->names[v] : "unknown");
}

static bool choice_read(const struct choice_row *row, const char *value, unsigned *ret)
{
    for (unsigned v = 0; v < row->count; v++)
        if (strcmp(row->names[v], value) == 0) {
            *ret = v;
            return true;
        }
    for (size_t i = 0; i < sizeof(row->aliases) / sizeof(row->aliases[0]); i++)
        if (row->aliases[i].name && strcmp(row->aliases[i].name, value) == 0) {
            *ret = row->aliases[i].value;
            return true;
        }
    return false;
}

static int choice_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    const struct choice_row *row = f->row;
    char shown[100];
    struct nearest near;
    if (choice_read(row, value, field_value(f, p)))
        return 0;
    own_buf list = {0};
    buf_init(&list, 256);
    nearest_init(&near, value);
    for (unsigned v = 0; v < row->count; v++) {
        buf_addf(&list, "%s%s", v == 0 ? "" : v + 1 == row->count ? " or " : ", ", row->names[v]);
        nearest_offer(&near, row->names[v]);
    }
    quote_into(shown, sizeof(shown), value, strlen(value));
    if (near.best)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not %s; did you mean \"%s\"?", shown, buf_text(&list), near.best);
    return err_set(e, PALE_BAD_INPUT, "\"%s\" is not %s", shown, buf_text(&list));
}

static bool choice_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct choice_row *row = f->row;
    return !row->within || (row->within[choice_of(f, parent)] >> choice_of(f, child) & 1);
}

const struct field_kind choice_kind = {
    .shape = SHAPE_ONE, .count = field_count_one, .text = choice_text, .set = choice_set, .within = choice_within};

static const char *text_of(const struct field *f, const struct policy *p)
{
    return *(char *const *)field_value_const(f, p);
}

static void optional_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const char *s = text_of(f, p);
    (void)i;
    buf_add_text(out, s ? s : ABSENT);
}

static void optional_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const char *s = text_of(f, p);
    (void)i;
    if (s)
        quote_text(out, s, strlen(s), 200);
    else
        buf_add_text(out, "none");
}

static void optional_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const char *s = text_of(f, p);
    (void)i;
    if (s)
        json_text(j, key, s);
    else
        json_put_null(j, key);
}

static int optional_store(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    char **at = field_value(f, p);
    char *copy = NULL;
    if (strcmp(value, ABSENT) != 0) {
        copy = strdup(value);
        if (!copy)
            return err_nomem(e);
    }
    free(*at);
    *at = copy;
    return 0;
}

static void optional_done(const struct field *f, struct policy *p)
{
    free(*(char **)field_value(f, p));
}

/* A name with an optional tag or digest ("debian", "node:22", "x@sha256:…"), or an absolute path of an image folder. */
static bool is_image(const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(s);
    if (n == 0 || n > IMAGE_NAME_MAX || !strchr(plain, s[0]) || strstr(s, "..") || strstr(s, "//"))
        return false;
    for (const char *c = s; *c; c++)
        if (!strchr(plain, *c) && !strchr("._/:@+-", *c))
            return false;
    return s[n - 1] != '/';
}

static int name_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    char shown[100];
    if (value[0] == '/') {
        int r = hostpath_check(value, HOSTPATH_SOURCE_RO, e);
        if (r < 0)
            return r;
    } else if (strcmp(value, ABSENT) != 0 && !is_image(value)) {
        quote_into(shown, sizeof(shown), value, strlen(value));
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no image name (letters, digits and ._/:@+-) and no absolute path", shown);
    }
    return optional_store(f, p, value, e);
}

/* Two roots cannot be compared. */
static bool name_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const char *a = text_of(f, parent), *b = text_of(f, child);
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const struct field_kind name_kind = {.shape = SHAPE_ONE,
                                     .count = field_count_one,
                                     .text = optional_text,
                                     .show = optional_show,
                                     .set = name_set,
                                     .within = name_within,
                                     .json = optional_json,
                                     .done = optional_done};

static int path_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    const struct path_row *row = f->row;
    if (strcmp(value, ABSENT) != 0) {
        int r = hostpath_check(value, row->use, e);
        if (r < 0)
            return r;
    }
    return optional_store(f, p, value, e);
}

/* A bound that the parent has, the child must have too, there or further in. */
static bool path_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct path_row *row = f->row;
    const char *a = text_of(f, parent), *b = text_of(f, child);
    return !row->within || !a || (b && row->within(a, b));
}

const struct field_kind path_kind = {.shape = SHAPE_ONE,
                                     .count = field_count_one,
                                     .text = optional_text,
                                     .show = optional_show,
                                     .set = path_set,
                                     .within = path_within,
                                     .json = optional_json,
                                     .done = optional_done};

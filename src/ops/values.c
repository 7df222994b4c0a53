/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of values by the table of operations.
 *
 * The bytes are a stranger's. Bodies are JSON by jansson with doubled keys refused; what comes out has passed the row's fields: known
 * names, their kinds, their bounds. */
#include "ops/values.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/quote.h"

#define BODY_DEPTH_MAX 16
#define LIST_MAX 4096u

/* Where fields of these may stand, as bits. */
enum { QUERY = 1 << IN_QUERY, BODY = 1 << IN_BODY };

static const struct op_field *find_field(const struct op_field *fields, const char *name, unsigned where, size_t *ret_at)
{
    for (size_t i = 0; fields && fields[i].name; i++)
        if ((where >> fields[i].where & 1) && strcmp(fields[i].name, name) == 0) {
            *ret_at = i;
            return &fields[i];
        }
    return NULL;
}

static int unknown_field(const char *what, const struct op_field *fields, const char *name, unsigned where, struct pale_err *e)
{
    char shown[80];
    struct nearest near;
    nearest_init(&near, name);
    for (size_t i = 0; fields && fields[i].name; i++)
        if (where >> fields[i].where & 1)
            nearest_offer(&near, fields[i].name);
    quote_into(shown, sizeof(shown), name, strlen(name));
    return near.best ? err_set(e, PALE_BAD_INPUT, "%s knows no field %s; did you mean %s?", what, shown, near.best)
                     : err_set(e, PALE_BAD_INPUT, "%s knows no field %s", what, shown);
}

static int wrong(const struct op_field *f, const char *what, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "%s: %s", f->name, what);
}

static int set_text(const struct op_field *f, const char *text, struct value *ret, struct pale_err *e)
{
    char what[80];
    uint64_t most = f->most ? f->most : PATH_BYTES_MAX;
    if (strlen(text) > most) {
        snprintf(what, sizeof(what), "a text of at most %llu bytes", (unsigned long long)most);
        return wrong(f, what, e);
    }
    if (f->kind == KIND_TIME && !number_duration(text, &ret->number))
        return wrong(f, "a time such as 250ms, 30s, 5m, 2h, 1d", e);
    ret->text = text;
    return 0;
}

static int set_number(const struct op_field *f, uint64_t v, struct value *ret, struct pale_err *e)
{
    char what[80];
    if (f->most && v > f->most) {
        snprintf(what, sizeof(what), "a number up to %llu", (unsigned long long)f->most);
        return wrong(f, what, e);
    }
    ret->number = v;
    return 0;
}

static int set_query(const struct op_field *f, const char *text, struct value *ret, struct pale_err *e)
{
    uint64_t v = 0;
    ret->given = true;
    switch (f->kind) {
    case KIND_NUMBER:
        return number_u64(text, UINT64_MAX, &v) ? set_number(f, v, ret, e) : wrong(f, "a whole number", e);
    case KIND_BOOL:
        ret->number = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        return ret->number || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ? 0 : wrong(f, "true or false", e);
    default:
        return set_text(f, text, ret, e);
    }
}

int values_query(struct call *c, struct pale_err *e)
{
    for (size_t i = 0; i < c->target.pairs; i++) {
        size_t at = 0;
        const struct op_field *f = find_field(c->op->fields, c->target.pair[i].key, QUERY, &at);
        int r = f ? set_query(f, c->target.pair[i].value, &c->values[at], e)
                  : unknown_field(c->op->name, c->op->fields, c->target.pair[i].key, QUERY, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool are_texts(const json_t *list, uint64_t most)
{
    size_t i;
    json_t *item;
    if (!json_is_array(list) || json_array_size(list) > (most ? most : LIST_MAX))
        return false;
    json_array_foreach(list, i, item) if (!json_is_string(item)) return false;
    return true;
}

/* Texts, or lists of texts, by name. */
static bool is_map(json_t *map, uint64_t most)
{
    const char *key;
    json_t *item;
    if (!json_is_object(map) || json_object_size(map) > (most ? most : LIST_MAX))
        return false;
    json_object_foreach(map, key, item) if (!json_is_string(item) && !are_texts(item, LIST_MAX)) return false;
    return true;
}

static bool is_deeper(const json_t *v, int depth)
{
    const char *key;
    size_t i;
    json_t *item;
    if (depth == 0)
        return json_is_object(v) || json_is_array(v);
    json_array_foreach((json_t *)v, i, item) if (is_deeper(item, depth - 1)) return true;
    json_object_foreach((json_t *)v, key, item) if (is_deeper(item, depth - 1)) return true;
    return false;
}

static int set_time(const struct op_field *f, const json_t *v, struct value *ret, struct pale_err *e)
{
    if (json_is_string(v))
        return set_text(f, json_string_value(v), ret, e);
    if (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > 1e10)
        return wrong(f, "seconds, or a time such as 30s or 5m", e);
    ret->number = (uint64_t)(json_number_value(v) * 1000);
    return 0;
}

static bool is_command(const json_t *v)
{
    return json_is_string(v) ? json_string_length(v) > 0 : are_texts(v, EXEC_STRINGS_MAX) && json_array_size(v) > 0;
}

static int set_json(const struct op_field *f, json_t *v, struct value *ret, struct pale_err *e)
{
    if (json_is_null(v))
        return 0; /* as if it were not there */
    ret->given = true;
    ret->json = v;
    switch (f->kind) {
    case KIND_TEXT:
        return json_is_string(v) ? set_text(f, json_string_value(v), ret, e) : wrong(f, "a text", e);
    case KIND_TIME:
        return set_time(f, v, ret, e);
    case KIND_NUMBER:
        return json_is_integer(v) && json_integer_value(v) >= 0 ? set_number(f, (uint64_t)json_integer_value(v), ret, e)
                                                                : wrong(f, "a whole number", e);
    case KIND_BOOL:
        ret->number = json_is_true(v);
        return json_is_boolean(v) ? 0 : wrong(f, "true or false", e);
    case KIND_TEXTS:
        return are_texts(v, f->most) ? 0 : wrong(f, "a list of texts", e);
    case KIND_COMMAND:
        return is_command(v) ? 0 : wrong(f, "a list of words, or a text for the shell; not empty", e);
    case KIND_MAP:
        return is_map(v, f->most) ? 0 : wrong(f, "an object of texts", e);
    case KIND_OBJECT:
        return json_is_object(v) ? 0 : wrong(f, "an object", e);
    case KIND_SECONDS:
    case KIND_LIST_OF:
        break;
    }
    return wrong(f, "nothing that is known", e);
}

static int take_fields(const char *what, const struct op_field *fields, json_t *object, unsigned where, struct value *ret,
                       struct pale_err *e)
{
    const char *key;
    json_t *v;
    json_object_foreach(object, key, v)
    {
        size_t at = 0;
        const struct op_field *f = find_field(fields, key, where, &at);
        int r = f ? set_json(f, v, &ret[at], e) : unknown_field(what, fields, key, where, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_required(const char *what, const struct op_field *fields, const struct value *values, struct pale_err *e)
{
    for (size_t i = 0; fields && fields[i].name; i++)
        if (fields[i].required && !values[i].given)
            return err_set(e, PALE_BAD_INPUT, "%s needs %s: %s", what, fields[i].name, fields[i].help);
    return 0;
}

int values_object(const char *what, const struct op_field *fields, json_t *object, struct value *ret, struct pale_err *e)
{
    int r = take_fields(what, fields, object, QUERY | BODY, ret, e);
    return r < 0 ? r : check_required(what, fields, ret, e);
}

int values_body(struct call *c, const char *text, size_t n, struct pale_err *e)
{
    json_error_t why;
    int r = 0;
    if (n > 0) {
        if (memchr(text, 0, n)) /* jansson steps over NULs between tokens */
            return err_set(e, PALE_BAD_INPUT, "the body is not JSON: it has a NUL byte");
        c->body = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
        if (!c->body)
            return err_set(e, PALE_BAD_INPUT, "the body is not JSON: line %d: %.100s", why.line, why.text);
        if (!json_is_object(c->body))
            return err_set(e, PALE_BAD_INPUT, "the body is not a JSON object");
        if (is_deeper(c->body, BODY_DEPTH_MAX))
            return err_set(e, PALE_BAD_INPUT, "the body is nested deeper than %d", BODY_DEPTH_MAX);
        r = take_fields(c->op->name, c->op->fields, c->body, BODY, c->values, e);
    }
    return r < 0 ? r : check_required(c->op->name, c->op->fields, c->values, e);
}

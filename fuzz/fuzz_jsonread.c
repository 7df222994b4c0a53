/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: base/jsonread beside jansson. What one takes the other takes, and understands the same by it, but for what is said here:
 * jsonread has a shallower depth, and takes numbers too large for a double, halves of pairs and doubled keys. */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/number.h"
#include "base/quote.h"
#include "input.h"

static const char *text_at, *text_end;

UNSEEN static void check_span(const struct jsonread *v)
{
    assert(v->at >= text_at && v->at <= text_end && v->len <= (size_t)(text_end - v->at));
}

/* Levels of a value: 1 of one that holds nothing. */
UNSEEN static int levels(json_t *v)
{
    int most = 0, n;
    size_t i;
    const char *key;
    json_t *item;
    json_array_foreach(v, i, item) most = (n = levels(item)) > most ? n : most;
    json_object_foreach(v, key, item) most = (n = levels(item)) > most ? n : most;
    return most + 1;
}

/* A text is the same but for NULs, and cut short it is a beginning of itself. */
static void same_text(const struct jsonread *v, const char *want, size_t n)
{
    char *got = malloc(v->len + 1), *mine = malloc(3 * n + 1), few[8];
    size_t len = 0;
    assert(got && mine);
    for (size_t i = 0; i < n; i++)
        if (want[i])
            mine[len++] = want[i];
        else
            memcpy(mine + len, "\xef\xbf\xbd", 3), len += 3;
    mine[len] = 0;
    assert(jsonread_text(v, got, v->len + 1) == got && strcmp(got, mine) == 0);
    assert(jsonread_text(v, few, sizeof(few)) == few && strlen(few) < sizeof(few) && strncmp(few, mine, strlen(few)) == 0);
    assert(len < sizeof(few) ? strlen(few) == len : strlen(few) + 4 >= sizeof(few));
    free(got);
    free(mine);
}

static void same_number(const struct jsonread *v, const json_t *want)
{
    uint64_t n = 0;
    bool whole = jsonread_u64(v, &n);
    if (json_is_integer(want) && json_integer_value(want) >= 0 && v->at[0] != '-')
        assert(whole && n == (uint64_t)json_integer_value(want));
    else
        assert(!whole);
}

static void same(const struct jsonread *v, json_t *want);

static void same_many(const struct jsonread *v, json_t *want)
{
    struct jsonread key, item, found;
    size_t pos = 0, count = 0;
    bool is_object = v->kind == JSONREAD_OBJECT;
    assert(v->at[0] == (is_object ? '{' : '[') && v->at[v->len - 1] == (is_object ? '}' : ']'));
    for (; jsonread_next(v, &pos, &key, &item); count++) {
        check_span(&key);
        check_span(&item);
        if (!is_object) {
            assert(key.len == 0);
            same(&item, json_array_get(want, count));
            continue;
        }
        char *name = malloc(key.len + 1);
        assert(name);
        jsonread_text(&key, name, key.len + 1);
        json_t *other = json_object_get(want, name);
        assert(other);
        same(&item, other);
        if (!memchr(key.at, '\\', key.len))
            assert(jsonread_get(v, name, &found) && found.at == item.at && found.len == item.len);
        free(name);
    }
    assert(count == (is_object ? json_object_size(want) : json_array_size(want)));
    assert(!jsonread_get(v, "\x01", &found));
}

static void same(const struct jsonread *v, json_t *want)
{
    uint64_t n;
    char none[2];
    check_span(v);
    if (v->kind != JSONREAD_TEXT)
        assert(jsonread_text(v, none, sizeof(none))[0] == 0);
    if (v->kind != JSONREAD_NUMBER)
        assert(!jsonread_u64(v, &n));
    switch (v->kind) {
    case JSONREAD_NULL:
        assert(json_is_null(want));
        return;
    case JSONREAD_FALSE:
        assert(json_is_false(want));
        return;
    case JSONREAD_TRUE:
        assert(json_is_true(want));
        return;
    case JSONREAD_NUMBER:
        assert(json_is_number(want));
        same_number(v, want);
        return;
    case JSONREAD_TEXT:
        assert(json_is_string(want));
        same_text(v, json_string_value(want), json_string_length(want));
        return;
    case JSONREAD_LIST:
        assert(json_is_array(want));
        same_many(v, want);
        return;
    case JSONREAD_OBJECT:
        assert(json_is_object(want));
        same_many(v, want);
    }
}

/* What jansson may refuse that jsonread takes. */
UNSEEN static bool may_differ(const json_error_t *why)
{
    enum json_error_code code = json_error_code(why);
    return code == json_error_numeric_overflow || code == json_error_duplicate_key || code == json_error_null_byte_in_key ||
           strstr(why->text, "invalid Unicode");
}

/* Whole numbers that jansson finds too large: up to 64 bits they are read all the same. */
static void large_number(const struct jsonread *v)
{
    uint64_t got = 0, want = 0;
    char text[32];
    if (v->kind != JSONREAD_NUMBER || v->len >= sizeof(text))
        return;
    memcpy(text, v->at, v->len);
    text[v->len] = 0;
    bool good = number_u64(text, UINT64_MAX, &want);
    assert(jsonread_u64(v, &got) == good && got == want);
}

/* Everything there is, for what cannot be compared. */
static void walk(const struct jsonread *v, int depth)
{
    struct jsonread key, item;
    size_t pos = 0, was = 0;
    char few[8];
    check_span(v);
    assert(depth <= JSONREAD_DEPTH);
    large_number(v);
    jsonread_text(v, few, sizeof(few));
    while (jsonread_next(v, &pos, &key, &item)) {
        assert(pos > was && pos < v->len);
        was = pos;
        walk(&key, depth);
        walk(&item, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t why = {0};
    struct jsonread v;
    char *p = malloc(size ? size : 1); /* of its own, so that one byte too many is seen */
    assert(p);
    memcpy(p, data, size);
    text_at = p;
    text_end = p + size;
    bool good = jsonread_parse(p, size, &v);
    json_t *want = json_loadb(p, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (good)
        walk(&v, 1);
    if (memchr(p, 0, size)) /* jansson steps over those between tokens */
        assert(!good);
    else if (want)
        assert(good == (levels(want) <= JSONREAD_DEPTH));
    else
        assert(!good || may_differ(&why));
    if (good && want)
        same(&v, want);
    json_decref(want);
    free(p);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of request targets. */
#include "net/target.h"

#include <string.h>

/* Where decoded text is put, one after another, each with its NUL. */
struct store {
    char *at, *end;
};

/* Decodes up to one of the stops; *p moves there. NULL if it cannot be. */
static const char *take(struct store *s, const char **p, const char *end, const char *stops, bool plus_is_space)
{
    char *begin = s->at;
    while (*p < end && !strchr(stops, **p)) {
        char c = *(*p)++;
        if (c == '%') {
            int high = end - *p >= 2 ? http_hex((*p)[0]) : -1, low = high >= 0 ? http_hex((*p)[1]) : -1;
            if (low < 0 || high + low == 0)
                return NULL;
            c = (char)(high << 4 | low);
            *p += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '#') {
            return NULL;
        }
        if (s->at + 1 >= s->end)
            return NULL;
        *s->at++ = c;
    }
    *s->at++ = 0;
    return begin;
}

const char *target_get(const struct target *t, const char *key)
{
    for (size_t i = 0; i < t->pairs; i++)
        if (strcmp(t->pair[i].key, key) == 0)
            return t->pair[i].value;
    return NULL;
}

static bool take_pair(struct target *t, struct store *s, const char **p, const char *end)
{
    const char *key = take(s, p, end, "=&", true), *value = "";
    if (!key || key[0] == 0 || t->pairs == TARGET_PAIRS_MAX || target_get(t, key))
        return false;
    if (*p < end && **p == '=') {
        ++*p;
        if (!(value = take(s, p, end, "&", true)))
            return false;
    }
    t->pair[t->pairs].key = key;
    t->pair[t->pairs++].value = value;
    return true;
}

bool target_parse(const struct http_text *t, struct target *ret)
{
    const char *p = t->at, *end = t->at + t->len;
    struct store s = {ret->mem, ret->mem + sizeof(ret->mem)};
    ret->segments = ret->pairs = 0;
    if (t->len == 0 || t->len > HTTP_TARGET_MAX || *p != '/')
        return false;
    for (size_t i = 0; i < t->len; i++)
        if (p[i] <= ' ' || p[i] >= 0x7f)
            return false;
    while (p < end && *p == '/') {
        p++;
        if (ret->segments == 0 && (p == end || *p == '?'))
            break; /* "/" alone */
        const char *segment = take(&s, &p, end, "/?", false);
        if (!segment || segment[0] == 0 || ret->segments == TARGET_SEGMENTS_MAX)
            return false;
        ret->segment[ret->segments++] = segment;
    }
    if (p < end && *p == '?')
        do {
            p++;
            if (!take_pair(ret, &s, &p, end))
                return false;
        } while (p < end);
    return true;
}

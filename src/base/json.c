/* SPDX-License-Identifier: Apache-2.0 */
/* Owns JSON output. */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/quote.h"
#include "base/weak.h"

void json_start(struct json *j, struct buf *out)
{
    *j = (struct json){.out = out};
}

static void string(struct buf *b, const void *p, size_t n)
{
    const unsigned char *s = p;
    buf_add_text(b, "\"");
    if (weak_word("quote")) {
        buf_add(b, p, n);
        n = 0;
    }
    for (size_t i = 0; i < n;) {
        unsigned point = 0;
        size_t run = quote_plain(s + i, n - i);
        if (run > 0) {
            buf_add(b, s + i, run);
            i += run;
            continue;
        }
        size_t len = quote_utf8(s + i, n - i, &point);
        if (len == 0) {
            buf_add_text(b, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (point == '"' || point == '\\')
            buf_addf(b, "\\%c", point);
        else if (point == '\n')
            buf_add_text(b, "\\n");
        else if (point == '\t')
            buf_add_text(b, "\\t");
        else if (point == '\r')
            buf_add_text(b, "\\r");
        else if (quote_is_deceptive(point) && point > 0xffff)
            buf_addf(b, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10), 0xdc00 + ((point - 0x10000) & 0x3ff));
        else if (quote_is_deceptive(point))
            buf_addf(b, "\\u%04x", point);
        else
            buf_add(b, s + i, len);
        i += len;
    }
    buf_add_text(b, "\"");
}

static void before(struct json *j, const char *key)
{
    if (j->more[j->depth])
        buf_add_text(j->out, ",");
    j->more[j->depth] = true;
    if (key) {
        string(j->out, key, strlen(key));
        buf_add_text(j->out, ":");
    }
}

static void open(struct json *j, const char *key, const char *mark)
{
    before(j, key);
    buf_add_text(j->out, mark);
    assert(j->depth + 1 < JSON_DEPTH);
    j->more[++j->depth] = false;
}

static void shut(struct json *j, const char *mark)
{
    assert(j->depth > 0);
    j->depth--;
    buf_add_text(j->out, mark);
}

void json_begin_object(struct json *j, const char *key)
{
    open(j, key, "{");
}

void json_begin_list(struct json *j, const char *key)
{
    open(j, key, "[");
}

void json_end_object(struct json *j)
{
    shut(j, "}");
}

void json_end_list(struct json *j)
{
    shut(j, "]");
}

void json_bytes(struct json *j, const char *key, const void *p, size_t n)
{
    before(j, key);
    string(j->out, p, n);
}

void json_text(struct json *j, const char *key, const char *s)
{
    json_bytes(j, key, s, strlen(s));
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
    before(j, key);
    buf_addf(j->out, "%" PRIu64, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
    before(j, key);
    buf_addf(j->out, "%" PRId64, v);
}

void json_bool(struct json *j, const char *key, bool v)
{
    before(j, key);
    buf_add_text(j->out, v ? "true" : "false");
}

void json_put_null(struct json *j, const char *key)
{
    before(j, key);
    buf_add_text(j->out, "null");
}

void json_raw(struct json *j, const char *key, const void *p, size_t n)
{
    before(j, key);
    buf_add(j->out, p, n);
}

void json_fixed(struct json *j, const char *key, uint64_t v, int places)
{
    uint64_t unit = 1;
    for (int i = 0; i < places; i++)
        unit *= 10;
    before(j, key);
    buf_addf(j->out, "%" PRIu64 ".%0*" PRIu64, v / unit, places, v % unit);
}

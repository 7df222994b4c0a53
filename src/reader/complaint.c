/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of errors in a policy file and how it is printed. */
#include "reader/complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/quote.h"

bool complaints_full(const struct complaints *c)
{
    return c->count == POLICY_ERRORS_MAX;
}

static bool is_after(struct place a, struct place b)
{
    return a.line != b.line ? a.line > b.line : a.column > b.column;
}

/* Kept in order as they come: the C library's sort may ask the kernel for things that a locked program cannot have. */
void complain(struct complaints *c, struct place at, const char *key, const char *fmt, ...)
{
    va_list ap;
    if (complaints_full(c))
        return;
    size_t i = c->count++;
    for (; i > 0 && is_after(c->item[i - 1].place, at); i--)
        c->item[i] = c->item[i - 1];
    struct complaint *one = &c->item[i];
    one->place = at;
    quote_into(one->key, sizeof(one->key), key, strlen(key));
    va_start(ap, fmt);
    vsnprintf(one->text, sizeof(one->text), fmt, ap);
    va_end(ap);
}

void complaints_text(const struct complaints *c, const char *file, struct buf *out)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct complaint *one = &c->item[i];
        quote_text(out, file, strlen(file), PATH_BYTES_MAX);
        buf_addf(out, ":%zu:%zu: %s%s%s\n", one->place.line, one->place.column, one->key, one->key[0] ? ": " : "", one->text);
    }
    if (complaints_full(c))
        buf_addf(out, "There may be more errors than these %d.\n", POLICY_ERRORS_MAX);
}

void complaints_json(const struct complaints *c, const char *file, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_bool(&j, "valid", false);
    json_begin_list(&j, "errors");
    for (size_t i = 0; i < c->count; i++) {
        json_begin_object(&j, NULL);
        json_text(&j, "file", file);
        json_u64(&j, "line", c->item[i].place.line);
        json_u64(&j, "column", c->item[i].place.column);
        json_text(&j, "key", c->item[i].key);
        json_text(&j, "message", c->item[i].text);
        json_end_object(&j);
    }
    json_end_list(&j);
    json_end_object(&j);
    buf_add_text(out, "\n");
}

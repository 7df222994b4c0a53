/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the showing of images. */
#include "cli/shown_image.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/quote.h"
#include "cli/far.h"

#define DIGEST_SHOWN 12

void shown_image_list(struct listing *l, const struct args *a)
{
    static const char *const heads[] = {"NAME", "DIGEST", "FROM", "SIZE", "FILES", "MADE"};
    listing_init(l, a, heads, 6);
}

void shown_image_row(struct listing *l, const char *name, const char *digest, const struct jsonread *facts)
{
    char text[160], made[40];
    table_cell(&l->table, name[0] ? name : "-");
    snprintf(text, sizeof(text), "%.*s", DIGEST_SHOWN, digest);
    table_cell(&l->table, text);
    table_cell(&l->table, far_text(facts, "from", text, sizeof(text)));
    table_cell(&l->table, number_show_bytes(far_number(facts, "bytes"), text, sizeof(text)));
    snprintf(text, sizeof(text), "%llu", (unsigned long long)far_number(facts, "files"));
    table_cell(&l->table, text);
    far_text(facts, "made", made, sizeof(made));
    snprintf(text, sizeof(text), "%.10s %.5s", made, strlen(made) > 16 ? made + 11 : "");
    table_cell(&l->table, text);
}

void shown_image_member(const struct jsonread *key, const struct jsonread *value)
{
    own_buf b = {0}, shown = {0}, quoted = {0};
    struct json j;
    char name[64], text[1024];
    buf_init(&b, IMAGE_JSON_MAX);
    buf_init(&shown, 2 * IMAGE_JSON_MAX);
    buf_init(&quoted, 4 * sizeof(name));
    json_start(&j, &b);
    if (value->kind == JSONREAD_TEXT)
        buf_add_text(&b, jsonread_text(value, text, sizeof(text)));
    else
        far_copy(&j, NULL, value);
    jsonread_text(key, name, sizeof(name));
    quote_again(&quoted, name, strlen(name), sizeof(name));
    quote_again(&shown, b.data, b.len, IMAGE_JSON_MAX);
    printf("%-14s %s\n", buf_text(&quoted), buf_text(&shown));
}

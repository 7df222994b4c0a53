/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of images. */
#include "image/imageline.h"

#include <string.h>

/* The manifest was written by us and read strictly: its values are JSON that goes out as it is. */
static void copy(struct json *j, const char *key, const struct jsonread *v)
{
    size_t quote = v->kind == JSONREAD_TEXT ? 1 : 0;
    json_raw(j, key, v->at - quote, v->len + 2 * quote);
}

static void begin(const struct image *i, bool shows_root, struct json *j)
{
    json_begin_object(j, NULL);
    json_text(j, "name", i->name);
    json_text(j, "digest", i->digest);
    if (shows_root)
        json_text(j, "root", i->root);
}

void imageline_json(const struct image *i, bool shows_root, struct json *j)
{
    static const char *const members[] = {"from", "suite", "bytes", "files", "made"};
    begin(i, shows_root, j);
    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
        struct jsonread m;
        if (jsonread_get(&i->facts, members[k], &m))
            copy(j, members[k], &m);
    }
    json_end_object(j);
}

void imageline_all_json(const struct image *i, bool shows_root, struct json *j)
{
    struct jsonread key, value;
    char name[64];
    begin(i, shows_root, j);
    for (size_t pos = 0; jsonread_next(&i->facts, &pos, &key, &value);) {
        jsonread_text(&key, name, sizeof(name));
        if (strcmp(name, "name") != 0 && strcmp(name, "digest") != 0 && strcmp(name, "root") != 0)
            copy(j, name, &value);
    }
    json_end_object(j);
}

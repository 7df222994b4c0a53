/* SPDX-License-Identifier: Apache-2.0 */
/* Owns manifests. */
#include "image/manifest.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "image/inventory.h"

#define MANIFEST_FORMAT 1

struct config_writer {
    struct json *j;
    const char *list; /* that is open, or NULL */
};

static bool is_list(const char *key)
{
    return strcmp(key, "cwd") != 0 && strcmp(key, "user") != 0;
}

static int put_text(void *arg, const char *key, const char *text)
{
    struct config_writer *w = arg;
    if (w->list && strcmp(w->list, key) != 0) {
        json_end_list(w->j);
        w->list = NULL;
    }
    if (is_list(key) && !w->list) {
        json_begin_list(w->j, key);
        w->list = key;
    }
    json_text(w->j, w->list ? NULL : key, text);
    return 0;
}

static void write_config(struct json *j, const struct ocijson_config *c)
{
    struct config_writer w = {.j = j};
    json_begin_object(j, "config");
    (void)ocijson_each(c, put_text, &w);
    if (w.list)
        json_end_list(j);
    json_end_object(j);
}

static void write_include(struct json *j, const char *names)
{
    json_begin_list(j, "include");
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, ",");
        if (n)
            json_bytes(j, NULL, at, n);
        at += n + (at[n] == ',');
    }
    json_end_list(j);
}

int manifest_write(const struct manifest *m, const struct imprint *i, struct buf *out, struct pale_err *e)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"from", m->from}, {"suite", m->suite}, {"variant", m->variant}, {"file", m->file}, {"source_sha256", m->source_digest}};
    char made[40];
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_u64(&j, "format", MANIFEST_FORMAT);
    json_text(&j, "digest", i->digest);
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
        if (texts[k].value)
            json_text(&j, texts[k].key, texts[k].value);
    if (m->source_digest)
        json_u64(&j, "source_bytes", m->source_bytes);
    if (m->include)
        write_include(&j, m->include);
    if (m->config)
        write_config(&j, m->config);
    json_u64(&j, "bytes", i->bytes);
    json_u64(&j, "files", i->files);
    json_u64(&j, "folders", i->folders);
    json_u64(&j, "links", i->links);
    left_json(&i->left, &j, "left_out");
    json_text(&j, "made", clock_stamp(made, sizeof(made)));
    json_text(&j, "by", m->build);
    json_end_object(&j);
    return out->failed ? err_set(e, PALE_LIMIT, "the image's configuration is too long to be kept") : 0;
}

static int put_line(void *arg, const char *key, const char *text)
{
    struct buf *out = arg;
    buf_addf(out, "# %s ", key);
    inventory_add_name(out, text);
    buf_add_text(out, "\n");
    return 0;
}

int manifest_preface(const struct ocijson_config *c, struct buf *out, struct pale_err *e)
{
    if (c)
        (void)ocijson_each(c, put_line, out);
    return out->failed ? err_set(e, PALE_LIMIT, "the image's configuration is longer than %u bytes", INVENTORY_PREFACE_MAX) : 0;
}

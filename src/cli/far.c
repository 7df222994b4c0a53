/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of what a daemon tells, and the requests that make and remove boxes. */
#include "cli/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"
#include "base/quote.h"
#include "cli/boxflags.h"

const char *far_text(const struct jsonread *v, const char *key, char *ret, size_t cap)
{
    struct jsonread m;
    char text[FAR_TEXT];
    ret[0] = 0;
    if (jsonread_get(v, key, &m)) {
        jsonread_text(&m, text, sizeof(text));
        quote_into(ret, cap, text, strlen(text));
    }
    return ret;
}

uint64_t far_number(const struct jsonread *v, const char *key)
{
    struct jsonread m;
    uint64_t n = 0;
    return jsonread_get(v, key, &m) && jsonread_u64(&m, &n) ? n : 0;
}

static void copy_text(struct json *j, const char *key, const struct jsonread *v)
{
    own_mem char *text = malloc(v->len + 1);
    json_text(j, key, text ? jsonread_text(v, text, v->len + 1) : "");
}

/* As deep as the writer goes; what lies deeper is left out. */
static void copy(struct json *j, const char *key, const struct jsonread *v, int depth)
{
    struct jsonread name, item;
    char word[128];
    switch (v->kind) {
    case JSONREAD_NULL:
        return json_put_null(j, key);
    case JSONREAD_FALSE:
    case JSONREAD_TRUE:
        return json_bool(j, key, v->kind == JSONREAD_TRUE);
    case JSONREAD_NUMBER:
        return json_raw(j, key, v->at, v->len);
    case JSONREAD_TEXT:
        return copy_text(j, key, v);
    case JSONREAD_LIST:
    case JSONREAD_OBJECT:
        break;
    }
    bool is_list = v->kind == JSONREAD_LIST;
    if (is_list)
        json_begin_list(j, key);
    else
        json_begin_object(j, key);
    for (size_t pos = 0; depth > 0 && jsonread_next(v, &pos, &name, &item);)
        copy(j, is_list ? NULL : jsonread_text(&name, word, sizeof(word)), &item, depth - 1);
    if (is_list)
        json_end_list(j);
    else
        json_end_object(j);
}

void far_escape(struct buf *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    for (const char *at = text; *at; at++)
        if (strchr(plain, *at))
            buf_add(b, at, 1);
        else
            buf_addf(b, "%%%02X", (unsigned char)*at);
}

void far_copy(struct json *j, const char *key, const struct jsonread *v)
{
    copy(j, key, v, JSON_DEPTH - 6);
}

void far_copy_member(struct json *j, const struct jsonread *v, const char *key)
{
    struct jsonread m;
    if (jsonread_get(v, key, &m))
        far_copy(j, key, &m);
}

int far_print_members(const struct jsonread *v, const char *const *keys, size_t count)
{
    own_buf out = {0};
    struct json j;
    buf_init(&out, FAR_ANSWER_MAX);
    json_start(&j, &out);
    json_begin_object(&j, NULL);
    for (size_t i = 0; i < count; i++)
        far_copy_member(&j, v, keys[i]);
    json_end_object(&j);
    return cli_json(&out);
}

int far_policy(struct remote *r, const char *box, struct policy *ret, char digest[SHA256_HEX], struct pale_err *e)
{
    char path[BOX_NAME_MAX + 40];
    own_buf text = {0};
    struct jsonread v, m;
    buf_init(&text, FAR_ANSWER_MAX);
    snprintf(path, sizeof(path), "/v1/boxes/%s/policy", box);
    int res = remote_ask(r, "GET", path, NULL, &text, &v, e);
    if (res < 0)
        return res;
    own_mem char *canonical = NULL;
    if (jsonread_get(&v, "canonical", &m) && m.kind == JSONREAD_TEXT && (canonical = malloc(m.len + 1)))
        jsonread_text(&m, canonical, m.len + 1);
    if (!canonical || policy_parse(canonical, strlen(canonical), ret, e) < 0)
        return err_set(e, PALE_PROTOCOL, "the policy of %s cannot be read here; use the same version of pale on both sides", box);
    if (digest)
        policy_digest(ret, digest);
    return 0;
}

/* --- making --- */

/* Paths are those of the daemon's host, and where we stand means nothing there. */
static int check_path(const struct option *o, const char *value, struct pale_err *e)
{
    static const char *const keys[] = {"read", "write", "volumes", "volume_root", "project.path"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(o->key, keys[i]) == 0 && value[0] != '/' && strcmp(value, "-") != 0)
            return err_set(e, PALE_BAD_INPUT, "--%s %s: with --host this is a path of the daemon's host; write all of it", o->name, value);
    return 0;
}

/* Every value of a key, where the first of them stands. */
static int write_key(const struct args *a, int first, struct json *j, struct pale_err *e)
{
    const char *key = a->given[first].option->key;
    json_begin_list(j, key);
    for (int i = first; i < a->given_count; i++) {
        const struct option *o = a->given[i].option;
        if (!o->key || strcmp(o->key, key) != 0)
            continue;
        int r = check_path(o, boxflags_value(a, i), e);
        if (r < 0)
            return r;
        json_text(j, NULL, boxflags_value(a, i));
    }
    json_end_list(j);
    return 0;
}

static int write_sets(const struct args *a, struct json *j, struct pale_err *e)
{
    int r = 0;
    json_begin_object(j, "set");
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; r == 0 && i < a->given_count; i++) {
            const struct option *o = a->given[i].option;
            bool seen = !o->key || boxflags_is_last(o) != (pass == 1);
            for (int before = 0; !seen && before < i; before++)
                seen = a->given[before].option->key && strcmp(a->given[before].option->key, o->key) == 0;
            if (!seen)
                r = write_key(a, i, j, e);
        }
    json_end_object(j);
    return r;
}

static int check_host(const struct args *a, struct policy *p, struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < a->given_count; i++)
        if (boxflags_is_last(a->given[i].option))
            r = policy_set(p, "network.mode", a->given[i].value, e);
    return r < 0 ? r : boxflags_check_host(a, p->network, e);
}

int far_order(const struct args *a, const char *name, const char *ttl, bool start, struct buf *ret, struct pale_err *e)
{
    own_policy p = {0};
    struct json j;
    if (!path_is_box_name(name))
        return err_set(e, PALE_BAD_INPUT, "a box's name is 1 to %d of a-z, 0-9 and '-', and does not begin with '-'", BOX_NAME_MAX);
    json_start(&j, ret);
    json_begin_object(&j, NULL);
    json_text(&j, "name", name);
    json_bool(&j, "start", start);
    if (ttl || args_has(a, "ttl"))
        json_text(&j, "ttl", ttl ? ttl : args_get(a, "ttl"));
    if (args_has(a, "idle"))
        json_text(&j, "idle", args_get(a, "idle"));
    if (args_has(a, "no-autosave"))
        json_bool(&j, "autosave", false);
    if (args_has(a, "ensure"))
        json_bool(&j, "ensure", true);
    int r = 0;
    if (args_has(a, "policy") && (r = boxflags_file(a, &p, e)) == 0)
        r = policy_source(&p, &j, "policy", e);
    if (r == 0)
        r = check_host(a, &p, e);
    if (r == 0)
        r = write_sets(a, &j, e);
    json_end_object(&j);
    return r < 0 ? r : ret->failed ? err_set(e, PALE_LIMIT, "the policy is too long") : 0;
}

int far_make(struct remote *r, const char *order, struct buf *text, struct jsonread *ret, struct pale_err *e)
{
    return remote_ask(r, "POST", "/v1/boxes", order, text, ret, e);
}

static int remove_box(struct remote *r, const char *box, const char *query, struct pale_err *e)
{
    char path[BOX_NAME_MAX + 40];
    own_buf text = {0};
    buf_init(&text, 65536);
    snprintf(path, sizeof(path), "/v1/boxes/%s%s", box, query);
    return remote_call(r, "DELETE", path, NULL, &text, e);
}

int far_remove(struct remote *r, const char *box, struct pale_err *e)
{
    return remove_box(r, box, "", e);
}

int far_remove_anyway(struct remote *r, const char *box, struct pale_err *e)
{
    return remove_box(r, box, "?force=true", e);
}

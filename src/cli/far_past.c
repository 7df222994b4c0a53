/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about a box's past and what it has changed, done by a daemon elsewhere. */
#include "cli/far_past.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "box/fork.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/shown_change.h"
#include "cli/shown_gc.h"
#include "cli/shown_landing.h"
#include "cli/shown_past.h"

#define PATH_MAX_BYTES (BOX_NAME_MAX + 3 * SNAPSHOT_NAME_MAX + 60)

/* One request about a box and the whole of its answer. */
struct errand {
    struct door door;
    struct buf order, text;
    struct json j; /* writes the order */
    struct jsonread answer;
};

static void errand_done(struct errand *x)
{
    door_close(&x->door);
    buf_done(&x->order);
    buf_done(&x->text);
}
#define own_errand CLEANUP(errand_done) struct errand

/* Finds the daemon, and begins the order. box: its name, or NULL if it is about none. */
static int begin(struct errand *x, const struct args *a, const char *box, struct pale_err *e)
{
    x->door = (struct door){.args = a, .is_far = true, .remote = {.fd = -1}};
    remote_init(&x->door.remote);
    buf_init(&x->order, 2u << 20);
    buf_init(&x->text, FAR_ANSWER_MAX);
    json_start(&x->j, &x->order);
    json_begin_object(&x->j, NULL);
    return box ? door_find(&x->door, a, box, e) : remote_open(&x->door.remote, a->host, false, e);
}

/* what: what stands after the box's name. */
static int ask(struct errand *x, const char *method, const char *what, struct pale_err *e)
{
    char path[PATH_MAX_BYTES];
    bool has_body = strcmp(method, "POST") == 0;
    snprintf(path, sizeof(path), "/v1/boxes/%s/%s", x->door.name, what);
    json_end_object(&x->j);
    return remote_ask(&x->door.remote, method, path, has_body ? buf_text(&x->order) : NULL, &x->text, &x->answer, e);
}

static bool is_true(const struct jsonread *v, const char *key)
{
    struct jsonread m;
    return jsonread_get(v, key, &m) && m.kind == JSONREAD_TRUE;
}

static int items_of(const struct errand *x, struct jsonread *ret, struct pale_err *e)
{
    if (!jsonread_get(&x->answer, "items", ret) || ret->kind != JSONREAD_LIST)
        return err_set(e, PALE_PROTOCOL, "the daemon's answer has no items");
    return 0;
}

int far_snapshot(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    char name[FAR_TEXT];
    int r = begin(&x, a, a->word[0], &e);
    if (r == 0 && a->count > 1)
        json_text(&x.j, "name", a->word[1]);
    if (r < 0 || ask(&x, "POST", "snapshots", &e) < 0)
        return cli_fail(a, &e);
    struct snapshot_taken t = {
        .pause_us = far_number(&x.answer, "pause_us"), .changed = is_true(&x.answer, "changed"), .copied = is_true(&x.answer, "copied")};
    snprintf(t.name, sizeof(t.name), "%s", far_text(&x.answer, "snapshot", name, sizeof(name)));
    return shown_past_taken(a, &t);
}

int far_restore(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    char kept[FAR_TEXT];
    int r = begin(&x, a, a->word[0], &e);
    json_text(&x.j, "snapshot", a->word[1]);
    json_bool(&x.j, "force", args_has(a, "force"));
    if (r < 0 || ask(&x, "POST", "restore", &e) < 0)
        return cli_fail(a, &e);
    return shown_past_restored(a, x.door.name, far_text(&x.answer, "kept", kept, sizeof(kept)), far_number(&x.answer, "pause_us"));
}

/* --- the list --- */

static void list_one(struct listing *l, const struct jsonread *v)
{
    char name[SNAPSHOT_NAME_MAX + 1], kind[32], state[32];
    struct snapline s = {.name = far_text(v, "name", name, sizeof(name)),
                         .made_ms = far_number(v, "made_unix_ms"),
                         .kind = far_text(v, "kind", kind, sizeof(kind)),
                         .layers = (unsigned)far_number(v, "layers"),
                         .state = far_text(v, "state", state, sizeof(state)),
                         .current = is_true(v, "current")};
    shown_past_snapshot(l, &s);
}

/* The name becomes part of a path: what could be another path, or is no name at all, is none of a snapshot. */
static int forget(struct args *a, struct errand *x, const char *name, struct pale_err *e)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char path[PATH_MAX_BYTES];
    if (!name[0] || strlen(name) > SNAPSHOT_NAME_MAX || name[strspn(name, good)] || name[0] == '.')
        return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot of that name; `pale snapshots %s` lists them", a->word[0], a->word[0]);
    snprintf(path, sizeof(path), "/v1/boxes/%s/snapshots/%s", x->door.name, name);
    return remote_call(&x->door.remote, "DELETE", path, NULL, &x->text, e);
}

int far_snapshots(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    own_listing l = {0};
    struct jsonread items, item;
    int r = begin(&x, a, a->word[0], &e);
    if (args_has(a, "rm")) {
        if (r < 0 || forget(a, &x, args_get(a, "rm"), &e) < 0)
            return cli_fail(a, &e);
        if (a->json)
            printf("{\"removed\":1}\n");
        return 0;
    }
    if (r < 0 || ask(&x, "GET", "snapshots", &e) < 0 || items_of(&x, &items, &e) < 0)
        return cli_fail(a, &e);
    shown_past_snapshots(&l, a);
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);)
        list_one(&l, &item);
    return listing_print(&l);
}

/* --- forks, gc --- */

int far_fork(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    own_listing l = {0};
    struct jsonread items, item;
    uint64_t count = 1;
    if (!shown_past_count(a, &count, &e))
        return cli_fail(a, &e);
    int r = begin(&x, a, a->word[0], &e);
    json_text(&x.j, "name", a->word[1]);
    json_u64(&x.j, "count", count);
    if (args_has(a, "at"))
        json_text(&x.j, "at", args_get(a, "at"));
    if (r < 0 || ask(&x, "POST", "fork", &e) < 0 || items_of(&x, &items, &e) < 0)
        return cli_fail(a, &e);
    shown_past_forks(&l, a);
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);) {
        char name[FAR_TEXT], id[FAR_TEXT], scope[FAR_TEXT];
        shown_past_fork(&l, far_text(&item, "name", name, sizeof(name)), far_text(&item, "id", id, sizeof(id)),
                        far_text(&item, "scope", scope, sizeof(scope)));
    }
    return listing_print(&l);
}

static void show_idle(struct shown_gc *shown, const struct jsonread *v)
{
    own_buf names = {0};
    struct jsonread list, name;
    char text[FAR_TEXT], digest[FAR_TEXT];
    buf_init(&names, 64u << 10);
    if (jsonread_get(v, "names", &list))
        for (size_t pos = 0; jsonread_next(&list, &pos, NULL, &name);)
            buf_addf(&names, "%s%s", names.len ? "," : "", jsonread_text(&name, text, sizeof(text)));
    shown_gc_image(shown, &(struct imageuse_idle){.names = buf_text(&names),
                                                  .digest = far_text(v, "digest", digest, sizeof(digest)),
                                                  .bytes = far_number(v, "bytes")});
}

int far_gc(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    own_shown_gc shown = {0};
    struct jsonread images, item;
    char path[64];
    snprintf(path, sizeof(path), "/v1/gc?images=%s&dry_run=%s", args_has(a, "images") ? "true" : "false",
             args_has(a, "dry-run") ? "true" : "false");
    int r = begin(&x, a, NULL, &e);
    if (r == 0)
        r = remote_ask(&x.door.remote, "POST", path, NULL, &x.text, &x.answer, &e);
    if (r < 0)
        return cli_fail(a, &e);
    shown_gc_begin(&shown, a);
    if (jsonread_get(&x.answer, "images", &images))
        for (size_t pos = 0; jsonread_next(&images, &pos, NULL, &item);)
            show_idle(&shown, &item);
    const struct gc_result g = {.boxes = (unsigned)far_number(&x.answer, "boxes"),
                                .layers = (unsigned)far_number(&x.answer, "layers"),
                                .orphans = (unsigned)far_number(&x.answer, "orphans"),
                                .files = (unsigned)far_number(&x.answer, "files"),
                                .staging = (unsigned)far_number(&x.answer, "staging"),
                                .quarantines = (unsigned)far_number(&x.answer, "quarantines")};
    return shown_gc_end(&shown, &g);
}

/* --- review --- */

/* NAME=VALUE of a query, with whatever is no plain character escaped. */
static void add_query(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(b, "&%s=", name);
    far_escape(b, value);
}

int far_diff(struct args *a)
{
    static const char *const forms[RENDITION_FORM_COUNT] = {
        [RENDITION_PATCH] = "patch", [RENDITION_STAT] = "stat", [RENDITION_NAMES] = "names", [RENDITION_JSON] = "json"};
    struct pale_err e;
    own_errand x = {0};
    own_shown_change shown = {0};
    own_buf path = {0};
    enum rendition_form form = shown_change_form(a);
    buf_init(&path, 4 * PATH_BYTES_MAX);
    int r = begin(&x, a, a->word[0], &e);
    buf_addf(&path, "/v1/boxes/%s/diff?form=%s", x.door.name, forms[form]);
    add_query(&path, "path", a->count > 1 ? a->word[1] : NULL);
    add_query(&path, "from", args_get(a, "from"));
    add_query(&path, "to", args_get(a, "to"));
    if (r == 0 && path.failed)
        r = err_set(&e, PALE_BAD_INPUT, "the path is too long");
    if (r < 0)
        return cli_fail(a, &e);
    shown_change_begin(&shown, form);
    r = remote_stream(&x.door.remote, buf_text(&path), shown_change_take, &shown, &e);
    if (r == 0)
        r = shown_change_end(&shown, &e);
    return r < 0 ? cli_fail(a, &e) : shown.troubles ? 1 : 0;
}

static void show_landing(const struct jsonread *v)
{
    char path[PATH_BYTES_MAX] = "", result[32], guarded[32], reason[FAR_TEXT];
    struct jsonread m;
    if (jsonread_get(v, "path", &m))
        jsonread_text(&m, path, sizeof(path));
    shown_landing_one(&(struct shown_landing){.path = path,
                                              .result = far_text(v, "result", result, sizeof(result)),
                                              .guarded = far_text(v, "guarded", guarded, sizeof(guarded)),
                                              .reason = far_text(v, "reason", reason, sizeof(reason))});
}

/* The list alone, as it is told here. */
static int print_items(const struct jsonread *items)
{
    own_buf out = {0};
    struct json j;
    buf_init(&out, FAR_ANSWER_MAX);
    json_start(&j, &out);
    far_copy(&j, NULL, items);
    return cli_json(&out);
}

static void write_paths(struct errand *x, const struct args *a)
{
    json_begin_list(&x->j, "paths");
    for (int i = 1; i < a->count; i++)
        json_text(&x->j, NULL, a->word[i]);
    json_end_list(&x->j);
}

int far_apply(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    struct jsonread items, item;
    uint64_t count[LANDING_RESULT_COUNT];
    if (args_has(a, "interactive")) {
        err_set(&e, PALE_UNSUPPORTED, "--interactive works on this host's own boxes; look with pale diff, then name the paths to land");
        return cli_fail(a, &e);
    }
    int r = begin(&x, a, a->word[0], &e);
    json_bool(&x.j, "include_guarded", args_has(a, "include-guarded"));
    json_bool(&x.j, "dry_run", args_has(a, "dry-run"));
    write_paths(&x, a);
    if (r < 0 || ask(&x, "POST", "apply", &e) < 0 || items_of(&x, &items, &e) < 0)
        return cli_fail(a, &e);
    for (int i = 0; i < LANDING_RESULT_COUNT; i++)
        count[i] = far_number(&x.answer, landing_word((enum landing_result)i));
    uint64_t left = count[LANDING_CONFLICT] + count[LANDING_HELD] + count[LANDING_REFUSED] + count[LANDING_FAILED];
    if (a->json) {
        int status = print_items(&items);
        return status ? status : left ? 1 : 0;
    }
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);)
        show_landing(&item);
    return shown_landing_sum(count, args_has(a, "dry-run"));
}

int far_discard(struct args *a)
{
    struct pale_err e;
    own_errand x = {0};
    char kept[FAR_TEXT];
    int r = begin(&x, a, a->word[0], &e);
    json_bool(&x.j, "force", args_has(a, "force"));
    write_paths(&x, a);
    if (r < 0 || ask(&x, "POST", "discard", &e) < 0)
        return cli_fail(a, &e);
    return shown_past_discarded(a, far_text(&x.answer, "kept", kept, sizeof(kept)));
}

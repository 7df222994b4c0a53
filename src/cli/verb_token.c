/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb token: who may call the daemon, for what and for how long. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/remote.h"
#include "cli/verbs.h"

#define LIST_MAX (16u << 20)

static const struct option token_options[] = {
    {"name", 0, "TEXT", "what it is for", NULL},
    {"tenant", 0, "NAME", "a tenant's: it sees his boxes alone", NULL},
    {"box", 0, "BOX", "a box's: it reaches that one alone", NULL},
    {"right", 0, "RIGHT", "good for this alone (may be given again); without it for all its scope can have", NULL},
    {"ttl", 0, "TIME", "good for so long (12h)", NULL},
    {0},
};

static int create(struct args *a, struct remote *r)
{
    struct pale_err e;
    own_buf b = {0}, text = {0};
    struct jsonread v, m;
    struct json j;
    char token[256];
    buf_init(&b, 65536);
    buf_init(&text, 65536);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "scope", args_has(a, "box") ? "box" : args_has(a, "tenant") ? "tenant" : "operator");
    static const char *const plain[] = {"name", "tenant", "box", "ttl"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (args_has(a, plain[i]))
            json_text(&j, plain[i], args_get(a, plain[i]));
    if (args_has(a, "right")) {
        json_begin_list(&j, "rights");
        for (int i = 0; i < a->given_count; i++)
            if (strcmp(a->given[i].option->name, "right") == 0)
                json_text(&j, NULL, a->given[i].value);
        json_end_list(&j);
    }
    json_end_object(&j);
    if (remote_ask(r, "POST", "/v1/tokens", buf_text(&b), &text, &v, &e) < 0)
        return cli_fail(a, &e);
    if (a->json) {
        own_buf out = {0};
        buf_init(&out, 65536);
        json_start(&j, &out);
        far_copy(&j, NULL, &v);
        return cli_json(&out);
    }
    if (!jsonread_get(&v, "token", &m)) {
        err_set(&e, PALE_PROTOCOL, "the daemon's answer has no token");
        return cli_fail(a, &e);
    }
    /* Alone on standard output, so that it can be kept without being shown. */
    printf("%s\n", far_text(&v, "token", token, sizeof(token)));
    return 0;
}

static void cell(struct listing *l, const struct jsonread *v, const char *name)
{
    struct jsonread m;
    char text[200] = "";
    if (jsonread_get(v, name, &m))
        jsonread_text(&m, text, sizeof(text));
    table_cell(&l->table, text);
}

static void cell_time(struct listing *l, const struct jsonread *v, const char *name)
{
    struct jsonread m;
    uint64_t n = 0;
    char text[40] = "";
    struct tm tm;
    if (jsonread_get(v, name, &m) && jsonread_u64(&m, &n)) {
        time_t t = (time_t)n;
        if (gmtime_r(&t, &tm))
            strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
    }
    table_cell(&l->table, text);
}

static int list(struct args *a, struct remote *r)
{
    struct pale_err e;
    own_buf text = {0};
    struct jsonread v, items, item;
    static const char *const heads[] = {"ID", "NAME", "SCOPE", "TENANT", "BOX", "EXPIRES", "REVOKED", "USED"};
    own_listing l = {0};
    buf_init(&text, LIST_MAX);
    if (remote_ask(r, "GET", "/v1/tokens", NULL, &text, &v, &e) < 0)
        return cli_fail(a, &e);
    if (!jsonread_get(&v, "items", &items)) {
        err_set(&e, PALE_PROTOCOL, "the daemon's answer has no items");
        return cli_fail(a, &e);
    }
    if (a->json) {
        own_buf out = {0};
        struct json j;
        buf_init(&out, LIST_MAX);
        json_start(&j, &out);
        far_copy(&j, NULL, &items);
        return cli_json(&out);
    }
    listing_init(&l, a, heads, 8);
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);) {
        cell(&l, &item, "id");
        cell(&l, &item, "name");
        cell(&l, &item, "scope");
        cell(&l, &item, "tenant");
        cell(&l, &item, "box");
        cell_time(&l, &item, "expires");
        cell_time(&l, &item, "revoked");
        cell_time(&l, &item, "last_used");
    }
    return listing_print(&l);
}

static int revoke_token(struct args *a, struct remote *r)
{
    struct pale_err e;
    for (int i = 1; i < a->count; i++) {
        char path[64];
        own_buf text = {0};
        buf_init(&text, 65536);
        if (strspn(a->word[i], "0123456789abcdef") != strlen(a->word[i]) || strlen(a->word[i]) != 16) {
            err_set(&e, PALE_BAD_INPUT, "a token is revoked by its id, 16 hex digits; `pale token ls` shows them");
            return cli_fail(a, &e);
        }
        snprintf(path, sizeof(path), "/v1/tokens/%s", a->word[i]);
        if (remote_call(r, "DELETE", path, NULL, &text, &e) < 0)
            return cli_fail(a, &e);
    }
    if (a->json)
        printf("{\"revoked\":%d}\n", a->count - 1);
    return 0;
}

static int run_token(struct args *a)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    static const struct {
        const char *name;
        int min, max;
        int (*run)(struct args *a, struct remote *r);
    } acts[] = {{"create", 1, 1, create}, {"ls", 1, 1, list}, {"revoke", 2, 64, revoke_token}};
    remote_init(&r);
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strcmp(a->word[0], acts[i].name) == 0 && a->count >= acts[i].min && a->count <= acts[i].max)
            return remote_open(&r, a->host, true, &e) < 0 ? cli_fail(a, &e) : acts[i].run(a, &r);
    err_set(&e, PALE_BAD_INPUT, "token: create, ls, or revoke ID …");
    return cli_fail(a, &e);
}

static const struct option *const token_tables[] = {token_options, common_options, NULL};

const struct verb verb_token = {
    "token",
    "Daemon",
    "make, list and revoke tokens",
    "create [FLAGS] | ls | revoke ID …",
    "A token says who calls the daemon: an operator (everything), a tenant (boxes of his own, within the operator's\n"
    "policy for tenants) or a box (that one alone). create prints it, once: the daemon keeps a digest. Rights are those\n"
    "that GET /openapi.json names at each operation.",
    token_tables,
    1,
    -1,
    -1,
    run_token};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about boxes as a whole where a daemon elsewhere does them: create, ls, inspect, stop, rm. They print what the verbs of
 * this host print, as far as the daemon tells it. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"
#include "base/quote.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/shown_net.h"
#include "cli/shown_receipt.h"

static int tell_made(const struct args *a, const struct jsonread *v, struct pale_err *e)
{
    char name[FAR_TEXT], scope[FAR_TEXT], id[FAR_TEXT];
    if (!a->json) {
        printf("box %s [%s] id=%s\n", far_text(v, "name", name, sizeof(name)), far_text(v, "scope", scope, sizeof(scope)),
               far_text(v, "id", id, sizeof(id)));
    } else {
        static const char *const keys[] = {"name", "id", "scope", "data", "state"};
        own_buf b = {0};
        struct json j;
        buf_init(&b, 65536);
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            far_copy_member(&j, v, keys[i]);
        json_end_object(&j);
        printf("%s\n", buf_text(&b));
    }
    return fflush(stdout) ? err_os(e, "tell of a box, which is made") : 0;
}

static int make_one(const struct args *a, struct remote *r, const char *name, struct pale_err *e)
{
    own_buf order = {0}, text = {0};
    struct jsonread v;
    buf_init(&order, 1 << 20);
    buf_init(&text, FAR_ANSWER_MAX);
    int res = far_order(a, name, NULL, !args_has(a, "no-start"), &order, e);
    if (res == 0)
        res = far_make(r, buf_text(&order), &text, &v, e);
    return res < 0 ? res : tell_made(a, &v, e);
}

int far_create(struct args *a)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    remote_init(&r);
    if (args_has(a, "in-project")) {
        err_set(&e, PALE_UNSUPPORTED, "--in-project with --host: a project is a folder of this host, and the box would be on another");
        return cli_fail(a, &e);
    }
    if (remote_open(&r, a->host, false, &e) < 0)
        return cli_fail(a, &e);
    for (int i = 0; i < (a->count > 0 ? a->count : 1); i++)
        if (make_one(a, &r, a->count > 0 ? a->word[i] : "default", &e) < 0)
            return cli_fail(a, &e);
    return 0;
}

static void list_one(struct listing *l, const struct jsonread *v)
{
    static const char *const keys[] = {"name", "id", "scope", "tenant", "state", "jobs", "cut"};
    char text[FAR_TEXT], scope[2 * FAR_TEXT], tenant[FAR_TEXT], jobs[24] = "", cut[FAR_TEXT], state[2 * FAR_TEXT + 8];
    if (l->is_json) {
        json_begin_object(&l->json, NULL);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            far_copy_member(&l->json, v, keys[i]);
        json_end_object(&l->json);
        return;
    }
    far_text(v, "tenant", tenant, sizeof(tenant));
    snprintf(scope, sizeof(scope), "%s%s%s", far_text(v, "scope", text, sizeof(text)), tenant[0] ? " " : "", tenant);
    table_cell(&l->table, far_text(v, "name", text, sizeof(text)));
    table_cell(&l->table, scope);
    far_text(v, "state", text, sizeof(text));
    far_text(v, "cut", cut, sizeof(cut));
    snprintf(state, sizeof(state), "%s%s%s%s", text, cut[0] ? " (" : "", cut, cut[0] ? ")" : "");
    table_cell(&l->table, state);
    if (strcmp(text, "ready") == 0 || strcmp(text, "running") == 0)
        snprintf(jobs, sizeof(jobs), "%llu", (unsigned long long)far_number(v, "jobs"));
    table_cell(&l->table, jobs);
    table_cell(&l->table, far_text(v, "id", text, sizeof(text)));
}

int far_ls(struct args *a)
{
    static const char *const heads[] = {"NAME", "SCOPE", "STATE", "JOBS", "ID"};
    struct pale_err e;
    own_remote r = {.fd = -1};
    own_listing l = {0};
    own_buf text = {0};
    struct jsonread v, items, item;
    char scope[FAR_TEXT];
    remote_init(&r);
    buf_init(&text, FAR_ANSWER_MAX);
    listing_init(&l, a, heads, 5);
    if (remote_open(&r, a->host, false, &e) < 0 || remote_ask(&r, "GET", "/v1/boxes", NULL, &text, &v, &e) < 0)
        return cli_fail(a, &e);
    if (!jsonread_get(&v, "items", &items) || items.kind != JSONREAD_LIST) {
        err_set(&e, PALE_PROTOCOL, "the daemon's answer has no items");
        return cli_fail(a, &e);
    }
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);)
        if (!args_has(a, "global") || strcmp(far_text(&item, "scope", scope, sizeof(scope)), "project") != 0)
            list_one(&l, &item);
    return listing_print(&l);
}

/* --- inspect --- */

/* What is known of a box: its own answer, its policy and its receipt, each as far as the caller may see it. */
struct known {
    struct buf text, receipt_text, network_text;
    struct jsonread box, receipt, network;
    struct policy policy;
    bool has_policy, has_receipt, has_network;
    char digest[SHA256_HEX];
};

static void known_done(struct known *k)
{
    buf_done(&k->text);
    buf_done(&k->receipt_text);
    buf_done(&k->network_text);
    policy_done(&k->policy);
}

static int learn(struct door *d, struct known *k, struct pale_err *e)
{
    char path[BOX_NAME_MAX + 40];
    buf_init(&k->text, FAR_ANSWER_MAX);
    buf_init(&k->receipt_text, FAR_ANSWER_MAX);
    snprintf(path, sizeof(path), "/v1/boxes/%s", d->name);
    int r = remote_ask(&d->remote, "GET", path, NULL, &k->text, &k->box, e);
    if (r < 0)
        return r;
    r = far_policy(&d->remote, d->name, &k->policy, k->digest, e);
    k->has_policy = r == 0;
    if (r < 0 && r != -PALE_DENIED)
        return r;
    snprintf(path, sizeof(path), "/v1/boxes/%s/receipt", d->name);
    r = remote_ask(&d->remote, "GET", path, NULL, &k->receipt_text, &k->receipt, e);
    k->has_receipt = r == 0;
    struct jsonread sum;
    buf_init(&k->network_text, FAR_ANSWER_MAX);
    snprintf(path, sizeof(path), "/v1/boxes/%s/network", d->name);
    /* The daemon tells the sum only of one that has a network and runs, which it may have stopped to do since. */
    if ((r == 0 || r == -PALE_DENIED || r == -PALE_NOT_FOUND) && jsonread_get(&k->box, "network", &sum)) {
        r = remote_ask(&d->remote, "GET", path, NULL, &k->network_text, &k->network, e);
        k->has_network = r == 0;
    }
    return r < 0 && r != -PALE_DENIED && r != -PALE_NOT_FOUND ? r : 0;
}

/* As a keeper tells it. */
static const struct shown_net *shown_of(const struct jsonread *v)
{
    static struct shown_net n;
    struct jsonread hosts, item;
    n = (struct shown_net){.has_network = true,
                           .open = far_number(v, "open"),
                           .connections = far_number(v, "connections"),
                           .refused = far_number(v, "refused"),
                           .in = far_number(v, "bytes_in"),
                           .out = far_number(v, "bytes_out")};
    bool has_hosts = jsonread_get(v, "hosts", &hosts) && hosts.kind == JSONREAD_LIST;
    for (size_t pos = 0; has_hosts && n.count < SHOWN_HOSTS_MAX && jsonread_next(&hosts, &pos, NULL, &item); n.count++) {
        far_text(&item, "host", n.host[n.count].name, sizeof(n.host[0].name));
        n.host[n.count].port = (uint16_t)far_number(&item, "port");
        n.host[n.count].connections = far_number(&item, "connections");
        n.host[n.count].refused = far_number(&item, "refused");
        n.host[n.count].in = far_number(&item, "bytes_in");
        n.host[n.count].out = far_number(&item, "bytes_out");
    }
    return &n;
}

static int tell_json(const struct known *k)
{
    static const char *const keys[] = {"name",      "id",         "scope",    "tenant", "state", "data",
                                       "state_dir", "keeper_pid", "init_pid", "jobs",   "ended", "memory_limit_held_by",
                                       "cut",       "audit_gaps"};
    own_buf b = {0};
    struct json j;
    buf_init(&b, FAR_ANSWER_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        far_copy_member(&j, &k->box, keys[i]);
    if (k->has_network)
        shown_net_json(shown_of(&k->network), &j, "network");
    if (k->has_policy)
        json_text(&j, "policy_digest", k->digest);
    if (k->has_receipt)
        far_copy(&j, "receipt", &k->receipt);
    if (k->has_policy)
        policy_json(&k->policy, &j, "policy");
    json_end_object(&j);
    return cli_json(&b);
}

static void line(const struct jsonread *v, const char *label, const char *key, const char *after)
{
    char text[FAR_TEXT];
    if (far_text(v, key, text, sizeof(text))[0])
        printf("%-9s %s%s\n", label, text, after);
}

static int tell_people(struct known *k)
{
    own_buf b = {0};
    line(&k->box, "name", "name", "");
    line(&k->box, "id", "id", "");
    line(&k->box, "scope", "scope", "");
    line(&k->box, "tenant", "tenant", "");
    line(&k->box, "state", "state", "");
    line(&k->box, "data", "data", "");
    line(&k->box, "audit", "state_dir", "/audit");
    if (far_number(&k->box, "audit_gaps"))
        printf("          records of it are missing: `pale audit --verify` says which\n");
    if (far_number(&k->box, "keeper_pid"))
        printf("keeper    pid %llu, init %llu, %llu running, %llu ended\n", (unsigned long long)far_number(&k->box, "keeper_pid"),
               (unsigned long long)far_number(&k->box, "init_pid"), (unsigned long long)far_number(&k->box, "jobs"),
               (unsigned long long)far_number(&k->box, "ended"));
    char held[FAR_TEXT];
    if (far_text(&k->box, "memory_limit_held_by", held, sizeof(held))[0])
        printf("memory    held by %s\n", held);
    char cut[FAR_TEXT];
    if (far_text(&k->box, "cut", cut, sizeof(cut))[0])
        printf("cut off   from every network, by %s\n", cut);
    if (k->has_network)
        shown_net_print(shown_of(&k->network));
    if (k->has_receipt)
        shown_receipt_line(&k->receipt_text);
    if (!k->has_policy)
        return 0;
    buf_init(&b, 4 << 20);
    policy_show(&k->policy, &b);
    printf("policy    sha256 %s\n%s", k->digest, buf_text(&b));
    return 0;
}

int far_inspect(struct args *a)
{
    struct pale_err e;
    static struct door d;
    struct known k = {0};
    int status;
    if (door_find(&d, a, a->word[0], &e) < 0 || learn(&d, &k, &e) < 0)
        status = cli_fail(a, &e);
    else
        status = a->json ? tell_json(&k) : tell_people(&k);
    known_done(&k);
    door_close(&d);
    return status;
}

/* --- stop, rm, freeze, thaw, rename --- */

int far_act(struct remote *r, const char *method, const char *box, const char *deed, struct pale_err *e)
{
    char path[BOX_NAME_MAX + 40];
    own_buf text = {0};
    buf_init(&text, 65536);
    snprintf(path, sizeof(path), "/v1/boxes/%s/%s", box, deed);
    return remote_call(r, method, path, NULL, &text, e);
}

static int stop_one(struct remote *r, const char *box, struct pale_err *e)
{
    return far_act(r, "POST", box, "stop", e);
}

static int freeze_one(struct remote *r, const char *box, struct pale_err *e)
{
    return far_act(r, "POST", box, "freeze", e);
}

static int thaw_one(struct remote *r, const char *box, struct pale_err *e)
{
    return far_act(r, "POST", box, "thaw", e);
}

int far_each(struct args *a, int (*deed)(struct remote *r, const char *box, struct pale_err *e), const char *done, bool missing_ok)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    int count = 0;
    char shown[80];
    remote_init(&r);
    if (remote_open(&r, a->host, false, &e) < 0)
        return cli_fail(a, &e);
    for (int i = 0; i < a->count; i++) {
        const char *name = a->word[i];
        int res = path_is_box_name(name)
                      ? deed(&r, name, &e)
                      : err_set(&e, PALE_BAD_INPUT, "%s is no name of a box", quote_into(shown, sizeof(shown), name, strlen(name)));
        if (res == -PALE_NOT_FOUND && missing_ok)
            continue;
        if (res < 0)
            return cli_fail(a, &e);
        count++;
    }
    if (a->json)
        printf("{\"%s\":%d}\n", done, count);
    return 0;
}

int far_stop(struct args *a)
{
    return far_each(a, stop_one, "stopped", false);
}

int far_rm(struct args *a)
{
    struct pale_err e;
    if (args_has(a, "keep-data")) {
        err_set(&e, PALE_UNSUPPORTED, "--keep-data with --host: the folder would stay on the daemon's host, where no verb reaches it");
        return cli_fail(a, &e);
    }
    return far_each(a, args_has(a, "force") ? far_remove_anyway : far_remove, "removed", args_has(a, "force"));
}

int far_freeze(struct args *a, bool on)
{
    return on ? far_each(a, freeze_one, "frozen", false) : far_each(a, thaw_one, "thawed", false);
}

int far_rename(struct args *a)
{
    static const char *const keys[] = {"name", "id", "scope", "data"};
    struct pale_err e;
    static struct door d;
    char path[BOX_NAME_MAX + 40], was[FAR_TEXT] = "", name[FAR_TEXT], scope[FAR_TEXT], id[FAR_TEXT];
    own_buf order = {0}, old = {0}, text = {0}, out = {0};
    struct json j;
    struct jsonread before, v;
    buf_init(&order, 4096);
    buf_init(&old, 65536);
    buf_init(&text, 65536);
    buf_init(&out, 65536);
    json_start(&j, &order);
    json_begin_object(&j, NULL);
    json_text(&j, "name", a->word[1]);
    json_end_object(&j);
    int r = door_find(&d, a, a->word[0], &e);
    snprintf(path, sizeof(path), "/v1/boxes/%s", d.name);
    if (r == 0 && (r = remote_ask(&d.remote, "GET", path, NULL, &old, &before, &e)) == 0) {
        snprintf(path, sizeof(path), "/v1/boxes/%s/rename", d.name);
        r = remote_ask(&d.remote, "POST", path, buf_text(&order), &text, &v, &e);
    }
    door_close(&d);
    if (r < 0)
        return cli_fail(a, &e);
    if (!a->json) {
        printf("box %s [%s] id=%s\n", far_text(&v, "name", name, sizeof(name)), far_text(&v, "scope", scope, sizeof(scope)),
               far_text(&v, "id", id, sizeof(id)));
        return 0;
    }
    json_start(&j, &out);
    json_begin_object(&j, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        far_copy_member(&j, &v, keys[i]);
    json_text(&j, "was", far_text(&before, "name", was, sizeof(was)));
    json_end_object(&j);
    return cli_json(&out);
}

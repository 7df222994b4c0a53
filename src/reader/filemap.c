/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what both file formats share: setting a key with its place, wrong types, unknown keys, egress rules. */
#include "reader/filemap.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/quote.h"
#include "policy/domain.h"
#include "policy/field.h"

void job_set(struct job *j, const struct node *at, const char *key, const char *shown, const char *value)
{
    struct pale_err e = {0};
    const struct field *f = field_find(key);
    assert(f);
    size_t i = 0;
    while (field_at(i) != f)
        i++;
    assert(i < FIELD_MAX);
    if (!j->set_by[i])
        j->set_by[i] = at;
    int r = f->kind->set(f, j->p, value, &e);
    if (r == -PALE_NO_MEMORY)
        j->out_of_memory = true;
    else if (r < 0)
        complain(j->c, at->place, shown, "%s", e.text);
}

bool job_expects(struct job *j, const struct node *n, enum node_kind kind, const char *shown, const char *what)
{
    if (n->kind == NODE_BROKEN)
        return false;
    if (n->kind == kind && !node_is_null(n))
        return true;
    if (node_is_null(n))
        complain(j->c, n->place, shown, "there is no value; write %s, or take the key out", what);
    else
        complain(j->c, n->place, shown, "this is %s; write %s", node_kind_name(n), what);
    return false;
}

void job_unknown(struct job *j, const struct node *n, const char *shown, const char *best)
{
    if (strcmp(n->key, "<<") == 0 || n->kind == NODE_BROKEN)
        return; /* noted by the loader */
    if (best)
        complain(j->c, n->key_place, shown, "unknown key; did you mean \"%s\"?", best);
    else
        complain(j->c, n->key_place, shown, "unknown key; take it out, or see docs/policy.md for the keys there are");
}

void job_walk(struct job *j, const struct node *map, const char *prefix, const struct key_row *rows, size_t count, void *data)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct node *n = map->child[i];
        char shown[128];
        struct nearest near;
        size_t k = 0;
        snprintf(shown, sizeof(shown), "%s%s", prefix, n->key);
        nearest_init(&near, n->key);
        while (k < count && strcmp(rows[k].name, n->key) != 0)
            nearest_offer(&near, rows[k++].name);
        if (k < count)
            rows[k].apply(j, n, shown, data);
        else
            job_unknown(j, n, shown, near.best);
    }
}

/* An egress rule while its parts are gathered. Each part is checked by itself before they are put together as one text, so
 * that no part can pose as another. */
struct rule {
    char domain[DOMAIN_NAME_MAX + 1];
    struct buf ports;
    char verdict[16];
    uint64_t rate;
    bool verdicts, bad;
};

static void rule_domain(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct rule *r = data;
    struct pale_err e = {0};
    r->bad = true;
    if (!job_expects(j, n, NODE_TEXT, shown, "a host name such as example.org or *.example.org"))
        return;
    if (domain_parse(n->text, strlen(n->text), true, r->domain, &e) < 0)
        complain(j->c, n->place, shown, "%s", e.text);
    else
        r->bad = false;
}

static void rule_port(struct job *j, const struct node *n, const char *shown, struct rule *r)
{
    uint64_t v = 0;
    char text[60];
    if (!job_expects(j, n, NODE_TEXT, shown, "a port from 1 to 65535"))
        r->bad = true;
    else if (!n->plain || !number_u64(n->text, 65535, &v) || v == 0) {
        r->bad = true;
        quote_into(text, sizeof(text), n->text, strlen(n->text));
        complain(j->c, n->place, shown, "\"%s\" is no port; write a number from 1 to 65535", text);
    } else {
        buf_addf(&r->ports, "%c%u", r->ports.len ? ',' : ':', (unsigned)v);
    }
}

static void rule_ports(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct rule *r = data;
    if (!job_expects(j, n, NODE_LIST, shown, "a list of ports such as [80, 443]")) {
        r->bad = true;
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        rule_port(j, n->child[i], shown, r);
}

static void rule_rate(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct rule *r = data;
    char text[60];
    bool good = job_expects(j, n, NODE_TEXT, shown, "a number of connections a minute");
    if (good && (!n->plain || !number_u64(n->text, 1000000, &r->rate) || r->rate == 0)) {
        quote_into(text, sizeof(text), n->text, strlen(n->text));
        complain(j->c, n->place, shown, "\"%s\" is no rate; write a number from 1 to 1000000", text);
        good = false;
    }
    r->bad |= !good;
}

static void rule_verdict(struct job *j, const struct node *n, const char *shown, void *data)
{
    static const char *const names[] = {"allow", "ask", "deny"};
    struct rule *r = data;
    char text[60];
    if (!r->verdicts) {
        r->bad = true;
        job_unknown(j, n, shown, NULL);
        return;
    }
    if (!job_expects(j, n, NODE_TEXT, shown, "allow, ask or deny")) {
        r->bad = true;
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], n->text) == 0) {
            snprintf(r->verdict, sizeof(r->verdict), "=%s", names[i]);
            return;
        }
    r->bad = true;
    quote_into(text, sizeof(text), n->text, strlen(n->text));
    complain(j->c, n->place, shown, "\"%s\" is not allow, ask or deny", text);
}

static const struct key_row rule_rows[] = {
    {"domain", rule_domain}, {"ports", rule_ports}, {"rate_limit_per_min", rule_rate}, {"verdict", rule_verdict}};

static void rule_done(struct rule *r)
{
    buf_done(&r->ports);
}

void job_rule(struct job *j, const struct node *rule, const char *shown, unsigned default_rate, bool verdicts)
{
    CLEANUP(rule_done) struct rule r = {.rate = default_rate, .verdicts = verdicts};
    char prefix[64];
    own_buf text = {0};
    buf_init(&r.ports, 8 * POLICY_LIST_MAX);
    buf_init(&text, 16 * POLICY_LIST_MAX);
    snprintf(prefix, sizeof(prefix), "%s.", shown);
    size_t before = j->c->count;
    job_walk(j, rule, prefix, rule_rows, sizeof(rule_rows) / sizeof(rule_rows[0]), &r);
    if (!node_get(rule, "domain"))
        complain(j->c, rule->place, shown, "a rule without a domain; add domain: example.org");
    if (r.bad || j->c->count != before)
        return;
    buf_addf(&text, "%s%s%s", r.domain, buf_text(&r.ports), r.verdict);
    if (r.rate)
        buf_addf(&text, "@%u", (unsigned)r.rate);
    if (text.failed || r.ports.failed)
        j->out_of_memory = true;
    else
        job_set(j, rule, "network.egress", shown, buf_text(&text));
}

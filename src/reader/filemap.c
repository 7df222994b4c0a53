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
#include "policy/rule.h"

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

/* The parts of an egress rule but its target, in the order of its text. */
static const struct part {
    const char *key, *mark, *what;
    bool is_list, is_number; /* a number stands without quotes */
} parts[] = {
    {"ports", ":", "a list of ports such as [80, 443]", true, true},
    {"verdict", "=", "allow, ask or deny", false, false},
    {"rate_limit_per_min", "@", "a number of connections a minute", false, true},
    {"bytes_out", "+out=", "a number of bytes such as 10M", false, false},
    {"bytes_in", "+in=", "a number of bytes such as 10M", false, false},
    {"connections", "+conns=", "a number of connections at once", false, true},
    {"time", "+time=", "a window such as mon-fri 08:00-18:00, in UTC", false, false},
    {"methods", "+methods=", "a list of methods such as [GET, HEAD]", true, false},
    {"paths", "+paths=", "a list of paths such as [/a, /b/*]", true, false},
};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

/* An egress rule while its parts are gathered. Each part is checked by itself before they are put together as one text, so
 * that no part can pose as another. */
struct draft {
    char domain[DOMAIN_NAME_MAX + 1];
    char cidr[ADDRESS_RANGE_MAX + 2];
    unsigned host_port;
    struct buf part[PART_COUNT];
    bool bad;
};

static void draft_domain(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct draft *d = data;
    struct pale_err e = {0};
    if (!job_expects(j, n, NODE_TEXT, shown, "a host name such as example.org or *.example.org"))
        d->bad = true;
    else if (domain_parse(n->text, strlen(n->text), true, d->domain, &e) < 0) {
        complain(j->c, n->place, shown, "%s", e.text);
        d->bad = true;
    }
}

static void draft_cidr(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct draft *d = data;
    struct address_range range;
    char text[ADDRESS_RANGE_MAX], quoted[60];
    if (!job_expects(j, n, NODE_TEXT, shown, "a range of addresses such as 10.0.0.0/8 or fd00::/8"))
        d->bad = true;
    else if (!address_range_parse(n->text, strlen(n->text), &range)) {
        quote_into(quoted, sizeof(quoted), n->text, strlen(n->text));
        complain(j->c, n->place, shown, "\"%s\" is no range of addresses; write for example 10.0.0.0/8, other bits zero", quoted);
        d->bad = true;
    } else {
        snprintf(d->cidr, sizeof(d->cidr), range.first.family == ADDRESS_V6 ? "[%s]" : "%s", address_range_text(&range, text));
    }
}

static void draft_host_port(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct draft *d = data;
    uint64_t v = 0;
    char quoted[60];
    if (!job_expects(j, n, NODE_TEXT, shown, "a port of the host's loopback"))
        d->bad = true;
    else if (!n->plain || !number_u64(n->text, 65535, &v) || v == 0) {
        quote_into(quoted, sizeof(quoted), n->text, strlen(n->text));
        complain(j->c, n->place, shown, "\"%s\" is no port; ports go from 1 to 65535", quoted);
        d->bad = true;
    }
    d->host_port = (unsigned)v;
}

/* One value of a part. A rule of that part alone tells whether it is one. */
static void draft_value(struct job *j, const struct node *n, const char *shown, const struct part *part, struct draft *d)
{
    struct buf *out = &d->part[part - parts];
    own_rule probe = {0};
    own_buf text = {0};
    struct pale_err e = {0};
    char quoted[60];
    if (!job_expects(j, n, NODE_TEXT, shown, part->what)) {
        d->bad = true;
        return;
    }
    buf_init(&text, 16384);
    buf_addf(&text, "x%s%s%s", part->mark[0] == ':' || !part->is_list ? "" : ":80", part->mark, n->text);
    quote_into(quoted, sizeof(quoted), n->text, strlen(n->text));
    bool foreign = strpbrk(n->text, part->is_list ? "=@+," : "=@+"), unquoted = !part->is_number || n->plain;
    if (foreign || !unquoted)
        complain(j->c, n->place, shown, "\"%s\" cannot stand here; write %s%s", quoted, part->what, unquoted ? "" : ", without quotes");
    else if (rule_parse(buf_text(&text), &probe, &e) < 0 && e.code == PALE_BAD_INPUT)
        complain(j->c, n->place, shown, "%s", e.text);
    else
        buf_addf(out, "%s%s", out->len ? "," : part->mark, n->text);
    d->bad |= out->len == 0;
    j->out_of_memory |= text.failed || e.code == PALE_NO_MEMORY;
}

static void draft_part(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct draft *d = data;
    const struct part *part = parts;
    while (strcmp(part->key, n->key) != 0)
        part++;
    if (!part->is_list)
        draft_value(j, n, shown, part, d);
    else if (!job_expects(j, n, NODE_LIST, shown, part->what))
        d->bad = true;
    else if (n->count == 0 && part->mark[0] == '+')
        complain(j->c, n->place, shown, "the list is empty, which can be read both ways; write %s, or take the key out", part->what);
    for (size_t i = 0; part->is_list && n->kind == NODE_LIST && i < n->count; i++)
        draft_value(j, n->child[i], shown, part, d);
}

/* The capability format has the first three. */
static const struct key_row rule_rows[] = {
    {"domain", draft_domain},  {"ports", draft_part},    {"rate_limit_per_min", draft_part},
    {"verdict", draft_part},   {"cidr", draft_cidr},     {"host_port", draft_host_port},
    {"bytes_out", draft_part}, {"bytes_in", draft_part}, {"connections", draft_part},
    {"time", draft_part},      {"methods", draft_part},  {"paths", draft_part},
};
#define RULE_ROWS (sizeof(rule_rows) / sizeof(rule_rows[0]))
#define RULE_ROWS_CAPABILITY 3

/* Who a rule is about: a name, a range, or a port of the host with the name it has in the box. */
static void draft_target(struct job *j, const struct node *rule, const char *shown, struct draft *d, struct buf *out)
{
    bool domain = node_get(rule, "domain"), cidr = node_get(rule, "cidr"), host = node_get(rule, "host_port");
    if (!domain && !cidr && !host)
        complain(j->c, rule->place, shown, "a rule without a domain; add domain: example.org");
    else if (cidr && (domain || host))
        complain(j->c, rule->place, shown, "a rule is about names or about addresses; write two, one with domain and one with cidr");
    else if (host && node_get(rule, "ports"))
        complain(j->c, rule->place, shown, "host_port is the port to dial as well; take ports out");
    else if (host && domain && !rule_is_host_name(d->domain))
        complain(j->c, rule->place, shown, "a port of the host has a name in " RULE_HOST_ZONE "; write domain: NAME." RULE_HOST_ZONE);
    else if (host)
        buf_addf(out, "%s:%u", domain ? d->domain : RULE_HOST_ZONE, d->host_port);
    else
        buf_add_text(out, domain ? d->domain : d->cidr);
}

static void draft_done(struct draft *d)
{
    for (size_t i = 0; i < PART_COUNT; i++)
        buf_done(&d->part[i]);
}

void job_rule(struct job *j, const struct node *rule, const char *shown, unsigned default_rate, bool capability)
{
    CLEANUP(draft_done) struct draft d = {0};
    char prefix[64];
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    for (size_t i = 0; i < PART_COUNT; i++)
        buf_init(&d.part[i], POLICY_TEXT_MAX);
    snprintf(prefix, sizeof(prefix), "%s.", shown);
    size_t before = j->c->count;
    job_walk(j, rule, prefix, rule_rows, capability ? RULE_ROWS_CAPABILITY : RULE_ROWS, &d);
    if (!d.bad && j->c->count == before)
        draft_target(j, rule, shown, &d, &text);
    if (d.bad || j->c->count != before)
        return;
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (parts[i].mark[0] == '@' && default_rate && !d.part[i].len)
            buf_addf(&d.part[i], "@%u", default_rate);
        buf_add(&text, d.part[i].data, d.part[i].len);
        text.failed |= d.part[i].failed;
    }
    if (text.failed)
        j->out_of_memory = true;
    else
        job_set(j, rule, "network.egress", shown, buf_text(&text));
}

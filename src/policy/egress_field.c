/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the key network.egress: the list of rules in a policy. */
#include <string.h>

#include "base/limits.h"
#include "policy/egress.h"
#include "policy/field.h"
#include "policy/plainhttp.h"
#include "policy/rule.h"
#include "policy/window.h"

static int rules_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    own_rule rule = {0};
    (void)f;
    int r = rule_parse(value, &rule, e);
    if (r < 0)
        return r;
    size_t at = 0;
    while (at < p->egress_count && rule_order(&p->egress[at], &rule) < 0)
        at++;
    if (at < p->egress_count && rule_order(&p->egress[at], &rule) == 0)
        return 0;
    if (p->egress_count >= POLICY_LIST_MAX)
        return err_set(e, PALE_LIMIT, "there are more than %d rules; use patterns such as *.example.org", POLICY_LIST_MAX);
    struct policy_egress *grown = realloc(p->egress, (p->egress_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    p->egress = grown;
    memmove(grown + at + 1, grown + at, (p->egress_count - at) * sizeof(*grown));
    grown[at] = rule;
    p->egress_count++;
    rule = (struct policy_egress){0};
    return 0;
}

static size_t rules_count(const struct field *f, const struct policy *p)
{
    (void)f;
    return p->egress_count;
}

static void rules_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    (void)f;
    rule_text(&p->egress[i], out);
}

static bool rules_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    (void)f;
    return egress_within(parent, child);
}

static int rules_weight(const struct field *f, const struct policy *p, size_t i)
{
    (void)f;
    return p->egress[i].verdict == VERDICT_DENY ? -1 : 1;
}

static void quotas_json(const struct policy_egress *r, struct json *j)
{
    static const char *const keys[QUOTA_COUNT] = {[QUOTA_RATE] = "rate_limit_per_min",
                                                  [QUOTA_BYTES_OUT] = "bytes_out",
                                                  [QUOTA_BYTES_IN] = "bytes_in",
                                                  [QUOTA_CONNECTIONS] = "connections"};
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        if (r->quota[i])
            json_u64(j, keys[i], r->quota[i]);
}

static void requests_json(const struct policy_egress *r, struct json *j)
{
    if (r->methods) {
        json_begin_list(j, "methods");
        for (unsigned i = 0; i < METHOD_COUNT; i++)
            if (r->methods >> i & 1)
                json_text(j, NULL, plainhttp_method_name(i));
        json_end_list(j);
    }
    if (r->paths.count) {
        json_begin_list(j, "paths");
        for (size_t i = 0; i < r->paths.count; i++)
            json_text(j, NULL, r->paths.item[i]);
        json_end_list(j);
    }
}

/* As a file has it. */
static void rules_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const struct policy_egress *r = &p->egress[i];
    char range[ADDRESS_RANGE_MAX];
    (void)f;
    json_begin_object(j, key);
    json_text(j, r->domain ? "domain" : "cidr", r->domain ? r->domain : address_range_text(&r->range, range));
    if (r->host_port) {
        json_u64(j, "host_port", r->host_port);
    } else {
        json_begin_list(j, "ports");
        for (size_t k = 0; k < r->port_count; k++)
            json_u64(j, NULL, r->ports[k]);
        json_end_list(j);
    }
    quotas_json(r, j);
    if (r->window.days) {
        own_buf text = {0};
        buf_init(&text, 128);
        window_text(&r->window, &text);
        json_text(j, "time", buf_text(&text));
    }
    requests_json(r, j);
    json_text(j, "verdict", rule_verdict_name(r->verdict));
    json_end_object(j);
}

static void rules_done(const struct field *f, struct policy *p)
{
    (void)f;
    for (size_t i = 0; i < p->egress_count; i++)
        rule_free(&p->egress[i]);
    free(p->egress);
}

const struct field_kind egress_kind = {.shape = SHAPE_RULES,
                                       .count = rules_count,
                                       .text = rules_text,
                                       .set = rules_set,
                                       .within = rules_within,
                                       .weight = rules_weight,
                                       .json = rules_json,
                                       .done = rules_done};

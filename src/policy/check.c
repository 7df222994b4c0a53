/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules over a whole policy: what no single key shows, and what this build cannot hold. */
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "base/weak.h"
#include "policy/field.h"
#include "policy/guard.h"
#include "policy/hostpath.h"
#include "policy/preset.h"
#include "policy/share.h"

struct shown {
    char text[160];
};

static const char *shown(struct shown *s, const char *path)
{
    return quote_into(s->text, sizeof(s->text), path, strlen(path));
}

static int check_targets(const struct shares *m, struct pale_err *e)
{
    struct shown s;
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->item[i].target, m->item[k].target) == 0)
                return err_set(e, PALE_BAD_INPUT, "%s: %s is also named under %s; one place in the box can show one folder", m->item[i].key,
                               shown(&s, m->item[i].target), m->item[k].key);
    return 0;
}

/* A second name for a part of the project must not be a way around its guard or its mode. */
static int check_around_project(const struct policy *p, const struct share *m, struct pale_err *e)
{
    struct shown s;
    const char *path = p->project_path;
    bool inside = hostpath_covers(path, m->host), around = hostpath_covers(m->host, path);
    if (strcmp(m->key, "project") == 0 || m->access != SHARE_WRITE || (!inside && !around))
        return 0;
    if (strcmp(m->key, "volumes") == 0)
        return err_set(e, PALE_BAD_INPUT,
                       "volumes: %s would be a second, unguarded name for files of the project; make it :ro or take it out",
                       shown(&s, m->host));
    if (!inside)
        return 0;
    if (p->project == PROJECT_LIVE)
        return err_set(e, PALE_BAD_INPUT, "write: %s lies in the live project, which is writable already; take it out", shown(&s, m->host));
    const char *below = m->host + strlen(path);
    const char *name = guard_hit(&p->guard, *below ? below + 1 : below);
    if (name)
        return err_set(e, PALE_BAD_INPUT, "write: %s is guarded (%s): the host would run or obey it; take it out", shown(&s, m->host),
                       name);
    return 0;
}

static int check_volume_root(const struct policy *p, struct pale_err *e)
{
    struct shown a, b;
    for (size_t i = 0; p->volume_root && i < p->volume_count; i++)
        if (!hostpath_covers(p->volume_root, p->volumes[i].host))
            return err_set(e, PALE_BAD_INPUT, "volumes: %s does not lie beneath volume_root %s; move it there or widen volume_root",
                           shown(&a, p->volumes[i].host), shown(&b, p->volume_root));
    return 0;
}

static int check_egress(const struct policy *p, struct pale_err *e)
{
    bool asks = false;
    for (size_t i = 0; i < p->egress_count; i++)
        asks |= p->egress[i].verdict == VERDICT_ASK && p->egress[i].domain && !p->egress[i].host_port;
    if (p->egress_count && (p->network == NETWORK_NONE || p->network == NETWORK_HOST))
        return err_set(e, PALE_BAD_INPUT, "network.egress: rules do nothing with network %s; write network: {mode: filtered, egress: …}",
                       policy_network_name(p->network));
    if (asks && p->network == NETWORK_OPEN)
        return err_set(e, PALE_BAD_INPUT, "network.egress: network open allows every name, so there is nothing to ask; use mode filtered");
    return 0;
}

static int check_network(const struct policy *p, struct pale_err *e)
{
    bool off = p->network == NETWORK_NONE || p->network == NETWORK_HOST;
    const char *mode = policy_network_name(p->network);
    if (off && p->presets.count)
        return err_set(e, PALE_BAD_INPUT, "network.presets: rules do nothing with network %s; write network: {mode: filtered, presets: …}",
                       mode);
    if (off && p->publish_count)
        return err_set(e, PALE_BAD_INPUT, "network.publish: with network %s nothing leads to a port of the box; use mode filtered", mode);
    return check_egress(p, e);
}

static int check_size(const struct policy *p, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(p, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes in its canonical form; use fewer or shorter items",
                       POLICY_TEXT_MAX);
    return 0;
}

int policy_check(const struct policy *p, struct pale_err *e)
{
    own_shares m = {0};
    int r = shares_init(&m, p, e);
    if (r == 0 && p->project_path && p->project == PROJECT_NONE)
        r = err_set(e, PALE_BAD_INPUT, "project.path: a path without a mode; write project: {path: …, mode: live, review or ro}");
    if (r == 0)
        r = check_targets(&m, e);
    for (size_t i = 0; r == 0 && p->project_path && i < m.count; i++)
        r = check_around_project(p, &m.item[i], e);
    if (r == 0)
        r = check_volume_root(p, e);
    if (r == 0)
        r = check_network(p, e);
    if (r == 0)
        r = check_size(p, e);
    return r;
}

static bool has_gvisor(const struct policy *p)
{
    return p->tier == TIER_GVISOR;
}

bool policy_limit_is_unheld(const struct policy *p, enum policy_limit_kind which)
{
    return (which == LIMIT_TOKENS || which == LIMIT_COST) && p->network != NETWORK_NONE && p->limits[which].value;
}

/* Only what somebody wrote down: a capability file that says nothing of tokens and cost has defaults for them. */
static bool has_budget(const struct policy *p)
{
    return (policy_limit_is_unheld(p, LIMIT_TOKENS) && p->limits[LIMIT_TOKENS].asked) ||
           (policy_limit_is_unheld(p, LIMIT_COST) && p->limits[LIMIT_COST].asked);
}

static bool has_microvm(const struct policy *p)
{
    return p->tier == TIER_MICROVM;
}

static bool has_pending_preset(const struct policy *p)
{
    return preset_pending(p) != NULL;
}

/* What has no program behind it yet. A row goes away with the program that holds it. */
static const struct unheld {
    bool (*asked)(const struct policy *p);
    const char *text;
} unheld[] = {
    {has_pending_preset, "network.presets: a preset without a version was never looked up; make the policy with pale create or pale run"},
    {has_budget, "limits.tokens and limits.cost: this build does not meter model APIs; leave them out, or use network: none"},
    {has_gvisor, "tier: gvisor is not in this build; use tier: native"},
    {has_microvm, "tier: microvm is not in this build; use tier: native"},
};

int policy_held(const struct policy *p, struct pale_err *e)
{
    for (size_t i = 0; i < sizeof(unheld) / sizeof(unheld[0]) && !weak_word("policy-check"); i++)
        if (unheld[i].asked(p))
            return err_set(e, PALE_UNSUPPORTED, "%s", unheld[i].text);
    return 0;
}

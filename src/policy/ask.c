/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answer to "may this box …": about host files as seen at a path of the box, names on the network, and variables of
 * the host. What a box does to files of its own is no question: they are not the host's. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/quote.h"
#include "policy/domain.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "policy/field.h"
#include "policy/guard.h"
#include "policy/hostpath.h"
#include "policy/share.h"

PRINTF_LIKE(4, 5)
static int answer(struct policy_answer *ret, enum policy_verdict verdict, const char *rule, const char *fmt, ...)
{
    va_list ap;
    *ret = (struct policy_answer){.allowed = verdict == VERDICT_ALLOW, .verdict = verdict};
    quote_into(ret->rule, sizeof(ret->rule), rule, strlen(rule));
    va_start(ap, fmt);
    vsnprintf(ret->reason, sizeof(ret->reason), fmt, ap);
    va_end(ap);
    return 0;
}

/* Where the host base shows the host's own files. /etc is made for the box and is none of them. */
static const char *const base_folders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

static int ask_outside(const struct policy *p, bool write, const char *path, struct policy_answer *ret)
{
    for (size_t i = 0; i < sizeof(base_folders) / sizeof(base_folders[0]); i++)
        if (!write && !p->image && hostpath_covers(base_folders[i], path))
            return answer(ret, VERDICT_ALLOW, "image -", "The host base shows the host's %s, read-only.", base_folders[i]);
    return answer(ret, VERDICT_DENY, "default", "No line of the policy shows the box this path of the host; %s would.",
                  write ? "write, a volume or a live project" : "read, a volume or a project");
}

static int ask_path(const struct policy *p, bool write, const char *path, struct policy_answer *ret, struct pale_err *e)
{
    own_shares m = {0};
    char rule[2 * 256 + 32];
    int r = hostpath_check(path, 0, e);
    if (r == 0)
        r = shares_init(&m, p, e);
    if (r < 0)
        return r;
    const struct share *at = shares_at(&m, path);
    if (!at)
        return ask_outside(p, write, path, ret);
    snprintf(rule, sizeof(rule), "%s %.255s", at->key, at->target);
    if (!write)
        return answer(ret, VERDICT_ALLOW, rule, "The policy shows it to the box.");
    if (at->access == SHARE_READ)
        return answer(ret, VERDICT_DENY, rule, "The box sees it read-only.");
    if (at->access == SHARE_REVIEW)
        return answer(ret, VERDICT_ASK, rule, "The box writes to a copy; pale diff shows it and pale apply lands it.");
    const char *below = path + strlen(at->target);
    const char *guard = at->access == SHARE_LIVE && *below ? guard_hit(&p->guard, below + 1) : NULL;
    if (guard) {
        snprintf(rule, sizeof(rule), "guard %s", guard);
        return answer(ret, VERDICT_DENY, rule, "The host would run or obey it with no human act.");
    }
    return answer(ret, VERDICT_ALLOW, rule, "The policy lets the box change it.");
}

static int ask_read(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    return ask_path(p, false, what, ret, e);
}

static int ask_write(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    return ask_path(p, true, what, ret, e);
}

static int ask_rules(const struct policy *p, const char *name, uint16_t port, struct policy_answer *ret)
{
    const struct policy_egress *r = egress_match(p, name, port);
    own_buf rule = {0};
    buf_init(&rule, 4096);
    if (!r || (p->network == NETWORK_OPEN && r->verdict == VERDICT_ASK)) {
        if (p->network == NETWORK_OPEN)
            return answer(ret, VERDICT_ALLOW, "network.mode open", "Every name is open, at addresses that are not private.");
        return answer(ret, VERDICT_DENY, "network.mode filtered", "No egress rule matches %s port %u; %s:%u would.", name, port, name,
                      port);
    }
    buf_add_text(&rule, "network.egress ");
    egress_text(r, &rule);
    if (r->verdict == VERDICT_DENY)
        return answer(ret, VERDICT_DENY, buf_text(&rule), "A rule refuses %s port %u.", name, port);
    if (r->verdict == VERDICT_ASK)
        return answer(ret, VERDICT_ASK, buf_text(&rule), "The operator is asked about %s port %u.", name, port);
    uint32_t rate = egress_rate(p, name, port);
    if (rate)
        return answer(ret, VERDICT_ALLOW, buf_text(&rule), "A rule allows %s port %u, %u times a minute.", name, port, rate);
    return answer(ret, VERDICT_ALLOW, buf_text(&rule), "A rule allows %s port %u.", name, port);
}

static int ask_reach(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    char name[DOMAIN_NAME_MAX + 1], shown[60];
    uint64_t port = 443;
    size_t n = strcspn(what, ":");
    int r = domain_parse(what, n, false, name, e);
    if (r < 0)
        return r;
    if (what[n] && (!number_u64(what + n + 1, 65535, &port) || port == 0))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not NAME or NAME:PORT", quote_into(shown, sizeof(shown), what, strlen(what)));
    if (p->network == NETWORK_NONE)
        return answer(ret, VERDICT_DENY, "network.mode none", "The box has no network.");
    if (p->network == NETWORK_HOST)
        return answer(ret, VERDICT_ALLOW, "network.mode host", "The box shares the host's network; nothing is filtered.");
    return ask_rules(p, name, (uint16_t)port, ret);
}

static int ask_env(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    char rule[2 * DOMAIN_NAME_MAX], shown[60];
    const char *withheld, *item = env_pass_rule(p, what, &withheld);
    if (!env_is_name(what, strlen(what)))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no variable name", quote_into(shown, sizeof(shown), what, strlen(what)));
    if (env_is_set(p, what, strlen(what))) {
        snprintf(rule, sizeof(rule), "env.set %s", what);
        return answer(ret, VERDICT_DENY, rule, "The policy sets it to a value of its own, so the host's does not come in.");
    }
    snprintf(rule, sizeof(rule), "env.pass %s", item ? item : withheld ? withheld : "");
    if (policy_passes_env(p, what))
        return answer(ret, VERDICT_ALLOW, rule, "The host's value comes in.");
    if (withheld)
        return answer(ret, VERDICT_DENY, rule, "The name looks like a secret, which no pattern lets in; write it out in env.pass.");
    return answer(ret, VERDICT_DENY, "default", "No line of env.pass names it.");
}

static const struct question {
    const char *kind;
    int (*ask)(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e);
} questions[] = {{"read", ask_read}, {"write", ask_write}, {"reach", ask_reach}, {"env", ask_env}};

int policy_ask(const struct policy *p, const char *kind, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    struct nearest near;
    char shown[60];
    nearest_init(&near, kind);
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        if (strcmp(questions[i].kind, kind) == 0)
            return questions[i].ask(p, what, ret, e) < 0 ? err_prefix(e, "%s", kind) : 0;
        nearest_offer(&near, questions[i].kind);
    }
    quote_into(shown, sizeof(shown), kind, strlen(kind));
    if (near.best)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no question; did you mean \"%s\"?", shown, near.best);
    return err_set(e, PALE_BAD_INPUT, "\"%s\" is no question; ask read, write, reach or env", shown);
}

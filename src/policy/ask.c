/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answer to "may this box …": about host files as seen at a path of the box, names on the network, and variables of
 * the host. What a box does to files of its own is no question: they are not the host's. */
#include <inttypes.h>
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
#include "policy/window.h"

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

static const char *verdict_phrase(enum policy_verdict v)
{
    return v == VERDICT_DENY ? "A rule refuses" : v == VERDICT_ASK ? "The operator is asked about" : "A rule allows";
}

/* What a flow that is let through is held to, as the end of a sentence. */
static void add_terms(const struct egress_verdict *v, struct buf *out)
{
    char text[32];
    static const struct {
        enum policy_quota quota;
        const char *text;
    } sizes[] = {{QUOTA_BYTES_OUT, "sent"}, {QUOTA_BYTES_IN, "received"}};
    if (v->quota[QUOTA_RATE])
        buf_addf(out, ", %" PRIu64 " times a minute", v->quota[QUOTA_RATE]);
    for (size_t i = 0; i < 2; i++)
        if (v->quota[sizes[i].quota])
            buf_addf(out, ", %s %s in all", number_show_bytes(v->quota[sizes[i].quota], text, sizeof(text)), sizes[i].text);
    if (v->quota[QUOTA_CONNECTIONS])
        buf_addf(out, ", %" PRIu64 " connections at once", v->quota[QUOTA_CONNECTIONS]);
    if (v->rule && v->rule->window.days) {
        buf_add_text(out, ", at ");
        window_text(&v->rule->window, out);
        buf_add_text(out, " UTC");
    }
    if (v->needs_http)
        buf_add_text(out, ", by the method and path of each request of plain HTTP");
}

static int answer_flow(const struct policy *p, const struct egress_question *q, const char *what, struct policy_answer *ret)
{
    struct egress_verdict v;
    char rule[256];
    own_buf terms = {0};
    egress_judge(p, q, &v);
    egress_ground_text(p, &v, rule, sizeof(rule));
    buf_init(&terms, 512);
    if (v.verdict != VERDICT_DENY)
        add_terms(&v, &terms);
    if (v.ground == EGRESS_BY_RULE)
        return answer(ret, v.verdict, rule, "%s %s port %u%s.", verdict_phrase(v.verdict), what, q->port, buf_text(&terms));
    if (v.ground == EGRESS_BY_ADDRESS && v.class == ADDRESS_LOOPBACK)
        return answer(ret, v.verdict, rule, "%s is the host itself; a rule such as NAME.host.pale:PORT opens one port of it.", what);
    if (v.ground == EGRESS_BY_ADDRESS)
        return answer(ret, v.verdict, rule, "%s is not public but %s; only a rule with a cidr of its own opens it, if any.", what,
                      address_class_text(v.class));
    if (p->network == NETWORK_OPEN && v.verdict == VERDICT_ALLOW)
        return answer(ret, v.verdict, rule, "Every name is open, at addresses that are not private%s.", buf_text(&terms));
    if (q->address)
        return answer(ret, v.verdict, rule, "No egress rule matches %s port %u; one with a cidr would.", what, q->port);
    return answer(ret, v.verdict, rule, "No egress rule matches %s port %u; %s:%u would.", what, q->port, what, q->port);
}

/* Where a host name or an address ends and ":PORT" begins. */
static size_t host_length(const char *what)
{
    size_t n = strcspn(what, "]");
    return what[0] == '[' && what[n] ? n + 1 : strcspn(what, ":");
}

static bool read_address(const char *what, size_t n, struct address *ret)
{
    bool six = what[0] == '[' && n > 2;
    return address_parse(what + six, n - 2 * six, ret) && (ret->family == ADDRESS_V6) == six;
}

static int ask_reach(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    char name[DOMAIN_NAME_MAX + 1], shown[60];
    struct address address;
    uint64_t port = 443;
    size_t n = host_length(what);
    bool is_address = read_address(what, n, &address);
    int r = is_address ? 0 : domain_parse(what, n, false, name, e);
    if (r < 0)
        return r;
    if (what[n] && (what[n] != ':' || !number_u64(what + n + 1, 65535, &port) || port == 0))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not NAME or NAME:PORT", quote_into(shown, sizeof(shown), what, strlen(what)));
    if (p->network == NETWORK_NONE)
        return answer(ret, VERDICT_DENY, "network.mode none", "The box has no network.");
    if (p->network == NETWORK_HOST)
        return answer(ret, VERDICT_ALLOW, "network.mode host", "The box shares the host's network; nothing is filtered.");
    struct egress_question q = {.port = (uint16_t)port, .minute = egress_minute(time(NULL))};
    if (is_address) {
        char text[ADDRESS_TEXT_MAX];
        q.address = &address;
        return answer_flow(p, &q, address_text(&address, text), ret);
    }
    q.name = name;
    return answer_flow(p, &q, name, ret);
}

static int ask_env(const struct policy *p, const char *what, struct policy_answer *ret, struct pale_err *e)
{
    char rule[2 * DOMAIN_NAME_MAX], shown[60];
    struct env_rule found = env_rule_for(p, what, NULL);
    if (!env_is_name(what, strlen(what)))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no variable name", quote_into(shown, sizeof(shown), what, strlen(what)));
    if (env_is_set(p, what, strlen(what))) {
        snprintf(rule, sizeof(rule), "env.set %s", what);
        return answer(ret, VERDICT_DENY, rule, "The policy sets it to a value of its own, so the host's does not come in.");
    }
    snprintf(rule, sizeof(rule), "%s %s",
             found.item      ? found.key
             : found.held_by ? found.held_by_key
                             : "env.pass",
             found.item      ? found.item
             : found.held_by ? found.held_by
                             : "");
    if (policy_passes_env(p, what) && strcmp(found.key, "env.allow") == 0)
        return answer(ret, VERDICT_ALLOW, rule, "The host's value comes in, unless it looks like a secret.");
    if (policy_passes_env(p, what))
        return answer(ret, VERDICT_ALLOW, rule, "The host's value comes in.");
    if (found.held_by)
        return answer(ret, VERDICT_DENY, rule,
                      "The name looks like a secret, which only env.pass lets in, written out; --env %s says the same.", what);
    return answer(ret, VERDICT_DENY, "default", "No line of env.pass or env.allow names it.");
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

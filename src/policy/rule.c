/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the text of an egress rule, and the comparison of rules.
 *
 * How it works: the text may be hostile; it is parsed once into canonical names or addresses and sorted lists, and only that form is
 * compared. Two patterns over names, and two ranges, either have nothing in common or one covers the other. */
#include "policy/rule.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/quote.h"
#include "net/hostname.h"
#include "policy/domain.h"
#include "policy/plainhttp.h"
#include "policy/strlist.h"
#include "policy/window.h"

#define FORM "TARGET[:PORT,…][=allow|ask|deny][@RATE][+out=SIZE][+in=SIZE][+conns=N][+time=WINDOW][+methods=M,…][+paths=P,…]"

/* A range that lets something through must be one that somebody means: these hold a whole private network, and no more. */
#define RANGE_V4_LEAST 8
#define RANGE_V6_LEAST 7

static const char *const verdict_names[] = {[VERDICT_ALLOW] = "allow", [VERDICT_ASK] = "ask", [VERDICT_DENY] = "deny"};
static_assert(sizeof(verdict_names) / sizeof(verdict_names[0]) == VERDICT_COUNT, "a name for every verdict");

const char *rule_verdict_name(enum policy_verdict v)
{
    return verdict_names[v];
}

void rule_free(struct policy_egress *r)
{
    free(r->domain);
    free(r->ports);
    strlist_done(&r->paths);
    *r = (struct policy_egress){0};
}

bool rule_is_host_name(const char *name)
{
    return strcmp(name, RULE_HOST_ZONE) == 0 || hostname_covers("*." RULE_HOST_ZONE, name);
}

static void target_text(const struct policy_egress *r, struct buf *out)
{
    char text[ADDRESS_RANGE_MAX];
    if (r->domain)
        buf_add_text(out, r->domain);
    else
        buf_addf(out, r->range.first.family == ADDRESS_V6 ? "[%s]" : "%s", address_range_text(&r->range, text));
}

static void paths_text(const struct policy_strings *paths, struct buf *out)
{
    for (size_t i = 0; i < paths->count; i++)
        buf_addf(out, "%s%s", i ? "," : "", paths->item[i]);
}

/* In the largest unit that is exact, so that a rule reads as it was written. */
static void quota_text(uint64_t v, bool is_bytes, struct buf *out)
{
    static const char units[] = "KMGT";
    size_t i = 0;
    for (; is_bytes && units[i] && v % 1024 == 0; i++)
        v /= 1024;
    buf_addf(out, "%" PRIu64, v);
    if (i > 0)
        buf_add(out, &units[i - 1], 1);
}

void rule_text(const struct policy_egress *r, struct buf *out)
{
    static const char *const names[QUOTA_COUNT] = {
        [QUOTA_RATE] = "@", [QUOTA_BYTES_OUT] = "+out=", [QUOTA_BYTES_IN] = "+in=", [QUOTA_CONNECTIONS] = "+conns="};
    target_text(r, out);
    for (size_t i = 0; i < r->port_count; i++)
        buf_addf(out, "%c%u", i ? ',' : ':', r->ports[i]);
    if (r->verdict != VERDICT_ALLOW)
        buf_addf(out, "=%s", verdict_names[r->verdict]);
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        if (r->quota[i]) {
            buf_add_text(out, names[i]);
            quota_text(r->quota[i], i == QUOTA_BYTES_OUT || i == QUOTA_BYTES_IN, out);
        }
    if (r->window.days) {
        buf_add_text(out, "+time=");
        window_text(&r->window, out);
    }
    if (r->methods) {
        buf_add_text(out, "+methods=");
        plainhttp_methods_text(r->methods, out);
    }
    if (r->paths.count) {
        buf_add_text(out, "+paths=");
        paths_text(&r->paths, out);
    }
}

static int add_port(struct policy_egress *r, const char *text, size_t len, struct pale_err *e)
{
    char one[8] = {0}, shown[40];
    uint64_t v = 0;
    memcpy(one, text, len < sizeof(one) ? len : 0);
    if (!number_u64(one, 65535, &v) || v == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no port; ports go from 1 to 65535", quote_into(shown, sizeof(shown), text, len));
    size_t at = 0;
    while (at < r->port_count && r->ports[at] < v)
        at++;
    if (at < r->port_count && r->ports[at] == v)
        return 0;
    if (r->port_count >= EGRESS_PORTS_MAX)
        return err_set(e, PALE_LIMIT, "a rule has more than %d ports; leave them out to allow all", EGRESS_PORTS_MAX);
    uint16_t *grown = realloc(r->ports, (r->port_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    r->ports = grown;
    memmove(grown + at + 1, grown + at, (r->port_count - at) * sizeof(*grown));
    grown[at] = (uint16_t)v;
    r->port_count++;
    return 0;
}

static int parse_ports(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    for (const char *end = s + len;; s++) {
        size_t n = strcspn(s, ",");
        n = s + n > end ? (size_t)(end - s) : n;
        int ret = add_port(r, s, n, e);
        s += n;
        if (ret < 0 || s == end)
            return ret;
    }
}

static int parse_verdict(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    char shown[40];
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        if (strlen(verdict_names[v]) == len && memcmp(verdict_names[v], s, len) == 0) {
            r->verdict = v;
            return 0;
        }
    return err_set(e, PALE_BAD_INPUT, "\"%s\" is not allow, ask or deny", quote_into(shown, sizeof(shown), s, len));
}

static int parse_count(const char *s, size_t len, uint64_t *ret, const char *what, struct pale_err *e)
{
    char one[12] = {0}, shown[40];
    uint64_t v = 0;
    memcpy(one, s, len < sizeof(one) ? len : 0);
    if (!number_u64(one, 1000000, &v) || v == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no %s", quote_into(shown, sizeof(shown), s, len), what);
    *ret = v;
    return 0;
}

static int parse_rate(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    return parse_count(s, len, &r->quota[QUOTA_RATE], "rate; it goes from 1 to 1000000 a minute", e);
}

static int parse_connections(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    return parse_count(s, len, &r->quota[QUOTA_CONNECTIONS], "number of connections; it goes from 1 to 1000000 at once", e);
}

static int parse_bytes(const char *s, size_t len, uint64_t *ret, struct pale_err *e)
{
    char one[32] = {0}, shown[40];
    uint64_t v = 0;
    memcpy(one, s, len < sizeof(one) ? len : 0);
    if (!number_size(one, &v) || v == 0 || v > INT64_MAX)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no number of bytes; write for example 10M", quote_into(shown, sizeof(shown), s, len));
    *ret = v;
    return 0;
}

static int parse_out(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    return parse_bytes(s, len, &r->quota[QUOTA_BYTES_OUT], e);
}

static int parse_in(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    return parse_bytes(s, len, &r->quota[QUOTA_BYTES_IN], e);
}

static int parse_time(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    return window_parse(s, len, &r->window, e);
}

/* The parts after the target, each at most once and in this order. */
static const struct part {
    const char *mark, *ends;
    int (*parse)(struct policy_egress *r, const char *s, size_t len, struct pale_err *e);
} parts[] = {
    {":", "=@+", parse_ports},
    {"=", "@+", parse_verdict},
    {"@", "+", parse_rate},
    {"+out=", "+", parse_out},
    {"+in=", "+", parse_in},
    {"+conns=", "+", parse_connections},
    {"+time=", "+", parse_time},
    {"+methods=", "+", plainhttp_methods},
    {"+paths=", "+", plainhttp_paths},
};

/* Names that are addresses to some are refused: who means addresses says how many bits count. */
static int parse_target(const char *value, size_t *ret_len, struct policy_egress *r, struct pale_err *e)
{
    char name[DOMAIN_NAME_MAX + 1], shown[200];
    bool six = value[0] == '[';
    size_t n = six ? strcspn(value, "]") : strcspn(value, ":=@+");
    bool closed = !six || value[n] == ']', range = six || memchr(value, '/', n);
    *ret_len = six && closed ? n + 1 : n;
    if (!six && value[n] == ':' && address_range_parse(value, strcspn(value, "=@+"), &(struct address_range){0}))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is an address of IPv6; write it in brackets, with its bits: [fd00::/8]",
                       quote_into(shown, sizeof(shown), value, strlen(value)));
    if (!range) {
        int ret = domain_parse(value, n, true, name, e);
        if (ret < 0)
            return ret;
        r->domain = strdup(name);
        return r->domain ? 0 : err_nomem(e);
    }
    if (!closed || !memchr(value, '/', n) || !address_range_parse(value + six, n - six, &r->range) ||
        (r->range.first.family == ADDRESS_V6) != six)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no range of addresses; write for example 10.0.0.0/8 or [fd00::/8], other bits zero",
                       quote_into(shown, sizeof(shown), value, *ret_len));
    return 0;
}

/* What a rule that lets something through may not say about addresses. */
static int check_range(const struct policy_egress *r, struct pale_err *e)
{
    bool six = r->range.first.family == ADDRESS_V6;
    unsigned least = six ? RANGE_V6_LEAST : RANGE_V4_LEAST;
    char text[ADDRESS_RANGE_MAX];
    address_range_text(&r->range, text);
    if (r->range.bits < least)
        return err_set(e, PALE_BAD_INPUT, "%s is too wide to be let through; ranges go from /%u on, and network: open is for all", text,
                       least);
    if (address_class(&r->range.first) == ADDRESS_LOOPBACK)
        return err_set(e, PALE_BAD_INPUT, "%s is the host itself; open one port of it as NAME." RULE_HOST_ZONE ":PORT (host_port)", text);
    return 0;
}

static int check_name(struct policy_egress *r, struct pale_err *e)
{
    if (strcmp(r->domain, "*") == 0 && r->verdict == VERDICT_ALLOW)
        return err_set(e, PALE_BAD_INPUT, "\"*\" allows every name; write network: open if that is meant");
    if (!rule_is_host_name(r->domain))
        return 0;
    if (r->port_count != 1 || r->domain[0] == '*')
        return err_set(e, PALE_BAD_INPUT, "%s is the host itself; open one port of it, as in db." RULE_HOST_ZONE ":5432", r->domain);
    r->host_port = r->ports[0];
    return 0;
}

/* Nobody can look into TLS here, and a rule that cannot be held is not taken. */
static int check_http(const struct policy_egress *r, struct pale_err *e)
{
    if (plainhttp_is_asked(r) && rule_has_port(r, 443))
        return err_set(e, PALE_BAD_INPUT, "methods and paths are seen in plain HTTP alone; list the plain-HTTP ports, without 443");
    return 0;
}

static int check_quotas(const struct policy_egress *r, struct pale_err *e)
{
    for (size_t i = 0; r->verdict == VERDICT_DENY && i < QUOTA_COUNT; i++)
        if (r->quota[i])
            return err_set(e, PALE_BAD_INPUT, "a rule that denies lets nothing through that could be counted; take the limits out");
    return 0;
}

int rule_parse(const char *value, struct policy_egress *ret, struct pale_err *e)
{
    own_rule r = {0};
    char shown[200];
    size_t n;
    int ret_code = parse_target(value, &n, &r, e);
    const char *s = value + n;
    for (size_t i = 0; ret_code == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t mark = strlen(parts[i].mark);
        if (strncmp(s, parts[i].mark, mark) != 0)
            continue;
        n = strcspn(s + mark, parts[i].ends);
        ret_code = parts[i].parse(&r, s + mark, n, e);
        s += mark + n;
    }
    if (ret_code == 0 && *s)
        ret_code = err_set(e, PALE_BAD_INPUT, "\"%s\" is not " FORM, quote_into(shown, sizeof(shown), value, strlen(value)));
    if (ret_code == 0 && r.verdict != VERDICT_DENY)
        ret_code = r.domain ? check_name(&r, e) : check_range(&r, e);
    if (ret_code == 0)
        ret_code = check_http(&r, e);
    if (ret_code == 0)
        ret_code = check_quotas(&r, e);
    if (ret_code < 0)
        return ret_code;
    *ret = r;
    r = (struct policy_egress){0};
    return 0;
}

/* --- order --- */

static int order_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int order_target(const struct policy_egress *a, const struct policy_egress *b)
{
    if (!a->domain || !b->domain) {
        int r = !a->domain - !b->domain;
        if (r == 0)
            r = memcmp(&a->range.first, &b->range.first, sizeof(a->range.first));
        return r ? r : (int)a->range.bits - (int)b->range.bits;
    }
    return strcmp(a->domain, b->domain);
}

static int order_window(const struct policy_window *a, const struct policy_window *b)
{
    int r = (int)a->days - (int)b->days;
    if (r == 0)
        r = (int)a->from - (int)b->from;
    return r ? r : (int)a->to - (int)b->to;
}

static int order_paths(const struct policy_strings *a, const struct policy_strings *b)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < a->count && i < b->count; i++)
        r = strcmp(a->item[i], b->item[i]);
    return r ? r : order_u64(a->count, b->count);
}

int rule_order(const struct policy_egress *a, const struct policy_egress *b)
{
    int r = order_target(a, b);
    if (r == 0)
        r = (int)a->verdict - (int)b->verdict;
    for (size_t i = 0; r == 0 && i < QUOTA_COUNT; i++)
        r = order_u64(a->quota[i], b->quota[i]);
    for (size_t i = 0; r == 0 && i < a->port_count && i < b->port_count; i++)
        r = (int)a->ports[i] - (int)b->ports[i];
    if (r == 0)
        r = order_u64(a->port_count, b->port_count);
    if (r == 0)
        r = order_window(&a->window, &b->window);
    if (r == 0)
        r = order_u64(a->methods, b->methods);
    return r ? r : order_paths(&a->paths, &b->paths);
}

/* --- comparison --- */

bool rule_has_port(const struct policy_egress *r, uint16_t port)
{
    for (size_t i = 0; i < r->port_count; i++)
        if (r->ports[i] == port)
            return true;
    return r->port_count == 0;
}

static bool ports_cover(const struct policy_egress *outer, const struct policy_egress *inner)
{
    if (outer->port_count == 0)
        return true;
    for (size_t i = 0; i < inner->port_count; i++)
        if (!rule_has_port(outer, inner->ports[i]))
            return false;
    return inner->port_count > 0;
}

static bool ports_meet(const struct policy_egress *a, const struct policy_egress *b)
{
    for (size_t i = 0; i < a->port_count; i++)
        if (rule_has_port(b, a->ports[i]))
            return true;
    return a->port_count == 0 || b->port_count == 0;
}

static bool target_covers(const struct policy_egress *outer, const struct policy_egress *inner)
{
    if (!outer->domain || !inner->domain)
        return !outer->domain && !inner->domain && address_range_covers(&outer->range, &inner->range);
    return hostname_covers(outer->domain, inner->domain);
}

bool rule_covers(const struct policy_egress *outer, const struct policy_egress *inner)
{
    return target_covers(outer, inner) && ports_cover(outer, inner) && window_covers(&outer->window, &inner->window) &&
           plainhttp_covers(outer, inner);
}

bool rule_meets(const struct policy_egress *held, const struct policy_egress *rule)
{
    bool crossing = !held->domain && rule->domain && !rule->host_port;
    return (crossing || target_covers(held, rule) || target_covers(rule, held)) && ports_meet(held, rule) &&
           windows_meet(&held->window, &rule->window) && plainhttp_meets(held, rule);
}

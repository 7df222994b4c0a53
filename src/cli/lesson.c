/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is learned of a log. */
#include "cli/lesson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "net/hostname.h"
#include "policy/rule.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void leave(struct lesson *l, const struct netline *n, const char *why)
{
    struct lesson_left new = {.times = 1};
    char port[16] = "";
    if (n->port && strcmp(n->kind, "name") != 0)
        snprintf(port, sizeof(port), " port %u", n->port);
    const char *what = n->host[0] ? n->host : n->address;
    own_buf shown = {0};
    buf_init(&shown, 4096);
    quote_again(&shown, what, strlen(what), sizeof(new.what) - 32);
    snprintf(new.what, sizeof(new.what), "%.140s%s", buf_text(&shown), port);
    buf_clear(&shown);
    quote_again(&shown, why, strlen(why), sizeof(new.why) - 8);
    snprintf(new.why, sizeof(new.why), "%.190s", buf_text(&shown));
    for (size_t i = 0; i < l->lefts; i++)
        if (strcmp(l->left[i].what, new.what) == 0 && strcmp(l->left[i].why, new.why) == 0) {
            l->left[i].times++;
            return;
        }
    if (l->lefts < LESSON_LEFT_MAX)
        l->left[l->lefts++] = new;
    else
        l->more++;
}

static struct lesson_host *host_of(struct lesson *l, const char *name)
{
    for (size_t i = 0; i < l->hosts; i++)
        if (strcmp(l->host[i].name, name) == 0)
            return &l->host[i];
    if (l->hosts == LESSON_HOSTS_MAX)
        return NULL;
    struct lesson_host *h = &l->host[l->hosts++];
    *h = (struct lesson_host){0};
    snprintf(h->name, sizeof(h->name), "%s", name);
    return h;
}

/* False: there is no room for another port. */
static bool add_port(struct lesson_host *h, uint16_t port)
{
    size_t at = 0;
    while (at < h->ports && h->port[at] < port)
        at++;
    if (at < h->ports && h->port[at] == port)
        return true;
    if (h->ports == LESSON_PORTS_MAX)
        return false;
    memmove(&h->port[at + 1], &h->port[at], (h->ports - at) * sizeof(h->port[0]));
    h->port[at] = port;
    h->ports++;
    return true;
}

/* Why it cannot be a rule; NULL if it can. */
static const char *no_rule(const struct netline *n)
{
    struct hostname canon;
    if (strcmp(n->kind, "udp") == 0 || strcmp(n->kind, "other") == 0)
        return n->reason[0] ? n->reason : "only TCP leaves a box";
    if (!n->host[0])
        return "an address, and no name led there; write a rule for the range if you mean it";
    if (hostname_canon(n->host, strlen(n->host), false, &canon) != HOSTNAME_GOOD || strcmp(canon.text, n->host) != 0)
        return "no name that a rule can have";
    if (rule_is_host_name(n->host))
        return "a port of this host, which is opened by a rule that names it";
    return NULL;
}

/* Was it refused because no rule is about it? What a rule, the operator or its address forbids is meant so. */
static const char *no_wonder(const struct netline *n)
{
    if (strcmp(n->event, "net.deny") != 0)
        return NULL;
    if (begins(n->rule, "network.mode ") && strcmp(n->rule, "network.mode none") != 0)
        return NULL;
    if (strcmp(n->kind, "name") == 0 && strcmp(n->rule, "network.egress") == 0)
        return NULL;
    return n->reason[0] ? n->reason : n->rule;
}

void lesson_take(struct lesson *l, const struct netline *n)
{
    bool allowed = strcmp(n->event, "net.allow") == 0;
    if (!allowed && strcmp(n->event, "net.deny") != 0 && strcmp(n->event, "net.ask") != 0)
        return;
    /* What came in by a published port; and before the box was handed over, the prober. */
    if (strcmp(n->kind, "in") == 0 || (!n->host[0] && strcmp(n->rule, "network.mode none") == 0))
        return;
    const char *why = no_rule(n);
    if (!why)
        why = no_wonder(n);
    if (why)
        return leave(l, n, why);
    struct lesson_host *h = host_of(l, n->host);
    bool by_name = strcmp(n->kind, "name") == 0;
    if (!h || (!by_name && !add_port(h, n->port))) {
        l->more++;
        return;
    }
    h->by_name |= by_name;
    h->allowed += allowed;
    h->refused += !allowed;
}

void lesson_take_meter(struct lesson *l, const char *name, uint16_t port, uint64_t connections, uint64_t refused)
{
    struct netline n = {.event = "net.allow", .kind = "tcp", .port = port};
    snprintf(n.host, sizeof(n.host), "%s", name);
    if (name[0] == '(')
        return; /* a sum of ours */
    for (size_t i = 0; i < l->hosts; i++)
        if (strcmp(l->host[i].name, name) == 0)
            return;
    for (size_t i = 0; i < l->lefts; i++)
        if (begins(l->left[i].what, name))
            return;
    if (connections && port)
        lesson_take(l, &n);
    else if (refused)
        leave(l, &n, "refused, and the log does not say why: there was too much of it at once");
}

/* --- patterns --- */

/* What a pattern may be over: at least two labels, and not those of a registry's own, such as co.uk. */
static const char *parent_of(const char *name)
{
    const char *parent = strchr(name, '.');
    if (!parent || !strchr(++parent, '.'))
        return NULL;
    const char *dot = strchr(parent, '.'), *last = strrchr(parent, '.');
    return dot == last && dot - parent <= 3 && strlen(last + 1) == 2 ? NULL : parent;
}

static bool is_sibling(const struct lesson_host *a, const struct lesson_host *b, const char *parent)
{
    const char *other = parent_of(b->name);
    return !b->is_gone && !b->stands_for && other && strcmp(other, parent) == 0 && a->ports == b->ports && a->guessed == b->guessed &&
           memcmp(a->port, b->port, a->ports * sizeof(a->port[0])) == 0;
}

static void make_pattern(struct lesson *l, size_t first)
{
    const struct lesson_host *a = &l->host[first];
    const char *parent = parent_of(a->name);
    unsigned n = 0;
    for (size_t i = first; parent && i < l->hosts; i++)
        n += is_sibling(a, &l->host[i], parent);
    if (n <= LESSON_SIBLINGS || l->hosts == LESSON_HOSTS_MAX)
        return;
    struct lesson_host *p = &l->host[l->hosts];
    *p = *a;
    p->allowed = p->refused = 0;
    p->stands_for = n;
    snprintf(p->name, sizeof(p->name), "*.%s", parent);
    for (size_t i = first; i < l->hosts; i++) {
        struct lesson_host *h = &l->host[i];
        if (!is_sibling(p, h, p->name + 2))
            continue;
        p->allowed += h->allowed;
        p->refused += h->refused;
        h->is_gone = true;
    }
    l->hosts++;
}

static int by_name(const void *a, const void *b)
{
    const struct lesson_host *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void lesson_settle(struct lesson *l)
{
    for (size_t i = 0; i < l->hosts; i++)
        if (l->host[i].ports == 0) {
            l->host[i].guessed = true;
            l->host[i].port[l->host[i].ports++] = 443;
        }
    size_t seen = l->hosts;
    for (size_t i = 0; i < seen; i++)
        if (!l->host[i].is_gone)
            make_pattern(l, i);
    qsort(l->host, l->hosts, sizeof(l->host[0]), by_name);
}

/* --- telling --- */

static void put_ports(const struct lesson_host *h, const char *between, struct buf *out)
{
    for (size_t i = 0; i < h->ports; i++)
        buf_addf(out, "%s%u", i ? between : "", h->port[i]);
}

static void put_rule(const struct lesson_host *h, struct buf *out)
{
    buf_addf(out, h->stands_for ? "    - {domain: \"%s\", ports: [" : "    - {domain: %s, ports: [", h->name);
    put_ports(h, ", ", out);
    buf_add_text(out, "]}  #");
    if (h->allowed)
        buf_addf(out, " allowed %llu", (unsigned long long)h->allowed);
    if (h->refused)
        buf_addf(out, "%s refused %llu", h->allowed ? "," : "", (unsigned long long)h->refused);
    if (h->stands_for)
        buf_addf(out, "; for %u names", h->stands_for);
    if (h->guessed)
        buf_add_text(out, "; only its name was asked for: the port is a guess");
    buf_add_text(out, "\n");
}

static size_t count(const struct lesson *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->hosts; i++)
        n += !l->host[i].is_gone;
    return n;
}

void lesson_yaml(const struct lesson *l, const char *box, struct buf *out)
{
    size_t n = count(l);
    buf_addf(out, "# what box %s was seen to reach for: %zu rule%s; read them before you allow them\n", box, n, n == 1 ? "" : "s");
    buf_add_text(out, n ? "network:\n  mode: filtered\n  egress:\n" : "network: none\n");
    for (size_t i = 0; i < l->hosts; i++)
        if (!l->host[i].is_gone)
            put_rule(&l->host[i], out);
    if (l->lefts)
        buf_add_text(out, "# left out:\n");
    for (size_t i = 0; i < l->lefts; i++)
        buf_addf(out, "#   %s (%llu): %s\n", l->left[i].what, (unsigned long long)l->left[i].times, l->left[i].why);
    if (l->more)
        buf_addf(out, "# %llu more happenings are not counted: there are too many different ones\n", (unsigned long long)l->more);
}

static void host_json(const struct lesson_host *h, struct json *j)
{
    own_buf text = {0};
    buf_init(&text, 1024);
    buf_addf(&text, "%s:", h->name);
    put_ports(h, ",", &text);
    json_begin_object(j, NULL);
    json_text(j, "domain", h->name);
    json_begin_list(j, "ports");
    for (size_t i = 0; i < h->ports; i++)
        json_u64(j, NULL, h->port[i]);
    json_end_list(j);
    json_text(j, "rule", buf_text(&text));
    json_u64(j, "allowed", h->allowed);
    json_u64(j, "refused", h->refused);
    json_bool(j, "port_is_a_guess", h->guessed);
    if (h->stands_for)
        json_u64(j, "stands_for", h->stands_for);
    json_end_object(j);
}

void lesson_json(const struct lesson *l, struct json *j)
{
    json_begin_object(j, NULL);
    json_begin_list(j, "rules");
    for (size_t i = 0; i < l->hosts; i++)
        if (!l->host[i].is_gone)
            host_json(&l->host[i], j);
    json_end_list(j);
    json_begin_list(j, "left_out");
    for (size_t i = 0; i < l->lefts; i++) {
        json_begin_object(j, NULL);
        json_text(j, "what", l->left[i].what);
        json_text(j, "why", l->left[i].why);
        json_u64(j, "times", l->left[i].times);
        json_end_object(j);
    }
    json_end_list(j);
    json_u64(j, "not_counted", l->more);
    json_end_object(j);
}

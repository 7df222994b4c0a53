/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a box's network is shown. */
#include "cli/shown_net.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "box/reach.h"

static void put(struct buf *out, const char *before, const char *text, const char *after)
{
    if (!text[0])
        return;
    buf_add_text(out, before);
    quote_again(out, text, strlen(text), 300); /* what came from a box or the network is quoted in it */
    buf_add_text(out, after);
}

void shown_net_line(const struct netline *l, struct buf *out)
{
    char in[32], sent[32];
    bool is_name = strcmp(l->kind, "name") == 0, is_in = strcmp(l->kind, "in") == 0;
    put(out, " ", l->host[0] ? l->host : l->address, "");
    if (is_in)
        buf_addf(out, " into port %u", l->port);
    if (l->port && !is_name && !is_in)
        buf_addf(out, strchr(l->host[0] ? "" : l->address, ':') ? " port %u" : ":%u", l->port);
    if (is_name)
        buf_add_text(out, " by name");
    else if (l->kind[0] && !is_in && strcmp(l->kind, "tcp") != 0)
        put(out, " ", l->kind, "");
    if (l->host[0])
        put(out, " at ", l->address, "");
    if (l->job)
        buf_addf(out, " job %llu", (unsigned long long)l->job);
    if (strcmp(l->event, "net.end") == 0)
        buf_addf(out, " %s in, %s out", number_show_bytes(l->in, in, sizeof(in)), number_show_bytes(l->out, sent, sizeof(sent)));
    if (l->refused)
        buf_addf(out, " %llu more were refused", (unsigned long long)l->refused);
    put(out, " by ", l->by, "");
    put(out, " (", l->reason[0] ? l->reason : l->rule, ")");
}

static void take_host(struct shown_net *n, const struct msg_host *h)
{
    if (n->count == SHOWN_HOSTS_MAX)
        return;
    snprintf(n->host[n->count].name, sizeof(n->host[0].name), "%s", h->name);
    n->host[n->count].port = h->port;
    n->host[n->count].connections = h->connections;
    n->host[n->count].refused = h->refused;
    n->host[n->count].in = h->in;
    n->host[n->count++].out = h->out;
}

int shown_net_ask(struct reach *r, struct shown_net *ret, struct pale_err *e)
{
    struct frame f;
    struct msg_info info;
    struct msg_host host;
    ret->count = 0;
    int res = reach_send(r, ASK_NETWORK, NULL, 0, e);
    while (res == 0 && (res = reach_receive(r, &f, e)) == 0 && f.type == TELL_HOST) {
        if (!msg_host_parse(f.data, f.len, &host))
            return err_set(e, PALE_PROTOCOL, "what the keeper tells of the network cannot be read");
        take_host(ret, &host);
    }
    if (res < 0)
        return res;
    if (f.type != TELL_INFO || !msg_info_parse(f.data, f.len, &info))
        return err_set(e, PALE_PROTOCOL, "what the keeper tells of the network cannot be read");
    ret->has_network = info.has_network;
    ret->cut = info.cut;
    ret->open = info.net_open;
    ret->connections = info.net_connections;
    ret->refused = info.net_refused;
    ret->in = info.net_in;
    ret->out = info.net_out;
    return 0;
}

void shown_net_json(const struct shown_net *n, struct json *j, const char *key)
{
    json_begin_object(j, key);
    json_u64(j, "open", n->open);
    json_u64(j, "connections", n->connections);
    json_u64(j, "refused", n->refused);
    json_u64(j, "bytes_in", n->in);
    json_u64(j, "bytes_out", n->out);
    json_begin_list(j, "hosts");
    for (size_t i = 0; i < n->count; i++) {
        json_begin_object(j, NULL);
        json_text(j, "host", n->host[i].name);
        json_u64(j, "port", n->host[i].port);
        json_u64(j, "connections", n->host[i].connections);
        json_u64(j, "refused", n->host[i].refused);
        json_u64(j, "bytes_in", n->host[i].in);
        json_u64(j, "bytes_out", n->host[i].out);
        json_end_object(j);
    }
    json_end_list(j);
    json_end_object(j);
}

void shown_net_sum(const struct shown_net *n, struct buf *out)
{
    char in[32], sent[32];
    buf_addf(out, "%llu open, %llu in all, %llu refused, %s in, %s out", (unsigned long long)n->open, (unsigned long long)n->connections,
             (unsigned long long)n->refused, number_show_bytes(n->in, in, sizeof(in)), number_show_bytes(n->out, sent, sizeof(sent)));
}

void shown_net_table(const struct shown_net *n, size_t most)
{
    static const char *const heads[] = {"HOST", "PORT", "CONNECTIONS", "REFUSED", "IN", "OUT"};
    struct table t;
    char cell[4 * DOMAIN_NAME_MAX];
    table_init(&t, heads, 6);
    for (size_t i = 0; i < n->count && i < most; i++) {
        const uint64_t numbers[] = {n->host[i].port, n->host[i].connections, n->host[i].refused};
        const uint64_t bytes[] = {n->host[i].in, n->host[i].out};
        table_cell(&t, n->host[i].name);
        for (size_t k = 0; k < 3; k++) {
            snprintf(cell, sizeof(cell), "%llu", (unsigned long long)numbers[k]);
            table_cell(&t, k == 0 && !numbers[0] ? "-" : cell);
        }
        for (size_t k = 0; k < 2; k++)
            table_cell(&t, number_show_bytes(bytes[k], cell, sizeof(cell)));
    }
    table_print(&t);
    if (n->count > most)
        printf("… and %zu more\n", n->count - most);
}

void shown_net_print(const struct shown_net *n)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    shown_net_sum(n, &b);
    printf("network   %s\n", buf_text(&b));
    if (n->count > 0)
        shown_net_table(n, n->count);
}

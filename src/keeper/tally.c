/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of the meters.
 *
 * The page is written by a process that reads hostile bytes, and while we read it: each row is copied once, its name is taken as far as the
 * row goes and quoted, and its numbers mean nothing to us. */
#include <string.h>

#include "base/clock.h"
#include "base/quote.h"
#include "init/probe.h"
#include "keeper/keeper.h"

#define TELL_MS 1000

static uint64_t without_probes(const struct keeper *k, uint64_t refused)
{
    return refused > k->wayout.probes ? refused - k->wayout.probes : 0;
}

static bool is_of_probes(const struct gate_host *h)
{
    return h->port == PROBE_NOBODY_PORT && strncmp(h->name, PROBE_NOBODY_TEXT, sizeof(h->name)) == 0;
}

/* How many of the probes have been refused by now. */
static uint64_t refused_probes(const struct keeper *k)
{
    const struct gate_meters *m = k->wayout.meters;
    uint32_t n = *(const volatile uint32_t *)&m->hosts;
    for (uint32_t i = 0; k->wayout.probes && i < n && i < GATE_HOSTS_MAX; i++) {
        struct gate_host one;
        memcpy(&one, &m->host[i], sizeof(one));
        if (is_of_probes(&one))
            return one.refused - without_probes(k, one.refused);
    }
    return 0;
}

static struct tally read_tally(const struct keeper *k)
{
    const volatile struct gate_meters *m = k->wayout.meters;
    if (!m)
        return (struct tally){0};
    uint64_t probes = refused_probes(k), refused = m->refused;
    return (struct tally){m->open, m->connections, refused > probes ? refused - probes : 0, m->in, m->out};
}

void tally_fill(const struct keeper *k, struct msg_info *m)
{
    struct tally t = read_tally(k);
    m->cut = k->wayout.cut;
    m->has_network = k->wayout.meters != NULL;
    m->net_open = k->wayout.source.fd >= 0 ? t.open : 0;
    m->net_connections = t.connections;
    m->net_refused = t.refused;
    m->net_in = t.in;
    m->net_out = t.out;
}

static void tell_host(struct client *c, const struct gate_host *h)
{
    uint8_t mem[4 * sizeof(h->name) + 128];
    char name[4 * sizeof(h->name)];
    struct record_writer w;
    const struct msg_host m = {.name = quote_into(name, sizeof(name), h->name, strnlen(h->name, sizeof(h->name))),
                               .port = h->port,
                               .connections = h->connections,
                               .refused = h->refused,
                               .in = h->in,
                               .out = h->out};
    record_start(&w, mem, sizeof(mem));
    msg_host_write(&m, &w);
    client_send(c, TELL_HOST, mem, w.len);
}

void tally_hosts(struct client *c)
{
    const struct gate_meters *m = c->k->wayout.meters;
    uint32_t n = m ? *(const volatile uint32_t *)&m->hosts : 0;
    for (uint32_t i = 0; i < n && i < GATE_HOSTS_MAX; i++) {
        struct gate_host one;
        memcpy(&one, &m->host[i], sizeof(one));
        if (is_of_probes(&one))
            one.refused = without_probes(c->k, one.refused);
        if (!is_of_probes(&one) || one.refused + one.connections > 0)
            tell_host(c, &one);
    }
}

static void on_time(struct loop_timer *t)
{
    struct keeper *k = (struct keeper *)((char *)t - offsetof(struct keeper, wayout.telling));
    struct tally now = read_tally(k);
    if (memcmp(&now, &k->wayout.told, sizeof(now)) == 0)
        return;
    k->wayout.told = now;
    client_announce_state(k);
    /* As long as something is open more is to come. */
    if (now.open && k->wayout.source.fd >= 0)
        loop_arm(&k->loop, t, clock_ms() + TELL_MS);
}

static bool is_watched(const struct keeper *k)
{
    const struct client *c = k->clients;
    while (c && !c->watching)
        c = c->next;
    return c != NULL;
}

void tally_touch(struct keeper *k)
{
    if (k->wayout.telling.armed || !is_watched(k))
        return;
    k->wayout.telling.fire = on_time;
    loop_arm(&k->loop, &k->wayout.telling, clock_ms() + TELL_MS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the meters: connections and bytes by host, in a page that the keeper reads. */
#include <stdio.h>
#include <string.h>

#include "gateway/gateway.h"

static int16_t row_of(struct gateway *g, const char *name, uint16_t port)
{
    struct gate_meters *m = g->meters;
    uint32_t n = m->hosts < GATE_HOSTS_MAX ? m->hosts : GATE_HOSTS_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (m->host[i].port == port && strcmp(m->host[i].name, name) == 0)
            return (int16_t)i;
    if (n == GATE_HOSTS_MAX)
        return (int16_t)(n - 1);
    struct gate_host *h = &m->host[n];
    bool last = n == GATE_HOSTS_MAX - 1;
    snprintf(h->name, sizeof(h->name), "%s", last ? "(others)" : name);
    h->port = last ? 0 : port;
    m->hosts = n + 1; /* last: the reader looks at rows below it */
    return (int16_t)n;
}

int16_t meter_row(struct gateway *g, const struct flow *f)
{
    char text[ADDRESS_TEXT_MAX];
    return row_of(g, f->name.len ? f->name.text : address_text(&f->to, text), f->port);
}

int16_t meter_published(struct gateway *g, uint16_t port)
{
    return row_of(g, "(published)", port);
}

void meter_refused(struct gateway *g, const char *name, uint16_t port)
{
    g->meters->refused++;
    g->meters->host[row_of(g, name, port)].refused++;
}

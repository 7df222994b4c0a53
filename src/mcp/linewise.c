/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the carrying of MCP a line at a time.
 *
 * A connection is one client: what it began ends with it. A client that does not read its answers is not read. */
#include "mcp/linewise.h"

#include <stdlib.h>
#include <string.h>

#include "ops/talk.h"
#include "ops/world.h"

struct lines {
    struct call *call;
    struct mcp_client client;
    struct buf in;
    bool busy, over; /* somebody up the stack still uses it */
};

static void release(struct lines *l)
{
    if (l->busy)
        return;
    buf_done(&l->in);
    json_decref(l->client.capabilities);
    free(l);
}

static void on_left(struct call *c)
{
    struct lines *l = c->state;
    c->state = NULL;
    l->over = true;
    mcp_leave_all(&l->client);
    release(l);
}

static void on_send(struct mcp_request *r, const json_t *message, unsigned status, bool last)
{
    struct lines *l = r->carrier;
    struct call *c = l->call;
    size_t n = 0;
    own_mem char *text = message && !l->over ? mcp_write(r, message, last, &n) : NULL;
    (void)status;
    if (!text)
        return;
    text[n] = '\n'; /* in place of its end: it goes out at once */
    /* The writing may find that the client has left, and then nothing of it is there any more. */
    call_hold(c);
    if (!call_write(c, text, n + 1) && !c->answered && !c->gone)
        c->port->want(c, false);
    call_drop(c);
}

static const struct mcp_port port = {on_send};

static void on_room(struct call *c)
{
    c->port->want(c, true);
}

static void take_line(struct lines *l, const char *p, size_t n)
{
    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' '))
        n--;
    if (n == 0)
        return;
    struct mcp_request *r = mcp_take(&l->client, &port, l, NULL, p, n);
    if (r)
        mcp_drop(r); /* the core has it while it is under way */
}

/* The end of the line that begins at a byte, or NULL. */
static const uint8_t *line_end(const struct buf *b, size_t at)
{
    return b->len > at ? memchr(b->data + at, '\n', b->len - at) : NULL;
}

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct lines *l = c->state;
    bool was = l->busy;
    size_t at = 0;
    l->busy = true;
    buf_add(&l->in, p, n);
    for (const uint8_t *end; !l->over && !l->in.failed && (end = line_end(&l->in, at)); at = (size_t)(end - l->in.data) + 1)
        take_line(l, (const char *)l->in.data + at, (size_t)(end - l->in.data) - at);
    bool too_long = l->in.failed || l->in.len - at > MCP_LINE_MAX;
    if (!too_long)
        buf_consume(&l->in, at);
    l->busy = was;
    if (!l->over && too_long)
        return call_end(c, false);
    if (!l->over && last)
        return call_end(c, true);
    if (l->over)
        release(l);
}

void mcp_lines_open(struct call *c, const struct mcp_offer *offer)
{
    const struct core_box *b = offer->needs_box ? talk_find(c) : NULL;
    if (offer->needs_box && !b)
        return;
    struct lines *l = calloc(1, sizeof(*l));
    if (!l)
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    l->call = c;
    l->client = (struct mcp_client){.mcp = c->world->mcp, .offer = offer, .world = c->world, .who = c->who, .lasts = true, .streams = true};
    if (b)
        memcpy(l->client.box, b->id, sizeof(l->client.box));
    buf_init(&l->in, 2 * MCP_LINE_MAX + 65536);
    c->state = l;
    c->left = on_left;
    c->piece = on_piece;
    c->room = on_room;
    call_begin(c, NULL, "");
}

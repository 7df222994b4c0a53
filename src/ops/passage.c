/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ways to other protocols: MCP, which has a layer of its own, and box.wire, through the daemon to a box's keeper.
 *
 * How it works: the client speaks the keeper's own protocol, and the keeper reads it as strictly as from anybody. Bytes pass in both
 * directions as they come and nobody here looks into them; what one end does not take is not read from the other. A client that has
 * said its last is a keeper's client that has: it hears of it, and what it still says goes out before the connection ends. */
#include "ops/ops.h"
#include "ops/talk.h"

static void on_opened(struct talk *a)
{
    struct call *c = a->call;
    call_begin(c, NULL, "");
}

static void on_bytes(struct talk *a, const uint8_t *p, size_t n)
{
    struct call *c = a->call;
    bool room = call_write(c, p, n);
    /* The client may have gone with it, and the talk too. */
    if (!room && c->state)
        tether_pause(a->link, true);
}

static void on_gone(struct talk *a)
{
    call_end(a->call, true);
}

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct talk *a = c->state;
    if (n > 0 && !tether_pass(a->link, p, n))
        return call_end(c, false);
    if (last)
        return tether_shut(a->link);
    if (tether_unsent(a->link) > 0)
        c->port->want(c, false);
}

void op_mcp(struct call *c)
{
    c->world->mcp_post(c);
}

void op_mcp_lines(struct call *c)
{
    c->world->mcp_lines(c);
}

void op_box_wire(struct call *c)
{
    struct talk *a = talk_new(c, sizeof(*a));
    if (!a)
        return;
    a->opened = on_opened;
    a->bytes = on_bytes;
    a->gone = on_gone;
    a->room = talk_taken;
    c->room = talk_room;
    c->piece = on_piece;
    talk_open(a, call_number(c, "start", 1) != 0);
}

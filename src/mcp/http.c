/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the carrying of MCP over HTTP.
 *
 * An answer that is ready first goes out as JSON; where something must be said before, the answer becomes a stream of events and ends
 * with it. A client that leaves has cancelled what it asked for, if it is of the modern era (the core knows). */
#include "mcp/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ops/talk.h"
#include "ops/world.h"

struct post {
    struct call *call;
    struct mcp_client client;
    struct mcp_request *request;
    struct loop_timer alive;
    bool begun;
    bool busy, over; /* somebody up the stack still uses it */
};

static void release(struct post *p)
{
    if (p->busy)
        return;
    free(p);
}

static void on_left(struct call *c)
{
    struct post *p = c->state;
    struct mcp_request *r = p->request;
    c->state = NULL;
    p->over = true;
    loop_disarm(&c->world->loop, &p->alive);
    p->request = NULL;
    if (r && !r->answered)
        mcp_leave(r);
    if (r)
        mcp_drop(r);
    release(p);
}

static void begin(struct post *p)
{
    if (p->begun)
        return;
    p->begun = true;
    call_begin(p->call, "text/event-stream", "X-Accel-Buffering: no\r\n");
}

static void on_alive(struct loop_timer *t)
{
    struct post *p = (struct post *)((char *)t - offsetof(struct post, alive));
    struct call *c = p->call;
    loop_arm(&c->world->loop, &p->alive, clock_ms() + MCP_ALIVE_MS);
    call_hold(c);
    begin(p);
    (void)call_write(c, ":\n\n", 3);
    call_drop(c);
}

static void send_event(struct post *p, const char *text, size_t n)
{
    struct call *c = p->call;
    own_buf b = {0};
    buf_init(&b, MCP_ANSWER_MAX + 64);
    buf_add_text(&b, "event: message\ndata: ");
    buf_add(&b, text, n);
    buf_add_text(&b, "\n\n");
    begin(p); /* which may be its end, if the client has left */
    if (!b.failed)
        (void)call_write(c, b.data, b.len);
}

static void on_send(struct mcp_request *r, const json_t *message, unsigned status, bool last)
{
    struct post *p = r->carrier;
    struct call *c = p->call;
    size_t n = 0;
    if (p->over)
        return;
    own_mem char *text = message ? mcp_write(r, message, last, &n) : NULL;
    call_hold(c);
    if (last && message && !text)
        call_refuse(c, PALE_NO_MEMORY, "out of memory");
    else if (last && !p->begun)
        call_answer(c, message ? status : 202, message ? "application/json" : NULL, text, n);
    else {
        if (text)
            send_event(p, text, n);
        if (last)
            call_end(c, true);
    }
    call_drop(c);
}

static const struct mcp_port port = {on_send};

void mcp_http_post(struct call *c, const struct mcp_offer *offer)
{
    const struct core_box *b = offer->needs_box ? talk_find(c) : NULL;
    if (offer->needs_box && !b)
        return;
    struct post *p = calloc(1, sizeof(*p));
    if (!p)
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    p->call = c;
    p->busy = true;
    p->alive.fire = on_alive;
    p->client = (struct mcp_client){.mcp = c->world->mcp, .offer = offer, .world = c->world, .who = c->who, .streams = c->wants_events};
    if (b)
        memcpy(p->client.box, b->id, sizeof(p->client.box));
    c->state = p;
    c->left = on_left;
    if (c->wants_events)
        loop_arm(&c->world->loop, &p->alive, clock_ms() + MCP_ALIVE_MS);
    struct mcp_heads heads = {c->head[HEAD_MCP_VERSION], c->head[HEAD_MCP_METHOD], c->head[HEAD_MCP_NAME]};
    struct mcp_request *r = mcp_take(&p->client, &port, p, &heads, c->message, c->message_len);
    if (r && p->over && !r->answered)
        mcp_leave(r);
    if (r && (p->over || r->answered))
        mcp_drop(r);
    else
        p->request = r;
    if (!r)
        call_answer(c, 202, NULL, NULL, 0);
    p->busy = false;
    if (p->over)
        release(p);
}

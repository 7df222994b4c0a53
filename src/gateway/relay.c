/* SPDX-License-Identifier: Apache-2.0 */
/* Owns bytes on their way: from one socket into a pipe and out of it into the other, without coming into our memory.
 *
 * A pipe is lent to a direction while bytes are in it. Most of the time nothing is on its way, so few pipes serve many connections; a
 * direction that finds none waits until one is given back. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/gateway.h"

/* The kernel counts the pages of all pipes of a user, and gives him small ones beyond 16,384, in whatever he does. Few need many: bytes
 * stay in a pipe only where somebody does not take them. */
#define PIPE_BYTES (1 << 20)
#define BIG_PIPES 8 /* kept open, too */
#define SMALL_PIPE_BYTES (16 << 10)
#define ROUNDS_MAX 4u /* after which others have their turn */

static void close_pipe(struct pipe *p)
{
    close(p->ends[0]);
    close(p->ends[1]);
    p->is_open = false;
}

/* The first that is free: the big ones are. */
static int borrow(struct gateway *g)
{
    int at = 0;
    while (at < (int)PIPES_MAX && g->pipes[at].is_lent)
        at++;
    if (at == (int)PIPES_MAX)
        return -1;
    struct pipe *p = &g->pipes[at];
    if (!p->is_open && pipe2(p->ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    if (!p->is_open)
        (void)!fcntl(p->ends[1], F_SETPIPE_SZ, at < BIG_PIPES ? PIPE_BYTES : SMALL_PIPE_BYTES);
    p->is_open = p->is_lent = true;
    return at;
}

void relay_release(struct gateway *g, struct half *h)
{
    if (h->pipe < 0)
        return;
    struct pipe *p = &g->pipes[h->pipe];
    /* With bytes in it that nobody takes any more it is of no use. */
    if (h->held || h->pipe >= BIG_PIPES)
        close_pipe(p);
    p->is_lent = false;
    h->held = 0;
    h->pipe = -1;
}

/* Takes what there is. 1: something, or there may be; 0: nothing for now; -1: broken. */
static int fill(struct gateway *g, struct half *h, int from)
{
    size_t most = h->may_pass < PIPE_BYTES ? (size_t)h->may_pass : PIPE_BYTES;
    ssize_t n = splice(from, NULL, g->pipes[h->pipe].ends[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) {
        h->ended = true;
        return 0;
    }
    h->held += (uint32_t)n;
    if (h->may_pass != UINT64_MAX)
        h->may_pass -= (uint64_t)n;
    return 1;
}

static int drain(struct gateway *g, struct half *h, int to)
{
    ssize_t n = splice(g->pipes[h->pipe].ends[0], NULL, to, NULL, h->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    h->held -= (uint32_t)n;
    h->passed += (uint64_t)n;
    return h->held == 0;
}

enum relay relay_move(struct gateway *g, struct half *h, int from, int to)
{
    int r = 1;
    for (unsigned round = 0; r > 0 && round < ROUNDS_MAX; round++) {
        if (h->held == 0 && (h->ended || h->may_pass == 0))
            break;
        if (h->pipe < 0 && (h->pipe = borrow(g)) < 0) {
            h->starved = true;
            return RELAY_WAITS;
        }
        r = h->held ? 1 : fill(g, h, from);
        if (h->held)
            r = drain(g, h, to);
    }
    if (h->pipe >= 0 && h->held == 0)
        relay_release(g, h);
    if (r < 0)
        return RELAY_BROKEN;
    if (h->ended && h->held == 0 && !h->told) {
        h->told = true;
        shutdown(to, SHUT_WR);
    }
    return h->told ? RELAY_ENDED : RELAY_WAITS;
}

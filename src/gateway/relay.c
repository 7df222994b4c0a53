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

#define PIPE_BYTES (256 << 10)
#define BIG_PIPES 32u  /* the kernel counts their pages for each user */
#define ROUNDS_MAX 16u /* after which others have their turn */

static int borrow(struct gateway *g)
{
    if (g->pipe_free_count > 0)
        return (int)g->pipe_free[--g->pipe_free_count];
    if (g->pipe_count == PIPES_MAX || pipe2(g->pipes[g->pipe_count].ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    if (g->pipe_count < BIG_PIPES)
        (void)!fcntl(g->pipes[g->pipe_count].ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    return (int)g->pipe_count++;
}

static void give_back(struct gateway *g, struct half *h)
{
    g->pipe_free[g->pipe_free_count++] = (uint32_t)h->pipe;
    h->pipe = -1;
}

void relay_release(struct gateway *g, struct half *h)
{
    if (h->pipe < 0)
        return;
    /* Bytes that nobody takes any more: the pipe is of no use with them in it. */
    if (h->held) {
        close(g->pipes[h->pipe].ends[0]);
        close(g->pipes[h->pipe].ends[1]);
        if (pipe2(g->pipes[h->pipe].ends, O_CLOEXEC | O_NONBLOCK) < 0) {
            g->pipes[h->pipe].ends[0] = g->pipes[h->pipe].ends[1] = -1;
            h->pipe = -1;
            return; /* one fewer */
        }
    }
    h->held = 0;
    give_back(g, h);
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
        give_back(g, h);
    if (r < 0)
        return RELAY_BROKEN;
    if (h->ended && h->held == 0 && !h->told) {
        h->told = true;
        shutdown(to, SHUT_WR);
    }
    return h->told ? RELAY_ENDED : RELAY_WAITS;
}

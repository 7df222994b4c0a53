/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the copying of bytes between whoever started us and the connection.
 *
 * One block in each direction: what one end does not take is not read from the other. */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "dial/dial.h"

#define BLOCK 16384u
#define LAST_WAIT_MS 5000 /* for the rest of what is on its way, once nobody waits for an answer */

struct block {
    unsigned char data[BLOCK];
    size_t at, len; /* what is still to be given */
};

struct carrier {
    SSL *ssl;
    int net_fd, mate_fd;
    struct block up, down;
    bool own_ended, own_gone, net_ended, broken, said_end;
    short wants; /* poll events the TLS needs besides */
};

static bool is_empty(const struct block *b)
{
    return b->at == b->len;
}

/* What a call of OpenSSL means that did not give bytes. */
static void judge(struct carrier *c, int result)
{
    switch (SSL_get_error(c->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        c->wants |= POLLIN;
        break;
    case SSL_ERROR_WANT_WRITE:
        c->wants |= POLLOUT;
        break;
    case SSL_ERROR_ZERO_RETURN:
        c->net_ended = true;
        break;
    default:
        c->broken = true;
    }
    ERR_clear_error();
}

static bool take_own(struct carrier *c)
{
    if (!is_empty(&c->up) || c->own_ended)
        return false;
    ssize_t n = recv(c->mate_fd, c->up.data, sizeof(c->up.data), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    c->own_ended = n <= 0;
    c->up.at = 0;
    c->up.len = n > 0 ? (size_t)n : 0;
    return true;
}

static bool give_net(struct carrier *c)
{
    size_t n = 0;
    if (is_empty(&c->up) && c->own_ended && !c->said_end) {
        c->said_end = true;
        if (SSL_shutdown(c->ssl) < 0)
            ERR_clear_error();
        return true;
    }
    if (is_empty(&c->up))
        return false;
    int r = SSL_write_ex(c->ssl, c->up.data + c->up.at, c->up.len - c->up.at, &n);
    if (r != 1)
        return judge(c, r), false;
    c->up.at += n;
    return true;
}

static bool take_net(struct carrier *c)
{
    size_t n = 0;
    if (!is_empty(&c->down) || c->net_ended)
        return false;
    int r = SSL_read_ex(c->ssl, c->down.data, sizeof(c->down.data), &n);
    if (r != 1)
        return judge(c, r), false;
    c->down.at = 0;
    c->down.len = n;
    return true;
}

static bool give_own(struct carrier *c)
{
    if (is_empty(&c->down) || c->own_gone)
        return false;
    ssize_t n = send(c->mate_fd, c->down.data + c->down.at, c->down.len - c->down.at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0)
        c->own_gone = c->own_ended = true;
    c->down.at += n > 0 ? (size_t)n : 0;
    return true;
}

/* Moves all that can be moved without waiting. */
static void move(struct carrier *c)
{
    bool moved = true;
    while (moved && !c->broken) {
        c->wants = 0;
        moved = take_own(c);
        moved = give_net(c) || moved;
        moved = take_net(c) || moved;
        moved = give_own(c) || moved;
    }
}

void carry(SSL *ssl, int net_fd, int mate_fd)
{
    static struct carrier c;
    int64_t until = 0;
    c = (struct carrier){.ssl = ssl, .net_fd = net_fd, .mate_fd = mate_fd};
    for (;;) {
        move(&c);
        if (c.broken || (c.net_ended && is_empty(&c.down)) || (c.own_gone && c.said_end))
            return;
        struct pollfd p[2] = {{.fd = net_fd, .events = c.wants}, {.fd = c.own_gone ? -1 : mate_fd}};
        p[1].events = (short)((is_empty(&c.up) && !c.own_ended ? POLLIN : 0) | (is_empty(&c.down) ? 0 : POLLOUT));
        if (c.own_gone && until == 0)
            until = clock_ms() + LAST_WAIT_MS;
        int64_t left = until ? until - clock_ms() : -1;
        if (until && left <= 0)
            return;
        if (poll(p, 2, (int)left) < 0 && errno != EINTR)
            return;
        /* Whoever started us has left, with his last words in the socket perhaps. */
        if (p[1].revents & (POLLHUP | POLLERR))
            c.own_gone = true;
    }
}

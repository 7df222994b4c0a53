/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of the connection: name to addresses, the first that answers. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "dial/dial.h"

#define EACH_WAIT_MS 10000

/* A peer that is gone without a word is noticed within a few minutes. */
static void stay_awake(int fd)
{
    static const struct {
        int level, name, value;
    } rows[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                {IPPROTO_TCP, TCP_KEEPINTVL, 20},
                {IPPROTO_TCP, TCP_KEEPCNT, 4},
                {IPPROTO_TCP, TCP_NODELAY, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        (void)setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof(rows[i].value));
}

/* Whether a connect that is under way succeeds in time; else errno says why not. */
static bool comes_up(int fd, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int problem = 0;
    socklen_t n = sizeof(problem);
    int64_t left = until_ms - clock_ms();
    left = left > EACH_WAIT_MS ? EACH_WAIT_MS : left;
    if (left <= 0 || poll(&p, 1, (int)left) <= 0)
        return errno = ETIMEDOUT, false;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n) < 0)
        return false;
    errno = problem;
    return problem == 0;
}

int call_out(const char *name, const char *port, int64_t until_ms, int *ret_fd, struct pale_err *e)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG}, *found = NULL;
    int r = getaddrinfo(name, port, &want, &found);
    if (r != 0)
        return err_set(e, PALE_NOT_FOUND, "%s: %s", name, gai_strerror(r));
    int problem = EHOSTUNREACH;
    for (const struct addrinfo *at = found; at && *ret_fd < 0; at = at->ai_next) {
        own_fd fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && (connect(fd, at->ai_addr, at->ai_addrlen) == 0 || (errno == EINPROGRESS && comes_up(fd, until_ms)))) {
            stay_awake(fd);
            *ret_fd = take_fd(&fd);
        } else
            problem = errno;
    }
    freeaddrinfo(found);
    errno = problem;
    return *ret_fd >= 0 ? 0 : err_os(e, "connect to %s:%s", name, port);
}

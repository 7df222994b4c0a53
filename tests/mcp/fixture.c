/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-fixture: the product's HTTP server and MCP core with an offer of its own, for the conformance suite. Never installed.
 *
 *     mcp-fixture --port N OFFER.json    serves /mcp/fixture on 127.0.0.1:N, prints the port
 *
 * It asks for no token: access_caller here stands in place of the product's, which knows no such mode. Host and Origin are checked by
 * the product's own code. */
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <netinet/in.h>

#include "base/number.h"
#include "mcp/http.h"
#include "mcp/linewise.h"
#include "ops/ops.h"
#include "ops/world.h"
#include "rest/access.h"
#include "rest/server.h"
#include "fixture.h"

static struct world world;
static struct mcp mcp;
static struct server server = {.local = {.fd = -1}, .tcp = {.fd = -1}};

int access_caller(struct server *s, bool local, const struct http_head *h, struct caller *ret, unsigned *ret_status, struct pale_err *e)
{
    (void)s, (void)local, (void)h, (void)ret_status, (void)e;
    *ret = (struct caller){.scope = CALLER_OPERATOR};
    return 0;
}

/* There is no fleet behind the other operations. */
bool access_may(const struct caller *who, const struct op *o)
{
    (void)who;
    return o->run == op_mcp || o->run == op_mcp_lines;
}

static void on_post(struct call *c)
{
    mcp_http_post(c, &fixture_offer);
}

static void on_lines(struct call *c)
{
    mcp_lines_open(c, &fixture_offer);
}

static int listen_tcp(unsigned port, unsigned *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        listen(fd, 64) < 0 || getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    *ret_port = ntohs(a.sin_port);
    return fd;
}

/* The server wants one; nobody knows its name. */
static int listen_local(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a.sun_family)) == 0 && listen(fd, 1) == 0 ? fd : -1;
}

static int serve(unsigned port, struct pale_err *e)
{
    int tcp = listen_tcp(port, &server.port), local = listen_local();
    if (tcp < 0 || local < 0)
        return err_os(e, "listen");
    world.port = server.port;
    world.mcp = &mcp;
    world.mcp_post = on_post;
    world.mcp_lines = on_lines;
    server.loop = &world.loop;
    server.world = &world;
    int r = loop_open(&world.loop, e);
    if (r == 0 && !mcp_init(&mcp, &world.loop))
        r = err_os(e, "getrandom");
    if (r == 0)
        r = server_open(&server, local, tcp, e);
    if (r < 0)
        return r;
    printf("%u\n", server.port);
    fflush(stdout);
    return loop_run(&world.loop, e);
}

int main(int argc, char **argv)
{
    struct pale_err e;
    uint64_t port = 0;
    if (argc != 4 || strcmp(argv[1], "--port") != 0 || !number_u64(argv[2], 65535, &port) || !fixture_load(argv[3])) {
        fprintf(stderr, "usage: mcp-fixture --port N OFFER.json\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the test that started it */
    if (serve((unsigned)port, &e) == 0)
        return 0;
    fprintf(stderr, "mcp-fixture: %s\n", e.text);
    return 1;
}

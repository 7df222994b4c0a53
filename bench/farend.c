/* SPDX-License-Identifier: Apache-2.0 */
/* farend: the servers that bench/network.py dials, and the plain relay that it compares with.
 *
 *     farend serve                        at ports 80 (HTTP), 443 (what looks like TLS) and 25 (the server speaks first), any address
 *     farend relay PORT ADDRESS TO-PORT   by splice, one connection at a time
 *
 * After its opening words a connection at 443 or 25 is told by 16 bytes what to do: 0x80, a letter, two bytes of nothing, a length of
 * eight bytes; G: send so many, P: take so many and say so with one byte, E: send these 16 back. HTTP has GET /BYTES and POST. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK (256 << 10)
#define PIPE_BYTES (1 << 20)
#define HELLO_BACK 95 /* of a server's first message */
#define ORDER 16
#define FDS_MAX (1 << 20)

enum kind { HTTP = 80, TLS = 443, GREET = 25 };

struct side {
    enum kind kind;
    int listens, opened; /* opened: its first words are over */
    uint64_t to_send, to_take;
    size_t got;
    char head[1024];
};

static char block[BLOCK];
static struct side *sides[FDS_MAX];

static void die(const char *what)
{
    fprintf(stderr, "farend: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int listen_at(uint16_t port)
{
    static const int on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        listen(fd, 8192) < 0)
        die("listen");
    return fd;
}

/* --- serving --- */

static void hear(int epoll, int fd, enum kind kind, int listens)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (fd >= FDS_MAX || !(sides[fd] = calloc(1, sizeof(**sides))) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
        die("hear");
    sides[fd]->kind = kind;
    sides[fd]->listens = listens;
}

static void hang_up(int fd)
{
    free(sides[fd]);
    sides[fd] = NULL;
    close(fd);
}

static void say(int fd, const void *p, size_t n)
{
    (void)!send(fd, p, n, MSG_NOSIGNAL);
}

static void answer_http(int fd, struct side *s)
{
    char head[128];
    const char *length = strstr(s->head, "Content-Length: ");
    s->to_send = strncmp(s->head, "GET /", 5) == 0 ? strtoull(s->head + 5, NULL, 10) : 0;
    s->to_take = length ? strtoull(length + 16, NULL, 10) : 0;
    if (s->to_take)
        return; /* answered when it is here */
    int n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n", (unsigned long long)s->to_send);
    say(fd, head, (size_t)n);
}

static void obey(int fd, struct side *s)
{
    uint64_t n;
    memcpy(&n, s->head + 8, sizeof(n));
    if (s->head[1] == 'G')
        s->to_send = n;
    else if (s->head[1] == 'P')
        s->to_take = n;
    else
        say(fd, s->head, ORDER);
}

/* How many bytes of what has come are a whole message, 0: not yet. */
static size_t whole(const struct side *s)
{
    if (s->kind == HTTP) {
        const char *end = memmem(s->head, s->got, "\r\n\r\n", 4);
        return end ? (size_t)(end - s->head) + 4 : 0;
    }
    size_t need = ORDER;
    if (s->kind == TLS && !s->opened)
        need = s->got < 5 ? sizeof(s->head) : 5u + (((size_t)(uint8_t)s->head[3]) << 8 | (uint8_t)s->head[4]);
    return s->got >= need ? need : 0;
}

static void understand(int fd, struct side *s)
{
    static const uint8_t back[HELLO_BACK] = {0x16, 3, 3, 0, HELLO_BACK - 5, 2, 0, 0, HELLO_BACK - 9, 3, 3, 1, 2, 3};
    size_t n = whole(s);
    if (!n)
        return;
    if (s->kind == HTTP) {
        answer_http(fd, s);
    } else if (s->kind == TLS && !s->opened) {
        s->opened = 1;
        say(fd, back, sizeof(back));
    } else {
        obey(fd, s);
    }
    memmove(s->head, s->head + n, s->got -= n);
}

static void taken(int fd, struct side *s, uint64_t n)
{
    static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!";
    s->to_take -= n < s->to_take ? n : s->to_take;
    if (!s->to_take && s->kind == HTTP)
        say(fd, done, sizeof(done) - 1);
    else if (!s->to_take)
        say(fd, "!", 1);
}

static void take(int fd, struct side *s)
{
    ssize_t n = s->to_take ? recv(fd, block, BLOCK, MSG_DONTWAIT) : recv(fd, s->head + s->got, sizeof(s->head) - 1 - s->got, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            hang_up(fd);
        return;
    }
    if (s->to_take) {
        taken(fd, s, (uint64_t)n);
        return;
    }
    s->got += (size_t)n;
    s->head[s->got] = 0;
    understand(fd, s);
    if (s->to_take && s->got) {
        uint64_t early = s->got;
        s->got = 0;
        taken(fd, s, early);
    }
}

static void give(int epoll, int fd, struct side *s)
{
    ssize_t n = 1;
    while (s->to_send && (n = send(fd, block, s->to_send < BLOCK ? (size_t)s->to_send : BLOCK, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
        s->to_send -= (uint64_t)n;
    if (n <= 0 && errno != EAGAIN && errno != EINTR) {
        hang_up(fd);
        return;
    }
    struct epoll_event ev = {.events = s->to_send ? EPOLLOUT : EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &ev);
}

static void welcome(int epoll, int fd, enum kind kind)
{
    static const int on = 1;
    int new;
    while ((new = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(new, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        hear(epoll, new, kind, 0);
        if (kind == GREET)
            say(new, "220 ok\r\n", 8);
    }
}

static void serve(void)
{
    static const enum kind kinds[] = {HTTP, TLS, GREET};
    struct epoll_event ev[64];
    struct rlimit files = {FDS_MAX, FDS_MAX};
    (void)!setrlimit(RLIMIT_NOFILE, &files);
    int epoll = epoll_create1(0);
    for (size_t i = 0; i < 3; i++)
        hear(epoll, listen_at((uint16_t)kinds[i]), kinds[i], 1);
    for (;;) {
        int n = epoll_wait(epoll, ev, 64, -1);
        for (int i = 0; i < n; i++) {
            struct side *s = sides[ev[i].data.fd];
            if (s->listens) {
                welcome(epoll, ev[i].data.fd, s->kind);
                continue;
            }
            if (!s->to_send)
                take(ev[i].data.fd, s);
            if (sides[ev[i].data.fd] && s->to_send)
                give(epoll, ev[i].data.fd, s);
        }
    }
}

/* --- relaying --- */

/* What there is, from one to the other by way of a pipe; 0: it has ended. */
static int pass(int from, int to, const int pipe[2])
{
    ssize_t n = splice(from, NULL, pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    while (n > 0) {
        ssize_t m = splice(pipe[0], NULL, to, NULL, (size_t)n, SPLICE_F_MOVE);
        if (m <= 0)
            return 0;
        n -= m;
    }
    return 1;
}

static void relay_one(int client, const struct sockaddr_in *to)
{
    static const int on = 1;
    int server = socket(AF_INET, SOCK_STREAM, 0), up[2], down[2];
    if (connect(server, (const struct sockaddr *)to, sizeof(*to)) < 0) {
        close(client);
        close(server);
        return;
    }
    if (pipe(up) < 0 || pipe(down) < 0)
        die("relay");
    fcntl(up[1], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(down[1], F_SETPIPE_SZ, PIPE_BYTES);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    int open = 1;
    while (open && poll(p, 2, -1) > 0) {
        if (p[0].revents)
            open = pass(client, server, up);
        if (open && p[1].revents)
            open = pass(server, client, down);
    }
    const int all[] = {client, server, up[0], up[1], down[0], down[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        close(all[i]);
}

static void relay(uint16_t port, const char *address, uint16_t to_port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(to_port)};
    int fd = listen_at(port);
    fcntl(fd, F_SETFL, 0);
    inet_pton(AF_INET, address, &to.sin_addr);
    for (;;) {
        int client = accept4(fd, NULL, NULL, 0);
        if (client >= 0)
            relay_one(client, &to);
    }
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        serve();
    else if (argc == 5 && strcmp(argv[1], "relay") == 0)
        relay((uint16_t)strtoul(argv[2], NULL, 10), argv[3], (uint16_t)strtoul(argv[4], NULL, 10));
    fprintf(stderr, "usage: farend serve | farend relay PORT ADDRESS TO-PORT\n");
    return 2;
}

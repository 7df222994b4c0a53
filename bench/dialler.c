/* SPDX-License-Identifier: Apache-2.0 */
/* dialler: the program in the box of bench/network.py. It dials farend and tells what that took.
 *
 *     dialler get|put KIND ADDRESS PORT NAME BYTES      one stream; prints its microseconds, from dialling to the last byte
 *     dialler first   KIND ADDRESS PORT NAME COUNT      connections one after another; prints of each the microseconds to its first byte
 *     dialler hold    KIND ADDRESS PORT NAME COUNT RATE connections at once, so many begun in a second; prints how many are open, how many
 *                                                       failed, seconds, p50 and p99 to the first byte; at the end of its input how many
 * still answer dialler churn   KIND ADDRESS PORT NAME COUNT RATE the same, but each is closed when it has its first byte dialler mute
 * ADDRESS PORT COUNT                connections that never say a word, held until the end of its input
 *
 * KIND is tls, greet or http. With a proxy in https_proxy it is asked for the way (srt has no other). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (256 << 10)
#define ORDER 16
#define MUTE_EACH 4000u   /* connections of one process */
#define PORTS_EACH 20000u /* … to one address, which has no more ports than that for one dialler */
#define PATIENCE_US 20e6

static char block[BLOCK];

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
    fprintf(stderr, "dialler: %s: %s\n", what, strerror(errno));
    exit(1);
}

struct target {
    const char *kind, *name;
    struct sockaddr_in to;
};

/* --- first words --- */

static size_t put_hello(const char *name, uint8_t *p)
{
    static const uint8_t versions[] = {0, 43, 0, 3, 2, 3, 4};
    size_t n = strlen(name), extensions = n + 9 + sizeof(versions), message = 2 + 32 + 1 + 2 + 2 + 2 + 2 + extensions;
    uint8_t *at = p;
    const uint8_t head[] = {
        0x16, 3, 1, (uint8_t)((message + 4) >> 8), (uint8_t)(message + 4), 1, 0, (uint8_t)(message >> 8), (uint8_t)message, 3, 3};
    at = mempcpy(at, head, sizeof(head));
    memset(at, 7, 32);
    at += 32;
    const uint8_t middle[] = {
        0, 0, 2,         0x13, 0x01, 1, 0, (uint8_t)(extensions >> 8), (uint8_t)extensions, 0, 0, 0, (uint8_t)(n + 5), 0, (uint8_t)(n + 3),
        0, 0, (uint8_t)n};
    at = mempcpy(at, middle, sizeof(middle));
    at = mempcpy(at, name, n);
    at = mempcpy(at, versions, sizeof(versions));
    return (size_t)(at - p);
}

/* What the client says first, if anything, and how much of an answer it waits for. */
static size_t opening(const struct target *t, uint8_t *p, size_t cap, size_t *ret_answer)
{
    *ret_answer = t->kind[0] == 't' ? 95 : t->kind[0] == 'g' ? 8 : 1;
    if (t->kind[0] == 't')
        return put_hello(t->name, p);
    return t->kind[0] == 'g' ? 0 : (size_t)snprintf((char *)p, cap, "GET /1 HTTP/1.1\r\nHost: %s\r\n\r\n", t->name);
}

static void say_all(int fd, const void *p, size_t n)
{
    while (n) {
        ssize_t m = send(fd, p, n, MSG_NOSIGNAL);
        if (m <= 0)
            die("send");
        p = (const char *)p + m;
        n -= (size_t)m;
    }
}

static void hear_all(int fd, size_t n)
{
    while (n) {
        ssize_t m = recv(fd, block, n < BLOCK ? n : BLOCK, 0);
        if (m <= 0)
            die("receive");
        n -= (size_t)m;
    }
}

/* Up to an empty line, byte by byte: what follows is not ours. */
static void hear_head(int fd)
{
    uint32_t last = 0;
    while (last != 0x0d0a0d0a) {
        uint8_t c;
        if (recv(fd, &c, 1, 0) != 1)
            die("receive");
        last = last << 8 | c;
    }
}

/* http://NAME:PASSWORD@HOST:PORT; the host is the loopback. */
static int by_proxy(const char *url, const struct target *t)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *who = strstr(url, "//") + 2, *end = strchr(who, '@'), *port = strrchr(url, ':');
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char said[512] = "", request[1024];
    for (const char *p = who; end && p < end; p += 3) {
        uint32_t v = 0;
        for (int i = 0; i < 3; i++)
            v = v << 8 | (p + i < end ? (uint8_t)p[i] : 0);
        for (int i = 0; i < 4; i++)
            said[strlen(said)] = p + i - 1 < end || i < 2 ? digits[v >> (18 - 6 * i) & 63] : '=';
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0; i++) {
        if (i == 100)
            die("connect to the proxy");
        usleep(20000); /* it is started beside us */
    }
    int n = snprintf(request, sizeof(request), "CONNECT %s:%u HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", t->name,
                     ntohs(t->to.sin_port), t->name, said);
    say_all(fd, request, (size_t)n);
    hear_head(fd);
    return fd;
}

static int dial(const struct target *t)
{
    static const int on = 1;
    const char *proxy = getenv("https_proxy");
    int fd = proxy ? by_proxy(proxy, t) : socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || (!proxy && connect(fd, (const struct sockaddr *)&t->to, sizeof(t->to)) < 0))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* --- one at a time --- */

static void stream(const struct target *t, char what, uint64_t bytes)
{
    uint8_t first[512], order[ORDER] = {0x80, what == 'g' ? 'G' : 'P'};
    size_t answer;
    double begun = now_us();
    int fd = dial(t);
    if (t->kind[0] == 'h') {
        int n =
            snprintf((char *)first, sizeof(first),
                     what == 'g' ? "GET /%llu HTTP/1.1\r\nHost: %s\r\n\r\n" : "POST / HTTP/1.1\r\nContent-Length: %llu\r\nHost: %s\r\n\r\n",
                     (unsigned long long)bytes, t->name);
        say_all(fd, first, (size_t)n);
    } else {
        size_t n = opening(t, first, sizeof(first), &answer);
        say_all(fd, first, n);
        hear_all(fd, answer);
        memcpy(order + 8, &bytes, sizeof(bytes));
        begun = now_us(); /* some are silent for a while, to let the server speak first: that is not what is asked */
        say_all(fd, order, sizeof(order));
    }
    if (what == 'g' && t->kind[0] == 'h')
        hear_head(fd);
    for (uint64_t left = bytes; what == 'p' && left;) {
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        say_all(fd, block, n);
        left -= n;
    }
    hear_all(fd, what == 'g' ? bytes : 1);
    printf("%.1f\n", now_us() - begun);
}

static void first_bytes(const struct target *t, unsigned count)
{
    uint8_t first[512];
    size_t answer, n = opening(t, first, sizeof(first), &answer);
    for (unsigned i = 0; i < count; i++) {
        double begun = now_us();
        int fd = dial(t);
        say_all(fd, first, n);
        hear_all(fd, 1);
        printf("%.1f ", now_us() - begun);
        hear_all(fd, t->kind[0] == 'h' ? 0 : answer - 1);
        close(fd);
    }
    printf("\n");
}

/* --- many --- */

struct one {
    double begun, took; /* took: 0 until the first byte, below 0 if it failed */
    int fd;
    size_t left;
    char said;
};

static int compare(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

static void begin_one(int epoll, const struct target *t, struct one *o)
{
    struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = o};
    o->begun = now_us();
    o->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (o->fd < 0)
        die("socket");
    if (connect(o->fd, (const struct sockaddr *)&t->to, sizeof(t->to)) < 0 && errno != EINPROGRESS)
        o->took = -1;
    else
        epoll_ctl(epoll, EPOLL_CTL_ADD, o->fd, &ev);
}

/* Goes on with one; 1: it is done, one way or the other. */
static int go_on(int epoll, const struct target *t, struct one *o, int drops)
{
    uint8_t first[512];
    if (!o->said) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = o};
        size_t n = opening(t, first, sizeof(first), &o->left);
        o->said = 1;
        epoll_ctl(epoll, EPOLL_CTL_MOD, o->fd, &ev);
        if (!n || send(o->fd, first, n, MSG_NOSIGNAL) == (ssize_t)n)
            return 0;
        o->left = 0;
    }
    ssize_t n = o->left ? recv(o->fd, first, o->left < sizeof(first) ? o->left : sizeof(first), MSG_DONTWAIT) : -1;
    if (n < 0 && o->left && errno == EAGAIN)
        return 0;
    if (n > 0 && (o->left -= (size_t)n))
        return 0;
    o->took = n > 0 ? now_us() - o->begun : -1;
    epoll_ctl(epoll, EPOLL_CTL_DEL, o->fd, NULL);
    if (drops || o->took < 0)
        close(o->fd);
    return 1;
}

static unsigned still_there(const struct one *ones, unsigned count)
{
    static const uint8_t order[ORDER] = {0x80, 'E'};
    unsigned there = 0;
    for (unsigned i = 0; i < count; i++)
        if (ones[i].took > 0)
            (void)!send(ones[i].fd, order, sizeof(order), MSG_NOSIGNAL);
    for (unsigned i = 0; i < count; i++)
        if (ones[i].took > 0) {
            const struct timeval patience = {.tv_sec = 5};
            fcntl(ones[i].fd, F_SETFL, 0);
            setsockopt(ones[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
            there += recv(ones[i].fd, block, ORDER, MSG_WAITALL) == ORDER;
        }
    return there;
}

static void many(const struct target *t, unsigned count, double rate, int drops)
{
    struct one *ones = calloc(count, sizeof(*ones));
    double *took = calloc(count, sizeof(*took)), begun = now_us();
    struct epoll_event ev[64];
    unsigned started = 0, done = 0, good = 0;
    int epoll = epoll_create1(0);
    while (done < count) {
        double at = now_us() - begun;
        for (; started < count && started < at * rate / 1e6; started++) {
            begin_one(epoll, t, &ones[started]);
            done += ones[started].took < 0;
        }
        int n = epoll_wait(epoll, ev, 64, started < count ? 1 : 100);
        for (int i = 0; i < n; i++)
            done += (unsigned)go_on(epoll, t, ev[i].data.ptr, drops);
        if (at > count / rate * 1e6 + PATIENCE_US)
            break;
    }
    double all = (now_us() - begun) / 1e6;
    for (unsigned i = 0; i < count; i++)
        if (ones[i].took > 0)
            took[good++] = ones[i].took;
    qsort(took, good, sizeof(*took), compare);
    printf("%u %u %.3f %.1f %.1f\n", good, count - good, all, good ? took[good / 2] : 0, good ? took[good * 99 / 100] : 0);
    fflush(stdout);
    if (drops)
        return;
    while (read(0, block, BLOCK) > 0)
        ;
    printf("%u\n", still_there(ones, count));
}

static void mute_some(const struct target *t, unsigned from, unsigned count, int tell)
{
    struct sockaddr_in to = t->to;
    unsigned good = 0;
    for (unsigned i = from; i < from + count; i++) {
        to.sin_addr.s_addr = htonl(ntohl(t->to.sin_addr.s_addr) + i / PORTS_EACH);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (fd < 0)
            break;
        good += connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS;
    }
    (void)!write(tell, &good, sizeof(good));
    pause();
    _exit(0);
}

static void mute(const struct target *t, unsigned count)
{
    int tell[2];
    unsigned children = (count + MUTE_EACH - 1) / MUTE_EACH, all = 0, good;
    double begun = now_us();
    if (pipe(tell) < 0)
        die("pipe");
    for (unsigned i = 0; i < children; i++)
        if (fork() == 0)
            mute_some(t, i * MUTE_EACH, i + 1 < children ? MUTE_EACH : count - i * MUTE_EACH, tell[1]);
    for (unsigned i = 0; i < children && read(tell[0], &good, sizeof(good)) == sizeof(good); i++)
        all += good;
    printf("%u %.3f\n", all, (now_us() - begun) / 1e6);
    fflush(stdout);
    while (read(0, block, BLOCK) > 0)
        ;
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
}

static struct target target_of(char **argv)
{
    struct target t = {
        .kind = argv[0], .name = argv[3], .to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10))}};
    if (inet_pton(AF_INET, argv[1], &t.to.sin_addr) != 1)
        die(argv[1]);
    return t;
}

int main(int argc, char **argv)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &files);
    if (argc == 5 && strcmp(argv[1], "mute") == 0) {
        char *words[] = {(char *)"mute", argv[2], argv[3], (char *)""};
        struct target t = target_of(words);
        mute(&t, (unsigned)strtoul(argv[4], NULL, 10));
        return 0;
    }
    if (argc < 7) {
        fprintf(stderr, "usage: see the head of dialler.c\n");
        return 2;
    }
    struct target t = target_of(argv + 2);
    uint64_t n = strtoull(argv[6], NULL, 10);
    if (argv[1][0] == 'g' || argv[1][0] == 'p')
        stream(&t, argv[1][0], n);
    else if (argv[1][0] == 'f')
        first_bytes(&t, (unsigned)n);
    else
        many(&t, (unsigned)n, argc > 7 ? strtod(argv[7], NULL) : 1e9, argv[1][0] == 'c');
    return 0;
}

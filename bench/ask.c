/* SPDX-License-Identifier: Apache-2.0 */
/* ask [-c CONNECTIONS] [-n REQUESTS] SOCKET METHOD PATH [JSON]: asks an HTTP server over a unix socket, on so many connections at once,
 * one request after the other on each, and prints how long each took in microseconds, then "total" and the seconds of all. A status
 * that is not 2xx ends it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256

struct one {
    int fd;
    double began;
    char *in;
    size_t len, cap;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "ask: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The whole answer is here: its length with its head; 0 if not. */
static size_t whole(const struct one *o)
{
    o->in[o->len] = 0;
    const char *end = strstr(o->in, "\r\n\r\n"), *length = end ? strcasestr(o->in, "\r\ncontent-length:") : NULL;
    if (!end)
        return 0;
    size_t n = (size_t)(end + 4 - o->in) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    if (o->in[9] != '2') {
        fprintf(stderr, "ask: %s\n", o->in);
        exit(1);
    }
    return o->len >= n ? n : 0;
}

static void ask(struct one *o, const char *request, size_t n)
{
    o->began = now();
    o->len = 0;
    if (write(o->fd, request, n) != (ssize_t)n)
        die("write");
}

int main(int argc, char **argv)
{
    static struct one ones[CONNECTIONS_MAX];
    static struct pollfd polls[CONNECTIONS_MAX];
    static char request[65536];
    int opt, connections = 1;
    long requests = 1000;
    while ((opt = getopt(argc, argv, "c:n:")) > 0)
        if (opt == 'c')
            connections = (int)strtol(optarg, NULL, 10);
        else if (opt == 'n')
            requests = strtol(optarg, NULL, 10);
    if (argc - optind < 3 || connections < 1 || connections > CONNECTIONS_MAX)
        return 2;
    const char *path = argv[optind], *body = argc - optind > 3 ? argv[optind + 3] : "";
    int n = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     argv[optind + 1], argv[optind + 2], strlen(body), body);
    double *took = calloc((size_t)requests, sizeof(*took));
    long sent = 0, done = 0;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    for (int i = 0; i < connections; i++) {
        ones[i].fd = socket(AF_UNIX, SOCK_STREAM, 0);
        ones[i].cap = 1 << 20;
        ones[i].in = malloc(ones[i].cap + 1);
        if (ones[i].fd < 0 || connect(ones[i].fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
            die(path);
        polls[i] = (struct pollfd){.fd = ones[i].fd, .events = POLLIN};
    }
    double began = now();
    for (int i = 0; i < connections && sent < requests; i++, sent++)
        ask(&ones[i], request, (size_t)n);
    while (done < requests) {
        if (poll(polls, (nfds_t)connections, 30000) <= 0)
            die("no answer");
        for (int i = 0; i < connections; i++) {
            if (!polls[i].revents)
                continue;
            ssize_t got = read(ones[i].fd, ones[i].in + ones[i].len, ones[i].cap - ones[i].len);
            if (got <= 0)
                die("read");
            ones[i].len += (size_t)got;
            if (!whole(&ones[i]))
                continue;
            took[done++] = now() - ones[i].began;
            if (sent < requests) {
                sent++;
                ask(&ones[i], request, (size_t)n);
            }
        }
    }
    double seconds = now() - began;
    for (long i = 0; i < requests; i++)
        printf("%.1f\n", took[i] * 1e6);
    printf("total %.6f\n", seconds);
    return 0;
}

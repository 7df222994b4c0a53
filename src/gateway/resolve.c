/* SPDX-License-Identifier: Apache-2.0 */
/* Owns our own questions: the addresses of a name, from the host's file of names or from the servers that the host itself asks.
 *
 * How it works: the servers and whoever can send in their name are hostile. Each lookup has a socket of its own, connected, from a port
 * that the kernel chose, two questions with ids and a mixed case that nobody else knows; an answer counts for the question it repeats. One
 * that did not fit into a datagram is asked for again over a connection. A name of one label goes to no server: which name such a server
 * would answer for is not ours to know. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "gateway/gateway.h"

#define TRY_MS 1500
#define TRIES_MAX 4u
#define TTL_LEAST 5u
#define TTL_MOST 300u
#define FAILED_TTL 2u
#define FILE_BYTES 4096u

static const enum dns_type types[2] = {DNS_A, DNS_AAAA};

/* --- the host's files --- */

/* The next word of a line, or NULL at its end. */
static const char *next_word(const char **at, const char *end, size_t *ret_len)
{
    const char *p = *at;
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    const char *begin = p;
    while (p < end && *p != ' ' && *p != '\t' && *p != '\r' && *p != '#' && *p != ';')
        p++;
    *at = p;
    *ret_len = (size_t)(p - begin);
    return p > begin ? begin : NULL;
}

static size_t read_servers(const struct gateway *g, struct address ret[SERVERS_MAX])
{
    char text[FILE_BYTES];
    size_t count = 0, n;
    ssize_t got = g->resolv_fd >= 0 ? pread(g->resolv_fd, text, sizeof(text), 0) : 0;
    const char *end = text + (got > 0 ? got : 0);
    for (const char *line = text; line < end && count < SERVERS_MAX;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;
        stop = stop ? stop : end;
        const char *word = next_word(&at, stop, &n);
        if (word && n == 10 && memcmp(word, "nameserver", 10) == 0 && (word = next_word(&at, stop, &n)) &&
            address_parse(word, n, &ret[count]))
            count++;
        line = stop + 1;
    }
    if (count == 0 && address_parse("127.0.0.1", 9, &ret[0]))
        count = 1;
    return count;
}

static bool line_names(const char *line, const char *stop, const struct hostname *name, struct address *ret)
{
    struct hostname one;
    size_t n;
    const char *at = line, *word = next_word(&at, stop, &n);
    if (!word || !address_parse(word, n, ret))
        return false;
    while ((word = next_word(&at, stop, &n)))
        if (hostname_canon(word, n, true, &one) == HOSTNAME_GOOD && one.len == name->len && memcmp(one.text, name->text, one.len) == 0)
            return true;
    return false;
}

/* How many addresses the host's own file has for the name. Lines longer than we read at once are passed over. */
static size_t read_hosts(const struct gateway *g, const struct hostname *name, struct address *ret, size_t most)
{
    char text[FILE_BYTES];
    size_t count = 0;
    off_t at = 0;
    ssize_t got;
    while (count < most && g->hosts_fd >= 0 && (got = pread(g->hosts_fd, text, sizeof(text), at)) > 0) {
        const char *end = text + got, *line = text, *stop;
        while (count < most && (stop = memchr(line, '\n', (size_t)(end - line)))) {
            count += line_names(line, stop, name, &ret[count]);
            line = stop + 1;
        }
        if (got < (ssize_t)sizeof(text)) {
            count += count < most && line < end && line_names(line, end, name, &ret[count]);
            break;
        }
        at += line > text ? line - text : got;
    }
    return count;
}

/* --- one lookup --- */

/* Everybody who waits hears of it; it is over. k without addresses: there are none. */
static void finish(struct gateway *g, struct lookup *l, bool failed)
{
    struct known *k = known_add(g, &l->name);
    uint32_t index = (uint32_t)(l - g->lookups);
    if (l->source.fd >= 0) {
        loop_remove(&g->loop, &l->source);
        own_close(&l->source.fd);
    }
    l->used = false;
    for (struct asker *a = g->askers; a < g->askers + ASKERS_MAX; a++) {
        if (a->kind == ASKER_FREE || a->lookup != index)
            continue;
        struct asker one = *a;
        a->kind = ASKER_FREE;
        if (one.kind == ASKER_FLOW)
            crossing_found(g, one.flow, one.generation, k, failed);
        else
            oracle_found(g, &one, k, failed);
    }
}

/* Has the host a way to it? Nothing is sent. */
static bool is_reachable(const struct address *a)
{
    own_fd fd = socket(a->family == ADDRESS_V4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage to;
    socklen_t n = flow_sockaddr(a, 443, &to);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, n) == 0;
}

/* The current addresses first, and those of before behind them. */
static void remember(struct known *k, const struct address *new, size_t count, uint32_t ttl)
{
    struct known old = *k;
    k->count = 0;
    for (size_t i = 0; i < count && k->count < KNOWN_ADDRESSES_MAX; i++)
        if (!known_has(k, &new[i]))
            k->address[k->count++] = new[i];
    k->current = k->count;
    for (size_t i = 0; i < old.count && k->count < KNOWN_ADDRESSES_MAX; i++)
        if (!known_has(k, &old.address[i]))
            k->address[k->count++] = old.address[i];
    ttl = ttl < TTL_LEAST ? TTL_LEAST : ttl > TTL_MOST ? TTL_MOST : ttl;
    k->fresh_ms = clock_ms() + (int64_t)ttl * 1000;
}

static void take_found(struct gateway *g, struct lookup *l)
{
    struct address all[2 * DNS_ADDRESSES_MAX];
    size_t count = 0;
    uint32_t ttl = TTL_MOST;
    for (int q = 0; q < 2; q++) {
        const struct dns_found *f = &l->found[q];
        if (f->count && f->ttl < ttl)
            ttl = f->ttl;
        for (size_t i = 0; i < f->count; i++)
            if (f->address[i].family == ADDRESS_V4 || is_reachable(&f->address[i]))
                all[count++] = f->address[i];
    }
    remember(known_add(g, &l->name), all, count, count ? ttl : FAILED_TTL);
    finish(g, l, false);
}

static bool has_failed(const struct dns_found *f)
{
    return f->result != DNS_NOERROR && f->result != DNS_NXDOMAIN;
}

/* Both questions are answered: that is it, unless one has to be asked over a connection. */
static void on_answers(struct gateway *g, struct lookup *l);
static void try_next(struct gateway *g, struct lookup *l);

static int open_try(struct gateway *g, struct lookup *l, int kind)
{
    struct address servers[SERVERS_MAX];
    struct sockaddr_storage to;
    size_t count = read_servers(g, servers);
    const struct address *server = &servers[(l->tries - 1u) % count];
    socklen_t n = flow_sockaddr(server, 53, &to);
    struct pale_err e;
    own_fd fd = socket(server->family == ADDRESS_V4 ? AF_INET : AF_INET6, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS))
        return -1;
    l->source.fd = fd;
    if (loop_add(&g->loop, &l->source, kind == SOCK_STREAM ? EPOLLOUT : EPOLLIN, &e) < 0) {
        l->source.fd = -1;
        return -1;
    }
    (void)take_fd(&fd);
    l->due_ms = clock_ms() + TRY_MS;
    return 0;
}

static void close_try(struct gateway *g, struct lookup *l)
{
    if (l->source.fd >= 0)
        loop_remove(&g->loop, &l->source);
    own_close(&l->source.fd);
}

/* The case of letters is up to us: an answer must have it as we sent it. */
static void mix_case(struct dns_name *n, const uint8_t *noise)
{
    for (size_t i = 0; i < n->len; i++)
        if (n->byte[i] >= 'a' && n->byte[i] <= 'z' && (noise[i % 32] >> (i / 32 % 8) & 1))
            n->byte[i] = (uint8_t)(n->byte[i] - 'a' + 'A');
}

static void ask_again(struct lookup *l, int q)
{
    struct {
        uint16_t id;
        uint8_t noise[32];
    } r;
    (void)!getrandom(&r, sizeof(r), 0);
    dnslookup_question(r.id, types[q], &l->name, &l->question[q]);
    mix_case(&l->question[q].name, r.noise);
}

static void try_datagrams(struct gateway *g, struct lookup *l)
{
    uint8_t bytes[DNS_LOOKUP_BYTES];
    l->stream = 0;
    if (open_try(g, l, SOCK_DGRAM) < 0) {
        l->due_ms = 0; /* the next tick tries another */
        return;
    }
    for (int q = 0; q < 2; q++)
        if (!l->answered[q]) {
            ask_again(l, q);
            size_t n = dnslookup_write(&l->question[q], false, bytes);
            (void)!send(l->source.fd, bytes, n, MSG_NOSIGNAL);
        }
}

static void try_stream(struct gateway *g, struct lookup *l, int q)
{
    close_try(g, l);
    l->stream = (uint8_t)(q + 1);
    l->got = 0;
    ask_again(l, q);
    if (open_try(g, l, SOCK_STREAM) < 0)
        l->due_ms = 0;
}

static void try_next(struct gateway *g, struct lookup *l)
{
    close_try(g, l);
    if (l->tries++ < TRIES_MAX)
        try_datagrams(g, l);
    else
        finish(g, l, true);
}

static void on_answers(struct gateway *g, struct lookup *l)
{
    for (int q = 0; q < 2; q++)
        if (!l->answered[q])
            return;
    for (int q = 0; q < 2; q++)
        if (l->found[q].truncated) {
            l->answered[q] = false;
            try_stream(g, l, q);
            return;
        }
    /* A server that knows one family and fails at the other is believed for what it knows. */
    if (has_failed(&l->found[0]) && has_failed(&l->found[1])) {
        l->answered[0] = l->answered[1] = false;
        try_next(g, l);
        return;
    }
    take_found(g, l);
}

static void on_datagram(struct gateway *g, struct lookup *l)
{
    uint8_t bytes[DNS_DATAGRAM_BYTES_MAX * 4];
    struct pale_err e;
    ssize_t n = recv(l->source.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        try_next(g, l); /* nobody is there */
        return;
    }
    for (int q = 0; q < 2; q++) {
        if (l->answered[q])
            continue;
        int r = dnslookup_parse(&l->question[q], bytes, (size_t)n, &l->found[q], &e);
        if (r < 0)
            l->found[q] = (struct dns_found){.result = DNS_SERVFAIL};
        l->answered[q] = r != 0;
        if (r != 0)
            break;
    }
    on_answers(g, l);
}

static void on_stream(struct gateway *g, struct lookup *l, uint32_t events)
{
    int q = l->stream - 1;
    uint8_t bytes[DNS_LOOKUP_BYTES];
    struct pale_err e;
    if (events & EPOLLOUT) {
        size_t n = dnslookup_write(&l->question[q], true, bytes);
        if (send(l->source.fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
            try_next(g, l);
        else
            loop_want(&g->loop, &l->source, EPOLLIN);
        return;
    }
    ssize_t n = recv(l->source.fd, l->answer + l->got, sizeof(l->answer) - l->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    l->got += n > 0 ? (size_t)n : 0;
    size_t want = l->got >= 2 ? (size_t)l->answer[0] << 8 | l->answer[1] : sizeof(l->answer);
    if (n <= 0 || (l->got >= 2 && want > sizeof(l->answer) - 2)) {
        try_next(g, l);
        return;
    }
    if (l->got < 2 || l->got < want + 2)
        return;
    int r = dnslookup_parse(&l->question[q], l->answer + 2, want, &l->found[q], &e);
    if (r != 1 || l->found[q].truncated)
        l->found[q] = (struct dns_found){.result = DNS_SERVFAIL};
    l->answered[q] = true;
    on_answers(g, l);
}

static void on_ready(struct loop_source *s, uint32_t events)
{
    struct lookup *l = (struct lookup *)((char *)s - offsetof(struct lookup, source));
    if (l->stream)
        on_stream(l->g, l, events);
    else
        on_datagram(l->g, l);
}

static bool add_asker(struct gateway *g, uint32_t index, const struct asker *who)
{
    for (struct asker *a = g->askers; a < g->askers + ASKERS_MAX; a++)
        if (a->kind == ASKER_FREE) {
            *a = *who;
            a->lookup = index;
            return true;
        }
    return false;
}

static struct lookup *find_lookup(struct gateway *g, const struct hostname *name)
{
    struct lookup *spare = NULL;
    for (struct lookup *l = g->lookups; l < g->lookups + LOOKUPS_MAX; l++) {
        if (l->used && l->name.len == name->len && memcmp(l->name.text, name->text, name->len) == 0)
            return l;
        if (!l->used && !spare)
            spare = l;
    }
    return spare;
}

bool resolve_start(struct gateway *g, const struct hostname *name, const struct asker *who)
{
    struct address own[KNOWN_ADDRESSES_MAX];
    struct lookup *l = find_lookup(g, name);
    if (!l || !add_asker(g, (uint32_t)(l - g->lookups), who))
        return false;
    if (l->used)
        return true;
    *l = (struct lookup){.used = true, .g = g, .name = *name, .source = {.fd = -1, .ready = on_ready}};
    liaison_want_files(g);
    size_t n = read_hosts(g, name, own, KNOWN_ADDRESSES_MAX);
    if (n || !memchr(name->text, '.', name->len)) {
        remember(known_add(g, name), own, n, TTL_LEAST);
        finish(g, l, false);
        return true;
    }
    try_next(g, l);
    return true;
}

void resolve_tick(struct gateway *g, int64_t now)
{
    for (struct lookup *l = g->lookups; l < g->lookups + LOOKUPS_MAX; l++)
        if (l->used && l->due_ms <= now)
            try_next(g, l);
}

/* A test build can do what nobody should. */
void resolve_forward(const struct gateway *g, const uint8_t *p, size_t n)
{
#ifdef PALE_WEAKEN
    struct address servers[SERVERS_MAX];
    struct sockaddr_storage to;
    read_servers(g, servers);
    socklen_t to_len = flow_sockaddr(&servers[0], 53, &to);
    own_fd fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)!sendto(fd, p, n, MSG_NOSIGNAL, (struct sockaddr *)&to, to_len);
#else
    (void)g;
    (void)p;
    (void)n;
#endif
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command's side of HTTP. */
#include "cli/remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "box/daemon.h"
#include "cli/cli.h"
#include "cli/dialling.h"
#include "net/chunks.h"
#include "wire/message.h"

#define STOP_LOOK_MS 200 /* a signal that comes just before we wait does not end the waiting */

void remote_init(struct remote *r)
{
    *r = (struct remote){.fd = -1, .wait_ms = REMOTE_WAIT_MS};
    buf_init(&r->in, HTTP_HEAD_MAX + 65536);
}

void remote_close(struct remote *r)
{
    own_close(&r->fd);
    buf_done(&r->in);
}

/* --- who asks --- */

static int read_token_file(const char *path, char *ret, size_t cap, struct pale_err *e)
{
    struct stat st;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "PALE_TOKEN_FILE: open %s", path);
    if (S_ISREG(st.st_mode) && (st.st_mode & 077))
        cli_note("note: others may read the token in %s (chmod 600)", path);
    ssize_t n = fd_read_full(fd, ret, cap);
    if (n < 0)
        return err_os(e, "PALE_TOKEN_FILE: read %s", path);
    while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r'))
        n--;
    if ((size_t)n >= cap)
        return err_set(e, PALE_BAD_INPUT, "PALE_TOKEN_FILE: %s holds more than a token", path);
    ret[n] = 0;
    return 0;
}

static int read_token(struct remote *r, struct pale_err *e)
{
    const char *token = getenv("PALE_TOKEN"), *file = getenv("PALE_TOKEN_FILE");
    int res = 0;
    if (token && token[0] && strlen(token) >= sizeof(r->token))
        return err_set(e, PALE_BAD_INPUT, "PALE_TOKEN is longer than a token");
    if (token && token[0])
        snprintf(r->token, sizeof(r->token), "%s", token);
    else if (file && file[0])
        res = read_token_file(file, r->token, sizeof(r->token), e);
    /* It becomes part of a header. */
    for (const char *c = r->token; res == 0 && *c; c++)
        if (*c <= ' ' || *c > '~')
            res = err_set(e, PALE_BAD_INPUT, "the token of %s has a character that no token has",
                          token && token[0] ? "PALE_TOKEN" : "PALE_TOKEN_FILE");
    return res;
}

/* --- connecting --- */

static int timed_out(const struct remote *r, struct pale_err *e)
{
    char text[32];
    return err_set(e, PALE_TIMEOUT, "the daemon did not answer within %s (PALE_HOST_WAIT sets how long to wait)",
                   number_show_ms(r->wait_ms, text, sizeof(text)));
}

/* Waits until the socket is ready for that. */
static int await(struct remote *r, short events, struct pale_err *e)
{
    const int64_t most = r->stop ? STOP_LOOK_MS : INT32_MAX;
    for (;;) {
        struct pollfd p = {.fd = r->fd, .events = events};
        int64_t left = r->until_ms - clock_ms();
        if (r->stop && *r->stop)
            return err_set(e, PALE_GONE, "interrupted");
        if (left <= 0)
            return timed_out(r, e);
        int n = poll(&p, 1, (int)(left < most ? left : most));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_os(e, "wait for the daemon");
    }
}

static int finish_connect(struct remote *r, const char *where, struct pale_err *e)
{
    int problem = 0, res = await(r, POLLOUT, e);
    socklen_t n = sizeof(problem);
    if (res < 0)
        return res;
    if (getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &problem, &n) < 0 || problem) {
        errno = problem ? problem : errno;
        return err_os(e, "connect to %s", where);
    }
    return fd_set_nonblock(r->fd, false) ? 0 : err_os(e, "connect to %s", where);
}

static int connect_to(struct remote *r, const struct sockaddr *sa, socklen_t n, const char *where, struct pale_err *e)
{
    r->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0)
        return err_os(e, "make a socket");
    if (connect(r->fd, sa, n) == 0 || errno == EINPROGRESS)
        return finish_connect(r, where, e);
    if (errno == ENOENT || errno == ECONNREFUSED)
        return err_set(e, PALE_NOT_FOUND, "no daemon listens on %s; `pale serve` starts one there", where);
    return err_os(e, "connect to %s", where);
}

static int connect_unix(struct remote *r, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", r->url.path);
    return connect_to(r, (const struct sockaddr *)&sa, sizeof(sa), r->url.path, e);
}

/* Loopback alone: the parser has seen to it. */
static int connect_tcp(struct remote *r, struct pale_err *e)
{
    const char *name = strcmp(r->url.name, "localhost") == 0 ? "127.0.0.1" : r->url.name;
    struct sockaddr_in six_or_four = {.sin_family = AF_INET, .sin_port = htons(r->url.port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(r->url.port)};
    int on = 1, res;
    if (inet_pton(AF_INET, name, &six_or_four.sin_addr) == 1)
        res = connect_to(r, (const struct sockaddr *)&six_or_four, sizeof(six_or_four), r->url.host, e);
    else if (inet_pton(AF_INET6, name, &six.sin6_addr) == 1)
        res = connect_to(r, (const struct sockaddr *)&six, sizeof(six), r->url.host, e);
    else
        return err_set(e, PALE_INTERNAL, "%s is no address", name);
    if (res == 0)
        (void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return res;
}

static int connect_local(struct remote *r, struct pale_err *e)
{
    struct daemon_paths paths;
    int res = daemon_paths(&paths, e);
    if (res == 0)
        res = daemon_state(paths.state, r->state, e);
    return res < 0 ? res : daemon_connect(&paths, r->may_start, 0, &r->fd, e);
}

static int connect_now(struct remote *r, struct pale_err *e)
{
    buf_clear(&r->in);
    if (!r->is_far)
        return connect_local(r, e);
    switch (r->url.kind) {
    case HOSTURL_UNIX:
        return connect_unix(r, e);
    case HOSTURL_HTTP:
        return connect_tcp(r, e);
    case HOSTURL_HTTPS:
        return dialling_open(r->url.name, r->url.port, r->until_ms, &r->fd, e);
    }
    return err_set(e, PALE_INTERNAL, "no way to the daemon is known");
}

int remote_open(struct remote *r, const char *host, bool start, struct pale_err *e)
{
    const char *wait = getenv("PALE_HOST_WAIT");
    int res = 0;
    r->is_far = host != NULL;
    r->may_start = start;
    if (wait && wait[0] && (!number_duration(wait, &r->wait_ms) || r->wait_ms == 0 || r->wait_ms > INT32_MAX))
        return err_set(e, PALE_BAD_INPUT, "PALE_HOST_WAIT=%s: write a time such as 30s or 5m", wait);
    if (host && ((res = hosturl_parse(host, &r->url, e)) < 0 || (res = read_token(r, e)) < 0))
        return res;
    r->until_ms = clock_ms() + (int64_t)r->wait_ms;
    res = connect_now(r, e);
    if (res < 0)
        own_close(&r->fd);
    return res;
}

/* --- bytes --- */

static int send_all(struct remote *r, const void *p, size_t n, struct pale_err *e)
{
    for (const char *at = p; n > 0;) {
        ssize_t w = send(r->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        int res = w < 0 && errno == EAGAIN ? await(r, POLLOUT, e) : 0;
        if (res < 0)
            return res;
        if (w < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        /* One that hung up may have said why. */
        if (w < 0)
            return errno == EPIPE || errno == ECONNRESET ? 0 : err_os(e, "talk to the daemon");
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

static int fill(struct remote *r, struct pale_err *e)
{
    if (!buf_reserve(&r->in, 4096))
        return err_set(e, PALE_PROTOCOL, "the daemon's answer is longer than it may be");
    for (;;) {
        ssize_t n = recv(r->fd, r->in.data + r->in.len, r->in.cap - r->in.len, MSG_DONTWAIT);
        int res = n < 0 && errno == EAGAIN ? await(r, POLLIN, e) : 0;
        if (res < 0)
            return res;
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return err_set(e, PALE_GONE, "the daemon hung up before it had answered");
        if (n < 0)
            return err_os(e, "listen to the daemon");
        r->in.len += (size_t)n;
        return 0;
    }
}

static int read_length(struct remote *r, uint64_t length, struct buf *ret, struct pale_err *e)
{
    if (length > ret->max)
        return err_set(e, PALE_LIMIT, "the daemon's answer is longer than it may be");
    while (length > 0) {
        if (r->in.len == 0) {
            int res = fill(r, e);
            if (res < 0)
                return res;
        }
        size_t n = r->in.len < length ? r->in.len : (size_t)length;
        buf_add(ret, r->in.data, n);
        buf_consume(&r->in, n);
        length -= n;
    }
    return ret->failed ? err_set(e, PALE_LIMIT, "the daemon's answer is longer than it may be") : 0;
}

static int read_chunks(struct remote *r, bool passes, struct buf *ret, struct pale_err *e)
{
    struct chunks c = {0};
    for (;;) {
        size_t used = 0, n = 0;
        const char *at = NULL;
        int got = chunks_take(&c, (const char *)r->in.data, r->in.len, &used, &at, &n);
        if (got < 0 || ret->failed)
            return err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
        int res = 0;
        if (passes && n > 0) {
            res = r->out(r->out_arg, at, n, e);
            r->until_ms = clock_ms() + (int64_t)r->wait_ms;
        } else if (!passes)
            buf_add(ret, at, n);
        if (res < 0)
            return res;
        buf_consume(&r->in, used);
        if (got == 1)
            return 0;
        res = used == 0 ? fill(r, e) : 0;
        if (res < 0)
            return res;
    }
}

/* --- answers --- */

/* What a problem tells becomes the error. */
static int problem(unsigned status, const struct buf *body, struct pale_err *e)
{
    struct jsonread v, m;
    char code[32], detail[PALE_ERR_TEXT_MAX];
    if (!jsonread_parse((const char *)body->data, body->len, &v) || !jsonread_get(&v, "code", &m))
        return err_set(e, PALE_PROTOCOL, "the daemon answered with status %u and no reason; is it pale's, and of this version?", status);
    jsonread_text(&m, code, sizeof(code));
    detail[0] = 0;
    if (jsonread_get(&v, "detail", &m))
        jsonread_text(&m, detail, sizeof(detail));
    return err_set(e, err_code_of(code), "%s", detail[0] ? detail : "the daemon refuses, and does not say why");
}

static void keep_header(const struct http_head *h, const char *name, char *ret, size_t cap)
{
    const struct http_text *t = http_find(h, name);
    snprintf(ret, cap, "%.*s", t && t->len < cap ? (int)t->len : 0, t ? t->at : "");
}

static bool is_wire(const struct http_head *h)
{
    const struct http_text *up = http_find(h, "upgrade");
    return h->status == 101 && h->upgrade && up && http_is(up, "pale-wire");
}

/* Waits for the head of an answer, which stands at the beginning of r->in then. */
static int read_head(struct remote *r, struct http_head *ret, size_t *ret_used, struct pale_err *e)
{
    int got, res;
    while ((got = http_head_parse((const char *)r->in.data, r->in.len, HTTP_RESPONSE, ret, ret_used)) == 0)
        if ((res = fill(r, e)) < 0)
            return res;
    return got < 0 ? err_set(e, PALE_PROTOCOL, "what answers there does not speak HTTP/1.1 as the daemon does") : 0;
}

/* Reads an answer; with wire set one that leaves HTTP is the good one. */
static int read_answer(struct remote *r, bool wire, struct buf *ret, struct pale_err *e)
{
    struct http_head h;
    size_t used = 0;
    int res = read_head(r, &h, &used, e);
    if (res < 0)
        return res;
    unsigned status = h.status;
    enum http_body body = h.body;
    uint64_t length = h.length;
    bool close = h.close, is_good = wire ? is_wire(&h) : status >= 200 && status < 300;
    keep_header(&h, "x-next-offset", r->next_offset, sizeof(r->next_offset));
    keep_header(&h, "x-audit-head", r->audit_head, sizeof(r->audit_head));
    buf_consume(&r->in, used);
    if (wire && is_good)
        return 0;
    res = body == HTTP_BODY_LENGTH    ? read_length(r, length, ret, e)
          : body == HTTP_BODY_CHUNKED ? read_chunks(r, is_good && r->out, ret, e)
                                      : 0;
    /* The next request goes over a new connection then, and so it does if this one is in any doubt. */
    if (res < 0 || close || status < 200)
        own_close(&r->fd);
    if (res < 0)
        return res;
    return is_good ? 0 : problem(status, ret, e);
}

static int send_request(struct remote *r, const char *method, const char *path, const char *headers, const char *json, struct pale_err *e)
{
    own_buf b = {0};
    int res = 0;
    r->until_ms = clock_ms() + (int64_t)r->wait_ms;
    if (r->fd < 0 && (res = connect_now(r, e)) < 0)
        return res;
    buf_init(&b, HTTP_HEAD_MAX + (2u << 20));
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, r->is_far ? r->url.host : "localhost");
    /* The first word: which state folder is meant. */
    if (!r->is_far)
        buf_addf(&b, "Pale-State: %s\r\n", r->state);
    if (r->token[0])
        buf_addf(&b, "Authorization: Bearer %s\r\n", r->token);
    if (json)
        buf_addf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
    buf_addf(&b, "%s\r\n", headers);
    buf_add_text(&b, json ? json : "");
    if (b.failed)
        return err_set(e, PALE_LIMIT, "the request is too long");
    return send_all(r, b.data, b.len, e);
}

int remote_call(struct remote *r, const char *method, const char *path, const char *json, struct buf *ret, struct pale_err *e)
{
    int res = send_request(r, method, path, "", json, e);
    return res < 0 ? res : read_answer(r, false, ret, e);
}

int remote_stream(struct remote *r, const char *path, int (*out)(void *arg, const void *p, size_t n, struct pale_err *e), void *arg,
                  struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, 65536);
    r->out = out;
    r->out_arg = arg;
    int res = remote_call(r, "GET", path, NULL, &text, e);
    if (res == 0 && text.len > 0) /* it was short, and came whole */
        res = out(arg, text.data, text.len, e);
    r->out = NULL;
    return res;
}

/* --- bodies of any length --- */

/* What has come while we send: an answer that is no good ends the sending. */
static bool is_refused(struct remote *r)
{
    struct http_head h;
    size_t used;
    if (!buf_reserve(&r->in, 4096))
        return false; /* it tells much already, so it has not refused */
    ssize_t n = recv(r->fd, r->in.data + r->in.len, r->in.cap - r->in.len, MSG_DONTWAIT);
    if (n > 0)
        r->in.len += (size_t)n;
    return n == 0 || (http_head_parse((const char *)r->in.data, r->in.len, HTTP_RESPONSE, &h, &used) == 1 && h.status >= 300);
}

/* In chunks: how much there is is not known. */
static int send_body(struct remote *r, int fd, struct pale_err *e)
{
    char block[16 + 32768 + 2];
    uint64_t sent = 0;
    for (;;) {
        ssize_t n = read(fd, block + 16, sizeof(block) - 18);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "read what is to be sent");
        int head = snprintf(block, 16, "%zx\r\n", (size_t)n);
        memmove(block + 16 - head, block, (size_t)head);
        memcpy(block + 16 + n, "\r\n", 2);
        r->until_ms = clock_ms() + (int64_t)r->wait_ms;
        int res = send_all(r, block + 16 - head, (size_t)head + (size_t)n + 2, e);
        if (res < 0 || n == 0 || is_refused(r))
            return res;
        sent += (size_t)n;
        if (r->sent)
            r->sent(r->sent_arg, sent);
    }
}

/* Waits to hear that the body is wanted. 0: it is; 1: there is another answer, which stands in r->in. */
static int await_go(struct remote *r, struct pale_err *e)
{
    struct http_head h;
    size_t used = 0;
    int res = read_head(r, &h, &used, e);
    if (res < 0 || h.status != 100)
        return res < 0 ? res : 1;
    buf_consume(&r->in, used);
    return 0;
}

int remote_follow(struct remote *r, const struct remote_order *o, int (*out)(void *arg, const void *p, size_t n, struct pale_err *e),
                  void *arg, struct pale_err *e)
{
    static const char lines[] = "Accept: application/x-ndjson\r\n";
    static const char body[] = "Accept: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n";
    own_buf text = {0};
    buf_init(&text, 65536);
    int res = send_request(r, o->method, o->path, o->body_fd < 0 ? lines : body, o->body_fd < 0 ? o->json : NULL, e);
    if (res == 0 && o->body_fd >= 0 && (res = await_go(r, e)) == 0)
        res = send_body(r, o->body_fd, e);
    if (res < 0)
        return res;
    r->until_ms = clock_ms() + (int64_t)r->wait_ms;
    r->out = out;
    r->out_arg = arg;
    res = read_answer(r, false, &text, e);
    if (res == 0 && text.len > 0) /* it was short, and came whole */
        res = out(arg, text.data, text.len, e);
    r->out = NULL;
    return res;
}

int remote_ask(struct remote *r, const char *method, const char *path, const char *json, struct buf *text, struct jsonread *value,
               struct pale_err *e)
{
    int res = remote_call(r, method, path, json, text, e);
    if (res == 0 && !jsonread_parse((const char *)text->data, text->len, value))
        res = err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
    return res;
}

int remote_pass(struct remote *r, const char *path, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, 65536);
    int res =
        send_request(r, "GET", path, "Connection: Upgrade\r\nUpgrade: pale-wire\r\nPale-Wire-Version: " WIRE_VERSION_TEXT "\r\n", NULL, e);
    return res < 0 ? res : read_answer(r, true, &text, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command's side of HTTP. */
#include "cli/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "box/daemon.h"
#include "net/chunks.h"

void remote_init(struct remote *r)
{
    *r = (struct remote){.fd = -1};
    buf_init(&r->in, HTTP_HEAD_MAX + 65536);
    snprintf(r->host, sizeof(r->host), "localhost");
}

void remote_close(struct remote *r)
{
    own_close(&r->fd);
    buf_done(&r->in);
}

int remote_open_local(struct remote *r, bool start, struct pale_err *e)
{
    struct daemon_paths paths;
    int res = daemon_paths(&paths, e);
    return res < 0 ? res : daemon_connect(&paths, start, 0, &r->fd, e);
}

static int send_all(struct remote *r, const void *p, size_t n, struct pale_err *e)
{
    for (const char *at = p; n > 0;) {
        ssize_t w = send(r->fd, at, n, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_os(e, "talk to the daemon");
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

static int fill(struct remote *r, struct pale_err *e)
{
    if (!buf_reserve(&r->in, 4096))
        return err_set(e, PALE_PROTOCOL, "the daemon's answer is longer than it may be");
    ssize_t n;
    do
        n = recv(r->fd, r->in.data + r->in.len, r->in.cap - r->in.len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_os(e, "listen to the daemon");
    if (n == 0)
        return err_set(e, PALE_GONE, "the daemon hung up before it had answered");
    r->in.len += (size_t)n;
    return 0;
}

static int read_length(struct remote *r, uint64_t length, struct buf *ret, struct pale_err *e)
{
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

static int read_chunks(struct remote *r, struct buf *ret, struct pale_err *e)
{
    struct chunks c = {0};
    for (;;) {
        size_t used = 0, n = 0;
        const char *at = NULL;
        int got = chunks_take(&c, (const char *)r->in.data, r->in.len, &used, &at, &n);
        if (got < 0 || ret->failed)
            return err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
        buf_add(ret, at, n);
        buf_consume(&r->in, used);
        if (got == 1)
            return 0;
        int res = used == 0 ? fill(r, e) : 0;
        if (res < 0)
            return res;
    }
}

/* What a problem tells becomes the error. */
static int problem(unsigned status, const struct buf *body, struct pale_err *e)
{
    struct jsonread v, m;
    char code[32], detail[PALE_ERR_TEXT_MAX];
    if (!jsonread_parse((const char *)body->data, body->len, &v) || !jsonread_get(&v, "code", &m))
        return err_set(e, PALE_PROTOCOL, "the daemon answered with status %u", status);
    jsonread_text(&m, code, sizeof(code));
    detail[0] = 0;
    if (jsonread_get(&v, "detail", &m))
        jsonread_text(&m, detail, sizeof(detail));
    return err_set(e, err_code_of(code), "%s", detail);
}

static int read_answer(struct remote *r, struct buf *ret, struct pale_err *e)
{
    struct http_head h;
    size_t used = 0;
    int got, res;
    while ((got = http_head_parse((const char *)r->in.data, r->in.len, HTTP_RESPONSE, &h, &used)) == 0)
        if ((res = fill(r, e)) < 0)
            return res;
    if (got < 0)
        return err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
    unsigned status = h.status;
    enum http_body body = h.body;
    uint64_t length = h.length;
    buf_consume(&r->in, used);
    res = body == HTTP_BODY_LENGTH ? read_length(r, length, ret, e) : body == HTTP_BODY_CHUNKED ? read_chunks(r, ret, e) : 0;
    if (res < 0)
        return res;
    return status >= 200 && status < 300 ? 0 : problem(status, ret, e);
}

int remote_call(struct remote *r, const char *method, const char *path, const char *json, struct buf *ret, struct pale_err *e)
{
    own_buf b = {0};
    buf_init(&b, HTTP_HEAD_MAX + (2u << 20));
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, r->host);
    if (r->token[0])
        buf_addf(&b, "Authorization: Bearer %s\r\n", r->token);
    if (json)
        buf_addf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
    buf_add_text(&b, "\r\n");
    buf_add_text(&b, json ? json : "");
    if (b.failed)
        return err_set(e, PALE_LIMIT, "the request is too long");
    int res = send_all(r, b.data, b.len, e);
    return res < 0 ? res : read_answer(r, ret, e);
}

int remote_ask(struct remote *r, const char *method, const char *path, const char *json, struct buf *text, struct jsonread *value,
               struct pale_err *e)
{
    int res = remote_call(r, method, path, json, text, e);
    if (res == 0 && !jsonread_parse((const char *)text->data, text->len, value))
        res = err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
    return res;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bridge. */
#include "cli/bridge.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonread.h"
#include "base/own.h"

#define READ_STEP 65536u

void bridge_init(struct bridge *b)
{
    *b = (struct bridge){.in_fd = 0, .out_fd = 1, .far_fd = -1};
    buf_init(&b->in, BRIDGE_LINE_MAX);
    buf_init(&b->far, 2 * BRIDGE_LINE_MAX);
}

static void forget(struct waiting *w)
{
    free(w->id);
    free(w->shown);
    free(w->line);
    *w = (struct waiting){0};
}

void bridge_done(struct bridge *b)
{
    for (size_t i = 0; i < BRIDGE_WAITS_MAX; i++)
        forget(&b->waits[i]);
    free(b->hello);
    buf_done(&b->in);
    buf_done(&b->far);
    own_close(&b->far_fd);
}

/* --- what is under way --- */

/* An id as it is known here: a text without its escapes after a quote, or a number. False: none that the daemon answers to. */
static bool read_id(const struct jsonread *v, char ret[BRIDGE_ID_SIZE])
{
    struct jsonread digits = *v;
    uint64_t n = 0;
    if (v->kind == JSONREAD_TEXT) {
        ret[0] = '"';
        jsonread_text(v, ret + 1, BRIDGE_ID_SIZE - 1);
        return strlen(ret) < BRIDGE_ID_SIZE - 4; /* it may have been cut before a letter of four bytes */
    }
    bool negative = v->kind == JSONREAD_NUMBER && v->at[0] == '-';
    digits.at += negative;
    digits.len -= negative;
    if (!jsonread_u64(&digits, &n) || n > INT64_MAX)
        return false;
    snprintf(ret, BRIDGE_ID_SIZE, "%s%llu", negative && n ? "-" : "", (unsigned long long)n);
    return true;
}

static bool id_of(const struct jsonread *message, struct jsonread *ret_id, char ret[BRIDGE_ID_SIZE])
{
    return jsonread_get(message, "id", ret_id) && read_id(ret_id, ret);
}

static struct waiting *find(struct bridge *b, const char *id)
{
    for (size_t i = 0; i < BRIDGE_WAITS_MAX; i++)
        if (b->waits[i].id && strcmp(b->waits[i].id, id) == 0)
            return &b->waits[i];
    return NULL;
}

static size_t count_waits(const struct bridge *b)
{
    size_t n = 0;
    for (size_t i = 0; i < BRIDGE_WAITS_MAX; i++)
        n += b->waits[i].id != NULL;
    return n;
}

/* May it be asked twice? Tools that only look may. */
static bool is_harmless(const struct jsonread *message, const char *method)
{
    static const char *const tools[] = {"read", "list", "glob", "grep"};
    struct jsonread params, name;
    char text[32];
    if (strcmp(method, "tools/call") != 0)
        return true;
    if (!jsonread_get(message, "params", &params) || !jsonread_get(&params, "name", &name))
        return false;
    jsonread_text(&name, text, sizeof(text));
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        if (strcmp(text, tools[i]) == 0)
            return true;
    return false;
}

/* No answer comes to what was cancelled. */
static void note_cancel(struct bridge *b, const struct jsonread *message)
{
    struct jsonread params, id;
    char text[BRIDGE_ID_SIZE];
    struct waiting *w = NULL;
    if (jsonread_get(message, "params", &params) && jsonread_get(&params, "requestId", &id) && read_id(&id, text))
        w = find(b, text);
    if (w && !w->hidden)
        forget(w);
}

static void note_request(struct bridge *b, const char *line, size_t n)
{
    struct jsonread message, method, id;
    char text[BRIDGE_ID_SIZE], name[64];
    if (!jsonread_parse(line, n, &message) || !jsonread_get(&message, "method", &method))
        return;
    jsonread_text(&method, name, sizeof(name));
    if (strcmp(name, "notifications/cancelled") == 0)
        return note_cancel(b, &message);
    if (!id_of(&message, &id, text))
        return;
    struct waiting *w = find(b, text);
    for (size_t i = 0; !w && i < BRIDGE_WAITS_MAX; i++)
        if (!b->waits[i].id)
            w = &b->waits[i];
    if (!w)
        return;
    forget(w);
    bool quoted = id.kind == JSONREAD_TEXT;
    w->id = strdup(text);
    w->shown = strndup(id.at - quoted, id.len + 2 * (size_t)quoted);
    if (n <= BRIDGE_KEPT_MAX && is_harmless(&message, name))
        w->line = strndup(line, n);
    if (strcmp(name, "initialize") == 0 && n <= BRIDGE_KEPT_MAX) {
        free(b->hello);
        b->hello = strndup(line, n);
    }
}

/* True: it is for the client. */
static bool note_answer(struct bridge *b, const char *line, size_t n)
{
    struct jsonread message, method, id;
    char text[BRIDGE_ID_SIZE];
    if (!jsonread_parse(line, n, &message) || jsonread_get(&message, "method", &method) || !id_of(&message, &id, text))
        return true;
    struct waiting *w = find(b, text);
    bool hidden = w && w->hidden;
    if (w)
        forget(w);
    return !hidden;
}

/* --- passing --- */

/* Whole lines of a buffer, each with its end. */
static bool next_line(struct buf *b, size_t *at, const char **ret, size_t *ret_len)
{
    const uint8_t *end = b->len > *at ? memchr(b->data + *at, '\n', b->len - *at) : NULL;
    if (!end)
        return false;
    *ret = (const char *)b->data + *at;
    *ret_len = (size_t)(end - (b->data + *at)) + 1;
    *at += *ret_len;
    return true;
}

static int give_client(struct bridge *b, struct pale_err *e)
{
    size_t at = 0, n;
    const char *line;
    while (next_line(&b->far, &at, &line, &n))
        if (note_answer(b, line, n - 1) && !fd_write_full(b->out_fd, line, n))
            return err_os(e, "write to the client");
    buf_consume(&b->far, at);
    return 0;
}

/* 1: something came; 0: the end; negative: an error. */
static int take(int fd, struct buf *into, struct pale_err *e)
{
    if (!buf_reserve(into, READ_STEP))
        return err_set(e, PALE_LIMIT, "a message is longer than %u bytes", BRIDGE_LINE_MAX);
    ssize_t n = read(fd, into->data + into->len, into->cap - into->len);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 1;
    if (n <= 0)
        return 0;
    into->len += (size_t)n;
    return 1;
}

/* A daemon whose answers are not read takes nothing more: they are read while it is waited for. */
static bool wait_far(struct bridge *b)
{
    struct pale_err e;
    struct pollfd p = {.fd = b->far_fd, .events = POLLIN | POLLOUT};
    if (poll(&p, 1, -1) < 0)
        return errno == EINTR;
    return !(p.revents & ~POLLOUT) || (take(b->far_fd, &b->far, &e) > 0 && give_client(b, &e) == 0);
}

static bool send_far(struct bridge *b, const void *p, size_t n)
{
    for (const char *at = p; n > 0;) {
        ssize_t sent = send(b->far_fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR && (errno != EAGAIN || !wait_far(b)))
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* False: the daemon is gone. What was taken is noted, so nothing is lost with it. */
static bool give_far(struct bridge *b)
{
    size_t at = 0, n;
    const char *line;
    bool good = true;
    while (next_line(&b->in, &at, &line, &n)) {
        note_request(b, line, n - 1);
        good = good && send_far(b, line, n);
    }
    buf_consume(&b->in, at);
    return good;
}

/* --- a daemon that went away --- */

/* Whoever waits for what cannot be asked again hears why. */
static int answer_lost(struct bridge *b, struct waiting *w, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, 4096);
    buf_addf(
        &text,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"pale's daemon was restarted while this was under way: "
        "whether it was done is not known. Look first; the tool job lists commands that go on\"}}\n",
        w->shown ? w->shown : "null");
    forget(w);
    return fd_write_full(b->out_fd, text.data, text.len) ? 0 : err_os(e, "write to the client");
}

static bool ask_again(struct bridge *b, struct waiting *w)
{
    own_mem char *line = take_mem(&w->line);
    return send_far(b, line, strlen(line)) && send_far(b, "\n", 1);
}

static int open_far(struct bridge *b, struct pale_err *e)
{
    int r = b->connect(b, e);
    b->since_ms = clock_ms();
    return r;
}

/* One that ends each connection as soon as it is there is not called for ever, and not without a pause. */
static int take_breath(struct bridge *b, struct pale_err *e)
{
    b->losses = clock_ms() - b->since_ms < BRIDGE_SHORT_MS ? b->losses + 1 : 0;
    if (b->losses > BRIDGE_LOSSES_MAX)
        return err_set(e, PALE_GONE, "the daemon has ended %u connections in a row; its log may say why", b->losses);
    if (b->losses > 1)
        (void)poll(NULL, 0, (int)b->losses * 20);
    return 0;
}

static int begin_again(struct bridge *b, struct pale_err *e)
{
    struct jsonread message, id;
    char text[BRIDGE_ID_SIZE];
    own_close(&b->far_fd);
    buf_clear(&b->far);
    for (size_t i = 0; i < BRIDGE_WAITS_MAX; i++)
        if (b->waits[i].id && !b->waits[i].line && answer_lost(b, &b->waits[i], e) < 0)
            return -PALE_OS;
    int r = take_breath(b, e);
    if (r < 0 || (r = open_far(b, e)) < 0)
        return r;
    bool good = true, greets = b->hello && jsonread_parse(b->hello, strlen(b->hello), &message) && id_of(&message, &id, text);
    if (greets && !find(b, text)) {
        good = send_far(b, b->hello, strlen(b->hello)) && send_far(b, "\n", 1);
        note_request(b, b->hello, strlen(b->hello));
        struct waiting *w = find(b, text);
        if (w)
            w->hidden = true;
    }
    for (size_t i = 0; good && i < BRIDGE_WAITS_MAX; i++)
        if (b->waits[i].id && b->waits[i].line && !b->waits[i].hidden)
            good = ask_again(b, &b->waits[i]);
    return 0; /* if it died again, that is seen at the next reading */
}

/* --- running --- */

/* The client has said its last: what is under way may still come. */
static int drain(struct bridge *b, struct pale_err *e)
{
    int64_t until = clock_ms() + BRIDGE_END_MS;
    while (count_waits(b) > 0) {
        struct pollfd p = {.fd = b->far_fd, .events = POLLIN};
        int64_t left = until - clock_ms();
        if (left <= 0 || poll(&p, 1, (int)left) <= 0 || take(b->far_fd, &b->far, e) <= 0)
            return 0;
        int r = give_client(b, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int bridge_run(struct bridge *b, struct pale_err *e)
{
    int r = open_far(b, e);
    while (r == 0) {
        struct pollfd p[2] = {{.fd = b->in_fd, .events = POLLIN}, {.fd = b->far_fd, .events = POLLIN}};
        bool lost = false;
        r = give_client(b, e);
        if (r < 0 || (poll(p, 2, -1) < 0 && errno != EINTR))
            break;
        if (p[1].revents) {
            int got = take(b->far_fd, &b->far, e);
            lost = got <= 0;
            r = give_client(b, e);
        }
        if (r == 0 && p[0].revents) {
            int got = take(b->in_fd, &b->in, e);
            lost = !give_far(b) || lost;
            if (got < 0)
                return got;
            if (got == 0)
                return drain(b, e);
        }
        if (r == 0 && lost)
            r = begin_again(b, e);
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the stub of a model. */
#include "agents/stub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/offer.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "net/chunks.h"
#include "net/httphead.h"

#define CONNS_MAX 32
#define ANSWER_MAX 16384

struct conn {
    int fd; /* -1: free */
    struct buf in, body;
    bool has_head;
    struct http_head head; /* its texts point to where they no longer are once the body is read */
    struct chunks chunks;
    char target[HTTP_TARGET_MAX + 1];
    bool is_post, is_head;
};

struct server {
    int listen_fd, out_fd;
    const char *secret;
    const char *first; /* what is answered once; NULL: was, or there is nothing */
    struct conn conn[CONNS_MAX];
};

static void drop(struct conn *c)
{
    own_close(&c->fd);
    buf_done(&c->in);
    buf_done(&c->body);
    *c = (struct conn){.fd = -1};
}

static void next_request(struct conn *c)
{
    buf_clear(&c->body);
    c->has_head = false;
    c->chunks = (struct chunks){0};
}

static void tell_tool(void *arg, const char *name)
{
    struct buf *b = arg;
    for (const char *at = name; *at; at++)
        buf_add(b, (unsigned char)*at < 0x20 ? "?" : at, 1);
    buf_add_text(b, "\n");
}

/* --- what a model says --- */

#define CHAT                                                                                                                               \
    "{\"id\":\"c\",\"object\":\"chat.completion%s\",\"created\":1,\"model\":\"stub\",\"choices\":[{\"index\":0,\"%s\":"                    \
    "{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,"                             \
    "\"completion_tokens\":1,\"total_tokens\":2}}"
#define ANTHROPIC_HEAD                                                                                                                     \
    "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"stub\",\"content\":[%s],\"stop_reason\":%s,"                    \
    "\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}"
#define RESPONSE_ITEM                                                                                                                      \
    "{\"type\":\"message\",\"id\":\"i\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":"                                      \
    "[{\"type\":\"output_text\",\"text\":\"ok\",\"annotations\":[]}]}"
#define RESPONSE                                                                                                                           \
    "{\"id\":\"r\",\"object\":\"response\",\"created_at\":1,\"model\":\"stub\",\"status\":\"%s\",\"output\":%s,\"usage\":"                 \
    "{\"input_tokens\":1,\"output_tokens\":1,\"total_tokens\":2}}"
#define GEMINI                                                                                                                             \
    "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\",\"index\":0}],"            \
    "\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":1,\"totalTokenCount\":2}}"

static void say_anthropic(struct buf *b, bool streams, const char *items)
{
    (void)items;
    if (!streams) {
        buf_addf(b, ANTHROPIC_HEAD, "{\"type\":\"text\",\"text\":\"ok\"}", "\"end_turn\"");
        return;
    }
    buf_add_text(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    buf_addf(b, ANTHROPIC_HEAD, "", "null");
    buf_add_text(b, "}\n\n"
                    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
                    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
                    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
                    "\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n"
                    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
                    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
                    "\"stop_sequence\":null},\"usage\":{\"output_tokens\":1}}\n\n"
                    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void say_chat(struct buf *b, bool streams, const char *items)
{
    (void)items;
    if (streams)
        buf_add_text(b, "data: ");
    buf_addf(b, CHAT, streams ? ".chunk" : "", streams ? "delta" : "message");
    if (streams)
        buf_add_text(b, "\n\ndata: [DONE]\n\n");
}

/* Each item is told by an event of its own, then all by the last. */
static void say_items(struct buf *b, const char *items)
{
    struct jsonread list, item;
    if (!jsonread_parse(items, strlen(items), &list))
        return;
    for (size_t pos = 0; jsonread_next(&list, &pos, NULL, &item);) {
        buf_add_text(b, "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":");
        buf_add(b, item.at, item.len);
        buf_add_text(b, "}\n\n");
    }
}

static void say_response(struct buf *b, bool streams, const char *items)
{
    char end[64] = "";
    items = items ? items : "[" RESPONSE_ITEM "]";
    if (streams) {
        buf_add_text(b, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":");
        buf_addf(b, RESPONSE, "in_progress", "[]");
        buf_add_text(b, "}\n\n");
        say_items(b, items);
        buf_add_text(b, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":");
        snprintf(end, sizeof(end), "}\n\n");
    }
    buf_addf(b, RESPONSE, "completed", items);
    buf_add_text(b, end);
}

static void say_gemini(struct buf *b, bool streams, const char *items)
{
    (void)items;
    buf_addf(b, "%s" GEMINI "%s", streams ? "data: " : "", streams ? "\n\n" : "");
}

static void say_models(struct buf *b, bool streams, const char *items)
{
    (void)streams;
    (void)items;
    buf_add_text(b, "{\"object\":\"list\",\"data\":[{\"id\":\"stub\",\"object\":\"model\"}],\"models\":[]}");
}

static void say_count(struct buf *b, bool streams, const char *items)
{
    (void)streams;
    (void)items;
    buf_add_text(b, "{\"input_tokens\":1,\"totalTokens\":1}");
}

static const struct route {
    const char *end; /* of the path */
    bool is_asked;   /* a request to the model itself: its tools count */
    bool always_streams;
    void (*say)(struct buf *b, bool streams, const char *items);
} routes[] = {
    {"/v1/messages", true, false, say_anthropic},  {"/chat/completions", true, false, say_chat},
    {"/responses", true, false, say_response},     {":streamGenerateContent", true, true, say_gemini},
    {":generateContent", true, false, say_gemini}, {"/models", false, false, say_models},
    {"/count_tokens", false, false, say_count},    {":countTokens", false, false, say_count},
};

static const struct route *find_route(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        size_t m = strlen(routes[i].end);
        if (n >= m && memcmp(path + n - m, routes[i].end, m) == 0)
            return &routes[i];
    }
    return NULL;
}

/* --- requests --- */

static bool asks_for_stream(const struct conn *c)
{
    static const char *const forms[] = {"\"stream\":true", "\"stream\": true"};
    for (size_t i = 0; i < 2; i++)
        if (memmem(c->body.data, c->body.len, forms[i], strlen(forms[i])))
            return true;
    return false;
}

static bool respond(struct conn *c, unsigned status, const char *kind, const struct buf *body)
{
    char head[256];
    int n = snprintf(head, sizeof(head), "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status,
                     status == 200 ? "OK" : "Not Found", kind, body->len);
    return fd_write_full(c->fd, head, (size_t)n) && (c->is_head || fd_write_full(c->fd, body->data, body->len));
}

/* A whole request is here. false: the connection is of no more use. */
static bool serve(struct server *s, struct conn *c)
{
    own_buf out = {0}, told = {0};
    buf_init(&out, ANSWER_MAX);
    buf_init(&told, 1u << 20);
    c->target[strcspn(c->target, "?")] = 0;
    size_t n = strlen(s->secret);
    bool ours = c->target[0] == '/' && strncmp(c->target + 1, s->secret, n) == 0 && c->target[1 + n] == '/';
    const struct route *r = ours ? find_route(c->target) : NULL;
    if (!r) {
        buf_add_text(&out, "{\"error\":{\"message\":\"not here\"}}");
        return respond(c, 404, "application/json", &out);
    }
    if (r->is_asked) {
        bool good = c->is_post && offer_read((const char *)c->body.data, c->body.len, tell_tool, &told) >= 0;
        buf_add_text(&told, good ? ".\n" : "!\n");
        bool whole = !told.failed;
        if (!fd_write_full(s->out_fd, whole ? told.data : (const uint8_t *)"!\n", whole ? told.len : 2))
            _exit(0);
    }
    bool streams = r->is_asked && (r->always_streams || asks_for_stream(c));
    const char *items = NULL;
    if (r->say == say_response && s->first && told.len > 2) {
        items = s->first;
        s->first = NULL;
    }
    r->say(&out, streams, items);
    return respond(c, 200, streams ? "text/event-stream" : "application/json", &out);
}

/* Moves what has come of the body. 1: it is whole; 0: more is needed; -1: nonsense. */
static int take_body(struct conn *c)
{
    if (c->head.body == HTTP_BODY_NONE)
        return 1;
    if (c->head.body == HTTP_BODY_LENGTH) {
        size_t want = (size_t)c->head.length - c->body.len, n = c->in.len < want ? c->in.len : want;
        buf_add(&c->body, c->in.data, n);
        buf_consume(&c->in, n);
        return c->body.failed ? -1 : c->body.len == c->head.length;
    }
    while (c->in.len > 0) {
        size_t used = 0, data = 0;
        const char *at = NULL;
        int r = chunks_take(&c->chunks, (const char *)c->in.data, c->in.len, &used, &at, &data);
        buf_add(&c->body, at, data);
        buf_consume(&c->in, used);
        if (r != 0 || c->body.failed)
            return c->body.failed ? -1 : r;
        if (used == 0)
            break;
    }
    return 0;
}

static int take_head(struct conn *c)
{
    size_t used = 0;
    int r = http_head_parse((const char *)c->in.data, c->in.len, HTTP_REQUEST, &c->head, &used);
    if (r <= 0)
        return r;
    if (c->head.body == HTTP_BODY_LENGTH && c->head.length > OFFER_BODY_MAX)
        return -1;
    snprintf(c->target, sizeof(c->target), "%.*s", (int)c->head.target.len, c->head.target.at);
    c->is_post = http_is(&c->head.method, "POST");
    c->is_head = http_is(&c->head.method, "HEAD");
    if (c->head.expects && !fd_write_full(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25))
        return -1;
    buf_consume(&c->in, used);
    c->has_head = true;
    return 1;
}

static bool read_some(struct server *s, struct conn *c)
{
    if (!buf_reserve(&c->in, 65536))
        return false;
    ssize_t n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    c->in.len += (size_t)n;
    for (;;) {
        int r = c->has_head ? 1 : take_head(c);
        if (r > 0)
            r = take_body(c);
        if (r <= 0)
            return r == 0;
        bool close = c->head.close;
        if (!serve(s, c) || close)
            return false;
        next_request(c);
        if (c->in.len == 0)
            return true;
    }
}

static void accept_one(struct server *s)
{
    own_fd fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < CONNS_MAX; i++)
        if (s->conn[i].fd < 0) {
            s->conn[i].fd = take_fd(&fd);
            buf_init(&s->conn[i].in, OFFER_BODY_MAX + HTTP_HEAD_MAX);
            buf_init(&s->conn[i].body, OFFER_BODY_MAX);
        }
}

static _Noreturn void serve_all(struct server *s)
{
    int64_t until = clock_ms() + STUB_LIFE_MS;
    for (size_t i = 0; i < CONNS_MAX; i++)
        s->conn[i].fd = -1;
    while (clock_ms() < until) {
        struct pollfd p[CONNS_MAX + 1] = {{.fd = s->listen_fd, .events = POLLIN}};
        for (size_t i = 0; i < CONNS_MAX; i++)
            p[i + 1] = (struct pollfd){.fd = s->conn[i].fd, .events = POLLIN};
        if (poll(p, CONNS_MAX + 1, 1000) < 0 && errno != EINTR)
            break;
        for (size_t i = 0; i < CONNS_MAX; i++)
            if (p[i + 1].revents && s->conn[i].fd >= 0 && !read_some(s, &s->conn[i]))
                drop(&s->conn[i]);
        if (p[0].revents)
            accept_one(s);
    }
    _exit(0);
}

static int listen_on_loopback(uint16_t *ret_port, struct pale_err *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, CONNS_MAX) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return err_os(e, "listen on loopback");
    *ret_port = ntohs(a.sin_port);
    return take_fd(&fd);
}

int stub_start(struct stub *s, const char *first, struct pale_err *e)
{
    unsigned char noise[16];
    int pair[2];
    *s = (struct stub){.pid = -1, .out_fd = -1};
    if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
        return err_os(e, "make a secret");
    for (size_t i = 0; i < sizeof(noise); i++)
        snprintf(s->secret + 2 * i, 3, "%02x", noise[i]);
    int r = listen_on_loopback(&s->port, e);
    if (r < 0)
        return r;
    own_fd listening = r;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd in = pair[0], out = pair[1];
    pid_t parent = getpid();
    s->pid = fork();
    if (s->pid < 0)
        return err_os(e, "start the stub of a model");
    if (s->pid == 0) {
        static struct server server;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        signal(SIGPIPE, SIG_IGN);
        setsid();
        server = (struct server){.listen_fd = listening, .out_fd = out, .secret = s->secret, .first = first && first[0] ? first : NULL};
        serve_all(&server);
    }
    s->out_fd = take_fd(&in);
    return 0;
}

void stub_end(struct stub *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    s->pid = -1;
    own_close(&s->out_fd);
}

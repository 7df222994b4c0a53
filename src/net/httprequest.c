/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading and writing of requests that are passed on. */
#include "net/httprequest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    unsigned status;
    const char *sentence;
} wrongs[] = {
    [HTTPREQUEST_GOOD] = {200, "it is well formed"},
    [HTTPREQUEST_HEAD] = {400, "the head is not written as HTTP/1.1 has it, or says where its body ends in two ways"},
    [HTTPREQUEST_TARGET_LONG] = {414, "the target is longer than 4096 bytes"},
    [HTTPREQUEST_HEAD_LONG] = {431, "the head is longer than 16 KiB or has more than 63 headers"},
    [HTTPREQUEST_CODING] = {501, "its body has a transfer coding that is not chunked"},
    [HTTPREQUEST_VERSION] = {505, "only HTTP/1.0 and HTTP/1.1 are passed on in the clear"},
    [HTTPREQUEST_NO_HOST] = {400, "it names no host"},
    [HTTPREQUEST_HOST] = {400, "Host is no name or address, with a port or without"},
    [HTTPREQUEST_TARGET] = {400, "the target has none of the forms that its method takes"},
    [HTTPREQUEST_SCHEME] = {400, "the target has a scheme that is not http; speak TLS to the server itself"},
    [HTTPREQUEST_USER] = {400, "the target names a user; send Authorization"},
    [HTTPREQUEST_MISMATCH] = {421, "the target and Host name different servers"},
    [HTTPREQUEST_TUNNEL] = {400, "a CONNECT has a body or changes the protocol"},
    [HTTPREQUEST_OPTION] = {400, "Connection names a header that does not belong to the connection"},
    [HTTPREQUEST_TRAILER] = {501, "headers behind the body are not passed on"},
    [HTTPREQUEST_DISGUISE] = {400, "a header's name is that of a length or a coding, with '_' for '-'"},
    [HTTPREQUEST_CHUNKS] = {400, "the body is not chunked as HTTP/1.1 has it"},
    [HTTPREQUEST_OVER] = {400, "the connection was to end with the request before"},
};
static_assert(COUNT(wrongs) == HTTPREQUEST_WRONGS, "one each");

const char *httprequest_say(enum httprequest_wrong w)
{
    return wrongs[w].sentence;
}

unsigned httprequest_status(enum httprequest_wrong w)
{
    return wrongs[w].status;
}

static bool is_among(const struct http_text *t, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (http_is(t, names[i]))
            return true;
    return false;
}

static bool is_text(const struct http_text *t, const char *word)
{
    return t->len == strlen(word) && memcmp(t->at, word, t->len) == 0;
}

/* --- the target --- */

/* The byte at p with its escape undone; *ret_len bytes stand for it. -1: an escape that is none. */
static int unescape(const char *p, const char *end, size_t *ret_len)
{
    *ret_len = 1;
    if (*p != '%')
        return (unsigned char)*p;
    int high = end - p > 2 ? http_hex(p[1]) : -1, low = high >= 0 ? http_hex(p[2]) : -1;
    *ret_len = 3;
    return low < 0 ? -1 : high << 4 | low;
}

/* What an escape need not stand for: some servers compare before they undo it, others after. */
static bool is_unreserved(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Is this part of a path a name to every server? Dots are taken off some names, and what follows ';' is taken off by some servers. */
static bool is_plain_part(const char *p, const char *end)
{
    bool has_other = false;
    size_t len;
    for (; p < end; p += len) {
        int c = unescape(p, end, &len);
        if (c <= ' ' || c >= 0x7f || c == '/' || c == '\\' || c == '%' || c == ';' || c == '?' || c == '#')
            return false;
        if (len > 1 && is_unreserved(c))
            return false;
        has_other = has_other || c != '.';
    }
    return has_other;
}

static bool is_plain_path(const struct http_text *path)
{
    const char *p = path->at + 1, *end = path->at + path->len;
    while (p < end) {
        const char *slash = memchr(p, '/', (size_t)(end - p)), *stop = slash ? slash : end;
        if (!is_plain_part(p, stop))
            return false;
        p = stop + (stop < end);
    }
    return true;
}

static enum httprequest_wrong take_path(const char *p, const char *end, struct httprequest *ret)
{
    const char *query = memchr(p, '?', (size_t)(end - p));
    if (memchr(p, '#', (size_t)(end - p)))
        return HTTPREQUEST_TARGET;
    query = query ? query : end;
    ret->path = query > p ? (struct http_text){p, (size_t)(query - p)} : (struct http_text){"/", 1};
    ret->query = (struct http_text){query, (size_t)(end - query)};
    ret->is_plain = is_plain_path(&ret->path);
    return HTTPREQUEST_GOOD;
}

/* http://HOST[:PORT][/PATH][?QUERY] */
static enum httprequest_wrong take_whole(const struct http_text *t, struct httprequest *ret)
{
    static const char scheme[] = "http://";
    const size_t skip = sizeof(scheme) - 1;
    if (t->len < skip || strncasecmp(t->at, scheme, skip) != 0)
        return memchr(t->at, ':', t->len) ? HTTPREQUEST_SCHEME : HTTPREQUEST_TARGET;
    const char *p = t->at + skip, *end = t->at + t->len, *stop = p;
    struct authority named;
    while (stop < end && *stop != '/' && *stop != '?' && *stop != '#')
        stop++;
    if (memchr(p, '@', (size_t)(stop - p)))
        return HTTPREQUEST_USER;
    if (!authority_parse(&(struct http_text){p, (size_t)(stop - p)}, &named))
        return HTTPREQUEST_TARGET;
    if (!authority_is_same(&named, &ret->host, HTTPREQUEST_PORT))
        return HTTPREQUEST_MISMATCH;
    return take_path(stop, end, ret);
}

/* Clients of version 1.0 leave Host out here, and some leave out its port. */
static enum httprequest_wrong take_tunnel(const struct http_text *host, struct httprequest *ret)
{
    struct authority named;
    ret->form = HTTPREQUEST_CONNECT;
    if (!authority_parse(&ret->head.target, &named) || named.port == 0)
        return HTTPREQUEST_TARGET;
    if (host && !authority_is_same(&named, &ret->host, named.port))
        return HTTPREQUEST_MISMATCH;
    ret->host = named;
    return ret->head.body == HTTP_BODY_NONE && !http_find(&ret->head, "content-length") && !ret->head.upgrade ? HTTPREQUEST_GOOD
                                                                                                              : HTTPREQUEST_TUNNEL;
}

static enum httprequest_wrong take_target(struct httprequest *ret)
{
    const struct http_text *t = &ret->head.target, *host = http_find(&ret->head, "host");
    bool is_tunnel = is_text(&ret->head.method, "CONNECT");
    if (!host && !is_tunnel)
        return HTTPREQUEST_NO_HOST;
    if (host && !authority_parse(host, &ret->host))
        return HTTPREQUEST_HOST;
    if (is_tunnel)
        return take_tunnel(host, ret);
    if (t->at[0] == '/')
        return take_path(t->at, t->at + t->len, ret);
    if (!is_text(t, "*"))
        return take_whole(t, ret);
    ret->form = HTTPREQUEST_SERVER;
    return is_text(&ret->head.method, "OPTIONS") ? HTTPREQUEST_GOOD : HTTPREQUEST_TARGET;
}

/* --- the headers --- */

/* A name that is one of these only where '_' counts as '-'. */
static bool is_disguised(const struct http_text *name)
{
    static const char *const words[] = {"content-length", "transfer-encoding"};
    for (size_t i = 0; i < COUNT(words); i++) {
        size_t k = 0;
        bool differs = false;
        for (; k < name->len && words[i][k]; k++) {
            differs = differs || (name->at[k] == '_' && words[i][k] == '-');
            if ((name->at[k] | 32) != words[i][k] && !(name->at[k] == '_' && words[i][k] == '-'))
                break;
        }
        if (differs && k == name->len && !words[i][k])
            return true;
    }
    return false;
}

static bool has_strange_option(const struct http_text *list)
{
    static const char *const known[] = {"close", "keep-alive", "upgrade", "te", "http2-settings", "proxy-connection"};
    struct http_text word;
    for (size_t at = 0; http_word(list, &at, &word);)
        if (!is_among(&word, known, COUNT(known)))
            return true;
    return false;
}

static enum httprequest_wrong check_headers(struct httprequest *ret)
{
    static const char *const overrides[] = {"x-http-method-override", "x-http-method", "x-method-override",
                                            "x-original-url",         "x-rewrite-url", "x-original-host",
                                            "x-forwarded-host",       "x-host",        "forwarded"};
    const struct http_text *upgrade = NULL;
    size_t upgrades = 0;
    for (size_t i = 0; i < ret->head.count; i++) {
        const struct http_header *x = &ret->head.header[i];
        if (is_disguised(&x->name))
            return HTTPREQUEST_DISGUISE;
        if (http_is(&x->name, "trailer"))
            return HTTPREQUEST_TRAILER;
        if (http_is(&x->name, "connection") && has_strange_option(&x->value))
            return HTTPREQUEST_OPTION;
        if (http_is(&x->name, "upgrade")) {
            upgrade = &x->value;
            upgrades++;
        }
        ret->has_override = ret->has_override || is_among(&x->name, overrides, COUNT(overrides));
    }
    ret->has_websocket = ret->head.upgrade && upgrades == 1 && http_is(upgrade, "websocket") && ret->head.minor == 1 &&
                         ret->head.body == HTTP_BODY_NONE && is_text(&ret->head.method, "GET");
    ret->wants_continue = ret->head.expects && ret->head.minor == 1 && ret->head.body != HTTP_BODY_NONE;
    return HTTPREQUEST_GOOD;
}

static enum httprequest_wrong wrong_of(int answer)
{
    static const struct {
        int answer;
        enum httprequest_wrong wrong;
    } rows[] = {{-414, HTTPREQUEST_TARGET_LONG}, {-431, HTTPREQUEST_HEAD_LONG}, {-501, HTTPREQUEST_CODING}, {-505, HTTPREQUEST_VERSION}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].answer == answer)
            return rows[i].wrong;
    return HTTPREQUEST_HEAD;
}

int httprequest_parse(const char *p, size_t n, struct httprequest *ret, size_t *ret_used)
{
    size_t used = 0;
    *ret = (struct httprequest){0};
    int r = http_head_parse(p, n, HTTP_PASSED_REQUEST, &ret->head, &used);
    if (r == 0)
        return 0;
    ret->wrong = r < 0 ? wrong_of(r) : take_target(ret);
    if (ret->wrong == HTTPREQUEST_GOOD && ret->head.count == HTTP_HEADERS_MAX)
        ret->wrong = HTTPREQUEST_HEAD_LONG; /* there is one more where it is written anew */
    if (ret->wrong == HTTPREQUEST_GOOD)
        ret->wrong = check_headers(ret);
    if (ret->wrong != HTTPREQUEST_GOOD)
        return -1;
    *ret_used = used;
    return 1;
}

/* --- writing --- */

struct writer {
    char *at;
    size_t len, cap;
    bool is_full;
};

static void put(struct writer *w, const char *p, size_t n)
{
    w->is_full = w->is_full || w->cap - w->len < n;
    if (w->is_full || n == 0)
        return;
    memcpy(w->at + w->len, p, n);
    w->len += n;
}

static void put_word(struct writer *w, const char *word)
{
    put(w, word, strlen(word));
}

static void put_text(struct writer *w, const struct http_text *t)
{
    put(w, t->at, t->len);
}

static void put_number(struct writer *w, uint64_t v)
{
    char digits[24];
    put(w, digits, (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v));
}

static void put_host(struct writer *w, const struct authority *host, const struct http_text *name)
{
    put_word(w, host->is_six ? "Host: [" : "Host: ");
    put_text(w, name);
    put_word(w, host->is_six ? "]" : "");
    if (host->port && host->port != HTTPREQUEST_PORT) {
        put_word(w, ":");
        put_number(w, host->port);
    }
    put_word(w, "\r\n");
}

/* What is for this connection only, or is written from what was understood. */
static bool is_left_out(const struct http_text *name)
{
    static const char *const names[] = {"connection", "content-length",    "expect", "host", "http2-settings", "keep-alive",
                                        "te",         "transfer-encoding", "upgrade"};
    static const char proxy[] = "proxy-";
    return is_among(name, names, COUNT(names)) || (name->len >= sizeof(proxy) && strncasecmp(name->at, proxy, sizeof(proxy) - 1) == 0);
}

static void put_framing(struct writer *w, const struct http_head *h)
{
    if (h->body == HTTP_BODY_CHUNKED) {
        put_word(w, "Transfer-Encoding: chunked\r\n");
    } else if (http_find(h, "content-length")) {
        put_word(w, "Content-Length: ");
        put_number(w, h->length);
        put_word(w, "\r\n");
    }
}

size_t httprequest_write(const struct httprequest *r, const struct http_text *name, bool is_last, char *ret, size_t cap)
{
    struct writer w = {.at = ret, .cap = cap};
    const struct http_head *h = &r->head;
    if (r->form == HTTPREQUEST_CONNECT || !authority_is_name(name, r->host.is_six))
        return 0;
    put_text(&w, &h->method);
    put_word(&w, r->form == HTTPREQUEST_SERVER ? " *" : " ");
    put_text(&w, &r->path);
    put_text(&w, &r->query);
    put_word(&w, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
    put_host(&w, &r->host, name);
    for (size_t i = 0; i < h->count; i++) {
        if (is_left_out(&h->header[i].name))
            continue;
        put_text(&w, &h->header[i].name);
        put_word(&w, ": ");
        put_text(&w, &h->header[i].value);
        put_word(&w, "\r\n");
    }
    put_framing(&w, h);
    if (r->has_websocket)
        put_word(&w, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (is_last || h->close)
        put_word(&w, "Connection: close\r\n");
    put_word(&w, "\r\n");
    return w.is_full ? 0 : w.len;
}

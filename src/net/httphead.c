/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of HTTP heads. */
#include "net/httphead.h"

#include <string.h>

#define METHOD_MAX 16
#define NAME_MAX_BYTES 64
#define LENGTH_DIGITS_MAX 18 /* fits 64 bits whatever they are */

static bool is_token(unsigned char c)
{
    static const char more[] = "!#$%&'*+-.^_`|~";
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr(more, c));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

int http_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_is(const struct http_text *t, const char *word)
{
    size_t n = strlen(word);
    if (t->len != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(t->at[i]) != lower(word[i]))
            return false;
    return true;
}

const struct http_text *http_find(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->count; i++)
        if (http_is(&h->header[i].name, name))
            return &h->header[i].value;
    return NULL;
}

/* Bytes that are not ASCII: some servers write names of files with them, and no more is read of those than where they end. */
static bool is_foreign(unsigned char c, enum http_side side)
{
    return c >= 0x80 && side == HTTP_PASSED_RESPONSE;
}

/* A line without its end; *at moves behind it. -1: a byte that no line has. 0: it is not all here. */
static int take_line(const char *p, size_t n, enum http_side side, size_t *at, struct http_text *ret)
{
    size_t i = *at;
    for (; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\r')
            break;
        if (((c < 0x20 && c != '\t') || c >= 0x7f) && !is_foreign(c, side))
            return -1;
    }
    if (i + 1 >= n)
        return 0;
    if (p[i + 1] != '\n')
        return -1;
    *ret = (struct http_text){p + *at, i - *at};
    *at = i + 2;
    return 1;
}

/* The version at s; -1 if it is none that is spoken. */
static int minor_of(const char *s, bool is_passed)
{
    if (memcmp(s, "HTTP/1.1", 8) == 0)
        return 1;
    return is_passed && memcmp(s, "HTTP/1.0", 8) == 0 ? 0 : -1;
}

static int request_line(const struct http_text *line, bool is_passed, struct http_head *ret)
{
    const char *end = line->at + line->len, *c = line->at;
    while (c < end && *c >= 'A' && *c <= 'Z')
        c++;
    ret->method = (struct http_text){line->at, (size_t)(c - line->at)};
    if (ret->method.len == 0 || ret->method.len > METHOD_MAX || c == end || *c != ' ')
        return -400;
    const char *target = ++c;
    while (c<end && * c> ' ')
        c++;
    ret->target = (struct http_text){target, (size_t)(c - target)};
    if (ret->target.len > HTTP_TARGET_MAX)
        return -414;
    if (ret->target.len == 0 || (*target != '/' && !is_passed) || c == end || *c != ' ')
        return -400;
    const struct http_text version = {c + 1, (size_t)(end - c - 1)};
    if (version.len != 8 || memcmp(version.at, "HTTP/", 5) != 0)
        return -400;
    int minor = minor_of(version.at, is_passed);
    ret->minor = minor > 0;
    return minor >= 0 ? 0 : -505;
}

static int status_line(const struct http_text *line, bool is_passed, struct http_head *ret)
{
    const char *s = line->at;
    int minor = line->len < 12 ? -1 : minor_of(s, is_passed);
    if (minor < 0 || s[8] != ' ' || (line->len > 12 && s[12] != ' '))
        return -400;
    ret->minor = minor > 0;
    for (int i = 9; i < 12; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -400;
        ret->status = ret->status * 10 + (unsigned)(s[i] - '0');
    }
    return ret->status >= 100 && ret->status <= 599 ? 0 : -400;
}

static int header_line(const struct http_text *line, struct http_head *ret)
{
    size_t n = 0;
    if (ret->count == HTTP_HEADERS_MAX)
        return -431;
    while (n < line->len && is_token((unsigned char)line->at[n]))
        n++;
    if (n == 0 || n > NAME_MAX_BYTES || n == line->len || line->at[n] != ':')
        return -400;
    const char *v = line->at + n + 1, *end = line->at + line->len;
    while (v < end && (*v == ' ' || *v == '\t'))
        v++;
    while (end > v && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    ret->header[ret->count++] = (struct http_header){{line->at, n}, {v, (size_t)(end - v)}};
    return 0;
}

static bool take_length(const struct http_text *t, uint64_t *ret)
{
    uint64_t v = 0;
    if (t->len == 0 || t->len > LENGTH_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < t->len; i++) {
        if (t->at[i] < '0' || t->at[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(t->at[i] - '0');
    }
    *ret = v;
    return true;
}

static bool is_between(char c)
{
    return c == ',' || c == ' ' || c == '\t';
}

bool http_word(const struct http_text *list, size_t *at, struct http_text *ret)
{
    while (*at < list->len && is_between(list->at[*at]))
        ++*at;
    *ret = (struct http_text){list->at + *at, 0};
    while (*at < list->len && !is_between(list->at[*at])) {
        ret->len++;
        ++*at;
    }
    return ret->len > 0;
}

static bool has_word(const struct http_text *t, const char *word)
{
    struct http_text w;
    for (size_t at = 0; http_word(t, &at, &w);)
        if (http_is(&w, word))
            return true;
    return false;
}

/* Which of the headers came that may come once. */
struct seen {
    bool length, coding, host;
};

/* What one header says about the message itself. */
static int obey(struct http_head *h, const struct http_header *x, struct seen *seen)
{
    if (http_is(&x->name, "content-length")) {
        if (seen->length || !take_length(&x->value, &h->length))
            return -400;
        seen->length = true;
    } else if (http_is(&x->name, "transfer-encoding")) {
        if (seen->coding || !http_is(&x->value, "chunked"))
            return seen->coding ? -400 : -501;
        seen->coding = true;
    } else if (http_is(&x->name, "host")) {
        if (seen->host || x->value.len == 0)
            return -400;
        seen->host = true;
    } else if (http_is(&x->name, "connection")) {
        h->close = h->close || has_word(&x->value, "close");
        h->upgrade = h->upgrade || has_word(&x->value, "upgrade");
    } else if (http_is(&x->name, "expect")) {
        if (!http_is(&x->value, "100-continue"))
            return -400;
        h->expects = true;
    }
    return 0;
}

static enum http_body body_of(const struct http_head *h, const struct seen *seen, bool is_request)
{
    if (!is_request && (h->status < 200 || h->status == 204 || h->status == 304))
        return HTTP_BODY_NONE;
    if (seen->coding)
        return HTTP_BODY_CHUNKED;
    if (seen->length)
        return h->length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    return is_request ? HTTP_BODY_NONE : HTTP_BODY_CLOSE;
}

/* Headers that whoever reads a request obeys by their first value: another reader might by the last. */
static bool is_doubled(const struct http_head *h)
{
    static const char *const once[] = {"authorization", "content-type",          "idempotency-key",   "last-event-id",        "origin",
                                       "range",         "sec-websocket-version", "sec-websocket-key", "mcp-protocol-version", "mcp-method",
                                       "mcp-name"};
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        size_t n = 0;
        for (size_t k = 0; k < h->count; k++)
            n += http_is(&h->header[k].name, once[i]);
        if (n > 1)
            return true;
    }
    return false;
}

static bool is_request(enum http_side side)
{
    return side == HTTP_REQUEST || side == HTTP_PASSED_REQUEST;
}

static int understand(struct http_head *h, enum http_side side)
{
    struct seen seen = {0};
    int r = is_request(side) && is_doubled(h) ? -400 : 0;
    for (size_t i = 0; r == 0 && i < h->count; i++)
        r = obey(h, &h->header[i], &seen);
    if (r < 0)
        return r;
    /* Version 1.0 knows no coding: one reader would go by it and another not. */
    if ((seen.length && seen.coding) || (side == HTTP_REQUEST && !seen.host) || (seen.coding && h->minor == 0))
        return -400;
    h->close = h->close || h->minor == 0;
    h->body = body_of(h, &seen, is_request(side));
    return 0;
}

static int first_line(const struct http_text *line, enum http_side side, struct http_head *ret)
{
    bool is_passed = side == HTTP_PASSED_REQUEST || side == HTTP_PASSED_RESPONSE;
    return is_request(side) ? request_line(line, is_passed, ret) : status_line(line, is_passed, ret);
}

int http_head_parse(const char *p, size_t n, enum http_side side, struct http_head *ret, size_t *ret_used)
{
    size_t at = 0, have = n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX;
    struct http_text line;
    *ret = (struct http_head){0};
    int r, got = take_line(p, have, side, &at, &line);
    if (got == 1 && (r = first_line(&line, side, ret)) < 0)
        return r;
    while (got == 1 && (got = take_line(p, have, side, &at, &line)) == 1 && line.len > 0)
        if ((r = header_line(&line, ret)) < 0)
            return r;
    if (got < 0)
        return -400;
    if (got == 0)
        return have == HTTP_HEAD_MAX ? -431 : 0;
    if ((r = understand(ret, side)) < 0)
        return r;
    *ret_used = at;
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of HTTP/1.1 messages, requests and responses, read strictly.
 *
 * How it works: pure and bounded; texts point into the bytes they were read from. Where two readers of one message could understand
 * it differently it is refused: bare line feeds, folded lines, a space before the colon, a doubled or signed length, a length beside a
 * transfer coding, a second Host. Only version 1.1 is spoken, and of a request's target only the form that begins with '/'.
 *
 * Messages of others that are passed on are read by the same rules, with what others may do besides: version 1.0, the other forms of a
 * target (httprequest reads them), and in responses, which nobody obeys but for their length, bytes that are not ASCII. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 16384u /* the usual limit of servers; a bearer token and a cookie or two fit many times */
#define HTTP_HEADERS_MAX 64u
#define HTTP_TARGET_MAX 4096u

struct http_text {
    const char *at;
    size_t len;
};

struct http_header {
    struct http_text name, value;
};

enum http_body {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_CLOSE, /* of a response: until the connection ends */
};

struct http_head {
    struct http_text method, target; /* of a request */
    unsigned status;                 /* of a response */
    unsigned minor;                  /* of the version: 1, and of a message that is passed on 0 too */
    enum http_body body;
    uint64_t length; /* with HTTP_BODY_LENGTH */
    bool close;      /* the connection ends after this message */
    bool upgrade;    /* Connection: upgrade */
    bool expects;    /* 100-continue */
    size_t count;
    struct http_header header[HTTP_HEADERS_MAX];
};

enum http_side {
    HTTP_REQUEST,
    HTTP_RESPONSE,
    HTTP_PASSED_REQUEST, /* whether it needs a Host is the caller's to say */
    HTTP_PASSED_RESPONSE,
};

/* 1: a whole head stands at p, *ret_used bytes long. 0: need more. Negative: no head; the status to answer with (-400, -414, -431,
 * -501, -505), and nothing after it can be understood. */
int http_head_parse(const char *p, size_t n, enum http_side side, struct http_head *ret, size_t *ret_used);

/* The value of a header by its name in lower case, or NULL. Where it came twice, the first: none of those we obey may. */
const struct http_text *http_find(const struct http_head *h, const char *name);

/* The next word of a list as Connection has it, from *at on; false behind the last. */
bool http_word(const struct http_text *list, size_t *at, struct http_text *ret);

/* The value of a hexadecimal digit, or -1. */
int http_hex(char c);

/* Is the text this one, whatever its case? */
bool http_is(const struct http_text *t, const char *word);

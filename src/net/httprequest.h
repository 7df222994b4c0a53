/* SPDX-License-Identifier: Apache-2.0 */
/* A request of HTTP/1 on its way through a gateway: read, so that it can be judged, and written anew.
 *
 * How it works: a program in a box sends it and all of it is hostile. It is read by httphead's strict rules and understood once; what goes
 * on to the server is written from what was understood, never the bytes that came, so that the server cannot see another request than
 * the one that was judged. The host is named once: a target with http:// has to agree with Host. What concerns only this connection
 * (Connection and what it names, Proxy-…, Keep-Alive, TE) ends here. So does Expect: the caller says "100 Continue" itself, since servers
 * that refuse a body and read it as a request afterwards have been seen. An offer to change the protocol may be left out by whoever is on
 * the way: that of a WebSocket is told and passed on, every other, HTTP/2 among them, is left out. Names of headers that become a length or
 * a coding where a server takes '_' for '-' are refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/authority.h"
#include "net/httphead.h"

#define HTTPREQUEST_PORT 80u
#define HTTPREQUEST_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
/* A head that is written anew: a space more in each header, a line that says close, and a host. */
#define HTTPREQUEST_BYTES_MAX (HTTP_HEAD_MAX + HTTP_HEADERS_MAX + AUTHORITY_NAME_MAX + 64u)

enum httprequest_form {
    HTTPREQUEST_PATH,    /* "/path" or "http://host/path" */
    HTTPREQUEST_SERVER,  /* "OPTIONS *": about the server itself */
    HTTPREQUEST_CONNECT, /* a tunnel to host and port is asked for; never written */
};

enum httprequest_wrong {
    HTTPREQUEST_GOOD,
    HTTPREQUEST_HEAD,
    HTTPREQUEST_TARGET_LONG,
    HTTPREQUEST_HEAD_LONG,
    HTTPREQUEST_CODING,
    HTTPREQUEST_VERSION,
    HTTPREQUEST_NO_HOST,
    HTTPREQUEST_HOST,
    HTTPREQUEST_TARGET,
    HTTPREQUEST_SCHEME,
    HTTPREQUEST_USER,
    HTTPREQUEST_MISMATCH,
    HTTPREQUEST_TUNNEL,
    HTTPREQUEST_OPTION,
    HTTPREQUEST_TRAILER,
    HTTPREQUEST_DISGUISE,
    HTTPREQUEST_CHUNKS,
    HTTPREQUEST_OVER,
    HTTPREQUEST_WRONGS
};

struct httprequest {
    enum httprequest_wrong wrong;
    struct http_head head; /* its texts point into the bytes that were read */
    enum httprequest_form form;
    struct authority host;
    struct http_text path, query; /* as they were sent; the query with its '?', or empty */
    /* Every server finds the same below this path: it is visible ASCII, and has no "." or ".." and no separator in any spelling, no empty
     * part, no parameter, and no escape that is not needed. */
    bool is_plain;
    bool has_override;   /* a header that to some servers names another method, path or host */
    bool has_websocket;  /* the connection is to become one */
    bool wants_continue; /* its body comes when the caller has sent HTTPREQUEST_CONTINUE, or after a while */
};

/* 1: a whole head stands at p, *ret_used bytes long. 0: need more. -1: this is none that may pass, and nothing after it can be understood:
 * ret->wrong says why. More bytes never change a verdict. */
int httprequest_parse(const char *p, size_t n, struct httprequest *ret, size_t *ret_used);

/* Writes the head for the server, with the host's name as the caller judged it. is_last: the server is told to close after its answer.
 * Returns its length; 0 if it does not fit, is a CONNECT, or the name has a byte in it that no name has. */
size_t httprequest_write(const struct httprequest *r, const struct http_text *name, bool is_last, char *ret, size_t cap);

/* What is wrong as a sentence, and the status to refuse with. */
const char *httprequest_say(enum httprequest_wrong w);
unsigned httprequest_status(enum httprequest_wrong w);

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the WebSocket protocol (RFC 6455), read strictly, and the answer to a client's key.
 *
 * Pure and bounded. What comes from a client is masked and what comes from a server is not; a length is written in its shortest form;
 * control frames are whole and short; no extension is spoken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/httphead.h"

#define WS_PAYLOAD_MAX (1u << 20) /* a message may have many frames */
#define WS_CONTROL_MAX 125u
#define WS_HEAD_MAX 14u

enum ws_op { WS_MORE = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

/* What ends a connection. */
enum ws_status { WS_NORMAL = 1000, WS_GOING_AWAY = 1001, WS_PROTOCOL = 1002, WS_TOO_BIG = 1009, WS_FAILED = 1011 };

struct ws_frame {
    enum ws_op op;
    bool fin;
    bool masked;
    uint8_t mask[4];
    const uint8_t *data; /* as it came */
    size_t len;
};

/* 1: a whole frame stands at p, *ret_used bytes long; 0: need more; negative: the ws_status to close with. from: who sent it. */
int ws_parse(const uint8_t *p, size_t n, enum http_side from, struct ws_frame *ret, size_t *ret_used);

/* The payload without its mask; ret may be where it stands. */
void ws_unmask(const struct ws_frame *f, uint8_t *ret);

/* A head; mask NULL: a server's. Returns its length. */
size_t ws_put_head(uint8_t ret[WS_HEAD_MAX], enum ws_op op, bool fin, size_t len, const uint8_t mask[4]);

/* What a server answers to Sec-WebSocket-Key, as text; false if that is no key. */
#define WS_ACCEPT_BYTES 29
bool ws_accept(const struct http_text *key, char ret[WS_ACCEPT_BYTES]);

/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of a TLS client, as far as somebody on the way may understand it: the name it asks for and what it offers.
 *
 * How it works: a program in a box sends it and all of it is hostile. It is read from the beginning of the flow each time more has come,
 * so that segments mean nothing; it may be spread over several records, through which a cursor steps, so that nothing is copied but the
 * names. Where two servers could read one message differently it is refused: lengths that do not add up, an extension that comes twice,
 * a second name, bytes behind the message in its last record. Nothing is decided here: a message without a name, or with a part that is
 * encrypted (which nobody can tell from the noise that browsers send in its place), is read, and says so.
 *
 * The caller sends on exactly the bytes that were read. A server may ask for the message again; the second one counts as much as the
 * first, comes in the clear, and has to be read too: hello_asks_again tells when. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define HELLO_RECORD_HEAD 5u
/* More than this is never needed to come to a verdict. */
#define HELLO_BYTES_MAX (HELLO_MESSAGE_MAX + 4u + HELLO_RECORDS_MAX * HELLO_RECORD_HEAD)

enum hello_wrong {
    HELLO_GOOD,
    HELLO_NOT_TLS,
    HELLO_SSL2,
    HELLO_RECORD_VERSION,
    HELLO_RECORD_EMPTY,
    HELLO_RECORD_LONG,
    HELLO_RECORDS_MANY,
    HELLO_RECORD_OTHER,
    HELLO_MESSAGE_OTHER,
    HELLO_MESSAGE_LONG,
    HELLO_MESSAGE_TAIL,
    HELLO_VERSION,
    HELLO_SESSION,
    HELLO_CIPHERS,
    HELLO_COMPRESSION,
    HELLO_LENGTHS,
    HELLO_EXTENSIONS_MANY,
    HELLO_EXTENSION_TWICE,
    HELLO_EXTENSION_SHAPE,
    HELLO_NAME_KIND,
    HELLO_NAME_COUNT,
    HELLO_NAME_LENGTH,
    HELLO_NAME_NUL,
    HELLO_PROTOCOLS,
    HELLO_VERSIONS,
    HELLO_KEY_PLACE,
    HELLO_WRONGS
};

/* Bits of the versions that are offered. */
enum hello_version { HELLO_TLS_1_0 = 1, HELLO_TLS_1_1 = 2, HELLO_TLS_1_2 = 4, HELLO_TLS_1_3 = 8 };

struct hello {
    enum hello_wrong wrong;
    size_t name_len;
    char name[HELLO_NAME_MAX + 1]; /* as it was sent, but for a NUL behind it; empty: none was asked for */
    unsigned versions;             /* bits of enum hello_version; of what offers no list, only the highest is known */
    bool has_ech;                  /* ECH or ESNI, or the noise that stands for it: the real name may be another */
    bool has_early_data;           /* data follows before the server has said anything */
    bool has_shared_key;           /* a session is taken up again */
    size_t protocols;
    struct {
        uint8_t len;
        char name[HELLO_PROTOCOL_BYTES_MAX];
    } protocol[HELLO_PROTOCOLS_MAX];
};

/* 1: a whole message stands at p, *ret_used bytes with its records. 0: need more. -1: this is none that may pass, ret->wrong says why.
 * More bytes never change a verdict. */
int hello_parse(const uint8_t *p, size_t n, struct hello *ret, size_t *ret_used);

/* The same for the second message of a client, which a record of no meaning may precede. */
int hello_parse_again(const uint8_t *p, size_t n, struct hello *ret, size_t *ret_used);

/* 1: the first bytes from a server ask the client for its first message again. 0: they do not. -1: need more. */
int hello_asks_again(const uint8_t *p, size_t n);

/* Is this protocol among those offered? */
bool hello_offers(const struct hello *h, const char *protocol);

/* What is wrong, as a sentence. */
const char *hello_say(enum hello_wrong w);

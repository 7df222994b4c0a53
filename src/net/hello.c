/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a TLS client's first message. */
#include "net/hello.h"

#include <assert.h>
#include <string.h>

#define RECORD_CHANGE_CIPHER 20u
#define RECORD_HANDSHAKE 22u
#define RECORD_LENGTH_MAX 16384u
#define MESSAGE_HEAD 4u
#define CLIENT_HELLO 1u
#define SERVER_HELLO 2u
#define RANDOM_BYTES 32u
#define SESSION_MAX 32u

static const char *const sentences[] = {
    [HELLO_GOOD] = "it is well formed",
    [HELLO_NOT_TLS] = "the flow does not begin as TLS does",
    [HELLO_SSL2] = "it begins in the manner of SSL 2, which is not passed on; the client has to speak TLS",
    [HELLO_RECORD_VERSION] = "a record has a version that no client sends first",
    [HELLO_RECORD_EMPTY] = "a record is empty",
    [HELLO_RECORD_LONG] = "a record is longer than TLS allows",
    [HELLO_RECORDS_MANY] = "the first message is spread over too many records",
    [HELLO_RECORD_OTHER] = "another kind of record stands within the first message",
    [HELLO_MESSAGE_OTHER] = "the first message is no ClientHello",
    [HELLO_MESSAGE_LONG] = "the first message is longer than 16 KiB",
    [HELLO_MESSAGE_TAIL] = "something follows the first message in its last record",
    [HELLO_VERSION] = "the message has a version that is none of TLS 1.0 to 1.3",
    [HELLO_SESSION] = "the session's name is longer than 32 bytes",
    [HELLO_CIPHERS] = "the list of ciphers is empty or cut",
    [HELLO_COMPRESSION] = "the list of compressions lacks the one that means none",
    [HELLO_LENGTHS] = "the lengths inside the message do not add up",
    [HELLO_EXTENSIONS_MANY] = "it has too many extensions",
    [HELLO_EXTENSION_TWICE] = "an extension comes twice",
    [HELLO_EXTENSION_SHAPE] = "the lengths inside an extension do not add up",
    [HELLO_NAME_KIND] = "the server's name is of a kind that is no host name",
    [HELLO_NAME_COUNT] = "it asks for several servers at once",
    [HELLO_NAME_LENGTH] = "the server's name is empty or longer than 255 bytes",
    [HELLO_NAME_NUL] = "the server's name has a NUL in it",
    [HELLO_PROTOCOLS] = "the protocols offered are too many, too long or nameless",
    [HELLO_VERSIONS] = "the list of versions is empty or has no TLS 1.0 to 1.3 in it",
    [HELLO_KEY_PLACE] = "the shared key is not the last extension",
};
static_assert(sizeof(sentences) / sizeof(sentences[0]) == HELLO_WRONGS, "one sentence each");

const char *hello_say(enum hello_wrong w)
{
    return sentences[w];
}

/* The message without the heads of its records. Whoever reads has asked scan() first whether it is all there. */
struct cursor {
    const uint8_t *at;
    size_t record; /* left in this record */
    size_t left;   /* left in the message */
};

static unsigned two(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static uint8_t next_byte(struct cursor *c)
{
    if (c->record == 0) {
        c->record = two(c->at + 3);
        c->at += HELLO_RECORD_HEAD;
    }
    c->record--;
    c->left--;
    return *c->at++;
}

/* A number of that many bytes; false where the message ends before. */
static bool take(struct cursor *c, size_t bytes, size_t *ret)
{
    size_t v = 0;
    if (c->left < bytes)
        return false;
    while (bytes-- > 0)
        v = v << 8 | next_byte(c);
    *ret = v;
    return true;
}

/* The next n bytes, in ret unless that is NULL; they are there. */
static void take_bytes(struct cursor *c, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++) {
        char b = (char)next_byte(c);
        if (ret)
            ret[i] = b;
    }
}

/* A part that begins with its length in so many bytes: *ret_part reads it and no more. */
static bool take_part(struct cursor *c, size_t bytes, struct cursor *ret_part)
{
    size_t n;
    if (!take(c, bytes, &n) || c->left < n)
        return false;
    *ret_part = *c;
    ret_part->left = n;
    take_bytes(c, n, NULL);
    return true;
}

/* A name among names, all of which have a length and lie in one list that is the whole extension. */
static enum hello_wrong read_name(struct cursor *c, struct hello *h)
{
    struct cursor list, name;
    size_t kind;
    if (!take_part(c, 2, &list) || c->left > 0 || !take(&list, 1, &kind))
        return HELLO_EXTENSION_SHAPE;
    if (kind != 0)
        return HELLO_NAME_KIND;
    if (!take_part(&list, 2, &name))
        return HELLO_EXTENSION_SHAPE;
    if (list.left > 0)
        return HELLO_NAME_COUNT;
    if (name.left == 0 || name.left > HELLO_NAME_MAX)
        return HELLO_NAME_LENGTH;
    h->name_len = name.left;
    take_bytes(&name, h->name_len, h->name);
    return memchr(h->name, 0, h->name_len) ? HELLO_NAME_NUL : HELLO_GOOD;
}

static enum hello_wrong read_protocols(struct cursor *c, struct hello *h)
{
    struct cursor list, name;
    if (!take_part(c, 2, &list) || c->left > 0)
        return HELLO_EXTENSION_SHAPE;
    if (list.left == 0)
        return HELLO_PROTOCOLS;
    while (list.left > 0) {
        if (!take_part(&list, 1, &name))
            return HELLO_EXTENSION_SHAPE;
        if (name.left == 0 || name.left > HELLO_PROTOCOL_BYTES_MAX || h->protocols == HELLO_PROTOCOLS_MAX)
            return HELLO_PROTOCOLS;
        h->protocol[h->protocols].len = (uint8_t)name.left;
        take_bytes(&name, name.left, h->protocol[h->protocols].name);
        h->protocols++;
    }
    return HELLO_GOOD;
}

static unsigned version_bit(size_t version)
{
    return version >= 0x301 && version <= 0x304 ? 1u << (version - 0x301) : 0;
}

/* Numbers that are no version are noise which clients put in, so that servers stay used to it. */
static enum hello_wrong read_versions(struct cursor *c, struct hello *h)
{
    struct cursor list;
    size_t version;
    if (!take_part(c, 1, &list) || c->left > 0 || list.left % 2)
        return HELLO_EXTENSION_SHAPE;
    h->versions = 0;
    while (take(&list, 2, &version))
        h->versions |= version_bit(version);
    return h->versions ? HELLO_GOOD : HELLO_VERSIONS;
}

static enum hello_wrong see_ech(struct cursor *c, struct hello *h)
{
    (void)c;
    h->has_ech = true;
    return HELLO_GOOD;
}

static enum hello_wrong see_early_data(struct cursor *c, struct hello *h)
{
    h->has_early_data = true;
    return c->left == 0 ? HELLO_GOOD : HELLO_EXTENSION_SHAPE;
}

static enum hello_wrong see_shared_key(struct cursor *c, struct hello *h)
{
    h->has_shared_key = true;
    return c->left > 0 ? HELLO_GOOD : HELLO_EXTENSION_SHAPE;
}

/* What is understood, by first and last number. All else is the server's business. */
static const struct {
    uint16_t first, last;
    enum hello_wrong (*read)(struct cursor *c, struct hello *h);
} extensions[] = {
    {0, 0, read_name},         {16, 16, read_protocols}, {41, 41, see_shared_key},
    {42, 42, see_early_data},  {43, 43, read_versions},  {0xfd00, 0xfd00, see_ech}, /* a hidden message's reference to the open one */
    {0xfe08, 0xfe0d, see_ech},                                                      /* ECH and its drafts */
    {0xffce, 0xffce, see_ech},                                                      /* ESNI */
};

static enum hello_wrong read_extension(struct cursor *c, size_t kind, struct hello *h)
{
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (kind >= extensions[i].first && kind <= extensions[i].last)
            return extensions[i].read(c, h);
    return HELLO_GOOD;
}

static enum hello_wrong read_extensions(struct cursor *list, struct hello *h)
{
    uint16_t seen[HELLO_EXTENSIONS_MAX];
    enum hello_wrong w = HELLO_GOOD;
    for (size_t count = 0; w == HELLO_GOOD && list->left > 0; count++) {
        struct cursor part;
        size_t kind;
        if (h->has_shared_key)
            return HELLO_KEY_PLACE;
        if (!take(list, 2, &kind) || !take_part(list, 2, &part))
            return HELLO_LENGTHS;
        if (count == HELLO_EXTENSIONS_MAX)
            return HELLO_EXTENSIONS_MANY;
        for (size_t i = 0; i < count; i++)
            if (seen[i] == kind)
                return HELLO_EXTENSION_TWICE;
        seen[count] = (uint16_t)kind;
        w = read_extension(&part, kind, h);
    }
    return w;
}

static bool has_zero(struct cursor *c)
{
    bool found = false;
    size_t v;
    while (take(c, 1, &v))
        found = found || v == 0;
    return found;
}

static enum hello_wrong read_message(struct cursor *c, struct hello *h)
{
    struct cursor part;
    size_t version;
    if (!take(c, 2, &version) || c->left < RANDOM_BYTES)
        return HELLO_LENGTHS;
    /* 1.3 is offered in an extension only, and says 1.2 here. */
    if (!(h->versions = version_bit(version) & ~(unsigned)HELLO_TLS_1_3))
        return HELLO_VERSION;
    take_bytes(c, RANDOM_BYTES, NULL);
    if (!take_part(c, 1, &part))
        return HELLO_LENGTHS;
    if (part.left > SESSION_MAX)
        return HELLO_SESSION;
    if (!take_part(c, 2, &part))
        return HELLO_LENGTHS;
    if (part.left == 0 || part.left % 2)
        return HELLO_CIPHERS;
    if (!take_part(c, 1, &part))
        return HELLO_LENGTHS;
    if (!has_zero(&part))
        return HELLO_COMPRESSION;
    if (c->left == 0)
        return HELLO_GOOD; /* before TLS 1.3 extensions may be left out */
    return take_part(c, 2, &part) && c->left == 0 ? read_extensions(&part, h) : HELLO_LENGTHS;
}

/* The head of a record of which n bytes are here. */
static enum hello_wrong check_record(const uint8_t *p, size_t n, bool is_first)
{
    if (is_first && (p[0] & 0x80))
        return HELLO_SSL2;
    if (p[0] != RECORD_HANDSHAKE)
        return is_first ? HELLO_NOT_TLS : HELLO_RECORD_OTHER;
    if (n > 1 && p[1] != 3)
        return is_first ? HELLO_NOT_TLS : HELLO_RECORD_VERSION;
    if (n > 2 && (p[2] < 1 || p[2] > 3))
        return HELLO_RECORD_VERSION;
    if (n < HELLO_RECORD_HEAD)
        return HELLO_GOOD;
    if (two(p + 3) == 0)
        return HELLO_RECORD_EMPTY;
    return two(p + 3) > RECORD_LENGTH_MAX ? HELLO_RECORD_LONG : HELLO_GOOD;
}

/* What the first bytes of the message say: what it is, and how long with its head. */
static enum hello_wrong check_message(const uint8_t *head, size_t n, size_t *ret_whole)
{
    if (n > 0 && head[0] != CLIENT_HELLO)
        return HELLO_MESSAGE_OTHER;
    if (n < MESSAGE_HEAD)
        return HELLO_GOOD;
    *ret_whole = MESSAGE_HEAD + ((size_t)head[1] << 16 | two(head + 2));
    return *ret_whole > MESSAGE_HEAD + HELLO_MESSAGE_MAX ? HELLO_MESSAGE_LONG : HELLO_GOOD;
}

/* Steps over the records that hold the message, in the order of their bytes, so that a verdict does not hang on how many are here.
 * 1: it is whole, in *ret_used bytes; 0: need more; -1: *ret_wrong. */
static int scan(const uint8_t *p, size_t n, size_t *ret_used, enum hello_wrong *ret_wrong)
{
    uint8_t head[MESSAGE_HEAD];
    size_t at = 0, got = 0, whole = SIZE_MAX;
    for (unsigned records = 0; at < n && got < whole; records++) {
        *ret_wrong = records == HELLO_RECORDS_MAX ? HELLO_RECORDS_MANY : check_record(p + at, n - at, records == 0);
        if (*ret_wrong != HELLO_GOOD)
            return -1;
        if (n - at < HELLO_RECORD_HEAD)
            return 0;
        size_t length = two(p + at + 3), here = n - at - HELLO_RECORD_HEAD;
        at += HELLO_RECORD_HEAD;
        here = here < length ? here : length;
        for (size_t i = 0; i < here && got + i < MESSAGE_HEAD; i++)
            head[got + i] = p[at + i];
        if ((*ret_wrong = check_message(head, got + here, &whole)) != HELLO_GOOD)
            return -1;
        if (whole != SIZE_MAX && got + length > whole) {
            *ret_wrong = HELLO_MESSAGE_TAIL;
            return -1;
        }
        got += here;
        at += here;
        if (here < length)
            return 0;
    }
    *ret_used = at;
    return got >= whole;
}

int hello_parse(const uint8_t *p, size_t n, struct hello *ret, size_t *ret_used)
{
    size_t used = 0;
    *ret = (struct hello){0};
    int r = scan(p, n, &used, &ret->wrong);
    if (r != 1)
        return r;
    struct cursor c = {.at = p, .left = MESSAGE_HEAD};
    size_t head = 0;
    (void)take(&c, MESSAGE_HEAD, &head); /* scan() has seen it */
    c.left = head & 0xffffff;
    if ((ret->wrong = read_message(&c, ret)) != HELLO_GOOD)
        return -1;
    *ret_used = used;
    return 1;
}

int hello_parse_again(const uint8_t *p, size_t n, struct hello *ret, size_t *ret_used)
{
    static const uint8_t change[] = {RECORD_CHANGE_CIPHER, 3, 3, 0, 1, 1};
    size_t skip = n > 0 && p[0] == RECORD_CHANGE_CIPHER ? sizeof(change) : 0;
    *ret = (struct hello){0};
    if (skip && memcmp(p, change, n < skip ? n : skip) != 0) {
        ret->wrong = HELLO_NOT_TLS;
        return -1;
    }
    if (n <= skip)
        return 0;
    int r = hello_parse(p + skip, n - skip, ret, ret_used);
    if (r == 1)
        *ret_used += skip;
    return r;
}

int hello_asks_again(const uint8_t *p, size_t n)
{
    /* RFC 8446, 4.1.3: a ServerHello whose random bytes are the SHA-256 of "HelloRetryRequest". */
    static const uint8_t asks[RANDOM_BYTES] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                               0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                               0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    const size_t random_at = HELLO_RECORD_HEAD + MESSAGE_HEAD + 2;
    if (n > 0 && p[0] != RECORD_HANDSHAKE)
        return 0;
    if (n > HELLO_RECORD_HEAD && p[HELLO_RECORD_HEAD] != SERVER_HELLO)
        return 0;
    if (n > random_at && memcmp(p + random_at, asks, n - random_at < RANDOM_BYTES ? n - random_at : RANDOM_BYTES) != 0)
        return 0;
    return n >= random_at + RANDOM_BYTES ? 1 : -1;
}

bool hello_offers(const struct hello *h, const char *protocol)
{
    size_t n = strlen(protocol);
    for (size_t i = 0; i < h->protocols; i++)
        if (h->protocol[i].len == n && memcmp(h->protocol[i].name, protocol, n) == 0)
            return true;
    return false;
}

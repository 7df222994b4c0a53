/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the first bytes of a flow. The first byte chooses: as they are, or as the parts of a ClientHello whose lengths are made to
 * fit, spread over records.
 * A verdict is the same with any beginning that suffices for it, and with anything behind; what is told lies in the message. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "net/hello.h"
#include "net/sniff.h"

#define MADE_MAX 8192u

/* The same bytes in memory of their own, so that one too many is seen. */
UNSEEN static uint8_t *alone(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert(copy);
    memcpy(copy, p, n);
    return copy;
}

/* A beginning needs more, up to the one that decides. Some are tried, others with each length. */
UNSEEN static void check_beginnings(const uint8_t *p, size_t n, int verdict, const struct hello *h)
{
    struct hello less;
    size_t used = 0, step = n / 8 + 1;
    for (size_t k = n % step; k < n; k += step) {
        uint8_t *cut = alone(p, k);
        int got = hello_parse(cut, k, &less, &used);
        assert(got == 0 || (got == verdict && less.wrong == h->wrong));
        free(cut);
    }
}

UNSEEN static void check_good(const uint8_t *p, size_t used, const struct hello *h)
{
    struct hello less;
    size_t none = 0, same = 0;
    assert(used <= HELLO_BYTES_MAX && hello_parse(p, used - 1, &less, &none) == 0);
    assert(hello_parse(p, used, &less, &same) == 1 && same == used && memcmp(&less, h, sizeof(less)) == 0);
    assert(hello_parse_again(p, used, &less, &same) == 1 && same == used && memcmp(&less, h, sizeof(less)) == 0);
    assert(h->name_len <= HELLO_NAME_MAX && strlen(h->name) == h->name_len);
    assert(h->versions > 0 && h->versions < 16 && h->protocols <= HELLO_PROTOCOLS_MAX);
    for (size_t i = 0; i < h->protocols; i++)
        assert(h->protocol[i].len > 0 && h->protocol[i].len <= HELLO_PROTOCOL_BYTES_MAX);
    assert(sniff(p, used) == SNIFF_TLS);
}

static void try_hello(const uint8_t *p, size_t n)
{
    struct hello h;
    size_t used = 0;
    int verdict = hello_parse(p, n, &h, &used);
    assert(hello_say(h.wrong) && (verdict < 0) == (h.wrong != HELLO_GOOD));
    assert(verdict != 0 || n < HELLO_BYTES_MAX);
    check_beginnings(p, n, verdict, &h);
    if (verdict == 1)
        check_good(p, used, &h);
    size_t again = 0;
    (void)hello_parse_again(p, n, &h, &again);
    assert(again <= n);
    (void)hello_asks_again(p, n);
}

static void try_sniff(const uint8_t *p, size_t n)
{
    enum sniff is = sniff(p, n);
    assert(is != SNIFF_MORE || n < SNIFF_BYTES_MAX);
    for (size_t k = 0; k < n && k <= SNIFF_BYTES_MAX; k++) {
        enum sniff less = sniff(p, k);
        assert(less == SNIFF_MORE || less == is);
    }
}

UNSEEN static void put(uint8_t *made, size_t *len, const void *p, size_t n)
{
    assert(*len + n <= MADE_MAX);
    memcpy(made + *len, p, n);
    *len += n;
}

UNSEEN static void put_two(uint8_t *made, size_t *len, size_t v)
{
    put(made, len, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

/* Extensions from the input: two bytes of kind, one of length, data. */
UNSEEN static size_t make_message(struct input *in, uint8_t *made)
{
    static const uint8_t head[] = {1, 0, 0, 0, 3, 3};
    static const uint8_t random[32];
    size_t len = 0;
    put(made, &len, head, sizeof(head));
    put(made, &len, random, sizeof(random));
    put(made, &len, "\x00\x00\x02\x13\x01\x01\x00", 7);
    size_t list = len;
    put_two(made, &len, 0);
    while (in->left > 3 && len < MADE_MAX / 2) {
        size_t n, kind = input_number(in, 2), want = input_byte(in);
        const uint8_t *data = input_bytes(in, want, &n);
        put_two(made, &len, kind);
        put_two(made, &len, n);
        put(made, &len, data, n);
    }
    made[list] = (uint8_t)((len - list - 2) >> 8);
    made[list + 1] = (uint8_t)(len - list - 2);
    made[2] = (uint8_t)((len - 4) >> 8);
    made[3] = (uint8_t)(len - 4);
    return len;
}

/* The message in records as long as the sizes say in turn, and what has to be wrong with that alone. */
UNSEEN static size_t make_records(const uint8_t *message, size_t n, const uint8_t sizes[4], uint8_t *made, enum hello_wrong *ret_wrong)
{
    size_t len = 0, records = 0;
    *ret_wrong = HELLO_GOOD;
    for (size_t at = 0; at < n && *ret_wrong == HELLO_GOOD; records++) {
        size_t most = sizes[records % 4] * 4u, now = n - at < most ? n - at : most;
        if (records == HELLO_RECORDS_MAX)
            *ret_wrong = HELLO_RECORDS_MANY;
        else if (now == 0)
            *ret_wrong = HELLO_RECORD_EMPTY;
        put(made, &len, "\x16\x03\x01", 3);
        put_two(made, &len, now);
        put(made, &len, message + at, now);
        at += now;
    }
    return len;
}

/* However it is spread, it means the same. */
static void try_made(struct input *in)
{
    static uint8_t message[MADE_MAX], one[MADE_MAX], more[MADE_MAX];
    uint8_t sizes[4];
    for (size_t i = 0; i < sizeof(sizes); i++)
        sizes[i] = input_byte(in);
    size_t n = make_message(in, message), len = 0, used = 0;
    put(one, &len, "\x16\x03\x01", 3);
    put_two(one, &len, n);
    put(one, &len, message, n);
    enum hello_wrong wrong;
    size_t spread = make_records(message, n, sizes, more, &wrong);
    struct hello h, other;
    uint8_t *p = alone(one, len), *q = alone(more, spread);
    int verdict = hello_parse(p, len, &h, &used), again = hello_parse(q, spread, &other, &used);
    assert(verdict != 0 && again != 0);
    if (wrong == HELLO_GOOD)
        assert(again == verdict && memcmp(&h, &other, sizeof(h)) == 0);
    else
        assert(again == -1 && other.wrong == wrong);
    try_hello(q, spread);
    free(p);
    free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct input in = {data + 1, size - 1};
    uint8_t *p = alone(in.at, in.left);
    if (data[0] % 4 == 0)
        try_sniff(p, in.left);
    else if (data[0] % 4 == 1)
        try_hello(p, in.left);
    else
        try_made(&in);
    free(p);
    return 0;
}

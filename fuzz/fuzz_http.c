/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what an HTTP peer sends: heads of requests and responses, request targets, chunked bodies, WebSocket
 * frames. The first byte chooses.
 * What is read whole is read the same in pieces; what is understood is inside what was read. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "net/chunks.h"
#include "net/httphead.h"
#include "net/target.h"
#include "net/wsframe.h"

UNSEEN static void check_inside(const struct http_text *t, const char *p, size_t used)
{
    assert(t->at >= p && t->at + t->len <= p + used);
    for (size_t i = 0; i < t->len; i++)
        assert((t->at[i] >= 0x20 || t->at[i] == '\t') && t->at[i] < 0x7f);
}

static void try_head(const char *p, size_t n, enum http_side side)
{
    static struct http_head h, again;
    size_t used = 0, less = 0;
    int got = http_head_parse(p, n, side, &h, &used);
    assert(got == 1 || got == 0 || got == -400 || got == -414 || got == -431 || got == -501 || got == -505);
    if (got != 1)
        return;
    assert(used <= n && used <= HTTP_HEAD_MAX && memcmp(p + used - 4, "\r\n\r\n", 4) == 0);
    for (size_t i = 0; i < h.count; i++) {
        check_inside(&h.header[i].name, p, used);
        check_inside(&h.header[i].value, p, used);
    }
    assert(h.body != HTTP_BODY_LENGTH || h.length > 0);
    /* What comes after changes nothing, and without its last byte it is not whole. */
    assert(http_head_parse(p, used, side, &again, &less) == 1 && less == used && again.body == h.body && again.count == h.count);
    assert(http_head_parse(p, used - 1, side, &again, &less) == 0);
    if (side == HTTP_REQUEST) {
        check_inside(&h.method, p, used);
        check_inside(&h.target, p, used);
        assert(http_find(&h, "host"));
    }
}

static void try_target(const char *p, size_t n)
{
    static struct target t;
    if (!target_parse(&(struct http_text){p, n}, &t))
        return;
    assert(t.segments <= TARGET_SEGMENTS_MAX && t.pairs <= TARGET_PAIRS_MAX && n <= HTTP_TARGET_MAX);
    for (size_t i = 0; i < t.segments; i++)
        assert(t.segment[i] >= t.mem && t.segment[i] < t.mem + sizeof(t.mem) && t.segment[i][0] && strlen(t.segment[i]) < n);
    for (size_t i = 0; i < t.pairs; i++)
        assert(t.pair[i].key[0] && target_get(&t, t.pair[i].key) == t.pair[i].value);
}

/* All the data there is, and where the body ended; -1 if it is none. */
static int collect(const char *p, size_t n, size_t piece, char *ret, size_t *ret_len, size_t *ret_used)
{
    struct chunks c = {0};
    size_t at = 0, len = 0;
    int end = 0;
    while (at < n && end == 0) {
        size_t give = n - at < piece ? n - at : piece, used = 0, data = 0;
        const char *d = NULL;
        end = chunks_take(&c, p + at, give, &used, &d, &data);
        if (end < 0)
            return -1;
        assert(used > 0 && used <= give && data <= used && (data == 0 || d + data == p + at + used));
        memcpy(ret + len, d, data);
        len += data;
        at += used;
    }
    *ret_len = len;
    *ret_used = at;
    return end;
}

static void try_chunks(const char *p, size_t n)
{
    static char whole[8192], pieces[8192];
    size_t len[2] = {0}, used[2] = {0};
    if (n > sizeof(whole))
        return;
    int a = collect(p, n, n, whole, &len[0], &used[0]), b = collect(p, n, 3, pieces, &len[1], &used[1]);
    assert(a == b);
    if (a >= 0)
        assert(len[0] == len[1] && used[0] == used[1] && memcmp(whole, pieces, len[0]) == 0);
}

/* Frames as they follow one another; each writes back to the head that was read. */
static void try_frames(const char *bytes, size_t n, enum http_side from)
{
    const uint8_t *p = (const uint8_t *)bytes;
    struct ws_frame f, less;
    size_t used = 0, none = 0;
    while (n > 0 && ws_parse(p, n, from, &f, &used) == 1) {
        uint8_t head[WS_HEAD_MAX];
        size_t len = ws_put_head(head, f.op, f.fin, f.len, f.masked ? f.mask : NULL);
        assert(used <= n && len + f.len == used && memcmp(head, p, len) == 0 && f.data == p + len);
        assert(ws_parse(p, used - 1, from, &less, &none) == 0);
        p += used;
        n -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    /* A copy of its own, so that one byte too many is seen. */
    char *p = malloc(size);
    assert(p);
    memcpy(p, data + 1, size - 1);
    p = realloc(p, size - 1 ? size - 1 : 1);
    switch (data[0] % 6) {
    case 0:
        try_head(p, size - 1, HTTP_REQUEST);
        break;
    case 1:
        try_head(p, size - 1, HTTP_RESPONSE);
        break;
    case 2:
        try_target(p, size - 1);
        break;
    case 3:
        try_chunks(p, size - 1);
        break;
    default:
        try_frames(p, size - 1, data[0] % 6 == 4 ? HTTP_REQUEST : HTTP_RESPONSE);
    }
    free(p);
    return 0;
}

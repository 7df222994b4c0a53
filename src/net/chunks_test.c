/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/chunks. */
#include "base/test.h"

#include "net/chunks.h"

/* Feeds the text in pieces of that size; the body, or NULL if it is refused. */
static const char *body_of(const char *text, size_t piece, size_t *ret_used, int *ret_last)
{
    static char body[256];
    struct chunks c = {0};
    size_t n = strlen(text), at = 0, len = 0;
    *ret_last = 0;
    while (at < n && *ret_last == 0) {
        size_t give = n - at < piece ? n - at : piece, used, data;
        const char *p;
        *ret_last = chunks_take(&c, text + at, give, &used, &p, &data);
        if (*ret_last < 0)
            return NULL;
        assert_true(used <= give && data <= used && (used > 0 || give == 0));
        memcpy(body + len, p, data);
        len += data;
        at += used;
    }
    body[len] = 0;
    *ret_used = at;
    return body;
}

static void a_body_in_pieces_of_every_size(void **state)
{
    (void)state;
    static const char text[] = "5\r\nhello\r\n00001\r\n,\r\nA\r\n 0123\r\n567\r\n0\r\n\r\nnext";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        size_t used;
        int last;
        assert_string_equal(body_of(text, piece, &used, &last), "hello, 0123\r\n567");
        assert_int_equal(last, 1);
        assert_int_equal(used, strlen(text) - 4);
    }
}

static void what_is_no_chunk_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"\r\n",    "g\r\n",         "5;a=b\r\nhello\r\n", "5\nhello", "5\r\nhello0\r\n\r\n",
                                       "-1\r\n",  "123456789\r\n", "0\r\nA: b\r\n",      " 5\r\n",   "5 \r\nhello",
                                       "0x5\r\n", "5\r\nhello\n0"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t used;
        int last;
        if (body_of(rows[i], 100, &used, &last))
            fail_msg("row %zu was taken", i);
    }
}

static void a_head_is_what_is_read_back(void **state)
{
    (void)state;
    char head[CHUNKS_HEAD_MAX];
    struct chunks c = {0};
    size_t n = chunks_put_head(head, 0x12ab), used, data;
    const char *at;
    assert_int_equal(chunks_take(&c, head, n, &used, &at, &data), 0);
    assert_int_equal(c.left, 0x12ab);
    assert_int_equal(used, n);
}

TESTS(cmocka_unit_test(a_body_in_pieces_of_every_size), cmocka_unit_test(what_is_no_chunk_is_refused),
      cmocka_unit_test(a_head_is_what_is_read_back))

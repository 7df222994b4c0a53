/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for mcp/ticket. */
#include "mcp/ticket.h"

#include <string.h>

#include "base/test.h"

static const uint8_t key[TICKET_KEY] = {1, 2, 3}, other[TICKET_KEY] = {1, 2, 4};

static bool opens(const uint8_t k[TICKET_KEY], const char *bound, const char *ticket, uint64_t now, const char *text)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    return ticket_open(k, bound, ticket, now, &b) && strcmp(buf_text(&b), text) == 0;
}

static void ticket_comes_back_as_it_went(void **state)
{
    own_buf b = {0};
    (void)state;
    buf_init(&b, 4096);
    ticket_seal(key, "who", "what", 1000, &b);
    assert_true(opens(key, "who", buf_text(&b), 999, "what"));
}

static void ticket_is_good_for_its_time_its_holder_and_its_key_alone(void **state)
{
    own_buf b = {0};
    (void)state;
    buf_init(&b, 4096);
    ticket_seal(key, "who", "what", 1000, &b);
    assert_false(opens(key, "who", buf_text(&b), 1000, "what"));
    assert_false(opens(key, "whose", buf_text(&b), 0, "what"));
    assert_false(opens(other, "who", buf_text(&b), 0, "what"));
}

/* Every bit of it counts. */
static void ticket_that_was_touched_does_not_open(void **state)
{
    own_buf b = {0};
    (void)state;
    buf_init(&b, 4096);
    ticket_seal(key, "who", "what", 1000, &b);
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            char text[256];
            memcpy(text, b.data, b.len);
            text[b.len] = 0;
            text[i] ^= (char)(1 << bit);
            assert_false(opens(key, "who", text, 0, "what"));
        }
    for (size_t n = 0; n < b.len; n++) {
        char text[256];
        memcpy(text, b.data, n);
        text[n] = 0;
        assert_false(opens(key, "who", text, 0, "what"));
    }
    buf_add_text(&b, "-TAMPERED");
    assert_false(opens(key, "who", buf_text(&b), 0, "what"));
}

/* The parts are kept apart: what moves from one into the next changes the seal. */
static void ticket_parts_do_not_run_together(void **state)
{
    own_buf a = {0}, b = {0};
    (void)state;
    buf_init(&a, 4096);
    buf_init(&b, 4096);
    ticket_seal(key, "c", "ab", 1000, &a);
    ticket_seal(key, "bc", "a", 1000, &b);
    assert_string_not_equal(buf_text(&a) + a.len - 64, buf_text(&b) + b.len - 64);
}

TESTS(cmocka_unit_test(ticket_comes_back_as_it_went), cmocka_unit_test(ticket_is_good_for_its_time_its_holder_and_its_key_alone),
      cmocka_unit_test(ticket_that_was_touched_does_not_open), cmocka_unit_test(ticket_parts_do_not_run_together))

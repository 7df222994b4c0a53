/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for wire/frame. */
#include "base/test.h"

#include "wire/frame.h"

static void frame_needs_every_byte_of_itself(void **state)
{
    (void)state;
    uint8_t m[FRAME_HEAD + 5];
    struct frame f;
    size_t used;
    frame_put_head(m, 7, 0x1234, 5);
    memcpy(m + FRAME_HEAD, "hello", 5);
    for (size_t n = 0; n < sizeof(m); n++)
        assert_int_equal(frame_parse(m, n, &f, &used), 0);
    assert_int_equal(frame_parse(m, sizeof(m), &f, &used), 1);
    assert_int_equal(used, sizeof(m));
    assert_int_equal(f.type, 7);
    assert_int_equal(f.chan, 0x1234);
    assert_memory_equal(f.data, "hello", 5);
}

static void frame_refuses_a_length_past_the_limit_before_it_arrives(void **state)
{
    (void)state;
    uint8_t m[FRAME_HEAD];
    struct frame f;
    size_t used;
    frame_put_head(m, 1, 0, FRAME_PAYLOAD_MAX + 1);
    assert_int_equal(frame_parse(m, sizeof(m), &f, &used), -1);
    frame_put_head(m, 1, 0, 0);
    m[5] = 1;
    assert_int_equal(frame_parse(m, sizeof(m), &f, &used), -1);
}

TESTS(cmocka_unit_test(frame_needs_every_byte_of_itself), cmocka_unit_test(frame_refuses_a_length_past_the_limit_before_it_arrives))

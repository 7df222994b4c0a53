/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/buf. */
#include "base/test.h"

#include "base/buf.h"

static void buf_grows_to_its_maximum_and_no_further(void **state)
{
    (void)state;
    own_buf b = {0};
    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        buf_add(&b, "x", 1);
    assert_false(b.failed);
    buf_add(&b, "y", 1);
    assert_true(b.failed);
    assert_int_equal(b.len, 1000);
}

static void buf_uses_lent_memory_while_it_lasts(void **state)
{
    (void)state;
    uint8_t mem[8];
    own_buf b = {0};
    buf_init_lent(&b, 64, mem, sizeof(mem));
    buf_add_text(&b, "1234567");
    assert_ptr_equal(b.data, mem);
    assert_string_equal(buf_text(&b), "1234567");
}

static void buf_leaves_lent_memory_with_its_content(void **state)
{
    (void)state;
    uint8_t mem[8] = {0};
    own_buf b = {0};
    buf_init_lent(&b, 64, mem, sizeof(mem));
    buf_add_text(&b, "12345678");
    buf_add_text(&b, "9");
    assert_ptr_not_equal(b.data, mem);
    assert_string_equal(buf_text(&b), "123456789");
}

static void buf_lent_more_than_its_maximum_keeps_to_the_maximum(void **state)
{
    (void)state;
    uint8_t mem[64];
    own_buf b = {0};
    buf_init_lent(&b, 4, mem, sizeof(mem));
    buf_add_text(&b, "12345");
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
}

static void buf_consumes_from_the_front(void **state)
{
    (void)state;
    own_buf b = {0};
    buf_init(&b, 64);
    buf_add_text(&b, "abcdef");
    buf_consume(&b, 4);
    assert_string_equal(buf_text(&b), "ef");
    buf_consume(&b, 100);
    assert_string_equal(buf_text(&b), "");
}

TESTS(cmocka_unit_test(buf_grows_to_its_maximum_and_no_further), cmocka_unit_test(buf_uses_lent_memory_while_it_lasts),
      cmocka_unit_test(buf_leaves_lent_memory_with_its_content), cmocka_unit_test(buf_lent_more_than_its_maximum_keeps_to_the_maximum),
      cmocka_unit_test(buf_consumes_from_the_front))

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/number. */
#include "base/test.h"

#include "base/number.h"

static void size_reads_letters_as_powers_of_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {{"0", 0}, {"4096", 4096}, {"1K", 1024}, {"1k", 1024}, {"512M", 536870912}, {"2GiB", 2147483648}, {"1T", 1099511627776},
                {"7B", 7}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t v = 1;
        assert_true(number_size(good[i].text, &v));
        assert_int_equal(v, good[i].want);
    }
}

static void size_refuses_what_is_not_one(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "-1", "+1", " 1", "1 ", "1X", "1Mi", "1MM", "0x10", "18446744073709551616", "17179869184G",
                                      "1.5G"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t v = 42;
        assert_false(number_size(bad[i], &v));
        assert_int_equal(v, 42);
    }
}

static void duration_takes_units_and_fractions(void **state)
{
    (void)state;
    uint64_t v;
    assert_true(number_duration("1.5", &v));
    assert_int_equal(v, 1500);
    assert_true(number_duration("250ms", &v));
    assert_int_equal(v, 250);
    assert_true(number_duration("2h", &v));
    assert_int_equal(v, 7200000);
    assert_false(number_duration("5 s", &v));
    assert_false(number_duration("s", &v));
    assert_false(number_duration("1.2345", &v));
    assert_false(number_duration("99999999999999999999d", &v));
}

static void whole_numbers_respect_their_maximum(void **state)
{
    (void)state;
    uint64_t v;
    assert_true(number_u64("65535", 65535, &v));
    assert_false(number_u64("65536", 65535, &v));
    assert_false(number_u64("1e3", 65535, &v));
}

static void bytes_are_shown_with_one_decimal(void **state)
{
    (void)state;
    char s[32];
    assert_string_equal(number_show_bytes(23488102, s, sizeof(s)), "22.3MiB");
    assert_string_equal(number_show_bytes(512, s, sizeof(s)), "512B");
    assert_string_equal(number_show_bytes(1073741824, s, sizeof(s)), "1GiB");
    assert_string_equal(number_show_ms(234, s, sizeof(s)), "234ms");
    assert_string_equal(number_show_ms(65000, s, sizeof(s)), "1m05s");
}

static void signed_numbers_go_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"0", 0}, {"7", 7}, {"-1", -1}, {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"", "-", "--1", "+1", "-0", "- 1", "1-", "9223372036854775808", "-9223372036854775809"};
    int64_t v = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(number_i64(bad[i], &v));
    assert_int_equal(v, 42);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(number_i64(good[i].text, &v));
        assert_true(v == good[i].want);
    }
}

TESTS(cmocka_unit_test(size_reads_letters_as_powers_of_1024), cmocka_unit_test(size_refuses_what_is_not_one),
      cmocka_unit_test(duration_takes_units_and_fractions), cmocka_unit_test(whole_numbers_respect_their_maximum),
      cmocka_unit_test(bytes_are_shown_with_one_decimal), cmocka_unit_test(signed_numbers_go_both_ways))

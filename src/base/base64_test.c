/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/base64. */
#include "base/test.h"

#include <string.h>

#include "base/base64.h"

static void bytes_come_back(void **state)
{
    (void)state;
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 200);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        own_buf text = {0}, back = {0};
        buf_init(&text, 256);
        buf_init(&back, 256);
        base64_write(bytes, n, &text);
        assert_int_equal(text.len, (n + 2) / 3 * 4);
        assert_true(base64_read(buf_text(&text), &back));
        assert_int_equal(back.len, n);
        assert_true(n == 0 || memcmp(back.data, bytes, n) == 0);
    }
}

static void texts_of_the_standard(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        own_buf text = {0};
        buf_init(&text, 256);
        base64_write(rows[i][0], strlen(rows[i][0]), &text);
        assert_string_equal(buf_text(&text), rows[i][1]);
    }
}

static void what_is_no_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",    "Zg",   "Zg=",  "Zg===", "Z===",     "====",  "Zm9v ",
                                      "Zm 9", "Zm9-", "Zh==", "Zm9=",  "Zg==Zg==", "Zm9v\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        own_buf back = {0};
        buf_init(&back, 256);
        assert_false(base64_read(bad[i], &back));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(texts_of_the_standard),
        cmocka_unit_test(what_is_no_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

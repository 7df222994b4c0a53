/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for base/json. */
#include "base/test.h"

#include "base/json.h"

static void json_keeps_commas_and_nesting(void **state)
{
    (void)state;
    own_buf b = {0};
    struct json j;
    buf_init(&b, 4096);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "a", "x\"y\\z\n");
    json_begin_list(&j, "l");
    json_u64(&j, NULL, 1);
    json_bool(&j, NULL, true);
    json_end_list(&j);
    json_begin_object(&j, "o");
    json_end_object(&j);
    json_fixed(&j, "f", 1050, 3);
    json_put_null(&j, "n");
    json_i64(&j, "i", -5);
    json_end_object(&j);
    assert_string_equal(buf_text(&b), "{\"a\":\"x\\\"y\\\\z\\n\",\"l\":[1,true],\"o\":{},\"f\":1.050,\"n\":null,\"i\":-5}");
}

static void json_replaces_bytes_that_are_not_utf8(void **state)
{
    (void)state;
    own_buf b = {0};
    struct json j;
    buf_init(&b, 4096);
    json_start(&j, &b);
    json_bytes(&j, NULL, "a\xff\x1b\0", 4);
    assert_string_equal(buf_text(&b), "\"a\xef\xbf\xbd\\u001b\\u0000\"");
}

TESTS(cmocka_unit_test(json_keeps_commas_and_nesting), cmocka_unit_test(json_replaces_bytes_that_are_not_utf8))

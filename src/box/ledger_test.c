/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/ledger. */
#include "base/test.h"

#include "box/ledger.h"

static struct ledger one, two;

static void fill(void)
{
    one.count = 2;
    one.step[0] = (struct ledger_step){DEED_APPEND, "ann", "/etc/subuid", "ann:100000:65536\n", 0, 0};
    one.step[1] = (struct ledger_step){DEED_CHOWN, "a\"n\\n", "/sys/fs/cgroup/x", "", 7, 4294967295u};
}

static void written_and_parsed_is_the_same(void **state)
{
    own_buf b = {0};
    (void)state;
    fill();
    buf_init(&b, 65536);
    ledger_write(&one, &b);
    assert_int_equal(ledger_parse(buf_text(&b), b.len, &two, NULL), 0);
    assert_int_equal(two.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(two.step[i].deed, one.step[i].deed);
        assert_string_equal(two.step[i].user, one.step[i].user);
        assert_string_equal(two.step[i].path, one.step[i].path);
        assert_string_equal(two.step[i].text, one.step[i].text);
        assert_int_equal(two.step[i].uid, one.step[i].uid);
        assert_int_equal(two.step[i].gid, one.step[i].gid);
    }
}

static void parse_refuses_every_prefix(void **state)
{
    own_buf b = {0};
    (void)state;
    fill();
    buf_init(&b, 65536);
    ledger_write(&one, &b);
    for (size_t n = 0; n < b.len; n++)
        assert_int_equal(ledger_parse((const char *)b.data, n, &two, NULL), -PALE_CORRUPT);
    assert_int_equal(two.count, 0);
}

static void parse_refuses_what_we_did_not_write(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"version\":2,\"steps\":[]}\n",
        "{\"version\":1,\"steps\":[]}\n ",
        "{\"version\":1,\"steps\":[{\"do\":\"rm\",\"user\":\"\",\"path\":\"/x\",\"text\":\"\",\"uid\":0,\"gid\":0}]}\n",
        "{\"version\":1,\"steps\":[{\"do\":\"mkdir\",\"user\":\"\",\"path\":\"x\",\"text\":\"\",\"uid\":0,\"gid\":0}]}\n",
        "{\"version\":1,\"steps\":[{\"do\":\"mkdir\",\"user\":\"\",\"path\":\"/x\",\"text\":\"\",\"uid\":-1,\"gid\":0}]}\n",
        "{\"version\":1,\"steps\":[{\"do\":\"mkdir\",\"user\":\"\",\"path\":\"/x\",\"text\":\"\",\"uid\":00,\"gid\":0}]}\n",
        "{\"version\":1,\"steps\":[{\"do\":\"mkdir\",\"user\":\"\",\"path\":\"/\x1b\",\"text\":\"\",\"uid\":0,\"gid\":0}]}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(ledger_parse(bad[i], strlen(bad[i]), &two, NULL), -PALE_CORRUPT);
}

TESTS(cmocka_unit_test(written_and_parsed_is_the_same), cmocka_unit_test(parse_refuses_every_prefix),
      cmocka_unit_test(parse_refuses_what_we_did_not_write))

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/rule, policy/window and policy/plainhttp: the text of a rule. */
#include "policy/policy_test.h"

#include "policy/rule.h"

static void rule_text_reads_back_byte_for_byte(void **state)
{
    (void)state;
    static const struct {
        const char *given, *text;
    } cases[] = {
        {"x.org", NULL},
        {"X.org:443,80,80", "x.org:80,443"},
        {"*.x.org:80=ask@60", NULL},
        {"x.org=allow", "x.org"},
        {"10.0.0.0/8", NULL},
        {"10.1.2.3/32:5432", NULL},
        {"[FD00::/8]:443=deny", "[fd00::/8]:443=deny"},
        {"[fd00:0:0::1/128]", "[fd00::1/128]"},
        {"0.0.0.0/0=deny", NULL},
        {"x.org+out=10M+in=1025+conns=8", NULL},
        {"x.org+out=10240K", "x.org+out=10M"},
        {"x.org@5+in=1T", NULL},
        {"x.org+time=mon-fri/08:00-18:00", NULL},
        {"x.org+time=sun,mon,tue 00:00-24:00", "x.org+time=mon-tue,sun/00:00-24:00"},
        {"x.org+time=mon-sun/00:00-00:01", "x.org+time=00:00-00:01"},
        {"x.org:80+methods=POST,GET", "x.org:80+methods=GET,POST"},
        {"x.org:80+paths=/b/*,/a,/", "x.org:80+paths=/,/a,/b/*"},
        {"x.org:80,8080=ask@1+out=1+in=2+conns=3+time=sat/10:00-11:00+methods=GET+paths=/a", NULL},
        {"db.host.pale:5432", NULL},
        {"host.pale:80=ask@5", NULL},
        {"*.host.pale=deny", NULL},
        {"*:25=deny", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_rule r = {0}, again = {0};
        own_buf text = {0};
        struct pale_err e = {0};
        buf_init(&text, 4096);
        if (rule_parse(cases[i].given, &r, &e) < 0)
            fail_msg("%s: %s", cases[i].given, e.text);
        rule_text(&r, &text);
        assert_string_equal(buf_text(&text), cases[i].text ? cases[i].text : cases[i].given);
        assert_int_equal(rule_parse(buf_text(&text), &again, &e), 0);
        assert_int_equal(rule_order(&r, &again), 0);
    }
}

static void rule_refuses_what_it_cannot_hold(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"10.0.0.1/8", "range of addresses"},
        {"10.0.0.0/33", "range of addresses"},
        {"10.0.0.0/8/8", "range of addresses"},
        {"fd00::/8", "in brackets"},
        {"::1=deny", "in brackets"},
        {"[fd00::/8", "range of addresses"},
        {"[fd00::]", "range of addresses"},
        {"[10.0.0.0/8]", "range of addresses"},
        {"010.0.0.0/8", "range of addresses"},
        {"0.0.0.0/0", "too wide"},
        {"128.0.0.0/1=ask", "too wide"},
        {"[2000::/3]", "too wide"},
        {"127.0.0.0/8", "host itself"},
        {"[::1/128]:80", "host itself"},
        {"db.host.pale", "one port"},
        {"db.host.pale:1,2", "one port"},
        {"*.host.pale:80", "one port"},
        {"x.org:80=deny@5", "denies"},
        {"x.org=deny+out=5", "denies"},
        {"x.org+out=0", "number of bytes"},
        {"x.org+out=", "number of bytes"},
        {"x.org+conns=0", "number of connections"},
        {"x.org+in=5+out=5", "is not TARGET"},
        {"x.org+out=5+out=5", "is not TARGET"},
        {"x.org+foo=5", "is not TARGET"},
        {"x.org+", "is not TARGET"},
        {"x.org+time=08:00", "window of time"},
        {"x.org+time=mon", "window of time"},
        {"x.org+time=mon/8:00-18:00", "window of time"},
        {"x.org+time=fri-mon/08:00-18:00", "window of time"},
        {"x.org+time=mon,/08:00-18:00", "window of time"},
        {"x.org+time=mo/08:00-18:00", "window of time"},
        {"x.org+time=Mon/08:00-18:00", "window of time"},
        {"x.org+time=08:00-24:01", "window of time"},
        {"x.org+time=08:60-18:00", "window of time"},
        {"x.org+time=22:00-06:00", "two rules"},
        {"x.org+methods=GET", "list the plain-HTTP ports"},
        {"x.org:80,443+methods=GET", "list the plain-HTTP ports"},
        {"x.org+paths=/a", "list the plain-HTTP ports"},
        {"x.org:80+methods=get", "no method"},
        {"x.org:80+methods=CONNECT", "no method"},
        {"x.org:80+methods=", "no method"},
        {"x.org:80+methods=GET,", "no method"},
        {"x.org:80+paths=a", "no path"},
        {"x.org:80+paths=", "no path"},
        {"x.org:80+paths=/a*", "no path"},
        {"x.org:80+paths=/*/a", "no path"},
        {"x.org:80+paths=/a//b", "no path"},
        {"x.org:80+paths=/a/../b", "no path"},
        {"x.org:80+paths=/.", "no path"},
        {"x.org:80+paths=/a%2fb", "no path"},
        {"x.org:80+paths=/a;b", "no path"},
        {"x.org:80+paths=/a?b", "no path"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_rule r = {0};
        struct pale_err e = {0};
        if (rule_parse(cases[i].text, &r, &e) == 0)
            fail_msg("%s was taken", cases[i].text);
        assert_has(e.text, cases[i].says);
    }
}

static void rule_of_every_prefix_is_taken_or_told(void **state)
{
    (void)state;
    static const char whole[] = "[fd00::/8]:80,8080=ask@1+out=1M+in=2G+conns=3+time=mon-fri,sun/10:00-11:00+methods=GET,POST+paths=/a,/b/*";
    for (size_t n = 0; n < sizeof(whole); n++) {
        char text[sizeof(whole)] = {0};
        own_rule r = {0};
        struct pale_err e = {0};
        memcpy(text, whole, n);
        if (rule_parse(text, &r, &e) < 0)
            assert_true(e.text[0] && e.code == PALE_BAD_INPUT);
    }
}

/* A rule that were taken for another would be lost. */
static void rules_that_differ_in_anything_are_two(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x.org:80",
        "y.org:80",
        "*.x.org:80",
        "10.0.0.0/8:80",
        "10.0.0.0/9:80",
        "11.0.0.0/8:80",
        "[fd00::/8]:80",
        "x.org",
        "x.org:81",
        "x.org:80,81",
        "x.org:80=ask",
        "x.org:80=deny",
        "x.org:80@1",
        "x.org:80@2",
        "x.org:80+out=1",
        "x.org:80+in=1",
        "x.org:80+conns=1",
        "x.org:80+time=08:00-18:00",
        "x.org:80+time=08:00-18:01",
        "x.org:80+time=08:01-18:00",
        "x.org:80+time=mon/08:00-18:00",
        "x.org:80+methods=GET",
        "x.org:80+methods=POST",
        "x.org:80+paths=/a",
        "x.org:80+paths=/b",
        "x.org:80+paths=/a,/b",
    };
    const size_t count = sizeof(texts) / sizeof(texts[0]);
    own_policy p = POLICY();
    for (size_t i = 0; i < 2 * count; i++)
        set(&p, "network.egress", texts[(i * 7) % count]);
    assert_int_equal(p.egress_count, count);
    for (size_t i = 0; i + 1 < count; i++)
        assert_true(rule_order(&p.egress[i], &p.egress[i + 1]) < 0 && rule_order(&p.egress[i + 1], &p.egress[i]) > 0);
}

static void rule_has_only_so_many_paths(void **state)
{
    (void)state;
    own_rule r = {0};
    own_buf text = {0};
    struct pale_err e = {0};
    buf_init(&text, 4096);
    buf_add_text(&text, "x.org:80+paths=/a");
    for (int i = 0; i < 40; i++)
        buf_addf(&text, ",/%d", i);
    assert_int_equal(rule_parse(buf_text(&text), &r, &e), -PALE_LIMIT);
}

TESTS(cmocka_unit_test(rule_text_reads_back_byte_for_byte), cmocka_unit_test(rule_refuses_what_it_cannot_hold),
      cmocka_unit_test(rule_of_every_prefix_is_taken_or_told), cmocka_unit_test(rule_has_only_so_many_paths),
      cmocka_unit_test(rules_that_differ_in_anything_are_two))

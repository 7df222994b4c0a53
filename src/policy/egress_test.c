/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/egress: the verdict on a flow. */
#include "policy/policy_test.h"

#include "policy/egress.h"

#define MONDAY_NOON (12u * 60)
#define SUNDAY_NOON (6u * 1440 + 12 * 60)

struct ask {
    const char *name, *address;
    uint16_t port;
    enum egress_flow flow;
    const char *method, *path;
    unsigned minute;
};

static struct http_text text_of(const char *s)
{
    return (struct http_text){s, s ? strlen(s) : 0};
}

static struct egress_verdict judge(const struct policy *p, const struct ask *a)
{
    struct address address;
    struct egress_verdict v;
    struct egress_question q = {.name = a->name,
                                .port = a->port,
                                .minute = a->minute ? a->minute : MONDAY_NOON,
                                .flow = a->flow,
                                .method = text_of(a->method),
                                .path = text_of(a->path)};
    if (a->address) {
        assert_true(address_parse(a->address, strlen(a->address), &address));
        q.address = &address;
    }
    egress_judge(p, &q, &v);
    assert_true((v.rule != NULL) == (v.ground == EGRESS_BY_RULE));
    return v;
}
#define JUDGE(p, ...) judge(p, &(struct ask){__VA_ARGS__})

static void assert_ground(const struct policy *p, const struct egress_verdict *v, const char *want)
{
    char text[128];
    assert_string_equal(egress_ground_text(p, v, text, sizeof(text)), want);
}

static void egress_lets_deny_win_over_allow_over_ask(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "*=ask", "network.egress", "*.x.org", "network.egress", "a.x.org:443",
                          "network.egress", "*.x.org:25=deny");
    static const struct {
        struct ask ask;
        enum policy_verdict verdict;
        const char *ground;
    } cases[] = {
        {{"y.org", NULL, 443}, VERDICT_ASK, "network.egress *=ask"},
        {{"b.x.org", NULL, 443}, VERDICT_ALLOW, "network.egress *.x.org"},
        {{"a.x.org", NULL, 443}, VERDICT_ALLOW, "network.egress a.x.org:443"},
        {{"a.x.org", NULL, 25}, VERDICT_DENY, "network.egress *.x.org:25=deny"},
        {{NULL, "1.2.3.4", 443}, VERDICT_DENY, "network.mode filtered"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct egress_verdict v = judge(&p, &cases[i].ask);
        assert_int_equal(v.verdict, cases[i].verdict);
        assert_ground(&p, &v, cases[i].ground);
    }
}

static void egress_refuses_what_is_not_public_unless_a_range_names_it(void **state)
{
    (void)state;
    static const char *const inner[] = {"10.1.2.3",
                                        "192.168.0.1",
                                        "172.16.0.1",
                                        "127.0.0.1",
                                        "169.254.1.1",
                                        "169.254.169.254",
                                        "0.0.0.0",
                                        "100.100.100.200",
                                        "::1",
                                        "fe80::1",
                                        "fd00::1",
                                        "fd00:ec2::254",
                                        "224.0.0.1",
                                        "255.255.255.255",
                                        "::ffff:10.0.0.1",
                                        "64:ff9b::a00:1",
                                        "100.64.0.1",
                                        "::ffff:169.254.169.254",
                                        "::",
                                        "ff02::1",
                                        "2002:7f00:1::1",
                                        "::ffff:127.0.0.1",
                                        "198.18.0.1",
                                        "192.0.2.1"};
    own_policy filtered = POLICY("network", "filtered", "network.egress", "x.org"), open = POLICY("network", "open");
    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
        struct egress_verdict v = JUDGE(&filtered, "x.org", inner[i], 443);
        assert_int_equal(v.verdict, VERDICT_DENY);
        assert_int_equal(v.ground, EGRESS_BY_ADDRESS);
        assert_int_equal(JUDGE(&open, "x.org", inner[i], 443).verdict, VERDICT_DENY);
        assert_int_equal(JUDGE(&open, NULL, inner[i], 443).verdict, VERDICT_DENY);
    }
    assert_int_equal(JUDGE(&filtered, "x.org", "1.2.3.4", 443).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&open, "x.org", "1.2.3.4", 443).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&open, NULL, "1.2.3.4", 443).verdict, VERDICT_ALLOW);
}

static void egress_opens_ranges_that_are_named(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "x.org", "network.egress", "10.0.0.0/8:5432", "network.egress",
                          "10.9.0.0/16=deny", "network.egress", "[fd00::/8]=ask", "network.egress", "169.254.0.0/16", "network.egress",
                          "y.org=ask", "network.egress", "8.8.8.0/24=deny");
    static const struct {
        struct ask ask;
        enum policy_verdict verdict;
    } cases[] = {
        {{NULL, "10.1.2.3", 5432}, VERDICT_ALLOW},     {{NULL, "10.1.2.3", 5433}, VERDICT_DENY},
        {{"x.org", "10.1.2.3", 5432}, VERDICT_ALLOW},  {{"y.org", "10.1.2.3", 5432}, VERDICT_ASK},
        {{"z.org", "10.1.2.3", 5432}, VERDICT_DENY},   {{NULL, "10.9.2.3", 5432}, VERDICT_DENY},
        {{"x.org", "10.9.2.3", 5432}, VERDICT_DENY},   {{NULL, "fd00::1", 1}, VERDICT_ASK},
        {{"x.org", "fd00::1", 1}, VERDICT_ASK},        {{NULL, "169.254.1.1", 80}, VERDICT_ALLOW},
        {{NULL, "169.254.169.254", 80}, VERDICT_DENY}, {{NULL, "fd00:ec2::254", 80}, VERDICT_DENY},
        {{"x.org", "8.8.8.8", 443}, VERDICT_DENY},     {{"x.org", "8.8.9.8", 443}, VERDICT_ALLOW},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (judge(&p, &cases[i].ask).verdict != cases[i].verdict)
            fail_msg("case %zu", i);
    own_policy q = POLICY("network", "open", "network.egress", "169.254.169.254/32:80", "network.egress", "10.0.0.0/8=ask");
    assert_int_equal(JUDGE(&q, NULL, "169.254.169.254", 80).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&q, "x.org", "10.0.0.1", 80).verdict, VERDICT_ASK);
}

static void egress_opens_ports_of_the_host_by_their_names_alone(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "open", "network.egress", "db.host.pale:5432", "network.egress", "*.pale");
    assert_int_equal(JUDGE(&p, "db.host.pale", NULL, 5432).host_port, 5432);
    assert_int_equal(JUDGE(&p, "db.host.pale", NULL, 5432).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&p, "db.host.pale", NULL, 5433).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "db2.host.pale", NULL, 5432).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "host.pale", NULL, 5432).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "nothost.pale", NULL, 5432).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&p, "nothost.pale", NULL, 5432).host_port, 0);
    set(&p, "network.egress", "*=deny");
    assert_int_equal(JUDGE(&p, "db.host.pale", NULL, 5432).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "db.host.pale", NULL, 5432).host_port, 0);
}

static void egress_tells_the_lowest_quotas_and_which_rules_count(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "*.x.org@30+out=100", "network.egress", "a.x.org@60+out=50+in=7+conns=2",
                          "network.egress", "b.x.org:80=deny", "network.egress", "1.0.0.0/8@5");
    struct egress_verdict v = JUDGE(&p, "a.x.org", NULL, 443);
    assert_int_equal(v.quota[QUOTA_RATE], 30);
    assert_int_equal(v.quota[QUOTA_BYTES_OUT], 50);
    assert_int_equal(v.quota[QUOTA_BYTES_IN], 7);
    assert_int_equal(v.quota[QUOTA_CONNECTIONS], 2);
    assert_int_equal(JUDGE(&p, "a.x.org", "1.2.3.4", 443).quota[QUOTA_RATE], 5);
    for (size_t i = 0; i < p.egress_count; i++)
        assert_int_equal(egress_counts(&v, i), p.egress[i].domain && p.egress[i].verdict == VERDICT_ALLOW);
}

static void egress_holds_rules_to_their_time(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "x.org+time=mon-fri/08:00-18:00");
    assert_int_equal(JUDGE(&p, "x.org", NULL, 1, .minute = 8 * 60).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&p, "x.org", NULL, 1, .minute = 8 * 60 - 1).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "x.org", NULL, 1, .minute = 4 * 1440 + 18 * 60 - 1).verdict, VERDICT_ALLOW);
    assert_int_equal(JUDGE(&p, "x.org", NULL, 1, .minute = 4 * 1440 + 18 * 60).verdict, VERDICT_DENY);
    assert_int_equal(JUDGE(&p, "x.org", NULL, 1, .minute = SUNDAY_NOON).verdict, VERDICT_DENY);
    assert_int_equal(egress_match_name(&p, "x.org", SUNDAY_NOON), VERDICT_DENY);
    assert_int_equal(egress_match_name(&p, "x.org", MONDAY_NOON), VERDICT_ALLOW);
    /* 2024-01-01 was a Monday, 1970-01-01 a Thursday. */
    assert_int_equal(egress_minute(1704067200), 0);
    assert_int_equal(egress_minute(1704067199), 10079);
    assert_int_equal(egress_minute(0), 3 * 1440);
}

static void egress_judges_requests_of_plain_http(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "x.org:80+methods=GET,HEAD+paths=/a/*,/b", "network.egress", "y.org:80",
                          "network.egress", "y.org:80=deny+methods=POST", "network.egress", "z.org:80=ask", "network.egress",
                          "z.org:80+paths=/ok", "network.egress", "w.org:80", "network.egress", "w.org:80=deny+paths=/a/*");
    static const struct {
        struct ask ask;
        enum policy_verdict verdict;
        bool needs_http;
    } cases[] = {
        {{"x.org", NULL, 80}, VERDICT_ALLOW, true},
        {{"x.org", NULL, 443}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_OPAQUE}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "GET", "/a/c"}, VERDICT_ALLOW, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "GET", "/b"}, VERDICT_ALLOW, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "GET", "/b/c"}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "GET", "/a"}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "POST", "/a/c"}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "get", "/a/c"}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, "GET", NULL}, VERDICT_DENY, false},
        {{"x.org", NULL, 80, EGRESS_HTTP, NULL, "/a/c"}, VERDICT_DENY, false},
        {{"y.org", NULL, 80}, VERDICT_ALLOW, true},
        {{"y.org", NULL, 80, EGRESS_OPAQUE}, VERDICT_DENY, false},
        {{"y.org", NULL, 80, EGRESS_HTTP, "GET", "/"}, VERDICT_ALLOW, false},
        {{"y.org", NULL, 80, EGRESS_HTTP, "POST", "/"}, VERDICT_DENY, false},
        {{"y.org", NULL, 80, EGRESS_HTTP, "FROB", "/"}, VERDICT_DENY, false},
        {{"y.org", NULL, 80, EGRESS_HTTP, NULL, "/"}, VERDICT_DENY, false},
        {{"w.org", NULL, 80, EGRESS_HTTP, "GET", "/b"}, VERDICT_ALLOW, false},
        {{"w.org", NULL, 80, EGRESS_HTTP, "GET", "/a/b"}, VERDICT_DENY, false},
        {{"w.org", NULL, 80, EGRESS_HTTP, "GET", NULL}, VERDICT_DENY, false},
        {{"w.org", NULL, 80, EGRESS_OPAQUE}, VERDICT_DENY, false},
        {{"z.org", NULL, 80}, VERDICT_ALLOW, true},
        {{"z.org", NULL, 80, EGRESS_OPAQUE}, VERDICT_ASK, false},
        {{"z.org", NULL, 80, EGRESS_HTTP, "POST", "/ok"}, VERDICT_ALLOW, false},
        {{"z.org", NULL, 80, EGRESS_HTTP, "GET", "/"}, VERDICT_ASK, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct egress_verdict v = judge(&p, &cases[i].ask);
        if (v.verdict != cases[i].verdict || v.needs_http != cases[i].needs_http)
            fail_msg("case %zu: %d, %d", i, v.verdict, v.needs_http);
    }
}

static void egress_answers_names_for_dns(void **state)
{
    (void)state;
    own_policy p =
        POLICY("network", "filtered", "network.egress", "x.org:443", "network.egress", "x.org:25=deny", "network.egress", "*.y.org=ask",
               "network.egress", "bad.y.org=deny", "network.egress", "db.host.pale:5432", "network.egress", "*.pale", "network.egress",
               "10.0.0.0/8", "network.egress", "z.org:80+methods=GET", "network.egress", "*.v.org", "network.egress", "a.v.org=ask");
    own_policy open = POLICY("network", "open", "network.egress", "bad.org=deny"), none = POLICY(), host = POLICY("network", "host");
    assert_int_equal(egress_match_name(&p, "x.org", 0), VERDICT_ALLOW);
    assert_int_equal(egress_match_name(&p, "a.y.org", 0), VERDICT_ASK);
    assert_int_equal(egress_match_name(&p, "a.v.org", 0), VERDICT_ALLOW);
    assert_int_equal(egress_match_name(&p, "bad.y.org", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&p, "q.org", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&p, "z.org", 0), VERDICT_ALLOW);
    assert_int_equal(egress_match_name(&p, "db.host.pale", 0), VERDICT_ALLOW);
    assert_int_equal(egress_match_name(&p, "x.host.pale", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&open, "q.org", 0), VERDICT_ALLOW);
    assert_int_equal(egress_match_name(&open, "bad.org", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&open, "x.host.pale", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&none, "q.org", 0), VERDICT_DENY);
    assert_int_equal(egress_match_name(&host, "q.org", 0), VERDICT_ALLOW);
}

static void egress_cuts_the_text_of_a_long_rule(void **state)
{
    (void)state;
    own_policy p = POLICY("network", "filtered", "network.egress", "x.org:1,2,3,4,5,6,7,8,9,10,11,12,13,14");
    char text[24];
    struct egress_verdict v = JUDGE(&p, "x.org", NULL, 1);
    assert_string_equal(egress_ground_text(&p, &v, text, sizeof(text)), "network.egress x.org:1,");
}

TESTS(cmocka_unit_test(egress_lets_deny_win_over_allow_over_ask),
      cmocka_unit_test(egress_refuses_what_is_not_public_unless_a_range_names_it), cmocka_unit_test(egress_opens_ranges_that_are_named),
      cmocka_unit_test(egress_opens_ports_of_the_host_by_their_names_alone),
      cmocka_unit_test(egress_tells_the_lowest_quotas_and_which_rules_count), cmocka_unit_test(egress_holds_rules_to_their_time),
      cmocka_unit_test(egress_judges_requests_of_plain_http), cmocka_unit_test(egress_answers_names_for_dns),
      cmocka_unit_test(egress_cuts_the_text_of_a_long_rule))

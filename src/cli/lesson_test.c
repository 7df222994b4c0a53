/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for cli/lesson and cli/netline. */
#include "cli/lesson.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

static struct lesson lesson;

static void take(const char *event, const char *kind, const char *host, unsigned port, const char *rule)
{
    char line[1024];
    struct netline n;
    int len =
        snprintf(line, sizeof(line), "{\"event\":\"%s\",\"kind\":\"%s\",\"host\":\"%s\",\"port\":%u,\"rule\":\"%s\",\"reason\":\"so\"}",
                 event, kind, host, port, rule);
    assert_true(netline_parse(line, (size_t)len, &n));
    lesson_take(&lesson, &n);
}

static void allow(const char *host, unsigned port)
{
    take("net.allow", "tcp", host, port, "network.egress x");
}

static void yields(const char *want)
{
    own_buf b = {0};
    buf_init(&b, 65536);
    lesson_settle(&lesson);
    for (size_t i = 0; i < lesson.hosts; i++) {
        const struct lesson_host *h = &lesson.host[i];
        if (h->is_gone)
            continue;
        buf_addf(&b, "%s", h->name);
        for (size_t k = 0; k < h->ports; k++)
            buf_addf(&b, "%c%u", k ? ',' : ':', h->port[k]);
        buf_addf(&b, "%s ", h->guessed ? "?" : "");
    }
    assert_string_equal(buf_text(&b), want);
    lesson = (struct lesson){0};
}

static void lesson_knows_each_name_with_its_ports(void **state)
{
    (void)state;
    allow("b.test", 443);
    allow("b.test", 80);
    allow("b.test", 443);
    take("net.deny", "tcp", "a.test", 22, "network.mode filtered");
    take("net.ask", "tcp", "c.test", 1, "network.egress c.test=ask");
    take("net.end", "tcp", "d.test", 1, "");
    yields("a.test:22 b.test:80,443 c.test:1 ");
}

static void lesson_guesses_a_port_where_only_the_name_was_asked_for(void **state)
{
    (void)state;
    take("net.deny", "name", "a.test", 53, "network.egress");
    take("net.deny", "name", "b.test", 53, "network.egress");
    take("net.deny", "tcp", "b.test", 8080, "network.mode filtered");
    yields("a.test:443? b.test:8080 ");
}

static void lesson_makes_a_pattern_of_more_than_three_siblings_with_the_same_ports(void **state)
{
    (void)state;
    static const char *const names[] = {"a.x.test", "b.x.test", "c.x.test", "d.x.test"};
    for (size_t i = 0; i < 3; i++)
        allow(names[i], 443);
    yields("a.x.test:443 b.x.test:443 c.x.test:443 ");
    for (size_t i = 0; i < 4; i++)
        allow(names[i], 443);
    allow("e.x.test", 80);
    allow("x.test", 443);
    yields("*.x.test:443 e.x.test:80 x.test:443 ");
}

static void lesson_makes_no_pattern_over_what_may_be_a_registry(void **state)
{
    (void)state;
    static const char *const names[] = {"a.co.uk", "b.co.uk", "c.co.uk", "d.co.uk", "a.test", "b.test", "c.test", "d.test"};
    for (size_t i = 0; i < 8; i++)
        allow(names[i], 443);
    yields("a.co.uk:443 a.test:443 b.co.uk:443 b.test:443 c.co.uk:443 c.test:443 d.co.uk:443 d.test:443 ");
}

static void lesson_leaves_out_what_no_rule_should_open(void **state)
{
    (void)state;
    take("net.deny", "tcp", "a.test", 80, "network.egress a.test=deny");
    take("net.deny", "name", "b.test", 53, "address private");
    take("net.deny", "tcp", "c.test", 80, "quarantine");
    take("net.deny", "udp", "d.test", 443, "network");
    take("net.allow", "tcp", "", 80, "network.egress 10.0.0.0/8");
    take("net.allow", "tcp", "UPPER.test", 80, "");
    take("net.allow", "tcp", "bad name: [x", 80, "");
    take("net.allow", "tcp", "db.host.pale", 5432, "");
    assert_int_equal(lesson.lefts, 8);
    yields("");
}

static void lesson_holds_no_more_than_it_has_room_for(void **state)
{
    (void)state;
    char name[64];
    for (unsigned i = 0; i < LESSON_HOSTS_MAX + 5; i++) {
        snprintf(name, sizeof(name), "a.n%u.test", i);
        allow(name, 443);
        take("net.deny", "tcp", name, 80, "quarantine");
    }
    for (unsigned i = 0; i < LESSON_PORTS_MAX + 3; i++)
        allow("a.n0.test", 1000 + i);
    assert_int_equal(lesson.hosts, LESSON_HOSTS_MAX);
    assert_int_equal(lesson.lefts, LESSON_LEFT_MAX);
    assert_int_equal(lesson.more, 5 + LESSON_HOSTS_MAX + 5 - LESSON_LEFT_MAX + 4);
    lesson = (struct lesson){0};
}

static void meters_add_what_the_log_does_not_tell(void **state)
{
    (void)state;
    allow("a.test", 80);
    lesson_take_meter(&lesson, "a.test", 443, 5, 0);
    lesson_take_meter(&lesson, "b.test", 443, 5, 0);
    lesson_take_meter(&lesson, "c.test", 443, 0, 5);
    assert_int_equal(lesson.lefts, 1);
    assert_string_equal(lesson.left[0].what, "c.test port 443");
    yields("a.test:80 b.test:443 ");
}

static void records_of_other_things_are_no_netlines(void **state)
{
    (void)state;
    static const char *const lines[] = {"",
                                        "{",
                                        "{\"event\":\"exec\"}",
                                        "{\"event\":\"net.allow\"",
                                        "[\"event\":\"net.allow\"]",
                                        "{\"what\":\"\\\"event\\\":\\\"net.allow\\\"\",\"event\":\"exec\"}"};
    struct netline n;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_false(netline_parse(lines[i], strlen(lines[i]), &n));
    static const char good[] = "{\"event\":\"net.end\",\"port\":70000,\"in\":18446744073709551615}";
    for (size_t i = 0; i < sizeof(good) - 1; i++)
        assert_false(netline_parse(good, i, &n));
    assert_true(netline_parse(good, sizeof(good) - 1, &n));
    assert_int_equal(n.port, 0);
    assert_true(n.in == UINT64_MAX);
}

TESTS(cmocka_unit_test(lesson_knows_each_name_with_its_ports), cmocka_unit_test(lesson_guesses_a_port_where_only_the_name_was_asked_for),
      cmocka_unit_test(lesson_makes_a_pattern_of_more_than_three_siblings_with_the_same_ports),
      cmocka_unit_test(lesson_makes_no_pattern_over_what_may_be_a_registry), cmocka_unit_test(lesson_leaves_out_what_no_rule_should_open),
      cmocka_unit_test(lesson_holds_no_more_than_it_has_room_for), cmocka_unit_test(meters_add_what_the_log_does_not_tell),
      cmocka_unit_test(records_of_other_things_are_no_netlines))

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/scope: the conversation. The real thing is tried in a guest with systemd (tools/guest). */
#include "base/test.h"

#include "confine/dbus.h"
#include "confine/scope.h"

#define GREETING "OK 0123456789abcdef0123456789abcdef\r\n"

/* What a manager says, built with our own writer: a call whose type byte is changed. */
struct speech {
    uint8_t mem[4096];
    size_t len;
};

static void say_greeting(struct speech *s, const char *text)
{
    memcpy(s->mem, text, strlen(text));
    s->len = strlen(text);
}

static void say(struct speech *s, enum dbus_type type, const char *member, const char *unit, const char *result)
{
    const struct dbus_call c = {4, NULL, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", member, result ? "uoss" : "s"};
    struct dbus_writer w;
    dbus_start(&w, s->mem + s->len, sizeof(s->mem) - s->len);
    dbus_begin(&w, &c);
    if (result) {
        dbus_put_u32(&w, 7);
        dbus_put_text(&w, "/org/freedesktop/systemd1/job/7");
    }
    dbus_put_text(&w, unit);
    if (result)
        dbus_put_text(&w, result);
    dbus_end(&w);
    assert_false(w.full);
    s->mem[s->len + 1] = (uint8_t)type;
    s->len += w.len;
}

static struct scope_talk talk(void)
{
    return (struct scope_talk){.unit = "pale-1.scope"};
}

static enum scope_news hear_all(const struct speech *s, struct scope_talk *t)
{
    size_t used;
    return scope_hear(t, s->mem, s->len, &used);
}

static void hear_is_ready_when_our_job_is_done(void **state)
{
    struct speech s;
    struct scope_talk t = talk();
    size_t used = 0;
    (void)state;
    say_greeting(&s, GREETING);
    say(&s, DBUS_RETURN, "x", ":1.7", NULL);
    say(&s, DBUS_SIGNAL, "NameAcquired", ":1.7", NULL);
    say(&s, DBUS_SIGNAL, "JobRemoved", "other.service", "failed");
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "done");
    assert_int_equal(scope_hear(&t, s.mem, s.len, &used), SCOPE_READY);
    assert_int_equal(used, s.len);
}

static void hear_wants_more_for_every_prefix(void **state)
{
    struct speech s;
    (void)state;
    say_greeting(&s, GREETING);
    say(&s, DBUS_RETURN, "x", ":1.7", NULL);
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "done");
    for (size_t n = 0; n < s.len; n++) {
        struct scope_talk t = talk();
        size_t first = 0, second = 0;
        assert_int_equal(scope_hear(&t, s.mem, n, &first), SCOPE_NEED_MORE);
        assert_true(first <= n);
        assert_int_equal(scope_hear(&t, s.mem + first, s.len - first, &second), SCOPE_READY);
        assert_int_equal(first + second, s.len);
    }
}

static void hear_tells_why_it_was_refused(void **state)
{
    struct speech s;
    struct scope_talk t = talk();
    (void)state;
    say_greeting(&s, GREETING);
    say(&s, DBUS_ERROR, "x", "Unit pale-1.scope was already loaded\33[1m", NULL);
    assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
    assert_string_equal(t.reason, "systemd refuses a scope: Unit pale-1.scope was already loaded\\x1b[1m");
    t = talk();
    say_greeting(&s, GREETING);
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "failed");
    assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
    assert_string_equal(t.reason, "systemd could not make a scope: failed");
}

static void hear_believes_only_who_answered(void **state)
{
    struct speech s;
    struct scope_talk t = {.unit = "pale-1.scope", .manager = ":1.1"};
    (void)state;
    say_greeting(&s, GREETING);
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "failed");
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "done");
    assert_int_equal(hear_all(&s, &t), SCOPE_NEED_MORE);
}

static void hear_refuses_who_does_not_let_us_in(void **state)
{
    static const char *const greetings[] = {"REJECTED EXTERNAL\r\n", "R", "\n", "OK\n", "OK x\n", "HTTP/1.1 400 Bad Request\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(greetings) / sizeof(greetings[0]); i++) {
        struct speech s;
        struct scope_talk t = talk();
        say_greeting(&s, greetings[i]);
        assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
        assert_true(t.reason[0]);
    }
}

static void hear_refuses_a_greeting_without_end(void **state)
{
    struct speech s;
    struct scope_talk t = talk();
    (void)state;
    memset(s.mem, 'a', sizeof(s.mem));
    memcpy(s.mem, "OK ", 3);
    s.len = 300;
    assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
}

static void hear_refuses_garbage_after_the_greeting(void **state)
{
    struct speech s;
    struct scope_talk t = talk();
    (void)state;
    say_greeting(&s, GREETING "garbage");
    assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
}

static void hear_refuses_a_body_that_is_not_what_its_signature_says(void **state)
{
    struct speech s;
    struct scope_talk t = talk();
    (void)state;
    say_greeting(&s, GREETING);
    size_t at = s.len;
    say(&s, DBUS_SIGNAL, "JobRemoved", "pale-1.scope", "done");
    struct dbus_message m;
    size_t used;
    assert_int_equal(dbus_parse(s.mem + at, s.len - at, &m, &used), 1);
    s.mem[(size_t)(m.body - s.mem) + 4] = 200; /* the length of the job's path */
    assert_int_equal(hear_all(&s, &t), SCOPE_REFUSED);
}

static void write_names_the_unit_and_asks_for_delegation(void **state)
{
    const struct scope_talk t = talk();
    uint8_t mem[2048];
    struct dbus_message m;
    size_t used, n = scope_write(&t, "pale box b", 1000, true, mem, sizeof(mem)), at;
    static const char head[] = "\0AUTH EXTERNAL 31303030\r\nBEGIN\r\n";
    static const char *const members[] = {"Hello", "AddMatch", "StartTransientUnit"};
    (void)state;
    at = sizeof(head) - 1;
    assert_true(n > at);
    assert_memory_equal(mem, head, at);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dbus_parse(mem + at, n - at, &m, &used), 1);
        assert_string_equal(m.member, members[i]);
        assert_int_equal(m.serial, i + 1);
        at += used;
    }
    assert_int_equal(at, n);
    assert_string_equal(m.destination, "org.freedesktop.systemd1");
    struct dbus_reader r = dbus_body(&m);
    assert_string_equal(dbus_take_text(&r), "pale-1.scope");
    assert_string_equal(dbus_take_text(&r), "fail");
    assert_non_null(memmem(m.body, m.body_len, "DelegateControllers\0\2as\0", 24));
}

static void write_without_a_bus_speaks_to_the_manager_alone(void **state)
{
    const struct scope_talk t = talk();
    uint8_t mem[2048];
    struct dbus_message m;
    static const char head[] = "\0AUTH EXTERNAL 30\r\nBEGIN\r\n";
    size_t used, n = scope_write(&t, "pale box b", 0, false, mem, sizeof(mem)), at = sizeof(head) - 1;
    (void)state;
    assert_memory_equal(mem, head, at);
    assert_int_equal(dbus_parse(mem + at, n - at, &m, &used), 1);
    assert_string_equal(m.member, "StartTransientUnit");
    assert_string_equal(m.destination, "");
    assert_int_equal(at + used, n);
}

static void write_refuses_memory_that_is_too_small(void **state)
{
    const struct scope_talk t = talk();
    uint8_t mem[2048];
    size_t whole = scope_write(&t, "d", 1000, true, mem, sizeof(mem));
    (void)state;
    for (size_t cap = 0; cap < whole; cap++)
        assert_int_equal(scope_write(&t, "d", 1000, true, mem, cap), 0);
}

TESTS(cmocka_unit_test(hear_is_ready_when_our_job_is_done), cmocka_unit_test(hear_wants_more_for_every_prefix),
      cmocka_unit_test(hear_tells_why_it_was_refused), cmocka_unit_test(hear_believes_only_who_answered),
      cmocka_unit_test(hear_refuses_who_does_not_let_us_in), cmocka_unit_test(hear_refuses_a_greeting_without_end),
      cmocka_unit_test(hear_refuses_garbage_after_the_greeting), cmocka_unit_test(hear_refuses_a_body_that_is_not_what_its_signature_says),
      cmocka_unit_test(write_names_the_unit_and_asks_for_delegation), cmocka_unit_test(write_without_a_bus_speaks_to_the_manager_alone),
      cmocka_unit_test(write_refuses_memory_that_is_too_small))

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for wire/message. */
#include "base/test.h"

#include "wire/message.h"

static uint8_t mem[65536];
static struct msg_exec in, out;

static size_t sample(void)
{
    struct record_writer w;
    in = (struct msg_exec){
        .flags = EXEC_TTY | EXEC_STDIN, .rows = 24, .cols = 80, .user = "agent", .cwd = "/tmp", .label = "", .key = "again", .cpu_ms = 5};
    in.argv[0] = "sh";
    in.argv[1] = "-c";
    in.argv[2] = "";
    in.argc = 3;
    in.env[0] = "A=b";
    in.envc = 1;
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&in, &w);
    assert_false(w.full);
    return w.len;
}

static void exec_round_trips(void **state)
{
    (void)state;
    size_t n = sample();
    assert_true(msg_exec_parse(mem, n, &out));
    assert_int_equal(out.flags, in.flags);
    assert_int_equal(out.argc, 3);
    assert_string_equal(out.argv[2], "");
    assert_null(out.argv[3]);
    assert_string_equal(out.env[0], "A=b");
    assert_string_equal(out.cwd, "/tmp");
    assert_string_equal(out.key, "again");
    assert_int_equal(out.cpu_ms, 5);
}

static void exec_refuses_prefixes_and_trailing_bytes(void **state)
{
    (void)state;
    size_t n = sample(), good = 0;
    for (size_t i = 0; i < n; i++)
        good += msg_exec_parse(mem, i, &out);
    /* Only cuts between list items leave a whole request: one, two or three arguments and no environment. */
    assert_int_equal(good, 3);
    mem[n] = 0;
    assert_false(msg_exec_parse(mem, n + 1, &out));
}

static void exec_refuses_unknown_flags_nul_and_nameless_variables(void **state)
{
    (void)state;
    struct record_writer w;
    sample();
    in.flags = 1 << 20;
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&in, &w);
    assert_false(msg_exec_parse(mem, w.len, &out));
    in.flags = 0;
    in.env[0] = "=x";
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&in, &w);
    assert_false(msg_exec_parse(mem, w.len, &out));
    in.envc = 0;
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&in, &w);
    record_put(&w, 100, "a\0b", 4);
    assert_false(msg_exec_parse(mem, w.len, &out));
}

static void small_messages_round_trip_and_refuse_every_prefix(void **state)
{
    (void)state;
    struct msg_result r = {.flags = RESULT_OOM, .status = 137, .signal = 9, .message = "out of memory"}, back;
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_result_write(&r, &w);
    for (size_t i = 0; i < w.len; i++)
        assert_false(msg_result_parse(mem, i, &back));
    assert_true(msg_result_parse(mem, w.len, &back));
    assert_int_equal(back.status, 137);
    assert_string_equal(back.message, "out of memory");
    mem[0] = 9;
    assert_false(msg_result_parse(mem, w.len, &back));
}

static void host_round_trips_and_refuses_every_prefix(void **state)
{
    (void)state;
    struct msg_host h = {.name = "x.org", .port = 443, .connections = 1, .refused = 2, .in = 3, .out = UINT64_MAX}, back;
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_host_write(&h, &w);
    for (size_t i = 0; i < w.len; i++)
        assert_false(msg_host_parse(mem, i, &back));
    assert_true(msg_host_parse(mem, w.len, &back));
    assert_string_equal(back.name, "x.org");
    assert_true(back.port == 443 && back.connections == 1 && back.refused == 2 && back.in == 3 && back.out == UINT64_MAX);
}

static void questions_and_verdicts_round_trip_and_refuse_every_prefix(void **state)
{
    (void)state;
    const struct msg_question q = {.id = "389f9a72",
                                   .state = QUESTION_DENIED,
                                   .host = "10.0.0.5",
                                   .name = "x.test",
                                   .port = 443,
                                   .rule = "network.egress 10.0.0.0/8=ask",
                                   .job = 7,
                                   .by = "operator",
                                   .scope = "box"};
    const struct msg_verdict v = {.question = "389f9a72",
                                  .box = "0123456789abcdef",
                                  .host = "x.test",
                                  .port = 80,
                                  .allow = true,
                                  .scope = APPLIES_ALWAYS,
                                  .until_unix = 9};
    struct msg_question question;
    struct msg_verdict verdict;
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_question_write(&q, &w);
    for (size_t i = 0; i < w.len; i++)
        assert_false(msg_question_parse(mem, i, &question));
    assert_true(msg_question_parse(mem, w.len, &question));
    assert_string_equal(question.name, "x.test");
    assert_string_equal(msg_question_state(&question), "denied");
    record_start(&w, mem, sizeof(mem));
    msg_verdict_write(&v, &w);
    for (size_t i = 0; i < w.len; i++)
        assert_false(msg_verdict_parse(mem, i, &verdict));
    assert_true(msg_verdict_parse(mem, w.len, &verdict));
    assert_true(verdict.allow && verdict.port == 80 && verdict.scope == APPLIES_ALWAYS && verdict.until_unix == 9);
    mem[w.len] = 0;
    assert_false(msg_verdict_parse(mem, w.len + 1, &verdict));
}

TESTS(cmocka_unit_test(host_round_trips_and_refuses_every_prefix),
      cmocka_unit_test(questions_and_verdicts_round_trip_and_refuse_every_prefix), cmocka_unit_test(exec_round_trips),
      cmocka_unit_test(exec_refuses_prefixes_and_trailing_bytes), cmocka_unit_test(exec_refuses_unknown_flags_nul_and_nameless_variables),
      cmocka_unit_test(small_messages_round_trip_and_refuse_every_prefix))

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for rest/route. */
#include "base/test.h"

#include <stdio.h>
#include <string.h>

#include "ops/values.h"
#include "rest/route.h"

static struct call *asked(const char *method, const char *target, unsigned *ret_status)
{
    struct call *c = call_new(NULL);
    struct http_text m = {method, strlen(method)}, t = {target, strlen(target)};
    char allow[128];
    assert_true(target_parse(&t, &c->target));
    c->op = route_find(&m, &c->target, ret_status, allow, sizeof(allow));
    return c;
}

static const char *name_of(const char *method, const char *target)
{
    unsigned status = 0;
    struct call *c = asked(method, target, &status);
    static char name[64];
    snprintf(name, sizeof(name), "%s", c->op ? c->op->name : status == 405 ? "405" : "404");
    call_drop(c);
    return name;
}

static void paths_lead_to_operations(void **state)
{
    (void)state;
    assert_string_equal(name_of("GET", "/v1/boxes"), "box.list");
    assert_string_equal(name_of("POST", "/v1/boxes"), "box.create");
    assert_string_equal(name_of("GET", "/v1/boxes/a"), "box.inspect");
    assert_string_equal(name_of("GET", "/v1/boxes/a/jobs/1/logs?offset=3"), "job.logs");
    assert_string_equal(name_of("GET", "/v1/boxes/a/files/list?path=/"), "file.list");
    assert_string_equal(name_of("PATCH", "/v1/health"), "405");
    assert_string_equal(name_of("GET", "/v2/boxes"), "404");
    assert_string_equal(name_of("GET", "/"), "404");
    assert_string_equal(name_of("get", "/v1/boxes"), "405");
}

/* A box may be called anything that is one segment; a slash in it, however written, is none of the path's. */
static void a_segment_stays_one(void **state)
{
    (void)state;
    unsigned status;
    struct call *c = asked("GET", "/v1/boxes/a%2fjobs", &status);
    assert_non_null(c->op);
    assert_string_equal(c->op->name, "box.inspect");
    assert_string_equal(call_param(c, "box"), "a/jobs");
    call_drop(c);
}

static int body(const char *path, const char *text, struct pale_err *e)
{
    unsigned status;
    struct call *c = asked("POST", path, &status);
    assert_non_null(c->op);
    int r = values_body(c, text, strlen(text), e);
    call_drop(c);
    return r;
}

static void good_bodies_pass(void **state)
{
    (void)state;
    struct pale_err e;
    static const char *const rows[][2] = {
        {"/v1/boxes", ""},
        {"/v1/boxes", "{}"},
        {"/v1/boxes", "{\"name\":\"a\",\"ttl\":\"5m\",\"idle\":30,\"set\":{\"read\":[\"/a\",\"/b\"]},\"policy\":{}}"},
        {"/v1/boxes/a/exec", "{\"command\":\"ls\"}"},
        {"/v1/boxes/a/exec", "{\"command\":[\"ls\",\"-l\"],\"env\":{\"A\":\"b\"},\"timeout\":1.5,\"cwd\":null}"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(body(rows[i][0], rows[i][1], &e), 0);
}

static void bad_bodies_are_named(void **state)
{
    (void)state;
    struct pale_err e;
    static const char *const rows[][3] = {{"/v1/boxes", "[]", "object"},
                                          {"/v1/boxes", "{", "not JSON"},
                                          {"/v1/boxes", "{\"name\":1}", "name"},
                                          {"/v1/boxes", "{\"nmae\":\"a\"}", "did you mean name"},
                                          {"/v1/boxes", "{\"name\":\"a\",\"name\":\"b\"}", "not JSON"},
                                          {"/v1/boxes", "{\"ttl\":\"soon\"}", "ttl"},
                                          {"/v1/boxes", "{\"ttl\":-1}", "ttl"},
                                          {"/v1/boxes", "{\"start\":1}", "start"},
                                          {"/v1/boxes", "{\"set\":{\"a\":1}}", "set"},
                                          {"/v1/boxes", "{\"name\":\"\\u0000\"}", "not JSON"},
                                          {"/v1/boxes/a/exec", "{}", "needs command"},
                                          {"/v1/boxes/a/exec", "{\"command\":[]}", "command"},
                                          {"/v1/boxes/a/exec", "{\"command\":\"\"}", "command"},
                                          {"/v1/boxes/a/exec", "{\"command\":[\"a\",1]}", "command"},
                                          {"/v1/boxes/a/jobs", "{\"command\":\"a\",\"rows\":70000}", "rows"},
                                          {"/v1/boxes/a/jobs", "{\"command\":\"a\",\"rows\":1.5}", "rows"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(body(rows[i][0], rows[i][1], &e), -PALE_BAD_INPUT);
        assert_non_null(strstr(e.text, rows[i][2]));
    }
}

static void bodies_with_a_nul_are_refused(void **state)
{
    (void)state;
    struct pale_err e;
    unsigned status;
    static const char text[] = "{\"name\":\"a\"\0}";
    struct call *c = asked("POST", "/v1/boxes", &status);
    assert_int_equal(values_body(c, text, sizeof(text) - 1, &e), -PALE_BAD_INPUT);
    assert_non_null(strstr(e.text, "not JSON"));
    call_drop(c);
}

static void deep_bodies_are_refused(void **state)
{
    (void)state;
    struct pale_err e;
    char text[256] = "{\"policy\":";
    for (int i = 0; i < 20; i++)
        strncat(text, "{\"a\":", sizeof(text) - strlen(text) - 1);
    strncat(text, "1", 2);
    for (int i = 0; i < 21; i++)
        strncat(text, "}", 2);
    assert_int_equal(body("/v1/boxes", text, &e), -PALE_BAD_INPUT);
    assert_non_null(strstr(e.text, "nested"));
}

static void queries_are_read_by_their_fields(void **state)
{
    (void)state;
    struct pale_err e;
    unsigned status;
    static const struct {
        const char *target;
        int code;
    } rows[] = {{"/v1/boxes/a/jobs/1/logs?offset=12&follow=true", 0},
                {"/v1/boxes/a/jobs/1/logs?offset=x", -PALE_BAD_INPUT},
                {"/v1/boxes/a/jobs/1/logs?offset=-1", -PALE_BAD_INPUT},
                {"/v1/boxes/a/jobs/1/logs?follow=maybe", -PALE_BAD_INPUT},
                {"/v1/boxes/a/jobs/1/logs?of=1", -PALE_BAD_INPUT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct call *c = asked("GET", rows[i].target, &status);
        assert_int_equal(values_query(c, &e), rows[i].code);
        if (i == 0) {
            assert_int_equal(call_number(c, "offset", 0), 12);
            assert_int_equal(call_number(c, "follow", 0), 1);
            assert_string_equal(call_param(c, "job"), "1");
        }
        call_drop(c);
    }
}

/* What nobody must forget when a row is added. */
static void every_operation_is_whole(void **state)
{
    (void)state;
    for (const struct op *o = op_table; o->name; o++) {
        size_t n = 0;
        for (const struct op_field *f = o->fields; f && f->name; f++, n++) {
            assert_non_null(f->help);
            assert_true(f->where == IN_QUERY || o->input == INPUT_JSON);
        }
        assert_true(n <= OP_FIELDS_MAX);
        assert_true(o->run && o->summary && o->path[0] == '/');
        assert_true(o->output == OUTPUT_NOTHING ? o->status == 204 : o->status != 204);
        for (const struct op *other = op_table; other < o; other++)
            assert_true(strcmp(o->name, other->name) != 0 && (strcmp(o->path, other->path) != 0 || strcmp(o->method, other->method) != 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_operations), cmocka_unit_test(a_segment_stays_one),
        cmocka_unit_test(good_bodies_pass),         cmocka_unit_test(bad_bodies_are_named),
        cmocka_unit_test(deep_bodies_are_refused),  cmocka_unit_test(queries_are_read_by_their_fields),
        cmocka_unit_test(every_operation_is_whole), cmocka_unit_test(bodies_with_a_nul_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

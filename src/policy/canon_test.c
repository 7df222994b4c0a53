/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/canon. */
#include "policy/policy_test.h"

#include "base/limits.h"
#include "base/sha256.h"

static void write_text(const struct policy *p, struct buf *out)
{
    buf_init(out, POLICY_TEXT_MAX);
    policy_write(p, out);
    assert_false(out->failed);
}

static void assert_same(const struct policy *a, const struct policy *b)
{
    own_buf x = {0}, y = {0};
    write_text(a, &x);
    write_text(b, &y);
    assert_string_equal(buf_text(&x), buf_text(&y));
}

static int parse(const char *text, struct policy *ret, struct pale_err *e)
{
    return policy_parse(text, strlen(text), ret, e);
}

static void canon_round_trips_each_sample_of_each_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        own_policy p = POLICY(samples[i].key, samples[i].value), q = {0};
        own_buf text = {0};
        struct pale_err e = {0};
        write_text(&p, &text);
        if (parse(buf_text(&text), &q, &e) < 0)
            fail_msg("%s %s: %s", samples[i].key, samples[i].value, e.text);
        assert_same(&p, &q);
    }
}

static void canon_has_a_sample_for_every_key(void **state)
{
    (void)state;
    const struct field *f;
    for (size_t k = 0; (f = field_at(k)); k++) {
        size_t i = 0;
        while (i < SAMPLE_COUNT && field_find(samples[i].key) != f)
            i++;
        if (i == SAMPLE_COUNT)
            fail_msg("no sample for %s", f->key);
    }
}

static void canon_round_trips_random_policies(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 500; i++) {
        own_policy p = some_policy(&seed, 40), q = {0};
        own_buf text = {0};
        struct pale_err e = {0};
        write_text(&p, &text);
        assert_int_equal(parse(buf_text(&text), &q, &e), 0);
        assert_same(&p, &q);
    }
}

static void canon_does_not_depend_on_the_order_of_lists(void **state)
{
    (void)state;
    own_policy a = POLICY("read", "/a", "read", "/b", "volumes", "/x:/y", "volumes", "/x:/a", "network.egress", "b.org", "network.egress",
                          "a.org:443,80", "env.pass", "Z", "env.pass", "A");
    own_policy b = POLICY("read", "/b", "read", "/a", "read", "/b", "volumes", "/x:/a:rw", "volumes", "/x:/y", "network.egress",
                          "A.org:80,443,80", "network.egress", "b.org", "env.pass", "A", "env.pass", "Z");
    char x[SHA256_HEX], y[SHA256_HEX];
    assert_same(&a, &b);
    policy_digest(&a, x);
    policy_digest(&b, y);
    assert_string_equal(x, y);
    assert_int_equal(strlen(x), 64);
    set(&b, "tier", "native");
    policy_digest(&b, y);
    assert_string_not_equal(x, y);
}

static void canon_refuses_every_prefix(void **state)
{
    (void)state;
    uint64_t seed = 11;
    own_policy p = some_policy(&seed, 60);
    own_buf text = {0};
    write_text(&p, &text);
    for (size_t n = 0; n < text.len; n++) {
        struct policy q = {.volume_count = 42};
        struct pale_err e = {0};
        assert_true(policy_parse((const char *)text.data, n, &q, &e) < 0);
        assert_int_equal(q.volume_count, 42);
        assert_has(e.text, "policy text");
    }
}

/* The canonical defaults with one text put in place of another. */
static void edited(const char *from, const char *to, struct buf *out)
{
    own_policy p = POLICY();
    own_buf text = {0};
    write_text(&p, &text);
    const char *all = buf_text(&text), *at = strstr(all, from);
    assert_non_null(at);
    buf_init(out, POLICY_TEXT_MAX * 2);
    buf_add(out, all, (size_t)(at - all));
    buf_add_text(out, to);
    buf_add_text(out, at + strlen(from));
}

static void canon_refuses_what_is_not_its_own_form(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {"pale-policy 1", "pale-policy 2", "line 1"},
        {"tier auto\n", "", "tier is missing"},
        {"tier auto\n", "tier auto\ntier auto\n", "image is missing"},
        {"tier auto", "tier  auto", "canonical form"},
        {"tier auto", "tier Auto", "is not auto"},
        {"tier auto", "tier %61uto", "canonical form"},
        {"tier auto", "tier seccomp", "canonical form"},
        {"tier auto", "tier aut\xc3\xb6", "canonical form"},
        {"tier auto", "tier a%00", "canonical form"},
        {"tier auto", "tier a%4", "canonical form"},
        {"tier auto", "tier a%4g", "canonical form"},
        {"tier auto", "tier auto\r", "canonical form"},
        {"tier auto", "tier", "tier is missing"},
        {"image -\n", "image -\nimge x\n", "project.mode is missing"},
        {"limits.memory 4294967296 default", "limits.memory 4294967296", "neither asked nor default"},
        {"limits.memory 4294967296 default", "limits.memory 4G asked", "canonical form"},
        {"limits.memory 4294967296 default", "limits.memory 0 asked", "nothing run"},
        {"limits.disk none default", "limits.disk none asked", "canonical form"},
        {"volume_root -\n", "write /a\nread /a\nvolume_root -\n", "volume_root is missing"},
        {"volume_root -\n", "volumes /a:/b\nvolume_root -\n", "canonical form"},
        {"volume_root -\n", "volumes /a:/b:rw\nvolumes /a:/b:rw\nvolume_root -\n", "canonical form"},
        {"volume_root -\n", "volumes /a:/c:rw\nvolumes /a:/b:rw\nvolume_root -\n", "canonical form"},
        {"guard .vscode\n", "guard -.claude\n", "canonical form"},
        {"end\n", "end\n\n", "after the end"},
        {"end\n", "end", "cut off"},
        {"end\n", "wat 1\nend\n", "unknown or misplaced"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        own_buf text = {0};
        struct policy q = {0};
        struct pale_err e = {0};
        edited(bad[i].from, bad[i].to, &text);
        if (parse(buf_text(&text), &q, &e) == 0)
            fail_msg("case %zu (%s) was taken", i, bad[i].to);
        assert_has(e.text, bad[i].says);
    }
}

static void canon_refuses_nul_and_too_much(void **state)
{
    (void)state;
    own_policy p = POLICY();
    own_buf text = {0};
    struct policy q = {0};
    struct pale_err e = {0};
    write_text(&p, &text);
    text.data[20] = 0;
    assert_true(policy_parse((const char *)text.data, text.len, &q, &e) < 0);
    own_mem char *big = calloc(1, POLICY_TEXT_MAX + 1);
    assert_int_equal(policy_parse(big, POLICY_TEXT_MAX + 1, &q, &e), -PALE_LIMIT);
}

TESTS(cmocka_unit_test(canon_round_trips_each_sample_of_each_key), cmocka_unit_test(canon_has_a_sample_for_every_key),
      cmocka_unit_test(canon_round_trips_random_policies), cmocka_unit_test(canon_does_not_depend_on_the_order_of_lists),
      cmocka_unit_test(canon_refuses_every_prefix), cmocka_unit_test(canon_refuses_what_is_not_its_own_form),
      cmocka_unit_test(canon_refuses_nul_and_too_much))

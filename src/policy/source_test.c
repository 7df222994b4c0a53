/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for policy/source. */
#include "policy/policy_test.h"

#include <stdio.h>

#include "base/jsonread.h"
#include "base/limits.h"

#define ROUNDS 300

static void write_source(const struct policy *p, struct buf *out)
{
    struct pale_err e;
    struct json j;
    buf_init(out, POLICY_TEXT_MAX);
    json_start(&j, out);
    assert_int_equal(policy_source(p, &j, NULL, &e), 0);
}

/* Sets what stands under a key, as the reader of policy files does. */
static void set_all(struct policy *p, const char *key, const struct jsonread *v, bool top)
{
    struct jsonread name, item;
    static char value[ENV_VALUE_MAX + 1], whole[ENV_VALUE_MAX + 200];
    char inner[128], word[128];
    if (v->kind == JSONREAD_TEXT)
        return set(p, key, jsonread_text(v, value, sizeof(value)));
    for (size_t pos = 0; jsonread_next(v, &pos, &name, &item);) {
        jsonread_text(&name, word, sizeof(word));
        if (v->kind == JSONREAD_LIST)
            set(p, key, jsonread_text(&item, value, sizeof(value)));
        else if (top) {
            snprintf(inner, sizeof(inner), "%s.%s", key, word);
            set_all(p, inner, &item, false);
        } else {
            snprintf(whole, sizeof(whole), "%s=%s", word, jsonread_text(&item, value, sizeof(value)));
            set(p, key, whole);
        }
    }
}

static void source_read_again_is_the_same_policy(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int i = 0; i < ROUNDS; i++) {
        own_policy p = some_policy(&seed, 30), q = POLICY();
        own_buf text = {0};
        struct jsonread v, key, item;
        char a[SHA256_HEX], b[SHA256_HEX], name[64];
        if (i % 3 == 0)
            set(&p, "guard", "-.vscode");
        write_source(&p, &text);
        assert_true(jsonread_parse((const char *)text.data, text.len, &v));
        for (size_t pos = 0; jsonread_next(&v, &pos, &key, &item);)
            set_all(&q, jsonread_text(&key, name, sizeof(name)), &item, true);
        policy_digest(&p, a);
        policy_digest(&q, b);
        if (strcmp(a, b) != 0)
            fail_msg("%s", buf_text(&text));
    }
}

static void source_of_the_defaults_is_empty(void **state)
{
    (void)state;
    own_policy p = POLICY();
    own_buf text = {0};
    write_source(&p, &text);
    assert_string_equal(buf_text(&text), "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(source_read_again_is_the_same_policy),
        cmocka_unit_test(source_of_the_defaults_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

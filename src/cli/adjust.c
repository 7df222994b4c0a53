/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the change of a box's policy from the command line: a file, keys with values on top of it, or on top of what there is. */
#include "cli/adjust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/amend.h"
#include "box/intake.h"
#include "cli/boxflags.h"
#include "cli/door.h"
#include "cli/far.h"

/* KEY=VALUE: the first of them is the third word. */
#define FIRST 2

static int split(const char *word, char key[64], const char **ret_value, struct pale_err *e)
{
    char shown[80];
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || (size_t)(equals - word) >= 64)
        return err_set(e, PALE_BAD_INPUT, "%s: write KEY=VALUE, such as network.egress=x.org:443 or network.egress=x.org=deny",
                       quote_into(shown, sizeof(shown), word, strlen(word)));
    snprintf(key, 64, "%.*s", (int)(equals - word), word);
    *ret_value = equals + 1;
    return 0;
}

static int copy(const struct policy *from, struct policy *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(from, &text);
    return text.failed ? err_nomem(e) : policy_parse(buf_text(&text), text.len, ret, e);
}

static int next(void *arg, const struct policy *old, struct policy *ret, struct pale_err *e)
{
    const struct args *a = arg;
    char key[64];
    const char *value = NULL;
    int r = args_has(a, "policy") ? boxflags_file(a, ret, e) : copy(old, ret, e);
    for (int i = FIRST; r == 0 && i < a->count; i++)
        if ((r = split(a->word[i], key, &value, e)) == 0)
            r = intake_set(ret, key, value, e);
    if (r == 0)
        r = intake_check(ret, old->project_path, e);
    bool had = old->network == NETWORK_HOST && ret->network == NETWORK_HOST;
    return r < 0 || had ? r : boxflags_check_host(a, ret->network, e);
}

static int tell(const struct args *a, const struct policy *old, const struct policy *new)
{
    own_buf b = {0}, lines = {0};
    struct json j;
    char digest[SHA256_HEX];
    buf_init(&b, 4 << 20);
    buf_init(&lines, 4 << 20);
    policy_digest(new, digest);
    if (a->json) {
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_text(&j, "policy_digest", digest);
        json_begin_list(&j, "changes");
        policy_diff(old, new, NULL, &j);
        json_end_list(&j);
        json_end_object(&j);
        return cli_json(&b);
    }
    if (policy_diff(old, new, &lines, NULL) == 0)
        printf("nothing changed\n");
    fputs(buf_text(&lines), stdout);
    return 0;
}

/* --- through a daemon elsewhere --- */

static int write_sets(const struct args *a, struct json *j, struct pale_err *e)
{
    char key[64], other[64];
    const char *value = NULL;
    int r = 0;
    json_begin_object(j, "set");
    for (int i = FIRST; r == 0 && i < a->count; i++) {
        bool seen = false;
        r = split(a->word[i], key, &value, e);
        for (int before = FIRST; r == 0 && before < i; before++)
            seen = seen || (split(a->word[before], other, &value, e) == 0 && strcmp(key, other) == 0);
        if (r < 0 || seen)
            continue;
        json_begin_list(j, key);
        for (int k = i; r == 0 && k < a->count; k++)
            if ((r = split(a->word[k], other, &value, e)) == 0 && strcmp(key, other) == 0)
                json_text(j, NULL, value);
        json_end_list(j);
    }
    json_end_object(j);
    return r;
}

static int write_order(const struct args *a, struct buf *ret, struct pale_err *e)
{
    own_policy file = {0};
    struct json j;
    json_start(&j, ret);
    json_begin_object(&j, NULL);
    int r = 0;
    if (args_has(a, "policy") && (r = boxflags_file(a, &file, e)) == 0)
        r = policy_source(&file, &j, "policy", e);
    if (r == 0 && a->count > FIRST)
        r = write_sets(a, &j, e);
    json_end_object(&j);
    return r == 0 && ret->failed ? err_set(e, PALE_LIMIT, "the policy is too long") : r;
}

static int adjust_far(struct args *a)
{
    struct pale_err e;
    own_door d = {0};
    own_policy old = {0}, new = {0};
    own_buf order = {0}, text = {0};
    char path[BOX_NAME_MAX + 40];
    buf_init(&order, 1 << 20);
    buf_init(&text, FAR_ANSWER_MAX);
    int r = write_order(a, &order, &e);
    if (r == 0)
        r = door_find(&d, a, a->word[1], &e);
    if (r == 0)
        r = far_policy(&d.remote, d.name, &old, NULL, &e);
    snprintf(path, sizeof(path), "/v1/boxes/%s/policy", d.name);
    if (r == 0)
        r = remote_call(&d.remote, "PUT", path, buf_text(&order), &text, &e);
    if (r == 0)
        r = far_policy(&d.remote, d.name, &new, NULL, &e);
    return r < 0 ? cli_fail(a, &e) : tell(a, &old, &new);
}

int adjust_policy(struct args *a)
{
    struct pale_err e;
    own_door d = {0};
    struct amend_policy x = {.next = next, .arg = a, .caller = "local"};
    if (a->count == FIRST && !args_has(a, "policy")) {
        err_set(&e, PALE_BAD_INPUT, "policy set: give --policy FILE, or KEY=VALUE …");
        return cli_fail(a, &e);
    }
    if (a->host)
        return adjust_far(a);
    int r = door_find(&d, a, a->word[1], &e);
    if (r == 0)
        r = amend_policy(&d.place, &x, &e);
    int status = r < 0 ? cli_fail(a, &e) : tell(a, &x.old, &x.new);
    policy_done(&x.old);
    policy_done(&x.new);
    return status;
}

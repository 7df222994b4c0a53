/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about policies: validate, policy show, diff, ask and set. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "box/intake.h"
#include "cli/adjust.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

/* A policy by what stands on the command line: a box's name, or a file (anything with a '/' or a '.'). *ret_told: what is wrong with the
 * file is said already. */
static int load(struct args *a, const char *what, struct policy *ret, bool *ret_told, struct pale_err *e)
{
    *ret_told = false;
    if (!strpbrk(what, "/.")) {
        own_door d = {0};
        int r = door_find(&d, a, what, e);
        return r < 0 ? r : door_policy(&d, ret, e);
    }
    own_buf out = {0}, complaints = {0};
    buf_init(&out, POLICY_TEXT_MAX);
    buf_init(&complaints, 65536);
    int r = intake_file(what, -1, a->json, &out, &complaints, e);
    *ret_told = r < 0 && e->code == PALE_BAD_INPUT && complaints.len > 0;
    if (*ret_told)
        fwrite(complaints.data, 1, complaints.len, a->json ? stdout : stderr);
    return r < 0 ? r : intake_parse(&out, ret, e);
}

/* What load could not print itself. */
static int fail(struct args *a, bool is_told, const struct pale_err *e)
{
    return a->json && is_told ? 1 : cli_fail(a, e);
}

static int invalid(const struct args *a)
{
    if (!a->json)
        printf("INVALID\n");
    return 1;
}

/* Every way in which a file is no policy ends with a line that says so: in JSON as pale-policy writes it, without a place. */
static int explain(const struct args *a, const struct pale_err *e)
{
    own_buf b = {0};
    struct json j;
    if (!a->json) {
        fprintf(stderr, "%s: %s\n", a->word[0], e->text);
        return invalid(a);
    }
    buf_init(&b, 65536);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_bool(&j, "valid", false);
    json_begin_list(&j, "errors");
    json_begin_object(&j, NULL);
    json_text(&j, "file", a->word[0]);
    json_text(&j, "message", e->text);
    json_end_object(&j);
    json_end_list(&j);
    json_end_object(&j);
    int failed = cli_json(&b);
    return failed ? failed : 1;
}

static int run_validate(struct args *a)
{
    struct pale_err e, held = {0};
    own_policy p = {0};
    bool is_told = false;
    if (load(a, a->word[0], &p, &is_told, &e) < 0)
        return is_told ? invalid(a) : e.code == PALE_OS || !strpbrk(a->word[0], "/.") ? cli_fail(a, &e) : explain(a, &e);
    if (policy_check(&p, &e) < 0)
        return explain(a, &e);
    bool startable = policy_held(&p, &held) == 0;
    own_buf b = {0};
    buf_init(&b, 1 << 20);
    if (a->json) {
        struct json j;
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_bool(&j, "valid", true);
        json_bool(&j, "can_start", startable);
        if (!startable)
            json_text(&j, "why_not", held.text);
        policy_json(&p, &j, "policy");
        json_end_object(&j);
        return cli_json(&b);
    }
    policy_show(&p, &b);
    printf("VALID\n%s", buf_text(&b));
    if (!startable)
        cli_note("note: no box can start with it yet: %s", held.text);
    return 0;
}

static int show(struct args *a)
{
    struct pale_err e;
    own_policy p = {0};
    own_buf b = {0};
    bool is_told = false;
    int r = a->count > 1 ? load(a, a->word[1], &p, &is_told, &e) : policy_init(&p, &e);
    if (r < 0)
        return fail(a, is_told, &e);
    buf_init(&b, 1 << 20);
    if (a->json) {
        struct json j;
        json_start(&j, &b);
        policy_json(&p, &j, NULL);
        return cli_json(&b);
    }
    policy_show(&p, &b);
    fputs(buf_text(&b), stdout);
    return 0;
}

static int diff(struct args *a)
{
    struct pale_err e;
    own_policy p = {0}, q = {0};
    own_buf b = {0};
    struct json j;
    bool is_told;
    if (load(a, a->word[1], &p, &is_told, &e) < 0 || load(a, a->word[2], &q, &is_told, &e) < 0)
        return fail(a, is_told, &e);
    buf_init(&b, 1 << 20);
    if (a->json) {
        json_start(&j, &b);
        json_begin_list(&j, NULL);
        policy_diff(&p, &q, NULL, &j);
        json_end_list(&j);
        return cli_json(&b);
    }
    policy_diff(&p, &q, &b, NULL);
    fputs(buf_text(&b), stdout);
    return 0;
}

static int ask(struct args *a)
{
    struct pale_err e;
    own_policy p = {0};
    struct policy_answer answer;
    bool is_told;
    if (load(a, a->word[1], &p, &is_told, &e) < 0)
        return fail(a, is_told, &e);
    if (policy_ask(&p, a->word[2], a->word[3], &answer, &e) < 0)
        return cli_fail(a, &e);
    if (a->json) {
        own_buf b = {0};
        struct json j;
        static const char *const verdicts[] = {"allow", "ask", "deny"};
        buf_init(&b, 65536);
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_bool(&j, "allowed", answer.allowed);
        json_text(&j, "verdict", verdicts[answer.verdict]);
        json_text(&j, "rule", answer.rule);
        json_text(&j, "reason", answer.reason);
        json_end_object(&j);
        int failed = cli_json(&b);
        return failed ? failed : answer.allowed ? 0 : 1;
    }
    printf("%s%s%s: %s\nrule: %s\n", cli_colour(1, answer.allowed ? "green" : "red"), answer.allowed ? "yes" : "no", cli_colour(1, "reset"),
           answer.reason, answer.rule);
    return answer.allowed ? 0 : 1;
}

static int run_policy(struct args *a)
{
    static const struct {
        const char *name;
        int min, max;
        int (*run)(struct args *a);
    } verbs[] = {{"show", 1, 2, show}, {"diff", 3, 3, diff}, {"ask", 4, 4, ask}, {"set", 2, INT_MAX, adjust_policy}};
    struct pale_err e;
    bool sets = strcmp(a->word[0], "set") == 0;
    if (args_has(a, "policy") && !sets) {
        err_set(&e, PALE_BAD_INPUT, "--policy FILE goes with pale policy set; the others take the file as a word");
        return cli_fail(a, &e);
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(a->word[0], verbs[i].name) == 0 && a->count >= verbs[i].min && a->count <= verbs[i].max)
            return verbs[i].run(a);
    err_set(&e, PALE_BAD_INPUT, "pale policy %s", a->verb->usage);
    return cli_fail(a, &e);
}

static const struct option *const tables[] = {scope_options, common_options, NULL};
static const struct option set_options[] = {
    {"policy", 'P', "FILE", "set: this file in place of all there is", NULL},
    {"yes-host-network", 0, NULL, "set, with network=host: yes, the host's own network, unfiltered", NULL},
    {0},
};
static const struct option *const policy_tables[] = {set_options, scope_options, common_options, NULL};

const struct verb verb_validate = {
    "validate",
    "Policy",
    "check a policy or capability file",
    "FILE",
    "Prints VALID and the policy, or every mistake with file, line, column and the nearest right key. Exit status 1\n"
    "if it is invalid.",
    tables,
    1,
    1,
    -1,
    run_validate};
const struct verb verb_policy = {
    "policy",
    "Policy",
    "show, compare, question and change policies",
    "show [BOX|FILE] | diff A B | ask BOX|FILE read|write|reach|env WHAT | set [--policy FILE] BOX [KEY=VALUE …]",
    "show prints a box's or file's policy (or the defaults); diff tells what one allows and the other does not;\n"
    "ask answers with the rule that decides: pale policy ask b write /etc/hosts. A word with '/' or '.' is a file.\n"
    "set changes a box's policy and prints what is different: rules of a network that the box has hold at once, and\n"
    "connections that they do not allow are cut; whatever else is changed needs a box that is stopped. A key that is a\n"
    "list gets another item; a rule that ends in =deny wins over all others.",
    policy_tables,
    1,
    -1,
    -1,
    run_policy};

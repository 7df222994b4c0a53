/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb presets: which there are, and what each of them lets through. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "box/presetfile.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "policy/preset.h"
#include "policy/rule.h"

/* A preset applied to nothing. */
struct shown_preset {
    struct policy policy;
    char path[PATH_BYTES_MAX];
    const char *version; /* in policy */
};

static void shown_done(struct shown_preset *s)
{
    policy_done(&s->policy);
}

static int look(const char *name, struct shown_preset *s, struct pale_err *e)
{
    own_buf text = {0};
    size_t n = strlen(name);
    buf_init(&text, POLICY_TEXT_MAX);
    int r = presetfile_read(name, &text, s->path, sizeof(s->path), e);
    if (r == 0)
        r = preset_apply(&s->policy, name, buf_text(&text), text.len, e);
    for (size_t i = 0; r == 0 && i < s->policy.presets.count; i++)
        if (strncmp(s->policy.presets.item[i], name, n) == 0 && s->policy.presets.item[i][n] == '@')
            s->version = s->policy.presets.item[i] + n + 1;
    return r;
}

static void write_json(struct json *j, const char *name, const struct shown_preset *s)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    json_begin_object(j, NULL);
    json_text(j, "name", name);
    json_text(j, "version", s->version);
    json_text(j, "from", s->path[0] ? s->path : "pale");
    json_begin_list(j, "presets");
    for (size_t i = 0; i < s->policy.presets.count; i++)
        json_text(j, NULL, s->policy.presets.item[i]);
    json_end_list(j);
    json_begin_list(j, "rules");
    for (size_t i = 0; i < s->policy.egress_count; i++) {
        buf_clear(&text);
        rule_text(&s->policy.egress[i], &text);
        json_text(j, NULL, buf_text(&text));
    }
    json_end_list(j);
    json_end_object(j);
}

static int add_row(void *arg, const char *name, struct pale_err *e)
{
    CLEANUP(shown_done) struct shown_preset s = {0};
    struct listing *l = arg;
    char count[24];
    int r = look(name, &s, e);
    if (r < 0)
        return r;
    if (l->is_json) {
        write_json(&l->json, name, &s);
        return 0;
    }
    snprintf(count, sizeof(count), "%zu", s.policy.egress_count);
    table_cell(&l->table, name);
    table_cell(&l->table, s.version);
    table_cell(&l->table, count);
    table_cell(&l->table, s.path[0] ? s.path : "pale");
    return 0;
}

static int show_one(struct args *a, const char *name)
{
    CLEANUP(shown_done) struct shown_preset s = {0};
    struct pale_err e;
    own_buf b = {0};
    struct json j;
    if (look(name, &s, &e) < 0)
        return cli_fail(a, &e);
    buf_init(&b, 4 * POLICY_TEXT_MAX);
    if (a->json) {
        json_start(&j, &b);
        write_json(&j, name, &s);
        return cli_json(&b);
    }
    for (size_t i = 0; i < s.policy.presets.count; i++)
        buf_addf(&b, "# %s\n", s.policy.presets.item[i]);
    for (size_t i = 0; i < s.policy.egress_count; i++) {
        rule_text(&s.policy.egress[i], &b);
        buf_add_text(&b, "\n");
    }
    fputs(buf_text(&b), stdout);
    return fflush(stdout) ? 1 : 0;
}

static int run_presets(struct args *a)
{
    static const char *const heads[] = {"NAME", "VERSION", "RULES", "FROM"};
    struct pale_err e;
    own_listing l = {0};
    if (a->count > 0)
        return show_one(a, a->word[0]);
    listing_init(&l, a, heads, 4);
    return presetfile_each(add_row, &l, &e) < 0 ? cli_fail(a, &e) : listing_print(&l);
}

static const struct option *const tables[] = {common_options, NULL};

const struct verb verb_presets = {
    "presets",
    "Policy",
    "lists of egress rules by name, and what is in one",
    "[NAME]",
    "Without NAME lists pale's presets and yours, which are files in ~/.config/pale/presets: a line \"version N\", then one\n"
    "rule a line. With NAME prints its rules. --preset NAME, or presets: [NAME] in a policy, puts them into a policy,\n"
    "which keeps them as they were then.",
    tables,
    0,
    1,
    -1,
    run_presets};

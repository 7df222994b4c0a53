/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs for boxes whose folders were moved, copied or removed: adopt and forget. */
#include <stdio.h>

#include "base/own.h"
#include "box/adopt.h"
#include "box/gc.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static int refuse_far(struct args *a)
{
    struct pale_err e;
    err_set(&e, PALE_UNSUPPORTED, "%s works where the folders are, and not through --host", a->verb->name);
    return cli_fail(a, &e);
}

static int run_adopt(struct args *a)
{
    static const char *const words[] = {
        [ADOPT_MOVED] = "moved", [ADOPT_FORKED] = "forked", [ADOPT_MADE] = "made", [ADOPT_PUT_BACK] = "put-back"};
    struct pale_err e;
    struct place p;
    enum adopt_kind kind;
    own_policy policy = {0};
    if (a->host)
        return refuse_far(a);
    if (boxflags_policy(a, &policy, &e) < 0)
        return cli_fail(a, &e);
    const struct adopt_order order = {
        .name = a->word[0], .scope = lookup_scope(a), .policy = &policy, .says_policy = boxflags_given(a), .caller = "local"};
    if (adopt_box(&order, &p, &kind, &e) < 0)
        return cli_fail(a, &e);
    if (!a->json) {
        printf("box %s [%s] id=%s %s\n", p.name, p.project ? "project" : "user", p.id, words[kind]);
        return 0;
    }
    own_buf b = {0};
    struct json j;
    buf_init(&b, 65536);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "name", p.name);
    json_text(&j, "id", p.id);
    json_text(&j, "scope", p.project ? "project" : "user");
    json_text(&j, "data", p.data);
    json_text(&j, "how", words[kind]);
    json_end_object(&j);
    return cli_json(&b);
}

static int run_forget(struct args *a)
{
    struct pale_err e;
    struct place p;
    if (a->host)
        return refuse_far(a);
    for (int i = 0; i < a->count; i++)
        if (place_find_any(a->word[i], lookup_scope(a), &p, &e) < 0 || adopt_forget(&p, args_has(a, "force"), &e) < 0 ||
            gc_shared(&p, &e) < 0)
            return cli_fail(a, &e);
    if (a->json)
        printf("{\"forgotten\":%d}\n", a->count);
    return 0;
}

static const struct option forget_options[] = {
    {"force", 'f', NULL, "remove files that are kept with it, too", NULL},
    {0},
};

static const struct option *const adopt_tables[] = {scope_options, box_options, common_options, NULL};
static const struct option *const forget_tables[] = {forget_options, scope_options, common_options, NULL};

const struct verb verb_adopt = {
    "adopt",
    "Boxes",
    "take a box whose folder was moved, copied or removed",
    "[FLAGS] BOX",
    "BOX is a name or an id, as `pale ls` has it. A folder that was moved becomes the place of its box. A copy becomes a\n"
    "fork. What `pale rm --keep-data` has left becomes a box with another id and the policy of the flags. The folder of\n"
    "a project's box that was removed (`git clean`) is made again: its files are elsewhere, and still there.",
    adopt_tables,
    1,
    1,
    -1,
    run_adopt};
const struct verb verb_forget = {
    "forget",
    "Boxes",
    "give up a box whose folder is gone",
    "[-f] BOX …",
    "BOX is an id, or the name it had. What pale knows of it is removed: its policy, log, answers, and with -f also files\n"
    "that are kept with that. Its folder, if it is elsewhere, stays. A box that is where it belongs is removed by rm.",
    forget_tables,
    1,
    -1,
    -1,
    run_forget};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that change a box that is there: freeze, thaw, rename. */
#include <stdio.h>

#include "base/own.h"
#include "box/life.h"
#include "box/rename.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static int run_freeze(struct args *a)
{
    struct pale_err e;
    struct place p;
    bool on = a->verb == &verb_freeze;
    if (a->host)
        return far_freeze(a, on);
    for (int i = 0; i < a->count; i++)
        if (lookup_box(a, a->word[i], &p, &e) < 0 || life_freeze(&p, on, &e) < 0)
            return cli_fail(a, &e);
    if (a->json)
        printf("{\"%s\":%d}\n", on ? "frozen" : "thawed", a->count);
    return 0;
}

static int run_rename(struct args *a)
{
    struct pale_err e;
    struct place p, renamed;
    if (a->host)
        return far_rename(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || rename_box(&p, a->word[1], "local", &renamed, &e) < 0)
        return cli_fail(a, &e);
    if (!a->json) {
        printf("box %s [%s] id=%s\n", renamed.name, renamed.project ? "project" : "user", renamed.id);
        return 0;
    }
    own_buf b = {0};
    struct json j;
    buf_init(&b, 65536);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "name", renamed.name);
    json_text(&j, "id", renamed.id);
    json_text(&j, "scope", renamed.project ? "project" : "user");
    json_text(&j, "data", renamed.data);
    json_text(&j, "was", p.name);
    json_end_object(&j);
    return cli_json(&b);
}

static const struct option *const tables[] = {scope_options, common_options, NULL};

const struct verb verb_freeze = {
    "freeze",
    "Boxes",
    "let a box stand still",
    "BOX …",
    "Stops every process of the box where it is; `pale thaw` lets them go on. Meanwhile exec is refused, and the\n"
    "wall time of commands goes on counting. stop, rm and kill work; kill -s is delivered after the thaw.",
    tables,
    1,
    -1,
    -1,
    run_freeze};
const struct verb verb_thaw = {"thaw",
                               "Boxes",
                               "let a frozen box go on",
                               "BOX …",
                               "Every process goes on where it was stopped. No error if the box is not frozen.",
                               tables,
                               1,
                               -1,
                               -1,
                               run_freeze};
const struct verb verb_rename = {
    "rename",
    "Boxes",
    "give a box another name",
    "BOX NEW",
    "The box must be stopped. Its files, policy, audit log, id and machine id stay; its host name is the new name.",
    tables,
    2,
    2,
    -1,
    run_rename};

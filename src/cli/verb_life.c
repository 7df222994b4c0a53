/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that change a box that is there: freeze, thaw. */
#include <stdio.h>

#include "box/life.h"
#include "cli/cli.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static int run_freeze(struct args *a)
{
    struct pale_err e;
    struct place p;
    bool on = a->verb == &verb_freeze;
    for (int i = 0; i < a->count; i++)
        if (lookup_box(a, a->word[i], &p, &e) < 0 || life_freeze(&p, on, &e) < 0)
            return cli_fail(a, &e);
    if (a->json)
        printf("{\"%s\":%d}\n", on ? "frozen" : "thawed", a->count);
    return 0;
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

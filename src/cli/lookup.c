/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a name on the command line to a box. */
#include "cli/lookup.h"

const struct option scope_options[] = {
    {"global", 'g', NULL, "the user's own box, not the project's", NULL},
    {0},
};

enum place_scope lookup_scope(const struct args *a)
{
    return args_has(a, "global") ? SCOPE_USER : SCOPE_ANY;
}

int lookup_box(const struct args *a, const char *name, struct place *ret, struct pale_err *e)
{
    int r = place_find(name, lookup_scope(a), ret, e);
    if (r == 0 && ret->project && !a->json && place_shadows(ret))
        cli_note("note: the project's box %s hides your own of that name (--global reaches it)", name);
    return r;
}

int lookup_any(const struct args *a, const char *name, struct place *ret, struct pale_err *e)
{
    int r = place_find_any(name, lookup_scope(a), ret, e);
    if (r == 0 && ret->lost && !a->json)
        cli_note("note: the folder of box %s (%s) is not at %s any more", ret->name, ret->id, ret->data);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that change names in a box: mkdir, mv, del. */
#include "base/limits.h"
#include "base/path.h"
#include "cli/chore.h"
#include "cli/cli.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static struct chore chore;

/* One request for each path, up to the first that fails. */
static int each_path(struct args *a, const char *request, const char *more)
{
    struct pale_err e;
    for (int i = 1; i < a->count; i++)
        if (chore_do(&chore, a, a->word[0], (const char *const[]){request, a->word[i], more, NULL}, &e) < 0)
            return cli_fail(a, &e);
    return 0;
}

static int run_mkdir(struct args *a)
{
    return each_path(a, "mkdir", args_has(a, "parents") ? "parents" : NULL);
}

static int run_del(struct args *a)
{
    return each_path(a, "remove", args_has(a, "tree") ? "tree" : NULL);
}

static int run_mv(struct args *a)
{
    struct pale_err e;
    char target[PATH_BYTES_MAX];
    const char *box = a->word[0], *from = a->word[1], *to = a->word[2];
    if (chore_is_folder(&chore, a, box, to)) {
        if (!path_join(target, sizeof(target), to, chore_last_name(from)))
            return err_set(&e, PALE_BAD_INPUT, "%s: the path in the box is too long", to), cli_fail(a, &e);
        to = target;
    }
    const char *const words[] = {"move", from, to, args_has(a, "new") ? "new" : NULL, NULL};
    return chore_do(&chore, a, box, words, &e) < 0 ? cli_fail(a, &e) : 0;
}

static const struct option mkdir_options[] = {{"parents", 'p', NULL, "make the folders above too; no error if it is there", NULL}, {0}};
static const struct option mv_options[] = {{"new", 0, NULL, "only if there is nothing of that name", NULL}, {0}};
static const struct option del_options[] = {{"tree", 'r', NULL, "a folder with all that is in it", NULL}, {0}};
static const struct option *const mkdir_tables[] = {mkdir_options, scope_options, common_options, NULL};
static const struct option *const mv_tables[] = {mv_options, scope_options, common_options, NULL};
static const struct option *const del_tables[] = {del_options, scope_options, common_options, NULL};

const struct verb verb_mkdir = {
    "mkdir", "Files",  "make folders in a box", "[-p] BOX PATH …", "Folders of the box's user, with mode 755.", mkdir_tables, 2, -1,
    -1,      run_mkdir};
const struct verb verb_mv = {"mv",
                             "Files",
                             "move or rename a file of a box",
                             "[--new] BOX FROM TO",
                             "Both are paths of the box, on one of its mounts. Into TO if that is a folder; else what stands there is\n"
                             "replaced in one step, unless --new is given.",
                             mv_tables,
                             3,
                             3,
                             -1,
                             run_mv};
const struct verb verb_del = {
    "del",
    "Files",
    "remove files and folders of a box",
    "[--tree] BOX PATH …",
    "Files, symlinks (never what they lead to) and empty folders; whole trees with --tree. `pale rm` removes boxes.",
    del_tables,
    2,
    -1,
    -1,
    run_del};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about what a box has changed: diff, apply, discard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/discard.h"
#include "box/harvest.h"
#include "box/life.h"
#include "box/review.h"
#include "cli/cli.h"
#include "cli/far_past.h"
#include "cli/lookup.h"
#include "cli/shown_change.h"
#include "cli/shown_landing.h"
#include "cli/shown_past.h"
#include "cli/verbs.h"
#include "tree/landing.h"

/* --- paths --- */

/* A path as people type it: absolute in the box, or below the working folder if that lies in the project, else below the project. */
static int whole_path(const struct policy *policy, const char *given, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    char cwd[PATH_BYTES_MAX];
    return review_path(policy, getcwd(cwd, sizeof(cwd)), given, ret, e);
}

/* --- diff --- */

static const struct option diff_options[] = {
    {"stat", 0, NULL, "a line for each file: what, how many lines", NULL},
    {"name-only", 0, NULL, "names alone", NULL},
    {"patch", 0, NULL, "the changes line by line, as git writes them (usual)", NULL},
    {"from", 0, "SNAPSHOT", "what was then, not what the box began with", NULL},
    {"to", 0, "SNAPSHOT", "… and then, not now", NULL},
    {0},
};

static int run_diff(struct args *a)
{
    struct pale_err e;
    struct place p;
    char path[PATH_BYTES_MAX];
    enum wall_part part;
    const char *rest;
    own_policy policy = {0};
    own_review v = {.base_fd = -1};
    if (args_has(a, "stat") + args_has(a, "name-only") + args_has(a, "patch") + a->json > 1) {
        err_set(&e, PALE_BAD_INPUT, "choose one of --stat, --name-only, --patch and --json");
        return cli_fail(a, &e);
    }
    if (a->host)
        return far_diff(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || life_policy(&p, &policy, &e) < 0 ||
        (a->count > 1 && whole_path(&policy, a->word[1], path, &e) < 0) ||
        review_part(&policy, a->count > 1 ? path : NULL, &part, &rest, &e) < 0 ||
        review_open(&p, part, args_get(a, "from"), args_get(a, "to"), &v, &e) < 0)
        return cli_fail(a, &e);
    own_shown_change shown = {0};
    shown_change_begin(&shown, shown_change_form(a));
    int r = rendition_write(
        &v, &(struct rendition){.form = shown.form, .under = rest, .out = shown_change_take, .arg = &shown, .out_fd = -1}, &e);
    if (r == 0)
        r = shown_change_end(&shown, &e);
    if (r < 0)
        return cli_fail(a, &e);
    return shown.troubles ? 1 : 0;
}

/* --- apply --- */

struct applying {
    struct harvest *harvest;
    bool interactive;
    bool always;
    struct json *json;
};

static void tell_landed(void *arg, const struct landing_report *r)
{
    struct applying *x = arg;
    if (x->json)
        harvest_write(x->json, r);
    else
        shown_landing_one(&(struct shown_landing){.path = r->path,
                                                  .result = landing_word(r->result),
                                                  .guarded = r->hazard.class == HAZARD_NONE ? "" : hazard_word(r->hazard.class),
                                                  .reason = r->reason});
}

/* Yes, no, all, quit, or a look at it first. */
static bool ask_landing(void *arg, const struct landing_report *r, int content_fd)
{
    struct applying *x = arg;
    char name[1024], line[16];
    if (x->always || !x->interactive)
        return true;
    if (x->harvest->stopped)
        return false;
    quote_into(name, sizeof(name), r->path, strlen(r->path));
    for (;;) {
        printf("%s %s%s%s%s [y,n,a,q,v,?] ", compare_word(r->what), name, r->hazard.class != HAZARD_NONE ? "  ! " : "",
               r->hazard.class != HAZARD_NONE ? r->hazard.reason : "", "");
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
            line[0] = 'q';
        switch (line[0]) {
        case 'y':
            return true;
        case 'n':
            return false;
        case 'a':
            x->always = true;
            return true;
        case 'q':
            x->harvest->stopped = true;
            return false;
        case 'v':
            shown_change_content(content_fd);
            break;
        default:
            printf("y: land it   n: leave it   a: this and all that follow   q: this and nothing more   v: see what it would be\n");
        }
    }
}

static const struct option apply_options[] = {
    {"interactive", 'i', NULL, "ask for each file", NULL},
    {"include-guarded", 0, NULL, "land also what this host would run or obey", NULL},
    {"ignored", 0, NULL, "land also what git ignores here", NULL},
    {"theirs", 0, NULL, "where both changed a file, land the box's version", NULL},
    {"ours", 0, NULL, "where both changed a file, yours stays and counts as agreed on", NULL},
    {"dry-run", 0, NULL, "tell what would become of each, change nothing", NULL},
    {0},
};

static int run_apply(struct args *a)
{
    struct pale_err e;
    struct place p;
    char cwd[PATH_BYTES_MAX];
    own_buf out = {0};
    struct json j;
    if (args_has(a, "interactive") && a->json) {
        err_set(&e, PALE_BAD_INPUT, "--interactive asks a person; it does not go with --json");
        return cli_fail(a, &e);
    }
    if (args_has(a, "theirs") && args_has(a, "ours")) {
        err_set(&e, PALE_BAD_INPUT, "choose one of --theirs and --ours");
        return cli_fail(a, &e);
    }
    if (a->host && (args_has(a, "theirs") || args_has(a, "ours") || args_has(a, "ignored"))) {
        err_set(&e, PALE_UNSUPPORTED, "--theirs, --ours and --ignored do not go with --host; run `pale apply` on that host");
        return cli_fail(a, &e);
    }
    if (a->host)
        return far_apply(a);
    struct applying x = {.interactive = args_has(a, "interactive")};
    struct harvest h = {.paths = (const char *const *)a->word + 1,
                        .path_count = (size_t)a->count - 1,
                        .cwd = getcwd(cwd, sizeof(cwd)),
                        .include_guarded = args_has(a, "include-guarded"),
                        .dry_run = args_has(a, "dry-run"),
                        .ignored = args_has(a, "ignored"),
                        .prefer = args_has(a, "theirs") ? LANDING_PREFER_THEIRS
                                  : args_has(a, "ours") ? LANDING_PREFER_OURS
                                                        : LANDING_PREFER_NONE,
                        .asks_git = true,
                        .kept_fd = -1,
                        .caller = "local",
                        .ask = ask_landing,
                        .tell = tell_landed,
                        .arg = &x};
    x.harvest = &h;
    buf_init(&out, 64u << 20);
    if (a->json) {
        x.json = &j;
        json_start(&j, &out);
        json_begin_list(&j, NULL);
    }
    if (lookup_box(a, a->word[0], &p, &e) < 0 || harvest_run(&p, &h, &e) < 0)
        return cli_fail(a, &e);
    if (!a->json)
        return shown_landing_sum(h.count, h.dry_run);
    json_end_list(&j);
    int status = cli_json(&out);
    return status ? status : harvest_left(&h) ? 1 : 0;
}

/* --- discard --- */

static const struct option discard_options[] = {
    {"force", 'f', NULL, "end whatever runs in the box first", NULL},
    {0},
};

static int run_discard(struct args *a)
{
    struct pale_err e;
    struct place p;
    char cwd[PATH_BYTES_MAX];
    struct discard d = {.paths = (const char *const *)a->word + 1,
                        .path_count = (size_t)a->count - 1,
                        .cwd = getcwd(cwd, sizeof(cwd)),
                        .force = args_has(a, "force"),
                        .caller = "local"};
    if (a->host)
        return far_discard(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || discard_run(&p, &d, &e) < 0)
        return cli_fail(a, &e);
    return shown_past_discarded(a, d.kept);
}

static const struct option *const diff_tables[] = {diff_options, scope_options, common_options, NULL};
static const struct option *const apply_tables[] = {apply_options, scope_options, common_options, NULL};
static const struct option *const discard_tables[] = {discard_options, scope_options, common_options, NULL};

const struct verb verb_diff = {"diff",
                               "Review",
                               "what a box has changed",
                               "[--stat|--name-only|--patch|--json] [--from SNAPSHOT] [--to SNAPSHOT] BOX [PATH]",
                               "Of its project if that is for review, else of its home; with PATH of what stands there in the box: the\n"
                               "project, /home/agent, /tmp, or anything in a box on an image. On a terminal what the box wrote is made\n"
                               "harmless; in a pipe it is as it is, and `git apply` takes it. Exits with 1 if something could not be read.",
                               diff_tables,
                               1,
                               2,
                               -1,
                               run_diff};
const struct verb verb_apply = {
    "apply",
    "Review",
    "land what a box has changed in your project",
    "[-i] [--include-guarded] [--ignored] [--theirs|--ours] [--dry-run] BOX [PATH …]",
    "File by file, each at once or not at all. What you changed meanwhile is merged line by line; where both changed\n"
    "the same lines yours stays, and the file is told as a conflict. Files that this host would run or obey (hooks,\n"
    "settings of git, agents and editors, build and CI files, new programs, links out of the project) are held back\n"
    "until --include-guarded. Exits with 1 if anything was left.",
    apply_tables,
    1,
    -1,
    -1,
    run_apply};
const struct verb verb_discard = {
    "discard",
    "Review",
    "throw away what a box has changed in its project",
    "[-f] BOX [PATH …]",
    "The box then sees your project as it is, or, with paths, as far as these and what lies below them go: files\n"
    "and folders as diff names them. What it had made of it is kept as an automatic snapshot.",
    discard_tables,
    1,
    -1,
    -1,
    run_discard};

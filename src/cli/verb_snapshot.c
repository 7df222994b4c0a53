/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about a box's past: snapshot, snapshots, restore, fork, gc. */
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/own.h"
#include "box/fork.h"
#include "box/gc.h"
#include "box/snapshot.h"
#include "box/verification.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far_past.h"
#include "cli/lookup.h"
#include "cli/shown_gc.h"
#include "cli/shown_past.h"
#include "cli/verbs.h"

static int run_snapshot(struct args *a)
{
    struct pale_err e;
    struct place p;
    struct snapshot_taken t;
    if (a->host)
        return far_snapshot(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || snapshot_take(&p, a->count > 1 ? a->word[1] : NULL, false, "local", &t, &e) < 0)
        return cli_fail(a, &e);
    return shown_past_taken(a, &t);
}

static int run_restore(struct args *a)
{
    struct pale_err e;
    struct place p;
    struct snapshot_taken t;
    if (a->host)
        return far_restore(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || snapshot_restore(&p, a->word[1], args_has(a, "force"), "local", &t, &e) < 0)
        return cli_fail(a, &e);
    return shown_past_restored(a, p.name, t.name, t.pause_us);
}

/* --- the list --- */

static void tell_spoilt(void *arg, const struct stack *s, int layer)
{
    char text[256];
    (void)arg;
    snprintf(text, sizeof(text), "layer %s is not what it was when it was closed; snapshots that stand on it are not used any more",
             s->layers[layer].id);
    cli_complain(text);
}

/* Compares first, so that the list tells what came of it. */
static int verify(const struct place *p, bool *ret_spoilt, struct pale_err *e)
{
    struct verification v = {.tell = tell_spoilt};
    int r = verification_run(p, &v, e);
    *ret_spoilt = v.bad > 0;
    return r;
}

static int run_snapshots(struct args *a)
{
    struct pale_err e;
    struct place p;
    own_stack s = {0};
    own_listing l = {0};
    bool spoilt = false;
    stack_init(&s);
    if (args_has(a, "verify") && args_has(a, "rm")) {
        err_set(&e, PALE_BAD_INPUT, "choose one of --verify and --rm");
        return cli_fail(a, &e);
    }
    if (args_has(a, "verify") && door_only_here(a, "snapshots --verify", "it takes as long as reading all that the box has kept", &e) < 0)
        return cli_fail(a, &e);
    if (a->host)
        return far_snapshots(a);
    if (lookup_box(a, a->word[0], &p, &e) < 0)
        return cli_fail(a, &e);
    if (args_has(a, "rm")) {
        if (snapshot_remove(&p, args_get(a, "rm"), "local", &e) < 0)
            return cli_fail(a, &e);
        if (a->json)
            printf("{\"removed\":1}\n");
        return 0;
    }
    if ((args_has(a, "verify") && verify(&p, &spoilt, &e) < 0) || stack_load(&p, &s, &e) < 0)
        return cli_fail(a, &e);
    shown_past_snapshots(&l, a);
    for (size_t i = 0; i < s.snapshot_count; i++) {
        struct snapline line = snapline_of(&s, &s.snapshots[i]);
        shown_past_snapshot(&l, &line);
    }
    int status = listing_print(&l);
    return status ? status : spoilt ? 1 : 0;
}

/* --- forks --- */

static const struct option fork_options[] = {
    {"at", 0, "SNAPSHOT", "begin there, not where the box is now", NULL},
    {"number", 'n', "N", "make so many: NEW-1, NEW-2 …", NULL},
    {0},
};

static int run_fork(struct args *a)
{
    struct pale_err e;
    struct place p;
    uint64_t count = 1;
    if (a->host)
        return far_fork(a);
    if (!shown_past_count(a, &count, &e))
        return cli_fail(a, &e);
    own_mem struct place *made = calloc(count, sizeof(*made));
    const struct fork_order o = {.name = a->word[1], .at = args_get(a, "at"), .count = (unsigned)count, .caller = "local"};
    if (!made) {
        err_nomem(&e);
        return cli_fail(a, &e);
    }
    if (lookup_box(a, a->word[0], &p, &e) < 0 || fork_make(&p, &o, made, &e) < 0)
        return cli_fail(a, &e);
    own_listing l = {0};
    shown_past_forks(&l, a);
    for (uint64_t i = 0; i < count; i++)
        shown_past_fork(&l, made[i].name, made[i].id, made[i].project ? "project" : "user");
    return listing_print(&l);
}

static const struct option gc_options[] = {
    {"images", 0, NULL, "also remove images that no box is made on", NULL},
    {"dry-run", 'n', NULL, "tell what would go, remove nothing", NULL},
    {0},
};

static int run_gc(struct args *a)
{
    struct pale_err e;
    struct gc_result r;
    own_shown_gc shown = {0};
    const struct gc_order o = {
        .only_tells = args_has(a, "dry-run"), .images = args_has(a, "images"), .told = shown_gc_image, .arg = &shown, .caller = "local"};
    if (a->host)
        return far_gc(a);
    shown_gc_begin(&shown, a);
    return gc_all(&o, &r, &e) < 0 ? cli_fail(a, &e) : shown_gc_end(&shown, &r);
}

static const struct option restore_options[] = {
    {"force", 'f', NULL, "end whatever runs in the box first", NULL},
    {0},
};
static const struct option snapshots_options[] = {
    {"rm", 0, "SNAPSHOT", "forget this one", NULL},
    {"verify", 0, NULL, "read all of it again, and compare with the digests", NULL},
    {0},
};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const restore_tables[] = {restore_options, scope_options, common_options, NULL};
static const struct option *const snapshots_tables[] = {snapshots_options, scope_options, common_options, NULL};
static const struct option *const fork_tables[] = {fork_options, scope_options, common_options, NULL};
static const struct option *const gc_tables[] = {gc_options, common_options, NULL};

const struct verb verb_snapshot = {
    "snapshot",
    "Snapshots",
    "keep a box as it is now",
    "BOX [NAME]",
    "Keeps the box's home, its /tmp and, where they are its own, project and root. Costs the same however much\n"
    "there is. A running box in which no command runs is paused for some milliseconds and goes on; one that\n"
    "works stands still for as short a time as possible. Without NAME it is snap-1, snap-2 … A snapshot is made\n"
    "by itself when a box is stopped, unless it was created with --no-autosave; the newest ten of these stay.",
    plain_tables,
    1,
    2,
    -1,
    run_snapshot};
const struct verb verb_snapshots = {
    "snapshots",
    "Snapshots",
    "list or remove snapshots of a box",
    "[--rm SNAPSHOT|--verify] BOX",
    "A star marks the one the box stands on. verified: its layers have a digest and hold nothing that no box could\n"
    "make; fresh: that is still to be found out. With --verify a layer that is not what it was is named, and its\n"
    "snapshots are poisoned from then on: no box starts on them. Exits with 1 then.",
    snapshots_tables,
    1,
    1,
    -1,
    run_snapshots};
const struct verb verb_restore = {"restore",
                                  "Snapshots",
                                  "make a box as it was",
                                  "[-f] BOX SNAPSHOT",
                                  "What the box is now is kept first as an automatic snapshot, so that this can be undone. Refused while\n"
                                  "something runs in the box, unless -f.",
                                  restore_tables,
                                  2,
                                  2,
                                  -1,
                                  run_restore};
const struct verb verb_fork = {
    "fork",
    "Snapshots",
    "make boxes that begin where another is",
    "[--at SNAPSHOT] [-n N] BOX NEW",
    "A fork has the files and the policy of its parent, but its own name, id, host name, tokens and audit log. A\n"
    "project that is live in the parent is for review in the fork: no two boxes write in one folder.",
    fork_tables,
    2,
    2,
    -1,
    run_fork};
const struct verb verb_gc = {"gc",
                             "Snapshots",
                             "free the disk of what no box needs",
                             "[--images] [-n]",
                             "Removes layers that neither a box nor a snapshot stands on, what is left of boxes whose folder somebody has\n"
                             "removed, files and staging folders of processes that died, and what was taken out of a live project for a\n"
                             "one-shot box, 30 days after the last of it. With --images also every image that no box is made on and that\n"
                             "tenant.yaml does not name.",
                             gc_tables,
                             0,
                             0,
                             -1,
                             run_gc};

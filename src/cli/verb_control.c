/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that cut boxes off from every network: quarantine, panic. */
#include <stdio.h>

#include "base/own.h"
#include "box/cutoff.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static const struct option lift_options[] = {
    {"lift", 0, NULL, "take it back: the policy holds again", NULL},
    {0},
};

static int run_quarantine(struct args *a)
{
    struct pale_err e;
    struct place p;
    bool on = !args_has(a, "lift");
    if (a->host)
        return far_quarantine(a, on);
    for (int i = 0; i < a->count; i++) {
        if (lookup_any(a, a->word[i], &p, &e) < 0 || cutoff_box(&p, on, "local", &e) < 0)
            return cli_fail(a, &e);
        unsigned left = cutoff_of_place(&p);
        if (!on && left)
            cli_note("note: box %s is still cut off by `pale panic`; `pale panic --lift` ends that", p.name);
    }
    if (a->json)
        printf("{\"%s\":%d}\n", on ? "quarantined" : "lifted", a->count);
    return 0;
}

static void on_trouble(void *arg, const struct place *p, const struct pale_err *why)
{
    (void)arg;
    cli_note("box %s was not told: %s", p->name, why->text);
}

void control_tell(const struct args *a, bool on, const struct control_counts *n)
{
    if (a->json) {
        printf("{\"cut\":%s,\"live\":%llu,\"stopped\":%llu,\"once\":%llu,\"failed\":%llu}\n", on ? "true" : "false", n->live, n->stopped,
               n->once, n->failed);
        return;
    }
    printf("%s: %llu that run, %llu stopped, %llu one-shot\n",
           on ? "cut off from every network, as is every box that is made or started from now on"
              : "the policies hold again, but for boxes in quarantine",
           n->live, n->stopped, n->once);
    if (n->failed)
        printf("not told: %llu; stop %s\n", n->failed, n->failed == 1 ? "it" : "them");
}

static int run_panic(struct args *a)
{
    struct pale_err e;
    struct cutoff_all x = {.on = !args_has(a, "lift"), .caller = "local", .trouble = on_trouble};
    if (a->host)
        return far_panic(a, x.on);
    if (cutoff_all(&x, &e) < 0)
        return cli_fail(a, &e);
    control_tell(a, x.on, &(struct control_counts){x.live, x.stopped, x.once, x.failed});
    return x.failed ? 1 : 0;
}

static const struct option *const quarantine_tables[] = {lift_options, scope_options, common_options, NULL};
static const struct option *const panic_tables[] = {lift_options, common_options, NULL};

const struct verb verb_quarantine = {
    "quarantine",
    "Network",
    "cut a box off from every network",
    "[--lift] BOX …",
    "Ends every connection of the box at once and refuses all others, whatever its policy says, until --lift; also\n"
    "after a restart, and in forks of it. Its commands go on (`pale freeze` stops them), and its files stay as they\n"
    "are: what it has sent already is sent. Files taken out of a live project are another matter: `pale guard`.",
    quarantine_tables,
    1,
    -1,
    -1,
    run_quarantine};
const struct verb verb_panic = {
    "panic",
    "Network",
    "cut every box off from every network",
    "[--lift]",
    "All boxes of this user at once: those that run, one-shot ones too, those that are stopped, and those that are made\n"
    "or started before `pale panic --lift`. Tells how many were reached. Boxes that are in quarantine stay there.",
    panic_tables,
    0,
    0,
    -1,
    run_panic};

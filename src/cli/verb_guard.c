/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb guard: what was taken out of a live project, and giving it back. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "box/quarantine.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static const struct option guard_options[] = {
    {"release", 0, "NUMBER", "put it back to where it was; the box must be stopped", NULL},
    {"to", 0, "FOLDER", "… or into this folder", NULL},
    {"drop", 0, "NUMBER", "remove it for good", NULL},
    {0},
};

static int show(void *arg, const struct quarantined *q)
{
    struct listing *l = arg;
    char number[16], stamp[32];
    time_t t = (time_t)q->taken_unix;
    struct tm tm;
    if (l->is_json) {
        quarantine_json(q, &l->json);
        return 0;
    }
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    snprintf(number, sizeof(number), "%u", q->number);
    table_cell(&l->table, number);
    table_cell(&l->table, q->kind);
    table_cell(&l->table, stamp);
    table_cell(&l->table, q->path);
    return 0;
}

static const char *const heads[] = {"NUMBER", "KIND", "TAKEN", "PATH"};

static int list(const struct args *a, const struct place *p, struct pale_err *e)
{
    own_listing l = {0};
    listing_init(&l, a, heads, 4);
    return quarantine_each(p, show, &l, e) < 0 ? cli_fail(a, e) : listing_print(&l);
}

/* --- through a daemon elsewhere --- */

static int far_list(const struct args *a, struct door *d, const char *path, struct pale_err *e)
{
    own_listing l = {0};
    own_buf text = {0};
    struct jsonread answer, items, item;
    char cell[PATH_BYTES_MAX];
    static const char *const members[] = {"kind", "taken", "path"};
    buf_init(&text, FAR_ANSWER_MAX);
    int r = remote_ask(&d->remote, "GET", path, NULL, &text, &answer, e);
    if (r == 0 && (!jsonread_get(&answer, "items", &items) || items.kind != JSONREAD_LIST))
        r = err_set(e, PALE_PROTOCOL, "the daemon's answer has no items");
    if (r < 0)
        return cli_fail(a, e);
    listing_init(&l, a, heads, 4);
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);) {
        if (l.is_json) {
            far_copy(&l.json, NULL, &item);
            continue;
        }
        snprintf(cell, sizeof(cell), "%llu", (unsigned long long)far_number(&item, "number"));
        table_cell(&l.table, cell);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            table_cell(&l.table, far_text(&item, members[i], cell, sizeof(cell)));
    }
    return listing_print(&l);
}

static int far_guard(const struct args *a, uint64_t number, bool release)
{
    struct pale_err e;
    own_door d = {.args = a, .is_far = true, .remote = {.fd = -1}};
    own_buf text = {0};
    char path[BOX_NAME_MAX + 80];
    remote_init(&d.remote);
    buf_init(&text, 65536);
    if (args_has(a, "to")) {
        err_set(&e, PALE_UNSUPPORTED, "--to FOLDER works on this host alone; a daemon elsewhere gives a thing back to where it was");
        return cli_fail(a, &e);
    }
    if (door_find(&d, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    snprintf(path, sizeof(path), "/v1/boxes/%s/guard", d.name);
    if (!number)
        return far_list(a, &d, path, &e);
    snprintf(path, sizeof(path), "/v1/boxes/%s/guard/%llu%s", d.name, (unsigned long long)number, release ? "/release" : "");
    return remote_call(&d.remote, release ? "POST" : "DELETE", path, NULL, &text, &e) < 0 ? cli_fail(a, &e) : 0;
}

static int run_guard(struct args *a)
{
    struct pale_err e = {0};
    struct place p;
    uint64_t number = 0;
    const char *release = args_get(a, "release"), *drop = args_get(a, "drop"), *to = args_get(a, "to"), *which = release ? release : drop;
    int r = 0;
    if (((release && drop) || (to && !release)))
        r = err_set(&e, PALE_BAD_INPUT, "guard: give one of --release NUMBER [--to FOLDER] and --drop NUMBER");
    if (r == 0 && which && (!number_u64(which, GUARD_KEPT_MAX, &number) || number == 0))
        r = err_set(&e, PALE_BAD_INPUT, "guard: %s is no number of the list; `pale guard %s` shows it", which, a->word[0]);
    if (r == 0 && a->host)
        return far_guard(a, number, release != NULL);
    if (r < 0 || lookup_box(a, a->word[0], &p, &e) < 0)
        return cli_fail(a, &e);
    if (!which)
        return list(a, &p, &e);
    r = release ? quarantine_release(&p, (unsigned)number, to, "local", &e) : quarantine_drop(&p, (unsigned)number, &e);
    return r < 0 ? cli_fail(a, &e) : 0;
}

static const struct option *const tables[] = {guard_options, scope_options, common_options, NULL};

const struct verb verb_guard = {
    "guard",
    "Trust",
    "what was taken out of a live project",
    "BOX [--release NUMBER [--to FOLDER] | --drop NUMBER]",
    "Lists what appeared in the box's live project and would have been run or obeyed by the host: it is kept until\n"
    "the box is removed. --release gives a copy of it back; read it first, --to FOLDER puts it where nothing obeys it.",
    tables,
    1,
    1,
    -1,
    run_guard};

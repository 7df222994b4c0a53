/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb export: a box's own files as one archive. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "box/export.h"
#include "cli/cli.h"
#include "cli/commission.h"
#include "cli/far_parcel.h"
#include "cli/interrupt.h"
#include "cli/lookup.h"
#include "cli/outfile.h"
#include "cli/press.h"
#include "cli/progress.h"
#include "cli/verbs.h"

static const struct option export_options[] = {
    {"at", 0, "SNAPSHOT", "as it was then, not as it is now", NULL},
    {"output", 'o', "FILE", "where to; - for standard output (BOX.tar.zst)", NULL},
    {"plain", 0, NULL, "uncompressed, without zstd", NULL},
    {"force", 'f', NULL, "replace the file if it is there", NULL},
    {0},
};

static int tell(const struct args *a, const struct export *x, const char *file)
{
    uint64_t entries = 0, bytes = 0;
    char size[32];
    for (int i = 0; i < PART_COUNT; i++) {
        entries += x->bill.part[i].entries;
        bytes += x->bill.part[i].bytes;
    }
    if (x->bill.left)
        cli_note("left out: %llu pipes and sockets", (unsigned long long)x->bill.left);
    if (strcmp(file, "-") == 0)
        return 0;
    if (a->json) {
        own_buf out = {0};
        struct json j;
        buf_init(&out, 65536);
        json_start(&j, &out);
        json_begin_object(&j, NULL);
        json_text(&j, "box", x->bill.box);
        json_text(&j, "snapshot", x->bill.snapshot);
        json_text(&j, "file", file);
        json_u64(&j, "entries", entries);
        json_u64(&j, "bytes", bytes);
        json_end_object(&j);
        return cli_json(&out);
    }
    printf("exported box %s to %s: %s in %llu entries\n", x->bill.box, file, number_show_bytes(bytes, size, sizeof(size)),
           (unsigned long long)entries);
    return fflush(stdout) ? 125 : 0;
}

/* Through the press, or straight. */
static int write_out(struct export *x, const struct export_order *o, int out_fd, bool plain, struct pale_err *e)
{
    own_press press = PRESS_NONE;
    struct pale_err why;
    if (plain)
        return export_write(x, o, out_fd, e);
    int r = press_open(&press, out_fd, e);
    if (r == 0)
        r = export_write(x, o, press.fd, e);
    /* A press that failed is the reason why nothing more could be written. */
    if (r == -PALE_OS && press_end(&press, &why) < 0)
        *e = why;
    return r < 0 ? r : press_end(&press, e);
}

static int export_box(struct args *a, struct export *x, const char *file, struct pale_err *e)
{
    struct place p;
    const char *zstd;
    bool plain = args_has(a, "plain");
    struct progress shown = {.shows = !a->json && isatty(2)};
    own_commission c = {0};
    own_outfile out = OUTFILE_NONE;
    int r = commission_read(&c, e);
    if (r == 0)
        r = c.is_given ? place_by_id(c.order.id, &p, e) : lookup_box(a, a->word[0], &p, e);
    const struct export_order o = {
        .at = args_get(a, "at"), .caller = commission_caller(&c), .progress = progress_show, .arg = &shown, .stop = interrupt_seen()};
    if (r == 0 && !plain)
        r = press_find(&zstd, e);
    if (r == 0)
        r = outfile_open(&out, file, args_has(a, "force"), e);
    if (r < 0)
        return r;
    interrupt_catch();
    r = export_open(x, &p, &o, e);
    if (r == 0)
        r = write_out(x, &o, out.fd, plain, e);
    if (shown.shows)
        shown.shown_ms = 1; /* by a child, if at all */
    progress_end(&shown);
    /* Who asks a daemon knows what it is about. */
    return r == 0 ? outfile_keep(&out, e) : c.is_given ? r : err_prefix(e, "export box %s", p.name);
}

static int run_export(struct args *a)
{
    struct pale_err e;
    own_export x = EXPORT_NONE;
    char usual[BOX_NAME_MAX + 16];
    const char *file = args_get(a, "output");
    snprintf(usual, sizeof(usual), "%.*s.tar%s", BOX_NAME_MAX, a->word[0], args_has(a, "plain") ? "" : ".zst");
    file = file ? file : usual;
    if (a->host)
        return far_export(a, file);
    if (export_box(a, &x, file, &e) < 0)
        return strcmp(file, "-") == 0 ? cli_fail_aside(a, &e) : cli_fail(a, &e);
    return tell(a, &x, file);
}

static const struct option *const export_tables[] = {export_options, scope_options, common_options, NULL};

const struct verb verb_export = {
    "export",
    "Snapshots",
    "write what is in a box to one archive",
    "[--at SNAPSHOT] [-o FILE] BOX",
    "The archive (tar, by zstd) has what the box wrote: its home and /tmp, and, over a project for review or an image, what\n"
    "it changed and deleted there; and its policy, without folders of this host and without variables. `pale import` makes\n"
    "a box of it, here or elsewhere. A box that works goes on. FILE is there when it is whole, or not at all. Times are\n"
    "kept to the second; owners, pipes and sockets are not.",
    export_tables,
    1,
    1,
    -1,
    run_export};

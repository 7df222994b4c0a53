/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from an unpacked export to a box. */
#include "box/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/audit.h"
#include "box/change.h"
#include "box/intake.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/tidy.h"
#include "confine/seclusion.h"
#include "net/cargo.h"
#include "tree/bare.h"
#include "tree/leaf.h"
#include "tree/markup.h"
#include "tree/roster.h"

#define SNAPSHOT "imported"

/* --- looking --- */

/* Nothing is there but what the waybill tells of. */
static int check_top(int root_fd, const struct waybill *w, struct pale_err *e)
{
    own_roster names = {0};
    size_t budget = WAYBILL_BYTES_MAX;
    own_fd top = -1;
    int r = leaf_open_folder(root_fd, "", &top, e);
    if (r == 0)
        r = roster_add_folder(&names, top, &budget, e);
    roster_sort(&names);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        char shown[160];
        const char *name = roster_name(&names, i);
        bool known = strcmp(name, CARGO_BILL) == 0 || strcmp(name, CARGO_MARKS) == 0;
        for (int k = 0; k < PART_COUNT; k++)
            known = known || (w->part[k].there && strcmp(name, wall_part_names[k]) == 0);
        if (!known)
            r = err_set(e, PALE_CORRUPT, "the export holds %s, and does not say so", quote_into(shown, sizeof(shown), name, strlen(name)));
    }
    return r;
}

static int apply_marks(int root_fd, struct pale_err *e)
{
    own_fd list = -1;
    struct leaf l;
    int r = leaf_look(root_fd, CARGO_MARKS, false, &l, e);
    if (r < 0 || l.kind == LEAF_NONE)
        return r;
    r = leaf_open(root_fd, CARGO_MARKS, NULL, &list, e);
    return r < 0 ? r : markup_apply(root_fd, list, e);
}

static int check_part(int root_fd, enum wall_part part, const volatile sig_atomic_t *stop, const struct waybill_part *told,
                      struct pale_err *e)
{
    const char *name = wall_part_names[part];
    struct waybill_part found;
    uint64_t left = 0;
    own_fd fd = -1;
    int r = leaf_open_folder(root_fd, name, &fd, e);
    if (r == 0)
        r = waybill_measure(fd, part, stop, &found, &left, e);
    if (r < 0)
        return err_prefix(e, "the export");
    if (left)
        return err_set(e, PALE_CORRUPT, "the export's %s holds a pipe or a socket, which are never carried", name);
    if (strcmp(found.digest, told->digest) != 0 || found.entries != told->entries || found.bytes != told->bytes)
        return err_set(e, PALE_CORRUPT, "the export's %s is not what it says (sha256:%.12s…, not %.12s…): it was damaged or changed", name,
                       found.digest, told->digest);
    return fchmod(fd, 0700) < 0 ? err_os(e, "set the mode of the box's %s", name) : 0;
}

/* What was unpacked, and what its bill says of it. */
struct unpacked {
    int root_fd;
    const volatile sig_atomic_t *stop;
    const struct waybill *bill;
};

static int check_tree(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct unpacked *u = arg;
    (void)step;
    (void)ret;
    int r = bare_check(u->root_fd, u->stop, e);
    if (r < 0)
        return err_prefix(e, "the export");
    r = apply_marks(u->root_fd, e);
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        if (u->bill->part[i].there)
            r = check_part(u->root_fd, i, u->stop, &u->bill->part[i], e);
    return r;
}

int import_verify(int root_fd, const volatile sig_atomic_t *stop, struct buf *text, struct waybill *ret, struct pale_err *e)
{
    own_fd bill = -1;
    buf_init(text, WAYBILL_BYTES_MAX);
    int r = leaf_open(root_fd, CARGO_BILL, NULL, &bill, e);
    if (r == 0)
        r = leaf_read(bill, text, e);
    if (r == 0)
        r = waybill_parse((const char *)text->data, text->len, ret, e);
    if (r == 0)
        r = check_top(root_fd, ret, e);
    if (r < 0)
        return r;
    struct unpacked u = {root_fd, stop, ret};
    const struct landlock_place place = {root_fd, LANDLOCK_WRITE};
    return seclusion_run(&(struct seclusion){.places = &place, .place_count = 1}, check_tree, &u, NULL, 0, e);
}

/* --- the policy --- */

int import_wish(const struct waybill *w, struct policy *ret, struct buf *complaints, struct pale_err *e)
{
    own_buf out = {0};
    own_policy p = {0};
    own_fd fd = memfd_create("pale-policy", MFD_CLOEXEC);
    if (fd < 0 || !fd_write_full(fd, w->policy.at, w->policy.len) || lseek(fd, 0, SEEK_SET) < 0)
        return err_os(e, "hand the export's policy on");
    buf_init(&out, POLICY_TEXT_MAX);
    int r = intake_file("-", fd, false, &out, complaints, e);
    if (r == 0)
        r = policy_parse(buf_text(&out), out.len, &p, e);
    if (r == 0)
        r = waybill_strip(&p, NULL, NULL, e);
    if (r < 0)
        return err_prefix(e, "the export's policy; --policy FILE replaces it");
    if (p.project == PROJECT_LIVE)
        p.project = PROJECT_REVIEW;
    *ret = p;
    p = (struct policy){0};
    return 0;
}

/* --- the box --- */

struct arrival {
    const struct import_order *order;
    const char *layer;
    bool take[PART_COUNT];
};

/* The first record of its log, there before it is a box. */
static int tell_lineage(const struct import_order *o, const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct audit a;
    snprintf(path, sizeof(path), "%s/audit", p->state);
    int r = audit_open(&a, path, AUDIT_BIRTH, p->name, p->id, e);
    if (r < 0)
        return r;
    a.caller = o->caller;
    struct json *j = audit_begin(&a, "box.imported");
    json_text(j, "from", o->bill->box);
    json_text(j, "from_id", o->bill->id);
    json_text(j, "snapshot", o->bill->snapshot);
    json_u64(j, "exported_unix_ms", o->bill->created_ms);
    json_text(j, "export_digest", o->digest);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

/* All of it is on the disk when it becomes a box. */
static int move_in(const void *arg, const struct place *p, struct pale_err *e)
{
    const struct arrival *a = arg;
    int r = tell_lineage(a->order, p, e);
    if (r == 0)
        r = layerdir_adopt(p, a->layer, a->order->policy, a->order->root_fd, a->take, e);
    return r < 0 ? r : life_keep(p, e);
}

/* One closed layer, which the snapshot is a name for, and an open one on it. */
static int make_stack(struct stack *s, struct stack_layer *l, struct pale_err *e)
{
    int r = stack_new_id(l->id, e);
    if (r == 0)
        r = stack_new_id(s->open, e);
    l->below = STACK_NONE;
    l->closed_ms = clock_unix_ms();
    int n = r < 0 ? r : stack_add_layer(s, l, e);
    if (n < 0)
        return n;
    s->below_open = n;
    return stack_add_snapshot(s, SNAPSHOT, n, l->closed_ms, false, e);
}

int import_make(const struct import_order *o, struct place *ret, struct pale_err *e)
{
    own_stack stack = {0};
    struct stack_layer layer = {0};
    struct arrival a = {.order = o, .layer = layer.id};
    stack_init(&stack);
    for (int i = 0; i < PART_COUNT; i++)
        a.take[i] = o->bill->part[i].there && !(i == PART_PROJECT && o->without_project);
    int r = make_stack(&stack, &layer, e);
    if (r == 0 && syncfs(o->root_fd) < 0)
        r = err_os(e, "write what was imported to the disk");
    const struct life_order order = {.name = o->name,
                                     .scope = SCOPE_USER,
                                     .tenant = o->tenant,
                                     .policy = o->policy,
                                     .stack = &stack,
                                     .begin = move_in,
                                     .arg = &a,
                                     .durable = true};
    if (r == 0)
        r = life_make(&order, ret, e);
    if (r == 0 && (r = life_keep(ret, e)) < 0)
        (void)!place_remove(ret, true, NULL);
    if (r < 0)
        return r;
    tidy_behind(ret, false);
    return 0;
}

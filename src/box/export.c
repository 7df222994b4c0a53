/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of exports. */
#include "box/export.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "box/change.h"
#include "box/layerdir.h"
#include "box/layerwork.h"
#include "box/tidy.h"
#include "confine/seclusion.h"
#include "net/cargo.h"
#include "tree/tarwriter.h"

/* The order of an archive: by name. */
static const enum wall_part order[] = {PART_HOME, PART_PROJECT, PART_ROOT, PART_TMP};

/* The layers of a point, the lowest first, once the list of them is no longer locked. */
struct chain {
    char (*ids)[LAYER_ID_LEN + 1];
    size_t count, project_from;
};

static void chain_done(struct chain *c)
{
    free(c->ids);
    c->ids = NULL;
}

static int read_chain(const struct stack *s, int layer, struct chain *ret, struct pale_err *e)
{
    own_mem const char **ids = calloc(s->layer_count + 1, sizeof(*ids));
    ret->ids = calloc(s->layer_count + 1, sizeof(*ret->ids));
    if (!ids || !ret->ids)
        return err_nomem(e);
    for (int at = layer; at != STACK_NONE; at = s->layers[at].below)
        if (s->layers[at].poison[0])
            return err_set(e, PALE_CORRUPT, "layer %s holds what no box can make (%s); export an older snapshot with --at",
                           s->layers[at].id, s->layers[at].poison);
    ret->count = stack_chain(s, layer, ids);
    ret->project_from = stack_project_from(s, layer);
    for (size_t i = 0; i < ret->count; i++)
        memcpy(ret->ids[i], ids[i], sizeof(ret->ids[i]));
    return 0;
}

/* Closes the box at the point, and tells its log. */
static int close_at(struct export *x, const struct export_order *o, struct chain *ret, struct pale_err *e)
{
    own_change c = {0};
    int layer = STACK_NONE;
    uint64_t pause = 0;
    int r = change_begin(&c, &x->place, o->caller, e);
    if (r == 0)
        r = change_find_point(&c, o->at, &layer, e);
    if (r == 0)
        r = change_tell(&c, "box.export", o->at ? o->at : "", e);
    if (r == 0)
        r = read_chain(&c.stack, layer, ret, e);
    if (r == 0) {
        x->policy = c.policy;
        c.policy = (struct policy){0};
    }
    return change_resume(&c, r, &pause, e);
}

static int weld(struct export *x, const struct chain *c, struct pale_err *e)
{
    own_mem struct layerwork_part *parts = calloc(c->count + 1, sizeof(*parts));
    if (!parts)
        return err_nomem(e);
    for (size_t i = 0; i < c->count; i++) {
        memcpy(parts[i].id, c->ids[i], sizeof(parts[i].id));
        parts[i].anew = i == c->project_from;
    }
    int r = stack_new_id(x->made, e);
    if (r == 0)
        r = layerdir_make_whole(&x->place, x->made, e);
    return r < 0 ? r : layerwork_weld(&x->place, parts, c->count, x->made, e);
}

static int open_parts(struct export *x, const struct chain *c, struct pale_err *e)
{
    int r = c->count > 1 ? weld(x, c, e) : 0;
    const char *id = c->count > 1 ? x->made : c->count == 1 ? c->ids[0] : NULL;
    for (int i = 0; r == 0 && id && i < PART_COUNT; i++)
        if (wall_has_part(&x->policy, true, i) && !(i == PART_PROJECT && c->project_from >= c->count))
            r = layerdir_open_part(&x->place, id, i, O_RDONLY, &x->part_fd[i], e);
    return r;
}

/* --- reading, in seclusion --- */

struct reading {
    struct export *x;
    const struct export_order *order;
    int out_fd; /* -1: nothing is written */
};

static int read_secluded(struct reading *r, seclusion_fn *fn, struct secluded *ret, struct pale_err *e)
{
    struct landlock_place places[PART_COUNT];
    struct seclusion s = {.places = places, .kept = &r->out_fd, .kept_count = r->out_fd >= 0};
    for (int i = 0; i < PART_COUNT; i++)
        if (r->x->part_fd[i] >= 0)
            places[s.place_count++] = (struct landlock_place){r->x->part_fd[i], LANDLOCK_READ};
    return seclusion_start(ret, &s, fn, r, e);
}

struct measured {
    uint64_t entries, bytes, left;
    char digest[SHA256_HEX];
};
static_assert(sizeof(struct measured) <= SECLUSION_ANSWER_MAX, "it fits into an answer");

static int measure_part(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct reading *r = arg;
    struct waybill_part found = {0};
    struct measured m = {0};
    int res = waybill_measure(r->x->part_fd[step], (enum wall_part)step, r->order->stop, &found, &m.left, e);
    m.entries = found.entries;
    m.bytes = found.bytes;
    memcpy(m.digest, found.digest, sizeof(m.digest));
    memcpy(ret, &m, sizeof(m));
    return res;
}

static int measure(struct export *x, const struct export_order *o, struct pale_err *e)
{
    struct reading reading = {.x = x, .order = o, .out_fd = -1};
    own_secluded child = {.fd = -1};
    int r = read_secluded(&reading, measure_part, &child, e);
    for (int i = 0; r == 0 && i < PART_COUNT; i++) {
        struct measured m;
        if (x->part_fd[i] < 0)
            continue;
        if ((r = seclusion_step(&child, (unsigned)i, &m, sizeof(m), e)) < 0)
            break;
        m.digest[sizeof(m.digest) - 1] = 0;
        if (strspn(m.digest, "0123456789abcdef") != SHA256_HEX - 1)
            return err_set(e, PALE_INTERNAL, "the digest of what the box wrote is none");
        x->bill.part[i] = (struct waybill_part){.there = true, .entries = m.entries, .bytes = m.bytes};
        memcpy(x->bill.part[i].digest, m.digest, sizeof(m.digest));
        x->bill.left += m.left;
    }
    return r;
}

int export_open(struct export *x, const struct place *p, const struct export_order *o, struct pale_err *e)
{
    CLEANUP(chain_done) struct chain chain = {0};
    *x = (struct export)EXPORT_NONE;
    x->place = *p;
    tidy_stop(p); /* who looks after layers when nobody waits is not waited for */
    int r = tidy_hold(p, true, &x->hold_fd, e);
    if (r == 0)
        r = close_at(x, o, &chain, e);
    if (r == 0)
        r = open_parts(x, &chain, e);
    if (r == 0)
        r = measure(x, o, e);
    if (r == -PALE_CORRUPT)
        return err_prefix(e, "box %s cannot be exported as it is (an older snapshot can, with --at)", p->name);
    if (r < 0 && e->os == EACCES)
        return err_prefix(e, "box %s has something that its owner cannot read (`chmod u+rwX` it in the box)", p->name);
    if (r < 0)
        return r;
    snprintf(x->bill.box, sizeof(x->bill.box), "%s", p->name);
    snprintf(x->bill.id, sizeof(x->bill.id), "%s", p->id);
    snprintf(x->bill.snapshot, sizeof(x->bill.snapshot), "%s", o->at ? o->at : "");
    x->bill.created_ms = clock_unix_ms();
    buf_init(&x->text, WAYBILL_BYTES_MAX);
    return waybill_write(&x->bill, &x->policy, &x->text, e);
}

void export_close(struct export *x)
{
    for (int i = 0; i < PART_COUNT; i++)
        own_close(&x->part_fd[i]);
    /* What cannot be removed now the next `gc` takes. */
    if (x->made[0])
        (void)!layerdir_remove(&x->place, x->made, NULL);
    x->made[0] = 0;
    bool held = x->hold_fd >= 0;
    own_close(&x->hold_fd);
    if (held)
        tidy_behind(&x->place, true);
    policy_done(&x->policy);
    buf_done(&x->text);
}

static int write_parts(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct reading *reading = arg;
    const struct export *x = reading->x;
    const struct export_order *o = reading->order;
    own_tarwriter w = {0};
    (void)step;
    (void)ret;
    int r = tarwriter_init(&w, reading->out_fd, e);
    w.progress = o->progress;
    w.arg = o->arg;
    w.stop = o->stop;
    if (r == 0)
        r = tarwriter_text(&w, CARGO_BILL, x->text.data, x->text.len, (int64_t)(x->bill.created_ms / 1000), e);
    for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(order[0]); i++)
        if (x->part_fd[order[i]] >= 0)
            r = tarwriter_part(&w, wall_part_names[order[i]], x->part_fd[order[i]], !cargo_lies_on(wall_part_names[order[i]]), e);
    return r < 0 ? r : tarwriter_end(&w, e);
}

int export_write(struct export *x, const struct export_order *o, int out_fd, struct pale_err *e)
{
    struct reading reading = {.x = x, .order = o, .out_fd = out_fd};
    own_secluded child = {.fd = -1};
    int r = read_secluded(&reading, write_parts, &child, e);
    return r < 0 ? r : seclusion_step(&child, 0, NULL, 0, e);
}

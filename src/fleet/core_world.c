/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the made-up world: nothing in it comes from anywhere but the seed. */
#include "fleet/core_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- chance --- */

static uint64_t roll_dice(struct world *w)
{
    uint64_t z = w->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t world_below(struct world *w, int64_t n)
{
    return (int64_t)(roll_dice(w) % (uint64_t)n);
}

/* In so many of a thousand cases, as long as things go wrong at all. */
static bool strikes(struct world *w, int of_thousand)
{
    return w->chaos && world_below(w, 1000) < of_thousand;
}

void world_claim(struct world *w, bool holds, const char *what, int slot)
{
    if (!holds && !*w->bad)
        snprintf(w->bad, sizeof(w->bad), "%s (place %d, time %lld)", what, slot, (long long)w->now);
}

void world_tell(const struct world *w, const char *fmt, ...)
{
    va_list ap;
    if (!w->trace)
        return;
    va_start(ap, fmt);
    fprintf(stderr, "%10lld  ", (long long)w->now);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* --- places --- */

const char *world_tenant_of(int s)
{
    return s >= 3 && s < PLAIN ? "acme" : "";
}

const char *world_name_of(int s)
{
    static const char *const NAMES[] = {"a", "b", "c", "a", "b", "c", "a", "a"};
    return NAMES[s];
}

const char *world_id_of(int s)
{
    static const char *const IDS[] = {"00000000000000c0", "00000000000000b1", "00000000000000f2", "0000000000000033",
                                      "00000000000000a4", "0000000000000055", "0000000000000066", "00000000000000e7"};
    return IDS[s];
}

int world_slot_named(const char *tenant, const char *name)
{
    return (*tenant ? 3 : 0) + (name[0] - 'a');
}

int world_slot_with_id(const char *id)
{
    for (int s = 0; s < SLOTS; s++)
        if (strcmp(world_id_of(s), id) == 0)
            return s;
    return -1;
}

unsigned world_jobs_of(const struct site *p)
{
    unsigned n = 0;
    for (int i = 0; i < JOBS; i++)
        n += p->job_ends[i] != 0;
    return n;
}

void world_soon(struct world *w, int s)
{
    int64_t at = w->now + world_below(w, LAG_MS - 1000);
    if (!w->eyes[s].look_at || at < w->eyes[s].look_at)
        w->eyes[s].look_at = at;
}

/* --- the world's own ways --- */

void world_keeper_ends(struct world *w, int s)
{
    struct site *p = &w->sites[s];
    if (p->keeper)
        p->keeper_to = w->now;
    p->keeper = 0;
    memset(p->job_ends, 0, sizeof(p->job_ends));
    world_soon(w, s);
}

void world_keeper_begins(struct world *w, int s)
{
    w->sites[s].keeper = ++w->keepers;
    w->sites[s].keeper_from = w->now;
    world_soon(w, s);
}

void world_box_begins(struct world *w, int s)
{
    struct site *p = &w->sites[s];
    memset(p->asked, 0, sizeof(p->asked));
    p->born = ++w->births;
    p->made_at = p->begun_at = w->now;
    p->key = 0;
    p->expires = 0;
    p->in_row = w->rows[s].there && w->rows[s].t.born == 0;
    for (int k = 1; k <= KEYS; k++) /* the memory of what was here before is lost */
        if (w->made[k] == s)
            w->strict[k] = false;
    world_soon(w, s);
}

void world_box_ends(struct world *w, int s)
{
    world_keeper_ends(w, s);
    w->sites[s].born = 0;
    w->sites[s].removed_at = w->now;
}

void world_end_jobs(struct world *w, int s)
{
    for (int i = 0; i < JOBS; i++)
        if (w->sites[s].job_ends[i] && w->sites[s].job_ends[i] <= w->now) {
            w->sites[s].job_ends[i] = 0;
            world_soon(w, s);
        }
}

void world_begin_job(struct world *w, int s)
{
    int i = (int)world_below(w, JOBS);
    if (!w->sites[s].keeper || w->sites[s].job_ends[i])
        return;
    w->sites[s].job_ends[i] = w->now + 1 + (world_below(w, 10) ? world_below(w, 20000) : world_below(w, HOUR_MS));
    world_tell(w, "job in %d until %lld", s, (long long)w->sites[s].job_ends[i]);
    world_soon(w, s);
}

/* --- deeds --- */

static enum pale_code make_now(struct world *w, struct deed *d)
{
    struct site *p = &w->sites[d->slot];
    if (p->born)
        return PALE_EXISTS;
    for (int s = 0; d->key && s < SLOTS; s++)
        world_claim(w, !w->sites[s].born || w->sites[s].key != d->key, "one key has made two boxes", s);
    bool was_another = p->begun_at && p->begun_at >= d->ordered_at; /* which may have been taken for this one, and has got its row */
    world_box_begins(w, d->slot);
    memcpy(p->asked, d->asked, sizeof(p->asked));
    p->key = was_another ? 0 : d->key;
    p->expires = was_another ? 0 : d->expires;
    if (d->key)
        w->made[d->key] = d->slot;
    return PALE_OK;
}

static enum pale_code rename_now(struct world *w, struct deed *d)
{
    struct site *from = &w->sites[d->slot], *to = &w->sites[d->to];
    if (from->keeper)
        return PALE_BUSY;
    if (to->born)
        return PALE_EXISTS;
    struct site moved = *from;
    moved.removed_at = to->removed_at;
    moved.keeper_from = to->keeper_from;
    moved.keeper_to = to->keeper_to;
    moved.begun_at = w->now;
    if (to->begun_at && to->begun_at >= d->ordered_at) /* that box may have been taken for this one, and has got its row */
        moved.expires = 0;
    *to = moved;
    world_box_ends(w, d->slot);
    world_soon(w, d->to);
    for (int k = 1; k <= KEYS; k++)
        if (w->made[k] == d->to || w->made[k] == d->slot)
            w->strict[k] = false;
    return PALE_OK;
}

/* The keeper ends and another takes its place, if there was one. */
static enum pale_code change_now(struct world *w, struct deed *d)
{
    struct site *p = &w->sites[d->slot];
    bool was_up = p->keeper != 0;
    if (world_jobs_of(p))
        return PALE_BUSY;
    p->changed_at = w->now;
    if (!was_up)
        return PALE_OK;
    world_keeper_ends(w, d->slot);
    if (strikes(w, 100))
        return PALE_OS; /* which did not start again */
    world_keeper_begins(w, d->slot);
    return PALE_OK;
}

static enum pale_code do_now(struct world *w, struct deed *d)
{
    struct site *p = &w->sites[d->slot];
    if (d->kind == CORE_MAKE)
        return make_now(w, d);
    if (!p->born || (d->born && p->born != d->born))
        return PALE_NOT_FOUND;
    switch (d->kind) {
    case CORE_START:
        if (p->keeper)
            return PALE_EXISTS;
        world_keeper_begins(w, d->slot);
        return PALE_OK;
    case CORE_STOP:
        if (d->only_idle && world_jobs_of(p))
            return PALE_BUSY;
        world_keeper_ends(w, d->slot);
        return PALE_OK;
    case CORE_REMOVE:
        world_box_ends(w, d->slot);
        return PALE_OK;
    case CORE_CHANGE:
        return change_now(w, d);
    default:
        return rename_now(w, d);
    }
}

void world_affect(struct world *w, struct deed *d)
{
    d->affected = true;
    if (!d->without_effect)
        d->result = do_now(w, d);
    world_tell(w, "deed %d.%llu kind %d at %d: %s%s", d->life, (unsigned long long)d->number, d->kind, d->slot, err_name(d->result),
               d->without_effect ? " (nothing done)" : "");
}

bool world_has_deed(const struct world *w, int s)
{
    for (int i = 0; i < DEEDS; i++) {
        const struct deed *d = &w->deeds[i];
        if (d->used && !d->reported && d->life == w->life && (d->slot == s || (d->kind == CORE_RENAME && d->to == s)))
            return true;
    }
    return false;
}

static bool is_awaited(const struct world *w, enum request_kind kind, int s, uint64_t born)
{
    for (size_t i = 0; i < w->asked; i++) {
        const struct request *q = &w->requests[i];
        if (q->life == w->life && !q->answered && q->kind == kind && (q->slot == s || (born && (q->born == born || q->real == born))))
            return true;
    }
    return false;
}

void world_failed(struct world *w, enum core_deed_kind kind, int s, uint64_t born)
{
    if (kind == CORE_REMOVE)
        w->remove_failed[s] = (struct failure){w->now, born};
    if (kind == CORE_STOP)
        w->stop_failed[s] = (struct failure){w->now, born};
}

/* Has there been a pause since it failed? */
static bool has_paused(const struct world *w, const struct failure *f, uint64_t born)
{
    return !f->at || f->born != born || w->now >= f->at + CORE_RETRY_MS * 3 / 4;
}

/* A checkpoint, or a change that somebody asked for? */
static void check_change(struct world *w, const struct core_deed *o, int s)
{
    const struct eye *v = &w->eyes[s];
    unsigned saves = 0;
    if (o->waiter) {
        world_claim(w, is_awaited(w, CHANGE, s, o->born) && o->payload == o->waiter, "a change nobody asked for", s);
        world_claim(w, ((const struct request *)o->waiter)->deeds == 0, "a change is done twice for one request", s);
        return;
    }
    for (int i = 0; i < DEEDS; i++)
        saves += w->deeds[i].used && !w->deeds[i].reported && w->deeds[i].life == w->life && w->deeds[i].is_save;
    world_claim(w, saves < CORE_SAVES_MAX, "more checkpoints at once than may be", s);
    if (saves + 1 == CORE_SAVES_MAX)
        w->saves_full_at = w->now;
    world_claim(w, v->keeper && !v->jobs && w->now >= v->quiet + SAVE_MS, "a checkpoint of a box that is not idle", s);
    world_claim(w, has_paused(w, &w->save_failed[s], o->born), "no pause after a checkpoint that was not begun", s);
    world_claim(w, w->saved[s] != v->quiet, "two checkpoints for one idle time", s);
    world_claim(w, !is_awaited(w, USE, -1, o->born), "a checkpoint while somebody waits for the box", s);
    w->saved[s] = v->quiet;
}

/* May the core order this? */
static void check_order(struct world *w, const struct core_deed *o, int s)
{
    const struct row *r = &w->rows[s];
    const struct eye *v = &w->eyes[s];
    world_claim(w, !world_has_deed(w, s), "two deeds at once on one box", s);
    switch (o->kind) {
    case CORE_MAKE:
        world_claim(w, is_awaited(w, CREATE, s, 0) && r->there, "a box made that nobody waits for, or without a row", s);
        world_claim(w, !w->strict[((const struct request *)o->payload)->key], "a key makes a box again", s);
        break;
    case CORE_START:
        world_claim(w, is_awaited(w, USE, s, o->born) && o->waiter, "a start nobody asked for", s);
        break;
    case CORE_STOP:
        if (o->only_idle) {
            world_claim(w, !o->waiter, "somebody's name on a stop that fell due", s);
            world_claim(w, r->there && r->t.idle_ms > 0 && v->keeper && !v->jobs && w->now >= v->quiet + r->t.idle_ms,
                        "stopped though not idle", s);
            world_claim(w, has_paused(w, &w->stop_failed[s], o->born), "no pause after a failed stop", s);
            world_claim(w, !is_awaited(w, USE, -1, o->born), "stopped while somebody waits for it", s);
        } else
            world_claim(w, is_awaited(w, STOP, s, o->born) && o->waiter, "a stop nobody asked for", s);
        break;
    case CORE_REMOVE: {
        bool expired = r->there && r->t.expires_unix_ms && r->t.expires_unix_ms <= w->now + w->offset;
        world_claim(w, is_awaited(w, REMOVE, s, o->born) || has_paused(w, &w->remove_failed[s], o->born), "no pause after a failed removal",
                    s);
        bool is_its = r->t.born == o->born || !r->t.born;
        world_claim(w, is_awaited(w, REMOVE, s, o->born) || (expired && is_its), "a removal nobody asked for", s);
        break;
    }
    case CORE_CHANGE:
        check_change(w, o, s);
        break;
    default:
        world_claim(w, is_awaited(w, RENAME, s, o->born) && o->waiter, "a rename nobody asked for", s);
    }
}

static int io_order(void *arg, const struct core_deed *o, struct pale_err *e)
{
    static const enum pale_code SURE[] = {PALE_BAD_INPUT, PALE_DENIED,   PALE_BUSY, PALE_LIMIT,     PALE_UNSUPPORTED,
                                          PALE_CORRUPT,   PALE_PROTOCOL, PALE_OS,   PALE_NO_MEMORY, PALE_INTERNAL};
    struct world *w = arg;
    int s = o->project ? world_slot_with_id(o->id) : world_slot_named(o->tenant, o->name), i = 0;
    check_order(w, o, s);
    while (i < DEEDS && w->deeds[i].used && !(w->deeds[i].affected && w->deeds[i].reported))
        i++;
    if (i == DEEDS || strikes(w, 20)) {
        world_failed(w, o->kind, s, o->born);
        if (o->kind == CORE_CHANGE && !o->waiter) {
            w->save_failed[s] = (struct failure){w->now, o->born};
            w->saved[s] = 0;
        }
        return err_set(e, PALE_LIMIT, "no process for a deed");
    }
    struct deed *d = &w->deeds[i];
    int64_t most = world_below(w, 20) ? 4000 : DEED_MS - 1;
    *d = (struct deed){.used = true,
                       .life = w->life,
                       .slot = s,
                       .number = o->number,
                       .born = o->born,
                       .kind = o->kind,
                       .only_idle = o->only_idle,
                       .is_save = o->kind == CORE_CHANGE && !o->waiter,
                       .ordered_at = w->now};
    d->to = o->kind == CORE_RENAME ? world_slot_named(o->tenant, o->new_name) : s;
    d->effect_at = w->now + world_below(w, most);
    d->report_at = d->effect_at + world_below(w, 500);
    if (o->kind == CORE_CHANGE && o->waiter)
        ((struct request *)o->waiter)->deeds++;
    if (o->kind == CORE_MAKE) {
        const struct request *q = o->payload;
        memcpy(d->asked, q->asked, sizeof(d->asked));
        d->key = q->key;
        d->expires = q->expires;
    }
    if (strikes(w, 120)) { /* nobody knows: it may have been done, or not, or it is still under way */
        d->says = world_below(w, 2) ? PALE_GONE : PALE_TIMEOUT;
        d->report_at = w->now + world_below(w, most);
        d->without_effect = world_below(w, 2);
    } else if (strikes(w, 120)) {
        d->says = SURE[world_below(w, sizeof(SURE) / sizeof(SURE[0]))];
        d->without_effect = true;
    }
    world_tell(w, "order %d.%llu kind %d at %d, to %d", d->life, (unsigned long long)d->number, d->kind, d->slot, d->to);
    return 0;
}

/* --- database, disk, memory, time --- */

/* A row has gone, or another takes its place: its key need not be known any more. */
static void forget_key(struct world *w, const struct row *r, const char *next)
{
    for (int k = 1; r->there && k <= KEYS; k++)
        if (r->t.key[1] == (char)('a' + k) && strcmp(r->t.key, next) != 0)
            w->strict[k] = false;
}

static int io_put(void *arg, const char *tenant, const char *name, const struct core_terms *t, struct pale_err *e)
{
    struct world *w = arg;
    struct row *r = &w->rows[world_slot_named(tenant, name)];
    r->failed = strikes(w, 50);
    if (r->failed) {
        memset(w->strict, 0, sizeof(w->strict));
        return err_set(e, PALE_OS, "the database is full");
    }
    forget_key(w, r, t->key);
    r->doubted = r->there && r->doubted;
    r->there = true;
    r->t = *t;
    world_tell(w, "row %d born %llu key %s expires %lld", world_slot_named(tenant, name), (unsigned long long)t->born, t->key,
               (long long)t->expires_unix_ms);
    return 0;
}

static int io_drop(void *arg, const char *tenant, const char *name, struct pale_err *e)
{
    struct world *w = arg;
    struct row *r = &w->rows[world_slot_named(tenant, name)];
    if (r->t.made_unix_ms + CORE_KEY_KEEP_MS <= w->now + w->offset)
        forget_key(w, r, "");
    r->failed = strikes(w, 50);
    if (r->failed)
        return err_set(e, PALE_OS, "the database is full");
    r->there = r->doubted = false;
    world_tell(w, "row %d dropped", world_slot_named(tenant, name));
    return 0;
}

static int io_each(void *arg, int (*fn)(void *, const char *, const char *, const struct core_terms *), void *fn_arg, struct pale_err *e)
{
    struct world *w = arg;
    int r = 0;
    for (int s = 0; s < PLAIN && r == 0; s++)
        if (w->rows[s].there)
            r = fn(fn_arg, world_tenant_of(s), world_name_of(s), &w->rows[s].t);
    return r < 0 ? err_set(e, (enum pale_code) - r, "row") : 0;
}

struct core_sight world_sight_of(const struct world *w, int s)
{
    struct core_sight k = {.project = s >= PLAIN, .born = w->sites[s].born};
    snprintf(k.tenant, sizeof(k.tenant), "%s", world_tenant_of(s));
    snprintf(k.name, sizeof(k.name), "%s", world_name_of(s));
    snprintf(k.id, sizeof(k.id), "%s", world_id_of(s));
    return k;
}

static int io_look(void *arg, const struct core_sight *which, struct core_sight *ret)
{
    struct world *w = arg;
    int s = which->project ? world_slot_with_id(which->id) : world_slot_named(which->tenant, which->name);
    if (strikes(w, 10))
        return -PALE_OS;
    if (!w->sites[s].born)
        return 0;
    *ret = world_sight_of(w, s);
    return 1;
}

static void io_link(void *arg, const char *id)
{
    struct world *w = arg;
    struct eye *v = &w->eyes[world_slot_with_id(id)];
    v->keeper = 0;
    v->jobs = 0;
    v->link_at = w->now + 1 + world_below(w, 500);
}

static void *io_grow(void *arg, void *p, size_t n)
{
    return strikes(arg, 10) ? NULL : realloc(p, n);
}

static int64_t io_now(void *arg)
{
    return ((struct world *)arg)->now;
}

static int64_t io_unix(void *arg)
{
    struct world *w = arg;
    return w->now + w->offset;
}

static uint64_t io_chance(void *arg)
{
    return roll_dice(arg);
}

struct core_io world_io(struct world *w)
{
    return (struct core_io){.arg = w,
                            .save_after_ms = SAVE_MS,
                            .now_ms = io_now,
                            .unix_ms = io_unix,
                            .chance = io_chance,
                            .grow = io_grow,
                            .put_terms = io_put,
                            .drop_terms = io_drop,
                            .each_terms = io_each,
                            .look = io_look,
                            .order = io_order,
                            .link = io_link};
}

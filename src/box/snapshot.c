/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the taking of snapshots and going back to them. */
#include "box/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "box/change.h"
#include "box/layerdir.h"
#include "box/tidy.h"
#include "box/landed.h"

#define CHAIN_JOIN_AT (WALL_LAYERS_MAX / 2)

/* The newest automatic ones stay. */
static void push_out(struct stack *s)
{
    size_t automatic = 0;
    for (size_t i = s->snapshot_count; i-- > 0;)
        if (s->snapshots[i].automatic && ++automatic > SNAPSHOT_AUTOMATIC_MAX)
            (void)stack_remove_snapshot(s, s->snapshots[i].name);
}

/* Does any snapshot stand for this layer already? */
static const struct stack_snapshot *named(const struct stack *s, int layer)
{
    for (size_t i = s->snapshot_count; i-- > 0;)
        if (s->snapshots[i].layer == layer)
            return &s->snapshots[i];
    return NULL;
}

/* How many layers the box opens when it starts. */
static size_t chain_of(const struct stack *s)
{
    own_mem const char **ids = calloc(s->layer_count + 1, sizeof(*ids));
    return ids ? stack_chain(s, s->below_open, ids) : 0;
}

/* A name for what the box is now. */
static int name_it(struct change *c, const char *name, bool automatic, int layer, struct snapshot_taken *ret, struct pale_err *e)
{
    int r = stack_add_snapshot(&c->stack, name, layer, clock_unix_ms(), automatic, e);
    if (r < 0)
        return r;
    snprintf(ret->name, sizeof(ret->name), "%s", c->stack.snapshots[c->stack.snapshot_count - 1].name);
    return 0;
}

/* Stops the box; one that works is left alone, and copied. All that can be wrong is found before. */
static int halt_for(struct change *c, const char *name, bool automatic, struct snapshot_taken *ret, struct pale_err *e)
{
    int layer = STACK_NONE, r = change_plan(c, &layer, e);
    if (r == 0)
        r = name_it(c, name, automatic, layer, ret, e);
    if (r == 0 && automatic)
        push_out(&c->stack);
    if (r == 0)
        r = change_halt(c, STOP_EMPTY, e);
    if (r != -PALE_BUSY || automatic)
        return r;
    ret->copied = true;
    r = change_unplan(c, e);
    return r < 0 ? r : name_it(c, name, automatic, STACK_NONE, ret, e);
}

static int take(const struct place *p, const char *name, bool automatic, const char *caller, struct snapshot_taken *ret, size_t *ret_chain,
                struct pale_err *e)
{
    own_change c = {0};
    struct snapshot_taken t = {0};
    int layer = STACK_NONE;
    bool empty = false;
    int r = change_begin(&c, p, caller, e);
    if (r == 0)
        r = change_is_empty(&c, &empty, e);
    if (r < 0)
        return r;
    const struct stack_snapshot *same = empty ? named(&c.stack, c.stack.below_open) : NULL;
    if (automatic && (c.stack.no_autosave || same || (empty && c.stack.below_open == STACK_NONE))) {
        *ret = t;
        return 0;
    }
    t.changed = !empty;
    /* Where nothing has changed nothing must stop. */
    if (empty && (r = landed_settle(p, &c.stack, e)) < 0)
        return r;
    r = empty ? name_it(&c, name, automatic, c.stack.below_open, &t, e) : halt_for(&c, name, automatic, &t, e);
    if (r < 0)
        return r;
    r = change_tell(&c, "box.snapshot", t.name, e);
    if (r == 0 && t.copied) {
        r = change_copy_open(&c, &layer, &t.pause_us, e);
        c.stack.snapshots[c.stack.snapshot_count - 1].layer = layer;
    } else if (r == 0 && !empty) {
        r = change_carry_out(&c, e);
    }
    if (r == 0 && empty && automatic)
        push_out(&c.stack);
    if (r == 0)
        r = change_save(&c, e);
    bool done = r == 0;
    *ret_chain = chain_of(&c.stack);
    change_restart(&c);
    if (done && t.changed)
        tidy_behind(p, c.halted.ran || t.copied); /* while the wall is built */
    r = change_resume(&c, r, &t.pause_us, e);
    if (r == 0)
        *ret = t;
    return r;
}

int snapshot_take(const struct place *p, const char *name, bool automatic, const char *caller, struct snapshot_taken *ret,
                  struct pale_err *e)
{
    struct pale_err ignored;
    size_t chain = 0;
    int r = take(p, name, automatic, caller, ret, &chain, e);
    /* They come faster than anybody looks after them behind the scenes: a box that stands on too many layers would not start. */
    if (chain >= CHAIN_JOIN_AT && tidy_join(p, &ignored) == 0)
        tidy_behind(p, true);
    return r;
}

/* What it is now is not thrown away with the going back: it gets a name unless it has one. */
static int plan_going_back(struct change *c, const char *name, struct snapshot_taken *ret, struct pale_err *e)
{
    const struct place *p = c->place;
    const struct stack_snapshot *to = stack_find(&c->stack, name);
    if (!to)
        return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot of that name; `pale snapshots %s` lists them", p->name, p->name);
    int now = STACK_NONE, target = to->layer, r = stack_refuse_poison(&c->stack, target, p->name, e);
    *ret = (struct snapshot_taken){0};
    if (r == 0)
        r = change_plan(c, &now, e);
    ret->changed = c->closing[0];
    if (r == 0 && now != target && !named(&c->stack, now))
        r = name_it(c, NULL, true, now, ret, e);
    if (r == 0) {
        c->stack.below_open = target;
        c->stack.open_born_ns = stack_now_ns(); /* what was landed before belongs to the layers that are left */
    }
    return r;
}

int snapshot_restore(const struct place *p, const char *name, bool force, const char *caller, struct snapshot_taken *ret,
                     struct pale_err *e)
{
    own_change c = {0};
    struct snapshot_taken t = {0};
    bool fits = true;
    int r = change_begin(&c, p, caller, e);
    if (r == 0)
        r = plan_going_back(&c, name, &t, e);
    if (r == 0)
        r = change_halt(&c, force ? STOP_ANY : STOP_EMPTY, e);
    if (r < 0)
        return r;
    r = change_fits(&c, &fits, e);
    if (r == 0 && !fits && (r = change_unplan(&c, e)) == 0)
        r = plan_going_back(&c, name, &t, e);
    if (r == 0)
        r = change_tell(&c, "box.restore", name, e);
    if (r == 0)
        r = change_carry_out(&c, e);
    if (r == 0)
        r = change_save(&c, e);
    r = change_resume(&c, r, &t.pause_us, e);
    if (r == 0)
        *ret = t;
    return r;
}

int snapshot_remove(const struct place *p, const char *name, const char *caller, struct pale_err *e)
{
    own_change c = {0};
    int r = change_begin(&c, p, caller, e);
    if (r < 0)
        return r;
    if (!stack_remove_snapshot(&c.stack, name))
        return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot of that name; `pale snapshots %s` lists them", p->name, p->name);
    r = change_tell(&c, "snapshot.remove", name, e);
    if (r == 0)
        r = change_save(&c, e);
    return r == 0 ? change_keep(&c, e) : r;
}

int snapshot_autosave(const struct place *p, const char *caller, struct pale_err *e)
{
    struct snapshot_taken t;
    int r = snapshot_take(p, NULL, true, caller, &t, e);
    /* Its writes are in memory; or somebody has started it again, and there will be another stop. */
    return r == -PALE_UNSUPPORTED || r == -PALE_BUSY ? 0 : r;
}

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
    /* The name is tried before the box is stopped for it. */
    if ((r = stack_add_snapshot(&c.stack, name, STACK_NONE, clock_unix_ms(), automatic, e)) < 0)
        return r;
    struct stack_snapshot *new = &c.stack.snapshots[c.stack.snapshot_count - 1];
    snprintf(t.name, sizeof(t.name), "%s", new->name);
    /* Where nothing has changed nothing must stop. */
    if (!empty && (r = change_halt(&c, STOP_EMPTY, e)) < 0 && (r != -PALE_BUSY || automatic))
        return r;
    t.copied = r == -PALE_BUSY;
    r = change_tell(&c, "box.snapshot", t.name, e);
    layer = c.stack.below_open;
    if (r == 0 && !empty && t.copied)
        r = change_copy_open(&c, &layer, &t.pause_us, e);
    else if (r == 0 && !empty)
        r = change_close_open(&c, &layer, &t.changed, e);
    t.changed = !empty;
    if (r == 0) {
        new->layer = layer;
        if (automatic)
            push_out(&c.stack);
        r = change_save(&c, e);
    }
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

int snapshot_restore(const struct place *p, const char *name, bool force, const char *caller, struct snapshot_taken *ret,
                     struct pale_err *e)
{
    own_change c = {0};
    struct snapshot_taken t = {0};
    int now = STACK_NONE, r = change_begin(&c, p, caller, e);
    if (r < 0)
        return r;
    const struct stack_snapshot *to = stack_find(&c.stack, name);
    if (!to)
        return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot of that name; `pale snapshots %s` lists them", p->name, p->name);
    int target = to->layer;
    if ((r = stack_refuse_poison(&c.stack, target, p->name, e)) < 0)
        return r;
    if ((r = change_halt(&c, force ? STOP_ANY : STOP_EMPTY, e)) < 0)
        return r;
    r = change_tell(&c, "box.restore", name, e);
    if (r == 0)
        r = change_close_open(&c, &now, &t.changed, e);
    /* What it is now is not thrown away with the going back: it gets a name unless it has one. */
    if (r == 0 && now != target && !named(&c.stack, now)) {
        r = stack_add_snapshot(&c.stack, NULL, now, clock_unix_ms(), true, e);
        if (r == 0)
            snprintf(t.name, sizeof(t.name), "%s", c.stack.snapshots[c.stack.snapshot_count - 1].name);
    }
    if (r == 0) {
        c.stack.below_open = target;
        r = change_save(&c, e);
    }
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

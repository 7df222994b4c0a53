/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of forks. */
#include "box/fork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/adopt.h"
#include "box/audit.h"
#include "box/change.h"
#include "box/cutoff.h"
#include "box/layerdir.h"

/* What every fork stands on: the layers below a point, with no snapshot's name of the parent's. */
static int copy_below(const struct stack *from, int layer, struct stack *ret, struct pale_err *e)
{
    int r;
    for (size_t i = 0; i < from->layer_count; i++)
        if ((r = stack_add_layer(ret, &from->layers[i], e)) < 0)
            return r;
    for (size_t i = 0; i < from->join_count; i++)
        if ((r = stack_add_join(ret, &from->joins[i], e)) < 0)
            return r;
    ret->below_open = layer;
    return stack_prune(ret, e);
}

static int share_all(const struct place *p, const struct layerdir_pool *pool, const struct stack *s, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->layer_count; i++)
        r = layerdir_share(p, pool, s->layers[i].id, e);
    for (size_t i = 0; r == 0 && i < s->join_count; i++)
        r = layerdir_share(p, pool, s->joins[i].id, e);
    return r < 0 ? r : layerdir_keep_shared(pool, e);
}

struct lineage {
    const struct change *change;
    const struct fork_order *order;
};

/* The first record of its log, there before the fork is a box: none is without it, whatever becomes of us. */
static int tell_lineage(const void *arg, const struct place *fork, struct pale_err *e)
{
    const struct lineage *l = arg;
    const struct change *c = l->change;
    const struct fork_order *o = l->order;
    char path[PATH_BYTES_MAX];
    struct audit a;
    struct audit_anchor head = {0};
    snprintf(path, sizeof(path), "%s/audit", c->place->state);
    int r = audit_head(path, &head, e);
    snprintf(path, sizeof(path), "%s/audit", fork->state);
    if (r < 0 || (r = cutoff_inherit(c->place, fork, e)) < 0 || (r = audit_open(&a, path, AUDIT_BIRTH, fork->name, fork->id, e)) < 0)
        return r;
    a.caller = o->caller;
    struct json *j = audit_begin(&a, "box.forked");
    json_text(j, "from", c->place->name);
    json_text(j, "from_id", c->place->id);
    json_text(j, "snapshot", o->at ? o->at : "");
    json_u64(j, "from_record", head.seq);
    json_text(j, "from_digest", head.digest);
    if (cutoff_of_place(fork))
        json_text(j, "cut", cutoff_name(cutoff_of_place(fork)));
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

static int fork_name(const struct fork_order *o, unsigned i, char ret[BOX_NAME_MAX + 1], struct pale_err *e)
{
    int n = o->count == 1 ? snprintf(ret, BOX_NAME_MAX + 1, "%s", o->name) : snprintf(ret, BOX_NAME_MAX + 1, "%s-%u", o->name, i + 1);
    return n < 0 || n > BOX_NAME_MAX ? err_set(e, PALE_BAD_INPUT, "the name is longer than %d bytes with its number", BOX_NAME_MAX) : 0;
}

/* What is refused has touched nothing: not the parent's layers either. */
static int check_names(const struct place *p, const struct fork_order *o, struct pale_err *e)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < o->count; i++) {
        char name[BOX_NAME_MAX + 1];
        struct place ignored;
        if ((r = fork_name(o, i, name, e)) == 0)
            r = place_plan_beside(o->beside ? o->beside : p, name, &ignored, e);
    }
    return r;
}

static int make_one(const struct change *c, const struct fork_order *o, unsigned i, struct stack *below, struct place *ret,
                    struct pale_err *e)
{
    char name[BOX_NAME_MAX + 1];
    const struct lineage lineage = {c, o};
    const struct life_order order = {
        .name = name,
        .beside = o->beside ? o->beside : c->place,
        .policy = &c->policy,
        .stack = below,
        .begin = tell_lineage,
        .arg = &lineage,
        .durable = true,
    };
    int r = fork_name(o, i, name, e);
    if (r == 0)
        r = stack_new_id(below->open, e);
    return r < 0 ? r : life_make(&order, ret, e);
}

int fork_make(const struct place *p, const struct fork_order *o, struct place *ret, struct pale_err *e)
{
    own_change c = {0};
    own_stack below = {0};
    uint64_t pause = 0;
    int layer = STACK_NONE;
    unsigned made = 0;
    stack_init(&below);
    if (o->count < 1 || o->count > FORK_MAX)
        return err_set(e, PALE_BAD_INPUT, "1 to %d forks are made at once", FORK_MAX);
    own_layerdir_pool pool = {.fd = {-1, -1}};
    int r = check_names(p, o, e);
    if (r == 0)
        r = change_begin(&c, p, o->caller, e);
    if (r == 0)
        r = change_find_point(&c, o->at, &layer, e);
    if (r == 0)
        r = stack_refuse_poison(&c.stack, layer, p->name, e);
    if (r == 0)
        r = change_tell(&c, "box.fork", o->name, e);
    if (r == 0)
        r = change_keep(&c, e);
    if (r == 0)
        r = copy_below(&c.stack, layer, &below, e);
    if (r == 0)
        r = layerdir_hold_shared(p, &pool, e);
    if (r == 0)
        r = share_all(p, &pool, &below, e);
    if (r == 0 && o->beside)
        r = adopt_move_project(&c.policy, p->data, o->beside->data, e);
    if (r == 0 && c.policy.project == PROJECT_LIVE && !o->beside)
        c.policy.project = PROJECT_REVIEW;
    for (; r == 0 && made < o->count; made += r == 0)
        r = make_one(&c, o, made, &below, &ret[made], e);
    for (unsigned i = 0; r == 0 && i < made; i++)
        r = life_keep(&ret[i], e);
    while (r < 0 && made > 0)
        (void)!place_remove(&ret[--made], true, NULL);
    return change_resume(&c, r, &pause, e);
}

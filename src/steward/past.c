/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds on a box's past. */
#include "steward/past.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "box/fork.h"
#include "box/gc.h"
#include "box/snapshot.h"

static void begin(struct json *j, struct buf *told)
{
    json_start(j, told);
    json_begin_object(j, NULL);
}

/* One of that name may have been taken for the same request, whose answer got lost. */
static int find_taken(const struct place *p, const char *name, struct snapshot_taken *ret, struct pale_err *e)
{
    own_stack s = {0};
    int r = stack_load(p, &s, e);
    const struct stack_snapshot *n = r < 0 ? NULL : stack_find(&s, name);
    if (r == 0 && !n)
        r = err_set(e, PALE_GONE, "there was a snapshot %s, and somebody has removed it since", name);
    if (r == 0) {
        *ret = (struct snapshot_taken){.changed = true};
        memcpy(ret->name, n->name, sizeof(ret->name));
    }
    return r;
}

int past_snapshot(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e)
{
    struct snapshot_taken t = {0};
    struct json j;
    int r = snapshot_take(p, m->snapshot, m->automatic, m->caller, &t, e);
    if (r == -PALE_EXISTS && m->again)
        r = find_taken(p, m->snapshot, &t, e);
    /* A box whose writes are in memory is not asked for what it cannot keep. */
    if (r == -PALE_UNSUPPORTED && m->automatic)
        r = 0;
    if (r < 0 || (m->automatic && !t.name[0]))
        return r;
    begin(&j, told);
    json_text(&j, "snapshot", t.name);
    json_bool(&j, "changed", t.changed);
    json_bool(&j, "copied", t.copied);
    json_u64(&j, "pause_us", t.pause_us);
    json_end_object(&j);
    return 0;
}

int past_restore(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e)
{
    struct snapshot_taken t = {0};
    struct json j;
    int r = snapshot_restore(p, m->snapshot, m->force, m->caller, &t, e);
    if (r < 0)
        return r;
    begin(&j, told);
    json_text(&j, "restored", m->snapshot);
    json_text(&j, "kept", t.name);
    json_u64(&j, "pause_us", t.pause_us);
    json_end_object(&j);
    return 0;
}

int past_forget(const struct msg_deed *m, const struct place *p, struct pale_err *e)
{
    return snapshot_remove(p, m->snapshot, m->caller, e);
}

int past_fork(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e)
{
    const struct fork_order o = {
        .name = m->name, .at = m->snapshot[0] ? m->snapshot : NULL, .count = (unsigned)m->count, .caller = m->caller};
    struct json j;
    if (m->count < 1 || m->count > FORK_MAX)
        return err_set(e, PALE_BAD_INPUT, "1 to %d forks are made at once", FORK_MAX);
    own_mem struct place *made = calloc(m->count, sizeof(*made));
    if (!made)
        return err_nomem(e);
    int r = fork_make(p, &o, made, e);
    if (r < 0)
        return r;
    begin(&j, told);
    json_begin_list(&j, "items");
    for (size_t i = 0; i < m->count; i++) {
        json_begin_object(&j, NULL);
        json_text(&j, "name", made[i].name);
        json_text(&j, "id", made[i].id);
        json_end_object(&j);
    }
    json_end_list(&j);
    json_end_object(&j);
    return told->failed ? err_nomem(e) : 0;
}

static void take_image(void *arg, const struct imageuse_idle *i)
{
    gc_image_json(i, arg);
}

int past_gc(const struct msg_deed *m, struct buf *told, struct pale_err *e)
{
    struct gc_result g;
    struct json j;
    const struct gc_order o = {.only_tells = m->dry, .images = m->images, .told = take_image, .arg = &j, .caller = m->caller};
    begin(&j, told);
    json_begin_list(&j, "images");
    int r = gc_all(&o, &g, e);
    if (r < 0)
        return r;
    json_end_list(&j);
    gc_json(&g, &j);
    json_end_object(&j);
    return told->failed ? err_set(e, PALE_LIMIT, "it is done, but what was removed is too much to be told") : 0;
}

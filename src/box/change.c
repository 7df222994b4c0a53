/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the steps of a change of a box's stack. */
#include "box/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "box/allot.h"
#include "box/audit.h"
#include "box/copying.h"
#include "box/layerdir.h"
#include "box/reach.h"
#include "wire/frame.h"
#include "wire/message.h"

#define COPY_TRIES 5

static void close_kept(struct change *c)
{
    for (int i = 0; i < LAYERDIR_KEPT; i++)
        own_close(&c->kept[i]);
}

void change_done(struct change *c)
{
    if (!c->place)
        return; /* not begun */
    reach_close(&c->next);
    /* Made for nothing, if it is still here. What cannot be removed the next `gc` takes. */
    if (c->next_open[0])
        (void)!layerdir_remove(c->place, c->next_open, NULL);
    (void)!change_keep(c, NULL);
    close_kept(c);
    policy_done(&c->policy);
    stack_done(&c->stack);
    life_halted_done(&c->halted);
    own_close(&c->stack_lock);
}

int change_save(struct change *c, struct pale_err *e)
{
    int fds[1 + LAYERDIR_KEPT];
    size_t n = 0;
    if (c->told_fd >= 0)
        fds[n++] = c->told_fd;
    for (int i = 0; i < LAYERDIR_KEPT; i++)
        if (c->kept[i] >= 0)
            fds[n++] = c->kept[i];
    /* The kernel has just written all that was on the disk of a box that ran. */
    const struct fd_after after = {.fds = fds, .count = n, .is_calm = c->halted.ran};
    int r = stack_save_after(c->place, &c->stack, &after, &c->state_fd, e);
    if (r == 0) {
        own_close(&c->told_fd);
        close_kept(c);
        c->saved = true;
    }
    return r;
}

int change_keep(struct change *c, struct pale_err *e)
{
    int r = 0;
    if (c->told_fd >= 0 && fdatasync(c->told_fd) < 0)
        r = err_os(e, "write the audit log of %s to the disk", c->place->name);
    if (c->state_fd >= 0 && fsync(c->state_fd) < 0)
        r = err_os(e, "write %s to the disk", c->place->state);
    own_close(&c->told_fd);
    own_close(&c->state_fd);
    return r;
}

int change_begin(struct change *c, const struct place *p, const char *caller, struct pale_err *e)
{
    *c = (struct change){.place = p,
                         .caller = caller,
                         .stack_lock = -1,
                         .halted = {.lock_fd = -1, .home_fd = -1},
                         .told_fd = -1,
                         .kept = {-1, -1},
                         .state_fd = -1};
    stack_init(&c->stack);
    reach_init(&c->next);
    int r = stack_lock(p, &c->stack_lock, e);
    if (r == 0)
        r = life_policy(p, &c->policy, e);
    if (r == 0)
        r = stack_load(p, &c->stack, e);
    if (r == 0 && c->policy.scratch != SCRATCH_DISK)
        r = err_set(e, PALE_UNSUPPORTED, "box %s keeps its writes in memory (scratch: memory), where nothing can be kept of them", p->name);
    return r;
}

/* A new open layer on top of what is given. The folder first: a list that names it is good from its first instant. */
static int open_on(struct change *c, char ret_id[LAYER_ID_LEN + 1], bool still, struct pale_err *e)
{
    int r = stack_new_id(ret_id, e);
    return r < 0 ? r : layerdir_make(c->place, ret_id, &c->policy, still, e);
}

/* The folder of the layer that is to be opened next. Where what a box has written is counted, a full one has no room for a folder before it
 * is stopped. */
static void make_next(struct change *c)
{
    struct pale_err ignored;
    bool empty = true;
    if (c->next_made || allot_is_wanted(&c->policy))
        return;
    if (c->planned && c->next_open[0])
        c->next_made = layerdir_make(c->place, c->next_open, &c->policy, false, &ignored) == 0;
    else if (!c->planned && change_is_empty(c, &empty, &ignored) == 0 && !empty)
        c->next_made = open_on(c, c->next_open, false, &ignored) == 0;
    if (!c->next_made && !c->planned)
        c->next_open[0] = 0;
}

/* The keeper that comes after gets itself ready, the folder of the layer that it will open is made, and it hears on which layers it will
 * stand. What fails is tried again later, and tells why. */
static void while_it_dies(void *arg, int home_fd)
{
    struct change *c = arg;
    struct pale_err ignored;
    own_buf list = {0};
    c->next.caller = c->caller;
    bool begins = !c->next.waits;
    if (begins && reach_start_next(&c->next, c->place, home_fd, &ignored) < 0)
        own_close(&c->next.fd);
    make_next(c);
    buf_init(&list, FRAME_PAYLOAD_MAX);
    if (c->planned && (c->next_made || !c->next_open[0]))
        stack_write(&c->stack, &list);
    if (begins && c->next.waits && reach_tell_list(&c->next, list.data, list.failed ? 0 : list.len, &ignored) < 0)
        reach_close(&c->next);
}

int change_halt(struct change *c, enum life_stop_when when, struct pale_err *e)
{
    c->stopped_us = clock_us();
    c->halted.meanwhile = while_it_dies;
    c->halted.arg = c;
    return life_halt(c->place, when, c->caller, &c->halted, e);
}

/* The keeper writes it. PALE_NOT_FOUND if there is none. */
static int tell_keeper(const struct change *c, const struct msg_note *n, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    uint8_t mem[1024];
    struct record_writer w;
    struct frame f;
    reach_init(&reach);
    int r = reach_box(&reach, c->place, false, e);
    if (r < 0)
        return r;
    record_start(&w, mem, sizeof(mem));
    msg_note_write(n, &w);
    if ((r = life_send_caller(&reach, c->caller, e)) == 0 && (r = reach_send(&reach, ASK_NOTE, mem, w.len, e)) == 0)
        r = reach_receive(&reach, &f, e);
    return r;
}

static int tell_log(struct change *c, const struct msg_note *n, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct audit a;
    snprintf(path, sizeof(path), "%s/audit", c->place->state);
    int r = audit_open(&a, path, AUDIT_BOX, c->place->name, c->place->id, e);
    if (r < 0)
        return r;
    a.caller = c->caller;
    struct json *j = audit_begin(&a, n->event);
    json_text(j, "what", n->what);
    r = audit_commit(&a, e);
    own_close(&c->told_fd); /* of the same log */
    c->told_fd = audit_leave(&a);
    return r;
}

int change_tell(struct change *c, const char *event, const char *what, struct pale_err *e)
{
    const struct msg_note n = {.event = event, .what = what};
    int r = c->halted.lock_fd >= 0 ? -PALE_NOT_FOUND : tell_keeper(c, &n, e);
    if (r == -PALE_NOT_FOUND && c->halted.lock_fd < 0) {
        /* There was none a moment ago; if there is one now it has only just begun. */
        if ((r = change_halt(c, STOP_EMPTY, e)) < 0)
            return r;
        r = -PALE_NOT_FOUND;
    }
    return r == -PALE_NOT_FOUND ? tell_log(c, &n, e) : r;
}

/* Who has built by a list that was never saved, or cannot be told, is not needed; change_resume starts another. */
static void give_up_next(struct change *c)
{
    const char *caller = c->next.caller;
    reach_close(&c->next);
    reach_init(&c->next);
    c->next.caller = caller;
}

/* The box before is gone, and its log written: the next may join its layers. */
static void let_go(struct change *c)
{
    struct pale_err ignored;
    if (c->next.waits && c->halted.lock_fd >= 0 && reach_let_go(&c->next, c->halted.lock_fd, &ignored) < 0)
        give_up_next(c);
}

void change_restart(struct change *c)
{
    struct pale_err ignored;
    if (c->planned && !c->saved)
        give_up_next(c);
    let_go(c);
    if (c->next.wants_list && reach_tell_saved(&c->next, &ignored) < 0)
        give_up_next(c);
    own_close(&c->halted.lock_fd);
}

int change_resume(struct change *c, int so_far, uint64_t *ret_pause_us, struct pale_err *e)
{
    struct pale_err late = {0};
    change_restart(c);
    /* While the wall is built: the keeper waits to hear of it before anybody can use the box. */
    int kept = change_keep(c, so_far < 0 ? NULL : e);
    if (kept < 0 && so_far == 0)
        so_far = -PALE_OS;
    if (kept == 0 && c->next.wants_disk && reach_tell_kept(&c->next, &late) < 0)
        give_up_next(c);
    if (!c->halted.ran)
        return so_far;
    c->halted.ran = false;
    int r = kept == 0 && c->next.starting > 0 ? reach_started(&c->next, c->place, &late) : -PALE_GONE;
    /* Somebody else may have started it in this instant, or the user's ids have become others and the home does not fit any more. */
    if (r < 0) {
        reach_close(&c->next);
        reach_init(&c->next);
        c->next.caller = c->caller;
        r = reach_box(&c->next, c->place, true, &late);
    }
    *ret_pause_us = (uint64_t)(clock_us() - c->stopped_us);
    if (so_far < 0 || r == 0)
        return so_far;
    *e = late;
    return err_prefix(e, "it is done, but box %s did not start again", c->place->name);
}

int change_is_empty(const struct change *c, bool *ret, struct pale_err *e)
{
    int r = layerdir_is_empty(c->place, c->stack.open, ret, e);
    *ret = *ret && !c->stack.open_anew;
    return r;
}

int change_plan(struct change *c, int *ret, struct pale_err *e)
{
    bool empty = false;
    int r = change_is_empty(c, &empty, e);
    *ret = c->stack.below_open;
    if (r == 0 && !empty) {
        memcpy(c->closing, c->stack.open, sizeof(c->closing));
        r = stack_new_id(c->next_open, e);
        if (r == 0)
            r = stack_close(&c->stack, c->next_open, clock_unix_ms(), ret, e);
    }
    c->planned = r == 0;
    return r;
}

int change_unplan(struct change *c, struct pale_err *e)
{
    give_up_next(c);
    if (c->next_open[0])
        (void)!layerdir_remove(c->place, c->next_open, NULL);
    c->planned = c->next_made = false;
    c->closing[0] = c->next_open[0] = 0;
    stack_done(&c->stack);
    return stack_load(c->place, &c->stack, e);
}

int change_fits(const struct change *c, bool *ret, struct pale_err *e)
{
    *ret = c->closing[0];
    return *ret ? 0 : change_is_empty(c, ret, e);
}

/* One with nothing in it may have been lost with the power; closed, it must be there. What only the kernel needed in it goes when its
 * digest is made: nobody waits for that. */
static int keep_closed(struct change *c, const char *id, struct pale_err *e)
{
    int r = layerdir_make(c->place, id, &c->policy, true, e);
    return r < 0 ? r : layerdir_open_kept(c->place, id, c->kept, e);
}

int change_carry_out(struct change *c, struct pale_err *e)
{
    /* An open layer that stays is the box's own, whatever becomes of the plan: nobody joins it to others before the list says so. */
    if (c->closing[0])
        let_go(c);
    int r = c->closing[0] ? keep_closed(c, c->closing, e) : 0;
    if (r == 0 && c->next_open[0] && !c->next_made)
        r = layerdir_make(c->place, c->next_open, &c->policy, true, e);
    if (r == 0)
        c->next_open[0] = 0;
    return r;
}

int change_close_open(struct change *c, int *ret, bool *ret_changed, struct pale_err *e)
{
    char next[LAYER_ID_LEN + 1];
    bool empty = false;
    int r = change_is_empty(c, &empty, e);
    if (r < 0)
        return r;
    *ret_changed = !empty;
    *ret = c->stack.below_open;
    if (empty)
        return 0;
    if ((r = keep_closed(c, c->stack.open, e)) < 0)
        return r;
    memcpy(next, c->next_open, sizeof(next));
    c->next_open[0] = 0;
    if (!next[0] && (r = open_on(c, next, true, e)) < 0)
        return r;
    return stack_close(&c->stack, next, clock_unix_ms(), ret, e);
}

/* --- a box that works --- */

static int is_frozen(const struct place *p, bool *ret, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    struct msg_info info;
    struct frame f;
    reach_init(&reach);
    int r = reach_box(&reach, p, false, e);
    if (r == 0 && (r = reach_send(&reach, ASK_INFO, NULL, 0, e)) == 0)
        r = reach_receive(&reach, &f, e);
    if (r < 0)
        return r;
    if (f.type != TELL_INFO || !msg_info_parse(f.data, f.len, &info))
        return err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language", p->name);
    *ret = strcmp(info.state, "frozen") == 0;
    return 0;
}

static int open_parts(const struct place *p, const char *from, const char *to, struct copying *x, struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < PART_COUNT; i++) {
        r = layerdir_open_part(p, from, i, O_RDONLY, &x->from[i], e);
        if (r < 0 || x->from[i] < 0)
            continue;
        r = layerdir_open_part(p, to, i, O_RDONLY, &x->to[i], e);
        if (r == 0 && x->to[i] < 0)
            r = err_set(e, PALE_INTERNAL, "a new layer has no %s", wall_part_names[i]);
    }
    return r;
}

static const char copy_remedy[] = "a box that is stopped, or in which nothing runs, needs none";

/* One that the user has frozen stays so. */
static int second_pass(const struct place *p, struct copying *x, uint64_t *ret_pause_us, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    bool was = false;
    reach_init(&reach);
    int r = is_frozen(p, &was, e);
    if (r == 0 && !was)
        r = life_pause(p, &reach, e);
    if (r < 0)
        return r;
    int64_t began = clock_us();
    struct pale_err late = {0};
    r = copying_run(x, COPYING_SECOND, copy_remedy, e);
    int thawed = was ? 0 : life_go_on(p, &reach, &late);
    *ret_pause_us = was ? 0 : (uint64_t)(clock_us() - began);
    if (r == 0 && thawed < 0)
        *e = late;
    return r < 0 ? r : thawed;
}

int change_copy_open(struct change *c, int *ret, uint64_t *ret_pause_us, struct pale_err *e)
{
    struct stack_layer l = {.below = c->stack.below_open, .anew = c->stack.open_anew};
    own_copying x;
    copying_init(&x);
    int r = open_on(c, l.id, false, e);
    if (r == 0)
        r = layerdir_settle(c->place, l.id, e);
    if (r == 0)
        r = open_parts(c->place, c->stack.open, l.id, &x, e);
    if (r == 0)
        r = copying_start(&x, e);
    if (r == 0)
        r = copying_run(&x, COPYING_FIRST, copy_remedy, e);
    if (r == 0)
        r = second_pass(c->place, &x, ret_pause_us, e);
    if (r == 0)
        r = layerdir_keep(c->place, l.id, e);
    if (r < 0) {
        /* It counts to the box, which may be full because of it. What cannot be removed now the next `gc` takes. */
        if (l.id[0])
            (void)!layerdir_remove(c->place, l.id, NULL);
        return err_prefix(e, "copy what box %s has written while it works", c->place->name);
    }
    l.closed_ms = clock_unix_ms();
    int n = stack_add_layer(&c->stack, &l, e);
    if (n < 0)
        return n;
    *ret = n;
    return 0;
}

int change_find_point(struct change *c, const char *at, int *ret, struct pale_err *e)
{
    bool empty = false, changed = false;
    if (at) {
        const struct stack_snapshot *n = stack_find(&c->stack, at);
        if (!n)
            return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot of that name; `pale snapshots %s` lists them", c->place->name,
                           c->place->name);
        *ret = n->layer;
        return 0;
    }
    int r = change_is_empty(c, &empty, e);
    *ret = c->stack.below_open;
    if (r < 0 || empty)
        return r;
    uint64_t pause;
    /* One that somebody stops while it is copied can be closed the next time, unless he has started it again by then. */
    for (int tries = 0; tries == 0 || (tries < COPY_TRIES && (r == -PALE_GONE || r == -PALE_NOT_FOUND)); tries++) {
        r = change_halt(c, STOP_EMPTY, e);
        if (r == 0) {
            r = change_close_open(c, ret, &changed, e);
            break;
        }
        if (r != -PALE_BUSY)
            break;
        r = change_copy_open(c, ret, &pause, e);
    }
    if (r == 0)
        r = change_save(c, e);
    return r == 0 ? change_keep(c, e) : r; /* before a layer that it names is moved */
}

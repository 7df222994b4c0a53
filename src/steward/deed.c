/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds: one function each, in a process that does nothing else and may block.
 *
 * The order comes from paled, which reads what strangers send: it is parsed strictly, and what it asks for is done by the same
 * functions that serve the command line, which check names, owners and links themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/adopt.h"
#include "box/amend.h"
#include "box/approval.h"
#include "box/ceiling.h"
#include "box/checkpoint.h"
#include "box/cutoff.h"
#include "box/kept_log.h"
#include "box/intake.h"
#include "box/life.h"
#include "box/policy_compare.h"
#include "box/place.h"
#include "box/reach.h"
#include "box/start.h"
#include "box/rename.h"
#include "box/stack.h"
#include "box/unlanded.h"
#include "steward/building.h"
#include "steward/custody.h"
#include "steward/gallery.h"
#include "steward/inlet.h"
#include "steward/parcel.h"
#include "steward/past.h"
#include "steward/scrutiny.h"
#include "steward/steward.h"
#include "wire/frame.h"
#include "wire/message.h"

#define PRINTED_MAX 131072u

struct deed {
    const struct msg_deed *order;
    int fd; /* to paled */
    int home_fd;
    struct place place;  /* the box, once it is known */
    struct buf *printed; /* what is told besides */
};

/* --- policies --- */

static int make_policy(const struct msg_deed *m, enum intake_paths paths, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    int r = m->policy[0] ? intake_text(m->policy, &p, e) : policy_init(&p, e);
    if (r == 0)
        r = intake_sets(&p, m->sets, paths, e);
    if (r == 0 && paths == PATHS_REAL)
        r = intake_check(&p, NULL, e);
    if (r == 0) {
        *ret = p;
        p = (struct policy){0};
    }
    return r;
}

/* --- deeds --- */

/* The policy that the order describes, within what its tenant's boxes may be: as it is written first, so that he learns of no path of the
 * host that he could not name anyway. */
static int wanted_policy(const struct msg_deed *m, struct policy *ret, struct pale_err *e)
{
    own_policy written = {0};
    int r = m->tenant[0] ? make_policy(m, PATHS_WRITTEN, &written, e) : 0;
    if (r == 0 && m->tenant[0])
        r = ceiling_check(m->tenant, &written, e);
    if (r == 0)
        r = make_policy(m, PATHS_REAL, ret, e);
    if (r == 0)
        r = ceiling_check(m->tenant, ret, e);
    return r == 0 ? ceiling_refuse_host(ret, e) : r;
}

/* Somebody wants a box that is there, and did not make it by the same request: is it what he wants? */
static int do_compare(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy p = {0};
    int r = wanted_policy(m, &p, e);
    if (r == 0)
        r = place_owned(m->tenant, m->name, &d->place, e);
    return r == 0 ? policy_compare(&d->place, &p, m->by_hand, e) : r;
}

static int do_make(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy p = {0};
    own_reach reach = {.fd = -1};
    reach_init(&reach);
    reach.caller = m->caller;
    int r = wanted_policy(m, &p, e);
    if (r < 0)
        return r;
    own_stack by_hand = {0};
    stack_init(&by_hand);
    by_hand.no_autosave = true;
    struct life_order order = {.name = m->name,
                               .scope = SCOPE_USER,
                               .tenant = m->tenant[0] ? m->tenant : NULL,
                               .policy = &p,
                               .stack = m->by_hand ? &by_hand : NULL,
                               .durable = !m->start};
    r = life_make(&order, &d->place, e);
    if (r < 0)
        return r;
    own_start_look look = START_LOOK_NONE;
    start_look_begin(&look, &d->place, &p);
    if (m->start && (r = reach_start(&reach, &d->place, d->home_fd, e)) == 0)
        r = reach_started(&reach, &d->place, e);
    start_look_end(&look, &d->place);
    if (!m->start)
        return r;
    /* Another keeper in its place was started by somebody who found the box there and uses it. */
    if (r == -PALE_BUSY)
        return 0;
    if (r < 0)
        life_take_back(&d->place);
    return r;
}

static int do_start(struct deed *d, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    reach_init(&reach);
    reach.caller = d->order->caller;
    return reach_box(&reach, &d->place, true, e);
}

static int do_stop(struct deed *d, struct pale_err *e)
{
    int r = life_stop(&d->place, d->order->only_idle ? STOP_IDLE : STOP_ANY, d->order->caller, e);
    if (r < 0)
        return r;
    struct msg_deed m = *d->order;
    m.automatic = true;
    r = past_snapshot(&m, &d->place, d->printed, e);
    return r == -PALE_BUSY ? 0 : r; /* somebody has started it again, and there will be another stop */
}

static int do_snapshot(struct deed *d, struct pale_err *e)
{
    return past_snapshot(d->order, &d->place, d->printed, e);
}

static int do_restore(struct deed *d, struct pale_err *e)
{
    return past_restore(d->order, &d->place, d->printed, e);
}

static int do_forget(struct deed *d, struct pale_err *e)
{
    return past_forget(d->order, &d->place, e);
}

/* A tenant's fork is a new box of his: it must be within what his boxes may be now. */
static int do_fork(struct deed *d, struct pale_err *e)
{
    own_policy p = {0};
    int r = d->place.tenant[0] ? life_policy(&d->place, &p, e) : 0;
    if (r == 0)
        r = ceiling_check(d->place.tenant, &p, e);
    return r < 0 ? r : past_fork(d->order, &d->place, d->printed, e);
}

static int do_gc(struct deed *d, struct pale_err *e)
{
    return past_gc(d->order, d->printed, e);
}

static int do_diff(struct deed *d, struct pale_err *e)
{
    return scrutiny_diff(d->order, &d->place, d->fd, e);
}

/* Landing is the operator's act, but where a tenant's box might have the project live: there he could write it from inside as well, and
 * what the host would obey no more than that. */
static int do_apply(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy p = {0};
    int r = m->tenant[0] ? life_policy(&d->place, &p, e) : 0;
    if (r == 0 && m->tenant[0] && m->guarded)
        r = err_set(e, PALE_DENIED, "what this host would run or obey is landed by its operator");
    p.project = PROJECT_LIVE;
    if (r == 0 && m->tenant[0] && (r = ceiling_check(m->tenant, &p, e)) < 0)
        return err_prefix(e, "only the operator lands what this box has changed");
    return r < 0 ? r : scrutiny_apply(m, &d->place, d->fd, d->printed, e);
}

static int do_discard(struct deed *d, struct pale_err *e)
{
    return scrutiny_discard(d->order, &d->place, d->printed, e);
}

/* A tenant sees the one image that his boxes may be on, if they may be on any. */
static int visible_image(const struct deed *d, struct policy *most, const char **ret_only, struct pale_err *e)
{
    *ret_only = NULL;
    if (!d->order->tenant[0])
        return 0;
    int r = ceiling_read(most, e);
    *ret_only = r == 0 && most->image ? most->image : "";
    return r;
}

static int do_image_list(struct deed *d, struct pale_err *e)
{
    own_policy most = {0};
    const char *only;
    int r = visible_image(d, &most, &only, e);
    return r < 0 ? r : gallery_list(only, d->fd, e);
}

static int do_image_show(struct deed *d, struct pale_err *e)
{
    own_policy most = {0};
    const char *only;
    int r = visible_image(d, &most, &only, e);
    return r < 0 ? r : gallery_show(d->order->name, only, d->fd, e);
}

static int do_image_verify(struct deed *d, struct pale_err *e)
{
    return gallery_verify(d->order->name, d->fd, e);
}

static int do_image_remove(struct deed *d, struct pale_err *e)
{
    return gallery_remove(d->order->name, d->order->caller, e);
}

static int do_guard_list(struct deed *d, struct pale_err *e)
{
    return custody_list(&d->place, d->fd, e);
}

static int do_guard_release(struct deed *d, struct pale_err *e)
{
    return custody_release(d->order, &d->place, e);
}

static int do_guard_drop(struct deed *d, struct pale_err *e)
{
    return custody_drop(d->order, &d->place, e);
}

static int do_verdict(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *o = d->order;
    enum verdict_scope scope = APPLIES_ONCE;
    while (scope < APPLIES_COUNT && strcmp(o->form, msg_verdict_scopes[scope]) != 0)
        scope++;
    const struct msg_verdict m = {.question = o->name,
                                  .box = d->place.id,
                                  .host = o->sets,
                                  .port = o->count,
                                  .allow = o->force,
                                  .scope = scope,
                                  .until_unix = approval_until(o->for_ms)};
    if (scope == APPLIES_COUNT)
        return err_set(e, PALE_BAD_INPUT, "there is no such scope of an answer");
    return approval_answer(&d->place, &m, o->caller, e);
}

static int do_image_build(struct deed *d, struct pale_err *e)
{
    return building_run(d->order, d->fd, d->printed, e);
}

static int do_export(struct deed *d, struct pale_err *e)
{
    return parcel_export(d->order, d->fd, e);
}

static int do_import(struct deed *d, struct pale_err *e)
{
    return parcel_import(d->order, d->fd, d->printed, &d->place, e);
}

static int do_remove(struct deed *d, struct pale_err *e)
{
    char note[PALE_ERR_TEXT_MAX];
    int r = life_stop(&d->place, STOP_ANY, d->order->caller, e);
    if (r == 0 && d->place.lost)
        return adopt_forget(&d->place, d->order->force, e);
    return r < 0 ? r : kept_log_remove(&d->place, true, d->order->caller, false, note, e);
}

/* Has it work that exists nowhere else? */
static int do_unlanded(struct deed *d, struct pale_err *e)
{
    return unlanded_refuse(&d->place, e);
}

static int do_rename(struct deed *d, struct pale_err *e)
{
    struct place old = d->place;
    return rename_box(&old, d->order->name, d->order->caller, &d->place, e);
}

/* A whole one, or what there is with some of it changed. */
static int make_next(const struct msg_deed *m, const struct policy *old, enum intake_paths paths, struct policy *ret, struct pale_err *e)
{
    own_buf text = {0};
    if (m->policy[0])
        return make_policy(m, paths, ret, e);
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(old, &text);
    int r = text.failed ? err_nomem(e) : policy_parse(buf_text(&text), text.len, ret, e);
    if (r == 0)
        r = intake_sets(ret, m->sets, paths, e);
    return r == 0 && paths == PATHS_REAL ? intake_check(ret, NULL, e) : r;
}

static int next_policy(void *arg, const struct policy *old, struct policy *ret, struct pale_err *e)
{
    const struct deed *d = arg;
    const struct msg_deed *m = d->order;
    int r = 0;
    if (m->narrower) {
        own_policy written = {0};
        r = make_next(m, old, PATHS_WRITTEN, &written, e);
        if (r == 0)
            r = policy_narrow(old, &written, e);
    }
    if (r == 0)
        r = make_next(m, old, PATHS_REAL, ret, e);
    if (r == 0 && m->narrower)
        r = policy_narrow(old, ret, e);
    if (r == 0)
        r = ceiling_check(d->place.tenant, ret, e);
    return r == 0 && old->network != NETWORK_HOST ? ceiling_refuse_host(ret, e) : r;
}

/* What a wall was built with does not change under it; rules of the network do. */
static int do_policy(struct deed *d, struct pale_err *e)
{
    struct amend_policy x = {.next = next_policy, .arg = d, .caller = d->order->caller};
    int r = amend_policy(&d->place, &x, e);
    policy_done(&x.old);
    policy_done(&x.new);
    return r;
}

static int do_cut(struct deed *d, struct pale_err *e)
{
    return cutoff_box(&d->place, d->order->count != 0, d->order->caller, e);
}

static int do_panic(struct deed *d, struct pale_err *e)
{
    struct cutoff_all x = {.on = d->order->count != 0, .caller = d->order->caller};
    int r = cutoff_all(&x, e);
    if (r == 0)
        buf_addf(d->printed, "{\"cut\":%s,\"live\":%u,\"stopped\":%u,\"once\":%u,\"failed\":%u}", x.on ? "true" : "false", x.live,
                 x.stopped, x.once, x.failed);
    return r;
}

/* The command says it all already. */
static int do_doctor(struct deed *d, struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int out[2], status = 0;
    int r = place_command(program, sizeof(program), e);
    if (r < 0)
        return r;
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_os(e, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        /* This host, whatever PALE_HOST says: else it might ask us. */
        char *argv[] = {(char *)"pale", (char *)"doctor", (char *)"--json", (char *)"--host", (char *)"", NULL};
        execv(program, argv);
        _exit(125);
    }
    close(out[1]);
    own_fd in = out[0];
    if (pid < 0)
        return err_os(e, "start %s", program);
    r = fd_read_all(in, d->printed, e);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    /* Its status says how the host does; what it printed is the answer either way. */
    return r == 0 && d->printed->len == 0 ? err_set(e, PALE_OS, "pale doctor said nothing") : r;
}

static int do_sweep(struct deed *d, struct pale_err *e)
{
    unsigned gone = 0;
    int r = life_sweep_all(false, &gone, e);
    if (r == 0)
        buf_addf(d->printed, "%u", gone);
    return r;
}

static int do_checkpoint(struct deed *d, struct pale_err *e)
{
    unsigned taken = 0;
    int r = checkpoint_take(&taken, e);
    if (r == 0)
        buf_addf(d->printed, "%u", taken);
    return r;
}

static const struct {
    bool on_box; /* the order names one by its id */
    int (*run)(struct deed *d, struct pale_err *e);
} deeds[DEED_KIND_END] = {
    [DEED_MAKE] = {false, do_make},
    [DEED_COMPARE] = {false, do_compare},
    [DEED_START] = {true, do_start},
    [DEED_STOP] = {true, do_stop},
    [DEED_REMOVE] = {true, do_remove},
    [DEED_UNLANDED] = {true, do_unlanded},
    [DEED_RENAME] = {true, do_rename},
    [DEED_POLICY] = {true, do_policy},
    [DEED_DOCTOR] = {false, do_doctor},
    [DEED_SWEEP] = {false, do_sweep},
    [DEED_CHECKPOINT] = {false, do_checkpoint},
    [DEED_SNAPSHOT] = {true, do_snapshot},
    [DEED_RESTORE] = {true, do_restore},
    [DEED_FORGET] = {true, do_forget},
    [DEED_FORK] = {true, do_fork},
    [DEED_GC] = {false, do_gc},
    [DEED_DIFF] = {true, do_diff},
    [DEED_APPLY] = {true, do_apply},
    [DEED_DISCARD] = {true, do_discard},
    [DEED_IMAGE_LIST] = {false, do_image_list},
    [DEED_IMAGE_SHOW] = {false, do_image_show},
    [DEED_IMAGE_VERIFY] = {false, do_image_verify},
    [DEED_IMAGE_REMOVE] = {false, do_image_remove},
    [DEED_IMAGE_BUILD] = {false, do_image_build},
    [DEED_EXPORT] = {true, do_export},
    [DEED_IMPORT] = {false, do_import},
    [DEED_GUARD_LIST] = {true, do_guard_list},
    [DEED_GUARD_RELEASE] = {true, do_guard_release},
    [DEED_GUARD_DROP] = {true, do_guard_drop},
    [DEED_CUT] = {true, do_cut},
    [DEED_PANIC] = {false, do_panic},
    [DEED_VERDICT] = {true, do_verdict},
};

/* What ends a box or cuts it off reaches one that runs though its folder is gone. */
static bool may_be_lost(uint64_t kind)
{
    return kind == DEED_STOP || kind == DEED_REMOVE || kind == DEED_CUT;
}

static int do_deed(struct deed *d, struct pale_err *e)
{
    uint64_t kind = d->order->kind;
    if (kind >= DEED_KIND_END || !deeds[kind].run)
        return err_set(e, PALE_UNSUPPORTED, "there is no such deed");
    int r = 0;
    if (deeds[kind].on_box)
        r = may_be_lost(kind) ? place_any(d->order->id, &d->place, e) : place_by_id(d->order->id, &d->place, e);
    if (r == 0 && deeds[kind].on_box && d->order->born && life_born(&d->place) != d->order->born)
        r = err_set(e, PALE_NOT_FOUND, "that box is gone; there is another of its name");
    return r < 0 ? r : deeds[kind].run(d, e);
}

/* --- the order and the answer --- */

static int read_order(int fd, struct buf *in, struct msg_deed *ret, struct pale_err *e)
{
    struct frame f;
    int r = inlet_frame(fd, in, &f, e);
    if (r == 0 && (f.type != DEED_ASK || !msg_deed_parse(f.data, f.len, ret)))
        r = err_set(e, PALE_PROTOCOL, "this is no order");
    return r;
}

static void answer(int fd, const struct deed *d, int code, const char *text)
{
    static uint8_t mem[FRAME_HEAD + FRAME_PAYLOAD_MAX];
    struct record_writer w;
    struct msg_deed_done m = {.code = (uint64_t)code, .text = text, .id = d->place.id, .name = d->place.name};
    record_start(&w, mem + FRAME_HEAD, FRAME_PAYLOAD_MAX);
    msg_deed_done_write(&m, &w);
    frame_put_head(mem, DEED_DONE, 0, (uint32_t)w.len);
    (void)fd_write_full(fd, mem, FRAME_HEAD + w.len);
}

void deed_serve(int fd, int home_fd)
{
    struct msg_deed order;
    struct pale_err e = {0};
    own_buf in = {0}, printed = {0};
    buf_init(&in, FRAME_HEAD + FRAME_PAYLOAD_MAX + 65536);
    buf_init(&printed, PRINTED_MAX);
    struct deed d = {.order = &order, .fd = fd, .home_fd = home_fd, .printed = &printed};
    int r = read_order(fd, &in, &order, &e);
    if (r == 0)
        r = do_deed(&d, &e);
    answer(fd, &d, -r, r < 0 ? e.text : buf_text(&printed));
}

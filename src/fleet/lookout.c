/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lookouts. A keeper tells how it stands when it is asked to be watched, and then of every command that begins or ends. */
#include "fleet/lookout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "fleet/pending.h"

#define TRIES_MAX 7u /* with pauses from 1 ms on, doubled */

static unsigned bucket(const char *id)
{
    unsigned v = 0;
    for (size_t i = 0; i < 8 && id[i]; i++) /* digits of a digest */
        v = v << 4 | (unsigned)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
    return v % FLEET_BUCKETS;
}

static struct lookout *find(struct fleet *f, const char *id)
{
    struct lookout *w = f->watch[bucket(id)];
    while (w && strcmp(w->id, id) != 0)
        w = w->next;
    return w;
}

struct lookout *lookout_of(struct fleet *f, const char *id)
{
    struct lookout *w = find(f, id);
    return w && w->up ? w : NULL;
}

static struct lookout *make(struct fleet *f, const char *id)
{
    struct lookout *w = find(f, id);
    if (w || !(w = calloc(1, sizeof(*w))))
        return w;
    w->fleet = f;
    w->adopted = !f->open;
    snprintf(w->id, sizeof(w->id), "%s", id);
    w->next = f->watch[bucket(id)];
    f->watch[bucket(id)] = w;
    return w;
}

static void forget(struct fleet *f, struct lookout *w)
{
    struct lookout **at = &f->watch[bucket(w->id)];
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    f->live -= w->up;
    tether_close(w->link);
    pending_forget(w);
    w->dead = true;
    if (!w->busy)
        free(w);
}

void lookout_drop(struct fleet *f, const char *id)
{
    struct lookout *w = find(f, id);
    if (w)
        forget(f, w);
}

static void tell_box(struct fleet *f, const char *kind, const char *id)
{
    const struct core_box *b = core_by_id(f->core, id);
    if (b)
        events_tell(&f->events, kind, id, b->tenant, b->name, "");
}

/* A box whose layers are changed gets another keeper: it was up all the time, for all that others are told. */
static bool is_up_in_change(struct fleet *f, const char *id)
{
    const struct core_box *b = core_by_id(f->core, id);
    return b && b->changing && b->was_up;
}

/* The keeper is not there, or no longer. */
static void lose(struct lookout *w)
{
    struct fleet *f = w->fleet;
    char id[BOX_ID_LEN + 1];
    bool was_up = w->up || is_up_in_change(f, w->id);
    memcpy(id, w->id, sizeof(id));
    forget(f, w);
    core_down(f->core, id);
    if (was_up && !is_up_in_change(f, id))
        tell_box(f, "box.down", id);
    fleet_settle(f);
}

static void take_info(struct lookout *w, const struct frame *fr)
{
    struct fleet *f = w->fleet;
    struct msg_info m;
    if (!msg_info_parse(fr->data, fr->len, &m))
        return lose(w);
    bool first = !w->up, frozen = strcmp(m.state, "frozen") == 0;
    w->keeper_pid = m.keeper_pid;
    w->init_pid = m.init_pid;
    w->started_unix_ms = m.started_unix_ms;
    w->jobs = m.jobs;
    w->ended = m.ended;
    snprintf(w->memory_by, sizeof(w->memory_by), "%s", m.memory_by);
    snprintf(w->policy_digest, sizeof(w->policy_digest), "%s", m.policy_digest);
    w->has_network = m.has_network;
    w->net_open = m.net_open;
    w->net_connections = m.net_connections;
    w->net_refused = m.net_refused;
    w->net_in = m.net_in;
    w->net_out = m.net_out;
    bool cut = m.cut != 0, was_cut = w->cut != 0;
    w->cut = m.cut;
    w->up = true;
    if (first) {
        bool was_up = is_up_in_change(f, w->id);
        f->live++;
        core_up(f->core, w->id, (unsigned)w->jobs);
        if (w->dead)
            return;
        if (!w->adopted && !was_up)
            tell_box(f, "box.up", w->id);
    } else
        core_jobs(f->core, w->id, (unsigned)w->jobs);
    if (!first && cut != was_cut)
        tell_box(f, cut ? "box.cut" : "box.lifted", w->id);
    core_frozen(f->core, w->id, frozen);
    if (w->frozen != frozen)
        tell_box(f, frozen ? "box.frozen" : "box.thawed", w->id);
    w->frozen = frozen;
}

static void tell_job(struct lookout *w, const struct msg_job *m)
{
    struct fleet *f = w->fleet;
    const struct core_box *b = core_by_id(f->core, w->id);
    own_buf text = {0};
    struct json j;
    char command[160];
    if (!b)
        return;
    snprintf(command, sizeof(command), "%.150s", m->command);
    buf_init(&text, 400);
    json_start(&j, &text);
    j.more[0] = true; /* it stands inside an object that has begun */
    json_u64(&j, "job", m->id);
    json_text(&j, "command", command);
    if (m->state == JOB_ENDED) {
        json_u64(&j, "exit", m->status);
        json_u64(&j, "signal", m->signal);
        for (const struct msg_result_name *n = msg_result_names; n->name; n++)
            if (m->flags & n->flag)
                json_bool(&j, n->name, n->flag != RESULT_NOT_STARTED); /* what is usual is not said */
    }
    events_tell(&f->events, m->state == JOB_ENDED ? "job.ended" : "job.started", w->id, b->tenant, b->name,
                text.failed ? "" : buf_text(&text));
}

static void take_job(struct lookout *w, const struct frame *fr)
{
    struct msg_job m;
    if (!msg_job_parse(fr->data, fr->len, &m))
        return lose(w);
    if (m.state == JOB_ENDED) {
        w->jobs -= w->jobs > 0;
        w->ended++;
        w->cpu_us += m.cpu_us;
        w->out_bytes += m.out_bytes;
    } else
        w->jobs++;
    core_jobs(w->fleet->core, w->id, (unsigned)w->jobs);
    tell_job(w, &m);
}

static void on_frame(struct tether *l, const struct frame *fr)
{
    struct lookout *w = l->owner;
    struct fleet *f = w->fleet;
    /* What the core answers may make somebody find that the keeper has ended since, and forget it. */
    w->busy = true;
    if (fr->type == TELL_INFO)
        take_info(w, fr);
    else if (fr->type == TELL_JOB && w->up)
        take_job(w, fr);
    else if (fr->type != TELL_QUESTION || !w->up || !pending_take(w, fr))
        lose(w);
    w->busy = false;
    if (w->dead)
        free(w);
    fleet_settle(f);
}

static void on_gone(struct tether *l)
{
    lose(l->owner);
}

static const struct tether_use use = {on_frame, on_gone, NULL};

/* Between binding its socket and listening on it a keeper refuses; one that was killed has left a socket and always will. */
static bool may_come_yet(struct lookout *w)
{
    char path[RUNTIME_BYTES_MAX + BOX_ID_LEN + 8];
    snprintf(path, sizeof(path), "%s/%s.sock", w->fleet->runtime_dir, w->id);
    return w->tries < TRIES_MAX && access(path, F_OK) == 0;
}

static void connect_now(struct lookout *w)
{
    struct fleet *f = w->fleet;
    struct pale_err e;
    w->wanted = false;
    f->live -= w->up;
    w->up = false;
    tether_close(w->link);
    w->link = NULL;
    if (fleet_link(f, w->id, &use, w, &w->link, &e) == 0 && tether_send(w->link, ASK_WATCH, NULL, 0))
        return;
    if (w->link || e.code != PALE_NOT_FOUND || !may_come_yet(w))
        return lose(w);
    w->wanted = true;
    if (!f->wanted.armed)
        loop_arm(f->loop, &f->wanted, clock_ms() + (1 << w->tries));
    w->tries++;
}

/* One of the bucket that was not tried in this round. */
static struct lookout *next_wanted(const struct fleet *f, size_t i)
{
    struct lookout *w = f->watch[i];
    while (w && (!w->wanted || w->round == f->round))
        w = w->next;
    return w;
}

/* Each try may end others, so that none is kept in hand meanwhile. */
static void on_wanted(struct loop_timer *t)
{
    struct fleet *f = (struct fleet *)((char *)t - offsetof(struct fleet, wanted));
    f->round++;
    for (size_t i = 0; i < FLEET_BUCKETS; i++)
        for (struct lookout *w; (w = next_wanted(f, i));) {
            w->round = f->round;
            connect_now(w);
        }
    fleet_settle(f);
}

void lookout_init(struct fleet *f)
{
    f->wanted = (struct loop_timer){.fire = on_wanted};
}

void lookout_done(struct fleet *f)
{
    for (size_t i = 0; i < FLEET_BUCKETS; i++)
        while (f->watch[i])
            forget(f, f->watch[i]);
}

void lookout_want(struct fleet *f, const char *id)
{
    struct lookout *w = make(f, id);
    if (!w)
        return;
    w->wanted = true;
    w->tries = 0;
    loop_arm(f->loop, &f->wanted, clock_ms());
}

void lookout_try(struct fleet *f, const char *id)
{
    const struct lookout *w = find(f, id);
    if (!w || (!w->up && !w->link))
        lookout_want(f, id);
}

void fleet_lost(struct fleet *f, const char *id)
{
    struct lookout *w = find(f, id);
    if (w)
        lose(w);
}

int fleet_link(struct fleet *f, const char *id, const struct tether_use *u, void *owner, struct tether **ret, struct pale_err *e)
{
    char path[RUNTIME_BYTES_MAX + BOX_ID_LEN + 8];
    snprintf(path, sizeof(path), "%s/%s.sock", f->runtime_dir, id);
    int r = tether_open(f->loop, path, u, owner, ret, e);
    /* It goes out with the first request. */
    if (r == 0 && !tether_put(*ret, ASK_HELLO, id, BOX_ID_LEN)) {
        tether_close(*ret);
        *ret = NULL;
        r = err_nomem(e);
    }
    return r;
}

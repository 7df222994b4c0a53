/* SPDX-License-Identifier: Apache-2.0 */
/* Owns whether the box stands still.
 *
 * How it works: where the box has a cgroup that can be frozen the kernel stops everything in it, init too, and nothing notices; else
 * init stops the others by signals (init/freezer.c). Stopping takes a moment: whoever asked is answered when it is done, and after
 * FREEZE_WAIT_MS the box goes on and is not frozen. What waits for a channel goes on waiting, and requests are refused.
 *
 * A command that is killed needs init, and in version 1 a frozen process does not even die; so the group is let go on until the command
 * is gone, and frozen again. The same before the box ends, where its init is killed first: then nothing of it runs on. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/keeper.h"

#define FREEZE_WAIT_MS 10000
#define LOOK_EVERY_MS 2
#define THAW_TRIES 100

static bool by_group(const struct keeper *k)
{
    return cgroup_can_freeze(&k->cgroup);
}

const char *freeze_name(const struct keeper *k)
{
    /* A pause is nothing that anybody must know of. */
    return k->freeze.state == FREEZE_DONE && !k->freeze.pauser ? "frozen" : "running";
}

static int audit_freeze(struct keeper *k, const char *event, const char *reason, struct pale_err *e)
{
    struct json *j = audit_begin(&k->audit, event);
    json_text(j, "by", by_group(k) ? "cgroup" : "signals");
    if (reason)
        json_text(j, "reason", reason);
    return audit_commit(&k->audit, e);
}

/* Those who wait for the freeze: it is done, or will not be. */
static void answer(struct keeper *k, const struct pale_err *e)
{
    for (struct client *c = k->clients; c; c = c->next) {
        if (!c->freezing)
            continue;
        c->freezing = false;
        if (e) {
            client_error(c, e->code, e->text);
        } else {
            client_send(c, TELL_DONE, NULL, 0);
            if (!c->pausing)
                client_finish(c);
        }
    }
}

static void done(struct keeper *k)
{
    loop_disarm(&k->loop, &k->freeze.timer);
    k->freeze.state = FREEZE_DONE;
    answer(k, NULL);
    if (!k->freeze.pauser)
        client_announce_state(k);
}

/* Lets all go on. On failure it is as before. */
static int let_go(struct keeper *k, struct pale_err *e)
{
    bool told = k->freeze.state == FREEZE_DONE && !k->freeze.pauser;
    int r = by_group(k) ? cgroup_freeze(&k->cgroup, false, e) : 0;
    if (r < 0)
        return r;
    loop_disarm(&k->loop, &k->freeze.timer);
    k->freeze.state = FREEZE_NOT;
    k->freeze.lifted = false;
    k->freeze.pauser = NULL;
    if (!by_group(k))
        wire_send(k, TO_THAW, 0, NULL, 0);
    if (told)
        client_announce_state(k);
    work_start_queued(k);
    return 0;
}

/* It could not be frozen, or not be kept so: it goes on, and whoever asked learns why. */
static void give_up(struct keeper *k, const struct pale_err *why)
{
    (void)!audit_freeze(k, "box.thaw", why->text, NULL);
    (void)!let_go(k, NULL);
    answer(k, why);
}

static void look(struct loop_timer *t)
{
    struct keeper *k = (struct keeper *)((char *)t - offsetof(struct keeper, freeze.timer));
    struct pale_err e;
    if (by_group(k) && !k->freeze.lifted && cgroup_is_frozen(&k->cgroup)) {
        done(k);
        return;
    }
    if (clock_ms() < k->freeze.until_ms) {
        /* In version 1 a process that goes to sleep this very moment can be missed; it is asked for again. */
        if (by_group(k) && !k->freeze.lifted)
            (void)!cgroup_freeze(&k->cgroup, true, NULL);
        loop_arm(&k->loop, t, by_group(k) ? clock_ms() + LOOK_EVERY_MS : k->freeze.until_ms);
        return;
    }
    err_set(&e, PALE_TIMEOUT, "a process of box %s did not come to rest within %d s; the box goes on", k->name, FREEZE_WAIT_MS / 1000);
    give_up(k, &e);
}

static int begin(struct keeper *k, struct pale_err *e)
{
    int r = audit_freeze(k, "box.freeze", NULL, e);
    if (r == 0 && by_group(k))
        r = cgroup_freeze(&k->cgroup, true, e);
    if (r < 0)
        return r;
    k->freeze.state = FREEZE_UNDER_WAY;
    k->freeze.until_ms = clock_ms() + FREEZE_WAIT_MS;
    k->freeze.timer.fire = look;
    if (!by_group(k))
        wire_send_u64(k, TO_FREEZE, 0, ++k->freeze.number);
    return 0;
}

void freeze_ask(struct client *c, bool pause)
{
    struct keeper *k = c->k;
    struct pale_err e = {0};
    bool begins = k->freeze.state == FREEZE_NOT;
    if (k->once)
        client_error(c, PALE_UNSUPPORTED, "a one-shot box cannot be frozen");
    else if (k->stopping || k->died)
        client_error(c, PALE_GONE, "the box is ending");
    else if (k->proof.asked)
        client_error(c, PALE_BUSY, "a proof of this box is under way; try again in a moment");
    else if (begins && begin(k, &e) < 0)
        client_error(c, e.code, e.text);
    else {
        c->freezing = true;
        c->pausing = pause;
        /* Whoever freezes it for good takes it over from one who needs it for a moment. */
        if (!pause || begins)
            k->freeze.pauser = pause ? c : NULL;
        if (k->freeze.state == FREEZE_DONE)
            answer(k, NULL);
        else if (!k->freeze.timer.armed && !k->died)
            look(&k->freeze.timer); /* mostly it is done at once */
    }
}

void freeze_ask_thaw(struct client *c)
{
    struct keeper *k = c->k;
    struct pale_err e = {0}, meanwhile;
    if (k->stopping || k->died) {
        client_error(c, PALE_GONE, "the box is ending");
        return;
    }
    if (k->freeze.state != FREEZE_NOT && (!c->pausing || k->freeze.pauser == c)) {
        if (audit_freeze(k, "box.thaw", NULL, &e) < 0 || let_go(k, &e) < 0) {
            client_error(c, e.code, e.text);
            return;
        }
        err_set(&meanwhile, PALE_BUSY, "somebody has thawed box %s meanwhile", k->name);
        answer(k, &meanwhile);
    }
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

void freeze_client_left(const struct client *c)
{
    struct keeper *k = c->k;
    struct pale_err why;
    if (k->freeze.pauser != c)
        return;
    k->freeze.pauser = NULL;
    if (k->freeze.state == FREEZE_NOT || k->stopping || k->died)
        return;
    err_set(&why, PALE_BUSY, "who let box %s stand still for a moment is gone", k->name);
    give_up(k, &why);
}

bool freeze_take(struct keeper *k, const void *p, size_t n)
{
    uint64_t number = 0;
    if (!msg_u64_parse(p, n, &number) || number == 0 || number > k->freeze.number)
        return false;
    if (k->freeze.state == FREEZE_UNDER_WAY && number == k->freeze.number)
        done(k);
    return true;
}

void freeze_lift(struct keeper *k)
{
    if (k->freeze.state == FREEZE_NOT || k->freeze.lifted || !by_group(k))
        return;
    /* If it cannot be, the command cannot be killed, and the kill's own limit ends the box. */
    k->freeze.lifted = cgroup_freeze(&k->cgroup, false, NULL) == 0;
}

void freeze_resume(struct keeper *k)
{
    struct pale_err e;
    if (!k->freeze.lifted || k->stopping || k->died)
        return;
    for (int i = 0; i < JOBS_MAX; i++)
        if (k->by_chan[i] && k->by_chan[i]->killed)
            return;
    k->freeze.lifted = false;
    k->freeze.until_ms = clock_ms() + FREEZE_WAIT_MS;
    if (cgroup_freeze(&k->cgroup, true, &e) < 0)
        give_up(k, &e);
}

void freeze_end(struct keeper *k)
{
    bool frozen = k->freeze.state != FREEZE_NOT && by_group(k);
    loop_disarm(&k->loop, &k->freeze.timer);
    k->freeze.state = FREEZE_NOT;
    k->freeze.lifted = false;
    if (frozen && k->wall.pid > 0)
        kill(k->wall.pid, SIGKILL);
    for (int tries = 0; frozen && cgroup_freeze(&k->cgroup, false, NULL) < 0 && tries < THAW_TRIES; tries++)
        usleep(1000);
}

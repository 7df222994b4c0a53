/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tidying of layers.
 *
 * How it works: under the stack's lock the next piece of work is chosen, which is then done without it, for it may take long and only reads
 * what never changes; the result is written down under the lock again, if the layers it is about are still there. Layers are welded in runs
 * of RUN, and those in runs of RUN again, by how many lie below: so a chain of n opens as at most RUN - 1 of each size. */
#include "box/tidy.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/layerdir.h"
#include "box/layerwork.h"
#include "box/life.h"
#include "box/stack.h"
#include "confine/kernel.h"

#define RUN 16 /* layers that are welded at once */
static_assert(RUN * RUN == STACK_RUN_MAX, "the list of layers takes no longer runs");
#define TIDY_LOCK "tidy.lock"
#define STOP_WAIT_MS 2000
#define QUIET_MS 1000
#define QUIET_AT_MOST_MS 60000
#define TRIES_MAX (2 * STACK_LAYERS_MAX)

struct work {
    enum { WORK_NONE, WORK_DIGEST, WORK_JOIN } kind;
    char id[LAYER_ID_LEN + 1];        /* of the layer to digest, or the highest of the run */
    char first[LAYER_ID_LEN + 1];     /* the lowest of the run */
    struct layerwork_part parts[RUN]; /* what is welded, the lowest first */
    size_t part_count;
    char digest[SHA256_HEX], made[LAYER_ID_LEN + 1]; /* what came of it */
    bool poisoned;
};

/* Work that failed is not tried again in this round. */
struct round {
    const struct place *place;
    struct policy policy;
    char failed[64][LAYER_ID_LEN + 1];
    size_t failed_count;
    bool only_joins;
};

static bool has_failed(const struct round *r, const char *id)
{
    for (size_t i = 0; i < r->failed_count; i++)
        if (strcmp(r->failed[i], id) == 0)
            return true;
    return false;
}

static size_t depth_of(const struct stack *s, int layer)
{
    size_t n = 0;
    for (; s->layers[layer].below != STACK_NONE; layer = s->layers[layer].below)
        n++;
    return n;
}

static bool is_joined(const struct stack *s, int first, int last)
{
    for (size_t i = 0; i < s->join_count; i++)
        if (s->joins[i].first == first && s->joins[i].last == last)
            return true;
    return false;
}

/* The run of this length that ends with a layer: the lowest of it, or STACK_NONE where one is poisoned. */
static int run_to(const struct stack *s, int last, size_t length)
{
    int at = last;
    for (size_t i = 1; i < length; i++) {
        if (s->layers[at].poison[0])
            return STACK_NONE;
        at = s->layers[at].below;
    }
    return at;
}

/* What a run is welded of: the joins within it, the widest, else its layers. Lowest first; 0 if those are more than RUN. */
static size_t parts_of(const struct stack *s, int first, int last, struct layerwork_part ret[RUN])
{
    size_t n = 0;
    for (int at = last; at >= first;) {
        const struct stack_join *best = NULL;
        for (size_t i = 0; i < s->join_count; i++) {
            const struct stack_join *j = &s->joins[i];
            if (j->last == at && j->first >= first && (!best || j->first < best->first))
                best = j;
        }
        if (n == RUN)
            return 0;
        int lowest = best ? best->first : at;
        memcpy(ret[n].id, best ? best->id : s->layers[at].id, LAYER_ID_LEN + 1);
        ret[n++].anew = stack_begins_anew(s, lowest, at);
        at = s->layers[lowest].below;
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct layerwork_part swap = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = swap;
    }
    return n;
}

static bool choose_join(const struct round *r, const struct stack *s, size_t length, struct work *ret)
{
    for (size_t i = 0; i < s->layer_count; i++) {
        if ((depth_of(s, (int)i) + 1) % length != 0 || has_failed(r, s->layers[i].id))
            continue;
        int first = run_to(s, (int)i, length);
        if (first == STACK_NONE || is_joined(s, first, (int)i))
            continue;
        *ret = (struct work){.kind = WORK_JOIN};
        ret->part_count = parts_of(s, first, (int)i, ret->parts);
        memcpy(ret->id, s->layers[i].id, sizeof(ret->id));
        memcpy(ret->first, s->layers[first].id, sizeof(ret->first));
        if (ret->part_count > 1)
            return true;
    }
    return false;
}

static void choose(const struct round *r, const struct stack *s, struct work *ret)
{
    *ret = (struct work){.kind = WORK_NONE};
    if (choose_join(r, s, RUN, ret) || choose_join(r, s, RUN * RUN, ret))
        return;
    *ret = (struct work){.kind = WORK_NONE};
    if (r->only_joins)
        return;
    for (size_t i = 0; i < s->layer_count; i++)
        if (!s->layers[i].digest[0] && !s->layers[i].poison[0] && !has_failed(r, s->layers[i].id)) {
            ret->kind = WORK_DIGEST;
            memcpy(ret->id, s->layers[i].id, sizeof(ret->id));
            return;
        }
}

/* --- the work --- */

static int do_digest(const struct round *r, struct work *w, struct pale_err *e)
{
    struct layerwork_finding f;
    int res = layerdir_settle(r->place, w->id, e);
    if (res == 0)
        res = layerwork_digest(r->place, w->id, &f, e);
    if (res < 0)
        return res;
    memcpy(w->digest, f.digest, sizeof(w->digest));
    w->poisoned = f.poisoned;
    return 0;
}

static int do_join(const struct round *r, struct work *w, struct pale_err *e)
{
    int res = stack_new_id(w->made, e);
    if (res == 0)
        res = layerdir_make_whole(r->place, w->made, e);
    return res < 0 ? res : layerwork_weld(r->place, w->parts, w->part_count, w->made, e);
}

/* --- writing it down --- */

/* Something may have gone from the stack meanwhile; then there is nothing to write. */
static int note(const struct round *r, const struct work *w, struct tidy_result *result, struct pale_err *e)
{
    own_stack s = {0};
    own_fd lock = -1;
    stack_init(&s);
    int res = stack_lock(r->place, &lock, e);
    if (res == 0)
        res = stack_load(r->place, &s, e);
    int last = res < 0 ? STACK_NONE : stack_find_layer(&s, w->id);
    if (res < 0 || last == STACK_NONE)
        return res;
    if (w->kind == WORK_DIGEST) {
        memcpy(s.layers[last].digest, w->digest, sizeof(w->digest));
        if (w->poisoned)
            snprintf(s.layers[last].poison, sizeof(s.layers[last].poison), "inspection");
        result->digests++;
        result->poisoned += w->poisoned;
    } else {
        struct stack_join j = {.first = stack_find_layer(&s, w->first), .last = last};
        memcpy(j.id, w->made, sizeof(j.id));
        if (j.first == STACK_NONE)
            return 0;
        if ((res = stack_add_join(&s, &j, e)) < 0)
            return res;
        result->joins++;
    }
    return stack_save(r->place, &s, e);
}

static int next(struct round *r, struct work *w, struct pale_err *e)
{
    own_stack s = {0};
    own_fd lock = -1;
    stack_init(&s);
    int res = stack_lock(r->place, &lock, e);
    if (res == 0)
        res = stack_load(r->place, &s, e);
    if (res == 0)
        choose(r, &s, w);
    return res;
}

/* The locks are the kind that tells whose they are. Byte 0 is for who tidies; byte 1 for who does so behind the scenes, and may be ended.
 */
enum { LOCK_WORK, LOCK_BEHIND };

static int open_lock(const struct place *p, int flags)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/" TIDY_LOCK, p->state);
    return open(path, O_RDWR | flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int take_lock(int fd, int which, bool wait)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    int r;
    while ((r = fcntl(fd, wait ? F_SETLKW : F_SETLK, &l)) < 0 && errno == EINTR)
        ;
    return r;
}

int tidy_hold(const struct place *p, bool wait, int *ret_fd, struct pale_err *e)
{
    own_fd lock = open_lock(p, O_CREAT);
    if (lock < 0)
        return err_os(e, "open %s/" TIDY_LOCK, p->state);
    if (take_lock(lock, LOCK_WORK, wait) < 0)
        return errno == EAGAIN || errno == EACCES ? 0 : err_os(e, "lock %s/" TIDY_LOCK, p->state);
    *ret_fd = take_fd(&lock);
    return 0;
}

/* Who tidies behind the scenes; 0: nobody. */
static pid_t who_is_behind(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BEHIND, .l_len = 1};
    return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid > 0 ? l.l_pid : 0;
}

void tidy_stop(const struct place *p)
{
    own_fd lock = open_lock(p, 0);
    pid_t pid = lock < 0 ? 0 : who_is_behind(lock);
    own_fd pidfd = pid > 0 ? k_pidfd_open(pid) : -1;
    /* Still the same after it was opened: so it is that process and no other of its number. */
    if (pidfd < 0 || who_is_behind(lock) != pid || k_pidfd_signal(pidfd, SIGKILL) < 0)
        return;
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    (void)!poll(&gone, 1, STOP_WAIT_MS);
}

/* Piece by piece until there is nothing left. The first failure is told at the end: others may go well. */
static int work_off(struct round *r, struct tidy_result *ret, struct pale_err *e)
{
    struct pale_err first = {0};
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct work w;
        struct pale_err why = {0};
        int res = next(r, &w, e);
        if (res < 0)
            return res;
        if (w.kind == WORK_NONE)
            break;
        res = w.kind == WORK_DIGEST ? do_digest(r, &w, &why) : do_join(r, &w, &why);
        if (res == 0)
            res = note(r, &w, ret, &why);
        if (res == 0)
            continue;
        if (first.code == PALE_OK)
            first = why;
        if (r->failed_count == sizeof(r->failed) / sizeof(r->failed[0]))
            break;
        memcpy(r->failed[r->failed_count++], w.id, sizeof(w.id));
    }
    if (first.code == PALE_OK)
        return 0;
    *e = first;
    return -(int)first.code;
}

/* Who takes one snapshot often takes another, and would wait for the list of layers while we write digests in it. */
static void await_quiet(const struct place *p)
{
    int64_t until = clock_ms() + QUIET_AT_MOST_MS, age;
    while ((age = stack_age_ms(p)) >= 0 && age < QUIET_MS && clock_ms() < until)
        usleep((useconds_t)(QUIET_MS - age) * 1000);
}

/* Who tidies, and how much. */
enum manner {
    MANNER_ALL,
    MANNER_JOINS,   /* no digests */
    MANNER_BEHIND,  /* may be ended */
    MANNER_AT_WORK, /* the same, when there was no change for a while */
};

static int tidy(const struct place *p, enum manner manner, struct tidy_result *ret, struct pale_err *e)
{
    struct round r = {.place = p, .only_joins = manner == MANNER_JOINS};
    own_fd lock = -1;
    *ret = (struct tidy_result){0};
    int res = tidy_hold(p, false, &lock, e);
    if (res < 0 || lock < 0)
        return res;
    if (manner >= MANNER_BEHIND && take_lock(lock, LOCK_BEHIND, false) < 0)
        return err_os(e, "lock %s/" TIDY_LOCK, p->state);
    if (manner == MANNER_AT_WORK)
        await_quiet(p);
    res = life_policy(p, &r.policy, e);
    if (res == 0)
        res = work_off(&r, ret, e);
    policy_done(&r.policy);
    return res;
}

int tidy_box(const struct place *p, struct tidy_result *ret, struct pale_err *e)
{
    return tidy(p, MANNER_ALL, ret, e);
}

int tidy_join(const struct place *p, struct pale_err *e)
{
    struct tidy_result ignored;
    tidy_stop(p);
    return tidy(p, MANNER_JOINS, &ignored, e);
}

void tidy_behind(const struct place *p, bool at_work)
{
    struct tidy_result ignored;
    struct pale_err e;
    int status;
    own_fd lock = open_lock(p, 0);
    if (lock >= 0 && who_is_behind(lock) > 0)
        return; /* and finds what there is to do when it is quiet */
    own_close(&lock);
    pid_t pid = fork();
    if (pid == 0) {
        /* Nobody waits for the child of a child that is gone. */
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        /* A lock that we hold for somebody else would be held by the child too, and it must take the same. */
        (void)k_close_range(3, ~0u, 0);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; null >= 0 && i < 3; i++)
            (void)!dup2(null, i);
        /* Gives way at once to anything else, which the lowest of the ordinary priorities does not. */
        if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}) < 0)
            (void)setpriority(PRIO_PROCESS, 0, 19);
        _exit(tidy(p, at_work ? MANNER_AT_WORK : MANNER_BEHIND, &ignored, &e) < 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
}

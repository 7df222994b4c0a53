/* SPDX-License-Identifier: Apache-2.0 */
/* pale-warden: watches the live project of one box from the host's side, so that nothing the host would run or obey is changed or
 * planted there.
 *
 *     pale-warden PROJECT QUARANTINE NAME…   started by pale-keeper, with the descriptors of box/wardmsg.h; the names are the guard list
 *
 * How it works: it walks the project once, watching each folder, and notes guarded names. When the wall stands, its other half (mantle.c),
 * a process behind the wall, lays a read-only mount over each. From then on the kernel tells of every name that comes into a folder;
 * judge.c decides. Names are all that comes from the box, but they come at the box's pace: the work is bounded in every tenth of a
 * second, and what was missed is found by looking through everything again. It outlives its keeper until the box is dead and a last look
 * is done. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "confine/kernel.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"
#include "warden/warden.h"

/* Of each window at most so much is work while the box may be at work too. */
#define WINDOW_US 100000
#define WORK_US 60000
/* How long a box without its keeper may take to die, and how long a last look may take. */
#define DEATH_MS 10000
#define LAST_LOOK_US 20000000
/* A look through everything finds all that nobody moves meanwhile; the host may, but not for ever. */
#define LOOKS_MAX 3

static struct warden state;

/* Needs: nothing. Gives up: the keeper's session and signals. */
static int stage_settle(int argc, char **argv, struct warden *w, struct pale_err *e)
{
    if (argc < 4 || fcntl(WARD_INIT_FD, F_GETFD) < 0)
        return err_set(e, PALE_BAD_INPUT, "pale-warden is started by pale-keeper, not by hand");
    for (int fd = WARD_TALK_FD; fd < WARD_FDS; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_os(e, "settle");
    w->project = argv[1];
    w->quarantine = argv[2];
    w->talk_fd = WARD_TALK_FD;
    w->project_fd = WARD_PROJECT_FD;
    w->init_fd = WARD_INIT_FD;
    w->names = (struct policy_strings){argv + 3, (size_t)argc - 3};
    guard_set_init(&w->guard, &w->names);
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    (void)!setsid();
    const struct rlimit most = {GUARD_COPY_MAX, GUARD_COPY_MAX};
    if (setrlimit(RLIMIT_FSIZE, &most) < 0)
        return err_os(e, "limit the size of copies");
    const void *shared = mmap(NULL, sizeof(*w->shared), PROT_READ, MAP_SHARED, WARD_SHARED_FD, 0);
    if (shared == MAP_FAILED)
        return err_os(e, "share a page with the keeper");
    w->shared = shared;
    w->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->inotify_fd < 0)
        return err_os(e, "watch the project (too many programs do; raise fs.inotify.max_user_instances)");
    return 0;
}

/* Needs: the box's namespaces. The mantle takes them with it. */
static int stage_mantle(struct warden *w, struct pale_err *e)
{
    int r = mantle_start(&w->mantle, WARD_USER_FD, WARD_MOUNT_FD, w->project, e);
    close(WARD_USER_FD);
    close(WARD_MOUNT_FD);
    return r < 0 ? r : taking_open(&w->taking, WARD_QUARANTINE_FD, e);
}

/* Needs: all is open. Gives up: every file but the project's and the quarantine, every call but those for looking and moving. */
static int stage_lock_up(struct warden *w, struct pale_err *e)
{
    const char *const paths[] = {w->project, w->quarantine};
    int r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    if (landlock_abi() != 0 && (r = landlock_restrict_all(paths, 2, e)) < 0)
        return r;
    return seccomp_load(seccomp_for_program(OWN_WARDEN), e);
}

static void fail(struct warden *w, const struct pale_err *e)
{
    if (!w->failed)
        account_error(w, e);
    w->failed = w->lost = true;
}

/* For word from the keeper, and for events if they are wanted. A mantle that has died is no guard any more. */
static void wait_for(struct warden *w, bool events, int ms)
{
    struct pollfd p[3] = {{.fd = w->gone ? -1 : w->talk_fd, .events = POLLIN},
                          {.fd = w->failed ? -1 : w->mantle.fd},
                          {.fd = w->inotify_fd, .events = POLLIN}};
    struct pale_err e = {0};
    if (poll(p, events ? 3 : 2, ms) > 0 && p[1].revents) {
        (void)!err_set(&e, PALE_GONE, "the process that guards names in the box has died");
        fail(w, &e);
    }
    account_take(w);
}

/* Needs: the wall stands. Nothing foreign has run in the box yet. */
static int stage_lay(struct warden *w, struct pale_err *e)
{
    while (!w->stand && !w->gone && !w->finish)
        wait_for(w, false, -1);
    if (!w->stand)
        return err_set(e, PALE_GONE, "the box did not start");
    int r = mantle_enter(&w->mantle, e);
    if (r < 0 || (r = judge_lay_noted(w, e)) < 0)
        return r;
    w->stands = true;
    account_send(w, WARD_READY, 0, w->laid_count, NULL);
    return 0;
}

/* A block of events and a folder, in turns, until nothing is left to do, or the time is over; *ret_done tells. */
static int work(struct warden *w, int64_t until_us, bool *ret_done, struct pale_err *e)
{
    bool events = true, folders = true;
    int r = 0;
    while (r == 0 && (events || folders) && clock_us() < until_us)
        if ((r = patrol_events(w, &events, e)) == 0)
            r = patrol_step(w, &folders, e);
    *ret_done = r == 0 && !events && !folders;
    return r;
}

/* All of it: the box can do nothing any more, or for now. *ret_done: nothing can have been missed. */
static int work_off(struct warden *w, bool *ret_done, struct pale_err *e)
{
    int64_t until = clock_us() + LAST_LOOK_US;
    int r = work(w, until, ret_done, e);
    for (int looks = 0; r == 0 && *ret_done && w->lost && looks < (w->slow ? 1 : LOOKS_MAX); looks++)
        if ((r = patrol_look_through(w, e)) == 0)
            r = work(w, until, ret_done, e);
    *ret_done = *ret_done && (!w->lost || w->slow);
    return r;
}

/* Milliseconds until there is something to do though nothing happens; -1: never. */
static int until_next(const struct warden *w)
{
    int64_t now = clock_us();
    if (w->failed && !w->catch_up)
        return -1;
    if (w->walk.count > 0 || w->catch_up || w->idle_told)
        return 0;
    int64_t next = w->lost ? w->look_again_us - now : w->untold ? 1000000 : -1;
    return next < 0 && !w->lost ? -1 : next <= 0 ? 0 : (int)(next / 1000) + 1;
}

/* One round: what has happened is dealt with, within the time there is for it. */
static void round_of(struct warden *w)
{
    struct pale_err e = {0};
    int64_t begin = clock_us();
    bool done = false;
    if (w->failed)
        w->idle_told = false;
    if (w->idle_told) {
        uint64_t number = w->idle_number;
        w->idle_told = false;
        if (work_off(w, &done, &e) < 0)
            fail(w, &e);
        else if (done)
            w->settled = number;
    }
    if (!w->failed && work(w, begin + WORK_US, &done, &e) < 0)
        fail(w, &e);
    if (!w->failed && done && w->lost && clock_us() >= w->look_again_us && patrol_look_through(w, &e) < 0)
        fail(w, &e);
    if (w->catch_up) {
        w->catch_up = false;
        account_send(w, WARD_CAUGHT_UP, 0, w->catch_number, NULL);
    }
    account_flood(w, false);
    int64_t took = clock_us() - begin;
    if (took > WORK_US / 2 && !w->finish)
        wait_for(w, false, (int)((took * WINDOW_US / WORK_US - took) / 1000));
}

static void last_look(struct warden *w)
{
    struct pollfd p = {.fd = w->init_fd, .events = POLLIN};
    struct pale_err e = {0};
    bool done;
    (void)!poll(&p, 1, DEATH_MS);
    if (work_off(w, &done, &e) < 0)
        account_error(w, &e);
    account_flood(w, true);
    account_send(w, WARD_DONE, 0, 0, NULL);
}

int main(int argc, char **argv)
{
    struct warden *w = &state;
    struct pale_err e = {0};
    w->mantle.fd = -1;
    int r = stage_settle(argc, argv, w, &e);
    if (r < 0 && !w->talk_fd)
        return 125;
    if (r == 0)
        r = stage_mantle(w, &e);
    if (r == 0)
        r = stage_lock_up(w, &e);
    if (r == 0)
        r = patrol_start(w, &e);
    if (r == 0)
        r = stage_lay(w, &e);
    if (r < 0) {
        account_error(w, &e);
        return 125;
    }
    while (!w->finish && !w->gone) {
        wait_for(w, !w->failed, until_next(w));
        round_of(w);
    }
    last_look(w);
    return 0;
}

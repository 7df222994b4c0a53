/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making and ending of boxes. */
#include "box/life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "box/claims.h"
#include "box/reach.h"
#include "box/rename.h"
#include "confine/cgroup.h"
#include "wire/message.h"

#define MAKE_WAIT_MS 2000
#define STOP_WAIT_MS 10000
#define SWEEP_WAIT_MS 20       /* a keeper that was killed just now lets go of its lock in less */
#define STOP_ASK_AGAIN_MS 2500 /* longer than a keeper gives its last clients */

/* Waits for a lock until then. 1: somebody still has it. */
static int try_lock(int fd, int64_t until)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        if (clock_ms() > until)
            return 1;
        usleep(1000);
    }
    return 0;
}

/* A policy that is older was left by somebody who was killed while he removed the box, when its data was gone already. */
static bool is_written_since(int dir, const char *name, const struct timespec *t)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_mtim.tv_sec != t->tv_sec ? st.st_mtim.tv_sec > t->tv_sec : st.st_mtim.tv_nsec >= t->tv_nsec);
}

int life_make(const char *name, enum place_scope scope, const struct policy *p, bool durable, struct place *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(p, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes", POLICY_TEXT_MAX);
    own_fd still = -1;
    int r = rename_hold_off(&still, e);
    if (r < 0)
        return r;
    struct timespec began;
    clock_gettime(CLOCK_REALTIME_COARSE, &began); /* as files have it */
    r = place_create(name, scope, ret, e);
    if (r < 0)
        return r;
    own_fd dir = open(ret->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Of two who make one box at the same moment, the second finds it made; what was half made by one who died is free. */
    int held = dir < 0 ? -1 : try_lock(dir, clock_ms() + MAKE_WAIT_MS);
    if (held > 0)
        return err_set(e, PALE_BUSY, "somebody else has been making box %s for %d s", name, MAKE_WAIT_MS / 1000);
    if (held < 0) {
        r = err_os(e, "lock %s", ret->state);
        place_undo(ret);
        return r;
    }
    if (is_written_since(dir, "policy", &began))
        return err_set(e, PALE_EXISTS, "there is already a box %s (%s)", name, ret->data);
    /* The id is a digest: this says whose. */
    if (symlinkat(ret->data, dir, "data") < 0 && errno != EEXIST)
        r = err_os(e, "write %s/data", ret->state);
    if (r == 0)
        r = fd_replace_file(dir, "policy", text.data, text.len, 0600, durable, e);
    if (r < 0)
        (void)!place_remove(ret, true, NULL);
    return r;
}

/* Reads into a buffer that has its maximum. */
static int read_policy(const struct place *p, struct buf *text, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/policy", p->state);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(e, "open %s", path);
    int r = fd_read_all(fd, text, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

int life_policy(const struct place *p, struct policy *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    int r = read_policy(p, &text, e);
    if (r == 0)
        r = policy_parse(buf_text(&text), text.len, ret, e);
    return r < 0 ? err_prefix(e, "the policy of %s", p->name) : 0;
}

int life_has_line(const struct place *p, const char *begin, bool *ret, struct pale_err *e)
{
    char mem[4096];
    own_buf text = {0};
    buf_init_lent(&text, POLICY_TEXT_MAX, mem, sizeof(mem));
    int r = read_policy(p, &text, e);
    if (r < 0)
        return r;
    const char *at = buf_text(&text);
    size_t n = strlen(begin);
    *ret = false;
    while (at && !*ret) {
        *ret = strncmp(at, begin, n) == 0;
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return 0;
}

int life_clear(const struct place *p, struct pale_err *e)
{
    char runtime[PATH_BYTES_MAX];
    int r = place_runtime_dir(runtime, sizeof(runtime), e);
    if (r < 0)
        return r;
    cgroup_sweep(p->id);
    claims_sweep(runtime, p->id);
    unlink(p->socket);
    return 0;
}

int life_sweep(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/lock", p->state);
    own_fd fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    int held = try_lock(fd, clock_ms() + SWEEP_WAIT_MS);
    return held < 0 ? err_os(e, "lock %s", path) : held > 0 ? 0 : life_clear(p, e);
}

static int ask_freeze(const struct place *p, bool on, struct pale_err *e)
{
    own_reach r = {.fd = -1};
    struct frame f;
    reach_init(&r);
    int res = reach_box(&r, p, false, e);
    if (res == 0 && (res = reach_send(&r, on ? ASK_FREEZE : ASK_THAW, NULL, 0, e)) == 0)
        res = reach_receive(&r, &f, e);
    if (res == 0 && f.type != TELL_DONE)
        res = err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language", p->name);
    return res;
}

int life_freeze(const struct place *p, bool on, struct pale_err *e)
{
    int64_t until = clock_ms() + STOP_WAIT_MS;
    int r = ask_freeze(p, on, e);
    /* One that ends this moment is asked for until it is gone: what it leaves may be frozen. */
    while (r == -PALE_GONE && !on && clock_ms() < until) {
        usleep(1000);
        r = ask_freeze(p, on, e);
    }
    if (r == -PALE_NOT_FOUND)
        r = on ? err_set(e, PALE_NOT_FOUND, "box %s is not running: there is nothing to freeze", p->name) : life_sweep(p, e);
    return r;
}

static int ask_stop(const struct place *p, struct pale_err *e)
{
    own_reach r = {.fd = -1};
    struct frame f;
    reach_init(&r);
    int res = reach_box(&r, p, false, e);
    if (res < 0)
        return res == -PALE_NOT_FOUND ? 0 : res;
    if ((res = reach_send(&r, ASK_STOP, NULL, 0, e)) == 0)
        res = reach_receive(&r, &f, e);
    return res == -PALE_GONE ? 0 : res;
}

int life_stop(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int64_t until = clock_ms() + STOP_WAIT_MS;
    int r, held;
    /* One that hung up may have been ending already, or may have had no room for us: then it is asked again. */
    do {
        if ((r = ask_stop(p, e)) < 0)
            return r;
        snprintf(path, sizeof(path), "%s/lock", p->state);
        own_fd fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? 0 : err_os(e, "open %s", path);
        int64_t once = clock_ms() + STOP_ASK_AGAIN_MS;
        if ((held = try_lock(fd, once < until ? once : until)) < 0)
            return err_os(e, "lock %s", path);
        if (held == 0)
            return life_clear(p, e);
    } while (clock_ms() < until);
    return err_set(e, PALE_TIMEOUT, "the keeper of %s did not end within %d s", p->name, STOP_WAIT_MS / 1000);
}

void life_take_back(const struct place *p)
{
    struct pale_err ignored;
    if (life_stop(p, &ignored) == 0)
        (void)!place_remove(p, true, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the files that say which boxes are cut off, and telling those that run. */
#include "box/cutoff.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/amend.h"
#include "box/keepers.h"
#include "wire/message.h"

static bool is_there(const char *dir, const char *name)
{
    char path[PATH_BYTES_MAX + 16];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

unsigned cutoff_of(const char *box_dir, const char *user_dir)
{
    return (box_dir && is_there(box_dir, CUTOFF_BOX) ? MSG_CUT_BOX : 0u) | (is_there(user_dir, CUTOFF_ALL) ? MSG_CUT_ALL : 0u);
}

unsigned cutoff_of_place(const struct place *p)
{
    char user_dir[PATH_BYTES_MAX];
    return place_state_dir(user_dir, sizeof(user_dir), NULL) < 0 ? MSG_CUT_ALL : cutoff_of(p->state, user_dir);
}

const char *cutoff_name(unsigned cut)
{
    static const char *const names[] = {"", "quarantine", "panic", "quarantine, panic"};
    return names[cut & MSG_CUT_BITS];
}

/* Writes the mark or takes it away; *ret: it was not so before. */
static int set_mark(int dir, const char *name, bool on, bool *ret, struct pale_err *e)
{
    struct pale_err own = {0};
    int r = on ? fd_write_new(dir, name, "", 0, 0600, true, &own) : 0;
    if (!on && unlinkat(dir, name, 0) < 0)
        r = errno == ENOENT ? -PALE_EXISTS : err_os(&own, "remove %s", name);
    *ret = r == 0;
    if (r == -PALE_EXISTS)
        r = 0;
    if (r < 0)
        *e = own;
    return r == 0 && fsync(dir) < 0 && errno != EINVAL ? err_os(e, "write %s to the disk", name) : r;
}

/* --- one box --- */

static void fill(const void *arg, struct json *j)
{
    json_text(j, "by", arg);
}

static int record(const struct amend *a, bool on, unsigned by, struct pale_err *e)
{
    return amend_record(a, on ? "net.cut" : "net.lift", fill, cutoff_name(by), e);
}

static int try_box(const struct place *p, bool on, const char *caller, struct pale_err *e)
{
    own_amend a = {.dir_fd = -1, .lock_fd = -1};
    bool changed;
    int r = amend_begin(&a, p, caller, e);
    if (r == 0 && a.lock_fd >= 0 && is_there(p->state, CUTOFF_BOX) != on)
        r = record(&a, on, MSG_CUT_BOX, e);
    if (r == 0)
        r = set_mark(a.dir_fd, CUTOFF_BOX, on, &changed, e);
    return r < 0 || a.lock_fd >= 0 ? r : amend_tell(&a, e);
}

int cutoff_box(const struct place *p, bool on, const char *caller, struct pale_err *e)
{
    int64_t until = clock_ms() + AMEND_WAIT_MS;
    int r;
    do
        r = try_box(p, on, caller, e);
    while (amend_is_passing(r, until));
    return r;
}

int cutoff_inherit(const struct place *from, const struct place *to, struct pale_err *e)
{
    bool changed;
    if (!is_there(from->state, CUTOFF_BOX))
        return 0;
    own_fd dir = open(to->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? err_os(e, "open %s", to->state) : set_mark(dir, CUTOFF_BOX, true, &changed, e);
}

/* --- every box --- */

static int tell_one(struct cutoff_all *x, const struct place *p, bool *ret_live, struct pale_err *e)
{
    int64_t until = clock_ms() + AMEND_WAIT_MS;
    int r;
    do {
        own_amend a = {.dir_fd = -1, .lock_fd = -1};
        r = amend_begin(&a, p, x->caller, e);
        *ret_live = a.lock_fd < 0;
        if (r == 0)
            r = *ret_live ? amend_tell(&a, e) : x->again ? 0 : record(&a, x->on, MSG_CUT_ALL, e);
    } while (amend_is_passing(r, until));
    return r;
}

static int each_live(void *arg, const struct place *p)
{
    struct cutoff_all *x = arg;
    struct pale_err e = {0};
    bool live = false;
    if (p->lost && !is_there(p->state, "policy"))
        return 0; /* half made or half removed */
    if (tell_one(x, p, &live, &e) < 0) {
        x->failed++;
        if (x->trouble)
            x->trouble(x->arg, p, &e);
    } else if (live)
        x->live++;
    else
        x->stopped++;
    return 0;
}

/* Keepers of one-shot boxes have no socket; one whose box has lost its folders is not found by them. Both look again at a signal. */
static int each_keeper(void *arg, const struct keepers_one *k)
{
    struct cutoff_all *x = arg;
    if (k->is_once)
        x->once += keepers_signal(k, SIGUSR1);
    else if (access(k->place.state, F_OK) < 0)
        x->live += keepers_signal(k, SIGUSR1);
    return 0;
}

int cutoff_all(struct cutoff_all *x, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    bool changed = false;
    x->live = x->stopped = x->once = x->failed = 0;
    int r = place_state_dir(path, sizeof(path), e);
    if (r < 0)
        return r;
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", path);
    /* First of all: whatever starts from now on finds it. */
    if ((r = set_mark(dir, CUTOFF_ALL, x->on, &changed, e)) < 0)
        return r;
    x->again = !changed;
    r = keepers_each(each_keeper, x, e);
    return r < 0 ? r : place_each_state(each_live, x, e);
}

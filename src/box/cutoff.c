/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the files that say which boxes are cut off, and telling those that run. */
#include "box/cutoff.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "box/amend.h"
#include "confine/kernel.h"
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

/* What is not dumpable belongs to root in /proc, so that the owner of its folder tells nothing. */
static bool is_ours(int proc, const char *pid)
{
    char path[40], text[1024], want[40];
    snprintf(path, sizeof(path), "%.20s/status", pid);
    own_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    snprintf(want, sizeof(want), "\nUid:\t%u\t", (unsigned)getuid());
    return strstr(text, want) != NULL;
}

/* Is this process a keeper of a one-shot box of this user's? Whatever else of his calls itself so gets a signal that ends it. */
static bool is_once(int proc, const char *pid)
{
    static const char begin[] = "pale-keeper\0once";
    char path[40], line[sizeof(begin) + 1] = "";
    snprintf(path, sizeof(path), "%.20s/cmdline", pid);
    own_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, line, sizeof(begin)) == (ssize_t)sizeof(begin) && memcmp(line, begin, sizeof(begin)) == 0 &&
           is_ours(proc, pid);
}

/* Those have no socket: they look again at a signal. */
static void tell_once(struct cutoff_all *x)
{
    DIR *proc = opendir("/proc");
    struct dirent *d;
    uint64_t pid;
    while (proc && (d = readdir(proc))) {
        if (!number_u64(d->d_name, INT32_MAX, &pid) || !is_once(dirfd(proc), d->d_name))
            continue;
        own_fd fd = k_pidfd_open((pid_t)pid);
        if (fd >= 0 && is_once(dirfd(proc), d->d_name) && k_pidfd_signal(fd, SIGUSR1) == 0)
            x->once++;
    }
    if (proc)
        closedir(proc);
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
    tell_once(x);
    return place_each_made(each_live, x, e);
}

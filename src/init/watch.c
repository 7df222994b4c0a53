/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that watches.
 *
 * How it works: inotify tells of one folder, so with `tree` each folder has a slot: its watch, the slot of the folder it is in, and
 * its name there. A slot that is NEW is opened step by step from the top without following a link, watched by what was opened, and
 * only then read, so that a folder made meanwhile is either found or told of. What a folder that was just created holds already is
 * told as created; it may come twice. A folder that is moved or removed gives up its slot and those below; where it arrives, it is
 * new. When the kernel had to drop happenings, all but the top begins anew after saying so.
 *
 * Other processes of the box decide how much there is to do; they can make this fail, be late or end with a limit, and cannot make
 * it grow: slots, names and paths have maxima, and a slot's parent never changes, so ways up end at the top. No descriptor of the
 * top is held, because the kernel would not tell that it was removed. */
#include "init/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "init/builtin.h"
#include "wire/fileline.h"

#define MASK (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_EXCL_UNLINK)
#define TOP_ENDS (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)
#define TOP 0

enum slot_state { SLOT_FREE, SLOT_NEW, SLOT_WATCHED };

struct slot {
    enum slot_state state;
    bool tell; /* what it holds is told as created */
    int wd;
    int parent;
    char name[FILE_NAME_MAX + 1];
};

/* One per process. */
static struct watch {
    int fd;
    const char *path;
    bool tree;
    int used; /* slots from here on were never used */
    struct slot slot[WATCH_FOLDERS_MAX];
    char out[32768];
    size_t out_len;
    size_t last_at, last_len; /* the record written last, while it stands in out */
    char name[PATH_BYTES_MAX];
} w;

/* --- telling --- */

static bool flush(void)
{
    size_t n = w.out_len;
    w.out_len = w.last_len = 0;
    return fd_write_full(1, w.out, n);
}

/* The same change again, in one go, is told once. */
static bool tell(enum file_happening kind, bool folder, const char *name)
{
    struct file_event ev = {.kind = kind, .folder = folder, .name = name};
    if (sizeof(w.out) - w.out_len < FILE_EVENT_MAX && !flush())
        return false;
    size_t n = file_event_write(&ev, w.out + w.out_len);
    if (kind == FILE_CHANGED && n == w.last_len && memcmp(w.out + w.last_at, w.out + w.out_len, n) == 0)
        return true;
    w.last_at = w.out_len;
    w.last_len = n;
    w.out_len += n;
    return true;
}

/* The path of a name in a slot's folder, relative to the top; NULL if it is too long. Written from its end. */
static const char *path_of(int slot, const char *name)
{
    size_t at = sizeof(w.name) - 1;
    w.name[at] = 0;
    for (;;) {
        size_t n = strlen(name);
        if (n + 1 > at)
            return NULL;
        at -= n;
        memcpy(w.name + at, name, n);
        if (slot == TOP)
            return w.name + at;
        if (n > 0)
            w.name[--at] = '/';
        name = w.slot[slot].name;
        slot = w.slot[slot].parent;
    }
}

static bool tell_in(enum file_happening kind, bool folder, int slot, const char *name)
{
    const char *path = path_of(slot, name);
    return !path || tell(kind, folder, path);
}

/* --- slots --- */

static int find_wd(int wd)
{
    for (int i = 0; i < w.used; i++)
        if (w.slot[i].state == SLOT_WATCHED && w.slot[i].wd == wd)
            return i;
    return -1;
}

static int find_name(int parent, const char *name)
{
    for (int i = TOP + 1; i < w.used; i++)
        if (w.slot[i].state != SLOT_FREE && w.slot[i].parent == parent && strcmp(w.slot[i].name, name) == 0)
            return i;
    return -1;
}

static void give_up(int slot)
{
    if (w.slot[slot].state == SLOT_WATCHED)
        inotify_rm_watch(w.fd, w.slot[slot].wd);
    w.slot[slot].state = SLOT_FREE;
}

static bool is_within(int slot, int top)
{
    while (slot != top && slot != TOP)
        slot = w.slot[slot].parent;
    return slot == top;
}

/* A slot and all below it; those below first need the way up. */
static void give_up_tree(int top)
{
    static bool below[WATCH_FOLDERS_MAX];
    for (int i = 0; i < w.used; i++)
        below[i] = w.slot[i].state != SLOT_FREE && is_within(i, top);
    for (int i = 0; i < w.used; i++)
        if (below[i])
            give_up(i);
}

/* Takes a slot for a folder that has none yet. False if there is none left. */
static bool add(int parent, const char *name, bool tell_content)
{
    int i = TOP;
    size_t n = strlen(name);
    if (n > FILE_NAME_MAX || find_name(parent, name) >= 0)
        return true;
    while (i < w.used && w.slot[i].state != SLOT_FREE)
        i++;
    if (i == WATCH_FOLDERS_MAX)
        return false;
    w.slot[i] = (struct slot){.state = SLOT_NEW, .tell = tell_content, .wd = -1, .parent = parent};
    memcpy(w.slot[i].name, name, n + 1);
    if (i == w.used)
        w.used++;
    return true;
}

/* Opens a slot's folder from the top on, one name at a time. */
static int open_slot(int slot)
{
    static int way[WATCH_FOLDERS_MAX];
    int n = 0;
    for (int i = slot; i != TOP; i = w.slot[i].parent)
        way[n++] = i;
    int fd = open(w.path, O_PATH | O_CLOEXEC);
    while (fd >= 0 && n-- > 0) {
        own_fd from = fd;
        fd = openat(from, w.slot[way[n]].name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    return fd;
}

static bool is_folder(int dir, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The last that is told: there is a folder that cannot be watched, so the rest would no longer be the truth. */
static int meet_limit(int slot, const char *why, struct pale_err *e)
{
    tell_in(FILE_LIMIT, true, slot, "");
    return err_set(e, PALE_LIMIT, "watch %.400s: %s; watch a smaller folder", w.path, why);
}

static int one_too_many(int slot, const char *name, struct pale_err *e)
{
    char why[64];
    if (!path_of(slot, name))
        return meet_limit(slot, "the folders are too deep", e);
    snprintf(why, sizeof(why), "more than %d folders", WATCH_FOLDERS_MAX);
    return meet_limit(slot, why, e);
}

/* Finds the folders in a slot's folder. */
static int read_slot(int slot, int fd, struct pale_err *e)
{
    static _Alignas(8) char block[32768];
    bool tell_content = w.slot[slot].tell;
    own_fd dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;
    while (dir >= 0 && (n = fd_entries(dir, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            bool folder = is_folder(dir, d);
            if (tell_content && !tell_in(FILE_CREATED, folder, slot, d->d_name))
                return err_os(e, "tell");
            if (folder && (!path_of(slot, d->d_name) || !add(slot, d->d_name, tell_content)))
                return one_too_many(slot, d->d_name, e);
        }
    return 0;
}

/* Watches a slot that is new. What is gone again, or may not be read, gives its slot back. */
static int begin_slot(int slot, struct pale_err *e)
{
    char self[32];
    struct stat st;
    own_fd fd = open_slot(slot);
    if (fd < 0 || fstat(fd, &st) < 0) {
        give_up(slot);
        return slot == TOP ? err_os(e, "watch %.400s", w.path) : 0;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(w.fd, self, slot == TOP ? MASK | IN_DELETE_SELF | IN_MOVE_SELF : MASK | IN_ONLYDIR);
    int os = errno, other = wd < 0 ? -1 : find_wd(wd);
    if (wd < 0 && (os == ENOSPC || os == ENOMEM))
        return meet_limit(slot, "the kernel's watches of this box are used up", e);
    if (wd < 0 && slot == TOP)
        return errno = os, err_os(e, "watch %.400s", w.path);
    if (wd < 0 || other >= 0) { /* closed to us, or mounted at a second place */
        give_up(slot);
        return tell_in(FILE_UNWATCHED, true, w.slot[slot].parent, w.slot[slot].name) ? 0 : err_os(e, "tell");
    }
    w.slot[slot].state = SLOT_WATCHED;
    w.slot[slot].wd = wd;
    return w.tree && S_ISDIR(st.st_mode) ? read_slot(slot, fd, e) : 0;
}

/* Until no slot is new. Each round settles one, and new ones come only out of the finite number of free slots. */
static int begin_new(struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < w.used; i++)
        if (w.slot[i].state == SLOT_NEW) {
            r = begin_slot(i, e);
            i = -1;
        }
    return r;
}

static int begin_anew(struct pale_err *e)
{
    for (int i = 0; i < w.used; i++)
        give_up(i);
    w.slot[TOP] = (struct slot){.state = SLOT_NEW, .wd = -1};
    w.used = 1;
    return begin_new(e);
}

/* --- happenings --- */

static const struct {
    uint32_t bit;
    enum file_happening kind;
} kinds[] = {
    {IN_CREATE, FILE_CREATED},    {IN_DELETE, FILE_REMOVED}, {IN_MOVED_FROM, FILE_MOVED_FROM},
    {IN_MOVED_TO, FILE_MOVED_TO}, {IN_MODIFY, FILE_CHANGED}, {IN_ATTRIB, FILE_CHANGED},
};

/* A folder that has left its place. Where it arrives is told next, if it is in the tree: then it stays watched, and nothing that happens in
 * it meanwhile is lost. */
static struct {
    int slot; /* 0: none, for the top never leaves so */
    uint32_t cookie;
} leaving;

static void forget_leaving(void)
{
    if (leaving.slot)
        give_up_tree(leaving.slot);
    leaving.slot = 0;
}

static bool arrive(int slot, const char *name)
{
    size_t n = strlen(name);
    struct slot *moved = &w.slot[leaving.slot];
    if (!leaving.slot || n > FILE_NAME_MAX || !path_of(slot, name))
        return false;
    moved->parent = slot;
    memcpy(moved->name, name, n + 1);
    leaving.slot = 0;
    return true;
}

/* A folder in a tree that comes or goes. What comes by a move is watched before it is told, so that whoever then looks into it
 * misses nothing. */
static int follow_folder(enum file_happening kind, uint32_t cookie, int slot, const char *name, struct pale_err *e)
{
    int was = find_name(slot, name);
    if (was >= 0 && (kind == FILE_REMOVED || kind == FILE_MOVED_TO))
        give_up_tree(was); /* the last: it replaced an empty one */
    if (was >= 0 && kind == FILE_MOVED_FROM) {
        leaving.slot = was;
        leaving.cookie = cookie;
    }
    if (kind == FILE_MOVED_TO && arrive(slot, name))
        return tell_in(kind, true, slot, name) ? 0 : err_os(e, "tell");
    if (kind != FILE_MOVED_FROM)
        forget_leaving();
    bool comes = kind == FILE_CREATED || kind == FILE_MOVED_TO;
    if (kind == FILE_CREATED && !tell_in(kind, true, slot, name))
        return err_os(e, "tell");
    if (comes && (!path_of(slot, name) || !add(slot, name, kind == FILE_CREATED)))
        return one_too_many(slot, name, e);
    int r = comes ? begin_new(e) : 0;
    return r == 0 && kind != FILE_CREATED && !tell_in(kind, true, slot, name) ? err_os(e, "tell") : r;
}

/* 1 when it was the last. */
static int take_event(const struct inotify_event *ev, struct pale_err *e)
{
    if (!(ev->mask & IN_MOVED_TO) || ev->cookie != leaving.cookie)
        forget_leaving();
    if (ev->mask & IN_Q_OVERFLOW)
        return tell(FILE_OVERFLOW, false, "") ? begin_anew(e) : err_os(e, "tell");
    int slot = find_wd(ev->wd);
    bool folder = ev->mask & IN_ISDIR;
    if (slot < 0)
        return 0; /* of a watch that we gave up */
    if (slot == TOP && (ev->mask & TOP_ENDS))
        return tell(ev->mask & IN_MOVE_SELF ? FILE_MOVED_FROM : FILE_REMOVED, folder, "") ? 1 : err_os(e, "tell");
    if (ev->mask & IN_IGNORED) {
        w.slot[slot].wd = -1;
        give_up_tree(slot);
        return 0;
    }
    const char *name = ev->len ? ev->name : "";
    if (!name[0] && slot != TOP)
        return 0; /* the folder it is in tells the same */
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!(ev->mask & kinds[i].bit))
            continue;
        if (w.tree && folder && name[0])
            return follow_folder(kinds[i].kind, ev->cookie, slot, name, e);
        return tell_in(kinds[i].kind, folder, slot, name) ? 0 : err_os(e, "tell");
    }
    return 0;
}

/* All that the kernel has now. 1 when it was the last. */
static int take_events(struct pale_err *e)
{
    static _Alignas(8) char block[32768];
    int r = 0;
    ssize_t n = read(w.fd, block, sizeof(block));
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : err_os(e, "watch");
    for (ssize_t at = 0; r == 0 && at < n;) {
        const struct inotify_event *ev = (const void *)(block + at);
        at += (ssize_t)(sizeof(*ev) + ev->len);
        r = take_event(ev, e);
    }
    return r;
}

/* Is our input at its end? */
static bool is_over(void)
{
    char sink[512];
    ssize_t n = read(0, sink, sizeof(sink));
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

int watch_run(const struct msg_exec *m)
{
    struct pale_err e;
    w.path = m->argv[1];
    w.tree = m->argc == 3;
    w.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w.fd < 0)
        return builtin_fail_os("watch", w.path);
    int r = begin_anew(&e);
    if (r == 0 && !tell(FILE_READY, false, ""))
        r = err_os(&e, "tell");
    while (r == 0 && flush()) {
        struct pollfd p[] = {{.fd = w.fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            r = err_os(&e, "poll");
        if (r == 0 && p[0].revents)
            r = take_events(&e);
        if (r == 0 && p[1].revents && is_over())
            r = 1;
    }
    (void)flush();
    return r < 0 ? builtin_fail(&e) : 0;
}

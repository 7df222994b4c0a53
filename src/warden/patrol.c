/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the looking: which folders are watched, and which names in them are worth a judgement.
 *
 * How it works: every folder of the project is watched before it is listed, so that nothing slips in between. Names come from the box:
 * they are single names in folders that were opened beneath the project, and nothing is followed. A folder that is already watched
 * has told of all that came into it; when it is moved, only names that its new place could make guarded are looked at again. What is below
 * a guarded name is behind its mount, and what git keeps in objects nobody enters: neither is watched. Folders wait in a list to be
 * listed, each once, while events are taken in between: a name that comes into a folder we know waits for one listing at most, whatever
 * else the box moves about. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "warden/warden.h"

#define WATCHED (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_MASK_ADD)
#define EVERY_LEVEL (~0u)
/* A look through everything is followed by a pause of at least this, and of five times what it took. */
#define LOOK_PAUSE_US 200000
#define LOOK_PAUSE_TIMES 5
#define SWEEP_PAUSE_US 10000000
/* Folders that stay open from being seen to being listed, of the thousand descriptors a process usually may have. */
#define HELD_MAX 256

/* What makes a folder a git repository, wherever it is and whatever it is called. */
enum { HAS_HEAD = 1, HAS_OBJECTS = 2, HAS_REFS = 4, HAS_COMMONDIR = 8 };
static const struct {
    const char *name;
    unsigned bit;
} parts[] = {{"HEAD", HAS_HEAD}, {"objects", HAS_OBJECTS}, {"refs", HAS_REFS}, {"commondir", HAS_COMMONDIR}};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* The kernel's watch on an open folder. Nobody else cares where we are, and "." is found faster than a descriptor's name in /proc. */
static int watch_fd(const struct warden *w, int fd)
{
    char link[32];
    if (fchdir(fd) == 0)
        return inotify_add_watch(w->inotify_fd, ".", WATCHED);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return inotify_add_watch(w->inotify_fd, link, WATCHED);
}

static unsigned part_of(const char *name)
{
    if (!strchr("HhOoRrCc", name[0]) || !name[0])
        return 0;
    for (size_t i = 0; i < PARTS; i++)
        if (strcasecmp(name, parts[i].name) == 0)
            return parts[i].bit;
    return 0;
}

static bool is_repository(unsigned has)
{
    return (has & HAS_HEAD) && ((has & HAS_COMMONDIR) || (has & (HAS_OBJECTS | HAS_REFS)) == (HAS_OBJECTS | HAS_REFS));
}

/* A folder that is where we think, open for reading; -1 if it is not any more. */
static int open_folder(struct warden *w, unsigned n)
{
    char path[PATH_BYTES_MAX];
    if (!folders_path(&w->folders, n, path, sizeof(path)))
        return -1;
    own_fd fd = fd_open_beneath(w->project_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || w->folders.item[n].wd < 0)
        return take_fd(&fd);
    int wd = watch_fd(w, fd);
    if (wd == w->folders.item[n].wd)
        return take_fd(&fd);
    /* Another stands there now, which its own event will tell of. A watch that we did not mean is let go. */
    if (wd >= 0 && !folders_find(&w->folders, wd))
        inotify_rm_watch(w->inotify_fd, wd);
    return -1;
}

/* Lets go of folders that are not where they were: moved into the quarantine, or out of the project by the host. One that was only moved
 * within it is new again when its event is seen. True if that made room. */
static bool sweep(struct warden *w)
{
    unsigned before = w->folders.count;
    if (!w->stands || clock_us() - w->swept_us < SWEEP_PAUSE_US)
        return false;
    for (unsigned n = FOLDER_ROOT + 1; n < w->folders.cap; n++) {
        const struct folder *d = &w->folders.item[n];
        if (!d->name || d->wd < 0 || judge_has_laid(w, d->wd))
            continue;
        own_fd fd = open_folder(w, n);
        if (fd < 0) {
            inotify_rm_watch(w->inotify_fd, d->wd);
            folders_drop(&w->folders, n);
        }
    }
    w->swept_us = clock_us();
    return w->folders.count < before;
}

/* No more can be watched. When the box starts that is an error; later the project is looked through again and again. */
static int out_of_watches(struct warden *w, struct pale_err *e)
{
    if (!w->stands)
        return err_set(e, PALE_LIMIT,
                       "the project has more folders than can be watched; raise fs.inotify.max_user_watches (sysctl), give the box a "
                       "smaller folder (at most %u are watched), or mount the project ro",
                       GUARD_FOLDERS_MAX);
    if (w->folders.count >= GUARD_LOOK_MAX)
        return err_set(e, PALE_LIMIT, "the project has more than %u folders now, which cannot be looked through any more", GUARD_LOOK_MAX);
    w->lost = true;
    if (!sweep(w) && !w->slow) {
        account_send(w, WARD_NOTE, WARD_NOTE_SLOW, w->folders.count, NULL);
        w->slow = true;
    }
    return 0;
}

/* Puts a folder on the list; takes fd over, which may be -1. */
static int queue(struct warden *w, unsigned n, unsigned levels, int *fd, struct pale_err *e)
{
    struct walk *k = &w->walk;
    struct folder *d = &w->folders.item[n];
    if (d->levels < levels || !d->queued)
        d->levels = levels;
    if (d->queued)
        return 0;
    if (k->count == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 64;
        struct todo *more = realloc(k->todo, cap * sizeof(*more));
        if (!more)
            return err_nomem(e);
        k->todo = more;
        k->cap = cap;
    }
    bool hold = *fd >= 0 && k->held < HELD_MAX;
    k->held += hold;
    k->todo[k->count++] = (struct todo){n, d->serial, hold ? take_fd(fd) : -1};
    d->queued = true;
    return 0;
}

static int refuse_closed(const char *name, struct pale_err *e)
{
    char shown[200];
    return err_set(e, PALE_DENIED, "folder %s in the project cannot be read, so what is planted in it would not be seen; chmod u+rx it",
                   quote_into(shown, sizeof(shown), name, strlen(name)));
}

/* A folder that its owner, which is the box too, has closed is opened again; it could be entered by name all the same. When the box
 * starts it is the host's and stays as it is. */
static int open_closed(struct warden *w, unsigned n, int dirfd, const char *name, int *ret, struct pale_err *e)
{
    char path[32], whole[PATH_BYTES_MAX];
    struct stat st;
    own_fd at = fd_open_beneath(dirfd, name, O_PATH | O_DIRECTORY, 0);
    if (at < 0 && errno == EACCES) {
        /* It is the folder around it that cannot be entered. */
        if (!w->stands)
            return refuse_closed(w->folders.item[n].name, e);
        at = judge_open_up(w, n, dirfd) ? fd_open_beneath(dirfd, name, O_PATH | O_DIRECTORY, 0) : -1;
        *ret = at < 0 ? -1 : fd_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
    }
    if (at < 0 || *ret >= 0 || fstat(at, &st) < 0)
        return 0;
    if (st.st_uid != geteuid()) {
        /* Another id of the box may have made it. Nobody else's folder can be given, and the box cannot enter those either. */
        if (!w->stands)
            w->lost = true;
        else if (judge_path(w, n, name, whole) && mantle_give(&w->mantle, whole, NULL) == 0 && fstat(at, &st) < 0)
            return 0;
        if (st.st_uid != geteuid())
            return 0;
    }
    if (!w->stands)
        return refuse_closed(name, e);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
    if (chmod(path, (st.st_mode & 07777) | 0500) == 0)
        *ret = fd_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
    return 0;
}

/* Watches the folder open as fd, or remembers it until the next look. 0: it is gone. */
static int watch(struct warden *w, int fd, unsigned parent, const char *name, bool *ret_new, struct pale_err *e)
{
    int wd = watch_fd(w, fd);
    bool full = wd < 0 ? errno == ENOSPC : w->folders.count >= GUARD_FOLDERS_MAX && !folders_find(&w->folders, wd);
    if (full) {
        if (wd >= 0)
            inotify_rm_watch(w->inotify_fd, wd);
        int r = out_of_watches(w, e);
        if (r < 0)
            return r;
        wd = --w->unwatched;
    }
    if (wd < 0 && !full)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_os(e, "watch the project");
    unsigned n = folders_put(&w->folders, wd, parent, name, ret_new);
    if (!n) {
        inotify_rm_watch(w->inotify_fd, wd);
        return err_nomem(e);
    }
    return (int)n;
}

/* A subfolder that was seen: watched from now on, and on the list if anything in it must be looked at. */
static int see_folder(struct warden *w, unsigned n, int dirfd, const char *name, unsigned levels, struct pale_err *e)
{
    bool is_new;
    int r;
    own_fd fd = fd_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && errno == EACCES && (r = open_closed(w, n, dirfd, name, &fd, e)) < 0)
        return r;
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? err_os(e, "look through the project") : 0;
    int sub = watch(w, fd, n, name, &is_new, e);
    if (sub <= 0)
        return sub;
    if (is_new)
        levels = EVERY_LEVEL;
    return levels ? queue(w, (unsigned)sub, levels == EVERY_LEVEL ? levels : levels - 1, &fd, e) : 0;
}

static unsigned char type_of(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : (unsigned char)IFTODT(st.st_mode);
}

/* Is it guarded where it stands? A symlink in the place of a folder that leads to guarded names is, and so is a .git that is no folder:
 * both bring what they point at. */
static bool is_guarded(const struct warden *w, const char *look, const char *name, unsigned char type)
{
    enum guard_kin kin = guard_look(&w->guard, look, name);
    return kin == GUARD_NAME || (kin == GUARD_ABOVE && (type == DT_LNK || (type != DT_DIR && strcasecmp(name, ".git") == 0)));
}

/* Nothing is entered there, and a repository has thousands. */
static bool is_objects(const char *look, const char *name)
{
    size_t n = strlen(look);
    return strcmp(name, "objects") == 0 && n >= 4 && strcasecmp(look + n - 4, ".git") == 0 && (n == 4 || look[n - 5] == '/');
}

struct listing {
    unsigned folder;
    int fd;
    unsigned levels;
    char look[PATH_BYTES_MAX]; /* how the folder's path ends, as names in it are looked up */
    unsigned has;              /* parts of a repository */
};

static int see_name(struct warden *w, struct listing *l, const char *name, unsigned char type, struct pale_err *e)
{
    if (type == DT_UNKNOWN)
        type = type_of(l->fd, name);
    l->has |= part_of(name);
    if (is_guarded(w, l->look, name, type))
        return judge_name(w, l->folder, l->fd, name, e);
    return type == DT_DIR && !is_objects(l->look, name) ? see_folder(w, l->folder, l->fd, name, l->levels, e) : 0;
}

static int list_names(struct warden *w, struct listing *l, struct pale_err *e)
{
    _Alignas(8) char block[16384];
    long n;
    int r = 0;
    while (r == 0 && (n = fd_entries(l->fd, block, sizeof(block))) > 0)
        for (long at = 0; r == 0 && at < n;) {
            const struct dirent *en = (const void *)(block + at);
            at += en->d_reclen;
            if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0)
                r = see_name(w, l, en->d_name, en->d_type, e);
        }
    return r;
}

static int list_folder(struct warden *w, unsigned n, int fd, struct pale_err *e)
{
    struct listing l = {.folder = n, .fd = fd, .levels = w->folders.item[n].levels};
    if (!folders_look_path(&w->folders, n, w->guard.depth, l.look, sizeof(l.look)))
        return 0;
    int r = list_names(w, &l, e);
    if (r < 0 || w->folders.item[n].is_repository || !is_repository(l.has))
        return r;
    /* Only now it shows what it is, and its names count for more. */
    w->folders.item[n].is_repository = true;
    if (!folders_look_path(&w->folders, n, w->guard.depth, l.look, sizeof(l.look)) || lseek(fd, 0, SEEK_SET) < 0)
        return 0;
    return list_names(w, &l, e);
}

/* One that is not where it should be was removed or moved, and an event tells which: it gets a second turn after that. If it is
 * missing still, only looking through everything helps. */
static int list_next(struct warden *w, struct pale_err *e)
{
    struct todo t = w->walk.todo[--w->walk.count];
    struct folder *d = &w->folders.item[t.folder];
    own_fd fd = t.fd;
    w->walk.held -= fd >= 0;
    if (d->serial != t.serial)
        return 0;
    d->queued = false;
    if (fd < 0)
        fd = open_folder(w, t.folder);
    bool again = fd < 0 && !d->missed;
    w->lost = w->lost || (fd < 0 && d->missed);
    d->missed = again;
    if (fd >= 0)
        return list_folder(w, t.folder, fd, e);
    return again ? queue(w, t.folder, d->levels, &fd, e) : 0;
}

int patrol_step(struct warden *w, bool *ret_any, struct pale_err *e)
{
    *ret_any = w->walk.count > 0;
    int r = *ret_any ? list_next(w, e) : 0;
    if (w->walk.count > 0 || !w->looking)
        return r;
    int64_t now = clock_us(), pause = LOOK_PAUSE_TIMES * (now - w->look_began_us);
    w->looking = false;
    w->lost = w->lost || w->slow;
    w->look_again_us = now + (pause > LOOK_PAUSE_US ? pause : LOOK_PAUSE_US);
    return r;
}

int patrol_start(struct warden *w, struct pale_err *e)
{
    bool is_new, any = true;
    int none = -1, n = watch(w, w->project_fd, 0, "", &is_new, e);
    if (n <= 0)
        return n < 0 ? n : err_set(e, PALE_NOT_FOUND, "the project is gone");
    int r = queue(w, (unsigned)n, EVERY_LEVEL, &none, e);
    while (r == 0 && any)
        r = patrol_step(w, &any, e);
    return r;
}

int patrol_look_through(struct warden *w, struct pale_err *e)
{
    int none = -1;
    w->lost = false;
    w->looking = w->wary = true;
    w->look_began_us = clock_us();
    for (unsigned n = FOLDER_ROOT + 1; n < w->folders.cap && w->unwatched; n++)
        if (w->folders.item[n].name && w->folders.item[n].wd < 0)
            folders_drop(&w->folders, n);
    w->unwatched = 0;
    return queue(w, FOLDER_ROOT, EVERY_LEVEL, &none, e);
}

/* Something in a folder that is no repository yet may have made it one. */
static int see_part(struct warden *w, unsigned n, int dirfd, struct pale_err *e)
{
    struct stat st;
    unsigned has = 0;
    for (size_t i = 0; i < PARTS; i++)
        if (fstatat(dirfd, parts[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            has |= parts[i].bit;
    if (!is_repository(has))
        return 0;
    w->folders.item[n].is_repository = true;
    int none = -1;
    return queue(w, n, (unsigned)w->guard.depth, &none, e);
}

static int see_event(struct warden *w, unsigned n, const struct inotify_event *ev, struct pale_err *e)
{
    char look[PATH_BYTES_MAX];
    bool is_dir = ev->mask & IN_ISDIR;
    if (!folders_look_path(&w->folders, n, w->guard.depth, look, sizeof(look)))
        return 0;
    enum guard_kin kin = guard_look(&w->guard, look, ev->name);
    bool part = !w->folders.item[n].is_repository && part_of(ev->name);
    if (kin == GUARD_NO && !is_dir && !part)
        return 0;
    own_fd dirfd = open_folder(w, n);
    int none = -1;
    if (dirfd < 0) /* moved with what is in it, or removed: later events tell */
        return queue(w, n, w->wary ? EVERY_LEVEL : (unsigned)w->guard.depth, &none, e);
    if (kin != GUARD_NO && is_guarded(w, look, ev->name, is_dir ? DT_DIR : type_of(dirfd, ev->name)))
        return judge_name(w, n, dirfd, ev->name, e);
    int r = 0;
    if (is_dir && !is_objects(look, ev->name))
        r = see_folder(w, n, dirfd, ev->name, w->wary ? EVERY_LEVEL : (unsigned)w->guard.depth, e);
    return r == 0 && part ? see_part(w, n, dirfd, e) : r;
}

static int take_event(struct warden *w, const struct inotify_event *ev, struct pale_err *e)
{
    if (ev->mask & IN_Q_OVERFLOW) {
        w->lost = true;
        return 0;
    }
    unsigned n = folders_find(&w->folders, ev->wd);
    if (!n)
        return 0;
    if (ev->mask & IN_IGNORED) {
        folders_drop(&w->folders, n);
        return 0;
    }
    if (ev->mask & (IN_DELETE | IN_MOVED_FROM))
        judge_gone(w, ev->wd, ev->name);
    return ev->mask & (IN_CREATE | IN_MOVED_TO) && ev->len ? see_event(w, n, ev, e) : 0;
}

int patrol_events(struct warden *w, bool *ret_any, struct pale_err *e)
{
    _Alignas(8) char block[16384];
    ssize_t n = read(w->inotify_fd, block, sizeof(block));
    int r = 0;
    *ret_any = n > 0;
    if (n <= 0 && !w->looking)
        w->wary = false;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return err_os(e, "watch the project");
    for (ssize_t at = 0; r == 0 && at < n;) {
        const struct inotify_event *ev = (const void *)(block + at);
        at += (ssize_t)(sizeof(*ev) + ev->len);
        r = take_event(w, ev, e);
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Claims host folders for a box, and finds out which other box has one already. */
#include "box/claims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/claimmarks.h"
#include "box/claimplaces.h"
#include "box/claimrecord.h"
#include "box/runtimes.h"

#define PREFIX "claim-"
#define WIDE "claims.wide"
#define ENDING_TRIES 100 /* of 20 ms */

/* One that starts, and what it knows. */
struct starter {
    const struct claim *claim;
    struct ancestors *mine;
    bool is_wide, may_ask; /* may_ask: the keepers whose claims are looked at are our own user's */
    bool is_marked;        /* somebody else's mark has been seen on what is ours */
    const char *runtime_dir;
    unsigned long others;         /* living claims that were seen beside our own */
    char climbed[PATH_BYTES_MAX]; /* the folder above the claimed one that was looked at last */
    struct pale_err *e;
};

/* Which of our paths brought this folder in, for the message. */
static const char *path_of(const struct starter *s, const struct ancestor *at)
{
    const struct claim *c = s->claim;
    for (size_t i = 0; at && i < c->count; i++) {
        own_ancestors one = {.is_light = true};
        if (ancestors_add_path(&one, c->paths[i], NULL) == 0 && ancestors_find(&one, at->dev, at->ino))
            return c->paths[i];
    }
    return c->data ? c->data : c->count ? c->paths[0] : "a folder";
}

static int refuse(const struct starter *s, const struct ancestor *at, const char *box, const char *whose)
{
    return err_set(
        s->e, PALE_DENIED,
        "%s is, holds or lies in a folder that is writable in box %s%s already, and no two boxes share a writable folder; stop that "
        "box (`pale stop %s`; a `pale run` ends with its command), or mount it ro here",
        path_of(s, at), box, whose, box);
}

/* --- folders that were moved --- */

/* Is the folder of this line still where it was claimed? */
static bool stands(const struct claim_line *l)
{
    struct stat st;
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd fd = root < 0 || !l->path[1] ? -1 : fd_open_beneath(root, l->path + 1, O_PATH, 0);
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == l->ino && ancestor_device(st.st_dev) == l->dev;
}

/* It stands there, but what is above it may have been made anew. Most boxes' folders stand in one: that is looked at once. */
static int look_where_it_stands(struct starter *s, const struct claim_line *l, const struct claim_record *r)
{
    own_ancestors now = {.is_light = true};
    size_t n = (size_t)(strrchr(l->path, '/') - l->path);
    if (strncmp(s->climbed, l->path, n) == 0 && s->climbed[n] == 0)
        return 0;
    snprintf(s->climbed, sizeof(s->climbed), "%.*s", (int)n, l->path);
    own_fd fd = open(n ? s->climbed : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int res = fd < 0 ? err_os(s->e, "open %s", s->climbed) : ancestors_add_folder(&now, fd, ANCESTORS_ALL, s->e);
    if (res < 0)
        return res;
    for (size_t i = 0; i < now.count; i++) {
        const struct ancestor *own = ancestors_find(s->mine, now.at[i].dev, now.at[i].ino);
        if (own && (own->roles & ROLE_SHARED))
            return refuse(s, own, r->name, r->whose);
    }
    return 0;
}

/* A rename does not leave the file system. */
static bool could_hold(const struct ancestors *mine, unsigned long long dev)
{
    for (size_t i = 0; i < mine->count; i++)
        if ((mine->at[i].roles & ROLE_SHARED) && mine->at[i].dev == dev)
            return true;
    return false;
}

/* A keeper that ends answers nobody, and lets go of its record in a moment. */
static bool has_ended(const struct claim_record *r)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (int i = 0; i < ENDING_TRIES; i++) {
        if (flock(r->fd, LOCK_SH | LOCK_NB) == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Where the claimed folders of one record are now. */
static int look_where_it_is(struct starter *s, int dir, const struct claim_record *r, struct pale_err *e)
{
    own_ancestors now = {.is_light = true};
    struct pale_err why = {0};
    if (!s->may_ask && !weak_word("claim-strangers"))
        return 0; /* of another user's box the marks alone count: its keeper answers its own user */
    int res = claimplaces_ask(dir, r->id, &now, &why);
    if (res < 0 && s->may_ask && has_ended(r))
        return 0;
    if (res < 0)
        return err_set(e, PALE_DENIED,
                       "%s may hold a folder that is writable in box %s%s, and no two boxes share a writable folder; where it is now could "
                       "not be found out (%s); stop that box (`pale stop %s`), or mount the folder ro here",
                       path_of(s, NULL), r->name, r->whose, why.text, r->name);
    const struct ancestor *at = ancestors_clash(s->mine, &now);
    return at ? refuse(s, at, r->name, r->whose) : 0;
}

void claims_renew(struct claims *held)
{
    own_ancestors now = {0};
    if (ancestors_renew(&held->folders, &now, NULL) < 0 || claimmarks_set(&now, NULL) < 0)
        return;
    struct ancestors old = held->folders;
    held->folders = now;
    now = old; /* is let go only now that the others are marked */
    mount_table_done(&held->folders.mounts);
}

/* --- one other claim --- */

/* What they have is, or holds, ours: the inode is the proof. What was beneath ours when it was claimed may have gone. */
static int compare(struct starter *s, int dir, const struct claim_record *r)
{
    struct claim_line l;
    bool may_have_moved = false;
    for (const char *at = r->lines; *at;) {
        /* A line that cannot be read is no proof of anything. In other runtime folders the marks are what counts, and records only tell
         * names. */
        if (!claim_line_read(&at, &l))
            return r->whose[0] ? 0 : refuse(s, NULL, r->name, "");
        const struct ancestor *own = ancestors_find(s->mine, l.dev, l.ino);
        if (own && l.is_shared)
            return refuse(s, own, r->name, r->whose);
        may_have_moved = may_have_moved || (own && (own->roles & ROLE_SHARED));
        if (!s->is_wide || !l.path[0] || may_have_moved || !could_hold(s->mine, l.dev) || weak_word("claim-moved"))
            continue;
        may_have_moved = !stands(&l);
        int res = may_have_moved ? 0 : look_where_it_stands(s, &l, r);
        if (res < 0)
            return res;
    }
    return may_have_moved ? look_where_it_is(s, dir, r, s->e) : 0;
}

static int check_one(struct starter *s, int dir, const char *file, const char *whose)
{
    own_fd fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    own_buf text = {0};
    struct claim_record r = {.fd = fd, .id = file + sizeof(PREFIX) - 1, .whose = whose};
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(s->e, "read the claims of another box");
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        unlinkat(dir, file, 0);
        claimplaces_sweep(dir, r.id);
        return 0;
    }
    buf_init(&text, CLAIM_BYTES_MAX);
    int res = fd_read_all(fd, &text, s->e);
    if (res < 0)
        return res;
    claim_record_read(&r, (char *)(uintptr_t)buf_text(&text));
    s->others += r.marked;
    return compare(s, dir, &r);
}

static int check_folder(struct starter *s, int dir, const char *own, const char *whose)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = d ? 0 : err_os(s->e, "read the claims of other boxes");
    errno = 0;
    for (const struct dirent *en; r == 0 && (en = readdir(d)); errno = 0)
        if (strncmp(en->d_name, PREFIX, sizeof(PREFIX) - 1) == 0 && strcmp(en->d_name, own) != 0)
            r = check_one(s, dir, en->d_name, whose);
    if (r == 0 && errno)
        r = err_os(s->e, "read the claims of other boxes");
    if (d)
        closedir(d);
    else
        own_close(&copy);
    return r;
}

/* The folder of wide claims; -1 with ENOENT where there is none yet. */
static int open_wide(int dir, bool make)
{
    if (make && mkdirat(dir, WIDE, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(dir, WIDE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- other runtime folders --- */

static int check_runtime(void *arg, int dir, const char *path)
{
    struct starter *s = arg;
    struct stat st;
    s->may_ask = fstat(dir, &st) == 0 && st.st_uid == geteuid();
    /* What another user has written there is his word alone: it names who has a mark that is there, and refuses nothing by itself. */
    if (!s->may_ask && !s->is_marked && !weak_word("claim-strangers"))
        return 0;
    char whose[RUNTIMES_PATH_MAX + 64];
    snprintf(whose, sizeof(whose), " (of the runtime folder %s)", path);
    own_fd wide = open_wide(dir, false);
    int r = wide < 0 ? 0 : check_folder(s, wide, "", whose);
    return r < 0 ? r : check_folder(s, dir, "", whose);
}

/* Somebody has marked what we want, and it is none of this runtime folder: who? */
static int look_who_marked(struct starter *s)
{
    s->is_marked = true;
    int pid, r = runtimes_each_other(s->runtime_dir, check_runtime, s);
    const struct ancestor *at = r < 0 ? NULL : claimmarks_find(s->mine, &pid);
    if (!at)
        return r; /* the others were asked, and have let go of what is not theirs any more */
    if (pid > 0)
        return err_set(
            s->e, PALE_DENIED,
            "%s cannot be made writable in this box: process %d has locked it, or a folder above or below it, where boxes mark what they "
            "write; end it, or mount the folder ro here",
            path_of(s, at), pid);
    return err_set(
        s->e, PALE_DENIED,
        "%s is, holds or lies in a folder that is writable in a box of another user, or of another runtime folder, already, and no two "
        "boxes share a writable folder; have that box stopped, or mount it ro here (who holds it: `lsfd` or `lslocks`, inode %llu)",
        path_of(s, at), at->ino);
}

/* Marks say where a folder was when it was claimed. If there are any that no claim of this runtime folder accounts for, those who set them
 * are asked where their folders are now. */
static int check_others(struct starter *s)
{
    int pid;
    const struct ancestor *at = claimmarks_find(s->mine, &pid);
    if (at)
        return look_who_marked(s);
    if (!s->is_wide || weak_word("claim-moved") || weak_word("claim-marks") || weak_word("claims"))
        return 0;
    unsigned long own = 0;
    for (size_t i = 0; i < s->mine->count; i++)
        own += (s->mine->at[i].roles & ROLE_SHARED) && s->mine->at[i].is_dir && s->mine->at[i].is_readable;
    long all = claimmarks_count();
    return all >= 0 && (unsigned long)all <= own + s->others ? 0 : runtimes_each_other(s->runtime_dir, check_runtime, s);
}

/* --- our own --- */

/* Under the lock: our own file and marks, and then whether somebody has what we want. */
static int take_locked(struct starter *s, int dir, struct claims *ret, struct pale_err *e)
{
    const struct claim *c = s->claim;
    char own[sizeof(PREFIX) + BOX_ID_LEN + 1];
    own_buf text = {0};
    snprintf(own, sizeof(own), PREFIX "%s", c->id);
    own_fd wide = open_wide(dir, s->is_wide);
    if (wide < 0 && (s->is_wide || errno != ENOENT))
        return err_os(e, "open the claims of boxes");
    int r = wide < 0 || weak_word("claims") ? 0 : check_folder(s, wide, own, "");
    if (r == 0 && s->is_wide && !weak_word("claims"))
        r = check_folder(s, dir, own, "");
    if (r == 0)
        r = claimmarks_set(s->mine, e);
    if (r == 0)
        r = check_others(s);
    buf_init(&text, CLAIM_BYTES_MAX);
    if (r < 0 || (r = claim_record_write(&text, c, s->mine, e)) < 0)
        return r;
    int at = s->is_wide ? wide : dir;
    own_fd places = -1, fd = openat(at, own, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !fd_write_full(fd, text.data, text.len))
        r = err_os(e, "write the claims of box %s", c->name);
    if (r == 0 && s->is_wide)
        r = claimplaces_listen(at, c->id, &places, e);
    if (r < 0) {
        if (fd >= 0)
            unlinkat(at, own, 0);
        return r;
    }
    ret->record_fd = take_fd(&fd);
    ret->places_fd = take_fd(&places);
    return 0;
}

/* A folder that holds everybody's, under another name. The policy refuses them by path. */
static int refuse_for_all(const struct starter *s)
{
    static const char *const places[] = {"/", "/home"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct stat st;
        const struct ancestor *at = stat(places[i], &st) < 0 ? NULL : ancestors_find(s->mine, ancestor_device(st.st_dev), st.st_ino);
        if (at && (at->roles & ROLE_SHARED))
            return err_set(s->e, PALE_DENIED, "%s cannot be given to a box: it is or has mounted in it the host's %s", path_of(s, at),
                           places[i]);
    }
    return 0;
}

static int add_data(const struct claim *c, struct ancestors *ret, struct pale_err *e)
{
    own_fd fd = open(c->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", c->data);
    return ancestors_add_folder(ret, fd, ANCESTORS_ALL, e);
}

static int find_folders(struct starter *s, struct pale_err *e)
{
    const struct claim *c = s->claim;
    int r = c->data ? add_data(c, s->mine, e) : 0;
    for (size_t i = 0; r == 0 && i < c->count; i++)
        r = ancestors_add_path(s->mine, c->paths[i], e);
    if (r == 0 && !weak_word("claims") && !weak_word("policy-check"))
        r = refuse_for_all(s);
    return r;
}

int claims_take(const char *runtime_dir, const struct claim *c, struct claims *ret, struct pale_err *e)
{
    own_ancestors mine = {0};
    struct starter s = {.claim = c, .mine = &mine, .is_wide = c->count > 0, .may_ask = true, .runtime_dir = runtime_dir, .e = e};
    int r = find_folders(&s, e);
    if (r < 0)
        return r;
    own_fd dir = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_fd lock = dir < 0 ? -1 : openat(dir, "claims.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_os(e, "lock the claims of boxes in %s", runtime_dir);
    r = take_locked(&s, dir, ret, e);
    if (r == 0) {
        mount_table_done(&mine.mounts);
        ret->folders = mine;
        mine = (struct ancestors){0};
    }
    return r;
}

static const char *const file_places[] = {"", WIDE "/"};

void claims_sweep(const char *runtime_dir, const char *id)
{
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < sizeof(file_places) / sizeof(file_places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s" PREFIX "%s", runtime_dir, file_places[i], id);
        unlink(path);
        if (i == 0)
            continue;
        snprintf(path, sizeof(path), "%s/" WIDE, runtime_dir);
        own_fd wide = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (wide >= 0)
            claimplaces_sweep(wide, id);
    }
}

bool claims_are_left(const char *runtime_dir, const char *id)
{
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < sizeof(file_places) / sizeof(file_places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s" PREFIX "%s", runtime_dir, file_places[i], id);
        if (access(path, F_OK) == 0 || errno != ENOENT)
            return true;
    }
    return false;
}

void claims_drop(const char *runtime_dir, const char *id, struct claims *held)
{
    if (held->record_fd < 0)
        return;
    claims_sweep(runtime_dir, id);
    own_close(&held->places_fd);
    ancestors_done(&held->folders);
    own_close(&held->record_fd);
}

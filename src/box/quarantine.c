/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the quarantine of a box as its user sees it. */
#include "box/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/quote.h"
#include "box/audit.h"
#include "box/life.h"
#include "box/removal.h"

static int open_quarantine(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    if (!path_join(path, sizeof(path), p->state, "quarantine"))
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", p->state);
    int fd = fd_open_real_dir(path);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, PALE_NOT_FOUND, "nothing was taken out of the project of %s", p->name);
    return fd < 0 ? err_os(e, "open %s", path) : fd;
}

static const char *kind_of(int fd, const char *name)
{
    char copy[32];
    struct stat st;
    snprintf(copy, sizeof(copy), "%s.bundle", name);
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fstatat(fd, copy, &st, AT_SYMLINK_NOFOLLOW) == 0 ? "copy" : NULL;
    return S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "folder" : S_ISLNK(st.st_mode) ? "symlink" : "other";
}

/* PALE_NOT_FOUND if there is none of that number. */
static int find(int fd, unsigned number, struct quarantined *ret, struct pale_err *e)
{
    char name[16], beside[24];
    struct stat st;
    snprintf(name, sizeof(name), "%u", number);
    snprintf(beside, sizeof(beside), "%u.path", number);
    own_fd note = fd_open_beneath(fd, beside, O_RDONLY | O_NONBLOCK, 0);
    *ret = (struct quarantined){.number = number, .kind = kind_of(fd, name)};
    if (note < 0 || !ret->kind)
        return err_set(e, PALE_NOT_FOUND, "there is no number %u in the quarantine", number);
    ssize_t n = fd_read_full(note, ret->path, sizeof(ret->path) - 1);
    if (n < 0 || fstat(note, &st) < 0)
        return err_os(e, "read %s", beside);
    ret->taken_unix = st.st_mtime;
    return 0;
}

int quarantine_each(const struct place *p, int (*fn)(void *arg, const struct quarantined *q), void *arg, struct pale_err *e)
{
    struct quarantined q;
    own_fd fd = open_quarantine(p, e);
    if (fd < 0)
        return fd == -PALE_NOT_FOUND ? 0 : fd;
    int r = 0;
    for (unsigned i = 1; r >= 0 && i <= GUARD_KEPT_MAX; i++)
        if ((r = find(fd, i, &q, e)) == 0)
            r = fn(arg, &q);
        else if (r == -PALE_NOT_FOUND)
            r = 0;
    return r;
}

void quarantine_json(const struct quarantined *q, struct json *j)
{
    char stamp[32];
    time_t t = (time_t)q->taken_unix;
    struct tm tm;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    json_begin_object(j, NULL);
    json_u64(j, "number", q->number);
    json_text(j, "kind", q->kind);
    json_text(j, "taken", stamp);
    json_text(j, "path", q->path);
    json_end_object(j);
}

static int forget(int fd, unsigned number, struct pale_err *e)
{
    static const char *const forms[] = {"%u", "%u.bundle", "%u.path"};
    char name[24];
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        snprintf(name, sizeof(name), forms[i], number);
        if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
            continue;
        int r = errno == EISDIR ? removal_tree(fd, name, e) : err_os(e, "remove %s", name);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The box's lock, which its keeper has as long as it runs. */
static int hold_still(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    if (!path_join(path, sizeof(path), p->state, "lock"))
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", p->state);
    own_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(e, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, PALE_BUSY, "the box runs, and what is given back would be taken again: `pale stop %s` first", p->name)
                   : err_os(e, "lock %s", path);
    return take_fd(&fd);
}

/* The folder it goes to. */
static int open_target(const struct place *p, const struct quarantined *q, const char *to, struct pale_err *e)
{
    own_policy policy = {0};
    char above[PATH_BYTES_MAX], shown[200];
    const char *slash = strrchr(q->path, '/');
    if (to) {
        int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? err_os(e, "open %s", to) : fd;
    }
    int r = life_policy(p, &policy, e);
    if (r < 0)
        return r;
    if (!policy.project_path)
        return err_set(e, PALE_NOT_FOUND, "the box has no project");
    own_fd project = fd_open_real_dir(policy.project_path);
    snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - q->path) : 1, slash ? q->path : ".");
    int fd = project < 0 ? -1 : fd_open_beneath(project, above, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? err_os(e, "open folder %s of the project; --to FOLDER gives it elsewhere",
                           quote_into(shown, sizeof(shown), above, strlen(above)))
                  : fd;
}

/* A bundle of it, as a file without a name. */
static int open_bundle(int fd, const struct quarantined *q, struct pale_err *e)
{
    struct bundle_count count;
    char name[24];
    snprintf(name, sizeof(name), strcmp(q->kind, "copy") == 0 ? "%u.bundle" : "%u", q->number);
    if (strcmp(q->kind, "copy") == 0) {
        int copy = fd_open_beneath(fd, name, O_RDONLY | O_NONBLOCK, 0);
        return copy < 0 ? err_os(e, "open %s", name) : copy;
    }
    own_fd out = openat(fd, "release", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return err_os(e, "write to the quarantine");
    unlinkat(fd, "release", 0);
    int r = bundle_send(out, fd, name, false, &count, e);
    if (r < 0)
        return r;
    return lseek(out, 0, SEEK_SET) < 0 ? err_os(e, "read the quarantine") : take_fd(&out);
}

/* Before the deed. The caller has the box's lock, so that nobody else writes its log. */
static int audit_release(const struct place *p, const struct quarantined *q, const char *to, const char *caller, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], shown[1024];
    struct audit a = {.fd = -1};
    if (!path_join(path, sizeof(path), p->state, "audit"))
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", p->state);
    int r = audit_open(&a, path, AUDIT_BOX, p->name, p->id, e);
    if (r < 0)
        return r;
    a.caller = caller;
    struct json *j = audit_begin(&a, "guard.release");
    json_u64(j, "number", q->number);
    json_text(j, "path", quote_into(shown, sizeof(shown), q->path, strlen(q->path)));
    if (to)
        json_text(j, "to", to);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

int quarantine_release(const struct place *p, unsigned number, const char *to, const char *caller, struct pale_err *e)
{
    struct quarantined q;
    struct bundle_count count;
    struct stat st;
    char shown[200];
    own_fd fd = open_quarantine(p, e);
    int r = fd < 0 ? fd : find(fd, number, &q, e);
    if (r < 0)
        return r;
    own_fd lock = hold_still(p, e);
    own_fd target = lock < 0 ? -1 : open_target(p, &q, to, e);
    if (lock < 0 || target < 0)
        return lock < 0 ? lock : target;
    const char *slash = strrchr(q.path, '/'), *name = slash ? slash + 1 : q.path;
    quote_into(shown, sizeof(shown), name, strlen(name));
    if (strcmp(q.kind, "symlink") == 0 || strcmp(q.kind, "other") == 0)
        return err_set(e, PALE_DENIED, "%s is a %s, which is not given back; make it yourself if you want it", shown,
                       q.kind[0] == 's' ? "symlink" : "pipe, socket or device");
    if (fstatat(target, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return err_set(e, PALE_EXISTS, "%s is there already; move it away, or give --to FOLDER", shown);
    own_fd bundle = open_bundle(fd, &q, e);
    if (bundle < 0 || (r = audit_release(p, &q, to, caller, e)) < 0)
        return bundle < 0 ? bundle : r;
    r = bundle_receive(bundle, target, name, true, &count, e);
    if (r == 0)
        return forget(fd, number, e);
    if (unlinkat(target, name, 0) < 0 && errno == EISDIR)
        (void)!fd_remove_tree(target, name, NULL);
    return err_prefix(e, "give %s back", shown);
}

int quarantine_drop(const struct place *p, unsigned number, struct pale_err *e)
{
    struct quarantined q;
    own_fd fd = open_quarantine(p, e);
    int r = fd < 0 ? fd : find(fd, number, &q, e);
    return r < 0 ? r : forget(fd, number, e);
}

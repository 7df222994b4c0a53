/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the fate of guarded names.
 *
 * How it works: a name that has a mount of its own in the box can be replaced by nobody but the host, whose rename takes the mount away:
 * it gets a new one. Any other guarded name is new. If no command has run in the box since all was last seen, the host made it, and it is
 * guarded like those that were there from the start. Otherwise it may be the box's, and is taken away. Doubt decides for taking: what is
 * taken can be had back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/quote.h"
#include "warden/warden.h"

bool judge_is_suspect(const struct warden *w)
{
    return __atomic_load_n(&w->shared->started, __ATOMIC_SEQ_CST) != w->settled;
}

static struct laid *find_laid(struct warden *w, int wd, const char *name)
{
    for (unsigned i = 0; i < w->laid_count; i++)
        if (w->laid[i].wd == wd && strcmp(w->laid[i].name, name) == 0)
            return &w->laid[i];
    return NULL;
}

bool judge_has_laid(const struct warden *w, int wd)
{
    for (unsigned i = 0; i < w->laid_count; i++)
        if (w->laid[i].wd == wd)
            return true;
    return false;
}

void judge_gone(struct warden *w, int wd, const char *name)
{
    struct laid *l = find_laid(w, wd, name);
    if (!l)
        return;
    free(l->name);
    *l = w->laid[--w->laid_count];
}

/* From now on the kernel also tells when something leaves that folder. */
static int note(struct warden *w, int wd, int dirfd, const char *name, struct pale_err *e)
{
    char path[32];
    if (w->laid_count == GUARD_MOUNTS_MAX)
        return err_set(e, PALE_LIMIT,
                       "the project has more than %u names that the host would obey; take some off the policy's guard list (guard: "
                       "[-NAME]), or mount the project ro",
                       GUARD_MOUNTS_MAX);
    if (w->laid_count == w->laid_cap) {
        unsigned cap = w->laid_cap ? 2 * w->laid_cap : 16;
        struct laid *more = realloc(w->laid, cap * sizeof(*more));
        if (!more)
            return err_nomem(e);
        w->laid = more;
        w->laid_cap = cap;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", dirfd);
    if (inotify_add_watch(w->inotify_fd, path, IN_DELETE | IN_MOVED_FROM | IN_MASK_ADD) < 0)
        return err_os(e, "watch the project");
    char *copy = strdup(name);
    if (!copy)
        return err_nomem(e);
    w->laid[w->laid_count++] = (struct laid){wd, copy};
    return 0;
}

bool judge_path(const struct warden *w, unsigned n, const char *name, char ret[PATH_BYTES_MAX])
{
    if (!folders_path(&w->folders, n, ret, PATH_BYTES_MAX))
        return false;
    size_t len = strlen(ret);
    int more = snprintf(ret + len, PATH_BYTES_MAX - len, "%s%s", len ? "/" : "", name);
    return more > 0 && (size_t)more < PATH_BYTES_MAX - len;
}

/* What cannot be guarded, because it is a symlink or goes away just now, is the host's own risk; the audit has it. */
static void tell_unheld(struct warden *w, const char *path)
{
    account_send(w, WARD_NOTE, WARD_NOTE_UNHELD, 0, path);
}

/* Made by the host while nothing ran in the box. */
static int adopt(struct warden *w, unsigned n, int dirfd, const char *name, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int wd = w->folders.item[n].wd;
    struct pale_err why = {0};
    if (!judge_path(w, n, name, path))
        return 0; /* it was moved; where it is now it will be seen */
    int r = note(w, wd, dirfd, name, &why);
    if (r == 0 && (r = mantle_lay(&w->mantle, path, &why)) < 0)
        judge_gone(w, wd, name);
    if (r == -PALE_GONE)
        return err_set(e, PALE_GONE, "%s", why.text);
    if (r < 0 && r != -PALE_NOT_FOUND)
        tell_unheld(w, path);
    return 0;
}

/* Another id of the box owns it, or the folder it is in: neither is ours to change until it is given to us. */
static int give(struct warden *w, char *path)
{
    int r = mantle_give(&w->mantle, path, NULL);
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = 0;
        int above = mantle_give(&w->mantle, path, NULL);
        *slash = '/';
        r = r < 0 ? above : r;
    }
    return r;
}

static int take(struct warden *w, unsigned n, int dirfd, const char *name, unsigned kind, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], shown[200];
    bool kept, is_known = judge_path(w, n, name, path);
    if (!is_known)
        snprintf(path, sizeof(path), "…/%s", name);
    account_taking(w, path, kind);
    int r = taking_take(&w->taking, dirfd, name, path, &kept, e);
    if (r == -PALE_DENIED && is_known && give(w, path) == 0)
        r = taking_take(&w->taking, dirfd, name, path, &kept, e);
    return r < 0 ? err_prefix(e, "take %s out of the project", quote_into(shown, sizeof(shown), path, strlen(path))) : 0;
}

/* The host has replaced a guarded name: the mount went with what it replaced. After events were lost it may have been taken away and
 * the box have put another there, so then only the mount itself shows that all is well. */
static int lay_again(struct warden *w, unsigned n, int dirfd, const char *name, unsigned kind, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct pale_err why = {0};
    if (!judge_path(w, n, name, path) || mantle_is_laid(&w->mantle, path))
        return 0;
    if (w->lost && judge_is_suspect(w)) {
        judge_gone(w, w->folders.item[n].wd, name);
        return take(w, n, dirfd, name, kind, e);
    }
    int r = mantle_lay(&w->mantle, path, &why);
    if (r == -PALE_GONE)
        return err_set(e, PALE_GONE, "%s", why.text);
    if (r == 0)
        account_send(w, WARD_NOTE, WARD_NOTE_RELAID, 0, path);
    else if (r != -PALE_NOT_FOUND)
        tell_unheld(w, path);
    return 0;
}

bool judge_open_up(struct warden *w, unsigned n, int dirfd)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    if (!w->stands || fstat(dirfd, &st) < 0)
        return false;
    if (st.st_uid != geteuid() && (!folders_path(&w->folders, n, path, sizeof(path)) || mantle_give(&w->mantle, path, NULL) < 0))
        return false;
    return fchmod(dirfd, (st.st_mode & 07777) | 0500) == 0;
}

int judge_name(struct warden *w, unsigned n, int dirfd, const char *name, struct pale_err *e)
{
    struct stat st;
    int wd = w->folders.item[n].wd;
    int r = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
    if (r < 0 && errno == EACCES && judge_open_up(w, n, dirfd))
        r = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
    if (r < 0)
        return errno == ENOENT ? 0 : err_os(e, "look at the project");
    bool is_laid = find_laid(w, wd, name) != NULL;
    if (!w->stands)
        return is_laid ? 0 : note(w, wd, dirfd, name, e);
    if (is_laid)
        return lay_again(w, n, dirfd, name, st.st_mode & S_IFMT, e);
    return judge_is_suspect(w) ? take(w, n, dirfd, name, st.st_mode & S_IFMT, e) : adopt(w, n, dirfd, name, e);
}

int judge_lay_noted(struct warden *w, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    for (unsigned i = 0; i < w->laid_count;) {
        unsigned n = folders_find(&w->folders, w->laid[i].wd);
        int r = n && judge_path(w, n, w->laid[i].name, path) ? mantle_lay(&w->mantle, path, e) : -PALE_NOT_FOUND;
        if (r == -PALE_NOT_FOUND) {
            judge_gone(w, w->laid[i].wd, w->laid[i].name); /* the host removed it meanwhile */
            continue;
        }
        if (r < 0)
            return r;
        i++;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the hidden folder of a landing, and the exchange of names. */
#include "tree/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/weak.h"
#include "tree/filecopy.h"
#include "tree/roster.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static int rename_with(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

static void tell_old(char *ret, size_t cap, const struct leaf *l)
{
    snprintf(ret, cap, "%llx-%llx.%lx", (unsigned long long)l->st.st_ino, (unsigned long long)l->st.st_mtim.tv_sec, l->st.st_mtim.tv_nsec);
}

/* The name says whose inode is waiting, and what it waits for. */
static void tell_both(char ret[STAGE_NAME_BYTES], const struct leaf *mine, const struct leaf *expect)
{
    char old[64] = "0";
    if (expect->kind != LEAF_NONE)
        tell_old(old, sizeof(old), expect);
    snprintf(ret, STAGE_NAME_BYTES, "%llx-%s", mine ? (unsigned long long)mine->st.st_ino : 0, old);
}

static int remove_one(int fd, const char *name, const struct leaf *l)
{
    return unlinkat(fd, name, l->kind == LEAF_FOLDER ? AT_REMOVEDIR : 0);
}

/* Was this left by a landing that could not end, and can it go? */
static bool is_spent(const char *name, const struct leaf *l)
{
    char own[32], old[64];
    const char *dash = strchr(name, '-');
    if (!dash)
        return true; /* made, and not yet promised */
    snprintf(own, sizeof(own), "%llx", (unsigned long long)l->st.st_ino);
    tell_old(old, sizeof(old), l);
    return ((size_t)(dash - name) == strlen(own) && memcmp(name, own, strlen(own)) == 0) || strcmp(dash + 1, old) == 0;
}

static int sweep(struct stage *s, struct pale_err *e)
{
    own_roster names = {0};
    size_t budget = TREE_NAMES_BYTES_MAX;
    own_fd fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? err_os(e, "open %s", STAGE_FOLDER) : roster_add_folder(&names, fd, &budget, e);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        const char *name = roster_name(&names, i);
        struct leaf l;
        r = leaf_look(s->fd, name, false, &l, e);
        if (r == 0 && l.kind != LEAF_NONE && (!is_spent(name, &l) || remove_one(s->fd, name, &l) < 0))
            s->kept++;
    }
    return r;
}

static int open_hidden(struct stage *s, struct pale_err *e)
{
    struct stat st;
    bool made = mkdirat(s->target_fd, STAGE_FOLDER, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_os(e, "make %s in the tree", STAGE_FOLDER);
    s->fd = fd_open_beneath(s->target_fd, STAGE_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (s->fd < 0 || fstat(s->fd, &st) < 0)
        return err_os(e, "open %s in the tree; if it is not a folder that an earlier landing left, remove it", STAGE_FOLDER);
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, PALE_DENIED, "%s in the tree is not a private folder of ours; remove it", STAGE_FOLDER);
    return made ? 0 : sweep(s, e);
}

int stage_open(struct stage *s, int target_fd, struct pale_err *e)
{
    *s = (struct stage){.target_fd = openat(target_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .fd = -1};
    if (s->target_fd < 0)
        return err_os(e, "open the tree");
    int r = 0;
    if (flock(s->target_fd, LOCK_EX | LOCK_NB) < 0)
        r = errno == EWOULDBLOCK ? err_set(e, PALE_BUSY, "another apply is at work in this tree; wait for it") : err_os(e, "lock the tree");
    if (r == 0)
        r = open_hidden(s, e);
    if (r < 0) {
        own_close(&s->fd);
        own_close(&s->target_fd);
    }
    return r;
}

void stage_close(struct stage *s)
{
    if (s->target_fd >= 0)
        (void)unlinkat(s->target_fd, STAGE_FOLDER, AT_REMOVEDIR);
    own_close(&s->fd);
    own_close(&s->target_fd);
}

static void name_next(struct stage *s, struct staged *ret)
{
    *ret = (struct staged){0};
    snprintf(ret->name, sizeof(ret->name), "t%u", s->made++);
}

static int not_made(struct staged *st, struct pale_err *e)
{
    st->name[0] = 0;
    return err_os(e, "make a new file in %s", STAGE_FOLDER);
}

int stage_file(struct stage *s, struct staged *ret, int *ret_fd, struct pale_err *e)
{
    name_next(s, ret);
    *ret_fd = openat(s->fd, ret->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ret_fd < 0 ? not_made(ret, e) : 0;
}

int stage_link(struct stage *s, const char *to, struct staged *ret, struct pale_err *e)
{
    name_next(s, ret);
    return symlinkat(to, s->fd, ret->name) < 0 ? not_made(ret, e) : 0;
}

int stage_folder(struct stage *s, mode_t mode, struct staged *ret, struct pale_err *e)
{
    name_next(s, ret);
    if (mkdirat(s->fd, ret->name, 0700) < 0)
        return not_made(ret, e);
    own_fd fd = fd_open_beneath(s->fd, ret->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd >= 0 && fchmod(fd, mode & 0777) == 0)
        return 0;
    int r = err_os(e, "make a new folder in %s", STAGE_FOLDER);
    (void)unlinkat(s->fd, ret->name, AT_REMOVEDIR);
    ret->name[0] = 0;
    return r;
}

void stage_drop(struct stage *s, struct staged *st)
{
    if (st->name[0] && unlinkat(s->fd, st->name, 0) < 0)
        (void)unlinkat(s->fd, st->name, AT_REMOVEDIR);
    st->name[0] = 0;
}

int stage_promise(struct stage *s, struct staged *st, const struct leaf *expect, struct pale_err *e)
{
    char name[STAGE_NAME_BYTES];
    int r = leaf_look(s->fd, st->name, false, &st->leaf, e);
    if (r < 0)
        return r;
    if (st->leaf.kind == LEAF_NONE)
        return err_set(e, PALE_BUSY, "somebody else works in %s", STAGE_FOLDER);
    tell_both(name, &st->leaf, expect);
    if (rename_with(s->fd, st->name, s->fd, name, RENAME_NOREPLACE) < 0)
        return err_os(e, "name what is to land");
    memcpy(st->name, name, sizeof(name));
    return 0;
}

static int refuse(const char *name, struct pale_err *e)
{
    char shown[300];
    return err_set(e, PALE_BUSY, "%s was changed while it was landed; it is left as it is",
                   quote_into(shown, sizeof(shown), name, strlen(name)));
}

/* errno of a rename, told. */
static int not_renamed(const char *name, struct pale_err *e)
{
    char shown[300];
    quote_into(shown, sizeof(shown), name, strlen(name));
    if (errno == EEXIST || errno == ENOENT)
        return refuse(name, e);
    if (errno == EXDEV)
        return err_set(e, PALE_UNSUPPORTED, "%s lies on another file system than the root of the tree; apply it by hand", shown);
    if (errno == EINVAL || errno == ENOSYS)
        return err_set(e, PALE_UNSUPPORTED, "%s: this file system cannot exchange two names safely; apply it by hand", shown);
    return err_os(e, "land %s", shown);
}

/* What came out is not what was compared: it goes back. If even that is raced it stays in the hidden folder, which then stays too. */
static int put_back(struct stage *s, const char *hidden, int dir_fd, const char *name, bool exchanged, struct pale_err *e)
{
    if (exchanged && rename_with(s->fd, hidden, dir_fd, name, RENAME_EXCHANGE) == 0) {
        if (unlinkat(s->fd, hidden, 0) < 0)
            (void)unlinkat(s->fd, hidden, AT_REMOVEDIR);
        return refuse(name, e);
    }
    if (rename_with(s->fd, hidden, dir_fd, name, RENAME_NOREPLACE) == 0)
        return refuse(name, e);
    s->kept++;
    return err_set(e, PALE_BUSY, "a file was changed again and again while it was landed; one version of it is in %s/%s", STAGE_FOLDER,
                   hidden);
}

/* Is what came out what was compared, and can it go? */
static bool finish(struct stage *s, const char *hidden, const struct leaf *expect)
{
    struct leaf out;
    return leaf_look(s->fd, hidden, false, &out, NULL) == 0 && leaf_is_unchanged(expect, &out) && remove_one(s->fd, hidden, &out) == 0;
}

/* For a test build: as a careless program does it. */
static int write_over(struct stage *s, struct staged *st, int dir_fd, const char *name, struct pale_err *e)
{
    struct filecopy_count n = {0};
    own_fd from = openat(s->fd, st->name, O_RDONLY | O_CLOEXEC);
    own_fd to = openat(dir_fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
    int r = from < 0 || to < 0 ? not_renamed(name, e) : filecopy_run(from, to, &n, e);
    stage_drop(s, st);
    return r;
}

int stage_put(struct stage *s, struct staged *st, int dir_fd, const char *name, const struct leaf *expect, struct pale_err *e)
{
    bool replaces = expect->kind != LEAF_NONE;
    struct leaf landed;
    int r = 0;
    if (replaces && weak_word("exchange"))
        return write_over(s, st, dir_fd, name, e);
    if (rename_with(s->fd, st->name, dir_fd, name, replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE) < 0) {
        r = not_renamed(name, e);
        stage_drop(s, st);
        return r;
    }
    if (replaces && !finish(s, st->name, expect))
        r = put_back(s, st->name, dir_fd, name, true, e);
    st->name[0] = 0;
    if (r == 0 && (leaf_look(dir_fd, name, false, &landed, e) < 0 || landed.st.st_ino != st->leaf.st.st_ino))
        r = refuse(name, e);
    return r;
}

int stage_take(struct stage *s, int dir_fd, const char *name, const struct leaf *expect, struct pale_err *e)
{
    char hidden[STAGE_NAME_BYTES];
    tell_both(hidden, NULL, expect);
    if (rename_with(dir_fd, name, s->fd, hidden, RENAME_NOREPLACE) < 0)
        return not_renamed(name, e);
    return finish(s, hidden, expect) ? 0 : put_back(s, hidden, dir_fd, name, false, e);
}

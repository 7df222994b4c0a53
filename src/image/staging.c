/* SPDX-License-Identifier: Apache-2.0 */
/* Owns staging folders. */
#include "image/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

#define SLOTS 256 /* builds at once, and what sweepers could not remove */

static bool sweep_one(int dir, const char *name, bool only_counts)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && (only_counts || fd_remove_tree(dir, name, NULL) == 0);
}

unsigned staging_sweep(const struct store *store, bool only_counts)
{
    unsigned swept = 0;
    int copy = openat(store->staging_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return 0;
    }
    for (const struct dirent *en; (en = readdir(d));)
        if (en->d_name[0] != '.')
            swept += sweep_one(store->staging_fd, en->d_name, only_counts);
    closedir(d);
    return swept;
}

/* 1: made and locked; 0: its name is taken, or a sweeper was faster. */
static int try_one(struct staging *s, struct pale_err *e)
{
    struct stat st;
    if (mkdirat(s->store->staging_fd, s->name, 0700) < 0)
        return errno == EEXIST ? 0 : err_os(e, "make a folder in %s", s->store->staging_dir);
    own_fd fd = openat(s->store->staging_fd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return err_os(e, "open %s/%s", s->store->staging_dir, s->name);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
        return 0;
    s->fd = take_fd(&fd);
    return 1;
}

int staging_open(struct staging *s, const struct store *store, struct pale_err *e)
{
    int r = 0;
    *s = (struct staging){.store = store, .fd = -1, .made_fd = -1};
    (void)staging_sweep(store, false);
    /* The lowest that is free: a box that was given the same folder before need not be proved in full again. */
    for (int i = 0; r == 0 && i < SLOTS; i++) {
        snprintf(s->name, sizeof(s->name), "%d", i);
        r = try_one(s, e);
    }
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(e, PALE_BUSY, "%s has no free place: too many builds at once, or leftovers that cannot be removed",
                       store->staging_dir);
    if (!path_join(s->path, sizeof(s->path), store->staging_dir, s->name))
        return err_set(e, PALE_BAD_INPUT, "%s: the path is too long", store->staging_dir);
    own_fd root = -1;
    r = staging_folder(s, "made", &s->made_fd, e);
    return r < 0 ? r : staging_folder(s, "made/root", &root, e);
}

int staging_root(const struct staging *s, char *ret, size_t cap, int *ret_fd, struct pale_err *e)
{
    if (!path_join(ret, cap, s->path, "made/root"))
        return err_set(e, PALE_BAD_INPUT, "%s: the path is too long", s->path);
    *ret_fd = fd_open_beneath(s->made_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return *ret_fd < 0 ? err_os(e, "open %s", ret) : 0;
}

void staging_close(struct staging *s)
{
    own_close(&s->made_fd);
    if (s->fd >= 0)
        (void)!fd_remove_tree(s->store->staging_fd, s->name, NULL);
    own_close(&s->fd);
}

int staging_folder(struct staging *s, const char *name, int *ret_fd, struct pale_err *e)
{
    if (mkdirat(s->fd, name, 0755) < 0 || fchmodat(s->fd, name, 0755, 0) < 0)
        return err_os(e, "make %s/%s", s->path, name);
    *ret_fd = fd_open_beneath(s->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return *ret_fd < 0 ? err_os(e, "open %s/%s", s->path, name) : 0;
}

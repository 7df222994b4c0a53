/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where the .pale folders of other projects would show in a box.
 *
 * How it works: a folder is known by its file system and its path there, whatever mounts it is reached by. A share shows one such place,
 * and one more for each mount below it. A .pale that lies beneath one of these is hidden at the same path beneath the share's target. */
#include "box/hidden.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/path.h"
#include "box/mounttable.h"
#include "box/projects.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x00001000u
#endif

struct search {
    const struct policy *policy;
    struct hidden *found;
    struct mount_table mounts;
};

/* A folder by its file system. */
struct location {
    const char *device;
    char path[PATH_BYTES_MAX];
};

static bool join(char ret[PATH_BYTES_MAX], const char *a, const char *b)
{
    size_t n = strcmp(a, "/") == 0 ? 0 : strlen(a), m = strcmp(b, "/") == 0 ? 0 : strlen(b);
    if (n + m >= PATH_BYTES_MAX)
        return false;
    memmove(ret, a, n);
    memcpy(ret + n, b, m);
    memcpy(ret + n + m, n + m ? "" : "/", n + m ? 1 : 2);
    return true;
}

/* What comes after base in path: "" or "/…". */
static const char *rest_of(const char *path, const char *base)
{
    return path + (strcmp(base, "/") == 0 ? 0 : strlen(base));
}

/* Where is the folder at this path? False if it is not there. */
static bool locate(struct search *s, const char *path, struct location *ret)
{
    struct statx st;
    own_fd fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
        return false;
    const struct mount_row *m = mount_table_find(&s->mounts, st.stx_mnt_id);
    if (!m || !path_is_within(path, m->point))
        return false;
    ret->device = m->device;
    return join(ret->path, m->root, rest_of(path, m->point));
}

static int add(struct hidden *h, const char *path, struct pale_err *e)
{
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->path[i], path) == 0)
            return 0;
    if (h->count == h->room) {
        char **more = realloc(h->path, (h->room + 16) * sizeof(*more));
        if (!more)
            return err_nomem(e);
        h->path = more;
        h->room += 16;
    }
    if (!(h->path[h->count] = strdup(path)))
        return err_nomem(e);
    h->count++;
    return 0;
}

/* One place that is shown at target: is pale beneath it? */
static int try_place(struct search *s, const struct location *shown, const char *target, const struct location *pale, struct pale_err *e)
{
    char at[PATH_BYTES_MAX];
    if (strcmp(shown->device, pale->device) != 0 || !path_is_within(pale->path, shown->path) || strcmp(pale->path, shown->path) == 0)
        return 0;
    return join(at, target, rest_of(pale->path, shown->path)) ? add(s->found, at, e) : 0;
}

/* One share, with all that is mounted below it. */
static int try_share(struct search *s, const char *host, const char *target, const struct location *pale, struct pale_err *e)
{
    struct location shown;
    int r = locate(s, host, &shown) ? try_place(s, &shown, target, pale, e) : 0;
    for (size_t i = 0; r == 0 && i < s->mounts.count; i++) {
        const struct mount_row *m = &s->mounts.row[i];
        char at[PATH_BYTES_MAX];
        if (!path_is_within(m->point, host) || strcmp(m->point, host) == 0 || strlen(m->root) >= sizeof(shown.path))
            continue;
        shown.device = m->device;
        memcpy(shown.path, m->root, strlen(m->root) + 1);
        if (join(at, target, rest_of(m->point, host)))
            r = try_place(s, &shown, at, pale, e);
    }
    return r;
}

static int try_pale(void *arg, const char *path, struct pale_err *e)
{
    struct search *s = arg;
    const struct policy *p = s->policy;
    struct location pale;
    int r = 0;
    if (!locate(s, path, &pale))
        return 0;
    if (p->project != PROJECT_NONE && p->project_path)
        r = try_share(s, p->project_path, p->project_path, &pale, e);
    for (size_t i = 0; r == 0 && i < p->read.count; i++)
        r = try_share(s, p->read.item[i], p->read.item[i], &pale, e);
    for (size_t i = 0; r == 0 && i < p->write.count; i++)
        r = try_share(s, p->write.item[i], p->write.item[i], &pale, e);
    for (size_t i = 0; r == 0 && i < p->volume_count; i++)
        r = try_share(s, p->volumes[i].host, p->volumes[i].target, &pale, e);
    return r;
}

int hidden_find(const struct policy *p, struct hidden *ret, struct pale_err *e)
{
    struct search s = {.policy = p, .found = ret};
    if (!(p->project != PROJECT_NONE && p->project_path) && !p->read.count && !p->write.count && !p->volume_count)
        return 0;
    int r = mount_table_read(&s.mounts, e);
    if (r == 0)
        r = projects_each(try_pale, &s, e);
    mount_table_done(&s.mounts);
    return r;
}

void hidden_done(struct hidden *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->path[i]);
    free(h->path);
    *h = (struct hidden){0};
}

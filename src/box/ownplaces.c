/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what a box is shown with the folders that are pale's own. */
#include "box/ownplaces.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/ancestors.h"
#include "box/place.h"
#include "box/projects.h"

/* What a box is shown, and whether it meets something of ours. */
struct meeting {
    const struct policy *policy;
    struct ancestors *shares; /* one for each */
    const char **paths;
    size_t count;
    struct mount_table mounts; /* read once for all sets */
};

/* The table goes from set to set. */
static void pass_mounts(struct mount_table *from, struct mount_table *to)
{
    *to = *from;
    *from = (struct mount_table){0};
    for (size_t i = 0; i < to->count; i++)
        to->row[i].is_resolved = false;
}

static int refuse(const char *path, const char *own, struct pale_err *e)
{
    return err_set(e, PALE_DENIED, "%s cannot be given to a box: it is, holds or lies in %s, which is pale's own; name a folder beside it",
                   path, own);
}

/* Opens the folder, or, if it is not there yet, the nearest above it that is. *ret_there: it is itself. */
static int open_nearest(const char *path, bool must_be_there, bool *ret_there)
{
    char at[PATH_BYTES_MAX];
    snprintf(at, sizeof(at), "%s", path);
    *ret_there = true;
    for (;;) {
        int fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *slash = strrchr(at, '/');
        if (fd >= 0 || must_be_there || (errno != ENOENT && errno != ENOTDIR) || !slash)
            return fd;
        *ret_there = false;
        slash[slash == at] = 0;
    }
}

/* Is it of an image that our starter builds? */
static bool is_in_the_making(const char *path)
{
    const char *staging = getenv(OWNPLACES_STAGING);
    return staging && path_is_normal(staging) && path_is_within(path, staging);
}

/* One folder of ours. What is not there yet must not be made by a box either: then only what holds its place counts. */
static int meet(struct meeting *m, const char *own, bool must_be_there, struct pale_err *e)
{
    own_ancestors set = {.is_light = true};
    size_t n = strlen(own);
    bool there, is_staging = n > 8 && strcmp(own + n - 8, "-staging") == 0;
    own_fd fd = open_nearest(own, must_be_there, &there);
    if (fd < 0 || (must_be_there && !there))
        return 0;
    pass_mounts(&m->mounts, &set.mounts);
    int r = ancestors_add_folder(&set, fd, ANCESTORS_ALL, e);
    pass_mounts(&set.mounts, &m->mounts);
    if (r < 0)
        return must_be_there ? 0 : err_prefix(e, "%s", own);
    if (!there)
        set.at[0].roles = ROLE_ABOVE;
    for (size_t i = 0; i < m->count; i++)
        if (ancestors_clash(&m->shares[i], &set) && !(is_staging && is_in_the_making(m->paths[i])))
            return refuse(m->paths[i], own, e);
    return 0;
}

static int meet_below(struct meeting *m, const char *home, const char *rel, bool must_be_there, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", home, rel);
    return home[0] != '/' || n < 0 || (size_t)n >= sizeof(path) ? 0 : meet(m, path, must_be_there, e);
}

static int meet_own(struct meeting *m, struct pale_err *e)
{
    static int (*const finds[])(char *ret, size_t cap, struct pale_err *e) = {place_state_dir, place_runtime_dir, place_data_dir,
                                                                              place_config_dir};
    char path[PATH_BYTES_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(finds) / sizeof(finds[0]); i++)
        if ((r = finds[i](path, sizeof(path) - 16, e)) == 0)
            r = meet(m, path, false, e);
    if (r == 0 && (r = place_data_dir(path, sizeof(path) - 16, e)) == 0) {
        memcpy(path + strlen(path), "-staging", 9); /* images in the making, box/imageref.c */
        r = meet(m, path, false, e);
    }
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (r == 0 && cache && cache[0] == '/')
        r = meet_below(m, cache, "pale", false, e);
    else if (r == 0 && home)
        r = meet_below(m, home, ".cache/pale", false, e);
    return r;
}

/* The system's own users mostly have a folder of the system for a home, or none. */
static bool is_home(const struct passwd *u)
{
    struct stat st;
    return u->pw_dir[0] == '/' && u->pw_dir[1] && stat(u->pw_dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == u->pw_uid;
}

/* Root could hand over what is another user's: at the places where it mostly is. */
static int meet_users(struct meeting *m, struct pale_err *e)
{
    static const char *const usual[] = {".local/state/pale", ".local/share/pale", ".local/share/pale-staging", ".config/pale",
                                        ".cache/pale"};
    int r = 0;
    if (geteuid() != 0)
        return 0;
    bool has_run = access("/run/user", F_OK) == 0;
    setpwent();
    for (const struct passwd *u; r == 0 && (u = getpwent());) {
        char run[64];
        snprintf(run, sizeof(run), "/run/user/%u", (unsigned)u->pw_uid);
        if (has_run)
            r = meet_below(m, run, "pale", true, e);
        if (!is_home(u))
            continue;
        for (size_t i = 0; r == 0 && i < sizeof(usual) / sizeof(usual[0]); i++)
            r = meet_below(m, u->pw_dir, usual[i], true, e);
    }
    endpwent();
    return r;
}

/* A share may hold a .pale, which is covered then, but not be in one. */
static int meet_pale(void *arg, const char *pale, struct pale_err *e)
{
    const struct meeting *m = arg;
    own_ancestors set = {.is_light = true};
    own_fd fd = open(pale, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int r = ancestors_add_folder(&set, fd, 0, e);
    for (size_t i = 0; r == 0 && i < m->count; i++)
        if (ancestors_clash(&m->shares[i], &set))
            r = refuse(m->paths[i], pale, e);
    return r;
}

/* One of a project that this state folder does not know. */
static int refuse_by_name(const struct meeting *m, struct pale_err *e)
{
    for (size_t i = 0; i < m->count; i++) {
        const char *at = strstr(m->paths[i], "/.pale");
        if (at && (at[6] == '/' || at[6] == 0))
            return refuse(m->paths[i], "a project's .pale", e);
    }
    return 0;
}

static int add_share(struct meeting *m, const char *path, struct pale_err *e)
{
    struct ancestors *set = &m->shares[m->count];
    m->paths[m->count++] = path;
    set->is_light = true;
    pass_mounts(&m->mounts, &set->mounts);
    int r = ancestors_add_path(set, path, e);
    pass_mounts(&set->mounts, &m->mounts);
    return r;
}

static int find_shares(struct meeting *m, struct pale_err *e)
{
    const struct policy *p = m->policy;
    int r = 0;
    if (p->project != PROJECT_NONE && p->project_path)
        r = add_share(m, p->project_path, e);
    for (size_t i = 0; r == 0 && i < p->read.count; i++)
        r = add_share(m, p->read.item[i], e);
    for (size_t i = 0; r == 0 && i < p->write.count; i++)
        r = add_share(m, p->write.item[i], e);
    for (size_t i = 0; r == 0 && i < p->volume_count; i++)
        r = add_share(m, p->volumes[i].host, e);
    return r;
}

static void meeting_done(struct meeting *m)
{
    for (size_t i = 0; i < m->count; i++)
        ancestors_done(&m->shares[i]);
    free(m->shares);
    free(m->paths);
    mount_table_done(&m->mounts);
}

int ownplaces_refuse(const struct policy *p, struct pale_err *e)
{
    CLEANUP(meeting_done) struct meeting m = {.policy = p};
    size_t most = 1 + p->read.count + p->write.count + p->volume_count;
    if (weak_word("own-places") || (most == 1 && !(p->project != PROJECT_NONE && p->project_path)))
        return 0;
    m.shares = calloc(most, sizeof(*m.shares));
    m.paths = calloc(most, sizeof(*m.paths));
    if (!m.shares || !m.paths)
        return err_nomem(e);
    int r = find_shares(&m, e);
    if (r == 0)
        r = refuse_by_name(&m, e);
    if (r == 0)
        r = meet_own(&m, e);
    if (r == 0)
        r = meet_users(&m, e);
    return r < 0 ? r : projects_each(meet_pale, &m, e);
}

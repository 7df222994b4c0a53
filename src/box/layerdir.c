/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the folders of layers. */
#include "box/layerdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/allot.h"
#include "box/copying.h"
#include "box/identity.h"
#include "box/removal.h"
#include "tier/wall.h"

#define OWN_DIR "layers"
#define SHARED_DIR ".layers"
#define MAKER "made-by" /* a symlink in the folder of a layer */

/* A folder of ours below dir, made if it is missing; no link, and nobody else's. */
static int enter(int dir, const char *name, mode_t mode, struct pale_err *e)
{
    struct stat st;
    bool made = mkdirat(dir, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_os(e, "make folder %s", name);
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ELOOP && errno != ENOTDIR)
        return err_os(e, "open %s", name);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return err_set(e, PALE_DENIED, "%s was there already and is no folder of yours; remove it first", name);
    if (made && fchmod(fd, mode) < 0)
        return err_os(e, "set the mode of folder %s", name);
    return take_fd(&fd);
}

/* Where layers can be: in the data folder of a user's box, in the state folder of a project's box. What several boxes share lies beside. */
enum home { HOME_DATA, HOME_STATE, HOME_COUNT };

static const char *home_path(const struct place *p, enum home h)
{
    return h == HOME_DATA ? p->data : p->state;
}

/* Nobody who may write in a project comes near what its boxes have written. */
static enum home home_for(const struct place *p)
{
    return p->project ? HOME_STATE : HOME_DATA;
}

/* The folder of a box's own layers, or of those that boxes beside it share. */
static bool layers_path(const struct place *p, enum home h, bool shared, char *ret, size_t cap)
{
    const char *home = home_path(p, h), *slash = strrchr(home, '/');
    int n = shared ? snprintf(ret, cap, "%.*s/" SHARED_DIR, (int)(slash - home), home) : snprintf(ret, cap, "%s/" OWN_DIR, home);
    return n > 0 && (size_t)n < cap;
}

int layerdir_path(const struct place *p, const char *id, char *ret, size_t cap, struct pale_err *e)
{
    for (int i = 0; i < 2 * HOME_COUNT; i++) {
        struct stat st;
        char dir[PATH_BYTES_MAX];
        if (!layers_path(p, i / 2, i % 2, dir, sizeof(dir)) || !path_join(ret, cap, dir, id))
            return err_set(e, PALE_LIMIT, "path too long: %s", p->data);
        if (lstat(ret, &st) == 0)
            return 0;
    }
    return err_set(e, PALE_NOT_FOUND,
                   "layer %s of box %s is gone from %s and from " SHARED_DIR " beside it; `pale restore` an older snapshot", id, p->name,
                   p->data);
}

static int open_layer(const struct place *p, const char *id, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int r = layerdir_path(p, id, path, sizeof(path), e);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_os(e, "open %s", path) : fd;
}

/* What is on top of a merged folder decides how it looks: as what it covers. */
static int part_mode(const struct policy *policy, enum wall_part part, mode_t *ret, struct pale_err *e)
{
    static const mode_t fixed[PART_COUNT] = {[PART_HOME] = 0700, [PART_TMP] = 01777, [PART_ROOT] = 0755};
    struct stat st;
    *ret = fixed[part];
    if (part != PART_PROJECT)
        return 0;
    if (stat(policy->project_path, &st) < 0)
        return err_os(e, "look at %s", policy->project_path);
    *ret = st.st_mode & 0777;
    return 0;
}

static int make_part(int layer, int work, const struct policy *policy, enum wall_part part, uint32_t project, struct pale_err *e)
{
    const char *name = wall_part_names[part];
    mode_t mode;
    int r = part_mode(policy, part, &mode, e);
    if (r < 0)
        return r;
    own_fd upper = enter(layer, name, mode, e);
    if (upper < 0)
        return upper;
    own_fd at = enter(work, name, 0700, e);
    if (at < 0)
        return at;
    return (r = allot_check(upper, project, e)) < 0 ? r : allot_check(at, project, e);
}

/* The folder of this box's own layers, made if it is missing. *ret_home: where it is, for errors. */
static int enter_own(const struct place *p, const char **ret_home, struct pale_err *e)
{
    const char *home = *ret_home = home_path(p, home_for(p));
    own_fd home_fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (home_fd < 0)
        return err_os(e, "open %s", home);
    int own = enter(home_fd, OWN_DIR, 0700, e);
    return own < 0 ? err_prefix(e, "%s", home) : own;
}

/* The same, with the project that holds the box's limit on disk. */
static int enter_allotted(const struct place *p, const struct policy *policy, const char **ret_home, uint32_t *ret_project,
                          struct pale_err *e)
{
    own_fd own = enter_own(p, ret_home, e);
    int r = own < 0 ? own : allot_give(own, policy, ret_project, e);
    return r < 0 ? r : take_fd(&own);
}

int layerdir_allot(const struct place *p, const struct policy *policy, struct pale_err *e)
{
    const char *home;
    uint32_t project;
    if (!allot_is_wanted(policy))
        return 0;
    own_fd own = enter_allotted(p, policy, &home, &project, e);
    return own < 0 ? own : 0;
}

static int make_parts(int layer, const struct policy *policy, uint32_t project, struct pale_err *e)
{
    own_fd work = enter(layer, WALL_WORK, 0700, e);
    int r = work < 0 ? work : 0;
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        if (wall_has_part(policy, true, i))
            r = make_part(layer, work, policy, i, project, e);
    return r;
}

/* Into the folder of a layer that this box has made; a layer that is there already keeps what it says. */
static int sign_layer(const struct place *p, int layer, struct pale_err *e)
{
    return symlinkat(p->id, layer, MAKER) < 0 && errno != EEXIST ? err_os(e, "write who made a layer of box %s", p->name) : 0;
}

int layerdir_check_maker(const struct place *p, const char *id, const char *maker, struct pale_err *e)
{
    char found[BOX_ID_LEN + 1] = "nobody";
    own_fd layer = open_layer(p, id, e);
    if (layer < 0)
        return layer;
    if ((identity_read(layer, MAKER, found) && strcmp(found, maker) == 0) || weak_word("layer-makers") || weak_word("layer-names"))
        return 0;
    return err_set(
        e, PALE_CORRUPT,
        "layer %s of box %s says that it was made by %s, and the list of layers that it was made by %s: it is not joined; put back "
        "the folder of the layer, or `pale restore` an older snapshot",
        id, p->name, found, maker);
}

int layerdir_make(const struct place *p, const char *id, const struct policy *policy, bool still, struct pale_err *e)
{
    const char *home;
    uint32_t project = 0;
    own_fd own = enter_allotted(p, policy, &home, &project, e);
    if (own < 0)
        return own;
    int r = project && still ? allot_ease(own, e) : 0;
    own_fd layer = r < 0 ? r : enter(own, id, 0700, e);
    r = layer < 0 ? layer : sign_layer(p, layer, e);
    if (r == 0)
        r = make_parts(layer, policy, project, e);
    if (r == 0 && project && still)
        r = allot_give(own, policy, &project, e);
    return r < 0 ? err_prefix(e, "%s/" OWN_DIR "/%s", home, id) : 0;
}

int layerdir_make_whole(const struct place *p, const char *id, struct pale_err *e)
{
    const char *home;
    /* Its limit is not touched: this is done behind the scenes, while the box runs or its wall is built. */
    own_fd own = enter_own(p, &home, e);
    if (own < 0)
        return own;
    /* What is linked into it may count to others, and the kernel links no file of one project into another. */
    own_fd layer = -1;
    if (allot_make_exempt(own, id, &layer, e) < 0)
        return err_prefix(e, "%s", home);
    for (int i = 0; i < PART_COUNT; i++)
        if (mkdirat(layer, wall_part_names[i], 0700) < 0)
            return err_os(e, "make a layer in %s", home);
    return sign_layer(p, layer, e);
}

int layerdir_open_part(const struct place *p, const char *id, enum wall_part part, int flags, int *ret, struct pale_err *e)
{
    own_fd layer = open_layer(p, id, e);
    if (layer < 0)
        return layer;
    *ret = openat(layer, wall_part_names[part], flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret < 0 && errno != ENOENT)
        return err_os(e, "open the %s of layer %s of box %s", wall_part_names[part], id, p->name);
    return 0;
}

static int move_parts(int layer, int from_fd, const bool take[PART_COUNT], const char *home, struct pale_err *e)
{
    for (int i = 0; i < PART_COUNT; i++)
        if (take[i] && renameat(from_fd, wall_part_names[i], layer, wall_part_names[i]) < 0)
            return errno == EXDEV ? err_set(e, PALE_UNSUPPORTED, "%s is on another file system than pale's data folder", home)
                                  : err_os(e, "give the box its %s", wall_part_names[i]);
    return 0;
}

/* Into the project of the box: the kernel moves nothing from one project to another. */
static int copy_parts(int layer, int from_fd, const bool take[PART_COUNT], struct pale_err *e)
{
    own_copying c;
    int r = 0;
    copying_init(&c);
    for (int i = 0; r == 0 && i < PART_COUNT; i++) {
        if (!take[i])
            continue;
        c.from[i] = openat(from_fd, wall_part_names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (c.from[i] < 0)
            return err_os(e, "open the %s that the box is given", wall_part_names[i]);
        c.to[i] = enter(layer, wall_part_names[i], 0700, e);
        r = c.to[i] < 0 ? c.to[i] : 0;
    }
    if (r == 0)
        r = copying_start(&c, e);
    if (r == 0)
        r = copying_run(&c, COPYING_SECOND, "raise limits.disk, or leave it out", e);
    return r == 0 && syncfs(layer) < 0 ? err_os(e, "write a layer to the disk") : r;
}

int layerdir_adopt(const struct place *p, const char *id, const struct policy *policy, int from_fd, const bool take[PART_COUNT],
                   struct pale_err *e)
{
    const char *home;
    uint32_t project = 0;
    own_fd own = enter_allotted(p, policy, &home, &project, e);
    if (own < 0)
        return own;
    own_fd layer = enter(own, id, 0700, e);
    if (layer < 0)
        return err_prefix(e, "%s", home);
    int r = sign_layer(p, layer, e);
    if (r == 0)
        r = project ? copy_parts(layer, from_fd, take, e) : move_parts(layer, from_fd, take, home, e);
    return r < 0 ? r : layerdir_keep(p, id, e);
}

int layerdir_remove(const struct place *p, const char *id, struct pale_err *e)
{
    for (int i = 0; i < HOME_COUNT; i++) {
        char path[PATH_BYTES_MAX];
        if (!layers_path(p, i, false, path, sizeof(path)))
            return err_set(e, PALE_LIMIT, "path too long: %s", p->data);
        own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = dir < 0 ? 0 : removal_tree(dir, id, e);
        if (r < 0)
            return r;
        (void)rmdir(path); /* stays if something is in it */
    }
    return 0;
}

/* What else is in a folder of layers is not ours to remove. */
static bool is_layer(const char *name)
{
    return identity_is_id(name);
}

int layerdir_has_others(const struct place *p, const char *id, bool *ret, struct pale_err *e)
{
    *ret = false;
    for (int i = 0; i < HOME_COUNT && !*ret; i++) {
        char path[PATH_BYTES_MAX];
        if (!layers_path(p, i, false, path, sizeof(path)))
            return err_set(e, PALE_LIMIT, "path too long: %s", p->data);
        DIR *d = opendir(path);
        /* The daemon reads lists and sees no data folders. Whoever may start or change a box sees them. */
        if (!d && errno != ENOENT && errno != EACCES)
            return err_os(e, "open %s", path);
        for (const struct dirent *en; d && !*ret && (en = readdir(d));)
            *ret = is_layer(en->d_name) && strcmp(en->d_name, id) != 0;
        if (d)
            closedir(d);
    }
    return 0;
}

int layerdir_has(const struct place *p, const char *id, enum wall_part part, bool *ret, struct pale_err *e)
{
    struct pale_err none = {0};
    own_fd layer = open_layer(p, id, &none);
    *ret = false;
    if (layer == -PALE_NOT_FOUND)
        return 0;
    if (layer < 0) {
        *e = none;
        return layer;
    }
    int r = fd_has_entries(layer, wall_part_names[part], e);
    *ret = r > 0;
    return r < 0 ? r : 0;
}

int layerdir_is_empty(const struct place *p, const char *id, bool *ret, struct pale_err *e)
{
    bool any = false;
    int r = 0;
    for (int i = 0; r == 0 && !any && i < PART_COUNT; i++)
        r = layerdir_has(p, id, i, &any, e);
    *ret = !any;
    return r;
}

int layerdir_settle(const struct place *p, const char *id, struct pale_err *e)
{
    own_fd layer = open_layer(p, id, e);
    return layer < 0 ? layer : removal_tree(layer, WALL_WORK, e);
}

int layerdir_open_kept(const struct place *p, const char *id, int ret[LAYERDIR_KEPT], struct pale_err *e)
{
    own_fd layer = open_layer(p, id, e);
    if (layer < 0)
        return layer;
    own_fd above = openat(layer, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return err_os(e, "open the folder around layer %s of box %s", id, p->name);
    ret[0] = take_fd(&layer);
    ret[1] = take_fd(&above);
    return 0;
}

int layerdir_keep(const struct place *p, const char *id, struct pale_err *e)
{
    int fds[LAYERDIR_KEPT] = {-1, -1};
    int r = layerdir_open_kept(p, id, fds, e);
    for (int i = 0; r == 0 && i < LAYERDIR_KEPT; i++)
        if (fsync(fds[i]) < 0)
            r = err_os(e, "write the folder of layer %s of box %s to the disk", id, p->name);
    for (int i = 0; i < LAYERDIR_KEPT; i++)
        own_close(&fds[i]);
    return r;
}

static int open_base(const struct place *p, enum home h, struct pale_err *e)
{
    char base[PATH_BYTES_MAX];
    const char *home = home_path(p, h);
    snprintf(base, sizeof(base), "%.*s", (int)(strrchr(home, '/') - home), home);
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_os(e, "open %s", base) : fd;
}

static int lock_pool(int fd, int how, struct pale_err *e)
{
    while (flock(fd, how) < 0)
        if (errno != EINTR)
            return err_os(e, "lock the layers that boxes share");
    return 0;
}

static int hold(const struct place *p, enum home h, int *ret_fd, struct pale_err *e)
{
    own_fd base = open_base(p, h, e);
    if (base < 0)
        return base;
    for (;;) {
        struct stat st;
        own_fd fd = enter(base, SHARED_DIR, 0700, e);
        int r = fd < 0 ? fd : lock_pool(fd, LOCK_SH, e);
        if (r < 0)
            return err_prefix(e, "the folder of box %s", p->name);
        if (fstat(fd, &st) == 0 && st.st_nlink > 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
        /* Whoever had it alone has removed it, because nothing was in it. */
    }
}

void layerdir_let_go(struct layerdir_pool *l)
{
    for (int i = 0; i < HOME_COUNT; i++)
        own_close(&l->fd[i]);
}

int layerdir_hold_shared(const struct place *p, struct layerdir_pool *ret, struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < HOME_COUNT; i++)
        r = hold(p, i, &ret->fd[i], e);
    return r;
}

/* A name that is taken there is another layer's: nothing is moved over it, and nothing is taken for it. */
static int move_shared(int from, int pool, const char *id)
{
    struct stat st;
    if (syscall(SYS_renameat2, from, id, pool, id, RENAME_NOREPLACE) == 0)
        return 0;
    /* Some file systems know no flags. */
    if (errno != EINVAL)
        return -1;
    if (fstatat(pool, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return errno = EEXIST, -1;
    return renameat(from, id, pool, id);
}

int layerdir_share(const struct place *p, const struct layerdir_pool *l, const char *id, struct pale_err *e)
{
    char own[PATH_BYTES_MAX];
    bool is_shared = false;
    for (int i = 0; i < HOME_COUNT; i++) {
        struct stat st;
        if (!layers_path(p, i, false, own, sizeof(own)))
            return err_set(e, PALE_LIMIT, "path too long: %s", p->data);
        own_fd from = open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (from >= 0 && move_shared(from, l->fd[i], id) == 0)
            return 0;
        if (from >= 0 && errno != ENOENT && !weak_word("layer-names"))
            return err_os(e, "share layer %s of box %s", id, p->name);
        is_shared = is_shared || fstatat(l->fd[i], id, &st, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return is_shared ? 0 : err_set(e, PALE_NOT_FOUND, "layer %s of box %s is gone", id, p->name);
}

int layerdir_keep_shared(const struct layerdir_pool *l, struct pale_err *e)
{
    for (int i = 0; i < HOME_COUNT; i++)
        if (fsync(l->fd[i]) < 0)
            return err_os(e, "write the folder of the layers that boxes share to the disk");
    return 0;
}

static int sweep_dir(int dir, layerdir_wanted *keep, const void *arg, struct layerdir_swept *ret, struct pale_err *e)
{
    int r = 0;
    DIR *d = fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 3));
    if (!d)
        return err_os(e, "list layers");
    for (const struct dirent *en; r == 0 && (en = readdir(d));)
        if (is_layer(en->d_name) && !keep(arg, en->d_name) && (ret->only_counts || (r = removal_tree(dir, en->d_name, e)) == 0))
            ret->count++;
    closedir(d);
    return r;
}

static int sweep_pool(const struct place *p, enum home h, const struct layerdir_users *u, struct layerdir_swept *ret, struct pale_err *e)
{
    struct pale_err why = {0};
    own_fd base = open_base(p, h, &why);
    if (base < 0 && why.os == ENOENT)
        return 0; /* the folder went with its last box */
    if (base < 0) {
        *e = why;
        return base;
    }
    own_fd pool = openat(base, SHARED_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pool < 0)
        return errno == ENOENT ? 0 : err_os(e, "open " SHARED_DIR " beside %s", home_path(p, h));
    int r = lock_pool(pool, LOCK_EX, e);
    if (r == 0)
        r = u->find(u->arg, e);
    if (r == 0)
        r = sweep_dir(pool, u->wanted, u->arg, ret, e);
    if (r == 0 && !ret->only_counts)
        (void)unlinkat(base, SHARED_DIR, AT_REMOVEDIR); /* stays if something is in it */
    return r;
}

int layerdir_sweep_shared(const struct place *p, const struct layerdir_users *u, struct layerdir_swept *ret, struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < HOME_COUNT; i++)
        r = sweep_pool(p, i, u, ret, e);
    return r;
}

int layerdir_sweep(const struct place *p, layerdir_wanted *keep, const void *arg, struct layerdir_swept *ret, struct pale_err *e)
{
    int r = 0;
    for (int i = 0; r == 0 && i < HOME_COUNT; i++) {
        char path[PATH_BYTES_MAX];
        if (!layers_path(p, i, false, path, sizeof(path)))
            return err_set(e, PALE_LIMIT, "path too long: %s", p->data);
        own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 && errno != ENOENT)
            return err_os(e, "open %s", path);
        if (dir >= 0)
            r = sweep_dir(dir, keep, arg, ret, e);
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the joining of layers.
 *
 * How it works: the kernel takes layers by name only, so they are attached below a small tmpfs (the bench) under names of a byte or
 * two, which keeps any number of them within the one page that mount options may fill. Some thirty fit into one text of the newer calls,
 * which make a mount that is attached nowhere; of more the overlay is mounted on the bench, and a detached copy of it kept. Then the bench
 * goes away with all that hangs on it: the overlay holds its layers by itself. Control attributes are in the
 * user.overlay namespace, as it must be without privilege; the kernel keeps the box from setting them. */
#include "tier/layered.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "confine/kernel.h"
#include "confine/mounts.h"
#include "confine/weaken.h"
#include "tier/lend.h"

#define OPTIONS_BYTES_MAX 4095 /* a page, as mount(2) reads it */
#define TEXT_BYTES_MAX 255     /* as fsconfig(2) reads one text */

#define BENCH_PLACE "root" /* a folder of every box's root that nobody needs before the box runs */

/* Names on the bench. A base is named by its part's digit. */
#define BENCH_OPEN "o"
#define BENCH_EMPTY "e"
#define BENCH_JOINED "j"

const char *const wall_part_names[PART_COUNT] = {"home", "tmp", "project", "root"};

void layered_init(struct layered *l)
{
    l->open_fd = -1;
    l->closed = 0;
    l->await = NULL;
    l->arg = NULL;
    for (int i = 0; i < PART_COUNT; i++)
        l->base_fd[i] = -1;
}

void layered_done(struct layered *l)
{
    own_close(&l->open_fd);
    for (size_t i = 0; i < l->closed; i++)
        own_close(&l->closed_fd[i]);
    for (int i = 0; i < PART_COUNT; i++)
        own_close(&l->base_fd[i]);
    l->closed = 0;
}

bool wall_has_part(const struct policy *policy, bool on_disk, enum wall_part part)
{
    switch (part) {
    case PART_HOME:
    case PART_TMP:
        return on_disk;
    case PART_PROJECT:
        return policy->project == PROJECT_REVIEW && policy->project_path;
    case PART_ROOT:
        return policy->image;
    case PART_COUNT:
        break;
    }
    return false;
}

static bool has_part(const struct wall_plan *plan, enum wall_part part)
{
    return wall_has_part(plan->policy, plan->open_layer, part);
}

int layered_open(const struct wall_plan *plan, int idmap_fd, struct layered *l, struct pale_err *e)
{
    if (plan->layer_count > WALL_LAYERS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d layers; `pale gc` joins them", WALL_LAYERS_MAX);
    if (plan->open_layer && (l->open_fd = lend_clone(plan, plan->open_layer, true, idmap_fd, NULL, e)) < 0)
        return l->open_fd;
    for (size_t i = 0; i < plan->layer_count; i++) {
        if ((l->closed_fd[i] = lend_clone(plan, plan->layers[i], false, idmap_fd, NULL, e)) < 0)
            return l->closed_fd[i];
        l->closed = i + 1;
    }
    const char *const bases[PART_COUNT] = {
        [PART_PROJECT] = has_part(plan, PART_PROJECT) ? plan->policy->project_path : NULL,
        [PART_ROOT] = plan->image_root,
    };
    for (int i = 0; i < PART_COUNT; i++)
        if (bases[i] && (l->base_fd[i] = lend_clone(plan, bases[i], false, idmap_fd, NULL, e)) < 0)
            return l->base_fd[i];
    return 0;
}

static int hang(int tree_fd, int bench, const char *name, struct pale_err *e)
{
    if (mkdirat(bench, name, 0700) < 0)
        return err_os(e, "make a place for a layer");
    return mounts_place(tree_fd, bench, name, e);
}

/* A closed layer by its number. */
static const char *closed_name(size_t i, char ret[4])
{
    snprintf(ret, 4, "%02x", (unsigned)i & 0xffu);
    return ret;
}

static const char *base_name(int part, char ret[4])
{
    snprintf(ret, 4, "%d", part);
    return ret;
}

/* The folders of an open layer in memory, with the look of what they cover: what is on top decides. */
static int make_in_memory(const struct wall_plan *plan, const struct layered *l, int memory_fd, struct pale_err *e)
{
    if (mkdirat(memory_fd, "layer", 0700) < 0 || mkdirat(memory_fd, "layer/" WALL_WORK, 0700) < 0)
        return err_os(e, "make a layer in memory");
    for (int i = 0; i < PART_COUNT; i++) {
        char upper[32], work[32];
        struct stat st;
        if (!has_part(plan, i))
            continue;
        snprintf(upper, sizeof(upper), "layer/%s", wall_part_names[i]);
        snprintf(work, sizeof(work), "layer/" WALL_WORK "/%s", wall_part_names[i]);
        if (fstat(l->base_fd[i], &st) < 0)
            return err_os(e, "look at what lies under a layer");
        if (mkdirat(memory_fd, upper, 0700) < 0 || mkdirat(memory_fd, work, 0700) < 0 ||
            fchmodat(memory_fd, upper, st.st_mode & 0777, 0) < 0 || fchownat(memory_fd, upper, plan->ids.uid, plan->ids.gid, 0) < 0)
            return err_os(e, "make a layer in memory");
    }
    return 0;
}

static int set_bench(const struct wall_plan *plan, struct layered *l, int bench, int memory_fd, struct pale_err *e)
{
    char name[4];
    int r = 0;
    if (mkdirat(bench, BENCH_EMPTY, 0755) < 0 || mkdirat(bench, BENCH_JOINED, 0700) < 0)
        return err_os(e, "make a place for layers");
    if (l->open_fd < 0) {
        if ((r = make_in_memory(plan, l, memory_fd, e)) == 0)
            l->open_fd = r = mounts_copy(memory_fd, "layer", e);
    }
    if (r >= 0)
        r = hang(l->open_fd, bench, BENCH_OPEN, e);
    for (size_t i = 0; r == 0 && i < l->closed; i++)
        r = hang(l->closed_fd[i], bench, closed_name(i, name), e);
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        if (l->base_fd[i] >= 0)
            r = hang(l->base_fd[i], bench, base_name(i, name), e);
    return r;
}

/* What one part is joined of, by names on the bench. */
struct joint {
    struct buf lower;
    char upper[24], work[32];
};

static void joint_done(struct joint *j)
{
    buf_done(&j->lower);
}

/* The layers of one part, highest first. A layer that was closed before the box had the part has none of it. */
static int find_layers(const struct wall_plan *plan, const struct layered *l, int bench, int part, struct joint *ret, struct pale_err *e)
{
    size_t from = part == PART_PROJECT ? plan->project_from : 0;
    const char *what = wall_part_names[part];
    char name[4], path[16];
    for (size_t i = l->closed; i-- > from;) {
        snprintf(path, sizeof(path), "%s/%s", closed_name(i, name), what);
        if (faccessat(bench, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            buf_addf(&ret->lower, "%s:", path);
        else if (errno != ENOENT)
            return err_os(e, "look at a layer of the box's %s", what); /* without it the box would be another */
    }
    buf_addf(&ret->lower, "%s", l->base_fd[part] >= 0 ? base_name(part, name) : BENCH_EMPTY);
    snprintf(ret->upper, sizeof(ret->upper), BENCH_OPEN "/%s", what);
    snprintf(ret->work, sizeof(ret->work), BENCH_OPEN "/" WALL_WORK "/%s", what);
    return ret->lower.failed ? err_set(e, PALE_LIMIT, "the kernel takes no more layers; `pale gc` joins them") : 0;
}

static bool set_text(int fs, const char *key, const char *value)
{
    return k_fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

/* Detached from the beginning. Returns the mount, or -1 with errno. */
static int join_few(struct joint *j)
{
    own_fd fs = k_fsopen("overlay");
    if (fs < 0 || !set_text(fs, "source", "pale") || !set_text(fs, "lowerdir", buf_text(&j->lower)) ||
        !set_text(fs, "upperdir", j->upper) || !set_text(fs, "workdir", j->work) || !set_text(fs, "index", "off") ||
        k_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 || k_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return k_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* On the bench: an older call takes more text in one piece. Returns 0, or -1 with errno. */
static int join_many(struct joint *j)
{
    char options[OPTIONS_BYTES_MAX + 1];
    int n = snprintf(options, sizeof(options), "userxattr,index=off,lowerdir=%s,upperdir=%s,workdir=%s", buf_text(&j->lower), j->upper,
                     j->work);
    if (n < 0 || (size_t)n >= sizeof(options)) {
        errno = E2BIG;
        return -1;
    }
    return mount("pale", BENCH_JOINED, "overlay", MS_NOSUID | MS_NODEV, options);
}

/* Whoever mounts an overlay is who works in its layers ever after: the box's user, to whom all of it belongs on the disk, but with
 * every capability over it. */
static int as_owner(const struct wall_plan *plan, int (*fn)(struct joint *j), struct joint *j)
{
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
        return -1;
    setfsgid(plan->ids.gid);
    setfsuid(plan->ids.uid);
    int r = fn(j), os = errno;
    setfsuid(geteuid());
    setfsgid(getegid());
    /* A change of ids hides our /proc entries, which the maps of an inner namespace are written through. */
    if (prctl(PR_SET_SECUREBITS, 0) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0) {
        if (r > 0)
            close(r);
        return -1;
    }
    errno = os;
    return r;
}

/* For a test build: what the overlay would keep from the box, by itself. */
static int show_raw(const struct layered *l, int bench, int part, struct pale_err *e)
{
    const char *what = wall_part_names[part];
    char name[4], path[16];
    for (size_t i = l->closed; i-- > 0;) {
        snprintf(path, sizeof(path), "%s/%s", closed_name(i, name), what);
        if (faccessat(bench, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return mounts_copy(bench, path, e);
    }
    snprintf(path, sizeof(path), BENCH_OPEN "/%s", what);
    return mounts_copy(bench, l->base_fd[part] >= 0 ? base_name(part, name) : path, e);
}

/* Needs: the bench is the working folder. */
static int join_part(const struct wall_plan *plan, const struct layered *l, int bench, int part, struct pale_err *e)
{
    CLEANUP(joint_done) struct joint j = {0};
    if (is_weak(plan->weaken, WEAKEN_LAYERS))
        return show_raw(l, bench, part, e);
    buf_init(&j.lower, OPTIONS_BYTES_MAX);
    int r = find_layers(plan, l, bench, part, &j, e);
    if (r < 0)
        return r;
    bool few = j.lower.len <= TEXT_BYTES_MAX;
    if ((r = as_owner(plan, few ? join_few : join_many, &j)) < 0)
        return err_os(e, "join the layers of the box's %s (does the file system of its folder take overlays? `pale doctor` says)",
                      wall_part_names[part]);
    own_fd tree = few ? r : mounts_copy(bench, BENCH_JOINED, e);
    if (tree < 0)
        return tree;
    /* The kernel closes its working folder to everyone, and the user could not remove the box's folder. */
    char work[40];
    snprintf(work, sizeof(work), "%s/work", j.work);
    if (fchmodat(bench, work, 0700, 0) < 0 && errno == ENOENT)
        return err_set(e, PALE_NO_SPACE, "the kernel found no room for the working folder of the box's %s: the disk is full",
                       wall_part_names[part]);
    if (fchmodat(bench, work, 0700, 0) < 0)
        return err_os(e, "open the working folder of the box's %s", wall_part_names[part]);
    if (!few && umount2(BENCH_JOINED, MNT_DETACH) < 0)
        return err_os(e, "take joined layers off");
    return take_fd(&tree);
}

int layered_join(const struct wall_plan *plan, struct layered *l, int root, int memory_fd, int ret[PART_COUNT], struct pale_err *e)
{
    bool any = false;
    for (int i = 0; i < PART_COUNT; i++) {
        ret[i] = -1;
        any = any || has_part(plan, i);
    }
    if (!any)
        return l->await(l->arg, e);
    own_fd bench = mounts_tmpfs(1 << 20, 0, 0700, e);
    int r = bench < 0 ? bench : mounts_place(bench, root, BENCH_PLACE, e);
    if (r < 0)
        return r;
    if ((r = set_bench(plan, l, bench, memory_fd, e)) == 0 && fchdir(bench) < 0)
        r = err_os(e, "enter the place for layers");
    if (r == 0)
        r = l->await(l->arg, e);
    for (int i = 0; r >= 0 && i < PART_COUNT; i++)
        if (has_part(plan, i))
            r = ret[i] = join_part(plan, l, bench, i, e);
    /* By its own descriptor: what hangs on it goes with it. */
    if (r >= 0 && (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
        r = err_os(e, "take the place for layers off");
    return r < 0 ? r : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the root of a box.
 *
 * How it works: every host folder is opened and cloned (detached, restricted) while the host is still in view. The root is a
 * small tmpfs, filled through its descriptor, attached over a host folder of this namespace alone, completed, and entered with
 * pivot_root; the host's tree is let go in the same step. A second tmpfs (or the box's folder on disk) holds all that the box
 * may write, and is attached when everything else is done, with the user's folders, which may lie in it. Targets are created only in our
 * own tmpfs, never inside a host folder. */
#include "tier/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "confine/kernel.h"
#include "confine/mounts.h"
#include "confine/weaken.h"
#include "tier/etc.h"
#include "tier/imageroot.h"
#include "tier/lend.h"

/* The base folders of the host, shown read-only. On a merged /usr most of them are symlinks, which we copy as such. */
static const char *const base_dirs[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
/* A scratch of 4 GiB has room for a quarter of a million files. */
#define SCRATCH_BYTES_PER_FILE 16384u
#define SCRATCH_FILES_LEAST 1024u
#define BASE_DIRS (sizeof(base_dirs) / sizeof(base_dirs[0]))

static const char *const dev_nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};

/* The box's writable places in memory: name in the scratch, where it appears, mode, and whether the box's user owns it. */
static const struct scratch_dir {
    const char *name, *target;
    mode_t mode;
    bool own;
    enum wall_part part; /* of the layers, if the box has it in some; PART_COUNT: never */
    bool in_image;       /* part of the root where that is an image */
} scratch_dirs[] = {
    {"home", "home/agent", 0700, true, PART_HOME, false},  {"tmp", "tmp", 01777, false, PART_TMP, false},
    {"vartmp", "var/tmp", 01777, false, PART_COUNT, true}, {"run", "run", 0755, true, PART_COUNT, false},
    {"shm", "dev/shm", 01777, false, PART_COUNT, false},
};

/* What a box has no business reading in /proc. Missing ones are skipped: not every kernel has every file. Folders first. */
static const char *const masked_dirs[] = {"acpi", "asound", "bus", "driver", "fs", "irq", "scsi"};
static const char *const masked_files[] = {
    "config.gz",     "consoles",   "crypto",      "devices",     "diskstats", "interrupts",    "iomem",    "ioports",
    "kallsyms",      "kcore",      "key-users",   "keys",        "kmsg",      "latency_stats", "locks",    "misc",
    "modules",       "mtrr",       "partitions",  "sched_debug", "schedstat", "slabinfo",      "softirqs", "swaps",
    "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo", "vmcore",
};

void root_sources_init(struct root_sources *s)
{
    *s = (struct root_sources){.init_fd = -1, .etc_fd = -1};
    layered_init(&s->layers);
}

void root_sources_done(struct root_sources *s)
{
    own_close(&s->init_fd);
    own_close(&s->etc_fd);
    layered_done(&s->layers);
    for (size_t i = 0; i < s->count; i++)
        own_close(&s->mounts[i].fd);
    s->count = 0;
}

static int add_mount(const struct wall_plan *plan, struct root_sources *s, int idmap_fd, const char *host, const char *target,
                     bool writable, struct pale_err *e)
{
    if (s->count == ROOT_USER_MOUNTS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d paths and volumes", ROOT_USER_MOUNTS_MAX);
    struct root_mount m = {.target = target, .writable = writable};
    m.fd = lend_clone(plan, host, writable, idmap_fd, &m.is_dir, e);
    if (m.fd < 0)
        return m.fd;
    s->mounts[s->count++] = m;
    return 0;
}

static int add_project(const struct wall_plan *plan, struct root_sources *s, int idmap_fd, struct pale_err *e)
{
    const struct policy *p = plan->policy;
    if (!wall_has_part(p, plan->open_layer, PART_PROJECT))
        return add_mount(plan, s, idmap_fd, p->project_path, p->project_path, p->project == PROJECT_LIVE, e);
    s->mounts[s->count++] = (struct root_mount){.fd = -1, .target = p->project_path, .writable = true, .is_dir = true};
    return 0;
}

static int add_policy_mounts(const struct wall_plan *plan, struct root_sources *s, int idmap_fd, struct pale_err *e)
{
    const struct policy *p = plan->policy;
    int r = 0;
    if (p->project != PROJECT_NONE && p->project_path)
        r = add_project(plan, s, idmap_fd, e);
    for (size_t i = 0; r == 0 && i < p->read.count; i++)
        r = add_mount(plan, s, idmap_fd, p->read.item[i], p->read.item[i], false, e);
    for (size_t i = 0; r == 0 && i < p->write.count; i++)
        r = add_mount(plan, s, idmap_fd, p->write.item[i], p->write.item[i], true, e);
    for (size_t i = 0; r == 0 && i < p->volume_count; i++)
        r = add_mount(plan, s, idmap_fd, p->volumes[i].host, p->volumes[i].target, p->volumes[i].writable, e);
    return r;
}

static int by_depth(const void *a, const void *b)
{
    const struct root_mount *x = a, *y = b;
    size_t lx = strlen(x->target), ly = strlen(y->target);
    return lx < ly ? -1 : lx > ly;
}

int root_open_private_sources(const struct wall_plan *plan, struct root_sources *s, struct pale_err *e)
{
    const struct policy *p = plan->policy;
    if (s->private_done)
        return 0;
    bool any = plan->open_layer || plan->image_root || p->project != PROJECT_NONE || p->read.count || p->write.count || p->volume_count;
    own_fd idmap = plan->ids.idmap_mounts && any ? ids_mount_userns(&plan->ids, e) : -1;
    if (plan->ids.idmap_mounts && any && idmap < 0)
        return idmap;
    own_fd init = open(plan->init_path, O_PATH | O_CLOEXEC);
    if (init < 0)
        return err_os(e, "open %s", plan->init_path);
    if ((s->init_fd = mounts_clone_fd(init, MOUNTS_RO, e)) < 0)
        return s->init_fd;
    if ((s->etc_fd = mounts_clone(AT_FDCWD, plan->etc_dir, MOUNTS_RECURSIVE, false, e)) < 0)
        return s->etc_fd;
    int r = layered_open(plan, idmap, &s->layers, e);
    if (r == 0)
        r = add_policy_mounts(plan, s, idmap, e);
    qsort(s->mounts, s->count, sizeof(s->mounts[0]), by_depth);
    s->private_done = r == 0;
    return r;
}

struct opening {
    const struct wall_plan *plan;
    struct root_sources *sources;
};

static int open_now(void *arg, struct pale_err *e)
{
    const struct opening *o = arg;
    return root_open_private_sources(o->plan, o->sources, e);
}

int root_open_sources(const struct wall_plan *plan, struct root_sources *s, struct pale_err *e)
{
    /* The box's root has no power over what belongs to a group that is not mapped; the user has. */
    bool as_user = plan->ids.kind == IDS_RANGE && plan->ids.by_helper;
    struct opening o = {plan, s};
    int r = as_user ? root_as_user(plan, open_now, &o, e) : open_now(&o, e);
    if (r == 0 && plan->ids.kind == IDS_RANGE && setgroups(0, NULL) < 0)
        r = err_os(e, "give up the host's groups");
    return r;
}

int root_make_dirs(int root, const char *rel, size_t len, struct pale_err *e)
{
    own_fd at = fcntl(root, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; i < len;) {
        char name[256];
        size_t n = strcspn(rel + i, "/");
        if (n > len - i)
            n = len - i;
        if (n >= sizeof(name))
            return err_set(e, PALE_BAD_INPUT, "/%s: a name in it is too long", rel);
        memcpy(name, rel + i, n);
        name[n] = 0;
        if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            return err_os(e, "make %s of /%s in the box", name, rel);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (weak_word("nofollow") ? 0 : O_NOFOLLOW));
        if (next < 0)
            return err_os(e, "enter %s of /%s in the box", name, rel);
        close(at);
        at = next;
        i += n + 1;
    }
    return take_fd(&at);
}

static int make_file(int root, const char *rel, struct pale_err *e)
{
    return mknodat(root, rel, S_IFREG | 0444, 0) < 0 ? err_os(e, "make /%s in the box's root", rel) : 0;
}

/* Does another mount of the list hold this target? Then the place must exist there; we create nothing in host folders. */
static bool is_inside_another(const struct root_sources *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (path_is_within(s->mounts[i].target, s->mounts[k].target))
            return true;
    return false;
}

bool root_in_scratch(const char *target)
{
    for (size_t i = 0; i < sizeof(scratch_dirs) / sizeof(scratch_dirs[0]); i++)
        if (path_is_within(target + 1, scratch_dirs[i].target))
            return true;
    return false;
}

int root_make_mount_points(int root, const struct root_sources *s, bool in_scratch, struct pale_err *e)
{
    for (size_t i = 0; i < s->count; i++) {
        const char *rel = s->mounts[i].target + 1;
        if (is_inside_another(s, i) || root_in_scratch(s->mounts[i].target) != in_scratch)
            continue;
        const char *slash = strrchr(rel, '/');
        bool is_dir = s->mounts[i].is_dir;
        own_fd dir = root_make_dirs(root, rel, is_dir ? strlen(rel) : slash ? (size_t)(slash - rel) : 0, e);
        if (dir < 0)
            return dir;
        if (!is_dir && mknodat(dir, slash ? slash + 1 : rel, S_IFREG | 0444, 0) < 0 && errno != EEXIST)
            return err_os(e, "make /%s in the box", rel);
    }
    return 0;
}

int root_as_user(const struct wall_plan *plan, int (*fn)(void *arg, struct pale_err *e), void *arg, struct pale_err *e)
{
    setfsgid(plan->ids.gid);
    setfsuid(plan->ids.uid);
    int r = fn(arg, e);
    setfsuid(geteuid());
    setfsgid(getegid());
    /* A change of ids hides our /proc entries, which the inner namespace's maps are written through. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0 && r == 0)
        r = err_os(e, "prctl");
    return r;
}

struct points {
    int root;
    const struct root_sources *sources;
};

static int make_scratch_points(void *arg, struct pale_err *e)
{
    const struct points *p = arg;
    return root_make_mount_points(p->root, p->sources, true, e);
}

int root_make_skeleton(int root, struct pale_err *e)
{
    static const char *const dirs[] = {"etc", "root", "proc", "dev",     "dev/pts", "dev/shm",
                                       "tmp", "run",  "var",  "var/tmp", "home",    "home/agent"};
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},       {"/proc/self/fd/0", "dev/stdin"},
                                           {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
                                           {"pts/ptmx", "dev/ptmx"},          {"/run", "var/run"}};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (mkdirat(root, dirs[i], 0755) < 0)
            return err_os(e, "make /%s in the box's root", dirs[i]);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if (symlinkat(links[i][0], root, links[i][1]) < 0)
            return err_os(e, "link /%s in the box's root", links[i][1]);
    for (size_t i = 0; i < sizeof(dev_nodes) / sizeof(dev_nodes[0]); i++) {
        char rel[32];
        snprintf(rel, sizeof(rel), "dev/%s", dev_nodes[i]);
        int r = make_file(root, rel, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* /usr and its like: copies of the host's symlinks, or detached copies of its folders in fds. */
static int open_base(int root, int fds[BASE_DIRS], struct pale_err *e)
{
    for (size_t i = 0; i < BASE_DIRS; i++) {
        char host[16], to[256];
        snprintf(host, sizeof(host), "/%s", base_dirs[i]);
        ssize_t n = readlink(host, to, sizeof(to) - 1);
        if (n > 0) {
            to[n] = 0;
            if (symlinkat(to, root, base_dirs[i]) < 0)
                return err_os(e, "link %s in the box's root", host);
        } else if (errno == EINVAL) {
            if (mkdirat(root, base_dirs[i], 0755) < 0)
                return err_os(e, "make %s in the box's root", host);
            if ((fds[i] = mounts_copy(AT_FDCWD, host, e)) < 0)
                return fds[i];
        } else if (errno != ENOENT) {
            return err_os(e, "look at %s", host);
        }
    }
    return 0;
}

int root_own_file(const struct wall_plan *plan, int root, size_t which, struct pale_err *e)
{
    char text[4096], source[64];
    snprintf(source, sizeof(source), "proc/%s", etc_own_names[which]);
    etc_own_text(plan, which, text, sizeof(text));
    own_fd fd = openat(root, source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0 || !fd_write_full(fd, text, strlen(text)))
        return err_os(e, "write /etc/%s of the box", etc_own_names[which]);
    return mounts_copy(root, source, e);
}

static int make_etc(const struct wall_plan *plan, int root, int shared, struct pale_err *e)
{
    int r = mounts_place(shared, root, "etc", e);
    for (size_t i = 0; r == 0 && i < etc_own_files(plan); i++) {
        char target[64];
        snprintf(target, sizeof(target), "etc/%s", etc_own_names[i]);
        own_fd tree = root_own_file(plan, root, i, e);
        r = tree < 0 ? tree : mounts_place(tree, root, target, e);
    }
    return r;
}

int root_make_dev(const struct wall_plan *plan, int root, struct pale_err *e)
{
    for (size_t i = 0; i < sizeof(dev_nodes) / sizeof(dev_nodes[0]); i++) {
        char host[32];
        snprintf(host, sizeof(host), "/dev/%s", dev_nodes[i]);
        own_fd node = mounts_clone(AT_FDCWD, host, MOUNTS_DEV | MOUNTS_NOEXEC, false, e);
        int r = node < 0 ? node : mounts_place(node, root, host + 1, e);
        if (r < 0)
            return r;
    }
    /* One for every command at once: the host has one pool for all boxes. */
    own_fd pts = mounts_devpts(plan->ids.uid, plan->ids.gid, is_weak(plan->weaken, WEAKEN_LIMITS) ? 0 : JOBS_MAX, e);
    return pts < 0 ? pts : mounts_place(pts, root, "dev/pts", e);
}

/* Attaches one writable place: its layers if the box has some, else a folder of the memory scratch. */
static int attach_scratch(const struct wall_plan *plan, int root, int scratch, const struct scratch_dir *d, const int joined[PART_COUNT],
                          struct pale_err *e)
{
    if (d->part != PART_COUNT && joined[d->part] >= 0)
        return mounts_place(joined[d->part], root, d->target, e);
    /* Not the box's business whose root this is: mode first, then owner. */
    if (mkdirat(scratch, d->name, 0700) < 0 || fchmodat(scratch, d->name, d->mode, 0) < 0)
        return err_os(e, "make /%s", d->target);
    if (d->own && plan->ids.kind == IDS_RANGE && fchownat(scratch, d->name, plan->ids.uid, plan->ids.gid, 0) < 0)
        return err_os(e, "give /%s to the box's user", d->target);
    own_fd tree = mounts_copy(scratch, d->name, e);
    return tree < 0 ? tree : mounts_place(tree, root, d->target, e);
}

/* Empty files cost the kernel memory too, which nobody counts where there is no cgroup. */
int root_make_scratch(const struct wall_plan *plan, int root, struct pale_err *e)
{
    bool limited = plan->scratch_bytes && !is_weak(plan->weaken, WEAKEN_LIMITS);
    uint64_t files = limited ? plan->scratch_bytes / SCRATCH_BYTES_PER_FILE + SCRATCH_FILES_LEAST : 0;
    own_fd scratch = mounts_tmpfs(limited ? plan->scratch_bytes : 0, files, 0755, e);
    if (scratch < 0)
        return scratch;
    /* Folders of a mount can be cloned only once it is attached; its own place is hidden again by /proc below. */
    int r = mounts_place(scratch, root, "proc", e);
    return r < 0 ? r : take_fd(&scratch);
}

int root_attach_scratch(const struct wall_plan *plan, int root, int scratch, const int joined[PART_COUNT], struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(scratch_dirs) / sizeof(scratch_dirs[0]); i++)
        if (!plan->image_root || !scratch_dirs[i].in_image)
            r = attach_scratch(plan, root, scratch, &scratch_dirs[i], joined, e);
    return r;
}

struct covered {
    int root, fd, os;
    const char *target;
};

static int open_covered(void *arg, struct pale_err *e)
{
    struct covered *c = arg;
    (void)e;
    c->fd = fd_open_beneath(c->root, c->target + 1, O_PATH | O_DIRECTORY, 0);
    c->os = errno;
    return 0;
}

/* Covers a folder of the box by an empty one, if it is there. In a folder of a group that has no id in the box nothing is open to us, only
 * to the user; where that one may not look the box may not either. */
static int cover(const struct wall_plan *plan, int root, const char *target, struct pale_err *e)
{
    struct covered c = {.root = root, .fd = -1, .target = target};
    int r = open_covered(&c, e);
    if (c.fd < 0 && c.os == EACCES)
        r = root_as_user(plan, open_covered, &c, e);
    own_fd there = c.fd;
    if (r < 0 || there < 0)
        return r < 0 || c.os == ENOENT || c.os == ENOTDIR || c.os == ELOOP || c.os == EACCES ? r
                                                                                             : (errno = c.os, err_os(e, "hide %s", target));
    own_fd empty = mounts_copy(root, plan->image_root ? &IMAGEROOT_EMPTY[1] : "etc/skel", e);
    return empty < 0 ? empty : mounts_attach_at(empty, there, target + 1, e);
}

/* A .pale tells of other boxes: no box sees any of it, neither that of a folder it is shown nor those of projects further down. */
static int cover_projects(const struct wall_plan *plan, const struct root_sources *s, int root, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->count; i++) {
        if (!s->mounts[i].is_dir || !path_join(path, sizeof(path), s->mounts[i].target, ".pale"))
            continue;
        bool is_own = plan->policy->project_path && strcmp(s->mounts[i].target, plan->policy->project_path) == 0;
        if (is_own || !weak_word("projects"))
            r = cover(plan, root, path, e);
    }
    for (size_t i = 0; r == 0 && i < plan->hidden_count && !weak_word("projects"); i++)
        r = cover(plan, root, plan->hidden[i], e);
    return r;
}

int root_attach_user_mounts(const struct wall_plan *plan, int root, struct root_sources *s, int project_fd, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->count; i++) {
        r = mounts_attach(s->mounts[i].fd >= 0 ? s->mounts[i].fd : project_fd, root, s->mounts[i].target + 1, e);
        if (r < 0 && is_inside_another(s, i))
            err_prefix(e, "%s lies inside another mounted folder and must exist there", s->mounts[i].target);
    }
    if (r < 0 || is_weak(plan->weaken, WEAKEN_GUARD))
        return r;
    return cover_projects(plan, s, root, e);
}

int root_hang(int root, struct pale_err *e)
{
    static const char *const places[] = {"tmp", "run", "mnt", "usr"};
    own_fd host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = -PALE_OS;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if ((r = mounts_attach(root, host, places[i], e)) == 0)
            return 0;
    return r;
}

static int attach_base(int root, int fds[BASE_DIRS], struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < BASE_DIRS; i++)
        if (fds[i] >= 0)
            r = mounts_place(fds[i], root, base_dirs[i], e);
    return r;
}

/* Builds in the order that the comment at the top tells. The host's folders and the root itself are sealed in one step, before
 * anything writable is attached. */
static int build_in(const struct wall_plan *plan, struct root_sources *s, int root, int fds[BASE_DIRS], int *ret_scratch,
                    struct pale_err *e)
{
    int r;
    if ((r = root_make_skeleton(root, e)) < 0 || (r = open_base(root, fds, e)) < 0 || (r = root_make_mount_points(root, s, false, e)) < 0)
        return r;
    if ((r = root_hang(root, e)) < 0 || (r = attach_base(root, fds, e)) < 0 || (r = make_etc(plan, root, s->etc_fd, e)) < 0)
        return r;
    if ((r = mounts_restrict(root, MOUNTS_RECURSIVE | (is_weak(plan->weaken, WEAKEN_READONLY) ? 0 : MOUNTS_RO), e)) < 0)
        return r;
    if ((r = root_make_dev(plan, root, e)) < 0)
        return r;
    *ret_scratch = root_make_scratch(plan, root, e);
    return *ret_scratch < 0 ? *ret_scratch : 0;
}

static int build_on_host(const struct wall_plan *plan, struct root_sources *s, struct root *ret, struct pale_err *e)
{
    int fds[BASE_DIRS];
    for (size_t i = 0; i < BASE_DIRS; i++)
        fds[i] = -1;
    int r = build_in(plan, s, ret->root_fd, fds, &ret->scratch_fd, e);
    for (size_t i = 0; i < BASE_DIRS; i++)
        own_close(&fds[i]);
    return r;
}

static void close_joined(int joined[PART_COUNT])
{
    for (size_t i = 0; i < PART_COUNT; i++)
        own_close(&joined[i]);
}

static int build_on_image(const struct wall_plan *plan, struct root_sources *s, struct root *ret, struct pale_err *e)
{
    int joined[PART_COUNT] = {[PART_HOME] = -1, [PART_TMP] = -1, [PART_PROJECT] = -1, [PART_ROOT] = -1};
    int r = imageroot_build(plan, s, ret->root_fd, joined, e);
    if (r == 0) {
        own_close(&ret->root_fd);
        ret->root_fd = take_fd(&joined[PART_ROOT]);
    }
    close_joined(joined);
    return r;
}

void root_init(struct root *r)
{
    *r = (struct root){.root_fd = -1, .proc_fd = -1, .scratch_fd = -1};
}

void root_done(struct root *r)
{
    own_close(&r->root_fd);
    own_close(&r->proc_fd);
    own_close(&r->scratch_fd);
}

int root_build(const struct wall_plan *plan, struct root_sources *s, struct root *ret, struct pale_err *e)
{
    if ((ret->root_fd = mounts_tmpfs(8 << 20, 4096, 0755, e)) < 0)
        return ret->root_fd;
    int r = plan->image_root ? build_on_image(plan, s, ret, e) : build_on_host(plan, s, ret, e);
    if (r < 0)
        return r;
    /* A procfs can be made only by who owns the pid namespace: a twin without one is shown the host's. */
    ret->proc_fd = is_weak(plan->weaken, WEAKEN_PIDNS) ? mounts_copy(AT_FDCWD, "/proc", e) : mounts_proc(e);
    if (ret->proc_fd < 0)
        return ret->proc_fd;
    return is_weak(plan->weaken, WEAKEN_ROOT) ? 0 : mounts_enter_root(ret->root_fd, e);
}

int root_open_up(const struct wall_plan *plan, struct root_sources *s, struct root *r, struct pale_err *e)
{
    int joined[PART_COUNT] = {[PART_HOME] = -1, [PART_TMP] = -1, [PART_PROJECT] = -1, [PART_ROOT] = -1};
    if (plan->image_root)
        return 0; /* all of it is one layer, and could not have been entered without */
    int res = layered_join(plan, &s->layers, r->root_fd, r->scratch_fd, joined, e);
    if (res == 0)
        res = root_attach_scratch(plan, r->root_fd, r->scratch_fd, joined, e);
    if (res == 0 && s->count > 0)
        res = root_as_user(plan, make_scratch_points, &(struct points){r->root_fd, s}, e);
    if (res == 0)
        res = root_attach_user_mounts(plan, r->root_fd, s, joined[PART_PROJECT], e);
    close_joined(joined);
    return res;
}

/* Covers each name that others than its owner may use with a copy of cover; the owner is the host's root, which nobody in a box
 * ever is. */
static int mask(int proc, const char *cover, const char *const *names, size_t count, struct pale_err *e)
{
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        if (fstatat(proc, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return err_os(e, "look at /proc/%s", names[i]);
        }
        if (!(st.st_mode & (S_IROTH | S_IWOTH | S_IXOTH)))
            continue;
        own_fd tree = mounts_copy(AT_FDCWD, cover, e);
        int r = tree < 0 ? tree : mounts_place(tree, proc, names[i], e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int mask_proc(const struct wall_plan *plan, int proc, struct pale_err *e)
{
    own_fd sys = mounts_clone(proc, "sys", MOUNTS_RO | MOUNTS_NOEXEC, false, e);
    if (sys < 0)
        return sys;
    int r = mounts_place(sys, proc, "sys", e);
    /* The host has one, and would be known by it; the box's own id is as good. Only the host's own /etc may be without. */
    bool own_etc = !is_weak(plan->weaken, WEAKEN_ROOT);
    own_fd id = r < 0 || !own_etc ? -1 : mounts_copy(AT_FDCWD, "/etc/machine-id", e);
    if (r == 0 && own_etc)
        r = id < 0 ? id : mounts_place(id, proc, "sys/kernel/random/boot_id", e);
    if (r == 0)
        r = mask(proc, plan->image_root ? IMAGEROOT_EMPTY : "/etc/skel", masked_dirs, sizeof(masked_dirs) / sizeof(masked_dirs[0]), e);
    if (r < 0)
        return r;
    /* The first cover is a node that cannot be opened (no devices on that mount); the others are copies of it. */
    own_fd null = mounts_clone(AT_FDCWD, "/dev/null", MOUNTS_RO | MOUNTS_NOEXEC, false, e);
    if (null < 0)
        return null;
    if ((r = mounts_place(null, proc, "cmdline", e)) < 0)
        return r;
    return mask(proc, "/proc/cmdline", masked_files, sizeof(masked_files) / sizeof(masked_files[0]), e);
}

int root_finish(const struct wall_plan *plan, const struct root *root, struct pale_err *e)
{
    int r = mounts_place(root->proc_fd, AT_FDCWD, "/proc", e);
    return r == 0 && !is_weak(plan->weaken, WEAKEN_PROC_MASK) ? mask_proc(plan, root->proc_fd, e) : r;
}

size_t root_writable(const struct wall_plan *plan, const char *ret[ROOT_WRITABLE_MAX])
{
    static const char *const fixed[] = {"/home/agent", "/tmp", "/var/tmp", "/run", "/dev", "/proc"};
    const struct policy *p = plan->policy;
    size_t n = 0;
    if (plan->image_root)
        ret[n++] = "/"; /* what is not the box's to write is mounted so */
    for (size_t i = 0; !plan->image_root && i < sizeof(fixed) / sizeof(fixed[0]); i++)
        ret[n++] = fixed[i];
    if ((p->project == PROJECT_LIVE || p->project == PROJECT_REVIEW) && p->project_path)
        ret[n++] = p->project_path;
    for (size_t i = 0; i < p->write.count && n < ROOT_WRITABLE_MAX; i++)
        ret[n++] = p->write.item[i];
    for (size_t i = 0; i < p->volume_count && n < ROOT_WRITABLE_MAX; i++)
        if (p->volumes[i].writable)
            ret[n++] = p->volumes[i].target;
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the id maps. */
#include "confine/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/caps.h"
#include "confine/kernel.h"

#define CAP_SETUID_NR 7
#define RANGE_IDS 65536u
/* Root's boxes: above every usual subordinate range, below the sign bit. */
#define ROOT_RANGE_BASE 0x40000000u
#define ROOT_RANGE_SLOTS 0x3fffu
#define BOX_UID 1000u

/* Finds a free run of `need` ids above 0 in this namespace's own map; *ret is its start as seen here. */
static bool available(const char *map_file, uint32_t from, uint32_t need)
{
    own_fd fd = open(map_file, O_RDONLY | O_CLOEXEC);
    own_buf b = {0};
    buf_init(&b, 65536);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return false;
    const char *line = buf_text(&b);
    while (*line) {
        uint64_t v[3] = {0};
        for (int i = 0; i < 3; i++) {
            char word[24] = "";
            line += strspn(line, " \t");
            size_t n = strcspn(line, " \t\n");
            if (n == 0 || n >= sizeof(word))
                return false;
            memcpy(word, line, n);
            line += n;
            if (!number_u64(word, UINT32_MAX, &v[i]))
                return false;
        }
        if (from >= v[0] && (uint64_t)from + need <= v[0] + v[2])
            return true;
        line += strspn(line, " \t\n");
    }
    return false;
}

/* The first range that /etc/subuid (or subgid) gives to the user, by name or number. */
static bool subordinate(const char *file, const char *name, uint32_t id, uint32_t *ret_start, uint32_t *ret_count)
{
    own_fd fd = open(file, O_RDONLY | O_CLOEXEC);
    own_buf b = {0};
    char number[16];
    snprintf(number, sizeof(number), "%u", id);
    buf_init(&b, 1 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return false;
    for (const char *line = buf_text(&b); *line; line += strspn(line, "\n")) {
        size_t len = strcspn(line, "\n"), owner = strcspn(line, ":\n");
        const char *rest = line + owner;
        bool mine = (owner == strlen(number) && memcmp(line, number, owner) == 0) ||
                    (name && owner == strlen(name) && memcmp(line, name, owner) == 0);
        char start[24] = "", count[24] = "";
        uint64_t s = 0, c = 0;
        if (mine && *rest == ':') {
            size_t n = strcspn(rest + 1, ":\n");
            const char *more = rest + 1 + n;
            if (n < sizeof(start) && *more == ':') {
                size_t m = strcspn(more + 1, ":\n");
                memcpy(start, rest + 1, n);
                if (m < sizeof(count))
                    memcpy(count, more + 1, m);
            }
        }
        if (number_u64(start, UINT32_MAX, &s) && number_u64(count, UINT32_MAX, &c) && c >= RANGE_IDS) {
            *ret_start = (uint32_t)s;
            *ret_count = (uint32_t)c;
            return true;
        }
        line += len;
    }
    return false;
}

/* The name of a user id in /etc/passwd, by hand: a static program has no name service. */
static bool user_name(uint32_t uid, char *ret, size_t cap)
{
    own_fd fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    own_buf b = {0};
    char want[16];
    snprintf(want, sizeof(want), "%u", uid);
    buf_init(&b, 4 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return false;
    for (const char *line = buf_text(&b); *line; line += strspn(line, "\n")) {
        size_t len = strcspn(line, "\n"), n = strcspn(line, ":\n");
        const char *pw = line + n;
        const char *id = *pw == ':' ? pw + 1 + strcspn(pw + 1, ":\n") : pw;
        if (*id == ':' && strcspn(id + 1, ":\n") == strlen(want) && memcmp(id + 1, want, strlen(want)) == 0 && n < cap) {
            memcpy(ret, line, n);
            ret[n] = 0;
            return true;
        }
        line += len;
    }
    return false;
}

static void one_id(struct ids *ids, uint32_t uid, uint32_t gid, uint32_t out_uid, uint32_t out_gid)
{
    ids->kind = IDS_ONE;
    ids->uid = uid;
    ids->gid = gid;
    ids->uids[0] = (struct ids_extent){uid, out_uid, 1};
    ids->gids[0] = (struct ids_extent){gid, out_gid, 1};
    ids->uid_extents = ids->gid_extents = 1;
}

/* 0..id-1 and id+1.. from the range, id itself from the user. */
static int split_map(struct ids_extent ext[3], uint32_t id, uint32_t start)
{
    int n = 0;
    if (id > 0)
        ext[n++] = (struct ids_extent){0, start, id};
    ext[n++] = (struct ids_extent){id, id, 1};
    ext[n++] = (struct ids_extent){id + 1, start + id, RANGE_IDS - id - 1};
    return n;
}

static int choose_root(struct ids *ids, uint64_t seed, enum ids_want want, struct pale_err *e)
{
    ids->host_uid = 0;
    ids->host_gid = 0;
    ids->idmap_mounts = true;
    uint32_t base = weak_word("ids") ? 0 : ROOT_RANGE_BASE + (uint32_t)(seed % ROOT_RANGE_SLOTS) * RANGE_IDS;
    if (available("/proc/self/uid_map", base, RANGE_IDS) && available("/proc/self/gid_map", base, RANGE_IDS)) {
        if (want == IDS_WANT_ROOT) {
            one_id(ids, 0, 0, base, base);
            return 0;
        }
        ids->kind = IDS_RANGE;
        ids->uid = ids->gid = BOX_UID;
        ids->uids[0] = ids->gids[0] = (struct ids_extent){0, base, RANGE_IDS};
        ids->uid_extents = ids->gid_extents = 1;
        return 0;
    }
    /* Root in a user namespace of someone else: one id that is not root, if there is one. */
    for (uint32_t id = BOX_UID; id >= 1; id = id == BOX_UID ? 65533 : id == 65533 ? 1 : 0)
        if (available("/proc/self/uid_map", id, 1) && available("/proc/self/gid_map", id, 1)) {
            one_id(ids, want == IDS_WANT_ROOT ? 0 : BOX_UID, want == IDS_WANT_ROOT ? 0 : BOX_UID, id, id);
            return 0;
        }
    return err_set(e, PALE_UNSUPPORTED, "this user namespace maps no id but root's; run pale as an ordinary user, or map more ids");
}

/* Root of a user namespace that maps one id: that id is somebody's, and 0 only in name. */
static bool is_nominal_root(void)
{
    own_fd fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0)
        return false;
    const char *p = text + strspn(text, " ");
    if (p[0] != '0' || p[1] != ' ')
        return false;
    p += 1 + strspn(p + 1, " ");
    return !(p[0] == '0' && p[1] == ' ');
}

int ids_choose(struct ids *ret, uint64_t seed, enum ids_want want, struct pale_err *e)
{
    struct ids ids = {0};
    uint32_t uid = geteuid(), gid = getegid();
    int r = 0;
    if (uid == 0 && !is_nominal_root()) {
        r = choose_root(&ids, seed, want, e);
    } else {
        char name[256];
        uint32_t ustart, ucount, gstart, gcount;
        const char *who = user_name(uid, name, sizeof(name)) ? name : NULL;
        ids.host_uid = uid;
        ids.host_gid = gid;
        bool root = want == IDS_WANT_ROOT;
        uint32_t box_uid = root ? 0 : uid ? uid : BOX_UID, box_gid = root ? 0 : gid ? gid : BOX_UID;
        one_id(&ids, box_uid, box_gid, uid, gid);
        if (want == IDS_WANT_MANY && uid > 0 && gid > 0 && uid < RANGE_IDS - 1 && gid < RANGE_IDS - 1 &&
            access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0 &&
            subordinate("/etc/subuid", who, uid, &ustart, &ucount) && subordinate("/etc/subgid", who, uid, &gstart, &gcount)) {
            ids.kind = IDS_RANGE;
            ids.by_helper = true;
            ids.uid_extents = split_map(ids.uids, uid, ustart);
            ids.gid_extents = split_map(ids.gids, gid, gstart);
        }
    }
    if (r == 0)
        *ret = ids;
    return r;
}

static void map_text(struct buf *b, const struct ids_extent *ext, int count, bool identity)
{
    for (int i = 0; i < count; i++)
        buf_addf(b, "%u %u %u\n", ext[i].inside, identity ? ext[i].inside : ext[i].outside, ext[i].count);
}

static int write_proc(int proc_fd, pid_t pid, const char *name, const char *text, struct pale_err *e)
{
    char path[64];
    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    own_fd fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC);
    size_t n = strlen(text);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n)
        return err_os(e, "write %s of a new user namespace", name);
    return 0;
}

static int write_both(const struct ids *ids, int proc_fd, pid_t pid, bool identity, struct pale_err *e)
{
    own_buf b = {0};
    buf_init(&b, 512);
    map_text(&b, ids->uids, ids->uid_extents, identity);
    int r = write_proc(proc_fd, pid, "uid_map", buf_text(&b), e);
    if (r < 0)
        return r;
    /* A group map may be written without privilege only once setgroups is gone. */
    if (ids->kind == IDS_ONE && (r = write_proc(proc_fd, pid, "setgroups", "deny", e)) < 0)
        return r;
    buf_clear(&b);
    map_text(&b, ids->gids, ids->gid_extents, identity);
    return write_proc(proc_fd, pid, "gid_map", buf_text(&b), e);
}

/* Starts newuidmap or newgidmap; both may run at once. */
static pid_t start_helper(const char *program, pid_t pid, const struct ids_extent *ext, int count)
{
    char words[10][16];
    char *argv[12] = {(char *)program};
    int n = 0;
    snprintf(words[n], sizeof(words[0]), "%d", (int)pid);
    argv[1] = words[n++];
    for (int i = 0; i < count; i++) {
        const uint32_t v[3] = {ext[i].inside, ext[i].outside, ext[i].count};
        for (int k = 0; k < 3; k++) {
            snprintf(words[n], sizeof(words[0]), "%u", v[k]);
            argv[n + 1] = words[n];
            n++;
        }
    }
    pid_t child = vfork();
    if (child == 0) {
        char *none[] = {NULL};
        execve(program, argv, none);
        _exit(127);
    }
    return child;
}

int ids_write_maps(const struct ids *ids, pid_t pid, struct pale_err *e)
{
    if (!ids->by_helper) {
        own_fd proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return proc < 0 ? err_os(e, "open /proc") : write_both(ids, proc, pid, false, e);
    }
    pid_t kids[2] = {start_helper("/usr/bin/newuidmap", pid, ids->uids, ids->uid_extents),
                     start_helper("/usr/bin/newgidmap", pid, ids->gids, ids->gid_extents)};
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        int status = -1;
        while (kids[i] > 0 && waitpid(kids[i], &status, 0) < 0 && errno == EINTR)
            ;
        ok = ok && kids[i] > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    if (!ok)
        return err_set(e, PALE_UNSUPPORTED,
                       "newuidmap or newgidmap refused the ranges of /etc/subuid and /etc/subgid; `pale doctor` says more");
    return 0;
}

int ids_write_inner(const struct ids *ids, int proc_fd, pid_t pid, struct pale_err *e)
{
    return write_both(ids, proc_fd, pid, true, e);
}

/* Ends with its parent, should that be killed meanwhile, and keeps nothing of its open. It shares the parent's memory, errno too. */
static int hold_userns(void *parent)
{
    if (k_raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || k_raw(SYS_getppid, 0, 0, 0, 0, 0) != *(pid_t *)parent ||
        k_raw(SYS_close_range, 0, ~0u, 0, 0, 0) < 0)
        return 1;
    for (;;)
        k_raw(SYS_ppoll, 0, 0, 0, 0, 0);
}

/* A user namespace with these maps, held by a child for as long as it takes to open it. Returns a descriptor. */
static int make_userns(const struct ids *maps, struct pale_err *e)
{
    static _Alignas(16) char stack[4096];
    pid_t own = getpid(), pid = clone(hold_userns, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD, &own);
    if (pid < 0)
        return err_os(e, "make a user namespace");
    int r = ids_write_maps(maps, pid, e);
    if (r == 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
        r = open(path, O_RDONLY | O_CLOEXEC);
        if (r < 0)
            r = err_os(e, "open a user namespace");
    }
    /* One that cannot be told to end will end with us, and is not waited for. */
    bool told = kill(pid, SIGKILL) == 0;
    while (told && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

int ids_mount_userns(const struct ids *ids, struct pale_err *e)
{
    struct ids m = {.kind = IDS_RANGE, .uid_extents = 1, .gid_extents = 1};
    m.uids[0] = (struct ids_extent){ids->host_uid, 0, 1};
    m.gids[0] = (struct ids_extent){ids->host_gid, 0, 1};
    for (int i = 0; i < ids->uid_extents; i++)
        if (ids->uid >= ids->uids[i].inside && ids->uid - ids->uids[i].inside < ids->uids[i].count)
            m.uids[0].outside = ids->uids[i].outside + (ids->uid - ids->uids[i].inside);
    for (int i = 0; i < ids->gid_extents; i++)
        if (ids->gid >= ids->gids[i].inside && ids->gid - ids->gids[i].inside < ids->gids[i].count)
            m.gids[0].outside = ids->gids[i].outside + (ids->gid - ids->gids[i].inside);
    return make_userns(&m, e);
}

/* What a map leads to, as itself. The pieces of a range that an id was taken out of lie side by side and become one again. */
static int identity(const struct ids_extent *of, int count, struct ids_extent ret[3])
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        bool joined = false;
        for (int k = 0; k < n && !joined; k++)
            if ((joined = ret[k].outside + ret[k].count == of[i].outside))
                ret[k].count += of[i].count;
        if (!joined)
            ret[n++] = (struct ids_extent){of[i].outside, of[i].outside, of[i].count};
    }
    return n;
}

int ids_make_home(const struct ids *ids, struct pale_err *e)
{
    struct ids m = {.kind = IDS_RANGE, .by_helper = true};
    m.uid_extents = identity(ids->uids, ids->uid_extents, m.uids);
    m.gid_extents = identity(ids->gids, ids->gid_extents, m.gids);
    return make_userns(&m, e);
}

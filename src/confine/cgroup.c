/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the control groups of boxes. */
#include "confine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"

static const char *const controller_names[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu", "cpuacct", "freezer"};
#define CPU_PERIOD_US 100000u

void cgroup_init(struct cgroup *cg)
{
    *cg = (struct cgroup){.oom_fd = -1, .cpu_fd = -1};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        cg->dir_fd[i] = -1;
}

/* Is word one of the comma-separated items of list? */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",\n");
        if (len == n && memcmp(at, word, n) == 0)
            return true;
        at += len;
        at += *at != 0;
    }
    return false;
}

/* Where mountinfo says a cgroup file system with this controller is (NULL: the unified one). */
static bool mount_of(const char *mountinfo, const char *controller, char *ret, size_t cap)
{
    for (const char *line = mountinfo; *line; line += strspn(line, "\n")) {
        size_t len = strcspn(line, "\n");
        char text[2048];
        snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text) - 1), line);
        line += len;
        char *tail = strstr(text, " - ");
        if (!tail)
            continue;
        *tail = 0;
        tail += 3;
        bool v2 = strncmp(tail, "cgroup2 ", 8) == 0, v1 = strncmp(tail, "cgroup ", 7) == 0;
        const char *options = strrchr(tail, ' ');
        if (controller ? !(v1 && options && listed(options + 1, controller)) : !v2)
            continue;
        char *at = text;
        for (int i = 0; i < 4 && at; i++) {
            at = strchr(at, ' ');
            if (at)
                at++;
        }
        if (!at)
            continue;
        size_t n = strcspn(at, " ");
        if (n >= cap)
            continue;
        memcpy(ret, at, n);
        ret[n] = 0;
        return true;
    }
    return false;
}

static bool write_text(int dirfd, const char *file, const char *text)
{
    own_fd fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
    size_t n = strlen(text);
    return fd >= 0 && write(fd, text, n) == (ssize_t)n;
}

static bool read_text(int dirfd, const char *file, char *ret, size_t cap)
{
    own_fd fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
    return n >= 0;
}

/* The folder for this user's boxes: made if we may, else it must be there and ours. */
static bool user_base(const char *mount, char *ret, size_t cap, int *trouble)
{
    char above[PATH_BYTES_MAX / 4];
    int n = snprintf(above, sizeof(above), "%s/pale", mount), m = snprintf(ret, cap, "%s/pale/%u", mount, (unsigned)geteuid());
    if (n < 0 || (size_t)n >= sizeof(above) || m < 0 || (size_t)m >= cap)
        return false;
    if (geteuid() == 0) {
        mkdir(above, 0755);
        mkdir(ret, 0755);
    }
    struct stat st;
    bool there = stat(ret, &st) == 0;
    if (there && st.st_uid == geteuid() && access(ret, W_OK) == 0)
        return true;
    if ((!there || st.st_uid == geteuid()) && errno != ENOENT && errno != EACCES && errno != EPERM && errno != EROFS)
        *trouble = errno;
    return false;
}

/* Switches the controllers on for what is below a group, one by one: a missing one would take the others with it. What did
 * not take is seen by reading back. */
static void enable_in(const char *path)
{
    own_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int c = 0; dir >= 0 && c <= CGROUP_CPU; c++) { /* the others version 2 has in every group */
        char on[32];
        snprintf(on, sizeof(on), "+%s", controller_names[c]);
        (void)write_text(dir, "cgroup.subtree_control", on);
    }
}

/* The same from the mount down to base; only root gets this far. */
static void enable_v2(const char *mount, const char *base)
{
    char above[PATH_BYTES_MAX / 4];
    snprintf(above, sizeof(above), "%s/pale", mount);
    enable_in(mount);
    enable_in(above);
    enable_in(base);
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ' || at[n] == '\n'))
            return true;
    return false;
}

/* No processes may sit where controllers are handed down; the keeper moves into a leaf. */
static bool settle_in_scope(const char *base)
{
    own_fd dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (mkdirat(dir, "keeper", 0755) < 0 && errno != EEXIST))
        return false;
    own_fd leaf = openat(dir, "keeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return leaf >= 0 && write_text(leaf, "cgroup.procs", "0");
}

/* A group that systemd has made for this process alone: in it nothing else loses by our moving aside. */
static bool scope_base(struct scope *scope, const char *mount, char *ret, size_t cap, struct cgroup_host *h)
{
    if (!scope) {
        snprintf(h->reason, sizeof(h->reason), "systemd hands out the cgroups here");
        return false;
    }
    if (!scope_await(scope)) {
        snprintf(h->reason, sizeof(h->reason), "%s", scope->talk.reason);
        return false;
    }
    int n = snprintf(ret, cap, "%s%s", mount, scope->group);
    if (n < 0 || (size_t)n >= cap || access(ret, W_OK) < 0 || !settle_in_scope(ret)) {
        snprintf(h->reason, sizeof(h->reason), "systemd made %s, but it cannot be written: %s", scope->talk.unit, strerror(errno));
        return false;
    }
    enable_in(ret);
    return true;
}

static void find_v2(struct cgroup_host *h, struct scope *scope, const char *mount)
{
    char base[PATH_BYTES_MAX / 4], on[512] = "";
    h->version = 2;
    if (scope_is_needed()) {
        if (!scope_base(scope, mount, base, sizeof(base), h))
            return;
    } else if (geteuid() == 0 && user_base(mount, base, sizeof(base), &h->trouble)) {
        enable_v2(mount, base);
    } else {
        snprintf(h->reason, sizeof(h->reason), "no cgroup here belongs to user %u", (unsigned)geteuid());
        return;
    }
    own_fd dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !read_text(dir, "cgroup.subtree_control", on, sizeof(on)))
        return;
    snprintf(h->reason, sizeof(h->reason), "it is not handed down to %.200s", base);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        h->has[c] = has_word(on, controller_names[c]);
        snprintf(h->base[c], sizeof(h->base[c]), "%s", base);
    }
    h->has[CGROUP_CPUACCT] = h->has[CGROUP_FREEZER] = true; /* version 2 counts and freezes in every group */
}

void cgroup_find(struct scope *scope, struct cgroup_host *ret)
{
    own_buf b = {0};
    char mount[PATH_BYTES_MAX / 4];
    *ret = (struct cgroup_host){0};
    own_fd fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    buf_init(&b, 4 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0) {
        snprintf(ret->reason, sizeof(ret->reason), "/proc/self/mountinfo cannot be read");
        ret->trouble = EIO;
        return;
    }
    const char *info = buf_text(&b);
    bool v1 = false;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        /* A freezer alone does not make a host one of version 1. */
        if ((c == CGROUP_FREEZER && !v1) || !mount_of(info, controller_names[c], mount, sizeof(mount)))
            continue;
        v1 = true;
        ret->has[c] = user_base(mount, ret->base[c], sizeof(ret->base[c]), &ret->trouble);
    }
    if (v1) {
        ret->version = 1;
        if (!ret->has[CGROUP_MEMORY])
            snprintf(ret->reason, sizeof(ret->reason), "no cgroup here belongs to user %u", (unsigned)geteuid());
    } else if (mount_of(info, NULL, mount, sizeof(mount))) {
        find_v2(ret, scope, mount);
    } else {
        snprintf(ret->reason, sizeof(ret->reason), "no cgroup file system is mounted");
    }
}

static int set(int dirfd, const char *file, const char *value, struct pale_err *e)
{
    return write_text(dirfd, file, value) ? 0 : err_os(e, "set %s to %s", file, value);
}

static int set_number(int dirfd, const char *file, uint64_t v, struct pale_err *e)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    return set(dirfd, file, text, e);
}

/* Swap would let the limit be passed. Where the kernel does not count swap there is no file for it. */
static int limit_swap(int dir, const char *file, uint64_t bytes, struct pale_err *e)
{
    if (faccessat(dir, file, F_OK, 0) < 0)
        return errno == ENOENT ? 0 : err_os(e, "look for %s", file);
    return set_number(dir, file, bytes, e);
}

static int limit_memory(int version, int dir, uint64_t bytes, struct pale_err *e)
{
    int r = set_number(dir, version == 1 ? "memory.limit_in_bytes" : "memory.max", bytes, e);
    if (r < 0)
        return r;
    return version == 1 ? limit_swap(dir, "memory.memsw.limit_in_bytes", bytes, e) : limit_swap(dir, "memory.swap.max", 0, e);
}

uint64_t cgroup_cpu_milli(uint64_t milli)
{
    return milli < 10 ? 10 : milli;
}

static int limit_cpu(int version, int dir, uint64_t milli, struct pale_err *e)
{
    char text[64];
    uint64_t quota = cgroup_cpu_milli(milli) * CPU_PERIOD_US / 1000;
    if (version == 1)
        return set_number(dir, "cpu.cfs_quota_us", quota, e);
    snprintf(text, sizeof(text), "%llu %u", (unsigned long long)quota, CPU_PERIOD_US);
    return set(dir, "cpu.max", text, e);
}

static int apply(struct cgroup *cg, int c, const struct cgroup_limits *lim, struct pale_err *e)
{
    switch (c) {
    case CGROUP_MEMORY:
        return lim->memory_bytes ? limit_memory(cg->version, cg->dir_fd[c], lim->memory_bytes, e) : 0;
    case CGROUP_PIDS:
        return lim->processes ? set_number(cg->dir_fd[c], "pids.max", lim->processes, e) : 0;
    case CGROUP_CPU:
        return lim->cpu_milli ? limit_cpu(cg->version, cg->dir_fd[c], lim->cpu_milli, e) : 0;
    default:
        return 0;
    }
}

static int make_one(const struct cgroup_host *host, const char *id, int c, struct cgroup *cg, struct pale_err *e)
{
    int n = snprintf(cg->path[c], sizeof(cg->path[c]), "%s/%s", host->base[c], id);
    if (n < 0 || (size_t)n >= sizeof(cg->path[c]))
        return err_set(e, PALE_LIMIT, "cgroup path too long");
    if (mkdir(cg->path[c], 0755) < 0 && errno != EEXIST)
        return err_os(e, "make cgroup %s", cg->path[c]);
    cg->dir_fd[c] = open(cg->path[c], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return cg->dir_fd[c] < 0 ? err_os(e, "open cgroup %s", cg->path[c]) : 0;
}

/* The last processes may still be on their way out. */
static void remove_group(const char *path)
{
    for (int tries = 0; tries < 1000 && rmdir(path) < 0 && errno != ENOENT; tries++)
        usleep(1000);
}

static bool write_frozen(int version, int dir, bool on)
{
    return version == 1 ? write_text(dir, "freezer.state", on ? "FROZEN" : "THAWED") : write_text(dir, "cgroup.freeze", on ? "1" : "0");
}

/* What a killed keeper left frozen: killed first and thawed then, so that nothing of it runs another step. Frozen processes neither end
 * nor fork, so that the list is true while it is read. */
static void end_frozen(const struct cgroup_host *host, const char *id)
{
    char path[PATH_BYTES_MAX], word[16];
    int n = host->has[CGROUP_FREEZER] ? snprintf(path, sizeof(path), "%s/%s", host->base[CGROUP_FREEZER], id) : -1;
    own_fd dir = n > 0 && (size_t)n < sizeof(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    own_fd procs = dir < 0 ? -1 : openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    own_buf list = {0};
    uint64_t pid;
    buf_init(&list, 1 << 20);
    if (procs < 0 || fd_read_all(procs, &list, NULL) < 0)
        return;
    for (const char *at = buf_text(&list); *at; at += strspn(at, "\n")) {
        size_t len = strcspn(at, "\n");
        snprintf(word, sizeof(word), "%.*s", (int)len, at);
        if (number_u64(word, 1 << 30, &pid) && pid > 1)
            kill((pid_t)pid, SIGKILL);
        at += len;
    }
    (void)write_frozen(host->version, dir, false);
    own_close(&procs);
    own_close(&dir);
    remove_group(path);
}

int cgroup_create(const struct cgroup_host *host, const char *id, const struct cgroup_limits *lim, struct cgroup *ret, struct pale_err *e)
{
    const bool wanted[CGROUP_CONTROLLERS] = {lim->memory_bytes > 0, lim->processes > 0, lim->cpu_milli > 0, lim->count_cpu, lim->freezer};
    struct cgroup cg;
    int r = 0;
    cgroup_init(&cg);
    if (host->trouble) {
        errno = host->trouble;
        return err_os(e, "look at the host's cgroups");
    }
    cg.version = host->version;
    if (lim->freezer)
        end_frozen(host, id);
    for (int c = 0; r == 0 && c < CGROUP_CONTROLLERS; c++) {
        if (!wanted[c])
            continue;
        if (!host->has[c]) {
            r = err_set(e, PALE_UNSUPPORTED, "the %s controller is not to be had: %s", controller_names[c], host->reason);
            break;
        }
        cg.used[c] = true;
        if ((r = make_one(host, id, c, &cg, e)) == 0)
            r = apply(&cg, c, lim, e);
    }
    if (r == 0 && cg.used[CGROUP_MEMORY]) {
        cg.oom_fd = openat(cg.dir_fd[CGROUP_MEMORY], cg.version == 1 ? "memory.oom_control" : "memory.events", O_RDONLY | O_CLOEXEC);
        if (cg.oom_fd < 0)
            r = err_os(e, "open the memory events of the box's cgroup");
    }
    if (r == 0 && cg.used[CGROUP_CPUACCT]) {
        cg.cpu_fd = openat(cg.dir_fd[CGROUP_CPUACCT], cg.version == 1 ? "cpuacct.usage" : "cpu.stat", O_RDONLY | O_CLOEXEC);
        if (cg.cpu_fd < 0)
            r = err_os(e, "open the CPU time of the box's cgroup");
    }
    if (r < 0) {
        cgroup_destroy(&cg);
        return r;
    }
    *ret = cg;
    return 0;
}

int cgroup_admit(const struct cgroup *cg, pid_t pid, struct pale_err *e)
{
    bool done = false;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!cg->used[c] || (cg->version == 2 && done))
            continue;
        int r = set_number(cg->dir_fd[c], "cgroup.procs", (uint64_t)pid, e);
        if (r < 0)
            return err_prefix(e, "put the box into its cgroup");
        done = true;
    }
    return 0;
}

/* The number after key in "key value" lines; with no key, the number the text begins with. */
static uint64_t value_in(const char *text, const char *key)
{
    char word[24];
    uint64_t v = 0;
    size_t n = strlen(key);
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n");
        const char *rest = at + n;
        bool hit = n == 0 || (len > n && memcmp(at, key, n) == 0 && *rest++ == ' ');
        size_t digits = hit ? strspn(rest, "0123456789") : 0;
        if (digits > 0 && digits < sizeof(word)) {
            memcpy(word, rest, digits);
            word[digits] = 0;
            return number_u64(word, UINT64_MAX, &v) ? v : 0;
        }
        at += len;
        at += *at == '\n';
    }
    return 0;
}

static uint64_t read_value(int fd, const char *key)
{
    char text[512];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return value_in(text, key);
}

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
    return read_value(cg->oom_fd, "oom_kill");
}

uint64_t cgroup_cpu_us(const struct cgroup *cg)
{
    return cg->version == 1 ? read_value(cg->cpu_fd, "") / 1000 : read_value(cg->cpu_fd, "usage_usec");
}

uint64_t cgroup_peak_bytes(const struct cgroup *cg)
{
    char text[64];
    if (!cg->used[CGROUP_MEMORY] ||
        !read_text(cg->dir_fd[CGROUP_MEMORY], cg->version == 1 ? "memory.max_usage_in_bytes" : "memory.peak", text, sizeof(text)))
        return 0;
    return value_in(text, "");
}

static uint64_t number_in(int dir, const char *file)
{
    char text[64];
    return dir >= 0 && read_text(dir, file, text, sizeof(text)) ? value_in(text, "") : 0;
}

/* Does every group of the process that we use end in the box's id? In version 2 there is one line; in version 1 one for each
 * hierarchy, with the names of its controllers. */
static bool is_member(const struct cgroup *cg, const char *id, const char *groups)
{
    size_t n = strlen(id);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        bool found = false;
        for (const char *line = groups; cg->used[c] && *line; line += strspn(line, "\n")) {
            size_t len = strcspn(line, "\n");
            const char *names = memchr(line, ':', len), *path = names ? memchr(names + 1, ':', len - (size_t)(names + 1 - line)) : NULL;
            char list[128];
            if (path) {
                snprintf(list, sizeof(list), "%.*s", (int)(path - names - 1), names + 1);
                bool ours = cg->version == 2 ? list[0] == 0 : listed(list, controller_names[c]);
                found = found || (ours && len > n + 1 && line[len - n - 1] == '/' && memcmp(line + len - n, id, n) == 0);
            }
            line += len;
        }
        if (cg->used[c] && !found)
            return false;
    }
    return true;
}

bool cgroup_look(const struct cgroup *cg, const char *id, pid_t pid, struct cgroup_limits *ret)
{
    char path[32], groups[4096];
    *ret = (struct cgroup_limits){0};
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (!read_text(AT_FDCWD, path, groups, sizeof(groups)) || !is_member(cg, id, groups))
        return false;
    bool v1 = cg->version == 1;
    if (cg->used[CGROUP_MEMORY])
        ret->memory_bytes = number_in(cg->dir_fd[CGROUP_MEMORY], v1 ? "memory.limit_in_bytes" : "memory.max");
    if (cg->used[CGROUP_PIDS])
        ret->processes = number_in(cg->dir_fd[CGROUP_PIDS], "pids.max");
    if (cg->used[CGROUP_CPU])
        ret->cpu_milli = number_in(cg->dir_fd[CGROUP_CPU], v1 ? "cpu.cfs_quota_us" : "cpu.max") * 1000 / CPU_PERIOD_US;
    return true;
}

bool cgroup_can_freeze(const struct cgroup *cg)
{
    return cg->used[CGROUP_FREEZER];
}

int cgroup_freeze(const struct cgroup *cg, bool on, struct pale_err *e)
{
    if (!cgroup_can_freeze(cg))
        return err_set(e, PALE_UNSUPPORTED, "the box has no cgroup that can be frozen");
    return write_frozen(cg->version, cg->dir_fd[CGROUP_FREEZER], on) ? 0
                                                                     : err_os(e, on ? "freeze the box's cgroup" : "thaw the box's cgroup");
}

bool cgroup_is_frozen(const struct cgroup *cg)
{
    char text[128];
    int dir = cg->dir_fd[CGROUP_FREEZER];
    if (!cgroup_can_freeze(cg) || !read_text(dir, cg->version == 1 ? "freezer.state" : "cgroup.events", text, sizeof(text)))
        return false;
    return cg->version == 1 ? strcmp(text, "FROZEN\n") == 0 : value_in(text, "frozen") == 1;
}

void cgroup_destroy(struct cgroup *cg)
{
    own_close(&cg->oom_fd);
    own_close(&cg->cpu_fd);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!cg->used[c])
            continue;
        own_close(&cg->dir_fd[c]);
        remove_group(cg->path[c]);
        cg->used[c] = false;
    }
}

void cgroup_sweep(const char *id)
{
    struct cgroup_host host;
    cgroup_find(NULL, &host);
    end_frozen(&host, id);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        char path[PATH_BYTES_MAX];
        int n = host.has[c] ? snprintf(path, sizeof(path), "%s/%s", host.base[c], id) : -1;
        if (n > 0 && (size_t)n < sizeof(path))
            remove_group(path);
    }
}

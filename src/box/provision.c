/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the changes that `pale doctor --fix` makes to a host.
 *
 * How it works: every change is one of a few deeds, each with a twin that takes it back; it is written to the ledger before it is
 * done. Only root gets here. Paths are ours or the kernel's; the only foreign text is a user's name, which must stand in
 * /etc/passwd. */
#include "box/provision.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "box/ledger.h"
#include "confine/cgroup.h"
#include "confine/subid.h"

#define LEDGER_PATH "/var/lib/pale/doctor-fix.json"
#define UNIT_DIR "/etc/systemd/system/user@.service.d"
#define UNIT_FILE UNIT_DIR "/pale-delegate.conf"
#define UNIT_TEXT "[Service]\nDelegate=cpu cpuset io memory pids\n"
#define TEXT_MAX (4u << 20)

struct work {
    struct ledger ledger;
    provision_say *say;
    void *arg;
    char user[64];
    uint32_t uid, gid;
    bool reload; /* systemd must read its units again */
};

static void PRINTF_LIKE(2, 3) tell(const struct work *w, const char *fmt, ...)
{
    char line[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    w->say(w->arg, line);
}

static int read_text(const char *path, struct buf *b, struct pale_err *e)
{
    buf_init(b, TEXT_MAX);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    return fd_read_all(fd, b, e);
}

/* --- the deeds and their twins --- */

/* The lock that shadow's tools respect for this file. */
static int lock_file(const char *path, char *ret, size_t cap, struct pale_err *e)
{
    int n = snprintf(ret, cap, "%s.lock", path);
    own_fd fd = n > 0 && (size_t)n < cap ? open(ret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return err_os(e, "lock %s (is useradd running?)", path);
    dprintf(fd, "%d", (int)getpid());
    return 0;
}

/* Writes a file of the system anew, with the owner and mode it has. */
static int rewrite(const char *path, const void *p, size_t n, struct pale_err *e)
{
    struct stat st;
    char dir_path[512];
    const char *slash = strrchr(path, '/');
    snprintf(dir_path, sizeof(dir_path), "%.*s", (int)(slash - path), path);
    own_fd dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || stat(path, &st) < 0)
        return err_os(e, "open %s", path);
    int r = fd_replace_file(dir, slash + 1, p, n, st.st_mode & 07777, true, e);
    if (r == 0 && fchownat(dir, slash + 1, st.st_uid, st.st_gid, 0) < 0)
        r = err_os(e, "give %s to its owner", path);
    return r;
}

/* Adds the step's text to its file, or takes it out again. */
static int edit(const struct ledger_step *s, bool add, struct pale_err *e)
{
    char lock[540];
    own_buf b = {0};
    int r = lock_file(s->path, lock, sizeof(lock), e);
    if (r < 0)
        return r;
    r = read_text(s->path, &b, e);
    size_t n = strlen(s->text);
    if (r == 0 && add) {
        buf_add_text(&b, s->text);
        r = b.failed ? err_nomem(e) : rewrite(s->path, b.data, b.len, e);
    } else if (r == 0) {
        const char *text = buf_text(&b), *hit = strstr(text, s->text);
        while (hit && hit != text && hit[-1] != '\n' && s->text[0] != '\n')
            hit = strstr(hit + 1, s->text);
        if (hit) {
            size_t at = (size_t)(hit - text);
            memmove(b.data + at, b.data + at + n, b.len - at - n);
            r = rewrite(s->path, b.data, b.len - n, e);
        }
    }
    unlink(lock);
    return r;
}

static int do_append(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    (void)w;
    return edit(s, true, e);
}

static int undo_append(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    (void)w;
    return edit(s, false, e);
}

static void note_unit(struct work *w, const struct ledger_step *s)
{
    w->reload = w->reload || strcmp(s->path, UNIT_FILE) == 0;
}

static int do_create(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    own_fd fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    note_unit(w, s);
    return fd < 0 || !fd_write_full(fd, s->text, strlen(s->text)) ? err_os(e, "write %s", s->path) : 0;
}

static int undo_create(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    own_buf b = {0};
    int r = read_text(s->path, &b, e);
    if (r < 0)
        return r;
    if (b.len > 0 && strcmp(buf_text(&b), s->text) != 0)
        return err_set(e, PALE_EXISTS, "%s was changed since; remove it by hand", s->path);
    note_unit(w, s);
    return unlink(s->path) < 0 && errno != ENOENT ? err_os(e, "remove %s", s->path) : 0;
}

static int do_mkdir(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    (void)w;
    return mkdir(s->path, 0755) < 0 ? err_os(e, "make %s", s->path) : 0;
}

/* Calls fn with the name of each folder in the folder at path; stops at true and hands it on. */
static bool any_folder(const char *path, bool (*fn)(int dir_fd, const char *name))
{
    DIR *d = opendir(path);
    bool hit = false;
    if (!d)
        return false;
    for (const struct dirent *en; !hit && (en = readdir(d));)
        if (en->d_name[0] != '.' && en->d_type == DT_DIR)
            hit = fn(dirfd(d), en->d_name);
    closedir(d);
    return hit;
}

/* A control group with processes in it. */
static bool is_inhabited(int dir_fd, const char *name)
{
    char path[300], byte;
    snprintf(path, sizeof(path), "%.255s/cgroup.procs", name);
    own_fd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &byte, 1) == 1;
}

/* The empty group of a box whose keeper was killed. */
static bool sweep(int dir_fd, const char *name)
{
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
    return false;
}

/* A folder that others use by now stays. */
static int undo_mkdir(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    (void)w;
    if (rmdir(s->path) == 0 || errno == ENOENT || errno == ENOTEMPTY)
        return 0;
    any_folder(s->path, sweep);
    return rmdir(s->path) == 0 ? 0 : err_os(e, "remove %s", s->path);
}

static int do_chown(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    return lchown(s->path, w->uid, w->gid) < 0 ? err_os(e, "give %s to %s", s->path, w->user) : 0;
}

static int undo_chown(struct work *w, const struct ledger_step *s, struct pale_err *e)
{
    (void)w;
    return lchown(s->path, s->uid, s->gid) < 0 && errno != ENOENT ? err_os(e, "take %s back", s->path) : 0;
}

static const struct deed {
    int (*perform)(struct work *w, const struct ledger_step *s, struct pale_err *e);
    int (*undo)(struct work *w, const struct ledger_step *s, struct pale_err *e);
    const char *done, *undone;
} deeds[] = {
    [DEED_APPEND] = {do_append, undo_append, "added to", "taken out of"},
    [DEED_CREATE] = {do_create, undo_create, "wrote", "removed"},
    [DEED_MKDIR] = {do_mkdir, undo_mkdir, "made", "removed"},
    [DEED_CHOWN] = {do_chown, undo_chown, "gave away", "took back"},
};
static_assert(sizeof(deeds) / sizeof(deeds[0]) == DEED_COUNT, "every deed has its twin");

/* Writes the step down, does it, and crosses it out again if it fails. */
static int perform(struct work *w, const struct ledger_step *step, struct pale_err *e)
{
    struct ledger *l = &w->ledger;
    if (l->count == LEDGER_STEPS_MAX)
        return err_set(e, PALE_LIMIT, "%s is full", LEDGER_PATH);
    l->step[l->count] = *step;
    snprintf(l->step[l->count].user, sizeof(step->user), "%s", w->user);
    l->count++;
    int r = ledger_save(LEDGER_PATH, l, e);
    if (r == 0)
        r = deeds[step->deed].perform(w, step, e);
    if (r < 0) {
        l->count--;
        (void)!ledger_save(LEDGER_PATH, l, NULL);
        return r;
    }
    tell(w, "%s %s%s%.*s", deeds[step->deed].done, step->path, step->text[0] && step->deed == DEED_APPEND ? ": " : "",
         step->deed == DEED_APPEND ? (int)strcspn(step->text, "\n") : 0, step->text);
    return 0;
}

/* --- what is set up --- */

static int find_user(struct work *w, const char *user, struct pale_err *e)
{
    own_buf b = {0};
    int r = read_text("/etc/passwd", &b, e);
    size_t len = strlen(user);
    if (r < 0)
        return r;
    for (const char *line = buf_text(&b); *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char word[3][64];
        const char *at = line;
        int n = 0;
        for (int i = 0; i < 4; i++) {
            size_t f = strcspn(at, ":\n");
            if (i != 1 && f < sizeof(word[0]))
                snprintf(word[n++], sizeof(word[0]), "%.*s", (int)f, at);
            at += f;
            at += *at == ':';
        }
        uint64_t uid, gid;
        if (n == 3 && len > 0 && (strcmp(word[0], user) == 0 || strcmp(word[1], user) == 0) && number_u64(word[1], UINT32_MAX - 1, &uid) &&
            number_u64(word[2], UINT32_MAX - 1, &gid)) {
            snprintf(w->user, sizeof(w->user), "%s", word[0]);
            w->uid = (uint32_t)uid;
            w->gid = (uint32_t)gid;
            return uid == 0 ? err_set(e, PALE_BAD_INPUT, "root needs no fixing; name the user who runs pale") : 0;
        }
    }
    return err_set(e, PALE_NOT_FOUND, "there is no user %.60s in /etc/passwd", user);
}

/* One file: a line for the user unless there is one. start is where the range begins. */
static int add_range(struct work *w, const char *path, const char *text, uint32_t start, struct pale_err *e)
{
    struct ledger_step s = {.deed = DEED_APPEND};
    size_t n = strlen(text);
    if (subid_has(text, w->user, w->uid)) {
        tell(w, "%s has a range for %s already", path, w->user);
        return 0;
    }
    snprintf(s.path, sizeof(s.path), "%s", path);
    snprintf(s.text, sizeof(s.text), "%s%s:%u:%u\n", n > 0 && text[n - 1] != '\n' ? "\n" : "", w->user, start, SUBID_COUNT);
    if (access(path, F_OK) < 0)
        s.deed = DEED_CREATE;
    return perform(w, &s, e);
}

static int fix_ids(struct work *w, struct pale_err *e)
{
    own_buf uids = {0}, gids = {0}, passwd = {0};
    int r;
    uint32_t start = 0;
    if ((r = read_text("/etc/subuid", &uids, e)) < 0 || (r = read_text("/etc/subgid", &gids, e)) < 0 ||
        (r = read_text("/etc/passwd", &passwd, e)) < 0)
        return r;
    const char *const texts[] = {buf_text(&uids), buf_text(&gids)};
    if (subid_has(texts[0], w->user, w->uid) && subid_has(texts[1], w->user, w->uid)) {
        tell(w, "%s has ranges in /etc/subuid and /etc/subgid already", w->user);
        return 0;
    }
    if (!subid_free(texts, 2, buf_text(&passwd), &start))
        return err_set(e, PALE_LIMIT, "no free range of %u ids, or a line in /etc/subuid or /etc/subgid cannot be read", SUBID_COUNT);
    r = add_range(w, "/etc/subuid", texts[0], start, e);
    return r < 0 ? r : add_range(w, "/etc/subgid", texts[1], start, e);
}

static int make_dir(struct work *w, const char *path, struct pale_err *e)
{
    struct ledger_step s = {.deed = DEED_MKDIR};
    if (access(path, F_OK) == 0)
        return 0;
    snprintf(s.path, sizeof(s.path), "%s", path);
    return perform(w, &s, e);
}

/* A folder for the user's boxes below one controller. base is where root's own go: MOUNT/pale/0. */
static int fix_controller(struct work *w, const char *base, struct pale_err *e)
{
    struct ledger_step s = {.deed = DEED_CHOWN};
    struct stat st;
    const char *slash = strrchr(base, '/');
    int n = snprintf(s.path, sizeof(s.path), "%.*s/%u", slash ? (int)(slash - base) : 0, base, w->uid);
    if (n < 0 || (size_t)n >= sizeof(s.path))
        return err_set(e, PALE_LIMIT, "path too long: %s", base);
    int r = make_dir(w, s.path, e);
    if (r < 0)
        return r;
    if (stat(s.path, &st) < 0)
        return err_os(e, "look at %s", s.path);
    if (st.st_uid == w->uid) {
        tell(w, "%s belongs to %s already", s.path, w->user);
        return 0;
    }
    s.uid = st.st_uid;
    s.gid = st.st_gid;
    return perform(w, &s, e);
}

static bool has_systemd(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

/* Does systemd hand the controllers of our limits to the user's manager? No such file: there is no manager now. */
static int look_at_manager(const struct work *w, bool *ret_all, struct pale_err *e)
{
    static const char *const need[] = {"cpu", "memory", "pids"};
    char path[160], text[512] = " ";
    snprintf(path, sizeof(path), "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", w->uid, w->uid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text + 1, sizeof(text) - 2);
    if (n < 0)
        return err_os(e, "read %s", path);
    text[n + 1] = 0;
    text[strcspn(text, "\n")] = ' ';
    *ret_all = true;
    for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
        char word[16];
        snprintf(word, sizeof(word), " %s ", need[i]);
        *ret_all = *ret_all && strstr(text, word);
    }
    return 0;
}

/* Each box gets a scope from the user's own manager; all that can be missing is that manager, or a controller it is not given. */
static int fix_delegation(struct work *w, struct pale_err *e)
{
    bool all = false;
    struct ledger_step s = {.deed = DEED_CREATE, .path = UNIT_FILE, .text = UNIT_TEXT};
    if (!has_systemd()) {
        tell(w, "cgroup v2 without systemd: no user may move a process into a group of their own, so there is nothing to set up");
        return 0;
    }
    if (access(UNIT_FILE, F_OK) == 0) {
        tell(w, "%s is there already", UNIT_FILE);
        return 0;
    }
    if (look_at_manager(w, &all, NULL) < 0) {
        tell(w, "systemd has no manager for %s now: they must log in, or `loginctl enable-linger %s` starts one", w->user, w->user);
        return 0;
    }
    if (all) {
        tell(w, "systemd hands cpu, memory and pids to %s: nothing to set up", w->user);
        return 0;
    }
    int r = make_dir(w, UNIT_DIR, e);
    return r < 0 ? r : perform(w, &s, e);
}

static int fix_groups(struct work *w, struct pale_err *e)
{
    struct cgroup_host host;
    int r = 0;
    cgroup_find(NULL, &host);
    if (host.version == 2)
        return fix_delegation(w, e);
    for (int c = 0; r == 0 && c < CGROUP_CONTROLLERS; c++)
        if (host.has[c])
            r = fix_controller(w, host.base[c], e);
    if (host.version == 1 && r == 0)
        tell(w, "control groups last until the next boot; run this again after it");
    if (host.version == 0)
        tell(w, "no control groups: %s", host.reason);
    return r;
}

static void reload_units(const struct work *w)
{
    if (!w->reload || !has_systemd())
        return;
    pid_t pid = vfork();
    if (pid == 0) {
        char *argv[] = {(char *)"systemctl", (char *)"daemon-reload", NULL}, *envp[] = {NULL};
        execve("/usr/bin/systemctl", argv, envp);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    tell(w, "systemd has read its units again; users must log in anew");
}

static int begin(struct work **ret, provision_say *say, void *arg, struct pale_err *e)
{
    if (geteuid() != 0)
        return err_set(e, PALE_DENIED, "only root can change the host: sudo pale doctor --fix or --undo");
    struct work *w = calloc(1, sizeof(*w));
    if (!w)
        return err_nomem(e);
    w->say = say;
    w->arg = arg;
    *ret = w;
    return ledger_load(LEDGER_PATH, &w->ledger, e);
}

int provision_fix(const char *user, provision_say *say, void *arg, struct pale_err *e)
{
    own_mem struct work *w = NULL;
    int r = begin(&w, say, arg, e);
    if (r == 0)
        r = find_user(w, user, e);
    if (r < 0)
        return r;
    r = fix_ids(w, e);
    if (r == 0)
        r = fix_groups(w, e);
    reload_units(w);
    return r;
}

static bool is_for(const struct ledger_step *s, const char *user)
{
    return !user || strcmp(user, s->user) == 0;
}

/* Takes back step i and crosses it out. */
static int undo_step(struct work *w, size_t i, struct pale_err *e)
{
    struct ledger *l = &w->ledger;
    const struct ledger_step s = l->step[i];
    int r = deeds[s.deed].undo(w, &s, e);
    if (r < 0)
        return r;
    memmove(&l->step[i], &l->step[i + 1], (l->count - i - 1) * sizeof(s));
    l->count--;
    tell(w, "%s %s", deeds[s.deed].undone, s.path);
    return ledger_save(LEDGER_PATH, l, e);
}

int provision_undo(const char *user, provision_say *say, void *arg, struct pale_err *e)
{
    own_mem struct work *w = NULL;
    int r = begin(&w, say, arg, e);
    if (r < 0)
        return r;
    size_t before = w->ledger.count;
    for (size_t i = 0; i < before; i++) {
        const struct ledger_step *s = &w->ledger.step[i];
        if (is_for(s, user) && s->deed == DEED_MKDIR && any_folder(s->path, is_inhabited))
            return err_set(e, PALE_BUSY, "boxes of %s are running; stop them first (`pale stop`)", s->user);
    }
    for (size_t i = before; r == 0 && i-- > 0;)
        if (is_for(&w->ledger.step[i], user))
            r = undo_step(w, i, e);
    if (r == 0 && w->ledger.count == before)
        tell(w, "there is nothing to take back");
    reload_units(w);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the folders of boxes. */
#include "box/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/sha256.h"
#include "base/weak.h"
#include "box/removal.h"
#include "box/rename.h"
#include "box/tidy.h"

static int too_long(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "a path of the user's folders is too long");
}

/* An XDG folder: the variable if it is absolute, else its place below the home folder. */
static int xdg(const char *variable, const char *below_home, char *ret, size_t cap, struct pale_err *e)
{
    const char *v = getenv(variable), *home = getenv("HOME");
    int n;
    if (v && v[0] == '/')
        n = snprintf(ret, cap, "%s/pale", v);
    else if (home && home[0] == '/')
        n = snprintf(ret, cap, "%s/%s/pale", home, below_home);
    else
        return err_set(e, PALE_BAD_INPUT, "neither %s nor HOME is set to an absolute path", variable);
    return n < 0 || (size_t)n >= cap ? too_long(e) : 0;
}

/* A folder of ours in one that gives its group to what is made in it: a box whose ids are its own could not use it. 0, or -1 with errno. */
static int make_own_dir(const char *path, mode_t mode)
{
    struct stat st;
    if (mkdir(path, mode) < 0)
        return -1;
    if (lstat(path, &st) < 0)
        return -1;
    return st.st_gid == getegid() || (lchown(path, (uid_t)-1, getegid()) == 0 && chmod(path, mode) == 0) ? 0 : -1;
}

static int make_dirs(const char *path, mode_t mode, struct pale_err *e)
{
    char part[PATH_BYTES_MAX];
    size_t len = strlen(path);
    if (len >= sizeof(part))
        return too_long(e);
    if (make_own_dir(path, mode) == 0 || errno == EEXIST)
        return 0; /* all above it are there, as they mostly are */
    for (size_t i = 1; i <= len; i++)
        if (path[i] == '/' || path[i] == 0) {
            memcpy(part, path, i);
            part[i] = 0;
            if (make_own_dir(part, mode) < 0 && errno != EEXIST)
                return err_os(e, "make folder %s", part);
        }
    return 0;
}

int place_state_dir(char *ret, size_t cap, struct pale_err *e)
{
    int r = xdg("XDG_STATE_HOME", ".local/state", ret, cap, e);
    struct stat st;
    if (r < 0)
        return r;
    if (stat(ret, &st) < 0 && ((r = make_dirs(ret, 0700, e)) < 0 || stat(ret, &st) < 0))
        return r < 0 ? r : err_os(e, "look at %s", ret);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "%s must belong to you and be writable by nobody else", ret);
    return 0;
}

static int config_dir(char *ret, size_t cap, struct pale_err *e)
{
    return xdg("XDG_CONFIG_HOME", ".config", ret, cap, e);
}

int place_approvals_dir(bool make, char *ret, size_t cap, struct pale_err *e)
{
    struct stat st;
    int r = config_dir(ret, cap, e);
    if (r == 0 && strlen(ret) + sizeof("/approvals") > cap)
        r = too_long(e);
    if (r < 0)
        return r;
    memcpy(ret + strlen(ret), "/approvals", sizeof("/approvals"));
    if (lstat(ret, &st) < 0) {
        if (errno != ENOENT || !make)
            return err_os(e, "look at %s", ret);
        if ((r = make_dirs(ret, 0700, e)) < 0 || lstat(ret, &st) < 0)
            return r < 0 ? r : err_os(e, "look at %s", ret);
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "%s must be a folder that belongs to you and is writable by nobody else", ret);
    return 0;
}

int place_data_dir(char *ret, size_t cap, struct pale_err *e)
{
    return xdg("XDG_DATA_HOME", ".local/share", ret, cap, e);
}

/* Ours alone, and really a folder: 1; 0 if not; an error if that cannot be found out. */
static int is_private_dir(const char *path, struct pale_err *e)
{
    struct stat st;
    if (weak_word("private-dir"))
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (lstat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : err_os(e, "look at %s", path);
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* 1 if it is the one, 0 if it cannot be, or an error: a passing trouble must not send a box's keeper and its clients to two
 * different places. */
static int try_runtime_dir(const char *path, char *ret, size_t cap, struct pale_err *e)
{
    size_t n = strlen(path);
    if (n > RUNTIME_BYTES_MAX || n >= cap)
        return 0;
    int r = is_private_dir(path, e);
    if (r == 0) {
        /* Another of us may have made it since we looked: with that one we must agree, or we would not find its boxes. */
        if (make_own_dir(path, 0700) < 0 && errno != EEXIST)
            return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM || errno == EROFS
                       ? 0
                       : err_os(e, "make folder %s", path);
        r = is_private_dir(path, e);
    }
    if (r == 1)
        memcpy(ret, path, n + 1);
    return r;
}

int place_runtime_dir(char *ret, size_t cap, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    const char *v = getenv("XDG_RUNTIME_DIR");
    unsigned uid = geteuid();
    int r;
    if (v && v[0] == '/' && strlen(v) < RUNTIME_BYTES_MAX) {
        snprintf(dir, sizeof(dir), "%s/pale", v);
        if ((r = try_runtime_dir(dir, ret, cap, e)) != 0)
            return r < 0 ? r : 0;
        /* In another folder are other sockets: somebody else's boxes would be found there, or none. */
        struct stat st;
        if (strlen(dir) <= RUNTIME_BYTES_MAX && lstat(dir, &st) == 0)
            return err_set(
                e, PALE_DENIED,
                "%s must be a folder of yours with mode 0700; move it away or `chmod 700` it, or set XDG_RUNTIME_DIR to another folder",
                dir);
    }
    /* Root of a user namespace finds the host's /run/pale, which is not its own. */
    snprintf(dir, sizeof(dir), uid == 0 ? "/run/pale" : "/run/user/%u/pale", uid);
    if ((r = try_runtime_dir(dir, ret, cap, e)) != 0)
        return r < 0 ? r : 0;
    /* Not in /tmp, where somebody else may have taken the name, and give it up again while boxes run. */
    if ((r = place_state_dir(dir, sizeof(dir) - 4, e)) < 0)
        return r;
    memcpy(dir + strlen(dir), "/run", 5);
    if ((r = try_runtime_dir(dir, ret, cap, e)) != 0)
        return r < 0 ? r : 0;
    return err_set(e, PALE_DENIED,
                   "no folder for sockets: %s is longer than %d bytes, or is no folder of yours with mode 0700; set XDG_RUNTIME_DIR to one",
                   dir, RUNTIME_BYTES_MAX);
}

bool place_config(const char *name, char *ret, size_t cap)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = config && config[0] == '/' ? snprintf(ret, cap, "%s/pale/%s", config, name)
            : home && home[0] == '/'   ? snprintf(ret, cap, "%s/.config/pale/%s", home, name)
                                       : -1;
    return n >= 0 && (size_t)n < cap;
}

int place_program(const char *name, char *ret, size_t cap, struct pale_err *e)
{
    char self[PATH_BYTES_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return err_os(e, "find our own program");
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return err_set(e, PALE_INTERNAL, "our own program has no folder");
    *slash = 0;
    static const char *const beside[] = {"", "/../libexec/pale"};
    for (size_t i = 0; i < 2; i++) {
        int m = snprintf(ret, cap, "%s%s/%s", self, beside[i], name);
        if (m > 0 && (size_t)m < cap && access(ret, X_OK) == 0)
            return 0;
    }
    return err_set(e, PALE_INTERNAL, "pale is not installed whole: %s stands neither beside %s nor in ../libexec/pale; install it again",
                   name, self);
}

int place_command(char *ret, size_t cap, struct pale_err *e)
{
    int r = place_program("pale", ret, cap, e);
    return r == -PALE_INTERNAL ? place_program("../../bin/pale", ret, cap, e) : r;
}

static bool append(char *path, size_t cap, const char *more)
{
    size_t n = strlen(path), m = strlen(more);
    if (n + m >= cap)
        return false;
    memcpy(path + n, more, m + 1);
    return true;
}

/* Fills id, state and socket from data (a real path) and name. */
static int complete(struct place *p, struct pale_err *e)
{
    char hex[SHA256_HEX];
    sha256_hex(p->data, strlen(p->data), hex);
    memcpy(p->id, hex, BOX_ID_LEN);
    p->id[BOX_ID_LEN] = 0;
    int r = place_state_dir(p->state, sizeof(p->state), e);
    if (r == 0)
        r = place_runtime_dir(p->socket, sizeof(p->socket), e);
    if (r < 0)
        return r;
    bool fits = append(p->state, sizeof(p->state), "/boxes/") && append(p->state, sizeof(p->state), p->id) &&
                append(p->socket, sizeof(p->socket), "/") && append(p->socket, sizeof(p->socket), p->id) &&
                append(p->socket, sizeof(p->socket), ".sock");
    return fits ? 0 : too_long(e);
}

/* The .pale of the nearest folder at or above the working folder that has one; false if there is none. */
static bool find_project(char *ret, size_t cap)
{
    if (!getcwd(ret, cap))
        return false;
    size_t n = strcmp(ret, "/") == 0 ? 0 : strlen(ret); /* of the folder looked into */
    for (;;) {
        struct stat st;
        ret[n] = 0;
        if (append(ret, cap, "/.pale") && lstat(ret, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
            return true;
        if (n == 0)
            return false;
        while (ret[--n] != '/')
            ;
    }
}

static int user_boxes(char *ret, size_t cap, struct pale_err *e)
{
    int r = xdg("XDG_DATA_HOME", ".local/share", ret, cap, e);
    return r == 0 && !append(ret, cap, "/boxes") ? too_long(e) : r;
}

static int tenant_boxes(const char *tenant, char *ret, size_t cap, struct pale_err *e)
{
    if (!path_is_box_name(tenant))
        return err_set(e, PALE_BAD_INPUT, "a tenant's name is 1 to %d of a-z, 0-9 and '-', and does not begin with '-'", BOX_NAME_MAX);
    int r = xdg("XDG_DATA_HOME", ".local/share", ret, cap, e);
    return r == 0 && (!append(ret, cap, "/tenants/") || !append(ret, cap, tenant)) ? too_long(e) : r;
}

/* Does this folder hold tenants' folders? By its name, or because ours is really there, behind a symlink. */
static bool holds_tenants(const char *dir, size_t len)
{
    static const char name[] = "/pale/tenants";
    char ours[PATH_BYTES_MAX], real[PATH_BYTES_MAX];
    size_t n = sizeof(name) - 1;
    if (len >= n && memcmp(dir + len - n, name, n) == 0)
        return true;
    if (xdg("XDG_DATA_HOME", ".local/share", ours, sizeof(ours), NULL) < 0 || !append(ours, sizeof(ours), "/tenants"))
        return false;
    return realpath(ours, real) && strlen(real) == len && memcmp(real, dir, len) == 0;
}

/* Which kind of folder holds a box: a project's .pale, a tenant's, or the user's. */
static void set_owner(struct place *p, const char *dir)
{
    char own[PATH_BYTES_MAX];
    const char *last = strrchr(dir, '/');
    p->project = last && strcmp(last, "/.pale") == 0;
    if (!last || !path_is_box_name(last + 1) || (user_boxes(own, sizeof(own), NULL) == 0 && strcmp(own, dir) == 0))
        return;
    if (holds_tenants(dir, (size_t)(last - dir)))
        memcpy(p->tenant, last + 1, strlen(last + 1) + 1);
}

/* Makes the path of a folder, itself no symlink, its real one. The kernel tells in one step if that is so already. */
static int make_real(char path[PATH_BYTES_MAX], struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    struct stat st;
    own_fd fd = path_is_normal(path) ? fd_open_real_dir(path) : -1;
    if (fd >= 0)
        return 0;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, PALE_NOT_FOUND, "there is no folder %s", path);
    if (!realpath(path, real))
        return err_os(e, "resolve %s", path);
    memcpy(path, real, strlen(real) + 1);
    return 0;
}

/* Looks for dir/name; 0 and a completed place if it is a box made here. */
static int try_place(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    struct place p = {0};
    set_owner(&p, dir);
    if (!path_join(p.data, sizeof(p.data), dir, name))
        return too_long(e);
    int r = make_real(p.data, e);
    if (r < 0)
        return r == -PALE_NOT_FOUND ? err_set(e, PALE_NOT_FOUND, "there is no box %s", name) : r;
    memcpy(p.name, name, strlen(name) + 1);
    if ((r = complete(&p, e)) < 0)
        return r;
    size_t n = strlen(p.state);
    if (!append(p.state, sizeof(p.state), "/policy"))
        return too_long(e);
    if (access(p.state, F_OK) < 0 && errno != ENOENT)
        return err_os(e, "look for %s", p.state);
    if (access(p.state, F_OK) < 0)
        return err_set(e, PALE_NOT_FOUND, "%s was not made by you on this host; `pale create %s` makes a box of that name", p.data, name);
    p.state[n] = 0;
    *ret = p;
    return 0;
}

int place_check_name(const char *name, struct pale_err *e)
{
    char shown[100];
    if (path_is_box_name(name))
        return 0;
    return err_set(e, PALE_BAD_INPUT, "%s: a box name is 1 to %d of a-z, 0-9 and '-', and does not begin with '-'",
                   quote_into(shown, sizeof(shown), name, strlen(name)), BOX_NAME_MAX);
}

int place_of(const char *data, struct place *ret, struct pale_err *e)
{
    const char *slash = strrchr(data, '/');
    if (!slash || slash == data || strlen(data) >= sizeof(ret->data))
        return err_set(e, PALE_BAD_INPUT, "no box can have its data in %s", data);
    int r = place_check_name(slash + 1, e);
    if (r < 0)
        return r;
    struct place p = {0};
    memcpy(p.data, data, (size_t)(slash - data));
    set_owner(&p, p.data);
    memcpy(p.data, data, strlen(data) + 1);
    memcpy(p.name, slash + 1, strlen(slash + 1) + 1);
    if ((r = complete(&p, e)) == 0)
        *ret = p;
    return r;
}

int place_peek(const char *id, struct place *ret, struct pale_err *e)
{
    struct place p = {0};
    char link[PATH_BYTES_MAX];
    int r = place_state_dir(link, sizeof(link), e);
    if (r < 0)
        return r;
    if (strlen(id) != BOX_ID_LEN || strspn(id, "0123456789abcdef") != BOX_ID_LEN || !append(link, sizeof(link), "/boxes/") ||
        !append(link, sizeof(link), id) || !append(link, sizeof(link), "/data"))
        return err_set(e, PALE_NOT_FOUND, "there is no box with that id");
    ssize_t n = readlink(link, p.data, sizeof(p.data) - 1);
    if (n < 0 && errno != ENOENT && errno != EINVAL)
        return err_os(e, "look at %s", link);
    p.data[n > 0 ? n : 0] = 0;
    char *slash = strrchr(p.data, '/');
    if (!slash || slash == p.data || !path_is_box_name(slash + 1))
        return err_set(e, PALE_NOT_FOUND, "there is no box with the id %s", id);
    struct place found;
    char dir[PATH_BYTES_MAX];
    memcpy(dir, p.data, (size_t)(slash - p.data));
    dir[slash - p.data] = 0;
    r = try_place(dir, slash + 1, &found, e);
    if (r == 0 && strcmp(found.id, id) != 0)
        r = err_set(e, PALE_NOT_FOUND, "there is no box with the id %s", id);
    if (r == 0)
        *ret = found;
    return r;
}

int place_by_id(const char *id, struct place *ret, struct pale_err *e)
{
    int settled = rename_settle(e), r = place_peek(id, ret, settled < 0 ? NULL : e);
    return r < 0 && settled < 0 ? settled : r;
}

int place_each_made(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    (void)!rename_settle(NULL); /* a box that cannot be settled must not hide the others */
    int r = place_state_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    DIR *d = append(dir, sizeof(dir), "/boxes") ? opendir(dir) : NULL;
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open %s", dir);
    for (const struct dirent *en; r >= 0 && (en = readdir(d));) {
        struct place p;
        if (place_peek(en->d_name, &p, NULL) == 0)
            r = fn(arg, &p);
    }
    closedir(d);
    return r < 0 ? r : 0;
}

static int find_settled(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = err_set(e, PALE_NOT_FOUND, "there is no box %s here; `pale ls` lists them, `pale create %s` makes one", name, name);
    if (scope != SCOPE_USER && find_project(dir, sizeof(dir))) {
        struct pale_err first;
        int got = try_place(dir, name, ret, &first);
        if (got == 0)
            return 0;
        if (first.code != PALE_NOT_FOUND || strstr(first.text, "not made by you")) {
            *e = first;
            r = got;
        }
    }
    if (scope != SCOPE_PROJECT && user_boxes(dir, sizeof(dir), NULL) == 0) {
        struct pale_err second;
        int got = try_place(dir, name, ret, &second);
        if (got == 0)
            return 0;
        if (second.code != PALE_NOT_FOUND && e) {
            *e = second;
            r = got;
        }
    }
    return r == -PALE_NOT_FOUND && scope == SCOPE_ANY && place_peek(name, ret, NULL) == 0 ? 0 : r;
}

int place_find(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e)
{
    struct pale_err own = {0};
    int r = place_check_name(name, e);
    if (r < 0)
        return r;
    int settled = rename_settle(&own);
    r = find_settled(name, scope, ret, e);
    return r == -PALE_NOT_FOUND && settled < 0 ? err_set(e, own.code, "%s", own.text) : r;
}

int place_owned(const char *tenant, const char *name, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_name(name, e);
    if (r < 0)
        return r;
    r = tenant[0] ? tenant_boxes(tenant, dir, sizeof(dir), e) : user_boxes(dir, sizeof(dir), e);
    return r < 0 ? r : try_place(dir, name, ret, e);
}

int place_refuse_own(const char *path, struct pale_err *e)
{
    char own[4][PATH_BYTES_MAX];
    int r = place_state_dir(own[0], sizeof(own[0]), e);
    if (r == 0)
        r = place_runtime_dir(own[1], sizeof(own[1]), e);
    if (r == 0)
        r = place_data_dir(own[2], sizeof(own[2]), e);
    if (r == 0)
        r = config_dir(own[3], sizeof(own[3]), e);
    for (size_t i = 0; r == 0 && i < 4 && !weak_word("own-places"); i++) {
        char real[PATH_BYTES_MAX];
        const char *dir = realpath(own[i], real) ? real : own[i];
        if (path_is_within(path, dir) || path_is_within(dir, path))
            r = err_set(e, PALE_DENIED, "%s cannot be given to a box: it is, holds or lies in %s, which is pale's own", path, dir);
    }
    return r;
}

bool place_shadows(const struct place *p)
{
    char dir[PATH_BYTES_MAX];
    struct place other;
    return p->project && user_boxes(dir, sizeof(dir), NULL) == 0 && try_place(dir, p->name, &other, NULL) == 0;
}

/* The .pale folder a new project box goes into, with a .gitignore that keeps it out of the repository. */
static int project_dir(char *ret, size_t cap, struct pale_err *e)
{
    char cwd[PATH_BYTES_MAX];
    if (find_project(ret, cap))
        return 0;
    if (!getcwd(cwd, sizeof(cwd)) || !path_join(ret, cap, cwd, ".pale"))
        return err_os(e, "find the working folder");
    if (mkdir(ret, 0755) < 0)
        return err_os(e, "make %s", ret);
    own_fd dir = open(ret, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd ignore = openat(dir, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (ignore >= 0 && !fd_write_full(ignore, "*\n", 2))
        return err_os(e, "write %s/.gitignore", ret);
    return 0;
}

/* What was there before stays. */
static void undo_create(const struct place *p, const char *data, bool fresh)
{
    if (p->state[0] && strstr(p->state, "/boxes/"))
        (void)rmdir(p->state);
    if (fresh)
        (void)rmdir(data);
}

void place_undo(const struct place *p)
{
    undo_create(p, p->data, true);
}

static int create_in(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct place p = {0};
    struct stat st;
    set_owner(&p, dir);
    int r = try_place(dir, name, ret, e);
    if (r == 0)
        return err_set(e, PALE_EXISTS, "there is already a box %s (%s)", name, ret->data);
    if (r != -PALE_NOT_FOUND)
        return r;
    if (!path_join(path, sizeof(path), dir, name))
        return too_long(e);
    bool fresh = lstat(path, &st) < 0;
    r = make_dirs(path, 0700, e);
    if (r == 0 && !realpath(path, p.data))
        r = err_os(e, "resolve %s", path);
    snprintf(p.name, sizeof(p.name), "%s", name);
    if (r == 0)
        r = complete(&p, e);
    if (r == 0)
        r = make_dirs(p.state, 0700, e);
    if (r < 0) {
        undo_create(&p, path, fresh);
        return r;
    }
    *ret = p;
    return 0;
}

int place_create(const char *name, enum place_scope scope, const char *tenant, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_name(name, e);
    if (r < 0)
        return r;
    r = scope == SCOPE_PROJECT ? project_dir(dir, sizeof(dir), e)
        : tenant               ? tenant_boxes(tenant, dir, sizeof(dir), e)
                               : user_boxes(dir, sizeof(dir), e);
    if (r == 0)
        r = make_dirs(dir, scope == SCOPE_PROJECT ? 0755 : 0700, e);
    return r < 0 ? r : create_in(dir, name, ret, e);
}

int place_create_beside(const struct place *other, const char *name, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_name(name, e);
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(other->data, '/') - other->data), other->data);
    return r < 0 ? r : create_in(dir, name, ret, e);
}

void place_tidy(const struct place *p)
{
    char dir[PATH_BYTES_MAX];
    const char *data = p->data, *slash = strrchr(data, '/');
    if (!p->project)
        return;
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - data) : 0, data);
    own_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    bool other = !d;
    for (const struct dirent *en; d && (en = readdir(d));)
        other = other || (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && strcmp(en->d_name, ".gitignore") != 0);
    if (d)
        closedir(d);
    if (!other) {
        unlinkat(fd, ".gitignore", 0);
        rmdir(dir);
    }
}

/* The path was real when it was found; a symlink that stands in it now was put there by somebody. */
static int remove_data(const char *data, struct pale_err *e)
{
    char above[PATH_BYTES_MAX];
    const char *slash = strrchr(data, '/');
    snprintf(above, sizeof(above), "%.*s", (int)(slash - data - 1), data + 1);
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd dir = root < 0 ? -1 : fd_open_beneath(root, above[0] ? above : ".", O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return err_os(e, "open the folder that holds %s", data);
    return removal_tree(dir, slash + 1, e);
}

int place_remove(const struct place *p, bool data, struct pale_err *e)
{
    own_fd still = -1;
    int r = rename_hold_off(&still, e);
    if (r == 0 && access(p->state, F_OK) < 0 && access(p->data, F_OK) < 0)
        return err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name);
    if (r == 0)
        tidy_stop(p);
    if (r == 0 && data)
        r = remove_data(p->data, e);
    if (r == 0)
        r = removal_tree(AT_FDCWD, p->state, e);
    if (r == 0 && data && p->project)
        place_tidy(p);
    unlink(p->socket);
    return r;
}

static int each_in(const char *dir, int (*fn)(void *arg, const struct place *p), void *arg)
{
    DIR *d = opendir(dir);
    int r = 0;
    if (!d)
        return 0;
    for (const struct dirent *en; r >= 0 && (en = readdir(d));) {
        struct place p;
        if (path_is_box_name(en->d_name) && try_place(dir, en->d_name, &p, NULL) == 0)
            r = fn(arg, &p);
    }
    closedir(d);
    return r;
}

int place_each(bool all, int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = 0;
    (void)!rename_settle(NULL); /* as above */
    bool project = find_project(dir, sizeof(dir));
    if (project)
        r = each_in(dir, fn, arg);
    if (r >= 0 && (all || !project)) {
        if ((r = user_boxes(dir, sizeof(dir), e)) == 0)
            r = each_in(dir, fn, arg);
    }
    return r < 0 ? r : 0;
}

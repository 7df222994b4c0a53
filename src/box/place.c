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
#include "box/identity.h"
#include "box/keepers.h"
#include "box/life.h"
#include "box/removal.h"
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

/* The real path of a folder that may be reached through a symlink, as where the home folder is one. Layers lie there, and in no path to a
 * layer may be one. */
static int make_real_within(char *path, size_t cap, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    own_fd fd = path_is_normal(path) ? fd_open_real_dir(path) : -1;
    if (fd >= 0 || weak_word("real-paths"))
        return 0;
    if (!realpath(path, real))
        return err_os(e, "resolve %s", path);
    if (strlen(real) >= cap)
        return too_long(e);
    memcpy(path, real, strlen(real) + 1);
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
    if ((r = make_real_within(ret, cap, e)) < 0)
        return r;
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "%s must belong to you and be writable by nobody else", ret);
    return 0;
}

int place_config_dir(char *ret, size_t cap, struct pale_err *e)
{
    return xdg("XDG_CONFIG_HOME", ".config", ret, cap, e);
}

int place_approvals_dir(bool make, char *ret, size_t cap, struct pale_err *e)
{
    struct stat st;
    int r = place_config_dir(ret, cap, e);
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

int place_complete(struct place *p, struct pale_err *e)
{
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
void place_set_owner(struct place *p)
{
    char own[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(p->data, '/') - p->data), p->data);
    const char *last = strrchr(dir, '/');
    p->project = last && strcmp(last, "/.pale") == 0;
    p->tenant[0] = 0;
    if (!last || !path_is_box_name(last + 1) || (user_boxes(own, sizeof(own), NULL) == 0 && strcmp(own, dir) == 0))
        return;
    if (holds_tenants(dir, (size_t)(last - dir)))
        memcpy(p->tenant, last + 1, strlen(last + 1) + 1);
}

/* Makes the path of a folder, itself no symlink, its real one. The kernel tells in one step if that is so already. */
static int make_real(char path[PATH_BYTES_MAX], struct pale_err *e)
{
    struct stat st;
    own_fd fd = path_is_normal(path) ? fd_open_real_dir(path) : -1;
    if (fd >= 0)
        return 0;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, PALE_NOT_FOUND, "there is no folder %s", path);
    return make_real_within(path, PATH_BYTES_MAX, e);
}

/* The place of dir/name, and what is there. */
static int look_at(const char *dir, const char *name, struct place *ret, enum identity_kind *ret_kind, char *ret_other, struct pale_err *e)
{
    struct place p = {0};
    struct stat st;
    if (!path_join(p.data, sizeof(p.data), dir, name))
        return too_long(e);
    memcpy(p.name, name, strlen(name) + 1);
    *ret_kind = IDENTITY_NO_FOLDER;
    if (lstat(p.data, &st) < 0 && errno != ENOENT && errno != ENOTDIR)
        return err_os(e, "look at %s", p.data);
    if (lstat(p.data, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return err_set(e, PALE_CONFLICT, "%s is there and is no folder; move it away", p.data);
        int r = make_real(p.data, e);
        if (r == 0)
            r = identity_look(&p, ret_kind, ret_other, e);
        if (r < 0)
            return r;
    }
    place_set_owner(&p);
    *ret = p;
    return 0;
}

/* Looks for dir/name; 0 and a completed place if it is a box made here. PALE_NOT_FOUND: there is nothing; PALE_CONFLICT: something
 * else, which is told. */
static int try_place(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    enum identity_kind kind;
    char other[PATH_BYTES_MAX];
    struct place p;
    int r = look_at(dir, name, &p, &kind, other, e);
    if (r == 0)
        r = identity_refuse(&p, kind, other, e);
    if (r == 0)
        *ret = p;
    return r;
}

int place_check_name(const char *name, struct pale_err *e)
{
    char shown[100];
    if (path_is_box_name(name))
        return 0;
    return err_set(e, PALE_BAD_INPUT, "%s: a box name is 1 to %d of a-z, 0-9 and '-', and does not begin with '-'",
                   quote_into(shown, sizeof(shown), name, strlen(name)), BOX_NAME_MAX);
}

int place_any(const char *id, struct place *ret, struct pale_err *e)
{
    struct place p = {0};
    char born[BOX_ID_LEN + 1];
    if (!identity_is_id(id))
        return err_set(e, PALE_NOT_FOUND, "there is no box with that id");
    memcpy(p.id, id, sizeof(p.id));
    int r = place_complete(&p, e);
    if (r < 0)
        return r;
    own_fd state = open(p.state, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0 && errno != ENOENT)
        return err_os(e, "open %s", p.state);
    if (state < 0 || !identity_read(state, IDENTITY_BORN, born) || strcmp(born, id) != 0)
        return err_set(e, PALE_NOT_FOUND, "there is no box with the id %s", id);
    /* On its way to another name it is at the one place or the other. */
    static const char *const links[] = {IDENTITY_DATA, IDENTITY_MOVING, IDENTITY_REMOVING};
    p.lost = true;
    for (size_t i = 0; i < 3 && p.lost; i++) {
        char path[PATH_BYTES_MAX];
        if (!identity_recorded(p.state, links[i], path))
            continue;
        p.lost = i == 2 || !identity_is_at(path, id);
        /* Its folder may have been put elsewhere, and a symlink where it was. */
        if (!p.lost && (r = make_real_within(path, sizeof(path), e)) < 0)
            return r;
        if (!p.lost || !p.data[0])
            memcpy(p.data, path, sizeof(p.data));
    }
    p.lost = p.lost || faccessat(state, "policy", F_OK, 0) < 0;
    if (p.data[0]) {
        snprintf(p.name, sizeof(p.name), "%s", strrchr(p.data, '/') + 1);
        place_set_owner(&p);
    }
    *ret = p;
    return 0;
}

int place_by_id(const char *id, struct place *ret, struct pale_err *e)
{
    struct place p;
    int r = place_any(id, &p, e);
    if (r < 0)
        return r;
    if (p.lost)
        return err_set(e, PALE_NOT_FOUND,
                       "box %s (%s) is not at %s any more; `pale adopt %s` if you moved it, `pale forget %s` gives it up", p.name, id,
                       p.data, p.name, id);
    *ret = p;
    return 0;
}

int place_each_state(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_state_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    DIR *d = append(dir, sizeof(dir), "/boxes") ? opendir(dir) : NULL;
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open %s", dir);
    for (const struct dirent *en; r >= 0 && (en = readdir(d));) {
        struct place p;
        struct pale_err why;
        int one = identity_is_id(en->d_name) ? place_any(en->d_name, &p, &why) : -PALE_NOT_FOUND;
        if (one == 0)
            r = fn(arg, &p);
        else if (one != -PALE_NOT_FOUND)
            r = err_set(e, why.code, "%s", why.text);
    }
    closedir(d);
    return r < 0 ? r : 0;
}

struct each_made {
    int (*fn)(void *arg, const struct place *p);
    void *arg;
};

static int each_made(void *arg, const struct place *p)
{
    const struct each_made *x = arg;
    return p->lost ? 0 : x->fn(x->arg, p);
}

int place_each_made(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    struct each_made x = {fn, arg};
    return place_each_state(each_made, &x, e);
}

/* Boxes that were where one of this name is looked for, and are not there any more. */
struct lost {
    const char *name;
    enum place_scope scope;
    char cwd[PATH_BYTES_MAX], own[PATH_BYTES_MAX];
    struct place found;
    unsigned count;
};

static int match_lost(void *arg, const struct place *p)
{
    struct lost *l = arg;
    char above[PATH_BYTES_MAX], project[PATH_BYTES_MAX];
    if (!p->lost || strcmp(p->name, l->name) != 0)
        return 0;
    place_above(p->data, above);
    place_above(above, project);
    bool here = p->project ? l->scope != SCOPE_USER && l->cwd[0] && path_is_within(l->cwd, project[0] ? project : "/")
                           : l->scope != SCOPE_PROJECT && strcmp(above, l->own) == 0;
    if (here) {
        l->found = *p;
        l->count++;
    }
    return 0;
}

static int find_lost(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e)
{
    struct lost l = {.name = name, .scope = scope};
    char own[PATH_BYTES_MAX];
    if (!getcwd(l.cwd, sizeof(l.cwd)))
        l.cwd[0] = 0;
    if (user_boxes(own, sizeof(own), NULL) < 0 || !realpath(own, l.own))
        l.own[0] = 0;
    int r = place_each_state(match_lost, &l, e);
    if (r < 0)
        return r;
    if (l.count == 0)
        return err_set(e, PALE_NOT_FOUND, "there is no box %s here, and none was; `pale ls` lists them", name);
    if (l.count > 1)
        return err_set(e, PALE_CONFLICT, "%u boxes of the name %s were here, and have lost their folders; `pale ls` has their ids", l.count,
                       name);
    *ret = l.found;
    return 0;
}

/* A keeper that runs though the state folder of its box is gone. */
struct stray {
    const char *name;
    struct place found;
    unsigned count;
};

static int match_stray(void *arg, const struct keepers_one *k)
{
    struct stray *s = arg;
    if (!k->is_once && k->place.lost && (strcmp(k->place.name, s->name) == 0 || strcmp(k->place.id, s->name) == 0)) {
        s->found = k->place;
        s->count++;
    }
    return 0;
}

/* What there is to say if nothing has that name: perhaps something had. */
static int tell_absent(const char *name, enum place_scope scope, struct pale_err *e)
{
    struct place lost;
    struct pale_err why;
    int r = find_lost(name, scope, &lost, &why);
    if (r == 0)
        return err_set(e, PALE_NOT_FOUND,
                       "box %s (%s) is not at %s any more; `pale adopt %s` puts it back, or takes it where you moved it; `pale forget %s` "
                       "gives it up",
                       name, lost.id, lost.data, lost.id, lost.id);
    return r == -PALE_CONFLICT
               ? err_set(e, PALE_NOT_FOUND, "%s", why.text)
               : err_set(e, PALE_NOT_FOUND, "there is no box %s here; `pale ls` lists them, `pale create %s` makes one", name, name);
}

/* In one folder: 1 if it is there; 0, or an error that is worth telling. */
static int find_in(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    struct pale_err why;
    int r = try_place(dir, name, ret, &why);
    if (r == 0)
        return 1;
    if (r != -PALE_NOT_FOUND)
        return err_set(e, why.code, "%s", why.text);
    return 0;
}

int place_find(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e)
{
    char project[PATH_BYTES_MAX], own[PATH_BYTES_MAX];
    int r = place_check_name(name, e);
    if (r < 0)
        return r;
    bool has_project = scope != SCOPE_USER && find_project(project, sizeof(project));
    bool has_own = scope != SCOPE_PROJECT && user_boxes(own, sizeof(own), NULL) == 0;
    r = has_project ? find_in(project, name, ret, e) : 0;
    if (r == 0 && has_own)
        r = find_in(own, name, ret, e);
    if (r != 0)
        return r < 0 ? r : 0;
    if (scope == SCOPE_ANY && identity_is_id(name))
        return place_by_id(name, ret, e);
    return tell_absent(name, scope, e);
}

int place_find_any(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e)
{
    struct pale_err why;
    int r = place_find(name, scope, ret, e);
    if (r == 0 || (identity_is_id(name) && place_any(name, ret, NULL) == 0) || find_lost(name, scope, ret, NULL) == 0)
        return 0;
    struct stray s = {.name = name};
    if (keepers_each(match_stray, &s, &why) < 0 || s.count != 1)
        return r;
    *ret = s.found;
    return 0;
}

/* By its id: what is there where it was? */
static int look_by_id(const char *id, struct place *ret, enum identity_kind *ret_kind, char *ret_other, struct pale_err *e)
{
    struct stat st;
    int r = place_any(id, ret, e);
    struct place there = *ret;
    *ret_kind = IDENTITY_NO_FOLDER;
    if (r < 0 || !there.data[0] || lstat(there.data, &st) < 0)
        return r;
    r = identity_look(&there, ret_kind, ret_other, e);
    if (r == 0 && strcmp(there.id, ret->id) != 0)
        *ret_kind = IDENTITY_NO_FOLDER; /* another's */
    return r;
}

int place_look(const char *name, enum place_scope scope, struct place *ret, enum identity_kind *ret_kind, char *ret_other,
               struct pale_err *e)
{
    char dir[2][PATH_BYTES_MAX];
    bool has[2] = {scope != SCOPE_USER && find_project(dir[0], sizeof(dir[0])),
                   scope != SCOPE_PROJECT && user_boxes(dir[1], sizeof(dir[1]), NULL) == 0};
    int r = place_check_name(name, e);
    for (int i = 0; r == 0 && i < 2; i++) {
        r = has[i] ? look_at(dir[i], name, ret, ret_kind, ret_other, e) : 0;
        if (r == 0 && has[i] && *ret_kind != IDENTITY_NO_FOLDER)
            return 0;
    }
    if (r < 0 || identity_is_id(name))
        return r < 0 ? r : look_by_id(name, ret, ret_kind, ret_other, e);
    *ret_kind = IDENTITY_NO_FOLDER;
    return find_lost(name, scope, ret, e);
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

bool place_shadows(const struct place *p)
{
    char dir[PATH_BYTES_MAX];
    struct place other;
    return p->project && user_boxes(dir, sizeof(dir), NULL) == 0 && try_place(dir, p->name, &other, NULL) == 0;
}

/* A .pale folder, with a .gitignore that keeps it out of the repository. */
static int make_project_dir(const char *path, struct pale_err *e)
{
    if (mkdir(path, 0755) < 0)
        return err_os(e, "make %s", path);
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd ignore = openat(dir, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (ignore >= 0 && !fd_write_full(ignore, "*\n", 2))
        return err_os(e, "write %s/.gitignore", path);
    return 0;
}

/* The one that a new project box goes into. */
static int project_dir(char *ret, size_t cap, struct pale_err *e)
{
    char cwd[PATH_BYTES_MAX];
    if (find_project(ret, cap))
        return 0;
    if (!getcwd(cwd, sizeof(cwd)) || !path_join(ret, cap, cwd, ".pale"))
        return err_os(e, "find the working folder");
    return make_project_dir(ret, e);
}

/* A name is free where there is nothing, an empty folder, or what is left of a box that somebody was killed over while he removed it. */
static int check_free(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    enum identity_kind kind;
    char other[PATH_BYTES_MAX];
    int r = look_at(dir, name, ret, &kind, other, e);
    if (r == 0 && kind == IDENTITY_REMOVED && (r = place_remove(ret, true, e)) == 0)
        r = look_at(dir, name, ret, &kind, other, e);
    if (r < 0)
        return r;
    if (kind == IDENTITY_WHOLE)
        return err_set(e, PALE_EXISTS, "there is already a box %s (%s)", name, ret->data);
    if (kind == IDENTITY_NO_FOLDER)
        return 0;
    if (kind == IDENTITY_UNMARKED) {
        own_fd fd = fd_open_real_dir(ret->data);
        if (fd >= 0 && fd_has_entries(fd, ".", e) == 0)
            return 0;
    }
    return identity_refuse(ret, kind, other, e);
}

int place_check_new_name(const char *name, struct pale_err *e)
{
    return identity_is_id(name)
               ? err_set(e, PALE_BAD_INPUT, "%s is the form of an id, by which boxes are named too; choose another name", name)
               : place_check_name(name, e);
}

static int plan_in(const char *dir, const char *name, struct place *ret, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    if (weak_word("names") && strchr(name, '/') && path_join(real, sizeof(real), dir, name))
        (void)!make_dirs(real, 0700, NULL);
    int r = check_free(dir, name, ret, e);
    if (r < 0)
        return r;
    if (!realpath(dir, real))
        return err_os(e, "resolve %s", dir);
    if (!path_join(ret->data, sizeof(ret->data), real, name))
        return too_long(e);
    place_set_owner(ret);
    r = identity_mint(ret->id, e);
    if (weak_word("minted-ids")) {
        char hex[SHA256_HEX];
        sha256_hex(ret->data, strlen(ret->data), hex);
        memcpy(ret->id, hex, BOX_ID_LEN);
    }
    return r < 0 ? r : place_complete(ret, e);
}

int place_plan(const char *name, enum place_scope scope, const char *tenant, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_new_name(name, e);
    if (r < 0)
        return r;
    r = scope == SCOPE_PROJECT ? project_dir(dir, sizeof(dir), e)
        : tenant               ? tenant_boxes(tenant, dir, sizeof(dir), e)
                               : user_boxes(dir, sizeof(dir), e);
    if (r == 0)
        r = make_dirs(dir, scope == SCOPE_PROJECT ? 0755 : 0700, e);
    return r < 0 ? r : plan_in(dir, name, ret, e);
}

int place_plan_beside(const struct place *other, const char *name, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_check_new_name(name, e);
    place_above(other->data, dir);
    return r < 0 ? r : plan_in(dir, name, ret, e);
}

void place_above(const char *path, char ret[PATH_BYTES_MAX])
{
    snprintf(ret, PATH_BYTES_MAX, "%.*s", (int)(strrchr(path, '/') - path), path);
}

int place_open_above(const struct place *p, struct pale_err *e)
{
    char above[PATH_BYTES_MAX];
    place_above(p->data, above);
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dir = root < 0 ? -1 : fd_open_beneath(root, above[0] ? above + 1 : ".", O_RDONLY | O_DIRECTORY, 0);
    return dir < 0 ? err_os(e, "open the folder that holds %s", p->data) : dir;
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
    char text[4] = "";
    own_fd ignore = other ? -1 : openat(fd, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (ignore >= 0 && (read(ignore, text, sizeof(text)) != 2 || memcmp(text, "*\n", 2) != 0))
        return; /* somebody has written another */
    if (!other) {
        unlinkat(fd, ".gitignore", 0);
        rmdir(dir);
    }
}

/* The folder of the box itself, and of no other that has its path by now. What is half removed has another name. */
static int remove_data(const struct place *p, struct pale_err *e)
{
    char gone[BOX_ID_LEN + 8], path[BOX_NAME_MAX + 8], id[BOX_ID_LEN + 1];
    struct pale_err why;
    own_fd dir = place_open_above(p, &why);
    if (dir < 0)
        return why.os == ENOENT ? 0 : err_set(e, why.code, "%s", why.text);
    snprintf(gone, sizeof(gone), PLACE_GONE "%s", p->id);
    snprintf(path, sizeof(path), "%s/" IDENTITY_ID, p->name);
    if (identity_read(dir, path, id) && strcmp(id, p->id) == 0 && renameat(dir, p->name, dir, gone) < 0)
        return err_os(e, "take away %s", p->data);
    return removal_tree(dir, gone, e);
}

/* From this on it is no box any more. */
static int mark_removed(int state, struct pale_err *e)
{
    if (renameat(state, IDENTITY_DATA, state, IDENTITY_REMOVING) == 0)
        return 0;
    if (errno == ENOENT && renameat(state, IDENTITY_MOVING, state, IDENTITY_REMOVING) == 0)
        return 0;
    return errno == ENOENT ? 0 : err_os(e, "write that the box is being removed");
}

/* Whoever finds the folder can make a box of it again (box/adopt.h): of the state stays what says which layers there are. */
static int keep_layers_only(const struct place *p, int state, struct pale_err *e)
{
    static const char *const kept[] = {".", "..", IDENTITY_BORN, IDENTITY_DATA, "stack", "layers"};
    own_fd list = openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = unlinkat(state, "policy", 0) < 0 && errno != ENOENT ? err_os(e, "remove the policy of %s", p->name) : 0;
    DIR *d = list < 0 ? NULL : fdopendir(fcntl(list, F_DUPFD_CLOEXEC, 3));
    for (const struct dirent *en; d && r == 0 && (en = readdir(d));) {
        bool stays = false;
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            stays = stays || strcmp(en->d_name, kept[i]) == 0;
        if (!stays && unlinkat(state, en->d_name, 0) < 0 && errno != ENOENT)
            r = errno == EISDIR || errno == EPERM ? fd_remove_tree(state, en->d_name, e) : err_os(e, "remove %s/%s", p->state, en->d_name);
    }
    if (d)
        closedir(d);
    return r;
}

/* Half removed it has another name, by which nobody takes it for anything else. */
static int remove_state(const struct place *p, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX], gone[BOX_ID_LEN + 8];
    place_above(p->state, boxes);
    own_fd dir = open(boxes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", boxes);
    snprintf(gone, sizeof(gone), PLACE_GONE "%s", p->id);
    if (renameat(dir, p->id, dir, gone) < 0 && errno != ENOENT)
        return err_os(e, "take away %s", p->state);
    return removal_tree(dir, gone, e);
}

int place_remove(const struct place *p, bool data, struct pale_err *e)
{
    own_fd state = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0)
        return errno == ENOENT ? err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name) : err_os(e, "open %s", p->state);
    tidy_stop(p);
    if (!data)
        return keep_layers_only(p, state, e);
    int r = mark_removed(state, e);
    if (r < 0)
        return r;
    if ((r = remove_data(p, e)) == 0)
        r = remove_state(p, e);
    if (r < 0)
        return err_prefix(e, "box %s is half removed, and `pale gc` takes away the rest", p->name);
    if (p->project)
        place_tidy(p);
    unlink(p->socket);
    return r;
}

int place_forget(const struct place *p, struct pale_err *e)
{
    own_fd state = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0)
        return err_os(e, "open %s", p->state);
    tidy_stop(p);
    int r = unlinkat(state, "policy", 0) < 0 && errno != ENOENT ? err_os(e, "remove the policy of %s", p->name) : 0;
    unlink(p->socket);
    return r < 0 ? r : remove_state(p, e);
}

int place_remake(struct place *p, bool there, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], real[PATH_BYTES_MAX], id[BOX_ID_LEN + 32];
    struct stat st;
    int r = 0;
    if (!there)
        r = project_dir(dir, sizeof(dir), e);
    else {
        place_above(p->data, dir);
        r = lstat(dir, &st) == 0 ? 0 : make_project_dir(dir, e);
    }
    if (r == 0 && (!realpath(dir, real) || !path_join(p->data, sizeof(p->data), real, p->name)))
        r = err_os(e, "resolve %s", dir);
    if (r == 0 && lstat(p->data, &st) == 0)
        r = err_set(e, PALE_EXISTS, "%s is there, and is not the folder of box %s; move it away", p->data, p->id);
    if (r < 0)
        return r;
    own_fd above = place_open_above(p, e);
    if (above < 0)
        return above;
    snprintf(id, sizeof(id), LIFE_UNBORN "%s", p->id);
    if (mkdirat(above, id, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make a folder beside %s", p->data);
    snprintf(id, sizeof(id), LIFE_UNBORN "%s/" IDENTITY_ID, p->id);
    return symlinkat(p->id, above, id) < 0 && errno != EEXIST ? err_os(e, "write the id of box %s", p->name) : 0;
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
    bool project = find_project(dir, sizeof(dir));
    if (project)
        r = each_in(dir, fn, arg);
    if (r >= 0 && (all || !project)) {
        if ((r = user_boxes(dir, sizeof(dir), e)) == 0)
            r = each_in(dir, fn, arg);
    }
    return r < 0 ? r : 0;
}

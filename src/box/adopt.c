/* SPDX-License-Identifier: Apache-2.0 */
/* Takes boxes again whose folders say different things, and gives them up.
 *
 * How it works: identity_look says what a folder is. Each way to make a box of it ends in one rename of one link, which is the instant at
 * which it becomes one: whoever is killed before leaves what there was, and the next attempt begins anew. */
#include "box/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/fork.h"
#include "box/identity.h"
#include "box/kept_log.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/policymark.h"
#include "box/removal.h"
#include "box/stack.h"

#define ADOPTING "adopting" /* a link in a state folder: the id that the folder had, whose id is to be changed */

/* A box that is worked on: nobody else does, and it does not run. */
struct hold {
    int state, lock, folder;
};

static void hold_done(struct hold *h)
{
    own_close(&h->folder);
    own_close(&h->lock);
    own_close(&h->state);
}
#define own_hold CLEANUP(hold_done) struct hold

static int lock_file(int fd, const struct place *p, const char *what, struct pale_err *e)
{
    if (fd < 0)
        return err_os(e, "open %s", what);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? err_set(e, PALE_BUSY, "box %s (%s) is running; `pale stop %s` it first", p->name, p->id, p->id)
                                : err_os(e, "lock %s", what);
}

/* Its state folder, and its data folder if it has one. */
static int hold_box(const struct place *p, bool folder, struct hold *ret, struct pale_err *e)
{
    ret->state = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (ret->state < 0)
        return err_os(e, "open %s", p->state);
    ret->lock = openat(ret->state, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = lock_file(ret->lock, p, p->state, e);
    if (r < 0 || !folder)
        return r;
    ret->folder = open(p->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return lock_file(ret->folder, p, p->data, e);
}

/* A link gets another target, at one instant. */
static int replace_link(int dir, const char *name, const char *target, struct pale_err *e)
{
    char temporary[32];
    snprintf(temporary, sizeof(temporary), ".%s.new", name);
    if (unlinkat(dir, temporary, 0) < 0 && errno != ENOENT)
        return err_os(e, "remove %s", temporary);
    if (symlinkat(target, dir, temporary) < 0 || renameat(dir, temporary, dir, name) < 0 || (fsync(dir) < 0 && errno != EINVAL))
        return err_os(e, "write the link %s", name);
    return 0;
}

/* Before the deed. */
static int tell(const struct place *p, enum audit_kind kind, const char *from, const char *caller, struct pale_err *e)
{
    const struct audit_deed d = {p->state, p->name, p->id, caller, "box.adopt", kind};
    return audit_record(&d, (const char *const[]){"from", from, "to", p->data, NULL}, e);
}

/* --- a folder that was moved --- */

/* The folder that a project's box belongs to. */
static void project_of(const char *data, char ret[PATH_BYTES_MAX])
{
    char pale[PATH_BYTES_MAX];
    place_above(data, pale);
    place_above(pale, ret);
}

/* What the policy says of the project that was moved, it says of it where it is now. */
int adopt_move_project(struct policy *policy, const char *from_data, const char *to_data, struct pale_err *e)
{
    char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    project_of(from_data, from);
    project_of(to_data, to);
    if (!policy->project_path || !path_is_within(policy->project_path, from))
        return 0;
    int n = snprintf(path, sizeof(path), "%s%s", to, policy->project_path + strlen(from));
    char *copy = n > 0 && (size_t)n < sizeof(path) ? strdup(path) : NULL;
    if (!copy)
        return n >= (int)sizeof(path) ? err_set(e, PALE_LIMIT, "the path of the project is too long") : err_nomem(e);
    free(policy->project_path);
    policy->project_path = copy;
    return 0;
}

static int adopt_moved(const struct adopt_order *o, const struct place *p, const char *from, struct pale_err *e)
{
    own_hold h = {-1, -1, -1};
    own_policy policy = {0};
    int r = hold_box(p, true, &h, e);
    if (r == 0 && identity_is_at(from, p->id))
        r = err_set(e, PALE_CONFLICT, "box %s is at %s again", p->name, from);
    if (r == 0)
        r = life_policy(p, &policy, e);
    if (r == 0)
        r = life_clear(p, e);
    if (r == 0)
        r = tell(p, AUDIT_BOX, from, o->caller, e);
    if (r == 0 && p->project && (r = adopt_move_project(&policy, from, p->data, e)) == 0)
        r = policymark_write(h.state, "policy", &policy, e);
    if (r == 0)
        r = replace_link(h.state, IDENTITY_DATA, p->data, e);
    if (r == 0 && unlinkat(h.state, IDENTITY_MOVING, 0) < 0 && errno != ENOENT)
        r = err_os(e, "remove %s/" IDENTITY_MOVING, p->state);
    if (r == 0)
        (void)!futimens(h.state, NULL); /* a daemon that watches hears of this */
    return r;
}

/* --- a copy --- */

/* Nothing but the id: the files of such a box are not in its folder. */
static int check_is_bare(int folder, const struct place *p, const char *at, struct pale_err *e)
{
    own_fd list = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = list < 0 ? NULL : fdopendir(fcntl(list, F_DUPFD_CLOEXEC, 3));
    bool other = !d;
    for (const struct dirent *en; d && (en = readdir(d));)
        other = other || (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && strcmp(en->d_name, IDENTITY_ID) != 0);
    if (d)
        closedir(d);
    return other ? err_set(e, PALE_CONFLICT,
                           "%s is a copy of the files of box %s, which is at %s: move it away, and `pale fork` that box, or export it",
                           p->data, p->id, at)
                 : 0;
}

static int adopt_copy(const struct adopt_order *o, const struct place *p, const char *at, struct place *ret, struct pale_err *e)
{
    struct place original;
    struct fork_order order = {.name = p->name, .count = 1, .caller = o->caller, .beside = p};
    int r = place_by_id(p->id, &original, e);
    own_fd folder = r < 0 ? -1 : open(p->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r == 0 && folder < 0)
        r = err_os(e, "open %s", p->data);
    if (r == 0)
        r = check_is_bare(folder, p, at, e);
    if (r == 0 && unlinkat(folder, IDENTITY_ID, 0) < 0)
        r = err_os(e, "remove %s/" IDENTITY_ID, p->data);
    if (r < 0)
        return r;
    r = fork_make(&original, &order, ret, e);
    if (r < 0)
        (void)!symlinkat(p->id, folder, IDENTITY_ID);
    return r;
}

/* --- what a box without a policy has left --- */

struct half {
    const char *id;
    struct place found;
    bool is_found;
};

/* The state folder of somebody who was killed while he did this. */
static int match_half(void *arg, const struct place *p)
{
    struct half *h = arg;
    char was[BOX_ID_LEN + 1];
    own_fd state = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state >= 0 && identity_read(state, ADOPTING, was) && strcmp(was, h->id) == 0) {
        h->found = *p;
        h->is_found = true;
    }
    return 0;
}

/* A state folder with a new id: that of the box, with its list of layers and perhaps the layers, or a new one. */
static int make_state(const struct place *p, struct place *ret, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX];
    struct half half = {.id = p->id};
    int r = place_each_state(match_half, &half, e);
    if (r < 0)
        return r;
    *ret = *p;
    memcpy(ret->id, half.found.id, sizeof(ret->id));
    if (!half.is_found)
        r = identity_mint(ret->id, e);
    if (r == 0)
        r = place_complete(ret, e);
    if (r < 0 || half.is_found)
        return r;
    place_above(ret->state, boxes);
    if (rename(p->state, ret->state) < 0 && (errno != ENOENT || (mkdir(boxes, 0700) < 0 && errno != EEXIST) || mkdir(ret->state, 0700) < 0))
        return err_os(e, "make folder %s", ret->state);
    return 0;
}

/* The list of layers, from the state folder if it is there, else the copy in the data folder. id: of the box that wrote it. */
static int find_list(const struct place *p, const char *id, struct stack *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    struct place of = *p;
    memcpy(of.id, id, sizeof(of.id));
    if (!path_join(path, sizeof(path), p->state, "stack"))
        return err_set(e, PALE_LIMIT, "path too long: %s", p->state);
    return lstat(path, &st) == 0 || p->project ? stack_load(&of, ret, e) : stack_load_copy(&of, ret, e);
}

/* From here on it can only go forward: whoever is killed is followed by somebody who does the same again. */
static int give_new_id(const struct adopt_order *o, const struct place *p, const struct place *new, int folder, struct pale_err *e)
{
    own_stack s = {0};
    stack_init(&s);
    own_fd state = open(new->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0)
        return err_os(e, "open %s", new->state);
    int r = replace_link(state, ADOPTING, p->id, e);
    if (r == 0)
        r = replace_link(state, IDENTITY_BORN, new->id, e);
    if (r == 0)
        r = replace_link(state, IDENTITY_DATA, p->data, e);
    if (r == 0)
        r = find_list(new, p->id, &s, e);
    memcpy(s.box, new->id, sizeof(s.box));
    /* One that was never begun will be made under the new id. */
    char open_layer[PATH_BYTES_MAX];
    struct pale_err why;
    if (r == 0 && layerdir_path(new, s.open, open_layer, sizeof(open_layer), &why) == -PALE_NOT_FOUND)
        memcpy(s.open_maker, new->id, sizeof(s.open_maker));
    if (s.open_born_ns == 0)
        s.open_born_ns = STACK_LONG_AGO; /* older than this id, and nobody can say how old */
    if (r == 0)
        r = stack_save(new, &s, e);
    if (r == 0)
        r = tell(new, AUDIT_BIRTH, p->id, o->caller, e);
    if (r == 0)
        r = policymark_write(state, "policy", o->policy, e);
    if (r == 0)
        r = replace_link(folder, IDENTITY_ID, new->id, e);
    if (r == 0 && unlinkat(state, ADOPTING, 0) < 0)
        r = err_os(e, "remove %s/" ADOPTING, new->state);
    return r;
}

/* Only its policy is gone: it is the same box, with its log. */
static int give_policy(const struct adopt_order *o, const struct place *p, struct pale_err *e)
{
    own_hold h = {-1, -1, -1};
    int r = hold_box(p, true, &h, e);
    if (r == 0)
        r = tell(p, AUDIT_BOX, p->data, o->caller, e);
    return r < 0 ? r : policymark_write(h.state, "policy", o->policy, e);
}

static int adopt_left(const struct adopt_order *o, const struct place *p, struct place *ret, struct pale_err *e)
{
    char was[BOX_ID_LEN + 1], log[PATH_BYTES_MAX];
    own_stack s = {0};
    stack_init(&s);
    struct stat st;
    if (path_join(log, sizeof(log), p->state, "audit") && lstat(log, &st) == 0)
        return give_policy(o, p, e);
    own_fd folder = open(p->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = lock_file(folder, p, p->data, e);
    if (r == 0 && (!identity_read(folder, IDENTITY_ID, was) || strcmp(was, p->id) != 0))
        r = err_set(e, PALE_BUSY, "%s has become another's; try again", p->data);
    /* What cannot be read is told before anything is changed. */
    if (r == 0)
        r = find_list(p, p->id, &s, e);
    if (r == 0)
        r = make_state(p, ret, e);
    return r < 0 ? r : give_new_id(o, p, ret, folder, e);
}

/* --- a folder that is gone --- */

/* Files of a project's box are in its state folder: only the folder by which it is found has to be made. */
static int adopt_lost(const struct adopt_order *o, struct place *p, struct pale_err *e)
{
    char from[PATH_BYTES_MAX], project[PATH_BYTES_MAX], folder[PATH_BYTES_MAX + BOX_ID_LEN];
    own_hold h = {-1, -1, -1};
    own_policy policy = {0};
    struct stat st;
    if (!p->project)
        return err_set(e, PALE_CONFLICT, "the files of box %s went with its folder %s: put that back, or `pale forget %s`", p->name,
                       p->data, p->id);
    memcpy(from, p->data, sizeof(from));
    project_of(p->data, project);
    int r = hold_box(p, false, &h, e);
    if (r == 0)
        r = life_policy(p, &policy, e);
    if (r == 0)
        r = place_remake(p, stat(project, &st) == 0, e);
    if (r == 0)
        r = life_clear(p, e);
    if (r == 0)
        r = tell(p, AUDIT_BOX, from, o->caller, e);
    if (r == 0 && (r = adopt_move_project(&policy, from, p->data, e)) == 0)
        r = policymark_write(h.state, "policy", &policy, e);
    if (r == 0)
        r = replace_link(h.state, IDENTITY_DATA, p->data, e);
    if (r < 0)
        return r;
    /* It is there from here on. */
    place_above(p->data, folder);
    snprintf(folder + strlen(folder), sizeof(folder) - strlen(folder), "/" LIFE_UNBORN "%s", p->id);
    if (rename(folder, p->data) < 0) {
        r = err_os(e, "make folder %s", p->data);
        (void)!removal_tree(AT_FDCWD, folder, NULL);
        return r;
    }
    (void)!futimens(h.state, NULL);
    return 0;
}

/* --- all --- */

int adopt_box(const struct adopt_order *o, struct place *ret, enum adopt_kind *ret_kind, struct pale_err *e)
{
    enum identity_kind kind;
    char other[PATH_BYTES_MAX];
    struct place p;
    int r = place_look(o->name, o->scope, &p, &kind, other, e);
    if (r < 0)
        return r;
    *ret = p;
    if (o->says_policy && (kind == IDENTITY_MOVED || kind == IDENTITY_COPIED || kind == IDENTITY_NO_FOLDER))
        return err_set(e, PALE_BAD_INPUT,
                       "box %s has a policy, which it keeps: `pale adopt %s` without flags of a policy, then `pale policy set`", p.name,
                       o->name);
    switch (kind) {
    case IDENTITY_MOVED:
        *ret_kind = ADOPT_MOVED;
        return adopt_moved(o, &p, other, e);
    case IDENTITY_COPIED:
        *ret_kind = ADOPT_FORKED;
        return adopt_copy(o, &p, other, ret, e);
    case IDENTITY_STATELESS:
        *ret_kind = ADOPT_MADE;
        return adopt_left(o, &p, ret, e);
    case IDENTITY_NO_FOLDER:
        *ret_kind = ADOPT_PUT_BACK;
        return adopt_lost(o, ret, e);
    case IDENTITY_WHOLE:
        return err_set(e, PALE_EXISTS, "box %s is where it belongs (%s): there is nothing to adopt", p.name, p.data);
    default:
        return identity_refuse(&p, kind, other, e);
    }
}

int adopt_forget(const struct place *p, bool force, struct pale_err *e)
{
    own_hold h = {-1, -1, -1};
    char layers[PATH_BYTES_MAX], log[PATH_BYTES_MAX];
    bool has = false;
    if (!p->lost)
        return err_set(e, PALE_CONFLICT, "box %s is where it belongs (%s): `pale rm %s` removes it", p->name, p->data, p->name);
    int r = hold_box(p, false, &h, e);
    if (r == 0 && path_join(layers, sizeof(layers), p->state, "layers")) {
        r = fd_has_entries(h.state, "layers", e);
        has = r > 0;
        r = r < 0 ? r : 0;
    }
    if (r == 0 && has && !force)
        r = err_set(
            e, PALE_CONFLICT,
            "the files of box %s (%s) are still there, in %s; `pale adopt %s` brings it back, `pale forget -f %s` removes them for good",
            p->name, p->id, layers, p->id, p->id);
    if (r == 0)
        r = life_clear(p, e);
    if (r == 0)
        r = kept_log_save(p, "local", force, log, e);
    return r < 0 ? r : place_forget(p, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making and ending of boxes. */
#include "box/life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/claims.h"
#include "box/birth.h"
#include "box/identity.h"
#include "box/keepers.h"
#include "box/layerdir.h"
#include "box/reach.h"
#include "box/removal.h"
#include "box/rename.h"
#include "confine/cgroup.h"
#include "confine/kernel.h"
#include "net/httphead.h"
#include "wire/message.h"

#define MAKE_WAIT_MS 2000
#define STOP_WAIT_MS 10000
#define LOCK_PAUSE_US 50
#define SWEEP_WAIT_MS 20       /* a keeper that was killed just now lets go of its lock in less */
#define STOP_ASK_AGAIN_MS 2500 /* longer than a keeper gives its last clients */

/* Waits for a lock until then. 1: somebody still has it. */
static int try_lock(int fd, int64_t until)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        if (clock_ms() > until)
            return 1;
        usleep(LOCK_PAUSE_US);
    }
    return 0;
}

uint64_t life_born(const struct place *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 16; i++)
        v = v << 4 | (uint64_t)http_hex(p->id[i]);
    return v >> 1 | 1;
}

/* --- making --- */

/* A box that is being made. Its folder has another name until it is one. */
struct making {
    struct place place; /* as it will be */
    struct place now;   /* the same, with the folder that it has now */
    int state_fd, above_fd;
    char folder[BOX_ID_LEN + 8];
    bool is_box;
};

static void making_done(struct making *m)
{
    if (!m->is_box && m->above_fd >= 0)
        (void)!removal_tree(m->above_fd, m->folder, NULL);
    if (!m->is_box && m->state_fd >= 0)
        (void)!removal_tree(AT_FDCWD, m->place.state, NULL);
    own_close(&m->above_fd);
    own_close(&m->state_fd);
}
#define own_making CLEANUP(making_done) struct making

/* Its state folder is there from the first, locked: so that nobody takes it for what the dead have left (life_sweep_all). Who sweeps holds
 * that lock for the moment in which he looks. */
static int make_state(struct making *m, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX];
    const struct place *p = &m->place;
    place_above(p->state, boxes);
    if (mkdir(p->state, 0700) < 0 && (errno != ENOENT || (mkdir(boxes, 0700) < 0 && errno != EEXIST) || mkdir(p->state, 0700) < 0) &&
        !(weak_word("minted-ids") && errno == EEXIST))
        return err_os(e, "make folder %s", p->state);
    m->state_fd = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (weak_word("minted-ids") && m->state_fd >= 0 && faccessat(m->state_fd, "policy", F_OK, 0) == 0)
        return 0; /* of another box */
    if (m->state_fd < 0 || try_lock(m->state_fd, clock_ms() + MAKE_WAIT_MS) != 0 || symlinkat(p->id, m->state_fd, IDENTITY_BORN) < 0 ||
        symlinkat(p->data, m->state_fd, IDENTITY_MOVING) < 0)
        return err_os(e, "write %s", p->state);
    return 0;
}

static int make_folder(struct making *m, struct pale_err *e)
{
    char id[BOX_ID_LEN + 16], above[PATH_BYTES_MAX];
    m->above_fd = place_open_above(&m->place, e);
    if (m->above_fd < 0)
        return m->above_fd;
    snprintf(m->folder, sizeof(m->folder), LIFE_UNBORN "%s", m->place.id);
    snprintf(id, sizeof(id), "%s/" IDENTITY_ID, m->folder);
    if (mkdirat(m->above_fd, m->folder, 0700) < 0 || symlinkat(m->place.id, m->above_fd, id) < 0)
        return err_os(e, "make the folder of box %s beside %s", m->place.name, m->place.data);
    m->now = m->place;
    place_above(m->place.data, above);
    return path_join(m->now.data, sizeof(m->now.data), above, m->folder) ? 0 : err_set(e, PALE_LIMIT, "path too long: %s", m->place.data);
}

/* One that stands on nothing has no list yet (box/stack.h). */
static int save_stack(const struct making *m, const struct stack *given, struct pale_err *e)
{
    if (!given)
        return 0;
    struct stack s = *given; /* the lists stay the caller's */
    memcpy(s.box, m->place.id, sizeof(s.box));
    memcpy(s.open_maker, m->place.id, sizeof(s.open_maker));
    if (!s.open[0])
        memcpy(s.open, m->place.id, sizeof(s.open));
    return stack_save(&m->now, &s, e);
}

/* The folder gets its name, which nobody else has taken meanwhile; one with nothing in it is no hindrance. */
static int become_box(struct making *m, struct pale_err *e)
{
    const char *name = strrchr(m->place.data, '/') + 1;
    int r = syscall(SYS_renameat2, m->above_fd, m->folder, m->above_fd, name, RENAME_NOREPLACE);
    /* Where there is an empty one, or the file system knows no flags: a folder takes the place of an empty one at most. */
    if (r < 0 && (errno == EEXIST || errno == EINVAL))
        r = renameat(m->above_fd, m->folder, m->above_fd, name);
    if (r < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR))
        return err_set(e, PALE_EXISTS, "there is already a box %s (%s), or something else of that name", name, m->place.data);
    if (r < 0)
        return err_os(e, "make folder %s", m->place.data);
    m->is_box = true;
    /* It is found by either link. */
    (void)!renameat(m->state_fd, IDENTITY_MOVING, m->state_fd, IDENTITY_DATA);
    return 0;
}

int life_make(const struct life_order *o, struct place *ret, struct pale_err *e)
{
    own_buf text = {0};
    own_making m = {.state_fd = -1, .above_fd = -1};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(o->policy, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes", POLICY_TEXT_MAX);
    int r = o->beside ? place_plan_beside(o->beside, o->name, &m.place, e) : place_plan(o->name, o->scope, o->tenant, &m.place, e);
    if (r == 0)
        r = make_state(&m, e);
    if (r == 0)
        r = make_folder(&m, e);
    if (r == 0)
        r = save_stack(&m, o->stack, e);
    if (r == 0)
        r = layerdir_allot(&m.now, o->policy, e);
    if (r == 0 && o->begin)
        r = o->begin(o->arg, &m.now, e);
    /* No box is without a log: one that is gone later was taken away. */
    if (r == 0)
        r = birth_record(&m.now, buf_text(&text), text.len, o->durable, e);
    if (r == 0)
        r = fd_replace_file(m.state_fd, "policy", text.data, text.len, 0600, o->durable, e);
    if (r == 0)
        r = become_box(&m, e);
    if (r == 0)
        *ret = m.place;
    else if (!m.is_box && m.place.project)
        place_tidy(&m.place);
    return r;
}

int life_keep(const struct place *p, struct pale_err *e)
{
    const char *const folders[] = {p->state, p->data};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        own_fd fd = open(folders[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        own_fd above = fd < 0 ? -1 : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above < 0 || fsync(fd) < 0 || fsync(above) < 0)
            return err_os(e, "write %s to the disk", folders[i]);
    }
    return 0;
}

/* Reads into a buffer that has its maximum. */
static int read_policy(const struct place *p, struct buf *text, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/policy", p->state);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(e, "open %s", path);
    int r = fd_read_all(fd, text, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

int life_policy(const struct place *p, struct policy *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    int r = read_policy(p, &text, e);
    if (r == 0)
        r = policy_parse(buf_text(&text), text.len, ret, e);
    return r < 0 ? err_prefix(e, "the policy of %s", p->name) : 0;
}

int life_has_line(const struct place *p, const char *begin, bool *ret, struct pale_err *e)
{
    char mem[4096];
    own_buf text = {0};
    buf_init_lent(&text, POLICY_TEXT_MAX, mem, sizeof(mem));
    int r = read_policy(p, &text, e);
    if (r < 0)
        return r;
    const char *at = buf_text(&text);
    size_t n = strlen(begin);
    *ret = false;
    while (at && !*ret) {
        *ret = strncmp(at, begin, n) == 0;
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return 0;
}

int life_clear(const struct place *p, struct pale_err *e)
{
    const char *id = p->id;
    char runtime[PATH_BYTES_MAX], socket[PATH_BYTES_MAX];
    int r = place_runtime_dir(runtime, sizeof(runtime), e);
    if (r < 0)
        return r;
    cgroup_sweep(id);
    claims_sweep(runtime, id);
    snprintf(socket, sizeof(socket), "%s/%s.sock", runtime, id);
    unlink(socket);
    return 0;
}

/* Does a keeper have it that goes by another state folder, a copy of ours or the one that ours is a copy of? */
static bool is_held_elsewhere(const struct place *p)
{
    own_fd data = open(p->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return data >= 0 && flock(data, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int life_sweep(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/lock", p->state);
    own_fd fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    int held = try_lock(fd, clock_ms() + SWEEP_WAIT_MS);
    if (held < 0)
        return err_os(e, "lock %s", path);
    return held > 0 || is_held_elsewhere(p) ? 0 : life_clear(p, e);
}

static int ask_done(struct reach *r, const struct place *p, uint8_t type, const void *data, size_t n, struct pale_err *e)
{
    struct frame f;
    int res = reach_send(r, type, data, n, e);
    if (res == 0)
        res = reach_receive(r, &f, e);
    if (res == 0 && f.type != TELL_DONE)
        res = err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language", p->name);
    return res;
}

static int ask_freeze(const struct place *p, bool on, struct pale_err *e)
{
    own_reach r = {.fd = -1};
    reach_init(&r);
    int res = reach_box(&r, p, false, e);
    return res < 0 ? res : ask_done(&r, p, on ? ASK_FREEZE : ASK_THAW, NULL, 0, e);
}

int life_pause(const struct place *p, struct reach *ret, struct pale_err *e)
{
    static const uint8_t for_us = 1;
    int r = reach_box(ret, p, false, e);
    return r < 0 ? r : ask_done(ret, p, ASK_FREEZE, &for_us, sizeof(for_us), e);
}

int life_go_on(const struct place *p, struct reach *r, struct pale_err *e)
{
    /* A keeper that has lost us lets it go on by itself; one of an older version has to be asked. */
    return ask_done(r, p, ASK_THAW, NULL, 0, e) == 0 ? 0 : life_freeze(p, false, e);
}

int life_freeze(const struct place *p, bool on, struct pale_err *e)
{
    int64_t until = clock_ms() + STOP_WAIT_MS;
    int r = ask_freeze(p, on, e);
    /* One that ends this moment is asked for until it is gone: what it leaves may be frozen. */
    while (r == -PALE_GONE && !on && clock_ms() < until) {
        usleep(1000);
        r = ask_freeze(p, on, e);
    }
    if (r == -PALE_NOT_FOUND)
        r = on ? err_set(e, PALE_NOT_FOUND, "box %s is not running: there is nothing to freeze", p->name) : life_sweep(p, e);
    return r;
}

int life_send_caller(struct reach *r, const char *caller, struct pale_err *e)
{
    uint8_t mem[64];
    struct record_writer w;
    if (strcmp(caller, "local") == 0)
        return 0;
    record_start(&w, mem, sizeof(mem));
    msg_preface_write(&(struct msg_preface){.caller = caller, .input = ""}, &w);
    return reach_send(r, ASK_PREFACE, mem, w.len, e);
}

/* The process at the other end, to wait for; -1 if it cannot be told. That its number is another's by now costs some time only. */
static int peer_of(int socket_fd)
{
    struct ucred who = {0};
    socklen_t n = sizeof(who);
    return getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid > 0 ? k_pidfd_open(who.pid) : -1;
}

/* *ret_keeper: who was asked. */
static int ask_stop(const struct place *p, enum life_stop_when when, const char *caller, int *ret_home, int *ret_keeper, struct pale_err *e)
{
    static const uint8_t words[] = {[STOP_IDLE] = STOP_WORD_IDLE, [STOP_EMPTY] = STOP_WORD_EMPTY};
    own_reach r = {.fd = -1};
    reach_init(&r);
    int res = reach_box(&r, p, false, e);
    if (res < 0)
        return res;
    *ret_keeper = peer_of(r.fd);
    /* One that hangs is not waited for: its lock tells the rest. */
    struct timeval most = {.tv_sec = STOP_ASK_AGAIN_MS / 1000, .tv_usec = STOP_ASK_AGAIN_MS % 1000 * 1000};
    (void)setsockopt(r.fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    if ((res = life_send_caller(&r, caller, e)) == 0 && (res = reach_send(&r, ASK_STOP, &words[when], when != STOP_ANY, e)) == 0)
        res = reach_receive_home(&r, ret_home, e);
    return res == -PALE_GONE || (res == -PALE_OS && e && e->os == EAGAIN) ? 0 : res;
}

void life_halted_done(struct life_halted *h)
{
    own_close(&h->lock_fd);
    own_close(&h->home_fd);
}

/* Did the last keeper end in its order? Then it has left nothing, and what it could not remove the next takes over. */
static bool has_cleared(const struct place *p)
{
    char runtime[PATH_BYTES_MAX];
    return place_runtime_dir(runtime, sizeof(runtime), NULL) == 0 && !claims_are_left(runtime, p->id);
}

/* Somebody has removed its state folder: there is nothing to hold, and perhaps no socket to ask at. */
static int halt_stray(const struct place *p, int keeper, struct life_halted *ret, struct pale_err *e)
{
    struct keepers_one k;
    int r = keeper < 0 ? keepers_find(p->id, &k, e) : 0;
    own_fd pidfd = r > 0 ? k_pidfd_open(k.pid) : -1;
    if (r < 0 || (keeper < 0 && r == 0))
        return r < 0 ? r : err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name);
    if (r > 0)
        (void)!keepers_signal(&k, SIGTERM);
    (void)!poll(&(struct pollfd){.fd = keeper >= 0 ? keeper : pidfd, .events = POLLIN}, 1, STOP_WAIT_MS);
    ret->ran = true;
    return life_clear(p, e);
}

int life_halt(const struct place *p, enum life_stop_when when, const char *caller, struct life_halted *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int64_t until = clock_ms() + STOP_WAIT_MS;
    CLEANUP(life_halted_done) struct life_halted h = {.lock_fd = -1, .home_fd = -1};
    snprintf(path, sizeof(path), "%s/lock", p->state);
    /* One that hung up may have been ending already, or may have had no room for us: then it is asked again. */
    do {
        own_close(&h.home_fd);
        own_fd keeper = -1;
        int r = ask_stop(p, when, caller, &h.home_fd, &keeper, e);
        if (r < 0 && r != -PALE_NOT_FOUND)
            return r;
        if (r == 0 && !h.ran && ret->meanwhile)
            ret->meanwhile(ret->arg, h.home_fd);
        h.ran = h.ran || r == 0;
        own_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == ENOENT)
            return halt_stray(p, keeper, ret, e);
        if (fd < 0)
            return err_os(e, "open %s", path);
        int64_t once = clock_ms() + STOP_ASK_AGAIN_MS;
        /* Its lock is free a moment before it is gone; to ask for it again and again would take time from its end. */
        if (keeper >= 0)
            (void)!poll(&(struct pollfd){.fd = keeper, .events = POLLIN}, 1, STOP_ASK_AGAIN_MS);
        int held = try_lock(fd, once < until ? once : until);
        if (held < 0)
            return err_os(e, "lock %s", path);
        if (held == 0) {
            if (!(h.ran && ret->meanwhile && has_cleared(p)) && (r = life_clear(p, e)) < 0)
                return r;
            ret->lock_fd = take_fd(&fd);
            ret->home_fd = take_fd(&h.home_fd);
            ret->ran = h.ran;
            return 0;
        }
    } while (clock_ms() < until);
    return err_set(e, PALE_TIMEOUT, "the keeper of %s did not end within %d s", p->name, STOP_WAIT_MS / 1000);
}

int life_stop(const struct place *p, enum life_stop_when when, const char *caller, struct pale_err *e)
{
    struct life_halted h = {.lock_fd = -1, .home_fd = -1};
    int r = life_halt(p, when, caller, &h, e);
    if (r == 0)
        life_halted_done(&h);
    return r;
}

/* --- what the dead have left --- */

#define MAKING_SECONDS 60 /* so long after its first folder was made nobody is between making that and locking it */

/* Its folder has still the name that it has while it is made. */
static bool is_unborn(const char *path, const char *id)
{
    char above[PATH_BYTES_MAX], folder[BOX_ID_LEN + 8], unborn[PATH_BYTES_MAX];
    snprintf(folder, sizeof(folder), LIFE_UNBORN "%s", id);
    place_above(path, above);
    return path_join(unborn, sizeof(unborn), above, folder) && identity_is_at(unborn, id);
}

/* Somebody was killed while he made it: it never was a box. One that has a policy, and is neither here nor there, was one: its folder was
 * moved since. */
static bool is_half_made(int state, const char *id)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    if (faccessat(state, IDENTITY_DATA, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
        faccessat(state, IDENTITY_REMOVING, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return false;
    if (flock(state, LOCK_EX | LOCK_NB) < 0)
        return false;
    ssize_t n = readlinkat(state, IDENTITY_MOVING, path, sizeof(path) - 1);
    if (n <= 0) /* he had only just begun */
        return fstat(state, &st) == 0 && st.st_mtime < time(NULL) - MAKING_SECONDS;
    path[n] = 0;
    if (identity_is_at(path, id))
        return false;
    return weak_word("half-made") || (faccessat(state, "policy", F_OK, 0) < 0 && errno == ENOENT) || is_unborn(path, id);
}

static int remove_unborn(const struct place *p, struct pale_err *e)
{
    char folder[BOX_ID_LEN + 8];
    struct pale_err why;
    snprintf(folder, sizeof(folder), LIFE_UNBORN "%s", p->id);
    own_fd above = p->data[0] ? place_open_above(p, &why) : -1;
    int r = above >= 0 ? removal_tree(above, folder, e) : 0;
    return r < 0 ? r : removal_tree(AT_FDCWD, p->state, e);
}

/* 1: something was removed, or would be. Nobody has its lock, or there is nothing to do. */
static int sweep_one(const char *boxes, const char *id, bool only_counts, struct pale_err *e)
{
    struct place p = {0};
    char path[PATH_BYTES_MAX];
    if (!path_join(path, sizeof(path), boxes, id))
        return 0;
    own_fd state = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0)
        return 0;
    bool half = is_half_made(state, id);
    if (!half && place_any(id, &p, NULL) < 0)
        return 0;
    bool removed = !half && faccessat(state, IDENTITY_REMOVING, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (only_counts)
        return half || removed;
    if (half) {
        snprintf(p.state, sizeof(p.state), "%s", path);
        memcpy(p.id, id, sizeof(p.id));
        if (identity_recorded(path, IDENTITY_MOVING, p.data))
            snprintf(p.name, sizeof(p.name), "%s", strrchr(p.data, '/') + 1);
        int r = remove_unborn(&p, e);
        return r < 0 ? r : 1;
    }
    own_fd lock = openat(state, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
        return 0;
    int r = lock >= 0 && !is_held_elsewhere(&p) ? life_clear(&p, e) : 0;
    if (r == 0 && !removed && flock(state, LOCK_EX | LOCK_NB) == 0) /* nobody is making it */
        r = rename_settle(path, id, state, e);
    if (r == 0 && removed)
        r = place_remove(&p, true, e);
    return r < 0 ? r : removed;
}

/* Somebody was killed while he removed it. */
static bool is_gone(const char *name)
{
    size_t n = strlen(PLACE_GONE);
    return strncmp(name, PLACE_GONE, n) == 0 && identity_is_id(name + n);
}

int life_sweep_all(bool only_counts, unsigned *ret, struct pale_err *e)
{
    char boxes[PATH_BYTES_MAX];
    int r = place_state_dir(boxes, sizeof(boxes) - 8, e);
    if (r < 0)
        return r;
    memcpy(boxes + strlen(boxes), "/boxes", 7);
    DIR *d = opendir(boxes);
    *ret = 0;
    for (const struct dirent *en; d && r >= 0 && (en = readdir(d));) {
        if (is_gone(en->d_name))
            r = only_counts ? 1 : removal_tree(dirfd(d), en->d_name, e);
        else if (identity_is_id(en->d_name))
            r = sweep_one(boxes, en->d_name, only_counts, e);
        else
            r = 0;
        *ret += r > 0;
    }
    if (d)
        closedir(d);
    return r < 0 ? r : 0;
}

void life_take_back(const struct place *p)
{
    struct pale_err ignored;
    if (life_stop(p, STOP_ANY, "local", &ignored) == 0)
        (void)!place_remove(p, true, NULL);
}

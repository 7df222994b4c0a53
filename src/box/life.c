/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making and ending of boxes. */
#include "box/life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "box/birth.h"
#include "box/claims.h"
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

/* A policy that is older was left by somebody who was killed while he removed the box, when its data was gone already. What counts is when
 * it got its name: it may have been written long before. */
static bool is_written_since(int dir, const char *name, const struct timespec *t)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_ctim.tv_sec != t->tv_sec ? st.st_ctim.tv_sec > t->tv_sec : st.st_ctim.tv_nsec >= t->tv_nsec);
}

/* The id is a digest: one link says of what, the other is like no other box's. */
static int write_links(const struct place *p, int dir, struct pale_err *e)
{
    uint8_t random[8];
    char born[20];
    uint64_t v = 0;
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_os(e, "getrandom");
    memcpy(&v, random, sizeof(v));
    snprintf(born, sizeof(born), "%016llx", (unsigned long long)(v >> 1 | 1));
    (void)unlinkat(dir, "born", 0); /* of one that was half made or half removed */
    static const char *const logs[] = {"audit", "audit.head", "checkpoint"};
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]) && faccessat(dir, "policy", F_OK, 0) < 0 && errno == ENOENT; i++)
        if (unlinkat(dir, logs[i], 0) < 0 && errno != ENOENT)
            return err_os(e, "remove %s/%s of a box that was half made", p->state, logs[i]);
    if ((symlinkat(p->data, dir, "data") < 0 && errno != EEXIST) || symlinkat(born, dir, "born") < 0)
        return err_os(e, "write %s/data and born", p->state);
    return 0;
}

uint64_t life_born(const struct place *p)
{
    char path[PATH_BYTES_MAX], text[20] = "";
    uint64_t v = 0;
    snprintf(path, sizeof(path), "%s/born", p->state);
    ssize_t n = readlink(path, text, sizeof(text) - 1);
    for (ssize_t i = 0; i < n; i++) {
        int d = http_hex(text[i]);
        if (n != 16 || d < 0)
            return 0;
        v = v << 4 | (uint64_t)d;
    }
    return v;
}

int life_make(const struct life_order *o, struct place *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(o->policy, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes", POLICY_TEXT_MAX);
    own_fd still = -1;
    int r = rename_hold_off(&still, e);
    if (r < 0)
        return r;
    struct timespec began;
    clock_gettime(CLOCK_REALTIME_COARSE, &began); /* as files have it */
    r = o->beside ? place_create_beside(o->beside, o->name, ret, e) : place_create(o->name, o->scope, o->tenant, ret, e);
    if (r < 0)
        return r;
    own_fd dir = open(ret->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Of two who make one box at the same moment, the second finds it made; what was half made by one who died is free. */
    int held = dir < 0 ? -1 : try_lock(dir, clock_ms() + MAKE_WAIT_MS);
    if (held > 0)
        return err_set(e, PALE_BUSY, "somebody else has been making box %s for %d s", o->name, MAKE_WAIT_MS / 1000);
    if (held < 0) {
        r = err_os(e, "lock %s", ret->state);
        place_undo(ret);
        return r;
    }
    if (is_written_since(dir, "policy", &began))
        return err_set(e, PALE_EXISTS, "there is already a box %s (%s)", o->name, ret->data);
    r = write_links(ret, dir, e);
    /* It is a box from the instant it has a policy: what it stands on is there by then. */
    if (r == 0)
        r = o->stack ? stack_save(ret, o->stack, e) : stack_forget(ret, e);
    if (r == 0)
        r = layerdir_allot(ret, o->policy, e);
    if (r == 0 && o->begin)
        r = o->begin(o->arg, ret, e);
    /* No box is without a log: one that is gone later was taken away. */
    if (r == 0)
        r = birth_record(ret, buf_text(&text), text.len, o->durable, e);
    if (r == 0)
        r = fd_replace_file(dir, "policy", text.data, text.len, 0600, o->durable, e);
    if (r < 0)
        (void)!place_remove(ret, true, NULL);
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

static int clear_traces(const char *id, struct pale_err *e)
{
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

int life_clear(const struct place *p, struct pale_err *e)
{
    return clear_traces(p->id, e);
}

int life_sweep(const struct place *p, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/lock", p->state);
    own_fd fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    int held = try_lock(fd, clock_ms() + SWEEP_WAIT_MS);
    return held < 0 ? err_os(e, "lock %s", path) : held > 0 ? 0 : life_clear(p, e);
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

/* Its folder is gone from where it was, and not with a disk that is not mounted just now. */
static bool is_removed(const char *state)
{
    char link[PATH_BYTES_MAX], data[PATH_BYTES_MAX];
    struct stat st;
    snprintf(link, sizeof(link), "%s/data", state);
    ssize_t n = readlink(link, data, sizeof(data) - 1);
    if (n <= 0)
        return false;
    data[n] = 0;
    char *slash = strrchr(data, '/');
    if (!slash || slash == data || lstat(data, &st) == 0 || errno != ENOENT)
        return false;
    *slash = 0;
    return lstat(data, &st) == 0 && S_ISDIR(st.st_mode);
}

/* 1: the box was removed. Nobody has its lock, or there is nothing to do. */
static int sweep_one(const char *boxes, const char *id, bool only_counts, struct pale_err *e)
{
    char state[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    struct place p;
    if (!path_join(state, sizeof(state), boxes, id) || !path_join(path, sizeof(path), state, "lock"))
        return 0;
    /* One that never ran has no lock yet. */
    own_fd lock = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (is_removed(state) && !only_counts ? O_CREAT : 0), 0600);
    if (only_counts)
        return is_removed(state) && (lock >= 0 ? flock(lock, LOCK_EX | LOCK_NB) == 0 : errno == ENOENT);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return 0;
    if (is_removed(state)) {
        int r = clear_traces(id, e);
        if (r == 0)
            r = removal_tree(AT_FDCWD, state, e);
        return r < 0 ? r : 1;
    }
    if (place_by_id(id, &p, NULL) < 0)
        return 0;
    return life_clear(&p, e);
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
    for (const struct dirent *en; d && r >= 0 && (en = readdir(d));)
        if (strlen(en->d_name) == BOX_ID_LEN && (r = sweep_one(boxes, en->d_name, only_counts, e)) > 0)
            (*ret)++;
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

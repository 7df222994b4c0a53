/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keeper's side of pale-warden, which guards a live project.
 *
 * How it works: the warden is started while the wall is built, and walks the project meanwhile. Once the wall stands it lays the guard; the
 * box is handed over when it says that all is guarded. Before it takes anything away it says so, and goes on when that is in the audit.
 * If it dies or fails, the box ends: there is no live project without its guard. When the box is dead it looks a last time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/weak.h"
#include "box/wardmsg.h"
#include "confine/kernel.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"

#define READY_MS 30000
/* Who waits for the end of a command waits so long at most until what it planted is gone. */
#define CATCH_UP_MS 20
#define LAST_LOOK_MS 30000
#define DEATH_MS 5000

bool warding_is_needed(const struct keeper *k)
{
    const struct policy *p = &k->policy;
    return p->project == PROJECT_LIVE && p->project_path && p->guard.count > 0 && !is_weak(k->weaken, WEAKEN_GUARD);
}

/* Of a box: in its state, so that it goes with it. Of a one-shot box: in a folder for all of those, under its id. */
static int make_quarantine(struct keeper *k, struct pale_err *e)
{
    struct warding *g = &k->warding;
    char base[PATH_BYTES_MAX / 2];
    int r = 0;
    if (k->once) {
        char state[PATH_BYTES_MAX / 4];
        if ((r = place_state_dir(state, sizeof(state), e)) < 0)
            return r;
        snprintf(base, sizeof(base), "%s/quarantine", state);
        if (mkdir(base, 0700) < 0 && errno != EEXIST)
            return err_os(e, "make %s", base);
    }
    const char *last = k->once ? k->id : "quarantine";
    if (!path_join(g->dir, sizeof(g->dir), k->once ? base : k->state_dir, last))
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", k->state_dir);
    if (mkdir(g->dir, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make %s", g->dir);
    g->held = k->once ? open(g->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    return k->once && (g->held < 0 || flock(g->held, LOCK_SH | LOCK_NB) < 0) ? err_os(e, "hold %s", g->dir) : 0;
}

static int share_page(struct warding *g, int *ret_fd, struct pale_err *e)
{
    own_fd fd = memfd_create("pale-ward", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(*g->shared)) < 0)
        return err_os(e, "share a page with pale-warden");
    void *p = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_os(e, "share a page with pale-warden");
    g->shared = p;
    *ret_fd = take_fd(&fd);
    return 0;
}

/* In a child that shares our memory: only system calls. The numbers it is to have may be in use for others yet. */
static void __attribute__((noreturn)) become_warden(const char *program, char **argv, int fds[WARD_FDS])
{
    static char *const none[] = {NULL};
    for (int i = WARD_TALK_FD; i < WARD_FDS; i++)
        if ((fds[i] = fcntl(fds[i], F_DUPFD, WARD_FDS)) < 0)
            _exit(127);
    for (int i = WARD_TALK_FD; i < WARD_FDS; i++)
        if (dup2(fds[i], i) < 0)
            _exit(127);
    k_close_range(WARD_FDS, ~0u, 0);
    execve(program, argv, weak_word("projects") ? environ : none); /* the words of a weakened build are there */
    _exit(127);
}

static int spawn(struct keeper *k, int fds[WARD_FDS], struct pale_err *e)
{
    const struct policy *p = &k->policy;
    char program[PATH_BYTES_MAX];
    int r = place_program("pale-warden", program, sizeof(program), e);
    if (r < 0)
        return r;
    own_mem char **argv = calloc(p->guard.count + 4, sizeof(*argv));
    if (!argv)
        return err_nomem(e);
    argv[0] = (char *)"pale-warden";
    argv[1] = p->project_path;
    argv[2] = k->warding.dir;
    memcpy(argv + 3, p->guard.item, p->guard.count * sizeof(*argv));
    int mine[WARD_FDS];
    memcpy(mine, fds, sizeof(mine));
    pid_t pid = vfork();
    if (pid == 0)
        become_warden(program, argv, mine);
    if (pid < 0)
        return err_os(e, "start %s", program);
    k->warding.pid = pid;
    return 0;
}

int warding_start(struct keeper *k, struct pale_err *e)
{
    struct warding *g = &k->warding;
    int pair[2], r = make_quarantine(k, e);
    if (r < 0)
        return r;
    own_fd shared = -1, project = fd_open_real_dir(k->policy.project_path), quarantine = fd_open_real_dir(g->dir);
    if (project < 0 || quarantine < 0)
        return err_os(e, "open %s", project < 0 ? k->policy.project_path : g->dir);
    if ((r = share_page(g, &shared, e)) < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    own_fd theirs = pair[1];
    g->source.fd = pair[0];
    int fds[WARD_FDS] = {[WARD_TALK_FD] = theirs,           [WARD_SHARED_FD] = shared,        [WARD_PROJECT_FD] = project,
                         [WARD_QUARANTINE_FD] = quarantine, [WARD_USER_FD] = k->wall.user_ns, [WARD_MOUNT_FD] = k->wall.mount_ns,
                         [WARD_INIT_FD] = k->wall.pidfd};
    return spawn(k, fds, e);
}

static void say(struct warding *g, enum ward_type type, uint64_t number)
{
    struct ward_message m = {.type = type, .number = number};
    if (g->source.fd >= 0)
        (void)!send(g->source.fd, &m, WARD_HEAD_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static const char *kind_name(uint32_t kind)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } rows[] = {{S_IFREG, "file"}, {S_IFDIR, "folder"}, {S_IFLNK, "symlink"}, {S_IFIFO, "fifo"}, {S_IFSOCK, "socket"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].kind == kind)
            return rows[i].name;
    return "device";
}

static void audit_taking(struct keeper *k, const struct ward_message *m, const char *shown)
{
    char to[PATH_BYTES_MAX + 24];
    struct json *j = audit_begin(&k->audit, "guard.quarantine");
    json_text(j, "path", shown);
    json_text(j, "kind", kind_name(m->kind));
    snprintf(to, sizeof(to), "%s/%llu", k->warding.dir, (unsigned long long)m->number);
    json_text(j, "to", m->number ? to : "nowhere: the quarantine is full");
    (void)!audit_commit(&k->audit, NULL);
}

static void audit_note(struct keeper *k, const struct ward_message *m, const char *shown)
{
    static const char *const events[] = {[WARD_NOTE_FLOOD] = "guard.flood",
                                         [WARD_NOTE_SLOW] = "guard.slow",
                                         [WARD_NOTE_UNHELD] = "guard.unheld",
                                         [WARD_NOTE_RELAID] = "guard.relaid"};
    if (m->code >= sizeof(events) / sizeof(events[0]))
        return;
    struct json *j = audit_begin(&k->audit, events[m->code]);
    if (m->code == WARD_NOTE_FLOOD)
        json_u64(j, "taken", m->number);
    else if (m->code == WARD_NOTE_SLOW)
        json_u64(j, "folders", m->number);
    else
        json_text(j, "path", shown);
    (void)!audit_commit(&k->audit, NULL);
}

/* One message, if there is one. What it is, 0: none, or a negative code if the warden is gone or has failed. */
static int take(struct keeper *k, int flags, struct pale_err *e)
{
    struct ward_message m;
    char shown[1024];
    ssize_t n = recv(k->warding.source.fd, &m, sizeof(m), flags);
    /* One that ended without reading all we said: that is told first, once, and what it said last is still there. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(k->warding.source.fd, &m, sizeof(m), flags);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < (ssize_t)WARD_HEAD_BYTES || m.text_bytes > (size_t)n - WARD_HEAD_BYTES)
        return err_set(e, PALE_GONE, "the guard of the live project died");
    quote_into(shown, sizeof(shown), m.text, m.text_bytes);
    if (m.type == WARD_ERROR)
        return err_set(e, m.code > PALE_OK && m.code < PALE_CODE_COUNT ? (enum pale_code)m.code : PALE_INTERNAL, "%.*s", (int)m.text_bytes,
                       m.text);
    if (m.type == WARD_TAKE) {
        audit_taking(k, &m, shown);
        say(&k->warding, WARD_GO, 0);
    } else if (m.type == WARD_NOTE) {
        audit_note(k, &m, shown);
    } else if (m.type == WARD_CAUGHT_UP) {
        k->warding.caught_up = m.number;
    }
    return (int)m.type;
}

/* Takes messages until one of that type comes. -PALE_TIMEOUT if it does not. */
static int await(struct keeper *k, enum ward_type type, int ms, struct pale_err *e)
{
    int64_t until = clock_ms() + ms;
    for (int r = 0; r != (int)type;) {
        struct pollfd p = {.fd = k->warding.source.fd, .events = POLLIN};
        int64_t left = until - clock_ms();
        if (left < 0 || (poll(&p, 1, (int)left) == 0))
            return err_set(e, PALE_TIMEOUT, "the guard of the live project was not laid within %d s; is the project on a dead file server?",
                           ms / 1000);
        if ((r = take(k, MSG_DONTWAIT, e)) < 0)
            return r;
    }
    return 0;
}

static void on_message(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, warding.source));
    struct pale_err e = {0};
    (void)events;
    int r = take(k, MSG_DONTWAIT, &e);
    if (r < 0)
        keeper_box_died(k, e.text);
}

void warding_stand(struct keeper *k)
{
    say(&k->warding, WARD_STAND, 0);
}

int warding_await(struct keeper *k, struct pale_err *e)
{
    if (k->warding.source.fd < 0)
        return 0;
    int r = await(k, WARD_READY, READY_MS, e);
    if (r < 0)
        return r;
    k->warding.source.ready = on_message;
    return loop_add(&k->loop, &k->warding.source, EPOLLIN, e);
}

void warding_started(struct keeper *k)
{
    if (k->warding.shared)
        __atomic_add_fetch(&k->warding.shared->started, 1, __ATOMIC_SEQ_CST);
}

void warding_idle(struct keeper *k)
{
    if (k->warding.shared && k->running == 0)
        say(&k->warding, WARD_IDLE, k->warding.shared->started);
}

void warding_catch_up(struct keeper *k)
{
    struct pollfd dead = {.fd = k->wall.pidfd, .events = POLLIN};
    struct pale_err e = {0};
    if (k->warding.source.fd < 0)
        return;
    if (k->once)
        (void)!poll(&dead, 1, DEATH_MS); /* it was killed: what it does in its last moments counts too */
    say(&k->warding, WARD_CATCH_UP, ++k->warding.asked);
    int r = 0;
    while (r == 0 && k->warding.caught_up != k->warding.asked) /* an answer may be to an earlier one that was not waited for */
        r = await(k, WARD_CAUGHT_UP, k->once ? DEATH_MS : CATCH_UP_MS, &e);
    if (r < 0 && r != -PALE_TIMEOUT)
        keeper_box_died(k, e.text);
}

void warding_end(struct keeper *k)
{
    struct warding *g = &k->warding;
    struct pale_err e = {0};
    if (g->dir[0] && g->source.fd < 0)
        rmdir(g->dir); /* stays if anything is in it */
    if (g->source.fd < 0)
        return;
    if (g->source.ready)
        loop_remove(&k->loop, &g->source);
    say(g, WARD_FINISH, 0);
    if (await(k, WARD_DONE, LAST_LOOK_MS, &e) < 0 && g->source.ready) {
        struct json *j = audit_begin(&k->audit, "guard.failed");
        json_text(j, "reason", e.text);
        (void)!audit_commit(&k->audit, NULL);
    }
    own_close(&g->source.fd);
    (void)!waitpid(g->pid, NULL, WNOHANG); /* the kernel takes its time to let go of watches, and we are about to end too */
    g->pid = 0;
    rmdir(g->dir);
}

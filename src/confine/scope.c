/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the scope that systemd makes for us. */
#include "confine/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "confine/dbus.h"

#define REQUEST_MAX 2048
#define LOOK_EVERY_MS 50
#define DOORS 4
#define START_SERIAL 3

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define BUS "org.freedesktop.DBus"

/* --- the conversation --- */

/* A property: a name, and a value that says its own type. */
static void put_name(struct dbus_writer *w, const char *name, const char *type)
{
    dbus_align(w, 8);
    dbus_put_text(w, name);
    dbus_put_signature(w, type);
}

/* Slice: in system.slice every first and last box would switch controllers on and off for all services of the host, which costs
 * six times as much as all the rest. DelegateControllers: what we hand down and no more, for the same reason. CollectMode: a scope
 * that ended badly is forgotten like any other. PIDs: 0 is whoever sends this; our own number could mean somebody else where we
 * are in a pid namespace. */
static void put_request(struct dbus_writer *w, const char *unit, const char *description)
{
    static const char *const controllers[] = {"memory", "pids", "cpu"};
    dbus_put_text(w, unit);
    dbus_put_text(w, "fail");
    size_t properties = dbus_open_array(w, 8);
    put_name(w, "Description", "s");
    dbus_put_text(w, description);
    put_name(w, "Slice", "s");
    dbus_put_text(w, "pale.slice");
    put_name(w, "DelegateControllers", "as");
    size_t list = dbus_open_array(w, 4);
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        dbus_put_text(w, controllers[i]);
    dbus_close_array(w, list, 4);
    put_name(w, "CollectMode", "s");
    dbus_put_text(w, "inactive-or-failed");
    put_name(w, "PIDs", "au");
    size_t pids = dbus_open_array(w, 4);
    dbus_put_u32(w, 0);
    dbus_close_array(w, pids, 4);
    dbus_close_array(w, properties, 8);
    size_t others = dbus_open_array(w, 8);
    dbus_close_array(w, others, 8);
}

size_t scope_write(const struct scope_talk *t, const char *description, unsigned uid, bool bus, void *mem, size_t cap)
{
    static const struct dbus_call hello = {
        .serial = 1, .destination = BUS, .path = "/org/freedesktop/DBus", .interface = BUS, .member = "Hello"};
    static const struct dbus_call match = {2, BUS, "/org/freedesktop/DBus", BUS, "AddMatch", "s"};
    const struct dbus_call start = {START_SERIAL,       bus ? MANAGER : NULL, MANAGER_PATH,
                                    MANAGER ".Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"};
    uint8_t *out = mem;
    struct dbus_writer w;
    size_t len = dbus_greet(mem, cap, uid);
    if (len == 0)
        return 0;
    dbus_start(&w, out + len, cap - len);
    if (bus) {
        dbus_begin(&w, &hello);
        dbus_end(&w);
        dbus_begin(&w, &match);
        dbus_put_text(&w, "type='signal',sender='" MANAGER "',interface='" MANAGER ".Manager',member='JobRemoved'");
        dbus_end(&w);
    }
    dbus_begin(&w, &start);
    put_request(&w, t->unit, description);
    dbus_end(&w);
    return w.full ? 0 : len + w.len;
}

static enum scope_news refuse(struct scope_talk *t, const char *what, const char *foreign)
{
    char shown[120];
    snprintf(t->reason, sizeof(t->reason), "%s%s%s", what, foreign[0] ? ": " : "",
             quote_into(shown, sizeof(shown), foreign, strlen(foreign)));
    return SCOPE_REFUSED;
}

/* The line that lets us in. */
static enum scope_news hear_greeting(struct scope_talk *t, const uint8_t *p, size_t n, size_t *ret_used)
{
    int r = dbus_hear_greeting(p, n, ret_used);
    if (r < 0)
        return refuse(t, "systemd's socket does not let us in", "");
    t->greeted = r == 1;
    return SCOPE_NEED_MORE;
}

/* Answers to what we asked say no more than that all is well; the end of the job is what counts. */
static enum scope_news hear_message(struct scope_talk *t, const struct dbus_message *m)
{
    struct dbus_reader r = dbus_body(m);
    if (m->type == DBUS_ERROR)
        return refuse(t, "systemd refuses a scope", m->signature[0] == 's' ? dbus_take_text(&r) : m->error);
    if (m->type == DBUS_RETURN && m->reply_serial == START_SERIAL)
        snprintf(t->manager, sizeof(t->manager), "%.60s", m->sender);
    /* Anybody on a bus can send us a signal, but not in the name of who answered. */
    if (m->type == DBUS_SIGNAL && strcmp(m->sender, t->manager) != 0)
        return SCOPE_NEED_MORE;
    if (m->type != DBUS_SIGNAL || strcmp(m->member, "JobRemoved") != 0 || strcmp(m->signature, "uoss") != 0)
        return SCOPE_NEED_MORE;
    (void)dbus_take_u32(&r);
    (void)dbus_take_text(&r);
    const char *unit = dbus_take_text(&r), *result = dbus_take_text(&r);
    if (r.bad)
        return refuse(t, "systemd's answer cannot be read", "");
    if (strcmp(unit, t->unit) != 0)
        return SCOPE_NEED_MORE;
    return strcmp(result, "done") == 0 ? SCOPE_READY : refuse(t, "systemd could not make a scope", result);
}

enum scope_news scope_hear(struct scope_talk *t, const uint8_t *p, size_t n, size_t *ret_used)
{
    enum scope_news news = SCOPE_NEED_MORE;
    size_t done = 0;
    *ret_used = 0;
    if (!t->greeted && n > 0)
        news = hear_greeting(t, p, n, &done);
    while (news == SCOPE_NEED_MORE && t->greeted) {
        struct dbus_message m;
        size_t used = 0;
        int r = dbus_parse(p + done, n - done, &m, &used);
        if (r == 0)
            break;
        news = r < 0 ? refuse(t, "systemd's answer cannot be read", "") : hear_message(t, &m);
        done += used;
    }
    *ret_used = done;
    return news;
}

/* --- the socket --- */

void scope_init(struct scope *s)
{
    *s = (struct scope){.fd = -1};
}

void scope_done(struct scope *s)
{
    own_close(&s->fd);
}

bool scope_is_needed(void)
{
    struct statfs fs;
    return access("/run/systemd/system", F_OK) == 0 && statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int try_socket(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    own_fd fd = n < sizeof(to.sun_path) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return -1;
    memcpy(to.sun_path, path, n + 1);
    return connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : take_fd(&fd);
}

/* The i-th place to look for the manager; false: there is none, look on. The bus is the door that systemd promises to keep. Its
 * private socket is there where no bus is installed. */
static bool name_door(int i, char *ret, size_t cap)
{
    static const char *const system_doors[DOORS] = {"/run/dbus/system_bus_socket", NULL, "/run/systemd/private", NULL};
    static const char *const user_doors[DOORS] = {"bus", "bus", "systemd/private", "systemd/private"};
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char usual[32];
    snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
    if (geteuid() == 0 && !system_doors[i])
        return false;
    if (geteuid() == 0)
        return snprintf(ret, cap, "%s", system_doors[i]) < (int)cap;
    /* Where the environment says first, then where it must be: it may say nothing, or something of its own. */
    if (i % 2 == 0 && !(runtime && runtime[0] == '/'))
        return false;
    return snprintf(ret, cap, "%s/%s", i % 2 ? usual : runtime, user_doors[i]) < (int)cap;
}

static int find_manager(struct scope *s, bool *ret_bus)
{
    for (int i = 0; i < DOORS; i++) {
        int fd = name_door(i, s->via, sizeof(s->via)) ? try_socket(s->via) : -1;
        *ret_bus = i < DOORS / 2;
        if (fd >= 0)
            return fd;
    }
    return -1;
}

static enum scope_news give_up(struct scope *s, const char *what)
{
    snprintf(s->talk.reason, sizeof(s->talk.reason), "%.100s %s", s->via, what);
    return SCOPE_REFUSED;
}

void scope_ask(struct scope *s, const char *id, const char *description)
{
    uint8_t request[REQUEST_MAX];
    bool bus = false;
    scope_init(s);
    /* With our number in the name it is new: the scope of a keeper that was killed may still be on its way out. */
    snprintf(s->talk.unit, sizeof(s->talk.unit), "pale-%.32s-%d.scope", id, (int)getpid());
    s->until_ms = clock_ms() + SCOPE_WAIT_MS;
    own_fd fd = find_manager(s, &bus);
    if (fd < 0) {
        if (geteuid() == 0)
            snprintf(s->talk.reason, sizeof(s->talk.reason),
                     "systemd does not answer at /run/dbus/system_bus_socket or /run/systemd/private");
        else
            snprintf(s->talk.reason, sizeof(s->talk.reason),
                     "no systemd user manager answers below /run/user/%u: log in, or `loginctl enable-linger` starts one",
                     (unsigned)geteuid());
        return;
    }
    size_t n = scope_write(&s->talk, description, (unsigned)geteuid(), bus, request, sizeof(request));
    if (n == 0 || send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
        (void)give_up(s, "does not take our request");
    else
        s->fd = take_fd(&fd);
}

/* The line of version 2 is "0::" and the path of our group, which must end with the scope. */
static bool find_group(struct scope *s)
{
    char text[4096];
    own_fd fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *line = strstr(text, "0::/");
    if (!line)
        return false;
    line += 3;
    size_t len = strcspn(line, "\n"), want = strlen(s->talk.unit);
    if (len <= want || len >= sizeof(s->group) || line[len - want - 1] != '/' || memcmp(line + len - want, s->talk.unit, want) != 0)
        return false;
    memcpy(s->group, line, len);
    s->group[len] = 0;
    return true;
}

/* One step of waiting. Now and then we look ourselves: a signal can be lost, a group cannot. */
static enum scope_news listen_on(struct scope *s, struct buf *b)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    uint8_t block[4096];
    size_t used;
    int ready = poll(&p, 1, LOOK_EVERY_MS);
    if (ready == 0 && find_group(s))
        return SCOPE_READY;
    if (clock_ms() > s->until_ms)
        return give_up(s, "does not answer in time");
    ssize_t n = ready > 0 ? recv(s->fd, block, sizeof(block), 0) : 0;
    if (ready > 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
        return give_up(s, "closed the connection");
    if (n <= 0)
        return SCOPE_NEED_MORE;
    buf_add(b, block, (size_t)n);
    if (b->failed)
        return give_up(s, "answers too much");
    enum scope_news news = scope_hear(&s->talk, b->data, b->len, &used);
    buf_consume(b, used);
    return news;
}

bool scope_await(struct scope *s)
{
    own_buf b = {0};
    enum scope_news news = s->fd < 0 ? SCOPE_REFUSED : SCOPE_NEED_MORE;
    buf_init(&b, 2 * DBUS_MESSAGE_MAX);
    while (news == SCOPE_NEED_MORE)
        news = listen_on(s, &b);
    scope_done(s);
    if (news == SCOPE_READY && !find_group(s))
        news = give_up(s, "has made a scope, but this process is not in it");
    return news == SCOPE_READY;
}

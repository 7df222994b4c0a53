/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the clients of a keeper: connections on its socket, one request each.
 *
 * A client's bytes are hostile too: it is the same user, but perhaps a box-scoped program of theirs. Frames are parsed strictly,
 * every buffer has a maximum, and a client that does not read stops its own command (credit is not paid back) and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/handing.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/reach.h"
#include "keeper/keeper.h"
#include "wire/frame.h"

#define CLIENT_IN_MAX (FRAME_HEAD + FRAME_PAYLOAD_MAX)

static void client_ready(struct loop_source *s, uint32_t events);

static void want(struct client *c)
{
    uint32_t events = EPOLLRDHUP;
    if (!c->stalled && !c->finished)
        events |= EPOLLIN;
    if (c->out.len > 0 || c->log_more)
        events |= EPOLLOUT;
    loop_want(&c->k->loop, &c->source, events);
}

struct client *client_add(struct keeper *k, int fd)
{
    struct client *c = k->idle_client ? k->idle_client : malloc(sizeof(*c));
    k->idle_client = NULL;
    if (!c) {
        close(fd);
        return NULL;
    }
    memset(c, 0, offsetof(struct client, first_in));
    c->k = k;
    snprintf(c->caller, sizeof(c->caller), "local");
    c->source = (struct loop_source){.fd = fd, .ready = client_ready};
    buf_init_lent(&c->in, CLIENT_IN_MAX + 16384, c->first_in, sizeof(c->first_in));
    buf_init_lent(&c->out, CLIENT_OUT_MAX, c->first_out, sizeof(c->first_out));
    if (loop_add(&k->loop, &c->source, EPOLLIN | EPOLLRDHUP, NULL) < 0) {
        close(fd);
        free(c);
        return NULL;
    }
    c->next = k->clients;
    k->clients = c;
    k->client_count++;
    return c;
}

static void stop_feeding(struct client *c)
{
    if (c->feeding && c->waiting)
        c->waiting->feeder = NULL;
    c->feeding = false;
}

void client_drop(struct client *c)
{
    struct keeper *k = c->k;
    for (struct client **at = &k->clients; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    k->client_count--;
    proof_client_left(c);
    freeze_client_left(c);
    loop_remove(&k->loop, &c->source);
    close(c->source.fd);
    struct kjob *j = c->job;
    if (j) {
        const char *was = k->audit.caller;
        k->audit.caller = c->caller;
        j->client = NULL;
        work_client_left(j);
        k->audit.caller = was;
    }
    stop_feeding(c);
    buf_done(&c->in);
    buf_done(&c->out);
    free(k->idle_client);
    k->idle_client = c;
    if (k->listener.fd >= 0 && k->client_count < CLIENTS_MAX)
        loop_want(&k->loop, &k->listener, EPOLLIN);
    if (k->once)
        keeper_stop(k);
    keeper_check_done(k);
}

/* What it is owed cannot be sent: it must not take the rest for the whole. */
static void lose(struct client *c)
{
    buf_clear(&c->out);
    shutdown(c->source.fd, SHUT_RDWR);
}

void client_flush(struct client *c)
{
    while (c->out.len > 0) {
        ssize_t n = send(c->source.fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0) {
            lose(c); /* nobody will read it; the hang-up comes next */
            break;
        }
        buf_consume(&c->out, (size_t)n);
    }
    if (c->job)
        work_pay_credit(c->job);
    want(c);
    keeper_check_done(c->k);
}

void client_send(struct client *c, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, type, 0, (uint32_t)n);
    buf_add(&c->out, head, sizeof(head));
    buf_add(&c->out, p, n);
    if (c->out.failed)
        lose(c);
    client_flush(c);
}

void client_error(struct client *c, enum pale_code code, const char *text)
{
    uint8_t mem[2048];
    struct record_writer w;
    struct msg_error m = {.code = code, .text = text};
    record_start(&w, mem, sizeof(mem));
    msg_error_write(&m, &w);
    client_send(c, TELL_ERROR, mem, w.len);
    client_finish(c);
}

void client_finish(struct client *c)
{
    c->finished = true;
    stop_feeding(c);
    c->waiting = NULL;
    want(c);
}

void client_resume(struct client *c)
{
    if (c->stalled) {
        c->stalled = false;
        client_ready(&c->source, 0);
    }
}

static void tell_job(struct client *c, const struct kjob *j)
{
    uint8_t mem[2048];
    struct record_writer w;
    struct msg_job m;
    work_tell(j, &m);
    record_start(&w, mem, sizeof(mem));
    msg_job_write(&m, &w);
    client_send(c, TELL_JOB, mem, w.len);
}

void client_tell_end(struct client *c, const struct kjob *j)
{
    tell_job(c, j);
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

static void tell_info(struct client *c)
{
    struct keeper *k = c->k;
    static uint8_t mem[65536];
    struct record_writer w;
    struct msg_info m = {
        .version = WIRE_VERSION,
        .keeper_pid = (uint64_t)getpid(),
        .init_pid = (uint64_t)k->wall.pid,
        .started_unix_ms = k->started_unix_ms,
        .jobs = k->running,
        .clients = k->client_count,
        .ended = k->ended,
        .name = k->name,
        .id = k->id,
        .state = freeze_name(k),
        .policy_digest = k->policy_digest,
        .memory_by = k->memory_by,
    };
    tally_fill(k, &m);
    record_start(&w, mem, sizeof(mem));
    msg_info_write(&m, &w);
    client_send(c, TELL_INFO, mem, w.len);
}

static void ask_jobs(struct client *c)
{
    for (const struct kjob *j = c->k->jobs; j; j = j->next)
        tell_job(c, j);
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

static void no_such_job(struct client *c, uint64_t id)
{
    char text[100];
    snprintf(text, sizeof(text), "there is no job %llu in this box; `pale ps %s` lists them", (unsigned long long)id, c->k->name);
    client_error(c, PALE_NOT_FOUND, text);
}

static void ask_attach(struct client *c, const struct frame *f)
{
    struct msg_attach m;
    if (!msg_attach_parse(f->data, f->len, &m)) {
        client_error(c, PALE_PROTOCOL, "the request cannot be read");
        return;
    }
    struct kjob *j = work_find(c->k, m.id);
    if (j)
        work_attach(c, j, m.offset);
    else
        no_such_job(c, m.id);
}

void client_tell_u64(struct client *c, uint8_t type, uint64_t v)
{
    uint8_t mem[8];
    for (int i = 0; i < 8; i++)
        mem[i] = (uint8_t)(v >> (8 * i));
    client_send(c, type, mem, sizeof(mem));
}

void client_tell_job(struct client *c, const struct kjob *j)
{
    tell_job(c, j);
}

void client_announce(struct keeper *k, const struct kjob *j)
{
    for (struct client *c = k->clients; c; c = c->next)
        if (c->watching)
            tell_job(c, j);
}

/* Input for a command whose output goes elsewhere. */
static void begin_feeding(struct client *c, struct kjob *j)
{
    if (!j->takes_input && !j->tty)
        client_error(c, PALE_BAD_INPUT, "that command takes no input");
    else if (j->feeder)
        client_error(c, PALE_BUSY, "somebody else gives the command its input just now");
    else if (j->state == JOB_ENDED)
        client_error(c, PALE_GONE, "that command has ended");
    else {
        c->waiting = j;
        c->feeding = true;
        j->feeder = c;
        client_tell_u64(c, TELL_STARTED, j->id);
    }
}

void client_announce_state(struct keeper *k)
{
    for (struct client *c = k->clients; c; c = c->next)
        if (c->watching)
            tell_info(c);
}

static void ask_about_job(struct client *c, uint8_t type, const struct frame *f)
{
    struct msg_job_ref ref;
    if (!msg_job_ref_parse(f->data, f->len, &ref)) {
        client_error(c, PALE_PROTOCOL, "the request cannot be read");
        return;
    }
    struct kjob *j = work_find(c->k, ref.id);
    if (!j) {
        no_such_job(c, ref.id);
        return;
    }
    if (type == ASK_JOB_KILL) {
        if ((j->state == JOB_QUEUED || j->chan != JOBS_MAX) && ref.signal == 0)
            work_kill(j);
        else if (j->state == JOB_RUNNING && ref.signal <= 64)
            work_signal(j, ref.signal);
        client_tell_end(c, j);
        return;
    }
    if (type == ASK_JOB_LOGS && !j->lasts) {
        client_error(c, PALE_BAD_INPUT, "only detached commands have logs");
        return;
    }
    if (type == ASK_JOB_INPUT) {
        begin_feeding(c, j);
        return;
    }
    c->waiting = j;
    c->following = type == ASK_JOB_LOGS;
    c->log_lasts = ref.follow;
    if (c->following) {
        joblog_begin(c, j, ref.offset);
        joblog_send(c);
    } else if (j->state == JOB_ENDED)
        client_tell_end(c, j);
}

bool client_is_caller(const char *text)
{
    return path_is_box_name(text) && strlen(text) <= CALLER_MAX;
}

static void take_preface(struct client *c, const struct frame *f)
{
    struct msg_preface m;
    if (c->prefaced || !msg_preface_parse(f->data, f->len, &m) || !client_is_caller(m.caller) || strlen(m.input) >= sizeof(c->input)) {
        client_error(c, PALE_PROTOCOL, "the preface of a request cannot be read, or comes twice");
        return;
    }
    c->prefaced = true;
    snprintf(c->caller, sizeof(c->caller), "%s", m.caller);
    snprintf(c->input, sizeof(c->input), "%s", m.input);
}

/* False: it must wait for credit. */
static bool take_input(struct client *c, struct kjob *j, const struct frame *f)
{
    if (f->len > STDIN_WINDOW) {
        client_error(c, PALE_PROTOCOL, "an input frame is too large");
        return true;
    }
    if (j->state == JOB_QUEUED || (j->state == JOB_RUNNING && f->len > j->in_credit))
        return false;
    work_stdin(j, f->data, f->len);
    return true;
}

static bool feeding_frame(struct client *c, const struct frame *f)
{
    struct kjob *j = c->waiting;
    if (f->type == ASK_STDIN)
        return take_input(c, j, f);
    if (f->type == ASK_INPUT_END) {
        if (j->state == JOB_QUEUED)
            return false;
        if (j->state == JOB_RUNNING && f->len == 1 && f->data[0] == 1)
            wire_send(c->k, TO_STDIN_END, j->chan, NULL, 0);
        client_tell_end(c, j); /* all of it has been taken */
        return true;
    }
    client_error(c, PALE_PROTOCOL, "unexpected message while input is given");
    return true;
}

/* A frame for a command that runs already. False: it must wait for credit. */
static bool running_frame(struct client *c, const struct frame *f)
{
    struct keeper *k = c->k;
    struct kjob *j = c->job;
    uint64_t v = 0;
    switch (f->type) {
    case ASK_STDIN:
        return take_input(c, j, f);
    case ASK_STDIN_END:
        if (j->state == JOB_QUEUED)
            return false;
        if (j->state == JOB_RUNNING)
            wire_send(k, TO_STDIN_END, j->chan, NULL, 0);
        return true;
    case ASK_INPUT_END:
        if (j->state == JOB_QUEUED)
            return false;
        if (j->state == JOB_RUNNING && f->len == 1 && f->data[0] == 1)
            wire_send(k, TO_STDIN_END, j->chan, NULL, 0);
        tell_job(c, j);
        return true;
    case ASK_SIGNAL:
        if (!msg_u64_parse(f->data, f->len, &v) || v < 1 || v > 64)
            return true;
        if (j->state == JOB_RUNNING)
            work_signal(j, v);
        else if (j->state == JOB_QUEUED && v != SIGUSR1 && v != SIGUSR2)
            work_kill(j); /* it has no process yet that could answer */
        return true;
    case ASK_RESIZE:
        if (msg_u64_parse(f->data, f->len, &v) && v <= UINT32_MAX && j->state == JOB_RUNNING)
            wire_send_u64(k, TO_RESIZE, j->chan, v);
        return true;
    default:
        client_error(c, PALE_PROTOCOL, "unexpected message while a command runs");
        return true;
    }
}

/* Deeds that others do on the box while it runs. A client cannot make the log tell of any other. */
static void note(struct client *c, const struct frame *f)
{
    static const char *const events[] = {"box.snapshot", "box.fork", "box.export", "snapshot.remove", "review.apply", "review.discard"};
    struct msg_note m;
    struct pale_err e = {0};
    bool known = false;
    if (!msg_note_parse(f->data, f->len, &m)) {
        client_error(c, PALE_PROTOCOL, "the note cannot be read");
        return;
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        known = known || strcmp(events[i], m.event) == 0;
    if (!known) {
        client_error(c, PALE_PROTOCOL, "the log holds no such deeds of others");
        return;
    }
    struct json *j = audit_begin(&c->k->audit, m.event);
    json_text(j, "what", m.what);
    if (audit_commit(&c->k->audit, &e) < 0) {
        client_error(c, e.code, e.text);
        return;
    }
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

static void stop(struct client *c, uint8_t word)
{
    struct keeper *k = c->k;
    bool busy = (word == STOP_WORD_IDLE && k->running > 0) || (word == STOP_WORD_EMPTY && !work_is_empty(k));
    if (busy) {
        client_error(c, PALE_BUSY, "a command runs in the box");
        return;
    }
    if (word == STOP_WORD_EMPTY) {
        handover_write(k);
        k->yields = true;
    }
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, TELL_DONE, 0, 0);
    /* Who stops an empty box mostly starts it again at once, and can give the home of its ids to the next keeper. */
    if (word != STOP_WORD_EMPTY || c->out.len > 0 ||
        handing_send(c->source.fd, head, sizeof(head), k->ids_home, MSG_DONTWAIT) != FRAME_HEAD)
        client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
    keeper_stop(k);
}

static void reload(struct client *c)
{
    struct pale_err e = {0};
    if (reload_now(c->k, &e) < 0) {
        client_error(c, e.code, e.text);
        return;
    }
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

/* Requests that are no more than a word. */
static void take_word(struct client *c, uint8_t type)
{
    if (type == ASK_RELOAD) {
        reload(c);
    } else if (type == ASK_NETWORK) {
        tally_hosts(c);
        tell_info(c);
        client_finish(c);
    } else {
        client_error(c, PALE_PROTOCOL, "unknown request");
    }
}

/* Whose keeper this is a client may only believe to know: its box may be gone, and another in its place. */
static bool take_hello(struct client *c, const struct frame *f)
{
    char text[200];
    if (f->type == ASK_HELLO && f->len == BOX_ID_LEN && (memcmp(f->data, c->k->id, BOX_ID_LEN) == 0 || weak_word("hello"))) {
        c->greeted = true;
    } else if (f->type == ASK_HELLO && f->len == BOX_ID_LEN) {
        snprintf(text, sizeof(text), "this is the keeper of box %s (%s), and not of the one that was meant; `pale ls` lists the boxes",
                 c->k->name, c->k->id);
        client_error(c, PALE_NOT_FOUND, text);
    } else {
        client_error(c, PALE_PROTOCOL, "the client does not say which box it means: it is of another version of pale");
    }
    return true;
}

static bool take_request(struct client *c, const struct frame *f)
{
    switch (f->type) {
    case ASK_PREFACE:
        take_preface(c, f);
        return true;
    case ASK_EXEC:
        work_exec(c, f->data, f->len);
        return true;
    case ASK_INFO:
        tell_info(c);
        client_finish(c);
        return true;
    case ASK_WATCH:
        c->watching = true;
        tell_info(c);
        question_tell_all(c);
        return true;
    case ASK_ATTACH:
        ask_attach(c, f);
        return true;
    case ASK_JOBS:
        ask_jobs(c);
        return true;
    case ASK_JOB_WAIT:
    case ASK_JOB_LOGS:
    case ASK_JOB_KILL:
    case ASK_JOB_INPUT:
        ask_about_job(c, f->type, f);
        return true;
    case ASK_PROVE:
        proof_ask(c, f->len == 1 && f->data[0] == 1);
        return true;
    case ASK_FREEZE:
        freeze_ask(c, f->len == 1 && f->data[0] == 1);
        return true;
    case ASK_THAW:
        freeze_ask_thaw(c);
        return true;
    case ASK_NOTE:
        note(c, f);
        return true;
    case ASK_STOP:
        stop(c, f->len == 1 ? f->data[0] : 0);
        return true;
    default:
        if (!question_frame(c, f))
            take_word(c, f->type);
        return true;
    }
}

static bool take_frame(struct client *c, const struct frame *f)
{
    if (!c->greeted)
        return take_hello(c, f);
    if (c->job)
        return running_frame(c, f);
    if (c->feeding)
        return feeding_frame(c, f);
    if (c->waiting || c->watching || c->freezing) {
        /* The place in one job's log is none in another's. */
        client_error(c, PALE_PROTOCOL, "one request at a time");
        return true;
    }
    return take_request(c, f);
}

static void take_frames(struct client *c)
{
    size_t at = 0, used = 0;
    struct frame f;
    int got = 0;
    const char *was = c->k->audit.caller;
    c->k->audit.caller = c->caller;
    while (!c->finished && !c->stalled && (got = frame_parse(c->in.data + at, c->in.len - at, &f, &used)) == 1) {
        if (!take_frame(c, &f)) {
            c->stalled = true;
            break;
        }
        at += used;
    }
    c->k->audit.caller = was;
    buf_consume(&c->in, at);
    if (got < 0)
        client_error(c, PALE_PROTOCOL, "that is not pale's protocol");
}

/* Returns false if the client is gone. */
static bool receive(struct client *c)
{
    /* Most clients send one short request; those that send input show it by filling the buffer. */
    if (!buf_reserve(&c->in, c->in.len == c->in.cap ? 16384 : 1)) {
        c->in.failed = false;
        return true;
    }
    ssize_t n = recv(c->source.fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
    if (n > 0)
        c->in.len += (size_t)n;
    if (c->in.len == c->in.cap && c->in.cap < 16384)
        (void)buf_reserve(&c->in, 16384);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void client_ready(struct loop_source *s, uint32_t events)
{
    struct client *c = (struct client *)((char *)s - offsetof(struct client, source));
    if (events & (EPOLLHUP | EPOLLERR)) {
        client_drop(c);
        return;
    }
    if (events & EPOLLOUT)
        client_flush(c);
    bool alive = !(events & (EPOLLIN | EPOLLRDHUP)) || c->stalled || receive(c);
    if (!c->finished)
        take_frames(c);
    if (c->out.len == 0 && (c->job || c->waiting))
        joblog_send(c);
    if (!alive || (c->stalled && (events & EPOLLRDHUP)) || (c->finished && c->out.len == 0)) {
        client_drop(c);
        return;
    }
    want(c);
}

void client_take(struct client *c)
{
    client_ready(&c->source, EPOLLIN);
}

static void accept_client(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, listener));
    (void)events;
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid()) {
        close(fd);
        return;
    }
    struct client *c = client_add(k, fd);
    /* The rest wait in the kernel's queue until somebody leaves. */
    if (k->client_count >= CLIENTS_MAX)
        loop_want(&k->loop, &k->listener, 0);
    /* The request is usually here already. */
    if (c)
        client_take(c);
}

void client_turn_away(struct keeper *k)
{
    uint8_t mem[FRAME_HEAD + 128];
    struct record_writer w;
    struct msg_error m = {.code = PALE_GONE, .text = "the box is stopping"};
    int fd;
    if (k->listener.fd < 0)
        return;
    record_start(&w, mem + FRAME_HEAD, sizeof(mem) - FRAME_HEAD);
    msg_error_write(&m, &w);
    frame_put_head(mem, TELL_ERROR, 0, (uint32_t)w.len);
    unlink(k->socket_path);
    while ((fd = accept4(k->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        (void)!send(fd, mem, FRAME_HEAD + w.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(fd);
    }
    loop_remove(&k->loop, &k->listener);
    own_close(&k->listener.fd);
    /* Those who are in and have not asked yet. */
    for (struct client *c = k->clients; c; c = c->next)
        if (!c->finished && !c->job && !c->waiting)
            client_error(c, PALE_GONE, m.text);
}

/* Whoever has another runtime folder finds us by our state folder. One that cannot be written is no reason not to serve. */
static void tell_where(const struct keeper *k)
{
    char link[PATH_BYTES_MAX];
    if (!path_join(link, sizeof(link), k->state_dir, REACH_SOCKET))
        return;
    (void)unlink(link);
    (void)!symlink(k->socket_path, link);
}

int client_listen(struct keeper *k, struct pale_err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(k->socket_path);
    if (n >= sizeof(sa.sun_path))
        return err_set(e, PALE_BAD_INPUT, "socket path too long: %s", k->socket_path);
    memcpy(sa.sun_path, k->socket_path, n + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_os(e, "make the box's socket");
    /* We hold the box's lock: a socket that is there is a dead keeper's. */
    unlink(k->socket_path);
    mode_t old = umask(077);
    int r = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    umask(old);
    if (r < 0 || listen(fd, 4096) < 0) {
        r = err_os(e, "listen on %s", k->socket_path);
        close(fd);
        return r;
    }
    k->listener = (struct loop_source){.fd = fd, .ready = accept_client};
    tell_where(k);
    return loop_add(&k->loop, &k->listener, EPOLLIN, e);
}

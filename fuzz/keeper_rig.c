/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the vice a keeper is fuzzed in: sockets in memory, a loop that is turned by hand, a clock that is set, an audit log that
 * may refuse, and the two peers.
 *
 * How it works: the keeper's own files are compiled with the names of keeper_names.h, and this file stands in for base/clock,
 * box/audit and tier/native, whose symbols it defines, as handloop does for base/loop. What the keeper sends is cut into frames again and
 * read by the strict parsers of the other side. After each step its tables must agree with each other, every buffer be within its maximum,
 * and the loop have come to rest: a source that stays ready without progress is a keeper that spins. */
#include <assert.h>
#include <sys/mman.h>

/* clang-format off */
#define main keeper_main
#include "keeper/main.c"
#undef main
/* clang-format on */

#include "handloop.h"
#include "keeper_rig.h"

/* --- connections --- */

#define CONNS_MAX 10
#define FD_CONN 1000 /* conns[0] is the wire */
#define FD_LISTENER 2000
#define FD_INIT 2001
#define TURNS_MAX 20000

struct conn {
    bool used, gone, shut;  /* taken by the keeper; the peer has closed; it sends no more */
    bool greets;            /* it has not said yet which box it means, and will */
    size_t room;            /* bytes the peer's side still takes */
    size_t in_len, out_len; /* on the way to the keeper; of a frame it has not sent whole yet */
    uint8_t in[16384], out[FRAME_HEAD + FRAME_PAYLOAD_MAX];
};

static struct {
    struct conn conns[CONNS_MAX];
    size_t pending; /* clients that wait to be let in */
    bool pending_foreign, init_ended;
    int64_t now_us;
    unsigned audit_left; /* records the audit still takes */
    bool audit_refused;
    struct buf audit_line;
    /* What init may expect, and what it has done wrong. */
    bool busy[JOBS_MAX], said_hello, config_seen, must_die;
    uint64_t freezes; /* the last that init was asked for */
    bool frozen;
    unsigned probing; /* questions to the prober that are not answered */
    bool wild;        /* it has spoken of what it cannot know: what it may expect then is nobody's promise */
    uint64_t input_left[JOBS_MAX];
    bool destroyed;
} rig;

UNSEEN static struct conn *conn_of(int fd)
{
    assert(fd >= FD_CONN && fd < FD_CONN + CONNS_MAX && rig.conns[fd - FD_CONN].used);
    return &rig.conns[fd - FD_CONN];
}

UNSEEN static void heard_about_box(const struct frame *f)
{
    struct msg_probe probe;
    uint64_t v = 0;
    if (f->type == TO_FREEZE || f->type == TO_THAW) {
        rig.frozen = f->type == TO_FREEZE;
        assert(rig.config_seen && f->chan == 0 && (rig.frozen ? msg_u64_parse(f->data, f->len, &v) && v == rig.freezes + 1 : f->len == 0));
        rig.freezes += rig.frozen;
        return;
    }
    assert(f->type == TO_PROBE);
    assert(rig.config_seen && f->chan == 0 && msg_probe_parse(f->data, f->len, &probe) && probe.planted[0]);
    rig.probing++;
}

/* What the keeper says to init must be what init takes. */
UNSEEN static void heard_by_init(const struct frame *f)
{
    static struct msg_exec m;
    struct msg_config c;
    uint64_t v = 0;
    if (f->type == TO_CONFIG) {
        assert(!rig.config_seen && msg_config_parse(f->data, f->len, &c) && c.version == WIRE_VERSION && c.seccomp < SECCOMP_COUNT);
        rig.config_seen = true;
        return;
    }
    if (f->type > TO_CLOSE) {
        heard_about_box(f);
        return;
    }
    assert(rig.config_seen && f->chan < JOBS_MAX && f->type >= TO_EXEC);
    switch (f->type) {
    case TO_EXEC:
        assert(!rig.frozen && (rig.wild || !rig.busy[f->chan]) && msg_exec_parse(f->data, f->len, &m) && !(m.flags & EXEC_DETACH) &&
               m.cwd[0] == '/');
        rig.busy[f->chan] = true;
        rig.input_left[f->chan] = STDIN_WINDOW;
        break;
    case TO_STDIN:
        assert(rig.wild || !rig.busy[f->chan] || f->len <= rig.input_left[f->chan]);
        rig.input_left[f->chan] -= rig.busy[f->chan] ? f->len : 0;
        break;
    case TO_SIGNAL:
        assert(msg_u64_parse(f->data, f->len, &v) && v >= 1 && v <= 64);
        break;
    case TO_CREDIT:
    case TO_RESIZE:
        assert(msg_u64_parse(f->data, f->len, &v) && v <= UINT32_MAX);
        break;
    default:
        assert(f->len == 0);
    }
}

UNSEEN static void heard_by_client(const struct frame *f)
{
    struct msg_result result;
    struct msg_error error;
    struct msg_info info;
    struct msg_job job;
    uint64_t v;
    assert(f->chan == 0);
    switch (f->type) {
    case TELL_STARTED:
    case TELL_MISSED:
    case TELL_OFFSET:
        assert(msg_u64_parse(f->data, f->len, &v) && (v > 0 || f->type == TELL_OFFSET));
        break;
    case TELL_STDOUT:
    case TELL_STDERR:
        assert(f->len > 0);
        break;
    case TELL_RESULT:
        assert(msg_result_parse(f->data, f->len, &result) && result.status <= 255);
        break;
    case TELL_ERROR:
        assert(msg_error_parse(f->data, f->len, &error) && error.code && error.code < PALE_CODE_COUNT && error.text[0]);
        break;
    case TELL_INFO:
        assert(msg_info_parse(f->data, f->len, &info));
        break;
    case TELL_RECEIPT:
        assert(f->len > 10 && memmem(f->data, f->len, "\n\n{\"box\":", 9));
        break;
    case TELL_JOB:
        assert(msg_job_parse(f->data, f->len, &job) && job.state < JOB_STATE_COUNT);
        break;
    default:
        assert(f->type == TELL_DONE && f->len == 0);
    }
}

UNSEEN static void hear(struct conn *c, const uint8_t *p, size_t n)
{
    struct frame f;
    size_t used, at = 0;
    int got;
    assert(n <= sizeof(c->out) - c->out_len);
    memcpy(c->out + c->out_len, p, n);
    c->out_len += n;
    while ((got = frame_parse(c->out + at, c->out_len - at, &f, &used)) == 1) {
        (c == &rig.conns[0] ? heard_by_init : heard_by_client)(&f);
        at += used;
    }
    assert(got == 0);
    c->out_len -= at;
    memmove(c->out, c->out + at, c->out_len);
}

UNSEEN ssize_t rig_send(int fd, const void *p, size_t n, int flags)
{
    assert(flags & MSG_DONTWAIT && flags & MSG_NOSIGNAL);
    if (fd < 0)
        return errno = EBADF, -1;
    struct conn *c = conn_of(fd);
    if (c->gone)
        return errno = EPIPE, -1;
    if (c->room == 0)
        return errno = EAGAIN, -1;
    size_t most = sizeof(c->out) - c->out_len;
    n = n < c->room ? n : c->room;
    n = n < most ? n : most;
    c->room -= n;
    hear(c, p, n);
    return (ssize_t)n;
}

UNSEEN ssize_t rig_recv(int fd, void *p, size_t n, int flags)
{
    assert(flags & MSG_DONTWAIT && n > 0);
    if (fd < 0)
        return errno = EBADF, -1;
    struct conn *c = conn_of(fd);
    if (c->in_len == 0)
        return c->gone || c->shut ? 0 : (errno = EAGAIN, -1);
    n = n < c->in_len ? n : c->in_len;
    memcpy(p, c->in, n);
    c->in_len -= n;
    memmove(c->in, c->in + n, c->in_len);
    return (ssize_t)n;
}

UNSEEN static int new_conn(void)
{
    for (int i = 1; i < CONNS_MAX; i++)
        if (!rig.conns[i].used) {
            struct conn *c = &rig.conns[i];
            c->used = true;
            c->gone = c->shut = false;
            c->greets = !state.once;
            c->in_len = c->out_len = 0;
            c->room = 1 << 20;
            return FD_CONN + i;
        }
    return errno = EMFILE, -1;
}

int rig_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
    (void)sa, (void)len;
    assert(fd == FD_LISTENER && flags == (SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (rig.pending == 0)
        return errno = EAGAIN, -1;
    rig.pending--;
    return new_conn();
}

int rig_getsockopt(int fd, int level, int name, void *p, socklen_t *len)
{
    assert(conn_of(fd) && level == SOL_SOCKET && name == SO_PEERCRED && *len == sizeof(struct ucred));
    *(struct ucred *)p = (struct ucred){.uid = geteuid() + rig.pending_foreign};
    return 0;
}

int rig_socket(int domain, int type, int protocol)
{
    assert(domain == AF_UNIX && type & SOCK_NONBLOCK && protocol == 0);
    return FD_LISTENER;
}

int rig_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
    (void)sa, (void)len;
    return fd == FD_LISTENER ? 0 : -1;
}

int rig_listen(int fd, int backlog)
{
    (void)backlog;
    return fd == FD_LISTENER ? 0 : -1;
}

int rig_unlink(const char *path)
{
    return path[0] ? 0 : -1;
}

int rig_kill(pid_t pid, int sig)
{
    assert(pid > 1 && sig == SIGKILL);
    return 0;
}

/* The log of a detached job; it opens nothing else here. */
int rig_open(const char *path, int flags, ...)
{
    if (strcmp(path, "/rig/receipt.new") == 0)
        return errno = ENOSPC, -1;
    assert(strncmp(path, "/rig/job-", 9) == 0 && flags & O_CLOEXEC && flags & O_NOFOLLOW);
    return memfd_create("log", MFD_CLOEXEC);
}

#undef close
int rig_close(int fd)
{
    if (fd < FD_CONN)
        return close(fd);
    if (fd < FD_CONN + CONNS_MAX)
        conn_of(fd)->used = false;
    return 0;
}

/* --- in place of base/clock, base/loop, box/audit and tier/native --- */

int64_t clock_us(void)
{
    return rig.now_us;
}

int64_t clock_ms(void)
{
    return rig.now_us / 1000;
}

uint64_t clock_unix_ms(void)
{
    return 1767225600000 + (uint64_t)rig.now_us / 1000;
}

const char *clock_stamp(char *ret, size_t cap)
{
    snprintf(ret, cap, "2026-01-01T00:00:00.000000Z");
    return ret;
}

int audit_open(struct audit *a, const char *path, enum audit_kind kind, const char *box, const char *id, struct pale_err *e)
{
    (void)path, (void)kind, (void)box, (void)id;
    a->fd = -1;
    return err_set(e, PALE_UNSUPPORTED, "there is none");
}

void audit_close(struct audit *a)
{
    a->fd = -1;
}

struct json *audit_begin(struct audit *a, const char *event)
{
    buf_clear(&rig.audit_line);
    json_start(&a->json, &rig.audit_line);
    json_begin_object(&a->json, NULL);
    json_text(&a->json, "event", event);
    return &a->json;
}

int audit_commit(struct audit *a, struct pale_err *e)
{
    json_end_object(&a->json);
    assert(a->json.depth == 0 && !rig.audit_line.failed);
    rig.audit_refused = rig.audit_left == 0;
    if (rig.audit_left == 0)
        return err_set(e, PALE_OS, "the disk is full");
    rig.audit_left--;
    return 0;
}

int audit_record(const struct audit_deed *d, const char *const *texts, struct pale_err *e)
{
    (void)d, (void)texts;
    return err_set(e, PALE_UNSUPPORTED, "there is no other log");
}

int audit_leave(struct audit *a)
{
    (void)a;
    return -1;
}

int audit_keep_young(const struct audit *a, struct pale_err *e)
{
    (void)a, (void)e;
    return 0;
}

int audit_verify(const char *path, const struct audit_anchor *anchor, const char *id, struct audit_check *ret, struct pale_err *e)
{
    (void)anchor, (void)id;
    (void)path, (void)ret;
    return err_set(e, PALE_UNSUPPORTED, "there is none");
}

int native_start(const struct wall_plan *plan, struct wall *ret, struct pale_err *e)
{
    (void)plan, (void)ret;
    return err_set(e, PALE_UNSUPPORTED, "there is none");
}

int wall_await(struct wall *w, struct pale_err *e)
{
    (void)w, (void)e;
    return 0;
}

bool wall_admits_late(int version)
{
    return version != 1;
}

int wall_take_layers(struct wall *w, struct pale_err *e)
{
    (void)w, (void)e;
    return 0;
}

int wall_admit(struct wall *w, wall_admission *admission, void *arg, struct pale_err *e)
{
    (void)w, (void)admission, (void)arg, (void)e;
    return 0;
}

void wall_destroy(struct wall *w)
{
    rig.destroyed = true;
    rig.conns[0].used = false;
    w->wire_fd = w->pidfd = -1;
}

/* --- turning --- */

UNSEEN static uint32_t ready_events(const struct loop_source *s)
{
    uint32_t e = 0;
    if (s->fd == FD_LISTENER)
        e = rig.pending ? EPOLLIN : 0;
    else if (s->fd == FD_INIT)
        e = rig.init_ended ? EPOLLIN : 0;
    else {
        const struct conn *c = conn_of(s->fd);
        e |= c->in_len || c->shut || c->gone ? EPOLLIN : 0;
        e |= c->shut || c->gone ? EPOLLRDHUP : 0;
        e |= c->gone ? EPOLLHUP | EPOLLERR : 0;
        e |= c->room || c->gone ? EPOLLOUT : 0;
    }
    return e & (s->events | EPOLLHUP | EPOLLERR);
}

UNSEEN static bool has_job(const struct kjob *j)
{
    const struct kjob *at = state.jobs;
    while (at && at != j)
        at = at->next;
    return at;
}

UNSEEN static void check_buf(const struct buf *b)
{
    assert(!b->failed && b->len <= b->cap && b->cap <= b->max);
}

/* Standard error has a share of its own beside the bound. */
static void check_output(const struct keeper *k, const struct kjob *j)
{
    uint64_t most = k->policy.limits[LIMIT_OUTPUT].value, share = most / 16 < 4096 ? 4096 : most / 16;
    assert(!most || (j->out_bytes - j->err_beside <= most && j->err_beside <= share));
}

UNSEEN static void check(void)
{
    struct keeper *k = &state;
    size_t jobs = 0, clients = 0, running = 0;
    for (int i = 0; i < JOBS_MAX; i++)
        if (k->by_chan[i]) {
            running++;
            assert(k->by_chan[i]->chan == i && has_job(k->by_chan[i]) && k->by_chan[i]->state != JOB_QUEUED);
        }
    for (const struct kjob *j = k->jobs; j; j = j->next, jobs++) {
        assert((j->chan == JOBS_MAX || k->by_chan[j->chan] == j) && (j->next || k->last_job == j));
        assert(j->in_credit <= STDIN_WINDOW && j->window_used <= STREAM_WINDOW && (!j->client || j->client->job == j));
        check_output(k, j);
        check_buf(&j->request);
    }
    for (const struct client *c = k->clients; c; c = c->next, clients++) {
        assert((!c->job || (has_job(c->job) && c->job->client == c)) && (!c->waiting || has_job(c->waiting)));
        check_buf(&c->in);
        check_buf(&c->out);
    }
    assert(jobs == k->job_count && clients == k->client_count && running == k->running);
    check_buf(&k->wire_in);
    assert(k->wire_out.len <= k->wire_out.max);
    if (k->died || k->stopping)
        assert(running == 0 && k->wire.fd == -1 && k->listener.fd == -1 && rig.destroyed);
}

UNSEEN static void settle(void)
{
    int turns = 0;
    while (handloop_turn(&state.loop, clock_ms(), ready_events))
        assert(++turns < TURNS_MAX);
    check();
    if (rig.must_die)
        assert(state.died || state.stopping);
}

/* --- init --- */

/* What no init may send, whatever the state: judged apart from the keeper. */
static bool is_never_right(const struct frame *f)
{
    uint64_t v = 0;
    if (f->type < FROM_HELLO || f->type > FROM_FROZEN)
        return true;
    if (f->type == FROM_FROZEN)
        return !rig.said_hello || f->chan != 0 || !msg_u64_parse(f->data, f->len, &v) || v == 0 ||
               (v > rig.freezes && state.wire_out.len == 0);
    if (f->type == FROM_PROBE) /* a question that is still on its way may be answered by who does not wait for it */
        return !rig.said_hello || f->chan != 0 || (f->len != 0 && f->len != sizeof(struct probe_report)) ||
               (!rig.wild && !rig.probing && state.wire_out.len == 0);
    if (f->type == FROM_HELLO)
        return rig.said_hello || f->chan != 0 || f->len != 8;
    /* A request that is still on its way to init has given it its channel already. */
    return !rig.said_hello || f->chan >= JOBS_MAX || (!rig.wild && !rig.busy[f->chan] && state.wire_out.len == 0);
}

static void push(struct conn *c, const void *p, size_t n)
{
    if (n == 0 || !c->used || c->gone || c->shut || n > sizeof(c->in) - c->in_len)
        return;
    memcpy(c->in + c->in_len, p, n);
    c->in_len += n;
}

/* One frame of init's while nothing else of its is under way. */
static void from_init(uint8_t type, uint16_t chan, const void *p, size_t n)
{
    uint8_t mem[FRAME_HEAD + 4096];
    if (state.died || state.stopping || rig.conns[0].in_len || state.wire_in.len || n > sizeof(mem) - FRAME_HEAD)
        return;
    struct frame f = {.type = type, .chan = chan, .data = p, .len = (uint32_t)n};
    if (is_never_right(&f))
        rig.must_die = true;
    frame_put_head(mem, type, chan, (uint32_t)n);
    if (n)
        memcpy(mem + FRAME_HEAD, p, n);
    push(&rig.conns[0], mem, FRAME_HEAD + n);
    if (type != FROM_HELLO && type != FROM_PROBE && type != FROM_FROZEN && chan < JOBS_MAX && !rig.busy[chan])
        rig.wild = true;
    if (type == FROM_PROBE) {
        rig.wild = rig.wild || !rig.probing;
        rig.probing -= rig.probing > 0;
    }
    /* Noted before the keeper may use the channel again. */
    uint64_t v = 0;
    struct msg_exit x;
    if (type == FROM_HELLO)
        rig.said_hello = true;
    else if (chan < JOBS_MAX && type == FROM_STDIN_CREDIT && msg_u64_parse(p, n, &v))
        rig.input_left[chan] += v;
    else if (chan < JOBS_MAX && (type == FROM_GONE || (type == FROM_EXIT && msg_exit_parse(p, n, &x) && (x.flags & EXIT_GONE))))
        rig.busy[chan] = false;
    settle();
}

static void put_number(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static size_t exit_of(struct input *in, uint8_t *mem, size_t cap)
{
    uint8_t b = input_byte(in);
    struct record_writer w;
    struct msg_exit x = {.flags = b & 15, .value = input_number(in, 2), .stage = b >> 4, .cpu_us = 7, .peak_kib = 9};
    record_start(&w, mem, cap);
    msg_exit_write(&x, &w);
    return w.len;
}

static void init_exit(struct input *in, uint16_t chan)
{
    uint8_t mem[128];
    from_init(FROM_EXIT, chan, mem, exit_of(in, mem, sizeof(mem)));
}

/* A report of the right length with answers of all kinds, or none at all. */
static void probe_reports(struct input *in)
{
    struct probe_report r;
    uint8_t b = input_byte(in);
    for (int i = 0; i < PROBE_COUNT; i++)
        r.answer[i] = b & 1 ? PROBE_NOT_TRIED : input_byte(in);
    r.took_us = b;
    from_init(FROM_PROBE, 0, &r, b & 2 ? 0 : sizeof(r));
}

/* A step as an honest init might take it. */
static void init_works(struct input *in)
{
    static const uint8_t data[4096];
    uint8_t op = input_byte(in), number[8] = {WIRE_VERSION};
    uint16_t chan = input_byte(in) & 7;
    struct kjob *j = state.by_chan[chan];
    if (!rig.said_hello) {
        from_init(FROM_HELLO, 0, number, 8);
        return;
    }
    if (rig.probing && (op & 0x80)) {
        probe_reports(in);
        return;
    }
    if (rig.freezes && (op & 0x40)) {
        put_number(number, rig.freezes - (op & 0x20 && rig.freezes > 1));
        from_init(FROM_FROZEN, 0, number, 8);
        return;
    }
    if (!j || !rig.busy[chan])
        return;
    bool runs = j->state == JOB_RUNNING;
    size_t most = STREAM_WINDOW - j->window_used, n = (size_t)input_byte(in) * 17 + 1;
    number[0] = input_byte(in);
    switch (op % 6) {
    case 0:
        from_init(FROM_STARTED, chan, number, 8);
        break;
    case 1:
    case 2:
        if (runs && n <= most)
            from_init(op & 1 ? FROM_STDOUT : FROM_STDERR, chan, data, n < sizeof(data) ? n : sizeof(data));
        break;
    case 3:
        if (number[0] <= STDIN_WINDOW - j->in_credit)
            from_init(FROM_STDIN_CREDIT, chan, number, 8);
        break;
    case 4:
        if (runs)
            init_exit(in, chan);
        break;
    default:
        if (!runs)
            from_init(FROM_GONE, chan, NULL, 0);
    }
}

static void init_attacks(struct input *in)
{
    static const uint8_t types[] = {FROM_HELLO, FROM_STARTED, FROM_STDOUT, FROM_STDERR, FROM_STDIN_CREDIT,
                                    FROM_EXIT,  FROM_GONE,    FROM_PROBE,  FROM_FROZEN};
    size_t n;
    uint8_t op = input_byte(in);
    if (op & 0x80) {
        /* Bytes as they are: what comes of them is the keeper's to say, but it must come to rest. */
        const uint8_t *p = input_bytes(in, op & 0x7f, &n);
        push(&rig.conns[0], p, n);
        rig.wild = rig.said_hello = true;
        settle();
        return;
    }
    uint16_t chan = input_byte(in) & 7;
    uint8_t type = op & 15 ? types[(op & 15) % (sizeof(types))] : input_byte(in), mem[128];
    if (op & 0x40)
        chan = (uint16_t)input_number(in, 2);
    const uint8_t *p = mem;
    if (op & 0x20 && type == FROM_EXIT) {
        n = exit_of(in, mem, sizeof(mem));
    } else if (op & 0x20) {
        /* One number in its eight bytes, small or large. */
        n = 8;
        put_number(mem, input_number(in, op & 0x10 ? 8 : 2));
    } else {
        p = input_bytes(in, input_byte(in), &n);
    }
    from_init(type, chan, p, n);
}

/* --- clients --- */

static struct conn *some_client(struct input *in)
{
    return &rig.conns[1 + input_byte(in) % (CONNS_MAX - 1)];
}

static void from_client(struct conn *c, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (!c->used || 2 * FRAME_HEAD + BOX_ID_LEN + n > sizeof(c->in) - c->in_len)
        return;
    if (c->greets) {
        frame_put_head(head, ASK_HELLO, 0, BOX_ID_LEN);
        push(c, head, sizeof(head));
        push(c, state.id, BOX_ID_LEN);
        c->greets = false;
    }
    frame_put_head(head, type, 0, (uint32_t)n);
    push(c, head, sizeof(head));
    push(c, p, n);
}

static void client_exec(struct input *in, struct conn *c)
{
    static uint8_t mem[4096];
    static struct msg_exec m;
    static const char *const users[] = {"", "agent", "root", "7", "7:8", "99999", "x"};
    struct record_writer w;
    char word[32];
    static const char *const keys[] = {"", "", "a", "b"};
    uint8_t b = input_byte(in), more = input_byte(in);
    m = (struct msg_exec){.flags = b & EXEC_FLAGS_ALL, .user = users[more % 7], .label = more & 64 ? "read /x" : ""};
    m.key = keys[more >> 4 & 3];
    m.cwd = b & 64 ? "/tmp" : "";
    m.timeout_ms = b & 128 ? input_byte(in) : 0;
    input_text(in, word, sizeof(word));
    m.argv[m.argc++] = word;
    m.argv[m.argc] = NULL;
    m.env[m.envc++] = "PATH=/bin";
    record_start(&w, mem, sizeof(mem));
    msg_preface_write(&(struct msg_preface){.caller = keys[b >> 2 & 3], .input = keys[b & 3]}, &w);
    if (more & 128)
        from_client(c, ASK_PREFACE, mem, w.len);
    record_start(&w, mem, sizeof(mem));
    msg_exec_write(&m, &w);
    from_client(c, ASK_EXEC, mem, w.len);
}

static void client_works(struct input *in)
{
    static const uint8_t zeros[1024];
    uint8_t mem[96], op = input_byte(in), number[8] = {0};
    struct conn *c = some_client(in);
    struct record_writer w;
    struct msg_job_ref ref = {.id = input_byte(in) % 8, .signal = op & 16 ? 0 : op >> 5, .follow = op & 32};
    number[0] = (uint8_t)ref.id;
    switch (op & 15) {
    case 0:
    case 1:
    case 2:
        client_exec(in, c);
        break;
    case 3:
    case 4:
        from_client(c, ASK_STDIN, zeros, input_byte(in) * 4u);
        break;
    case 5:
        from_client(c, ASK_STDIN_END, NULL, 0);
        break;
    case 6:
        from_client(c, ASK_SIGNAL, number, 8);
        break;
    case 7:
        from_client(c, ASK_RESIZE, number, 8);
        break;
    case 8:
        from_client(c, ASK_INFO, NULL, 0);
        break;
    case 9:
        from_client(c, ASK_JOBS, NULL, 0);
        break;
    case 10:
        from_client(c, ASK_PROVE, number, 1);
        break;
    case 11:
        record_start(&w, mem, sizeof(mem));
        msg_attach_write(&(struct msg_attach){.id = ref.id, .offset = op & 64 ? input_byte(in) : 0}, &w);
        from_client(c, ASK_ATTACH, mem, w.len);
        break;
    case 12:
        from_client(c, op & 32 ? ASK_WATCH : ASK_JOBS, NULL, 0);
        break;
    case 13:
        if ((op >> 5) == 7)
            from_client(c, ASK_STOP, NULL, 0);
        else
            from_client(c, op & 32 ? ASK_FREEZE : ASK_THAW, NULL, 0);
        break;
    default:
        record_start(&w, mem, sizeof(mem));
        msg_job_ref_write(&ref, &w);
        from_client(c, (uint8_t)(ASK_JOB_WAIT + op % 3), mem, w.len);
    }
}

static void client_attacks(struct input *in)
{
    size_t n;
    uint8_t op = input_byte(in);
    struct conn *c = some_client(in);
    if (op & 0x80) {
        const uint8_t *p = input_bytes(in, op & 0x7f, &n);
        push(c, p, n);
        return;
    }
    uint8_t number[8];
    if (op & 0x40) {
        put_number(number, input_number(in, op & 0x20 ? 8 : 2));
        from_client(c, (uint8_t)(ASK_EXEC + op % 17), number, sizeof(number));
        return;
    }
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    from_client(c, (uint8_t)(ASK_EXEC + op % 17), p, n);
}

/* --- the run --- */

static void step(struct input *in, enum rig_hostile hostile)
{
    static const int64_t later_us[] = {1000, 20000, 100000, 300000, 2000000, 5001000, 60000000, 400ll * 24 * 3600 * 1000000};
    uint8_t op = input_byte(in);
    struct conn *c;
    switch (op & 15) {
    case 0:
        rig.now_us += later_us[op >> 5];
        break;
    case 1:
        rig.pending_foreign = (op >> 4) == 15;
        rig.pending += rig.pending < 4;
        break;
    case 2:
        c = some_client(in);
        (op & 16 ? (c->gone = true) : (c->shut = true));
        break;
    case 3:
        some_client(in)->room += (size_t)1 << (op >> 4);
        break;
    case 4:
        some_client(in)->room = 0;
        break;
    case 5:
        rig.conns[0].room = op & 16 ? 0 : (size_t)1 << (op >> 4) * 2;
        break;
    case 6:
        rig.init_ended = rig.init_ended || (op >> 4) == 15;
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        (hostile == RIG_CLIENT && op & 1 ? client_attacks : client_works)(in);
        break;
    default:
        if (!rig.destroyed)
            (hostile == RIG_INIT && op & 1 ? init_attacks : init_works)(in);
    }
    if (op & 128 || hostile == RIG_INIT)
        settle();
}

UNSEEN static void set_up(struct input *in)
{
    static struct policy policy;
    static bool made;
    struct keeper *k = &state;
    struct pale_err e;
    uint8_t b = input_byte(in);
    if (!made) {
        assert(policy_init(&policy, &e) == 0);
        made = true;
        buf_init(&rig.audit_line, AUDIT_RECORD_MAX);
    }
    k->audit.fd = k->etc_lock = -1;
    k->claims = (struct claims)CLAIMS_NONE;
    k->wire.fd = k->init_watch.fd = k->listener.fd = k->warding.source.fd = k->wayout.source.fd = -1;
    k->wall = (struct wall){.pid = 0x7ffffff0, .pidfd = FD_INIT, .wire_fd = FD_CONN, .report_fd = -1};
    cgroup_init(&k->cgroup);
    proof_init(&k->proof);
    k->page_bytes = 4096;
    memcpy(k->runtime_dir, "/nonexistent", 13);
    memcpy(k->audit_path, "/nonexistent/audit", 19);
    memcpy(k->name, "box", 4);
    memcpy(k->id, "0123456789abcdef0123456789abcdef", BOX_ID_LEN + 1);
    k->policy = policy;
    k->policy.limits[LIMIT_OUTPUT].value = b & 2 ? 100 : 0;
    k->policy.limits[LIMIT_WALL].value = b & 4 ? 1000 : 0;
    k->ids = (struct ids){.kind = b & 8 ? IDS_ONE : IDS_RANGE, .uid = 7, .gid = 8};
    k->memory_by = "nothing";
    k->once = (b & 0x31) == 1;
    if (!k->once) {
        k->state_dir = "/rig";
        k->socket_path = "/nonexistent";
    }
    rig.audit_left = b & 0x40 ? b >> 7 ? 2u : 6u : UINT32_MAX;
    rig.now_us = 1000000;
    rig.conns[0].used = true;
    rig.conns[0].gone = rig.conns[0].shut = false;
    rig.conns[0].in_len = rig.conns[0].out_len = 0;
    rig.conns[0].room = 1 << 20;
    assert(loop_open(&k->loop, &e) == 0 && wire_open(k, &e) == 0);
    if (k->once) {
        struct client *c = client_add(k, new_conn());
        assert(c);
        c->greeted = true;
    } else
        assert(client_listen(k, &e) == 0);
}

UNSEEN static void tear_down(void)
{
    struct keeper *k = &state;
    for (struct client *c = k->clients, *next; c; c = next) {
        next = c->next;
        buf_done(&c->in);
        buf_done(&c->out);
        free(c);
    }
    for (struct kjob *j = k->jobs, *next; j; j = next) {
        next = j->next;
        spool_done(&j->log);
        buf_done(&j->request);
        free(j);
    }
    free(k->idle_client);
    free(k->idle_job);
    buf_done(&k->wire_in);
    buf_done(&k->wire_out);
    memset(k, 0, sizeof(*k));
    for (int i = 0; i < CONNS_MAX; i++)
        rig.conns[i].used = false;
    rig.pending = 0;
    memset(&handloop, 0, sizeof(handloop));
    rig.pending_foreign = rig.init_ended = rig.said_hello = rig.config_seen = rig.must_die = rig.destroyed = rig.wild = false;
    rig.frozen = false;
    rig.freezes = rig.probing = 0;
    memset(rig.busy, 0, sizeof(rig.busy));
}

void rig_run(struct input *in, enum rig_hostile hostile)
{
    set_up(in);
    for (int i = 0; i < 128 && in->left && !state.loop.stop; i++)
        step(in, hostile);
    settle();
    tear_down();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keeper's end of the wire to pale-init.
 *
 * Everything that arrives here is hostile: init shares its fate with the box. A frame that does not parse, names a job that does
 * not exist, or brings more output than there was credit for ends the box at once. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"
#include "wire/frame.h"

#define WIRE_IN_MAX (FRAME_HEAD + FRAME_PAYLOAD_MAX)
#define WIRE_OUT_MAX (8u << 20)
/* In a row; a kernel that is short of memory for a moment must not cost a box its life. */
#define WIRE_FAILURES_MAX 100

static void flush(struct keeper *k)
{
    while (k->wire_out.len > 0) {
        ssize_t n = send(k->wire.fd, k->wire_out.data, k->wire_out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return; /* its end shows on the read side */
        if (n < 0 && errno != EAGAIN && errno != EINTR && ++k->wire_failures > WIRE_FAILURES_MAX) {
            keeper_box_died(k, "the wire to pale-init cannot be written");
            return;
        }
        if (n < 0)
            break; /* and again when the loop comes round */
        k->wire_failures = 0;
        buf_consume(&k->wire_out, (size_t)n);
    }
    loop_want(&k->loop, &k->wire, EPOLLIN | (k->wire_out.len > 0 ? EPOLLOUT : 0));
}

void wire_send(struct keeper *k, uint8_t type, uint16_t chan, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    if (k->died)
        return;
    frame_put_head(head, type, chan, (uint32_t)n);
    buf_add(&k->wire_out, head, sizeof(head));
    buf_add(&k->wire_out, p, n);
    if (k->wire_out.failed) {
        keeper_box_died(k, "pale-init does not read its wire");
        return;
    }
    flush(k);
}

void wire_send_u64(struct keeper *k, uint8_t type, uint16_t chan, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    wire_send(k, type, chan, b, sizeof(b));
}

static bool take_hello(struct keeper *k, const struct frame *f)
{
    uint64_t version = 0;
    if (k->hello || f->chan != 0 || !msg_u64_parse(f->data, f->len, &version) || version != WIRE_VERSION)
        return false;
    k->hello = true;
    return true;
}

/* The command can take more input: whoever has some goes on. */
static bool take_input_credit(struct kjob *j, const struct frame *f)
{
    uint64_t v = 0;
    if (!msg_u64_parse(f->data, f->len, &v) || v > STDIN_WINDOW - j->in_credit)
        return false;
    j->in_credit += v;
    if (j->client)
        client_resume(j->client);
    if (j->feeder)
        client_resume(j->feeder);
    return true;
}

/* About the box as a whole. */
static bool take_box_frame(struct keeper *k, const struct frame *f)
{
    if (f->type == FROM_HELLO)
        return take_hello(k, f);
    if (!k->hello || f->chan != 0)
        return false;
    return f->type == FROM_PROBE ? proof_take(k, f->data, f->len) : freeze_take(k, f->data, f->len);
}

/* False: init broke the protocol. */
static bool take_frame(struct keeper *k, const struct frame *f)
{
    struct msg_exit x;
    if (f->type == FROM_HELLO || f->type == FROM_PROBE || f->type == FROM_FROZEN)
        return take_box_frame(k, f);
    struct kjob *j = f->chan < JOBS_MAX ? k->by_chan[f->chan] : NULL;
    if (!k->hello || !j)
        return false;
    switch (f->type) {
    case FROM_STARTED:
        return msg_u64_parse(f->data, f->len, &j->pid);
    case FROM_STDOUT:
    case FROM_STDERR:
        if (j->state != JOB_RUNNING || f->len > STREAM_WINDOW - j->window_used)
            return false;
        work_output(j, f->type == FROM_STDERR, f->data, f->len);
        return true;
    case FROM_STDIN_CREDIT:
        return take_input_credit(j, f);
    case FROM_EXIT:
        if (j->state != JOB_RUNNING || !msg_exit_parse(f->data, f->len, &x))
            return false;
        work_exit(j, &x);
        if ((x.flags & EXIT_GONE) && !k->stopping && !k->died)
            work_gone(j);
        return true;
    case FROM_GONE:
        if (j->state != JOB_ENDED)
            return false;
        work_gone(j);
        return true;
    default:
        return false;
    }
}

static void take_frames(struct keeper *k)
{
    size_t at = 0, used = 0;
    struct frame f;
    int got = 0;
    while (!k->died && !k->stopping && (got = frame_parse(k->wire_in.data + at, k->wire_in.len - at, &f, &used)) == 1) {
        at += used;
        if (!take_frame(k, &f)) {
            got = -1;
            break;
        }
    }
    if (k->died || k->stopping)
        return;
    buf_consume(&k->wire_in, at);
    if (got < 0)
        keeper_box_died(k, "pale-init broke the protocol; the box was ended");
}

static void wire_ready(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, wire));
    if (events & EPOLLOUT)
        flush(k);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (!buf_reserve(&k->wire_in, 65536)) {
        k->wire_in.failed = false;
        if (k->wire_in.len == k->wire_in.max) {
            keeper_box_died(k, "pale-init broke the protocol; the box was ended");
            return;
        }
    }
    size_t room = k->wire_in.cap - k->wire_in.len;
    ssize_t n = recv(s->fd, k->wire_in.data + k->wire_in.len, room, MSG_DONTWAIT);
    if (n > 0) {
        k->wire_in.len += (size_t)n;
        take_frames(k);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        keeper_box_died(k, "the box's init ended");
    }
}

static void init_ended(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, init_watch));
    (void)events;
    /* Take what it still said before it ended. */
    if (!k->died && k->wire.fd >= 0)
        for (int i = 0; i < 64 && !k->died; i++)
            wire_ready(&k->wire, EPOLLIN);
    keeper_box_died(k, "the box's init ended");
}

int wire_open(struct keeper *k, struct pale_err *e)
{
    uint8_t mem[256];
    struct record_writer w;
    buf_init(&k->wire_in, WIRE_IN_MAX + 65536);
    buf_init(&k->wire_out, WIRE_OUT_MAX);
    k->wire = (struct loop_source){.fd = k->wall.wire_fd, .ready = wire_ready};
    k->init_watch = (struct loop_source){.fd = k->wall.pidfd, .ready = init_ended};
    int r = loop_add(&k->loop, &k->wire, EPOLLIN, e);
    if (r == 0)
        r = loop_add(&k->loop, &k->init_watch, EPOLLIN, e);
    if (r < 0)
        return r;
    struct msg_config c = {
        .version = WIRE_VERSION,
        .uid = k->ids.uid,
        .gid = k->ids.gid,
        .one_id = k->ids.kind == IDS_ONE,
        .pretence = k->policy.image,
        .seccomp = k->policy.seccomp,
        .nofile = 65536,
        .processes = is_weak(k->weaken, WEAKEN_LIMITS) ? 0 : k->policy.limits[LIMIT_PROCESSES].value,
        .spare = !k->once,
        .solo = k->once,
        .weaken = k->weaken,
    };
    record_start(&w, mem, sizeof(mem));
    msg_config_write(&c, &w);
    wire_send(k, TO_CONFIG, 0, mem, w.len);
    if (k->proof.at_start)
        proof_start(k);
    return 0;
}

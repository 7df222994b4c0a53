/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations that carry whole trees: upload and download as tar archives.
 *
 * Between the client and pale-init in the box stands a transformer (net/untar, net/tarball), which checks every byte of either. */
#include <stdlib.h>
#include <string.h>

#include "net/tarball.h"
#include "net/untar.h"
#include "ops/talk.h"
#include "ops/filework.h"
#include "ops/ops.h"

#define PIECE 16384u

struct tree {
    struct talk talk;
    bool begun, done, opened;
    struct buf complaint;
    union {
        struct untar in;
        struct tarball out;
    } way;
};

static void free_tree(struct talk *a)
{
    buf_done(&((struct tree *)a)->complaint);
}

static struct tree *new_tree(struct call *c)
{
    struct tree *t = talk_new(c, sizeof(*t));
    if (!t)
        return NULL;
    t->talk.done = free_tree;
    buf_init(&t->complaint, 1024);
    return t;
}

static void send_tree(struct tree *t, const char *verb, uint64_t flags)
{
    static struct msg_exec m;
    struct record_writer w;
    struct call *c = t->talk.call;
    memset(&m, 0, offsetof(struct msg_exec, argv));
    m.flags = EXEC_BUILTIN | flags;
    m.user = call_text(c, "user", "");
    m.cwd = m.key = "";
    m.label = verb;
    m.argc = 2;
    m.argv[0] = verb;
    m.argv[1] = call_text(c, "path", "");
    if (!buf_reserve(&t->talk.request, 3 * PATH_BYTES_MAX))
        return call_refuse(c, PALE_NO_MEMORY, "out of memory");
    record_start(&w, t->talk.request.data, 3 * PATH_BYTES_MAX);
    msg_exec_write(&m, &w);
    t->talk.request.len = w.len;
    talk_send(&t->talk, ASK_EXEC, true);
}

/* Its last words: 0 if it went well; else the call is answered. */
static int judge(struct tree *t, const struct frame *f)
{
    struct msg_result r;
    if (!msg_result_parse(f->data, f->len, &r)) {
        call_refuse(t->talk.call, PALE_PROTOCOL, "the keeper's result cannot be read");
        return -1;
    }
    if (r.status == 0 && !(r.flags & (RESULT_TIMEOUT | RESULT_KILLED | RESULT_TRUNCATED)))
        return 0;
    filework_fail(t->talk.call, &t->complaint, &r);
    return -1;
}

static void hear_complaint(struct tree *t, const struct frame *f)
{
    size_t room = t->complaint.max - t->complaint.len;
    buf_add(&t->complaint, f->data, f->len < room ? f->len : room);
}

/* --- download --- */

/* False: the call is over. */
static bool pass_out(struct tree *t, const uint8_t *p, size_t n, bool last)
{
    struct call *c = t->talk.call;
    uint8_t out[PIECE];
    struct pale_err e;
    for (;;) {
        struct pieces io = {.in = p, .in_len = n, .last = last, .out = out, .room = sizeof(out)};
        int got = tarball_step(&t->way.out, &io, &e);
        if (got < 0) {
            call_fail(c, &e);
            return false;
        }
        p += io.used;
        n -= io.used;
        bool first = !t->begun && io.made > 0;
        t->begun = t->begun || first;
        if (first)
            call_begin(c, "application/x-tar", "Content-Disposition: attachment; filename=\"tree.tar\"\r\n");
        if (io.made > 0 && c->state && !call_write(c, out, io.made) && c->state)
            tether_pause(t->talk.link, true);
        if (!c->state)
            return false;
        t->done = got == 1;
        if (got == 1 || (io.made == 0 && n == 0) || (n == 0 && io.made < sizeof(out)))
            return true;
    }
}

static void on_download(struct talk *a, const struct frame *f)
{
    struct tree *t = (struct tree *)a;
    struct call *c = a->call;
    if (f->type == TELL_STDOUT)
        (void)pass_out(t, f->data, f->len, false);
    else if (f->type == TELL_STDERR)
        hear_complaint(t, f);
    else if (f->type == TELL_RESULT && judge(t, f) == 0 && pass_out(t, NULL, 0, true)) {
        if (t->done)
            call_end(c, true);
        else
            call_refuse(c, PALE_PROTOCOL, "the box's tree has no end");
    }
}

void op_tree_download(struct call *c)
{
    struct pale_err e;
    struct tree *t = new_tree(c);
    if (!t)
        return;
    if (tarball_init(&t->way.out, ".", false, &e) < 0)
        return call_fail(c, &e);
    t->talk.frame = on_download;
    c->room = talk_room;
    send_tree(t, "pack", 0);
}

/* --- upload --- */

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct tree *t = c->state;
    uint8_t out[STDIN_WINDOW];
    const uint8_t *at = p;
    struct pale_err e;
    for (;;) {
        struct pieces io = {.in = at, .in_len = n, .last = last, .out = out, .room = sizeof(out)};
        int got = untar_step(&t->way.in, &io, &e);
        if (got < 0)
            return call_fail(c, &e);
        at += io.used;
        n -= io.used;
        if (io.made > 0 && !tether_send(t->talk.link, ASK_STDIN, out, io.made))
            return call_refuse(c, PALE_GONE, "the box takes no more");
        if (got == 1) {
            t->done = true;
            (void)tether_send(t->talk.link, ASK_STDIN_END, NULL, 0);
            return;
        }
        if (n == 0 && io.made < sizeof(out))
            break;
    }
    if (last)
        return call_refuse(c, PALE_BAD_INPUT, "the archive has no end");
    if (tether_unsent(t->talk.link) > 0)
        c->port->want(c, false);
}

static void on_opened(struct talk *a)
{
    talk_take(a, on_piece);
}

static void on_upload(struct talk *a, const struct frame *f)
{
    struct tree *t = (struct tree *)a;
    if (f->type == TELL_STDERR)
        hear_complaint(t, f);
    else if (f->type == TELL_RESULT && judge(t, f) == 0)
        call_nothing(a->call);
}

void op_tree_upload(struct call *c)
{
    struct tree *t = new_tree(c);
    if (!t)
        return;
    untar_init(&t->way.in, "tree");
    t->talk.frame = on_upload;
    t->talk.opened = on_opened;
    t->talk.room = talk_taken;
    send_tree(t, "unpack", EXEC_STDIN);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ordering of deeds. */
#include "fleet/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "box/place.h"

struct order {
    struct fleet *fleet;
    uint64_t number; /* of the core; 0: somebody else's */
    enum core_deed_kind kind;
    fleet_told *told;
    void *arg;
};

static void end(struct tether *l, const struct msg_deed_done *d)
{
    struct order *o = l->owner;
    struct fleet *f = o->fleet;
    f->counts.deeds++;
    f->counts.deed_failures += d->code != 0;
    if (o->number) {
        const char *event = o->kind == CORE_MAKE ? "box.made" : o->kind == CORE_RENAME ? "box.renamed" : NULL;
        enum pale_code code = d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL;
        core_deed_done(f->core, o->number, code, d->text, d->id);
        const struct core_box *b = code == PALE_OK && event ? core_by_id(f->core, d->id) : NULL;
        if (b)
            events_tell(&f->events, event, b->id, b->tenant, b->name, "");
        fleet_settle(f);
    } else
        o->told(o->arg, d);
    free(o);
    tether_close(l);
}

static void on_frame(struct tether *l, const struct frame *f)
{
    struct msg_deed_done d;
    if (f->type != DEED_DONE || !msg_deed_done_parse(f->data, f->len, &d))
        d = (struct msg_deed_done){.code = PALE_PROTOCOL, .text = "the deed's answer cannot be read", .id = "", .name = ""};
    end(l, &d);
}

static void on_gone(struct tether *l)
{
    end(l, &(struct msg_deed_done){.code = PALE_GONE, .text = "it ended before it was done; look whether it was", .id = "", .name = ""});
}

static const struct tether_use use = {on_frame, on_gone, NULL};

/* Hands one end of a new connection to the steward, who forks somebody to serve it. */
static int open_deed(struct fleet *f, int *ret_fd, struct pale_err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    own_fd mine = pair[0], theirs = pair[1]; /* they block; we do not, by a flag at each call */
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (char *)"d", .iov_len = 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &theirs, sizeof(int));
    ssize_t n;
    do
        n = sendmsg(f->steward_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return err_set(e, PALE_BUSY, "too much is being done already; try again in a moment");
    if (n < 0) /* it has died, and so shall we; the next daemon is on its way */
        return err_set(e, PALE_BUSY, "the daemon is being started again; try again in a moment");
    *ret_fd = take_fd(&mine);
    return 0;
}

static int send_order(struct order *o, const struct msg_deed *m, struct pale_err *e)
{
    struct tether *l;
    struct record_writer w;
    int fd = -1;
    own_mem uint8_t *mem = malloc(FRAME_PAYLOAD_MAX);
    if (!mem)
        return err_nomem(e);
    record_start(&w, mem, FRAME_PAYLOAD_MAX);
    msg_deed_write(m, &w);
    if (w.full)
        return err_set(e, PALE_LIMIT, "the policy is too long");
    int r = open_deed(o->fleet, &fd, e);
    if (r == 0)
        r = tether_take(o->fleet->loop, fd, &use, o, &l, e);
    if (r < 0)
        return r;
    if (tether_send(l, DEED_ASK, mem, w.len))
        return 0;
    tether_close(l);
    return err_set(e, PALE_GONE, "the steward does not listen");
}

int order_deed(struct fleet *f, const struct core_deed *d, struct pale_err *e)
{
    static const uint64_t kinds[CORE_DEED_KINDS] = {[CORE_MAKE] = DEED_MAKE,
                                                    [CORE_START] = DEED_START,
                                                    [CORE_STOP] = DEED_STOP,
                                                    [CORE_REMOVE] = DEED_REMOVE,
                                                    [CORE_RENAME] = DEED_RENAME};
    const struct order_payload *p = d->payload;
    struct order *o = calloc(1, sizeof(*o));
    if (!o)
        return err_nomem(e);
    *o = (struct order){.fleet = f, .number = d->number, .kind = d->kind};
    struct msg_deed m = {.kind = kinds[d->kind],
                         .id = d->kind == CORE_MAKE ? "" : d->id,
                         .name = d->kind == CORE_RENAME ? d->new_name : d->name,
                         .tenant = d->tenant,
                         .policy = d->kind == CORE_MAKE ? p->policy : "",
                         .sets = d->kind == CORE_MAKE ? p->sets : "",
                         .start = d->kind == CORE_MAKE && p->start,
                         .only_idle = d->only_idle,
                         .born = d->kind == CORE_MAKE ? 0 : d->born};
    int r = send_order(o, &m, e);
    if (r < 0)
        free(o);
    return r;
}

void fleet_deed(struct fleet *f, const struct msg_deed *m, fleet_told *told, void *arg)
{
    struct pale_err e;
    struct order *o = calloc(1, sizeof(*o));
    if (o)
        *o = (struct order){.fleet = f, .told = told, .arg = arg};
    if (o && send_order(o, m, &e) == 0)
        return;
    if (!o)
        err_nomem(&e);
    free(o);
    told(arg, &(struct msg_deed_done){.code = e.code, .text = e.text, .id = "", .name = ""});
}

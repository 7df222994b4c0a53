/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queues of boxes and the list of answers. */
#include "fleet/queue.h"

void queue_append(struct box *b, struct wait *w)
{
    w->next = NULL;
    if (b->tail)
        b->tail->next = w;
    else
        b->head = w;
    b->tail = w;
    b->waits++;
}

void queue_insert_removal(struct box *b, struct wait *w)
{
    struct wait *after = course_is_busy(b) && !(b->deed && b->kind == CORE_REMOVE) ? b->head : NULL;
    for (struct wait *at = b->head; at; at = at->next)
        if (at->kind == WAIT_REMOVE)
            after = at;
    w->next = after ? after->next : b->head;
    if (after)
        after->next = w;
    else
        b->head = w;
    if (!w->next)
        b->tail = w;
    b->waits++;
}

void queue_unlink(struct box *b, struct wait *w)
{
    struct wait *before = NULL;
    struct wait *at = b->head;
    for (; at && at != w; at = at->next)
        before = at;
    if (!at)
        return;
    if (before)
        before->next = w->next;
    else
        b->head = w->next;
    if (b->tail == w)
        b->tail = before;
    b->waits--;
}

void queue_answer(struct core *c, struct box *b, struct wait *w, const struct pale_err *how)
{
    if (b)
        queue_unlink(b, w);
    w->err.code = PALE_OK;
    w->err.text[0] = '\0';
    if (how)
        w->err = *how;
    if (w->err.code == PALE_OK && b && w->kind != WAIT_REMOVE) {
        w->box = b->pub;
        w->box.state = course_state(c, b);
        w->has_box = true;
    }
    w->next = NULL;
    if (c->out_last)
        c->out_last->next = w;
    else
        c->out = w;
    c->out_last = w;
}

void queue_refuse(struct core *c, struct box *b, struct wait *w, enum pale_code code, const char *fmt, const char *what)
{
    struct pale_err e;
    (void)err_set(&e, code, fmt, what);
    queue_answer(c, b, w, &e);
}

bool queue_is_meant(const struct wait *w, uint64_t born)
{
    return !w->born || !born || w->born == born;
}

void queue_answer_front(struct core *c, struct box *b, enum wait_kind kind, const struct pale_err *how)
{
    while (b->head && b->head->kind == kind)
        queue_answer(c, b, b->head, how);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the daemon knows of questions that are open. */
#include "fleet/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define PENDING_MAX 1024u /* of a box; its keeper keeps to far less */

static struct pending **find(struct lookout *w, const char *id)
{
    struct pending **at = &w->pending;
    while (*at && strcmp((*at)->q.id, id) != 0)
        at = &(*at)->next;
    return at;
}

static void remember(struct lookout *w, const struct msg_question *m)
{
    struct pending **at = find(w, m->id);
    size_t n = 0;
    for (const struct pending *q = w->pending; q; q = q->next)
        n++;
    struct pending *q = *at || n >= PENDING_MAX ? NULL : calloc(1, sizeof(*q));
    if (!q)
        return;
    const struct core_box *b = core_by_id(w->fleet->core, w->id);
    approval_keep(m, w->id, b ? b->name : "", &q->q);
    *at = q;
}

static void forget(struct lookout *w, const char *id)
{
    struct pending **at = find(w, id), *q = *at;
    if (!q)
        return;
    *at = q->next;
    free(q);
}

void pending_forget(struct lookout *w)
{
    while (w->pending)
        forget(w, w->pending->q.id);
}

static void tell(struct lookout *w, const struct msg_question *m)
{
    struct fleet *f = w->fleet;
    const struct core_box *b = core_by_id(f->core, w->id);
    own_buf text = {0};
    struct json j;
    if (!b)
        return;
    buf_init(&text, 400);
    json_start(&j, &text);
    j.more[0] = true; /* it stands inside an object that has begun */
    json_text(&j, "question", m->id);
    json_text(&j, "host", m->host);
    json_u64(&j, "port", m->port);
    if (m->state == QUESTION_ALLOWED || m->state == QUESTION_DENIED) {
        json_text(&j, "answer", m->state == QUESTION_ALLOWED ? "allow" : "deny");
        json_text(&j, "scope", m->scope);
        json_text(&j, "by", m->by);
    }
    const char *kind = m->state == QUESTION_OPEN ? "net.ask" : m->state == QUESTION_WITHDRAWN ? "net.withdrawn" : "net.answered";
    events_tell(&f->events, kind, w->id, b->tenant, b->name, text.failed ? "" : buf_text(&text));
}

bool pending_take(struct lookout *w, const struct frame *f)
{
    struct msg_question m;
    if (!msg_question_parse(f->data, f->len, &m) || strlen(m.id) != QUESTION_ID_LEN)
        return false;
    if (m.state == QUESTION_OPEN)
        remember(w, &m);
    else
        forget(w, m.id);
    tell(w, &m);
    return true;
}

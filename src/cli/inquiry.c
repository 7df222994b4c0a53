/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of open questions, and the way of an answer. */
#include "cli/inquiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "box/place.h"
#include "cli/far.h"

#define INQUIRIES_MAX 65536u

void inquiries_done(struct inquiries *l)
{
    free(l->item);
    *l = (struct inquiries){0};
}

static struct approval_asked *add(struct inquiries *l)
{
    /* Powers of two are where there is no more room. */
    if ((l->count & (l->count - 1)) == 0 || l->count == 0) {
        struct approval_asked *grown = realloc(l->item, (l->count ? 2 * l->count : 1) * sizeof(*grown));
        if (!grown || l->count >= INQUIRIES_MAX)
            return NULL;
        l->item = grown;
    }
    l->item[l->count] = (struct approval_asked){0};
    return &l->item[l->count++];
}

static int take_question(void *arg, const struct place *p, const struct msg_question *m)
{
    struct approval_asked *q = m->state == QUESTION_OPEN ? add(arg) : NULL;
    if (q)
        approval_keep(m, p->id, p->name, q);
    return 0;
}

/* A box that does not run, or whose keeper knows no questions, asks none. */
static int take_box(void *arg, const struct place *p)
{
    struct pale_err ignored;
    (void)!approval_each(p, take_question, arg, &ignored);
    return 0;
}

/* A text that would be cut is none: it is cited in the answer. */
static void take_text(const struct jsonread *item, const char *key, char *ret, size_t cap)
{
    char text[2 * FAR_TEXT];
    far_text(item, key, text, sizeof(text));
    snprintf(ret, cap, "%s", strlen(text) < cap ? text : "");
}

static int list_far(struct remote *r, struct inquiries *ret, struct pale_err *e)
{
    own_buf text = {0};
    struct jsonread v, items, item;
    buf_init(&text, FAR_ANSWER_MAX);
    int res = remote_ask(r, "GET", "/v1/approvals", NULL, &text, &v, e);
    if (res == 0 && (!jsonread_get(&v, "items", &items) || items.kind != JSONREAD_LIST))
        res = err_set(e, PALE_PROTOCOL, "the daemon's answer has no items");
    for (size_t pos = 0; res == 0 && jsonread_next(&items, &pos, NULL, &item);) {
        struct approval_asked *q = add(ret);
        if (!q)
            return err_nomem(e);
        take_text(&item, "id", q->id, sizeof(q->id));
        take_text(&item, "box", q->box, sizeof(q->box));
        take_text(&item, "box_name", q->box_name, sizeof(q->box_name));
        take_text(&item, "host", q->host, sizeof(q->host));
        take_text(&item, "via", q->via, sizeof(q->via));
        take_text(&item, "rule", q->rule, sizeof(q->rule));
        q->port = far_number(&item, "port");
        q->job = far_number(&item, "job");
        q->asked_unix_ms = far_number(&item, "asked_unix_ms");
        q->expires_unix_ms = far_number(&item, "expires_unix_ms");
    }
    return res;
}

static int older_first(const void *a, const void *b)
{
    const struct approval_asked *p = a, *q = b;
    int r = p->asked_unix_ms < q->asked_unix_ms ? -1 : p->asked_unix_ms > q->asked_unix_ms;
    return r ? r : strcmp(p->id, q->id);
}

int inquiry_list(struct remote *r, struct inquiries *ret, struct pale_err *e)
{
    own_inquiries l = {0};
    int res = r ? list_far(r, &l, e) : place_each_made(take_box, &l, e);
    if (res < 0)
        return res;
    if (l.count > 1)
        qsort(l.item, l.count, sizeof(l.item[0]), older_first);
    *ret = l;
    l = (struct inquiries){0};
    return 0;
}

const struct approval_asked *inquiry_find(const struct inquiries *l, const char *id)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->item[i].id, id) == 0)
            return &l->item[i];
    return NULL;
}

const char *inquiry_text(const struct approval_asked *q, char *ret, size_t cap)
{
    if (q->via[0])
        snprintf(ret, cap, "%s (%s) port %u", q->via, q->host, (unsigned)q->port);
    else
        snprintf(ret, cap, "%s port %u", q->host, (unsigned)q->port);
    return ret;
}

static int answer_far(struct remote *r, const struct approval_asked *q, const struct inquiry_answer *a, struct pale_err *e)
{
    own_buf body = {0}, text = {0};
    struct json j;
    char path[64], time[32];
    buf_init(&body, 4096);
    buf_init(&text, 65536);
    json_start(&j, &body);
    json_begin_object(&j, NULL);
    json_text(&j, "box", q->box);
    json_text(&j, "host", q->host);
    json_u64(&j, "port", q->port);
    json_text(&j, "verdict", a->allow ? "allow" : "deny");
    json_text(&j, "scope", msg_verdict_scopes[a->scope]);
    snprintf(time, sizeof(time), "%llums", (unsigned long long)a->for_ms);
    if (a->for_ms)
        json_text(&j, "for", time);
    json_end_object(&j);
    snprintf(path, sizeof(path), "/v1/approvals/%s", q->id);
    return remote_call(r, "POST", path, buf_text(&body), &text, e);
}

int inquiry_answer(struct remote *r, const struct approval_asked *q, const struct inquiry_answer *a, struct pale_err *e)
{
    struct place p;
    const struct msg_verdict m = {.question = q->id,
                                  .box = q->box,
                                  .host = q->host,
                                  .port = q->port,
                                  .allow = a->allow,
                                  .scope = a->scope,
                                  .until_unix = approval_until(a->for_ms)};
    if (r)
        return answer_far(r, q, a, e);
    int res = place_by_id(q->box, &p, e);
    return res < 0 ? res : approval_answer(&p, &m, "local", e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of an answer from the operator to the boxes. */
#include "box/approval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "box/life.h"
#include "box/reach.h"
#include "policy/policy.h"

#define PATIENCE_S 5 /* a keeper answers these at once; one that does not must not hold up the others */

uint64_t approval_until(uint64_t for_ms)
{
    return for_ms ? (clock_unix_ms() + for_ms + 999) / 1000 : 0;
}

void approval_keep(const struct msg_question *m, const char *box, const char *box_name, struct approval_asked *ret)
{
    *ret =
        (struct approval_asked){.port = m->port, .job = m->job, .asked_unix_ms = m->asked_unix_ms, .expires_unix_ms = m->expires_unix_ms};
    snprintf(ret->id, sizeof(ret->id), "%s", m->id);
    snprintf(ret->box, sizeof(ret->box), "%s", box);
    snprintf(ret->box_name, sizeof(ret->box_name), "%s", box_name);
    snprintf(ret->host, sizeof(ret->host), "%s", m->host);
    snprintf(ret->via, sizeof(ret->via), "%s", m->name);
    snprintf(ret->rule, sizeof(ret->rule), "%s", m->rule);
}

void approval_json(const struct approval_asked *q, const char *state, struct json *j)
{
    json_begin_object(j, NULL);
    if (state)
        json_text(j, "state", state);
    json_text(j, "id", q->id);
    json_text(j, "box", q->box);
    json_text(j, "box_name", q->box_name);
    json_text(j, "host", q->host);
    if (q->via[0])
        json_text(j, "via", q->via);
    json_u64(j, "port", q->port);
    json_text(j, "rule", q->rule);
    if (q->job)
        json_u64(j, "job", q->job);
    json_u64(j, "asked_unix_ms", q->asked_unix_ms);
    json_u64(j, "expires_unix_ms", q->expires_unix_ms);
    json_end_object(j);
}

static int open_keeper(struct reach *r, const struct place *p, struct pale_err *e)
{
    static const struct timeval patience = {.tv_sec = PATIENCE_S};
    reach_init(r);
    int ret = reach_box(r, p, false, e);
    if (ret == 0)
        (void)setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return ret;
}

static int await_done(struct reach *r, struct pale_err *e)
{
    struct frame f;
    int ret = reach_receive(r, &f, e);
    return ret == 0 && f.type != TELL_DONE ? err_set(e, PALE_PROTOCOL, "the keeper does not speak our language") : ret;
}

int approval_each(const struct place *p, approval_fn *fn, void *arg, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    struct msg_question q;
    struct frame f;
    int r = open_keeper(&reach, p, e);
    if (r == 0)
        r = reach_send(&reach, ASK_QUESTIONS, NULL, 0, e);
    while (r == 0 && (r = reach_receive(&reach, &f, e)) == 0 && f.type != TELL_DONE) {
        if (f.type != TELL_QUESTION || !msg_question_parse(f.data, f.len, &q))
            return err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language", p->name);
        r = fn(arg, p, &q);
    }
    return r;
}

static int tell_keeper(const struct place *p, const struct msg_verdict *m, const char *caller, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    uint8_t mem[1024];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    msg_verdict_write(m, &w);
    if (w.full)
        return err_set(e, PALE_BAD_INPUT, "the answer is too long");
    int r = open_keeper(&reach, p, e);
    if (r == -PALE_NOT_FOUND)
        return err_set(e, PALE_NOT_FOUND, "box %s does not run, and nobody in it waits for an answer", p->name);
    if (r == 0 && (r = life_send_caller(&reach, caller, e)) == 0 && (r = reach_send(&reach, ASK_VERDICT, mem, w.len, e)) == 0)
        r = await_done(&reach, e);
    return r;
}

/* A box that is down reads its lists when it starts, and one that cannot be told holds what it knew. */
static int reread(void *arg, const struct place *p)
{
    own_reach reach = {.fd = -1};
    struct pale_err ignored;
    (void)arg;
    if (open_keeper(&reach, p, &ignored) == 0 && reach_send(&reach, ASK_REREAD, NULL, 0, &ignored) == 0)
        (void)!await_done(&reach, &ignored);
    return 0;
}

static int reread_all(const struct place *p, enum verdict_scope scope, struct pale_err *e)
{
    return scope == APPLIES_BOX ? reread(NULL, p) : place_each_made(reread, NULL, e);
}

int approval_answer(const struct place *p, const struct msg_verdict *m, const char *caller, struct pale_err *e)
{
    struct standing s = {.allow = m->allow, .port = (uint16_t)m->port, .until_unix = m->until_unix};
    struct standing_path path;
    own_policy policy = {0};
    if (m->port == 0 || m->port > UINT16_MAX || strlen(m->host) >= sizeof(s.host) || !standing_is_host(m->host))
        return err_set(e, PALE_BAD_INPUT, "the answer names no host and port");
    memcpy(s.host, m->host, strlen(m->host) + 1);
    if (m->scope == APPLIES_ONCE)
        return m->until_unix ? err_set(e, PALE_BAD_INPUT, "an answer for once has no end; give --box, --project or --always with --for")
                             : tell_keeper(p, m, caller, e);
    /* What cannot be kept is not said at all. */
    int r = life_policy(p, &policy, e);
    const struct standing_of of = {.data = p->data, .state = p->state, .tenant = p->tenant, .policy = &policy};
    if (r == 0)
        r = standing_find(&of, (enum verdict_scope)m->scope, true, &path, e);
    if (r == 0)
        r = tell_keeper(p, m, caller, e);
    if (r < 0)
        return r;
    if ((r = standing_add(&path, &s, clock_unix_ms() / 1000, e)) < 0)
        return err_prefix(e, "the question is answered, but for this once");
    return reread_all(p, (enum verdict_scope)m->scope, e);
}

/* Where the list of a scope is, for this box. */
static int find_list(const struct place *p, enum verdict_scope scope, struct standing_path *ret, struct pale_err *e)
{
    own_policy policy = {0};
    int r = life_policy(p, &policy, e);
    const struct standing_of of = {.data = p->data, .state = p->state, .tenant = p->tenant, .policy = &policy};
    return r < 0 ? r : standing_find(&of, scope, false, ret, e);
}

int approval_standing(const struct place *p, approval_standing_fn *fn, void *arg, struct pale_err *e)
{
    own_mem struct standing_list *l = malloc(sizeof(*l));
    uint64_t now = clock_unix_ms() / 1000;
    int r = l ? 0 : err_nomem(e);
    for (enum verdict_scope s = APPLIES_BOX; r == 0 && s < APPLIES_COUNT; s++) {
        struct standing_path path;
        l->count = 0;
        r = find_list(p, s, &path, e);
        if (r == 0)
            r = standing_read(&path, l, e);
        /* A box may be in no project, and nobody may have answered yet. */
        if (r == -PALE_BAD_INPUT || r == -PALE_NOT_FOUND)
            r = 0;
        for (size_t i = 0; r == 0 && i < l->count; i++)
            if (!standing_is_over(&l->item[i], now))
                r = fn(arg, s, &l->item[i]);
    }
    return r;
}

int approval_forget(const struct place *p, enum verdict_scope scope, const char *host, uint16_t port, struct pale_err *e)
{
    struct standing_path path;
    if (port == 0 || !standing_is_host(host))
        return err_set(e, PALE_BAD_INPUT, "%s is no host as answers have it: a name in small letters, or an address", host);
    int r = find_list(p, scope, &path, e);
    if (r == 0)
        r = standing_remove(&path, host, port, clock_unix_ms() / 1000, e);
    return r < 0 ? r : reread_all(p, scope, e);
}

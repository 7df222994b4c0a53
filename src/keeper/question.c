/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the questions that connections of the box wait for, and the operator's answers to them.
 *
 * How it works: the gateway asks; each question gets an id that nobody can guess and that is never used again, and stays until it is
 * answered or nobody waits. An answer cites the question whole, in the words it was asked in: one that comes too late, or that was meant
 * for another, is refused. It is in the audit before anything passes. A box makes as many questions as it likes, so that there is a limit
 * on those that are open and on those that are asked in a minute; what is beyond it is refused and troubles nobody. What an answer says
 * for later is in lists that others write (box/standing.h); we read them and tell the gateway. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/standing.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"

#define WAIT_MS 120000 /* as long as the gateway lets a connection wait */

static void tell(struct client *c, const struct question *q, enum question_state state, const char *by, const char *scope)
{
    uint8_t mem[2048];
    struct record_writer w;
    const struct msg_question m = {
        .id = q->id,
        .state = state,
        .host = q->host,
        .name = q->name,
        .port = q->port,
        .rule = q->rule,
        .job = q->job,
        .asked_unix_ms = q->asked_unix_ms,
        .expires_unix_ms = q->asked_unix_ms + WAIT_MS,
        .by = by,
        .scope = scope,
    };
    record_start(&w, mem, sizeof(mem));
    msg_question_write(&m, &w);
    client_send(c, TELL_QUESTION, mem, w.len);
}

static void announce(struct keeper *k, const struct question *q, enum question_state state, const char *by, const char *scope)
{
    for (struct client *c = k->clients; c; c = c->next)
        if (c->watching)
            tell(c, q, state, by, scope);
}

void question_tell_all(struct client *c)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++)
        if (c->k->questions.item[i].id[0])
            tell(c, &c->k->questions.item[i], QUESTION_OPEN, "", "");
}

/* --- asking --- */

/* What it is about, in words that can be cited; false: the gateway talks nonsense. */
static bool describe(const struct gate_message *m, struct question *q)
{
    char address[ADDRESS_TEXT_MAX] = "";
    if (m->name[sizeof(m->name) - 1] || m->rule[sizeof(m->rule) - 1] || m->port == 0 || (m->name[0] && !standing_is_host(m->name)))
        return false;
    if (m->kind == GATE_TCP && m->address.family != ADDRESS_V4 && m->address.family != ADDRESS_V6)
        return false;
    if (m->kind == GATE_TCP)
        address_text(&m->address, address);
    *q = (struct question){.number = m->number, .port = m->port, .asked_unix_ms = clock_unix_ms()};
    snprintf(q->host, sizeof(q->host), "%s", m->kind == GATE_TCP ? address : m->name);
    snprintf(q->name, sizeof(q->name), "%s", m->kind == GATE_TCP ? m->name : "");
    quote_into(q->rule, sizeof(q->rule), m->rule, strlen(m->rule));
    return q->host[0] != 0;
}

static struct question *find(struct keeper *k, const char *id)
{
    for (size_t i = 0; i < QUESTIONS_MAX && id[0]; i++)
        if (strcmp(k->questions.item[i].id, id) == 0)
            return &k->questions.item[i];
    return NULL;
}

/* One that is free, with an id; NULL if there are too many, or too many of late. */
static struct question *new_one(struct keeper *k)
{
    struct questions *t = &k->questions;
    int64_t minute = clock_ms() / 60000;
    uint32_t random;
    char id[QUESTION_ID_LEN + 1];
    if (t->minute != minute) {
        t->minute = minute;
        t->in_minute = 0;
    }
    size_t at = 0;
    while (at < QUESTIONS_MAX && t->item[at].id[0])
        at++;
    if (at == QUESTIONS_MAX || t->in_minute >= QUESTIONS_PER_MINUTE)
        return NULL;
    do {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return NULL;
        snprintf(id, sizeof(id), "%08x", random);
    } while (find(k, id));
    t->in_minute++;
    memcpy(t->item[at].id, id, sizeof(id));
    return &t->item[at];
}

void question_ask(struct keeper *k, const struct gate_message *m)
{
    struct question asked, *q;
    struct pale_err e = {0};
    if (k->once) {
        wayout_verdict(k, m->number, GATE_NOBODY);
        return;
    }
    if (!describe(m, &asked) || !(q = new_one(k))) {
        wayout_verdict(k, m->number, GATE_FULL);
        return;
    }
    memcpy(asked.id, q->id, sizeof(asked.id));
    asked.job = wayout_job(k);
    *q = asked;
    struct json *j = audit_begin(&k->audit, "net.ask");
    json_text(j, "question", q->id);
    json_text(j, "host", q->host);
    if (q->name[0])
        json_text(j, "name", q->name);
    json_u64(j, "port", q->port);
    json_text(j, "rule", q->rule);
    if (q->job)
        json_u64(j, "job", q->job);
    if (audit_commit(&k->audit, &e) < 0) {
        wayout_verdict(k, q->number, GATE_NO);
        q->id[0] = 0;
        return;
    }
    announce(k, q, QUESTION_OPEN, "", "");
}

static void withdraw(struct keeper *k, struct question *q)
{
    announce(k, q, QUESTION_WITHDRAWN, "", "");
    q->id[0] = 0;
}

void question_take_back(struct keeper *k, uint64_t number)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++)
        if (k->questions.item[i].id[0] && k->questions.item[i].number == number)
            withdraw(k, &k->questions.item[i]);
}

void question_forget(struct keeper *k)
{
    for (size_t i = 0; i < QUESTIONS_MAX; i++)
        if (k->questions.item[i].id[0])
            withdraw(k, &k->questions.item[i]);
}

/* --- answering --- */

/* The question that an answer cites, or NULL when the client was told why not. */
static struct question *cited(struct client *c, const struct msg_verdict *m)
{
    struct keeper *k = c->k;
    struct question *q = find(k, m->question);
    char text[DOMAIN_NAME_MAX + 200], shown[100];
    quote_into(shown, sizeof(shown), m->question, strlen(m->question));
    if (strcmp(m->box, k->id) != 0) {
        client_error(c, PALE_DENIED, "the answer is to a question of another box");
        return NULL;
    }
    if (!q) {
        snprintf(text, sizeof(text),
                 "question %s is not open: it was answered, or nobody waits any more; `pale approvals` lists those that are", shown);
        client_error(c, PALE_NOT_FOUND, text);
        return NULL;
    }
    if (strcmp(m->host, q->host) != 0 || m->port != q->port) {
        snprintf(text, sizeof(text), "question %s is about %s port %u and the answer is not", q->id, q->host, q->port);
        client_error(c, PALE_DENIED, text);
        return NULL;
    }
    return q;
}

static void answer(struct client *c, const struct frame *f)
{
    struct keeper *k = c->k;
    struct msg_verdict m;
    struct pale_err e = {0};
    if (c->bound && !is_weak(k->weaken, WEAKEN_WIDEN)) {
        client_error(c, PALE_DENIED, "only the operator answers questions of a box");
        return;
    }
    if (!msg_verdict_parse(f->data, f->len, &m) || m.scope >= APPLIES_COUNT || (m.scope == APPLIES_ONCE && m.until_unix)) {
        client_error(c, PALE_PROTOCOL, "the answer cannot be read");
        return;
    }
    struct question *q = cited(c, &m);
    if (!q)
        return;
    struct json *j = audit_begin(&k->audit, "net.answered");
    json_text(j, "question", q->id);
    json_text(j, "host", q->host);
    json_u64(j, "port", q->port);
    json_text(j, "answer", m.allow ? "allow" : "deny");
    json_text(j, "scope", msg_verdict_scopes[m.scope]);
    if (m.until_unix)
        json_u64(j, "until", m.until_unix);
    if (audit_commit(&k->audit, &e) < 0) {
        client_error(c, e.code, e.text);
        return;
    }
    wayout_verdict(k, q->number, m.allow ? GATE_YES : GATE_NO);
    announce(k, q, m.allow ? QUESTION_ALLOWED : QUESTION_DENIED, c->caller, msg_verdict_scopes[m.scope]);
    q->id[0] = 0;
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

/* --- answers that stand --- */

int question_begin(struct keeper *k, struct pale_err *e)
{
    struct place place = {0};
    (void)e;
    if (k->data_dir) {
        snprintf(place.data, sizeof(place.data), "%s", k->data_dir);
        place_set_owner(&place);
    }
    snprintf(k->questions.tenant, sizeof(k->questions.tenant), "%s", place.tenant);
    return 0;
}

static void on_trouble(void *arg, const struct pale_err *e)
{
    keeper_note(arg, "net.answers", e->text);
}

static void on_expired(struct loop_timer *t)
{
    struct keeper *k = (struct keeper *)((char *)t - offsetof(struct keeper, questions.expiry));
    struct pale_err e = {0};
    if (question_reread(k, &e) < 0)
        keeper_note(k, "net.lost", e.text);
}

/* Before the effect: what stands now, if it is not what stood before. */
static int note_change(struct keeper *k, const struct standing *s, size_t n, struct pale_err *e)
{
    own_buf text = {0};
    char digest[SHA256_HEX];
    struct questions *t = &k->questions;
    buf_init(&text, POLICY_TEXT_MAX);
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%d %s %u %llu\n", s[i].allow, s[i].host, s[i].port, (unsigned long long)s[i].until_unix);
    sha256_hex(text.data, text.len, digest);
    if (text.failed)
        return err_nomem(e);
    if (n == 0 ? !t->standing[0] : strcmp(digest, t->standing) == 0)
        return 0;
    struct json *j = audit_begin(&k->audit, "net.answers");
    json_u64(j, "standing", n);
    json_text(j, "digest", digest);
    int r = audit_commit(&k->audit, e);
    if (r == 0)
        snprintf(t->standing, sizeof(t->standing), "%s", n ? digest : "");
    return r;
}

int question_reread(struct keeper *k, struct pale_err *e)
{
    own_mem struct standing *s = malloc(GATE_ANSWERS_MAX * sizeof(*s));
    own_mem struct gate_answer *a = calloc(GATE_ANSWERS_MAX, sizeof(*a));
    uint64_t now_ms = clock_unix_ms(), next = 0;
    if (!wayout_is_needed(k))
        return 0;
    if (!s || !a)
        return err_nomem(e);
    const struct standing_of of = {.data = k->data_dir, .state = k->state_dir, .tenant = k->questions.tenant, .policy = &k->policy};
    size_t n = standing_gather(&of, now_ms / 1000, s, GATE_ANSWERS_MAX, &next, on_trouble, k);
    int r = note_change(k, s, n, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        a[i].allow = s[i].allow;
        a[i].port = s[i].port;
        memcpy(a[i].host, s[i].host, sizeof(a[i].host));
    }
    k->questions.expiry.fire = on_expired;
    if (next)
        loop_arm(&k->loop, &k->questions.expiry, clock_ms() + (int64_t)(next * 1000 - now_ms));
    else
        loop_disarm(&k->loop, &k->questions.expiry);
    return wayout_answers(k, a, n, e);
}

/* --- requests --- */

static void finish(struct client *c, int r, const struct pale_err *e)
{
    if (r < 0) {
        client_error(c, e->code, e->text);
        return;
    }
    client_send(c, TELL_DONE, NULL, 0);
    client_finish(c);
}

bool question_frame(struct client *c, const struct frame *f)
{
    struct pale_err e = {0};
    switch (f->type) {
    case ASK_QUESTIONS:
        question_tell_all(c);
        finish(c, 0, &e);
        return true;
    case ASK_VERDICT:
        answer(c, f);
        return true;
    case ASK_REREAD:
        finish(c, question_reread(c->k, &e), &e);
        return true;
    case ASK_BOUND:
        c->bound = true;
        return true;
    default:
        return false;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the gateway's side of the talk with the keeper: what was allowed and refused, policies and verdicts.
 *
 * The keeper is trusted. Once it is gone the box is too, and so are we. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/handing.h"
#include "base/own.h"
#include "gateway/gateway.h"

/* Refusals in a second that are told one by one. */
#define DENIALS_MAX 50u
#define FILES_MS 5000

static void copy(char *to, size_t cap, const char *text)
{
    snprintf(to, cap, "%s", text ? text : "");
}

static bool send_message(const struct gate_message *m, int flags)
{
    ssize_t n;
    while ((n = send(GATE_TALK_FD, m, sizeof(*m), MSG_NOSIGNAL | flags)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)sizeof(*m);
}

void liaison_hello(struct gateway *g)
{
    struct gate_message m = {.type = GATE_HELLO, .number = g->begun};
    send_message(&m, 0);
}

void liaison_error(const struct pale_err *e)
{
    struct gate_message m = {.type = GATE_ERROR, .code = (uint32_t)e->code};
    copy(m.text, sizeof(m.text), e->text);
    send_message(&m, 0);
}

static void tell_untold(struct gateway *g)
{
    struct gate_message m = {.type = GATE_FLOOD, .number = g->untold};
    if (g->untold && send_message(&m, MSG_DONTWAIT))
        g->untold = 0;
}

void liaison_flood(struct gateway *g)
{
    int64_t now = clock_ms();
    if (now - g->told_ms < 1000)
        return;
    tell_untold(g);
    g->told_ms = now;
    g->told = 0;
}

void liaison_deny(struct gateway *g, const struct refusal *r)
{
    struct gate_message m = {.type = GATE_DENY, .kind = r->kind, .port = r->port};
    char text[ADDRESS_TEXT_MAX] = "";
    if (r->address) {
        m.address = *r->address;
        address_text(r->address, text);
    }
    copy(m.name, sizeof(m.name), r->name);
    copy(m.rule, sizeof(m.rule), r->rule);
    copy(m.text, sizeof(m.text), r->why);
    meter_refused(g, r->name && r->name[0] ? r->name : text, r->port);
    liaison_flood(g);
    if (g->told >= DENIALS_MAX || !send_message(&m, MSG_DONTWAIT))
        g->untold++;
    else
        g->told++;
}

static struct gate_message about(enum gate_type type, const struct flow *f)
{
    struct gate_message m = {.type = type,
                             .number = (uint64_t)f->generation << 32 | flow_index(f),
                             .in = f->down.passed,
                             .out = f->up.passed,
                             .kind = GATE_TCP,
                             .port = f->port,
                             .address = f->at.family ? f->at : f->to};
    copy(m.name, sizeof(m.name), f->name.text);
    return m;
}

void liaison_allow(struct gateway *g, const struct flow *f, const char *rule)
{
    struct gate_message m = about(GATE_ALLOW, f);
    (void)g;
    copy(m.rule, sizeof(m.rule), rule);
    send_message(&m, 0);
}

void liaison_inward(struct gateway *g, enum gate_type type, uint64_t number, const struct passage *p)
{
    struct gate_message m = {.type = type, .number = number, .kind = GATE_IN, .port = p->port, .in = p->up.passed, .out = p->down.passed};
    (void)g;
    snprintf(m.rule, sizeof(m.rule), "network.publish %u:%u", p->host_port, p->port);
    send_message(&m, 0);
}

void liaison_end(struct gateway *g, const struct flow *f)
{
    struct gate_message m = about(GATE_END, f);
    (void)g;
    send_message(&m, 0);
}

void liaison_ask(struct gateway *g, const struct flow *f, const char *rule)
{
    struct gate_message m = about(GATE_ASK, f);
    (void)g;
    m.number = f->question;
    m.kind = f->asks_address ? GATE_TCP : GATE_NAME;
    copy(m.rule, sizeof(m.rule), rule);
    send_message(&m, 0);
}

void liaison_take_back(struct gateway *g, const struct flow *f, uint32_t question)
{
    struct gate_message m = about(GATE_TAKE_BACK, f);
    (void)g;
    m.number = question;
    send_message(&m, 0);
}

void liaison_want_files(struct gateway *g)
{
    struct gate_message m = {.type = GATE_WANT_FILES};
    int64_t now = clock_ms();
    if (g->files_ms && now - g->files_ms < FILES_MS)
        return;
    g->files_ms = now;
    send_message(&m, MSG_DONTWAIT);
}

static void judge_all(struct gateway *g)
{
    flow_judge_all(g);
    inward_judge(g);
}

static int take_policy(struct gateway *g, int fd, struct pale_err *e)
{
    struct stat st;
    struct policy new;
    if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > POLICY_TEXT_MAX)
        return err_set(e, PALE_INTERNAL, "the policy did not come whole");
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return err_os(e, "read the policy");
    int r = policy_parse(text, (size_t)st.st_size, &new, e);
    munmap(text, (size_t)st.st_size);
    if (r < 0)
        return r;
    flow_uncount_all(g);
    if (g->has_policy)
        policy_done(&g->policy);
    g->policy = new;
    memset(g->rule_hash, 0, sizeof(g->rule_hash));
    return 0;
}

static void on_policy(struct gateway *g, int fd)
{
    struct gate_message m = {.type = GATE_READY};
    struct pale_err e = {0};
    bool first = !g->has_policy;
    if (take_policy(g, fd, &e) < 0) {
        /* What is to hold cannot be read, so nothing may pass. */
        liaison_error(&e);
        g->is_cut = true;
        judge_all(g);
        return;
    }
    g->has_policy = true;
    if (first)
        send_message(&m, 0);
    else
        judge_all(g);
}

/* Without them what they allow is asked about again. */
static void take_answers(struct gateway *g, int fd, uint64_t count)
{
    size_t n = count <= GATE_ANSWERS_MAX ? (size_t)count * sizeof(g->answers[0]) : 0;
    bool whole = n && pread(fd, g->answers, n, 0) == (ssize_t)n;
    g->answer_count = whole ? (uint32_t)count : 0;
    if (g->has_policy)
        flow_judge_all(g);
}

static void take_file(int *place, int *fd)
{
    own_close(place);
    *place = take_fd(fd);
}

static void on_message(struct loop_source *s, uint32_t events)
{
    struct gateway *g = (struct gateway *)((char *)s - offsetof(struct gateway, talk));
    struct gate_message m;
    own_fd fd = -1;
    (void)events;
    ssize_t n = handing_receive(s->fd, &m, sizeof(m), &fd, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(m)) {
        g->loop.stop = true;
        return;
    }
    switch (m.type) {
    case GATE_POLICY:
        on_policy(g, fd);
        break;
    case GATE_ANSWERS:
        take_answers(g, fd, m.number);
        break;
    case GATE_RESOLV:
        take_file(&g->resolv_fd, &fd);
        break;
    case GATE_HOSTS:
        take_file(&g->hosts_fd, &fd);
        break;
    case GATE_GO:
        for (uint32_t i = 0; i < m.code && i < GATE_NUMBERS_MAX; i++) {
            crossing_go(g, m.numbers[i]);
            inward_go(g, m.numbers[i]);
        }
        break;
    case GATE_PUBLISH:
        inward_publish(g, &fd, m.port, (uint16_t)m.number);
        break;
    case GATE_VERDICT:
        crossing_verdict(g, m.number, (enum gate_verdict)m.code);
        break;
    case GATE_CUT:
        g->is_cut = m.code != 0;
        judge_all(g);
        break;
    default:
        break;
    }
}

int liaison_watch(struct gateway *g, struct pale_err *e)
{
    g->talk = (struct loop_source){.fd = GATE_TALK_FD, .ready = on_message};
    return loop_add(&g->loop, &g->talk, EPOLLIN, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb approvals: what boxes ask the operator, and the answers. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/herald.h"
#include "cli/inquiry.h"
#include "cli/interrupt.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

#define LOOK_EVERY_MS 500

static const struct option approvals_options[] = {
    {"once", 0, NULL, "for the connections that wait (the default)", NULL},
    {"box", 0, NULL, "whenever this box asks", NULL},
    {"project", 0, NULL, "whenever a box of the same project asks", NULL},
    {"always", 0, NULL, "whenever any of your boxes asks", NULL},
    {"for", 0, "TIME", "… and only for so long from now (2h)", NULL},
    {"notify", 0, NULL, "watch: show them on the desktop too, with buttons", NULL},
    {0},
};

static int list(struct args *a, struct remote *r)
{
    static const char *const heads[] = {"ID", "BOX", "WANTS", "WAITS", "RULE"};
    struct pale_err e;
    own_inquiries l = {0};
    own_listing out = {0};
    char text[2 * DOMAIN_NAME_MAX + 32], time[32];
    if (inquiry_list(r, &l, &e) < 0)
        return cli_fail(a, &e);
    listing_init(&out, a, heads, 5);
    for (size_t i = 0; i < l.count; i++) {
        const struct approval_asked *q = &l.item[i];
        uint64_t now = clock_unix_ms();
        if (out.is_json) {
            approval_json(q, NULL, &out.json);
            continue;
        }
        table_cell(&out.table, q->id);
        table_cell(&out.table, q->box_name);
        table_cell(&out.table, inquiry_text(q, text, sizeof(text)));
        table_cell(&out.table, number_show_ms(now > q->asked_unix_ms ? now - q->asked_unix_ms : 0, time, sizeof(time)));
        table_cell(&out.table, q->rule);
    }
    return listing_print(&out);
}

/* --- watch --- */

static int show(const struct args *a, const struct approval_asked *q, bool open)
{
    char text[2 * DOMAIN_NAME_MAX + 32];
    if (a->json) {
        own_buf b = {0};
        struct json j;
        buf_init(&b, 8192);
        json_start(&j, &b);
        approval_json(q, open ? "open" : "closed", &j);
        return cli_json(&b) || fflush(stdout);
    }
    inquiry_text(q, text, sizeof(text));
    if (open)
        printf("%s  box %s wants %s (%s)\n", q->id, q->box_name, text, q->rule);
    else
        printf("%s  %sis open no longer%s\n", q->id, cli_colour(1, "dim"), cli_colour(1, "reset"));
    return fflush(stdout);
}

struct vigil {
    struct args *args;
    struct remote *remote;
    struct inquiries open;
    struct herald herald;
};

static void vigil_done(struct vigil *v)
{
    inquiries_done(&v->open);
    herald_close(&v->herald);
}

/* What is in one list and not in the other. */
static int show_missing(struct vigil *v, const struct inquiries *from, const struct inquiries *in, bool open)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < from->count; i++) {
        const struct approval_asked *q = &from->item[i];
        if (inquiry_find(in, q->id))
            continue;
        failed = show(v->args, q, open);
        if (open)
            herald_show(&v->herald, q);
        else
            herald_withdraw(&v->herald, q->id);
    }
    return failed;
}

/* A button. What comes of it is seen in the next look: an answer that is refused leaves the question open. */
static void on_pressed(void *arg, const char *question, const struct inquiry_answer *given)
{
    struct vigil *v = arg;
    struct pale_err e;
    const struct approval_asked *q = inquiry_find(&v->open, question);
    if (q && inquiry_answer(v->remote, q, given, &e) < 0)
        cli_complain(e.text);
}

static void pause_for_bus(struct herald *h)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    if (poll(&p, 1, LOOK_EVERY_MS) > 0)
        herald_hear(h);
}

static int watch(struct args *a, struct remote *r)
{
    struct pale_err e;
    CLEANUP(vigil_done) struct vigil v = {.args = a, .remote = r};
    herald_init(&v.herald);
    v.herald.pressed = on_pressed;
    v.herald.arg = &v;
    if (args_has(a, "notify"))
        herald_open(&v.herald);
    interrupt_catch();
    if (!a->json)
        cli_note("waiting for questions; `pale approvals allow ID` or `deny ID` answers one");
    while (!*interrupt_seen()) {
        own_inquiries now = {0};
        if (inquiry_list(r, &now, &e) < 0)
            return cli_fail(a, &e);
        if (show_missing(&v, &v.open, &now, false) || show_missing(&v, &now, &v.open, true))
            return 1;
        inquiries_done(&v.open);
        v.open = now;
        now = (struct inquiries){0};
        pause_for_bus(&v.herald);
    }
    return 0;
}

/* --- answers --- */

static int read_answer(const struct args *a, struct inquiry_answer *ret, struct pale_err *e)
{
    int given = 0;
    const char *time = args_get(a, "for");
    *ret = (struct inquiry_answer){.allow = strcmp(a->word[0], "allow") == 0};
    for (enum verdict_scope s = APPLIES_ONCE; s < APPLIES_COUNT; s++)
        if (args_has(a, msg_verdict_scopes[s])) {
            ret->scope = s;
            given++;
        }
    if (given > 1)
        return err_set(e, PALE_BAD_INPUT, "approvals: give one of --once, --box, --project and --always");
    if (time && ret->scope == APPLIES_ONCE)
        return err_set(e, PALE_BAD_INPUT, "approvals: --for is how long an answer stands; give --box, --project or --always with it");
    if (time && (!number_duration(time, &ret->for_ms) || ret->for_ms == 0))
        return err_set(e, PALE_BAD_INPUT, "approvals: --for %s is no time; write 30m, 2h or 7d", time);
    return 0;
}

static int answer(struct args *a, struct remote *r)
{
    struct pale_err e;
    struct inquiry_answer given;
    own_inquiries l = {0};
    char text[2 * DOMAIN_NAME_MAX + 32], time[32];
    if (read_answer(a, &given, &e) < 0 || inquiry_list(r, &l, &e) < 0)
        return cli_fail(a, &e);
    for (int i = 1; i < a->count; i++) {
        const struct approval_asked *q = inquiry_find(&l, a->word[i]);
        if (!q) {
            err_set(&e, PALE_NOT_FOUND,
                    "no box asks a question %s, or nobody waits for it any more; `pale approvals` lists those that are open", a->word[i]);
            return cli_fail(a, &e);
        }
        if (inquiry_answer(r, q, &given, &e) < 0)
            return cli_fail(a, &e);
        if (!a->json)
            cli_note("%s box %s: %s (%s%s%s)", given.allow ? "allowed" : "denied", q->box_name, inquiry_text(q, text, sizeof(text)),
                     msg_verdict_scopes[given.scope], given.for_ms ? ", for " : "",
                     given.for_ms ? number_show_ms(given.for_ms, time, sizeof(time)) : "");
    }
    if (a->json)
        printf("{\"answered\":%d}\n", a->count - 1);
    return 0;
}

/* --- answers that stand --- */

static int add_row(void *arg, enum verdict_scope scope, const struct standing *s)
{
    struct listing *out = arg;
    char port[8], left[32];
    if (out->is_json) {
        json_begin_object(&out->json, NULL);
        json_text(&out->json, "verdict", s->allow ? "allow" : "deny");
        json_text(&out->json, "host", s->host);
        json_u64(&out->json, "port", s->port);
        json_text(&out->json, "scope", msg_verdict_scopes[scope]);
        if (s->until_unix)
            json_u64(&out->json, "until_unix_ms", s->until_unix * 1000);
        json_end_object(&out->json);
        return 0;
    }
    uint64_t now = clock_unix_ms() / 1000;
    snprintf(port, sizeof(port), "%u", s->port);
    table_cell(&out->table, s->allow ? "allow" : "deny");
    table_cell(&out->table, s->host);
    table_cell(&out->table, port);
    table_cell(&out->table, msg_verdict_scopes[scope]);
    table_cell(&out->table, s->until_unix > now ? number_show_ms((s->until_unix - now) * 1000, left, sizeof(left)) : "-");
    return 0;
}

/* The lists are the user's own files, on the machine where the boxes are. */
static int find_box(struct args *a, const struct remote *r, struct place *ret, struct pale_err *e)
{
    return r ? err_set(e, PALE_UNSUPPORTED, "answers that stand are looked at where the boxes are: run `pale approvals %s` there",
                       a->word[0])
             : lookup_box(a, a->word[1], ret, e);
}

static int standing(struct args *a, struct remote *r)
{
    static const char *const heads[] = {"ANSWER", "HOST", "PORT", "WHENEVER", "FOR"};
    struct pale_err e = {0};
    struct place p;
    own_listing out = {0};
    if (find_box(a, r, &p, &e) < 0)
        return cli_fail(a, &e);
    listing_init(&out, a, heads, 5);
    return approval_standing(&p, add_row, &out, &e) < 0 ? cli_fail(a, &e) : listing_print(&out);
}

/* Where an answer stands, if it does. */
struct whereabouts {
    const char *host;
    uint16_t port;
    enum verdict_scope scope; /* APPLIES_ONCE: nowhere */
};

static int note_scope(void *arg, enum verdict_scope scope, const struct standing *s)
{
    struct whereabouts *w = arg;
    if (strcmp(s->host, w->host) == 0 && s->port == w->port)
        w->scope = scope;
    return 0;
}

static int forget(struct args *a, struct remote *r)
{
    struct pale_err e = {0}, ignored;
    struct place p;
    struct inquiry_answer given;
    struct whereabouts where = {.host = a->word[2]};
    uint64_t port = 0;
    if (read_answer(a, &given, &e) < 0 || find_box(a, r, &p, &e) < 0)
        return cli_fail(a, &e);
    if (args_has(a, "for") || args_has(a, "once") || !number_u64(a->word[3], UINT16_MAX, &port) || port == 0) {
        err_set(&e, PALE_BAD_INPUT, "pale approvals forget BOX HOST PORT [--box|--project|--always]");
        return cli_fail(a, &e);
    }
    enum verdict_scope scope = given.scope == APPLIES_ONCE ? APPLIES_BOX : given.scope;
    where.port = (uint16_t)port;
    int res = approval_forget(&p, scope, a->word[2], where.port, &e);
    /* It may stand elsewhere. */
    if (res == -PALE_NOT_FOUND && approval_standing(&p, note_scope, &where, &ignored) == 0 && where.scope != APPLIES_ONCE)
        err_set(&e, PALE_NOT_FOUND, "no answer about %s port %u stands for that; one stands with --%s", a->word[2], where.port,
                msg_verdict_scopes[where.scope]);
    if (res < 0)
        return cli_fail(a, &e);
    if (a->json)
        puts("{\"forgotten\":1}");
    else
        cli_note("forgotten: %s port %u (%s)", a->word[2], where.port, msg_verdict_scopes[scope]);
    return 0;
}

/* Something that only an answer has. */
static bool has_terms(const struct args *a)
{
    bool any = false;
    for (const struct option *o = approvals_options; o->name; o++)
        any = any || (args_has(a, o->name) && strcmp(o->name, "notify") != 0);
    return any;
}

static int run_approvals(struct args *a)
{
    static const struct {
        const char *name;
        int min, max;
        bool answers;
        int (*run)(struct args *a, struct remote *r);
    } acts[] = {{"list", 1, 1, false, list},   {"watch", 1, 1, false, watch},       {"allow", 2, 64, true, answer},
                {"deny", 2, 64, true, answer}, {"standing", 2, 2, false, standing}, {"forget", 4, 4, true, forget}};
    struct pale_err e;
    own_remote r = {.fd = -1};
    char *only[] = {(char *)"list"};
    remote_init(&r);
    if (a->count == 0) {
        a->word = only;
        a->count = 1;
    }
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(a->word[0], acts[i].name) != 0 || a->count < acts[i].min || a->count > acts[i].max)
            continue;
        if ((!acts[i].answers && has_terms(a)) || (acts[i].run != watch && args_has(a, "notify")))
            break;
        if (a->host && remote_open(&r, a->host, true, &e) < 0)
            return cli_fail(a, &e);
        return acts[i].run(a, a->host ? &r : NULL);
    }
    err_set(&e, PALE_BAD_INPUT, "pale approvals %s", a->verb->usage);
    return cli_fail(a, &e);
}

static const struct option *const tables[] = {approvals_options, common_options, NULL};

const struct verb verb_approvals = {
    "approvals",
    "Trust",
    "what boxes ask, and your answers",
    "[list] | watch [--notify] | allow|deny ID … [SCOPE] [--for TIME] | standing BOX | forget BOX HOST PORT",
    "A connection that a rule asks about (verdict: ask) waits two minutes for you. list shows what is asked now, watch\n"
    "shows it as it comes. allow and deny answer for the connections that wait, or for whenever it is asked again; an\n"
    "answer never opens what a policy does not ask about. standing shows which answers stand for a box, and forget takes\n"
    "one back: it is asked again. SCOPE is one of --once, --box, --project and --always.",
    tables,
    0,
    64,
    -1,
    run_approvals};

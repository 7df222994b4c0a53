/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is told of the making of images and boxes. */
#include "steward/making.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/imageref.h"
#include "image/staging.h"
#include "steward/outlet.h"

#define SILENCE_MS 5000 /* then whoever follows it hears that it goes on */
#define ANSWER_MAX 65536u
#define SWEEPS 6
#define SWEEP_AGAIN_US 500000
#define LINE_MAX_BYTES 1000u /* of what the command says, the rest of the line is cut */

enum form { FORM_NONE, FORM_LINES, FORM_EVENTS };

struct teller {
    const struct making *making;
    enum form form;
    struct outlet *out;
    struct buf line, answer;
    int64_t began_ms, told_ms;
};

static void teller_done(struct teller *t)
{
    free(t->out);
    buf_done(&t->line);
    buf_done(&t->answer);
}

/* A client that still sends its archive need not read yet, and must not be waited for: what is only a word on the way is left out then. */
static bool is_heard(const struct teller *t)
{
    struct pollfd p = {.fd = t->making->fd, .events = POLLOUT};
    return t->form != FORM_NONE && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);
}

/* One event, as the client wants them; fields: what stands in it besides, a JSON object or NULL. */
static int tell(struct teller *t, const char *event, const char *key, const char *text, const struct jsonread *fields, struct pale_err *e)
{
    own_buf out = {0};
    struct json j;
    struct jsonread name, value;
    if (t->form == FORM_NONE)
        return 0;
    buf_init(&out, 2 * ANSWER_MAX);
    if (t->form == FORM_EVENTS)
        buf_addf(&out, "event: %s\ndata: ", event);
    json_start(&j, &out);
    json_begin_object(&j, NULL);
    json_text(&j, "event", event);
    json_u64(&j, "elapsed_ms", (uint64_t)(clock_ms() - t->began_ms));
    if (key)
        json_text(&j, key, text);
    for (size_t pos = 0; fields && jsonread_next(fields, &pos, &name, &value);) {
        char member[64];
        size_t quote = value.kind == JSONREAD_TEXT ? 1 : 0;
        json_raw(&j, jsonread_text(&name, member, sizeof(member)), value.at - quote, value.len + 2 * quote);
    }
    json_end_object(&j);
    buf_add_text(&out, t->form == FORM_EVENTS ? "\n\n" : "\n");
    if (out.failed)
        return err_nomem(e);
    t->told_ms = clock_ms();
    int r = outlet_add(t->out, out.data, out.len, e);
    return r < 0 ? r : outlet_flush(t->out, e);
}

/* --- while it works --- */

static int hear_answer(void *arg, const char *p, size_t n, struct pale_err *e)
{
    struct teller *t = arg;
    (void)e;
    buf_add(&t->answer, p, n);
    return 0;
}

/* What the command says, line by line. */
static int hear_words(void *arg, const char *p, size_t n, struct pale_err *e)
{
    struct teller *t = arg;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (p[i] != '\n') {
            if (t->line.len < LINE_MAX_BYTES)
                buf_add(&t->line, p + i, 1);
            continue;
        }
        r = t->line.len && is_heard(t) ? tell(t, "note", "text", buf_text(&t->line), NULL, e) : 0;
        t->line.len = 0;
    }
    return r;
}

static int break_silence(void *arg, struct pale_err *e)
{
    struct teller *t = arg;
    return clock_ms() - t->told_ms > SILENCE_MS && is_heard(t) ? tell(t, t->making->during, NULL, NULL, NULL, e) : 0;
}

/* A command that was interrupted may not have been able to take away all that its box had made, which may outlive it by a moment. Nobody
 * waits for us. */
static void sweep(void)
{
    own_store s = STORE_NONE;
    struct pale_err ignored;
    if (imageref_store(&s, &ignored) < 0)
        return;
    for (int i = 0; i < SWEEPS; i++) {
        (void)staging_sweep(&s, false);
        usleep(SWEEP_AGAIN_US);
    }
}

/* --- what came of it --- */

/* Whoever follows it has begun to read: what went wrong is the last line then, and no failure of the deed's. */
static int tell_end(struct teller *t, int so_far, const struct jsonread *made, struct buf *told, struct pale_err *e)
{
    if (so_far < 0 && (t->form == FORM_NONE || t->out->told == 0))
        return so_far;
    if (so_far < 0) {
        own_buf fields = {0};
        struct json j;
        struct jsonread v;
        buf_init(&fields, 4096);
        json_start(&j, &fields);
        json_begin_object(&j, NULL);
        json_text(&j, "code", err_name(e->code));
        json_text(&j, "detail", e->text);
        json_end_object(&j);
        return jsonread_parse(buf_text(&fields), fields.len, &v) ? tell(t, "failed", NULL, NULL, &v, e) : so_far;
    }
    buf_add(told, t->answer.data, t->answer.len);
    if (t->form != FORM_NONE)
        return tell(t, t->making->after, NULL, NULL, made, e);
    int r = outlet_add(t->out, t->answer.data, t->answer.len, e);
    return r < 0 ? r : outlet_flush(t->out, e);
}

int making_run(const struct making *m, char *const argv[], struct buf *told, struct pale_err *e)
{
    CLEANUP(teller_done) struct teller t = {.making = m, .out = outlet_new(m->fd), .began_ms = clock_ms()};
    struct jsonread made = {0};
    int status = 0;
    if (!t.out)
        return err_nomem(e);
    buf_init(&t.line, LINE_MAX_BYTES + 1);
    buf_init(&t.answer, ANSWER_MAX);
    t.told_ms = t.began_ms;
    t.form = strcmp(m->order->until, "lines") == 0 ? FORM_LINES : strcmp(m->order->until, "events") == 0 ? FORM_EVENTS : FORM_NONE;
    struct command c = {
        .order = m->order, .fd = m->fd, .takes = m->takes, .answered = hear_answer, .said = hear_words, .waits = break_silence, .arg = &t};
    int r = command_run(&c, argv, &status, e);
    if (r < 0)
        sweep();
    else if (t.answer.failed)
        r = err_set(e, PALE_LIMIT, "what the command told of it is too long");
    else
        r = command_judge(buf_text(&t.answer), t.answer.len, status, &made, e);
    return tell_end(&t, r, &made, told, e);
}

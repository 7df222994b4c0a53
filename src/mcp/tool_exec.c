/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tools that run commands and look after them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/quote.h"
#include "fleet/pending.h"
#include "mcp/clip.h"
#include "mcp/toolbox.h"
#include "base/base64.h"
#include "ops/world.h"

#define HEAD_BYTES 12000u /* of output that a model is shown, … */
#define TAIL_BYTES 20000u /* … with what comes last, because that is where errors stand */
#define TIMEOUT_S 120u
#define PROGRESS_MS 1000
#define JOBS_SHOWN 50u

struct command {
    struct clip clip;
    struct loop_timer timer;
    struct use *use;
    int64_t began_ms;
    uint64_t job;
    json_t *result;        /* how it ended */
    uint64_t offset, next; /* of a job's output: where what is shown begins, and where to go on */
    bool begun;
    struct listener listener; /* to what the box asks the operator, … */
    bool listens;
    struct loop_timer asking; /* … and when it has */
};

static void free_command(struct use *u)
{
    struct command *m = u->own;
    loop_disarm(&u->r->world->loop, &m->timer);
    loop_disarm(&u->r->world->loop, &m->asking);
    if (m->listens)
        events_unlisten(&u->r->world->fleet.events, &m->listener);
    clip_done(&m->clip);
    json_decref(m->result);
    free(m);
}

static void on_timer(struct loop_timer *t);

static struct command *new_command(struct use *u, size_t head, size_t tail)
{
    struct command *m = calloc(1, sizeof(*m));
    if (!m || !clip_init(&m->clip, head, tail)) {
        free(m);
        use_say(u, true, "out of memory");
        return NULL;
    }
    m->use = u;
    m->timer.fire = on_timer;
    m->began_ms = clock_ms();
    u->own = m;
    u->done = free_command;
    return m;
}

/* --- its output --- */

/* {"data": text} or {"base64": text} */
static void take_bytes(struct clip *c, const json_t *v)
{
    const char *data = json_string_value(json_object_get(v, "data")), *coded = json_string_value(json_object_get(v, "base64"));
    own_buf b = {0};
    if (data)
        return clip_add(c, data, json_string_length(json_object_get(v, "data")));
    buf_init(&b, 1u << 20);
    if (coded && base64_read(coded, &b))
        clip_add(c, b.data, b.len);
}

static bool is_true(const json_t *v, const char *key)
{
    return json_is_true(json_object_get(v, key));
}

static bool is_event(const json_t *line, const char *event)
{
    const char *is = json_string_value(json_object_get(line, "event"));
    return is && strcmp(is, event) == 0;
}

/* How it ended, in a line that is not there if there is nothing to say. */
static void put_ending(struct buf *b, const json_t *result, uint64_t timeout_s)
{
    const char *why = json_string_value(json_object_get(result, "message"));
    uint64_t status = duty_number(result, "exit"), sig = duty_number(result, "signal");
    if (!is_true(result, "started"))
        buf_addf(b, "[it could not be run: %s]", why ? why : "unknown");
    else if (is_true(result, "timed_out"))
        buf_addf(b, "[timed out after %llu s: it was ended with all it started. Give a longer timeout, or background: true]",
                 (unsigned long long)timeout_s);
    else if (is_true(result, "out_of_memory"))
        buf_add_text(b, "[ended: the box's memory limit was reached (limits.memory; the tool policy shows it and asks for more)]");
    else if (is_true(result, "cpu_limit"))
        buf_add_text(b, "[ended: the box's CPU time was used up (limits.cpu_seconds; the tool policy shows it and asks for more)]");
    else if (is_true(result, "disk_full"))
        buf_addf(b, "[exit %llu; %s]", (unsigned long long)status, why ? why : "the box's disk limit was reached (limits.disk)");
    else if (is_true(result, "killed"))
        buf_add_text(b, "[ended by somebody outside]");
    else if (sig)
        buf_addf(b, "[ended by signal %llu]", (unsigned long long)sig);
    else if (status)
        buf_addf(b, "[exit %llu]", (unsigned long long)status);
    if (is_true(result, "truncated"))
        buf_add_text(b, "[its output was cut by the box's output limit (limits.output)]");
}

static bool is_failure(const json_t *result)
{
    return !is_true(result, "started") || is_true(result, "timed_out") || is_true(result, "out_of_memory") || is_true(result, "cpu_limit");
}

static void end_line(struct buf *b)
{
    if (b->len > 0 && b->data[b->len - 1] != '\n')
        buf_add_text(b, "\n");
}

static void answer_exec(struct use *u)
{
    struct command *m = u->own;
    own_buf b = {0}, ending = {0};
    char gap[200];
    buf_init(&b, TOOL_TEXT_MAX);
    buf_init(&ending, 1024);
    snprintf(gap, sizeof(gap), "\n[… %llu bytes left out; read them with job {\"id\": %llu, \"since\": %llu} …]\n",
             (unsigned long long)m->clip.lost, (unsigned long long)m->job, (unsigned long long)m->clip.raw_head);
    clip_write(&m->clip, gap, &b);
    put_ending(&ending, m->result, use_number(u, "timeout", TIMEOUT_S));
    if (ending.len > 0) {
        end_line(&b);
        buf_add(&b, ending.data, ending.len);
    } else if (b.len == 0)
        buf_add_text(&b, "[no output]");
    use_answer(u, &b, is_failure(m->result));
}

/* --- exec --- */

static void heard_exec(struct duty *k, const json_t *line)
{
    struct use *u = (struct use *)k;
    struct command *m = u->own;
    if (is_event(line, "started")) {
        m->job = duty_number(line, "job");
        if (m->listens) /* it may have asked before we came back to it */
            loop_arm(&u->r->world->loop, &m->asking, clock_ms());
    } else if (is_event(line, "stdout") || is_event(line, "stderr"))
        take_bytes(&m->clip, line);
    else if (is_event(line, "missed"))
        m->clip.lost += duty_number(line, "bytes");
    else if (is_event(line, "exit"))
        m->result = json_deep_copy(line);
}

static void exec_done(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    struct command *m = u->own;
    (void)answer;
    if (e)
        return use_fail(u, e);
    if (!m->result)
        return use_say(u, true, "the command's end was not told; job %llu may say more", (unsigned long long)m->job);
    answer_exec(u);
}

static void on_timer(struct loop_timer *t)
{
    struct command *m = (struct command *)((char *)t - offsetof(struct command, timer));
    struct mcp_request *r = m->use->r;
    uint64_t seconds = (uint64_t)(clock_ms() - m->began_ms) / 1000;
    char text[100];
    loop_arm(&r->world->loop, t, clock_ms() + PROGRESS_MS);
    snprintf(text, sizeof(text), "%llu s, %llu bytes of output", (unsigned long long)seconds, (unsigned long long)m->clip.raw);
    mcp_progress(r, seconds, 0, text); /* which may be the end of it all */
}

static void watch_progress(struct use *u)
{
    struct command *m = u->own;
    if (u->r->progress_token)
        loop_arm(&u->r->world->loop, &m->timer, clock_ms() + PROGRESS_MS);
}

static void listen_for_questions(struct use *u);
static void answer_question(struct use *u);

static void started(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    unsigned long long job = (unsigned long long)duty_number(answer, "job");
    if (e)
        return use_fail(u, e);
    use_say(u, false, "Runs as job %llu. Its output: job {\"id\": %llu}; wait for its end with wait, end it with signal 9.", job, job);
}

static void run_command(struct use *u)
{
    if (!new_command(u, HEAD_BYTES, TAIL_BYTES))
        return;
    u->duty.streamed = true;
    u->duty.heard = heard_exec;
    watch_progress(u);
    listen_for_questions(u);
    use_run(u, "exec", 0, json_pack("{s:I, s:b}", "timeout", (json_int_t)use_number(u, "timeout", TIMEOUT_S), "merge", 1), exec_done);
}

/* --- a question of the box meanwhile ---
 *
 * A command whose connection waits for the operator is left, and goes on; the client asks its user, comes back with his answer and with the
 * key of the command, and gets all of its output as if nothing had been. Only for a client that speaks for the operator. */

#define QUESTION_STATE "question"

static void ask_client(struct use *u, const struct approval_asked *q)
{
    own_buf text = {0}, state = {0};
    const struct core_box *box = core_by_id(u->r->world->fleet.core, u->r->box);
    buf_init(&text, 2048);
    buf_init(&state, MCP_STATE_MAX / 2);
    buf_addf(&text, "A command in the box %s wants to connect to %s%s%s%s port %llu, which its policy asks about.",
             box ? box->name : u->r->box, q->via[0] ? q->via : q->host, q->via[0] ? " (" : "", q->via[0] ? q->host : "",
             q->via[0] ? ")" : "", (unsigned long long)q->port);
    buf_addf(&state, QUESTION_STATE "\n%s\n%s\n%s\n%llu\n", u->duty.key, q->id, q->host, (unsigned long long)q->port);
    duty_leave(&u->duty);
    u->done(u);
    u->own = NULL;
    u->done = NULL;
    if (text.failed || state.failed)
        return use_say(u, true, "out of memory");
    use_ask(u, buf_text(&text), "yes lets this connection through, this once", buf_text(&state));
}

static void on_asking(struct loop_timer *t)
{
    struct command *m = (struct command *)((char *)t - offsetof(struct command, asking));
    struct use *u = m->use;
    const struct lookout *w = lookout_of(&u->r->world->fleet, u->r->box);
    for (const struct pending *q = w && m->job && u->duty.call ? w->pending : NULL; q; q = q->next)
        if (q->q.job == m->job)
            return ask_client(u, &q->q);
}

static void on_event(struct listener *l, const struct event *ev)
{
    struct command *m = (struct command *)((char *)l - offsetof(struct command, listener));
    if (strcmp(ev->kind, "net.ask") == 0 && strcmp(ev->box, m->use->r->box) == 0)
        loop_arm(&m->use->r->world->loop, &m->asking, clock_ms());
}

static void listen_for_questions(struct use *u)
{
    struct command *m = u->own;
    if (!u->duty.key[0])
        return;
    m->listener.heard = on_event;
    m->asking.fire = on_asking;
    m->listens = true;
    events_listen(&u->r->world->fleet.events, &m->listener);
}

/* Somebody else may have answered it, or nobody waits any more: the command tells. */
static void answered(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    (void)e, (void)answer;
    run_command((struct use *)k);
}

static void answer_question(struct use *u)
{
    enum { KIND, KEY, ID, HOST, PORT, PARTS };
    char text[MCP_STATE_MAX], *part[PARTS], *at = text;
    uint64_t port = 0;
    snprintf(text, sizeof(text), "%s", u->r->state);
    for (int i = 0; i < PARTS; i++) {
        part[i] = at;
        if (!(at = strchr(at, '\n')))
            return use_say(u, true, "bad-input: requestState is of another tool");
        *at++ = 0;
    }
    if (strcmp(part[KIND], QUESTION_STATE) != 0 || !number_u64(part[PORT], UINT16_MAX, &port))
        return use_say(u, true, "bad-input: requestState is of another tool");
    snprintf(u->duty.key, sizeof(u->duty.key), "%s", part[KEY]);
    snprintf(u->duty.question, sizeof(u->duty.question), "%s", part[ID]);
    if (!u->r->answers)
        return run_command(u);
    u->duty.streamed = false;
    use_run(u, "approval.answer", 0,
            json_pack("{s:s, s:s, s:I, s:s}", "box", u->r->box, "host", part[HOST], "port", (json_int_t)port, "verdict",
                      use_is_allowed(u) ? "allow" : "deny"),
            answered);
}

void tool_exec(struct use *u)
{
    /* To the operation it would mean without end. */
    if (use_number(u, "timeout", TIMEOUT_S) == 0)
        return use_say(u, true, "bad-input: timeout: at least 1 second; background: true without one has no end");
    if (use_number(u, "background", 0)) {
        /* It has its own time, if it is given one. */
        return use_run(u, "job.start", 0, json_pack("{s:b}", "merge", 1), started);
    }
    if (!use_can_ask(u))
        return run_command(u);
    if (u->r->state)
        return answer_question(u);
    if (!mcp_secret_name("mcp-", u->duty.key, sizeof(u->duty.key)))
        u->duty.key[0] = 0;
    run_command(u);
}

/* --- job --- */

static void put_job(struct buf *b, const json_t *job)
{
    const char *state = json_string_value(json_object_get(job, "state")), *command = json_string_value(json_object_get(job, "command"));
    const json_t *result = json_object_get(job, "result");
    buf_addf(b, "%llu %s", (unsigned long long)duty_number(job, "id"), state ? state : "?");
    if (result)
        buf_addf(b, " exit %llu", (unsigned long long)duty_number(result, "exit"));
    buf_addf(b, " %llu bytes  ", (unsigned long long)duty_number(result ? result : job, "output_bytes"));
    quote_text(b, command ? command : "", command ? strlen(command) : 0, 200);
    buf_add_text(b, "\n");
}

static void listed(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const json_t *items = json_object_get(answer, "items");
    size_t n = json_array_size(items);
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    for (size_t i = n > JOBS_SHOWN ? n - JOBS_SHOWN : 0; i < n; i++)
        put_job(&b, json_array_get(items, i));
    if (n == 0)
        buf_add_text(&b, "[no jobs]");
    use_answer(u, &b, false);
}

static void heard_log(struct duty *k, const json_t *line)
{
    struct use *u = (struct use *)k;
    struct command *m = u->own;
    if (is_event(line, "missed"))
        m->next += duty_number(line, "bytes");
    if (!is_event(line, "stdout") && !is_event(line, "stderr"))
        return;
    if (!m->begun)
        m->offset = m->next = duty_number(line, "offset");
    m->begun = true;
    take_bytes(&m->clip, line);
    k->enough = clip_is_full(&m->clip);
}

static void answer_log(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    struct command *m = u->own;
    own_buf b = {0};
    (void)answer;
    if (e)
        return use_fail(u, e);
    bool ended = json_object_get(m->result, "result") != NULL;
    uint64_t next = m->next + (clip_is_full(&m->clip) ? m->clip.raw_head : m->clip.raw);
    unsigned long long id = (unsigned long long)use_number(u, "id", 0);
    buf_init(&b, TOOL_TEXT_MAX);
    clip_write(&m->clip, "", &b);
    end_line(&b);
    if (clip_is_full(&m->clip))
        buf_addf(&b, "[there is more: job {\"id\": %llu, \"since\": %llu}]\n", id, (unsigned long long)next);
    if (!ended)
        buf_addf(&b, "[job %llu runs; read on with since: %llu, or wait for its end with wait]", id, (unsigned long long)next);
    else {
        buf_addf(&b, "[job %llu has ended, exit %llu]", id, (unsigned long long)duty_number(json_object_get(m->result, "result"), "exit"));
        put_ending(&b, json_object_get(m->result, "result"), 0);
    }
    use_answer(u, &b, false);
}

static void inspected(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    struct command *m = u->own;
    if (e)
        return use_fail(u, e);
    m->result = json_deep_copy(answer);
    m->next = use_number(u, "since", 0);
    k->streamed = true;
    k->heard = heard_log;
    use_run(u, "job.logs", use_number(u, "id", 0), json_pack("{s:I}", "offset", (json_int_t)m->next), answer_log);
}

static void signalled(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    if (e)
        return use_fail(u, e);
    buf_init(&b, 4096);
    put_job(&b, answer);
    use_answer(u, &b, false);
}

void tool_job(struct use *u)
{
    uint64_t id = use_number(u, "id", 0), signal = use_number(u, "signal", 0);
    if (id == 0)
        return use_run(u, "job.list", 0, NULL, listed);
    /* The kill that nothing survives is the operation's 0. */
    if (use_value(u, "signal")->given && signal == 0)
        return use_say(u, true, "bad-input: 0 is no signal; 15 asks it to end, 9 ends it with all it started");
    if (use_value(u, "signal")->given)
        return use_run(u, "job.signal", id, json_pack("{s:I}", "signal", (json_int_t)(signal == 9 ? 0 : signal)), signalled);
    if (!new_command(u, HEAD_BYTES + TAIL_BYTES, 0))
        return;
    if (!use_value(u, "wait")->given)
        return use_run(u, "job.inspect", id, NULL, inspected);
    watch_progress(u);
    use_run(u, "job.wait", id, json_pack("{s:I}", "timeout", (json_int_t)use_number(u, "wait", 0)), inspected);
}

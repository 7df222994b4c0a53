/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about commands that run or ran in a box: ps, attach, kill, wait, logs. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "box/reach.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/lookup.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "wire/result_json.h"
#include "wire/message.h"

static void job_json(struct json *j, const struct msg_job *m)
{
    json_begin_object(j, NULL);
    json_u64(j, "job", m->id);
    json_text(j, "state", msg_job_state(m));
    json_u64(j, "pid", m->pid);
    json_text(j, "command", m->command);
    json_bool(j, "detached", m->detached);
    json_u64(j, "started_unix_ms", m->started_unix_ms);
    json_fixed(j, "time_ms", m->time_us, 3);
    if (m->state == JOB_ENDED) {
        struct msg_result r = msg_job_result(m);
        json_begin_object(j, "result");
        result_json(j, &r);
        json_end_object(j);
    }
    json_end_object(j);
}

/* at_once: the answer is not a matter of how long a command takes. */
static int open_box(struct args *a, struct reach *r, bool at_once, struct pale_err *e)
{
    own_door d = {0};
    int res = door_find(&d, a, a->word[0], e);
    if (res == 0 && (res = door_reach(&d, r, false, e)) == 0 && at_once)
        door_hurry(&d, r);
    return res;
}

static void list_job(struct listing *l, const struct msg_job *m)
{
    char number[24], time[32], status[24] = "";
    if (l->is_json) {
        job_json(&l->json, m);
        return;
    }
    snprintf(number, sizeof(number), "%llu", (unsigned long long)m->id);
    if (m->state == JOB_ENDED)
        snprintf(status, sizeof(status), "%llu", (unsigned long long)m->status);
    table_cell(&l->table, number);
    table_cell(&l->table, msg_job_state(m));
    table_cell(&l->table, number_show_ms(m->time_us / 1000, time, sizeof(time)));
    table_cell(&l->table, status);
    table_cell(&l->table, m->command);
}

static int run_ps(struct args *a)
{
    struct pale_err e;
    struct frame f;
    static const char *const heads[] = {"JOB", "STATE", "TIME", "EXIT", "COMMAND"};
    own_listing l = {0};
    own_reach r = {.fd = -1};
    reach_init(&r);
    listing_init(&l, a, heads, 5);
    int res = open_box(a, &r, true, &e);
    bool down = res == -PALE_NOT_FOUND && strstr(e.text, "not running");
    if (res == 0 && (res = reach_send(&r, ASK_JOBS, NULL, 0, &e)) == 0)
        while ((res = reach_receive(&r, &f, &e)) == 0 && f.type == TELL_JOB) {
            struct msg_job m;
            if (!msg_job_parse(f.data, f.len, &m))
                break;
            list_job(&l, &m);
        }
    if (res < 0 && !down)
        return cli_fail(a, &e);
    return listing_print(&l);
}

/* A signal by name or number; 0 for none of both. */
static int signal_number(const char *s)
{
    static const struct {
        const char *name;
        int number;
    } rows[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL}, {"TERM", SIGTERM},
                {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}, {"TSTP", SIGTSTP}};
    uint64_t v;
    if (strncmp(s, "SIG", 3) == 0)
        s += 3;
    if (number_u64(s, 64, &v))
        return (int)v;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, s) == 0)
            return rows[i].number;
    return 0;
}

static int read_ref(const struct args *a, struct msg_job_ref *ret, struct pale_err *e)
{
    *ret = (struct msg_job_ref){0};
    if (!number_u64(a->word[1], UINT64_MAX, &ret->id))
        return err_set(e, PALE_BAD_INPUT, "%s is no job number; `pale ps %s` lists them", a->word[1], a->word[0]);
    const char *s = args_get(a, "signal");
    if (s && !(ret->signal = (uint64_t)signal_number(s)))
        return err_set(e, PALE_BAD_INPUT, "--signal %s: write a name such as TERM or a number", s);
    ret->follow = args_has(a, "follow");
    const char *offset = args_get(a, "offset");
    if (offset && !number_u64(offset, UINT64_MAX, &ret->offset))
        return err_set(e, PALE_BAD_INPUT, "--offset %s: write a number of bytes", offset);
    return 0;
}

/* Sends a request about one job. */
static int ask(struct args *a, struct reach *r, uint8_t type, uint64_t *ret_offset, struct pale_err *e)
{
    struct msg_job_ref ref;
    uint8_t mem[128];
    struct record_writer w;
    int res = read_ref(a, &ref, e);
    if (res < 0 || (res = open_box(a, r, type == ASK_JOB_KILL, e)) < 0)
        return res;
    if (ret_offset)
        *ret_offset = ref.offset;
    record_start(&w, mem, sizeof(mem));
    msg_job_ref_write(&ref, &w);
    return reach_send(r, type, mem, w.len, e);
}

/* Takes frames until the request is done; output goes to our streams, the job to *ret. */
static int answer(struct reach *r, bool output, uint64_t offset, struct msg_job *ret, struct pale_err *e)
{
    static char text[2][1024];
    struct frame f;
    uint64_t skip = 0;
    int res;
    while ((res = reach_receive(r, &f, e)) == 0 && f.type != TELL_DONE) {
        if ((f.type == TELL_STDOUT || f.type == TELL_STDERR) && output) {
            f = session_rest(&f, &skip);
            if (!fd_write_full(f.type == TELL_STDOUT ? 1 : 2, f.data, f.len))
                return err_os(e, "write output");
        } else if (f.type == TELL_MISSED) {
            session_missed(&f);
        } else if (f.type == TELL_OFFSET) {
            skip = session_skip(&f, offset);
        } else if (f.type != TELL_JOB || !msg_job_parse(f.data, f.len, ret)) {
            return err_set(e, PALE_PROTOCOL, "the keeper does not speak our language");
        } else {
            snprintf(text[0], sizeof(text[0]), "%s", ret->command);
            snprintf(text[1], sizeof(text[1]), "%s", ret->message);
            ret->command = text[0];
            ret->message = text[1];
        }
    }
    return res;
}

static int show_job(const struct msg_job *m)
{
    own_buf b = {0};
    struct json j;
    buf_init(&b, 1 << 20);
    json_start(&j, &b);
    job_json(&j, m);
    return cli_json(&b);
}

static int run_kill(struct args *a)
{
    struct pale_err e;
    struct msg_job m = {.command = "", .message = ""};
    own_reach r = {.fd = -1};
    reach_init(&r);
    if (ask(a, &r, ASK_JOB_KILL, NULL, &e) < 0 || answer(&r, false, 0, &m, &e) < 0)
        return cli_fail(a, &e);
    return a->json ? show_job(&m) : 0;
}

static int run_wait(struct args *a)
{
    struct pale_err e;
    struct msg_job m = {.command = "", .message = ""};
    own_reach r = {.fd = -1};
    reach_init(&r);
    if (ask(a, &r, ASK_JOB_WAIT, NULL, &e) < 0 || answer(&r, false, 0, &m, &e) < 0)
        return cli_fail(a, &e);
    if (a->json) {
        int failed = show_job(&m);
        return failed ? failed : (int)m.status;
    }
    struct msg_result result = msg_job_result(&m);
    report_line(&result, false);
    return (int)m.status;
}

static int run_logs(struct args *a)
{
    struct pale_err e;
    uint64_t offset = 0;
    struct msg_job m = {.command = "", .message = ""};
    own_reach r = {.fd = -1};
    reach_init(&r);
    if (ask(a, &r, ASK_JOB_LOGS, &offset, &e) < 0 || answer(&r, true, offset, &m, &e) < 0)
        return cli_fail(a, &e);
    return 0;
}

/* Is it a terminal's? And is it there at all. */
static int look_at_job(struct args *a, uint64_t id, bool *ret_tty, struct pale_err *e)
{
    struct frame f;
    own_reach r = {.fd = -1};
    reach_init(&r);
    int res = open_box(a, &r, true, e);
    if (res == 0 && (res = reach_send(&r, ASK_JOBS, NULL, 0, e)) == 0)
        while ((res = reach_receive(&r, &f, e)) == 0 && f.type == TELL_JOB) {
            struct msg_job m;
            if (msg_job_parse(f.data, f.len, &m) && m.id == id) {
                *ret_tty = m.tty;
                return 0;
            }
        }
    return res < 0 ? res
                   : err_set(e, PALE_NOT_FOUND, "there is no job %llu in %s; `pale ps %s` lists them", (unsigned long long)id, a->word[0],
                             a->word[0]);
}

static int run_attach(struct args *a)
{
    struct pale_err e;
    struct msg_job_ref ref;
    struct msg_result result;
    struct session s;
    bool tty = false;
    own_reach r = {.fd = -1};
    reach_init(&r);
    if (read_ref(a, &ref, &e) < 0 || look_at_job(a, ref.id, &tty, &e) < 0 || open_box(a, &r, false, &e) < 0)
        return cli_fail(a, &e);
    session_init(&s, &r, NULL);
    s.attach = (struct msg_attach){.id = ref.id, .offset = ref.offset};
    s.lasts = true;
    s.terminal = tty && isatty(0) && !a->json;
    s.forward_input = !args_has(a, "no-stdin");
    own_buf out = {0}, err = {0};
    buf_init(&out, a->json ? 1u << 30 : 0);
    buf_init(&err, a->json ? 1u << 30 : 0);
    if (a->json) {
        s.out = &out;
        s.err = &err;
    }
    if (session_run(&s, &result, &e) < 0)
        return cli_fail(a, &e);
    if (a->json)
        return report_json(&result, NULL, &out, &err);
    report_line(&result, args_has(a, "quiet") || s.terminal);
    return (int)result.status;
}

static const struct option kill_options[] = {{"signal", 's', "SIGNAL", "send this instead of ending the whole tree", NULL}, {0}};
static const struct option logs_options[] = {
    {"follow", 'f', NULL, "go on until the command ends", NULL}, {"offset", 0, "N", "begin with this byte of the output", NULL}, {0}};
static const struct option attach_options[] = {
    {"no-stdin", 0, NULL, "only look on", NULL},
    {"offset", 0, "N", "begin with this byte of the output", NULL},
    {"quiet", 'q', NULL, "no summary at the end", NULL},
    {0},
};
static const struct option *const attach_tables[] = {attach_options, scope_options, common_options, NULL};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const kill_tables[] = {kill_options, scope_options, common_options, NULL};
static const struct option *const logs_tables[] = {logs_options, scope_options, common_options, NULL};

const struct verb verb_ps = {
    "ps", "Jobs", "list a box's commands", "BOX", "Commands that run, wait to run, or were detached and have ended.", plain_tables, 1, 1,
    -1,   run_ps};
const struct verb verb_kill = {"kill",
                               "Jobs",
                               "end a command",
                               "BOX JOB",
                               "Ends the command and all its descendants at once, or sends its process group a signal.",
                               kill_tables,
                               2,
                               2,
                               -1,
                               run_kill};
const struct verb verb_attach = {
    "attach",
    "Jobs",
    "come back to a command",
    "[FLAGS] BOX JOB",
    "To one that was started with --keep or --detach, running or ended: its output from the beginning, or as much\n"
    "of it as is kept, then live; our input is its own. Whoever was attached before is let go. Ends as the command did.",
    attach_tables,
    2,
    2,
    -1,
    run_attach};
const struct verb verb_wait = {
    "wait", "Jobs", "wait for a command to end", "BOX JOB", "Ends with the command's own exit status.", plain_tables, 2, 2, -1, run_wait};
const struct verb verb_logs = {"logs",
                               "Jobs",
                               "show what a detached command printed",
                               "[-f] BOX JOB",
                               "Standard output and standard error come out on ours, byte for byte.",
                               logs_tables,
                               2,
                               2,
                               -1,
                               run_logs};

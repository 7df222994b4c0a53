/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that run a command: run, exec, shell. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/number.h"
#include "box/life.h"
#include "box/place.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far_run.h"
#include "cli/lookup.h"
#include "cli/report.h"
#include "cli/run_in.h"
#include "cli/session.h"
#include "cli/verbs.h"

static const struct option exec_options[] = {
    {"interactive", 'i', NULL, "give the command our standard input", NULL},
    {"tty", 't', NULL, "give it a terminal", NULL},
    {"cwd", 'w', "DIR", "working folder in the box", NULL},
    {"user", 'u', "USER", "agent (default), root, or UID[:GID]; on an image root alone", NULL},
    {"timeout", 'T', "TIME", "kill it and all it started after this time (30s)", NULL},
    {"quiet", 'q', NULL, "no summary line at the end", NULL},
    {0},
};

static const struct option exec_only[] = {
    {"env", 'e', "NAME=VALUE", "set a variable for this command", NULL},
    {"detach", 'd', NULL, "leave it running; print the job's number", NULL},
    {"keep", 'k', NULL, "it goes on if we are cut off; `pale attach` comes back to it", NULL},
    {0},
};

static const struct option run_only[] = {
    {"name", 'n', "NAME", "keep the box under this name afterwards", NULL},
    {"rm", 0, NULL, "remove the box afterwards, even a named one", NULL},
    {0},
};

static int read_timeout(const struct args *a, struct msg_exec *m, struct pale_err *e)
{
    const char *t = args_get(a, "timeout");
    if (t && (!number_duration(t, &m->timeout_ms) || m->timeout_ms == 0))
        return err_set(e, PALE_BAD_INPUT, "--timeout %s: write a time such as 30s, 500ms or 5m", t);
    return 0;
}

static void terminal_size(struct msg_exec *m)
{
    struct winsize w;
    if (ioctl(0, TIOCGWINSZ, &w) == 0) {
        m->rows = w.ws_row;
        m->cols = w.ws_col;
    }
    if (m->rows == 0 || m->cols == 0) {
        m->rows = 24;
        m->cols = 80;
    }
}

/* The request that the options describe. words[0..count) is the command. */
static int make_request(const struct args *a, char **words, int count, struct msg_exec *m, struct pale_err *e)
{
    m->flags = 0;
    m->user = args_get(a, "user") ? args_get(a, "user") : "";
    m->cwd = args_get(a, "cwd") ? args_get(a, "cwd") : "";
    m->label = m->key = "";
    m->flags |= args_has(a, "keep") ? EXEC_LAST : 0;
    if (args_has(a, "interactive"))
        m->flags |= EXEC_STDIN;
    if (args_has(a, "tty"))
        m->flags |= EXEC_TTY | EXEC_STDIN;
    if (count > EXEC_STRINGS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d arguments", EXEC_STRINGS_MAX);
    for (int i = 0; i < count; i++)
        m->argv[m->argc++] = words[i];
    if (m->flags & EXEC_TTY) {
        static char term[64];
        const char *t = getenv("TERM");
        terminal_size(m);
        snprintf(term, sizeof(term), "TERM=%s", t && strlen(t) < 40 ? t : "xterm");
        m->env[m->envc++] = term;
    }
    return read_timeout(a, m, e);
}

static int add_env(const struct args *a, struct msg_exec *m, struct pale_err *e)
{
    for (int i = 0; i < a->given_count; i++) {
        if (a->given[i].option != exec_only)
            continue;
        const char *v = a->given[i].value;
        if (!strchr(v, '=') || v[0] == '=' || m->envc == EXEC_STRINGS_MAX)
            return err_set(e, PALE_BAD_INPUT, "--env %s: write NAME=VALUE", v);
        m->env[m->envc++] = v;
    }
    return 0;
}

#define TURNED_AWAY_TRIES 20
#define TURNED_AWAY_PAUSE_US 100000

/* Runs the session and ends as the command did. door: of the lasting box it runs in, or NULL. */
static int finish(const struct args *a, struct reach *r, struct msg_exec *m, struct door *door)
{
    struct pale_err e;
    struct session s;
    struct msg_result result;
    own_buf out = {0}, err = {0};
    session_init(&s, r, m);
    s.lasts = m->flags & EXEC_LAST;
    s.terminal = (m->flags & EXEC_TTY) && isatty(0) && !a->json;
    s.forward_input = m->flags & EXEC_STDIN;
    buf_init(&out, a->json ? 1u << 30 : 0);
    buf_init(&err, a->json ? 1u << 30 : 0);
    if (a->json) {
        s.out = &out;
        s.err = &err;
    }
    int res = session_run(&s, &result, &e);
    /* A keeper that was just ending has turned us away before anything was done: its successor will not. */
    for (int tries = 0; res < 0 && door && s.turned_away && !s.fed && tries < TURNED_AWAY_TRIES; tries++) {
        reach_close(r);
        reach_init(r);
        if (door->is_far)
            usleep(TURNED_AWAY_PAUSE_US); /* the daemon sees its end in a moment */
        if ((res = door_reach(door, r, true, &e)) == 0)
            res = session_run(&s, &result, &e);
    }
    reach_end(r);
    if (res < 0)
        return cli_fail(a, &e);
    if (a->json)
        return report_json(&result, m, &out, &err);
    report_line(&result, args_has(a, "quiet") || s.terminal);
    return (int)result.status;
}

static int wrong_tty(const struct args *a)
{
    struct pale_err e;
    if (!args_has(a, "tty") || isatty(0))
        return 0;
    err_set(&e, PALE_BAD_INPUT, "-t needs a terminal on our standard input; leave it out, or use -i alone");
    return cli_fail(a, &e);
}

static int run_once(struct args *a, const struct policy *p)
{
    static struct msg_exec m;
    struct pale_err e;
    own_reach r = {.fd = -1};
    reach_init(&r);
    if (make_request(a, a->word + a->command, a->count - a->command, &m, &e) < 0 || reach_once(&r, p, &e) < 0)
        return cli_fail(a, &e);
    boxflags_pass_env(p, &m);
    return finish(a, &r, &m, NULL);
}

/* A named box: made, used, and with --rm taken away again. */
static int run_named(struct args *a, const struct policy *p, const char *name)
{
    static struct msg_exec m;
    static struct door door;
    struct place *place = &door.place;
    struct pale_err e;
    own_reach r = {.fd = -1};
    reach_init(&r);
    struct life_order order = {.name = name, .scope = SCOPE_USER, .policy = p};
    if (make_request(a, a->word + a->command, a->count - a->command, &m, &e) < 0 || life_make(&order, place, &e) < 0)
        return cli_fail(a, &e);
    if (door_reach(&door, &r, true, &e) < 0) {
        life_take_back(place);
        return cli_fail(a, &e);
    }
    boxflags_pass_env(p, &m);
    int status = finish(a, &r, &m, &door);
    if (args_has(a, "rm") && (life_stop(place, STOP_ANY, "local", &e) < 0 || place_remove(place, true, &e) < 0))
        return cli_fail(a, &e);
    return status;
}

/* Elsewhere a box for one command is one that is made and removed. */
static int run_far(struct args *a)
{
    static struct msg_exec m;
    static struct far_lease lease;
    struct pale_err e;
    int status;
    own_reach r = {.fd = -1};
    reach_init(&r);
    lease.is_kept = args_has(a, "name") && !args_has(a, "rm");
    if (make_request(a, a->word + a->command, a->count - a->command, &m, &e) < 0 ||
        far_lease_open(&lease, a, args_get(a, "name"), m.timeout_ms, &e) < 0)
        return cli_fail(a, &e);
    if (door_pass_env(&lease.door, &m, &e) < 0 || door_reach(&lease.door, &r, true, &e) < 0)
        status = cli_fail(a, &e);
    else
        status = finish(a, &r, &m, &lease.door);
    reach_close(&r);
    return far_lease_close(&lease, &e) < 0 ? cli_fail(a, &e) : status;
}

static int run_run(struct args *a)
{
    struct pale_err e;
    own_policy p = {0};
    int wrong = wrong_tty(a);
    if (wrong)
        return wrong;
    if (a->host)
        return run_far(a);
    if (boxflags_policy(a, &p, &e) < 0)
        return cli_fail(a, &e);
    const char *name = args_get(a, "name");
    return name ? run_named(a, &p, name) : run_once(a, &p);
}

static int run_detached(struct args *a, struct reach *r, struct msg_exec *m)
{
    struct pale_err e;
    struct session s;
    struct frame f;
    uint64_t job = 0;
    m->flags |= EXEC_DETACH;
    session_init(&s, r, m);
    if (session_ask(&s, &e) < 0 || reach_receive(r, &f, &e) < 0)
        return cli_fail(a, &e);
    if (f.type != TELL_STARTED || !msg_u64_parse(f.data, f.len, &job)) {
        err_set(&e, PALE_PROTOCOL, "the keeper does not speak our language");
        return cli_fail(a, &e);
    }
    if (a->json)
        printf("{\"job\":%llu}\n", (unsigned long long)job);
    else
        printf("%llu\n", (unsigned long long)job);
    return fflush(stdout) ? 125 : 0;
}

const struct option run_in_options[] = {
    {"user", 'u', "USER", "agent (default), root, or UID[:GID]; on an image root alone", NULL},
    {"timeout", 'T', "TIME", "kill it and all it started after this time (30s)", NULL},
    {"quiet", 'q', NULL, "no summary line at the end", NULL},
    {0},
};

static int run_in_box(struct args *a, const char *box, char **words, int count)
{
    static struct msg_exec m;
    struct pale_err e;
    static struct door door;
    own_reach r = {.fd = -1};
    reach_init(&r);
    int wrong = wrong_tty(a);
    if (wrong)
        return wrong;
    if (door_find(&door, a, box, &e) < 0 || make_request(a, words, count, &m, &e) < 0 || add_env(a, &m, &e) < 0 ||
        door_pass_env(&door, &m, &e) < 0 || door_reach(&door, &r, true, &e) < 0)
        return cli_fail(a, &e);
    return args_has(a, "detach") ? run_detached(a, &r, &m) : finish(a, &r, &m, &door);
}

static int run_exec(struct args *a)
{
    if (a->command >= a->count) {
        struct pale_err e;
        err_set(&e, PALE_BAD_INPUT, "no command: pale exec %s", a->verb->usage);
        return cli_fail(a, &e);
    }
    return run_in_box(a, a->word[0], a->word + a->command, a->count - a->command);
}

/* As if the user had said it; there is room for what a verb adds. */
static void also_given(struct args *a, const char *name, const char *value)
{
    for (const struct option *o = exec_options; o->name; o++)
        if (strcmp(o->name, name) == 0 && a->given_count < ARGS_OPTIONS_MAX + ARGS_OPTIONS_ADDED) {
            a->given[a->given_count].option = o;
            a->given[a->given_count++].value = value;
        }
}

static int run_shell(struct args *a)
{
    static char *words[] = {(char *)"/bin/sh", (char *)"-c",
                            (char *)"if [ -x /bin/bash ]; then exec /bin/bash -l; else exec /bin/sh -l; fi", NULL};
    also_given(a, "tty", "");
    return run_in_box(a, a->word[0], words, 3);
}

int run_in(struct args *a, const char *box, const char *cwd, char **words, int count)
{
    also_given(a, "cwd", cwd);
    also_given(a, isatty(0) ? "tty" : "interactive", "");
    return run_in_box(a, box, words, count);
}

static const struct option *const run_tables[] = {exec_options, run_only, box_options, common_options, NULL};
static const struct option *const exec_tables[] = {exec_options, exec_only, scope_options, common_options, NULL};
static const struct option *const shell_tables[] = {scope_options, common_options, NULL};

const struct verb verb_run = {"run",
                              "Run",
                              "make a box, run one command in it, throw it away",
                              "[FLAGS] [--] COMMAND …",
                              "Makes a fresh box, runs COMMAND in it and removes it again. The box sees the host's programs read-only, an\n"
                              "empty home and nothing else, and has no network. After the command one line on standard error says how it\n"
                              "ended and what it used. The exit status is the command's own; 124 means out of time, 125 trouble of ours,\n"
                              "126 cannot be run, 127 not found, 128+n ended by signal n.",
                              run_tables,
                              1,
                              -1,
                              0,
                              run_run};

const struct verb verb_exec = {
    "exec",
    "Run",
    "run a command in a box",
    "[FLAGS] BOX [--] COMMAND …",
    "Runs COMMAND in a box that exists, starting it if needed. If this process is killed the command and all it\n"
    "started end with it, unless --detach or --keep was given. The exit status is as for run.",
    exec_tables,
    1,
    -1,
    1,
    run_exec};

const struct verb verb_shell = {"shell",
                                "Run",
                                "open a shell in a box",
                                "BOX",
                                "A login shell on a terminal of the box: bash if the box has it, else sh.",
                                shell_tables,
                                1,
                                1,
                                -1,
                                run_shell};

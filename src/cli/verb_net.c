/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb net: what a box does with its network, as it happens, and the rules that would be enough for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/quote.h"
#include "box/cutoff.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/lesson.h"
#include "cli/lookup.h"
#include "cli/shown_net.h"
#include "cli/trail.h"
#include "cli/verbs.h"

#define PAUSE_HERE_US 100000
#define PAUSE_FAR_US 500000
#define SCREEN_HOSTS 20u
#define SCREEN_LINES 10u
#define SCREEN_LINE_BYTES 512u

static const struct option net_options[] = {
    {"all", 0, NULL, "watch: from the beginning of the log on, not from now", NULL},
    {0},
};

static void put_line(const struct netline *l, struct buf *out)
{
    buf_addf(out, "%.12s  %-13s", strlen(l->time) > 11 ? l->time + 11 : "", l->event);
    shown_net_line(l, out);
}

/* --- lines, as they come --- */

static int print_line(const struct args *a, const char *line, size_t n)
{
    struct netline l;
    own_buf b = {0};
    struct jsonread v;
    struct json j;
    if (!netline_parse(line, n, &l))
        return 0;
    buf_init(&b, 1 << 20);
    if (!a->json) {
        put_line(&l, &b);
        printf("%s\n", buf_text(&b));
        return 0;
    }
    /* Written anew: it may come from elsewhere. */
    json_start(&j, &b);
    if (jsonread_parse(line, n, &v))
        far_copy(&j, NULL, &v);
    return cli_json(&b);
}

static int watch_lines(const struct args *a, struct trail *t, struct pale_err *e)
{
    const char *line;
    size_t n;
    for (;;) {
        int r = trail_next(t, &line, &n, e);
        if (r < 0)
            return r;
        if (r == 1 && print_line(a, line, n))
            return err_os(e, "write what happened");
        if (r == 1)
            continue;
        if (fflush(stdout) != 0)
            return err_os(e, "write what happened");
        usleep(t->door.is_far ? PAUSE_FAR_US : PAUSE_HERE_US);
    }
}

/* --- a screen that is painted anew --- */

struct screen {
    char line[SCREEN_LINES][SCREEN_LINE_BYTES]; /* the newest last */
    struct shown_net net;
};

static void add_line(struct screen *s, const struct netline *l)
{
    own_buf b = {0};
    buf_init(&b, 65536);
    put_line(l, &b);
    memmove(s->line[0], s->line[1], sizeof(s->line) - sizeof(s->line[0]));
    snprintf(s->line[SCREEN_LINES - 1], SCREEN_LINE_BYTES, "%s", buf_text(&b));
}

static int ask(struct door *d, struct shown_net *ret, struct pale_err *e)
{
    own_reach r = {.fd = -1};
    reach_init(&r);
    int res = door_reach(d, &r, false, e);
    if (res < 0)
        return res;
    door_hurry(d, &r);
    return shown_net_ask(&r, ret, e);
}

static void paint(const struct args *a, const struct screen *s, bool up)
{
    own_buf sum = {0};
    buf_init(&sum, 4096);
    if (up && s->net.cut)
        buf_addf(&sum, "%sCUT OFF%s by %s; ", cli_colour(1, "red"), cli_colour(1, "reset"), cutoff_name((unsigned)s->net.cut));
    if (up)
        shown_net_sum(&s->net, &sum);
    printf("\033[H\033[2J%sbox %s%s  %s\n\n", cli_colour(1, "bold"), a->word[1], cli_colour(1, "reset"),
           !up                   ? "is not running"
           : !s->net.has_network ? "has no network"
                                 : buf_text(&sum));
    if (up)
        shown_net_table(&s->net, SCREEN_HOSTS);
    printf("\n");
    for (size_t i = 0; i < SCREEN_LINES; i++)
        if (s->line[i][0])
            printf("%s\n", s->line[i]);
}

static int watch_screen(const struct args *a, struct trail *t, struct pale_err *e)
{
    static struct screen s;
    struct netline l;
    const char *line;
    size_t n;
    for (;;) {
        int r;
        while ((r = trail_next(t, &line, &n, e)) == 1)
            if (netline_parse(line, n, &l))
                add_line(&s, &l);
        if (r < 0)
            return r;
        r = ask(&t->door, &s.net, e);
        if (r < 0 && r != -PALE_NOT_FOUND && r != -PALE_GONE)
            return r;
        paint(a, &s, r == 0);
        if (fflush(stdout) != 0)
            return err_os(e, "write what happened");
        usleep(1000000);
    }
}

static int watch(struct args *a)
{
    struct pale_err e;
    static struct trail t;
    int r = trail_open(&t, a, a->word[1], &e);
    if (r == 0 && !args_has(a, "all"))
        r = trail_skip(&t, &e);
    if (r == 0)
        r = !a->json && isatty(1) ? watch_screen(a, &t, &e) : watch_lines(a, &t, &e);
    trail_close(&t);
    return r < 0 ? cli_fail(a, &e) : 0;
}

/* --- learn --- */

static int read_all(struct trail *t, struct lesson *l, struct pale_err *e)
{
    static struct shown_net net;
    struct netline line;
    const char *text;
    size_t n;
    int r;
    while ((r = trail_next(t, &text, &n, e)) == 1)
        if (netline_parse(text, n, &line))
            lesson_take(l, &line);
    if (r < 0)
        return r;
    r = ask(&t->door, &net, e);
    for (size_t i = 0; r == 0 && i < net.count; i++)
        lesson_take_meter(l, net.host[i].name, net.host[i].port, net.host[i].connections, net.host[i].refused);
    return r == -PALE_NOT_FOUND || r == -PALE_GONE ? 0 : r;
}

static int learn(struct args *a)
{
    struct pale_err e;
    static struct trail t;
    own_mem struct lesson *l = calloc(1, sizeof(*l));
    own_buf b = {0};
    int r = l ? trail_open(&t, a, a->word[1], &e) : err_nomem(&e);
    if (r == 0)
        r = read_all(&t, l, &e);
    trail_close(&t);
    if (r < 0)
        return cli_fail(a, &e);
    lesson_settle(l);
    buf_init(&b, 4 << 20);
    if (a->json) {
        struct json j;
        json_start(&j, &b);
        lesson_json(l, &j);
        return cli_json(&b);
    }
    lesson_yaml(l, a->word[1], &b);
    fputs(buf_text(&b), stdout);
    return 0;
}

static int run_net(struct args *a)
{
    struct pale_err e;
    if (strcmp(a->word[0], "watch") == 0)
        return watch(a);
    if (strcmp(a->word[0], "learn") == 0)
        return learn(a);
    err_set(&e, PALE_BAD_INPUT, "pale net %s", a->verb->usage);
    return cli_fail(a, &e);
}

static const struct option *const tables[] = {net_options, scope_options, common_options, NULL};

const struct verb verb_net = {
    "net",
    "Network",
    "watch the network of a box, learn its rules",
    "watch [--all] BOX | learn BOX",
    "watch shows connections, refusals and bytes by host: on a terminal a table that is painted every second, else a\n"
    "line for each thing that happens; with --json the record of each. learn prints the narrowest rules for what the\n"
    "box was seen to reach or to be refused, from its log, as a part of a policy file, and what it leaves out and why.",
    tables,
    2,
    2,
    -1,
    run_net};

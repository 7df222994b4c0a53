/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb audit: showing, following and verifying a box's log. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/quote.h"
#include "box/audit.h"
#include "box/checkpoint.h"
#include "box/kept_log.h"
#include "box/life.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "cli/shown_net.h"
#include "cli/verbs.h"

static const struct option audit_options[] = {
    {"verify", 0, NULL, "recompute the chain of digests", NULL},
    {"follow", 'f', NULL, "go on as records come", NULL},
    {"runs", 0, NULL, "the log of one-shot runs instead of a box's", NULL},
    {"removed", 0, NULL, "list the boxes that were removed and whose logs are still here", NULL},
    {0},
};

/* A box, or by its id one that was removed. */
static int find_log(struct args *a, struct place *ret, struct pale_err *e)
{
    int r = lookup_box(a, a->word[0], ret, e);
    return r == -PALE_NOT_FOUND && kept_log_find(a->word[0], ret, NULL) == 0 ? 0 : r;
}

static void list_removed(void *arg, const struct kept_log *k)
{
    struct listing *l = arg;
    char time[32] = "";
    time_t t = (time_t)(k->removed_unix_ms / 1000);
    struct tm tm;
    if (gmtime_r(&t, &tm))
        strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (l->is_json) {
        json_begin_object(&l->json, NULL);
        json_text(&l->json, "id", k->id);
        json_text(&l->json, "name", k->name);
        json_text(&l->json, "removed", time);
        json_end_object(&l->json);
        return;
    }
    table_cell(&l->table, k->id);
    table_cell(&l->table, k->name);
    table_cell(&l->table, time);
}

static int run_removed(struct args *a)
{
    static const char *const heads[] = {"ID", "NAME", "REMOVED"};
    struct pale_err e;
    own_listing l = {0};
    listing_init(&l, a, heads, 3);
    return kept_log_each(list_removed, &l, &e) < 0 ? cli_fail(a, &e) : listing_print(&l);
}

static int log_path(struct args *a, char *ret, size_t cap, struct pale_err *e)
{
    struct place p;
    int r;
    if (args_has(a, "runs")) {
        char dir[PATH_BYTES_MAX];
        if ((r = place_state_dir(dir, sizeof(dir), e)) == 0)
            snprintf(ret, cap, "%s/runs.audit", dir);
        return r;
    }
    if (a->count < 1)
        return err_set(e, PALE_BAD_INPUT, "which box? pale audit %s", a->verb->usage);
    if ((r = find_log(a, &p, e)) == 0)
        snprintf(ret, cap, "%s/audit", p.state);
    return r;
}

/* checkpoint: the record that one vouches for; 0 if none does. */
static int tell_check(struct args *a, const struct audit_check *check, uint64_t checkpoint)
{
    const struct audit_check c = *check;
    if (a->json) {
        own_buf b = {0};
        struct json j;
        buf_init(&b, 8192);
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_bool(&j, "good", c.good);
        json_u64(&j, "records", c.records);
        json_u64(&j, "torn", c.torn);
        json_u64(&j, "gaps", c.gaps);
        json_u64(&j, "missing", c.missing);
        json_text(&j, "head", c.head);
        json_u64(&j, "checkpoint", checkpoint);
        if (!c.good) {
            json_u64(&j, "line", c.bad_line);
            json_text(&j, "problem", c.problem);
        }
        json_end_object(&j);
        int failed = cli_json(&b);
        return failed ? failed : c.good ? 0 : 1;
    }
    if (c.good)
        printf("good: %llu records, head %s\n", (unsigned long long)c.records, c.head);
    else if (c.bad_line)
        printf("BAD at line %llu: %s\n", (unsigned long long)c.bad_line, c.problem);
    else
        printf("BAD: %s\n", c.problem);
    return c.good ? 0 : 1;
}

static int verify(struct args *a, const char *path)
{
    struct audit_check c;
    struct audit_anchor anchor = {0};
    struct place p = {0};
    struct pale_err e;
    if (!args_has(a, "runs") && (find_log(a, &p, &e) < 0 || checkpoint_find(life_born(&p), &anchor, &e) < 0))
        return cli_fail(a, &e);
    if (audit_verify(path, anchor.seq ? &anchor : NULL, p.id[0] ? p.id : NULL, &c, &e) < 0)
        return cli_fail(a, &e);
    return tell_check(a, &c, anchor.seq);
}

/* A log that was fetched. */
static int verify_text(struct args *a, const char *text, size_t n, const char *head)
{
    struct audit_check c;
    audit_verify_text(text, n, head, &c);
    return tell_check(a, &c, 0);
}

/* JSON escapes keep every control byte out of what is printed here. */
static void show_net(const struct netline *l)
{
    own_buf b = {0};
    buf_init(&b, 16384);
    shown_net_line(l, &b);
    printf("%.23sZ  %-14s%s\n", l->time, l->event, buf_text(&b));
}

static void show(const char *line)
{
    struct netline net;
    if (netline_parse(line, strlen(line), &net))
        return show_net(&net);
    char time[40], event[40], job[24], what[256], status[24], answer[16], scope[16], reason[200], held[200];
    cli_field(line, "time", time, sizeof(time));
    cli_field(line, "event", event, sizeof(event));
    cli_field(line, "job", job, sizeof(job));
    cli_field(line, "argv", what, sizeof(what));
    static const char *const others[] = {"request", "what", "image", "changes", "host"};
    for (size_t i = 0; !what[0] && i < sizeof(others) / sizeof(others[0]); i++)
        cli_field(line, others[i], what, sizeof(what));
    cli_field(line, "status", status, sizeof(status));
    cli_field(line, "answer", answer, sizeof(answer));
    cli_field(line, "scope", scope, sizeof(scope));
    cli_field(line, "reason", reason, sizeof(reason));
    cli_field(line, "env_held_back", held, sizeof(held));
    if (!reason[0])
        cli_field(line, "cut", reason, sizeof(reason));
    own_buf b = {0};
    buf_init(&b, 4096);
    buf_addf(&b, "%.23sZ  %-14s", time, event);
    if (job[0])
        buf_addf(&b, " job %s", job);
    if (status[0])
        buf_addf(&b, " exit %s", status);
    if (what[0])
        buf_addf(&b, " %s", what);
    if (answer[0])
        buf_addf(&b, ": %s, %s", answer, scope);
    if (held[0])
        buf_addf(&b, " held back %s", held);
    if (reason[0])
        buf_addf(&b, " (%s)", reason);
    own_buf safe = {0};
    buf_init(&safe, 8192);
    quote_text(&safe, b.data, b.len, 4000);
    printf("%s\n", buf_text(&safe));
}

static int run_audit(struct args *a)
{
    struct pale_err e;
    char path[PATH_BYTES_MAX + 16];
    if (args_has(a, "removed"))
        return door_only_here(a, "--removed", "the logs are in this host's state folder", &e) < 0 ? cli_fail(a, &e) : run_removed(a);
    if (a->host)
        return far_audit(a, verify_text, show);
    if (log_path(a, path, sizeof(path), &e) < 0)
        return cli_fail(a, &e);
    if (args_has(a, "verify"))
        return verify(a, path);
    FILE *f = fopen(path, "re");
    if (!f) {
        if (errno == ENOENT)
            return 0; /* nothing was done yet */
        err_os(&e, "open %s", path);
        return cli_fail(a, &e);
    }
    char *line = NULL;
    size_t cap = 0;
    for (;;) {
        ssize_t n = getline(&line, &cap, f);
        if (n > 0 && a->json)
            fwrite(line, 1, (size_t)n, stdout);
        else if (n > 0)
            show(line);
        if (n > 0)
            continue;
        if (fflush(stdout) != 0 || !args_has(a, "follow"))
            break;
        clearerr(f);
        usleep(100000);
    }
    free(line);
    fclose(f);
    return 0;
}

static const struct option *const tables[] = {audit_options, scope_options, common_options, NULL};

const struct verb verb_audit = {"audit",
                                "Trust",
                                "show or verify what was done",
                                "[--verify|--follow] BOX|ID | --runs | --removed",
                                "Every deed and every refusal, written before it took effect, each record carrying the digest of the one\n"
                                "before. --json prints the records as they are. --verify finds changed, missing or reordered records.\n"
                                "The log of a box that was removed stays for 30 days and is read by its ID.",
                                tables,
                                0,
                                1,
                                -1,
                                run_audit};

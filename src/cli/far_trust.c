/* SPDX-License-Identifier: Apache-2.0 */
/* Owns audit and doctor where a daemon elsewhere tells. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/quote.h"
#include "cli/door.h"
#include "cli/far.h"

#define FOLLOW_PAUSE_US 500000

/* --- audit --- */

int far_log(struct door *d, uint64_t *offset, struct buf *ret, struct pale_err *e)
{
    char path[BOX_NAME_MAX + 80];
    uint64_t next = 0;
    size_t had = ret->len;
    snprintf(path, sizeof(path), "/v1/boxes/%s/audit?offset=%llu", d->name, (unsigned long long)*offset);
    int r = remote_call(&d->remote, "GET", path, NULL, ret, e);
    if (r < 0)
        return r;
    if (!number_u64(d->remote.next_offset, UINT64_MAX, &next) || next != *offset + (ret->len - had))
        return err_set(e, PALE_PROTOCOL, "the daemon's answer does not say where the log goes on");
    *offset = next;
    return 0;
}

/* As we write JSON: nothing in it changes how it is shown. */
static bool is_plain(const char *line, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned point;
        size_t step = quote_utf8((const unsigned char *)line + i, n - i, &point);
        if (step == 0 || quote_is_deceptive(point))
            return false;
        i += step;
    }
    return true;
}

/* A record is printed as it is, for its digest to be right; what is no JSON is made harmless. */
static void print_line(const struct args *a, char *line, size_t n, void (*show)(const char *line))
{
    struct jsonread v;
    bool good = jsonread_parse(line, n, &v) && is_plain(line, n);
    if (good && a->json) {
        fwrite(line, 1, n, stdout);
        putchar('\n');
        return;
    }
    line[n] = 0;
    if (good)
        return show(line);
    own_buf safe = {0};
    buf_init(&safe, 8192);
    quote_text(&safe, line, n, 4000);
    printf("%s\n", buf_text(&safe));
}

static void print_lines(const struct args *a, struct buf *text, void (*show)(const char *line))
{
    char *at = (char *)text->data, *end;
    size_t left = text->len;
    while (left > 0 && (end = memchr(at, '\n', left))) {
        size_t n = (size_t)(end - at);
        print_line(a, at, n, show);
        at = end + 1;
        left -= n + 1;
    }
    buf_clear(text);
}

static int follow(struct args *a, struct door *d, void (*show)(const char *line), struct pale_err *e)
{
    own_buf text = {0};
    uint64_t offset = 0;
    buf_init(&text, REMOTE_ANSWER_MAX);
    for (;;) {
        uint64_t before = offset;
        int r = far_log(d, &offset, &text, e);
        if (r < 0)
            return r == -PALE_NOT_FOUND && strstr(e->text, "none yet") ? 0 : r;
        print_lines(a, &text, show);
        if (offset != before)
            continue;
        if (fflush(stdout) != 0 || !args_has(a, "follow"))
            return 0;
        usleep(FOLLOW_PAUSE_US);
    }
}

static int verify(struct args *a, struct door *d, int (*verdict)(struct args *, const char *, size_t, const char *), int *ret_status,
                  struct pale_err *e)
{
    own_buf text = {0};
    char head[sizeof(d->remote.audit_head)] = "";
    uint64_t offset = 0, before;
    buf_init(&text, REMOTE_ANSWER_MAX);
    do {
        before = offset;
        int r = far_log(d, &offset, &text, e);
        if (r < 0)
            return r;
        /* The first answer's: what is told later is of records that came while we read. */
        if (!before)
            memcpy(head, d->remote.audit_head, sizeof(head));
    } while (offset != before && !text.failed);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the log is longer than %u MiB; verify it on its own host", REMOTE_ANSWER_MAX >> 20);
    *ret_status = verdict(a, (const char *)text.data, text.len, head);
    return 0;
}

int far_audit(struct args *a, int (*verdict)(struct args *a, const char *text, size_t n, const char *head), void (*show)(const char *line))
{
    struct pale_err e;
    static struct door d;
    int status = 0, r = 0;
    if (args_has(a, "runs"))
        r = door_only_here(a, "audit --runs", "what runs once there is a box with a log of its own, and goes with it", &e);
    else if (a->count < 1)
        r = err_set(&e, PALE_BAD_INPUT, "which box? pale audit %s", a->verb->usage);
    if (r == 0 && (r = door_find(&d, a, a->word[0], &e)) == 0)
        r = args_has(a, "verify") ? verify(a, &d, verdict, &status, &e) : follow(a, &d, show, &e);
    door_close(&d);
    return r < 0 ? cli_fail(a, &e) : status;
}

/* --- doctor --- */

static void tell_mechanism(const struct jsonread *m)
{
    static const struct {
        const char *state, *colour;
    } rows[] = {{"ok", "green"}, {"degraded", "yellow"}, {"missing", "red"}};
    char state[FAR_TEXT], name[FAR_TEXT], detail[FAR_TEXT], remedy[FAR_TEXT], word[32];
    const char *colour = "dim";
    struct jsonread claims, item;
    far_text(m, "state", state, sizeof(state));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].state, state) == 0)
            colour = rows[i].colour;
    printf("  %s%-8s%s  %-44s  %s\n", cli_colour(1, colour), state, cli_colour(1, "reset"), far_text(m, "name", name, sizeof(name)),
           far_text(m, "detail", detail, sizeof(detail)));
    if (strcmp(state, "ok") == 0)
        return;
    if (jsonread_get(m, "claims", &claims) && claims.kind == JSONREAD_LIST && claims.len > 2) {
        printf("            without it:");
        for (size_t pos = 0; jsonread_next(&claims, &pos, NULL, &item);) {
            char shown[64];
            jsonread_text(&item, word, sizeof(word));
            printf(" %s", quote_into(shown, sizeof(shown), word, strlen(word)));
        }
        printf("\n");
    }
    if (far_text(m, "remedy", remedy, sizeof(remedy))[0])
        printf("            remedy: %s\n", remedy);
}

static void tell_doctor(const struct jsonread *v, bool startable)
{
    struct jsonread rows, m;
    char group[FAR_TEXT] = "", next[FAR_TEXT];
    if (jsonread_get(v, "mechanisms", &rows) && rows.kind == JSONREAD_LIST)
        for (size_t pos = 0; jsonread_next(&rows, &pos, NULL, &m);) {
            if (strcmp(group, far_text(&m, "group", next, sizeof(next))) != 0)
                printf("%s%s%s%s\n", group[0] ? "\n" : "", cli_colour(1, "bold"), next, cli_colour(1, "reset"));
            memcpy(group, next, sizeof(group));
            tell_mechanism(&m);
        }
    printf("\n%s\n", startable ? "Boxes can start there." : "Boxes cannot start there.");
}

int far_doctor(struct args *a)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    own_buf text = {0}, b = {0};
    struct jsonread v, m;
    struct json j;
    remote_init(&r);
    buf_init(&text, FAR_ANSWER_MAX);
    buf_init(&b, FAR_ANSWER_MAX);
    if (remote_open(&r, a->host, false, &e) < 0 || remote_ask(&r, "GET", "/v1/doctor", NULL, &text, &v, &e) < 0)
        return cli_fail(a, &e);
    bool startable = jsonread_get(&v, "boxes_can_start", &m) && m.kind == JSONREAD_TRUE;
    if (a->json) {
        json_start(&j, &b);
        far_copy(&j, NULL, &v);
        int failed = cli_json(&b);
        return failed ? failed : startable ? 0 : 1;
    }
    tell_doctor(&v, startable);
    return fflush(stdout) ? 125 : startable ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns chores. */
#include "cli/chore.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "wire/fileline.h"

int chore_open(struct chore *q, struct args *a, const char *box, struct pale_err *e)
{
    reach_init(&q->reach);
    int r = door_find(&q->door, a, box, e);
    if (r == 0)
        r = door_reach(&q->door, &q->reach, true, e);
    door_close(&q->door);
    return r;
}

void chore_set(struct chore *q, const char *const *words)
{
    size_t at = 0;
    q->exec = (struct msg_exec){.flags = EXEC_BUILTIN, .user = "", .cwd = "", .label = q->label};
    for (; *words; words++) {
        q->exec.argv[q->exec.argc++] = *words;
        int n = snprintf(q->label + at, sizeof(q->label) - at, "%s%.220s", at ? " " : "", *words);
        at = at + (size_t)n < sizeof(q->label) ? at + (size_t)n : sizeof(q->label) - 1;
    }
    session_init(&q->session, &q->reach, &q->exec);
}

/* What the chore said on its standard error, in a form that is safe to print; what kind of failure it was, by its status. */
static int judge(const struct msg_result *r, const struct buf *complaint, struct pale_err *e)
{
    char shown[600];
    size_t n = complaint->len;
    while (n > 0 && complaint->data[n - 1] == '\n')
        n--;
    if (r->status != 0 && n == 0)
        return err_set(e, PALE_OS, "%s", r->message[0] ? r->message : "the request failed in the box");
    if (n == 0)
        return 0;
    quote_into(shown, sizeof(shown), complaint->data, n);
    if (r->status != 0)
        return err_set(e, file_status_code(r->status), "in the box: %s", shown);
    cli_note("in the box: %s", shown);
    return 0;
}

int chore_run(struct chore *q, struct pale_err *e)
{
    struct msg_result r = {0};
    own_buf complaint = {0};
    buf_init(&complaint, 4096);
    q->session.err = &complaint;
    int res = session_run(&q->session, &r, e);
    reach_end(&q->reach); /* of a box for this chore alone */
    reach_close(&q->reach);
    q->signal = (int)(r.signal & 127);
    if (res < 0)
        return res;
    if (r.flags & RESULT_TRUNCATED)
        return err_set(e, PALE_LIMIT, "the box's output limit cut the answer");
    return judge(&r, &complaint, e);
}

int chore_do(struct chore *q, struct args *a, const char *box, const char *const *words, struct pale_err *e)
{
    int r = chore_open(q, a, box, e);
    if (r < 0)
        return r;
    chore_set(q, words);
    return chore_run(q, e);
}

bool chore_is_folder(struct chore *q, struct args *a, const char *box, const char *path)
{
    struct pale_err e;
    struct file_entry en;
    size_t used;
    own_buf out = {0};
    buf_init(&out, FILE_ENTRY_MAX);
    if (chore_open(q, a, box, &e) < 0)
        return false;
    chore_set(q, (const char *const[]){"stat", path, "follow", NULL});
    q->session.out = &out;
    return chore_run(q, &e) == 0 && !out.failed && file_entry_parse(out.data, out.len, &en, &used) == 1 && en.type == 'd';
}

const char *chore_last_name(const char *path)
{
    static char name[PATH_BYTES_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t start = n;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(name, sizeof(name), "%.*s", (int)(n - start), path + start);
    return name;
}

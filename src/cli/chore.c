/* SPDX-License-Identifier: Apache-2.0 */
/* Owns chores. */
#include "cli/chore.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "cli/lookup.h"

int chore_open(struct chore *q, struct args *a, const char *box, struct pale_err *e)
{
    struct place p;
    reach_init(&q->reach);
    int r = lookup_box(a, box, &p, e);
    return r < 0 ? r : reach_box(&q->reach, &p, true, e);
}

void chore_set(struct chore *q, const char *name, const char *path, const char *third)
{
    snprintf(q->label, sizeof(q->label), "%s %.400s", name, path);
    q->exec = (struct msg_exec){.flags = EXEC_BUILTIN, .user = "", .cwd = "", .label = q->label, .argc = 2};
    q->exec.argv[0] = name;
    q->exec.argv[1] = path;
    if (third)
        q->exec.argv[q->exec.argc++] = third;
    session_init(&q->session, &q->reach, &q->exec);
}

/* What the chore said on its standard error, in a form that is safe to print. */
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
        return err_set(e, strstr(shown, "No such file") ? PALE_NOT_FOUND : PALE_OS, "in the box: %s", shown);
    cli_note("in the box: %s", shown);
    return 0;
}

int chore_run(struct chore *q, struct pale_err *e)
{
    struct msg_result r;
    own_buf complaint = {0};
    buf_init(&complaint, 4096);
    q->session.err = &complaint;
    int res = session_run(&q->session, &r, e);
    reach_close(&q->reach);
    if (res < 0)
        return res;
    if (r.flags & RESULT_TRUNCATED)
        return err_set(e, PALE_LIMIT, "the box's output limit cut the answer");
    return judge(&r, &complaint, e);
}

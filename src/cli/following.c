/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the following of what a daemon makes. */
#include "cli/following.h"

#include <string.h>

#include "cli/far.h"

#define LINE_MAX_BYTES 262144u

static int take_line(struct following *f, struct pale_err *e)
{
    struct jsonread v, m;
    char event[16] = "", text[FAR_TEXT];
    if (!jsonread_parse((const char *)f->line.data, f->line.len, &v) || !jsonread_get(&v, "event", &m))
        return err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
    jsonread_text(&m, event, sizeof(event));
    if (strcmp(event, "failed") == 0)
        return err_set(e, err_code_of(far_text(&v, "code", event, sizeof(event))), "%s", far_text(&v, "detail", text, sizeof(text)));
    if (strcmp(event, "note") == 0 && (!f->args->json || args_has(f->args, "progress")))
        cli_note("%s", far_text(&v, "text", text, sizeof(text)));
    if (strcmp(event, f->last) == 0) {
        f->is_over = true;
        f->status = f->show(f->args, &v);
    }
    return 0;
}

static int take(void *arg, const void *p, size_t n, struct pale_err *e)
{
    struct following *f = arg;
    int r = 0;
    for (const char *at = p, *end = at + n; r == 0 && at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        buf_add(&f->line, at, (size_t)((line ? line : end) - at));
        if (f->line.failed)
            return err_set(e, PALE_PROTOCOL, "the daemon's answer cannot be read");
        if (line)
            r = take_line(f, e);
        if (line)
            buf_clear(&f->line);
        at = line ? line + 1 : end;
    }
    return r;
}

int following_run(struct following *f, struct remote *r, const struct remote_order *o, struct pale_err *e)
{
    buf_init(&f->line, LINE_MAX_BYTES);
    int res = remote_follow(r, o, take, f, e);
    if (res == 0 && !f->is_over)
        res = err_set(e, PALE_GONE, "%s", f->missing);
    buf_done(&f->line);
    return res;
}

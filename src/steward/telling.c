/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of JSON by deeds. */
#include "steward/telling.h"

#include <stdlib.h>

#include "base/limits.h"

void telling_done(struct telling *t)
{
    buf_done(&t->text);
    free(t->out);
}

int telling_begin(struct telling *t, int fd, struct pale_err *e)
{
    *t = (struct telling){.out = outlet_new(fd), .e = e};
    buf_init(&t->text, 2 * IMAGE_JSON_MAX); /* the longest piece is all about an image */
    json_start(&t->json, &t->text);
    return t->out ? 0 : err_nomem(e);
}

int telling_pass(struct telling *t)
{
    if (t->text.failed)
        return err_nomem(t->e);
    int r = outlet_add(t->out, t->text.data, t->text.len, t->e);
    t->text.len = 0;
    return r;
}

int telling_end(struct telling *t)
{
    buf_add_text(&t->text, "\n");
    int r = telling_pass(t);
    return r < 0 ? r : outlet_flush(t->out, t->e);
}

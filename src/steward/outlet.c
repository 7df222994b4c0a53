/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parts of what a deed tells. */
#include "steward/outlet.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "wire/message.h"

struct outlet *outlet_new(int fd)
{
    struct outlet *o = malloc(sizeof(*o));
    (void)signal(SIGPIPE, SIG_IGN);
    if (o)
        *o = (struct outlet){.fd = fd};
    return o;
}

int outlet_flush(struct outlet *o, struct pale_err *e)
{
    size_t n = o->len;
    o->len = 0;
    if (n == 0)
        return 0;
    frame_put_head(o->mem, DEED_PART, 0, (uint32_t)n);
    return fd_write_full(o->fd, o->mem, FRAME_HEAD + n) ? 0 : err_set(e, PALE_GONE, "nobody takes what is told");
}

int outlet_add(void *arg, const void *p, size_t n, struct pale_err *e)
{
    struct outlet *o = arg;
    int r = 0;
    o->told += n;
    for (const uint8_t *at = p; r == 0 && n > 0;) {
        size_t room = FRAME_DATA_MAX - o->len, part = n < room ? n : room;
        memcpy(o->mem + FRAME_HEAD + o->len, at, part);
        o->len += part;
        at += part;
        n -= part;
        if (o->len == FRAME_DATA_MAX)
            r = outlet_flush(o, e);
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of commissions. */
#include "cli/commission.h"

#include <stdlib.h>

#include "base/fd.h"
#include "base/limits.h"
#include "wire/frame.h"

int commission_read(struct commission *c, struct pale_err *e)
{
    *c = (struct commission){.is_given = getenv(DEED_ORDER_VARIABLE) != NULL};
    if (!c->is_given)
        return 0;
    (void)unsetenv(DEED_ORDER_VARIABLE); /* for us, and not for those we start */
    own_fd fd = DEED_ORDER_FD;
    buf_init(&c->text, FRAME_PAYLOAD_MAX);
    int r = fd_read_all(fd, &c->text, e);
    if (r == 0 && !msg_deed_parse(c->text.data, c->text.len, &c->order))
        r = err_set(e, PALE_PROTOCOL, "it has no such form");
    return r < 0 ? err_prefix(e, DEED_ORDER_VARIABLE " is set, which pale-steward does, and descriptor %d holds no order", DEED_ORDER_FD)
                 : 0;
}

void commission_done(struct commission *c)
{
    buf_done(&c->text);
}

const char *commission_caller(const struct commission *c)
{
    return c->is_given ? c->order.caller : "local";
}

const char *commission_tenant(const struct commission *c)
{
    return c->is_given ? c->order.tenant : "";
}

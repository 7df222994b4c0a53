/* SPDX-License-Identifier: Apache-2.0 */
/* Owns quarantine and panic where a daemon elsewhere does them. */
#include <stdio.h>

#include "base/limits.h"
#include "cli/far.h"

static int cut_one(struct remote *r, const char *box, struct pale_err *e)
{
    return far_act(r, "PUT", box, "quarantine", e);
}

static int lift_one(struct remote *r, const char *box, struct pale_err *e)
{
    return far_act(r, "DELETE", box, "quarantine", e);
}

int far_quarantine(struct args *a, bool on)
{
    return far_each(a, on ? cut_one : lift_one, on ? "quarantined" : "lifted", false);
}

int far_panic(struct args *a, bool on)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    own_buf text = {0};
    struct jsonread v;
    remote_init(&r);
    buf_init(&text, 65536);
    if (remote_open(&r, a->host, false, &e) < 0 || remote_ask(&r, on ? "PUT" : "DELETE", "/v1/panic", NULL, &text, &v, &e) < 0)
        return cli_fail(a, &e);
    const struct control_counts n = {far_number(&v, "live"), far_number(&v, "stopped"), far_number(&v, "once"), far_number(&v, "failed")};
    control_tell(a, on, &n);
    return n.failed ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way to a box. */
#include "cli/door.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/path.h"
#include "base/quote.h"
#include "box/life.h"
#include "cli/boxflags.h"
#include "cli/far.h"
#include "cli/lookup.h"

void door_close(struct door *d)
{
    if (d->is_far)
        remote_close(&d->remote);
}

int door_find(struct door *d, const struct args *a, const char *name, struct pale_err *e)
{
    char shown[80];
    d->args = a;
    d->is_far = a->host != NULL;
    if (!d->is_far)
        return lookup_box(a, name, &d->place, e);
    remote_init(&d->remote);
    /* It becomes part of a path. An id is such a name too. */
    if (!path_is_box_name(name))
        return err_set(e, PALE_BAD_INPUT, "%s: a box's name is 1 to %d of a-z, 0-9 and '-'",
                       quote_into(shown, sizeof(shown), name, strlen(name)), BOX_NAME_MAX);
    snprintf(d->name, sizeof(d->name), "%s", name);
    return remote_open(&d->remote, a->host, false, e);
}

int door_reach(struct door *d, struct reach *r, bool start, struct pale_err *e)
{
    if (!d->is_far)
        return reach_box(r, &d->place, start, e);
    char path[BOX_NAME_MAX + 40];
    snprintf(path, sizeof(path), "/v1/boxes/%s/wire%s", d->name, start ? "" : "?start=false");
    int res = remote_pass(&d->remote, path, e);
    if (res < 0)
        return res;
    /* The connection is the keeper's now; the next question to the daemon goes over a new one. */
    r->fd = take_fd(&d->remote.fd);
    buf_add(&r->in, d->remote.in.data, d->remote.in.len);
    buf_clear(&d->remote.in);
    return r->in.failed ? err_nomem(e) : 0;
}

void door_hurry(const struct door *d, struct reach *r)
{
    if (!d->is_far)
        return;
    struct timeval t = {.tv_sec = (time_t)(d->remote.wait_ms / 1000), .tv_usec = (suseconds_t)(d->remote.wait_ms % 1000 * 1000)};
    (void)setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

int door_policy(struct door *d, struct policy *ret, struct pale_err *e)
{
    return d->is_far ? far_policy(&d->remote, d->name, ret, NULL, e) : life_policy(&d->place, ret, e);
}

/* Only a policy that lets variables pass is worth reading here. */
static int passes_any(const struct door *d, bool *ret, struct pale_err *e)
{
    *ret = true;
    int r = d->is_far ? 0 : life_has_line(&d->place, "env.pass ", ret, e);
    return r < 0 || *ret ? r : life_has_line(&d->place, "env.allow ", ret, e);
}

int door_pass_env(struct door *d, struct msg_exec *m, struct pale_err *e)
{
    own_policy p = {0};
    bool any = false;
    int r = passes_any(d, &any, e);
    if (r < 0 || !any)
        return r;
    r = door_policy(d, &p, e);
    /* Who may not read it cannot know what passes: nothing does. */
    if (r == -PALE_DENIED && d->is_far)
        return 0;
    if (r == 0)
        boxflags_pass_env(&p, m);
    return r;
}

int door_only_here(const struct args *a, const char *what, const char *why, struct pale_err *e)
{
    if (!a->host)
        return 0;
    return err_set(e, PALE_UNSUPPORTED, "%s works on this host alone, not through --host or PALE_HOST: %s", what, why);
}

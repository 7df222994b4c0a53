/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what changes under a box that runs: rules of its network, and whether it is cut off.
 *
 * How it works: who may change it writes it into the state folder (box/amend.h, box/cutoff.h) and has us look there. Whoever asks us brings
 * nothing: he may be anybody who may speak to the box. What has changed is written to the audit, and then holds, for connections that are
 * open as well. That the box is cut off holds even if it cannot be written down; that it is no longer, not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/amend.h"
#include "box/cutoff.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"

int reload_init(struct keeper *k, struct pale_err *e)
{
    k->wayout.cut = cutoff_of(k->state_dir, k->user_dir);
    if (k->wayout.cut && k->policy.network == NETWORK_HOST && !is_weak(k->weaken, WEAKEN_GATE_CUT))
        return err_set(e, PALE_DENIED, "box %s has the host's own network and is cut off (%s): it can only start again when that is lifted",
                       k->name, cutoff_name(k->wayout.cut));
    return 0;
}

bool reload_is_now(const struct keeper *k)
{
    return is_weak(k->weaken, WEAKEN_GATE_CUT) || cutoff_of(k->state_dir, k->user_dir) == k->wayout.cut;
}

static int record_cut(struct keeper *k, unsigned now, struct pale_err *e)
{
    unsigned was = k->wayout.cut, more = now & ~was, less = was & ~now;
    struct json *j = audit_begin(&k->audit, more ? "net.cut" : "net.lift");
    json_text(j, "by", cutoff_name(more ? more : less));
    if (!more && now)
        json_text(j, "still", cutoff_name(now));
    return audit_commit(&k->audit, e);
}

static int take_cut(struct keeper *k, struct pale_err *e)
{
    unsigned now = cutoff_of(k->state_dir, k->user_dir);
    if (now == k->wayout.cut)
        return 0;
    int written = record_cut(k, now, e);
    if (written < 0 && !now)
        return written;
    k->wayout.cut = now;
    int r = now && k->policy.network == NETWORK_HOST
                ? err_set(e, PALE_UNSUPPORTED,
                          "box %s has the host's own network, which cannot be taken from it while it runs: `pale stop %s`. It does not "
                          "start again until it is no longer cut off",
                          k->name, k->name)
                : wayout_cut(k, e);
    client_announce_state(k);
    return written < 0 ? written : r;
}

/* What waits in the state folder; PALE_NOT_FOUND if nothing does. */
static int read_next(struct keeper *k, int dir, struct policy *ret, struct pale_err *e)
{
    own_buf text = {0};
    own_fd fd = openat(dir, AMEND_NEXT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -PALE_NOT_FOUND : err_os(e, "open %s/" AMEND_NEXT, k->state_dir);
    buf_init(&text, POLICY_TEXT_MAX);
    int r = fd_read_all(fd, &text, e);
    if (r == 0)
        r = policy_parse(buf_text(&text), text.len, ret, e);
    return r == 0 ? policy_held(ret, e) : r;
}

/* Only what holds at once: with the rest the box would be another after its next start than it says it is. */
static int adopt(struct keeper *k, int dir, struct policy *next, struct pale_err *e)
{
    const char *key = policy_needs_start(&k->policy, next, k->wayout.source.fd >= 0);
    if (key)
        return err_set(
            e, PALE_CONFLICT,
            "box %s runs, and %s changes between two starts: `pale stop %s` first. Rules of a network that it has change at any time",
            k->name, key, k->name);
    struct json *j = audit_begin(&k->audit, amend_event(&k->policy, next));
    amend_describe(j, &k->policy, next);
    int r = audit_commit(&k->audit, e);
    if (r == 0 && renameat(dir, AMEND_NEXT, dir, "policy") < 0)
        r = err_os(e, "replace %s/policy", k->state_dir);
    if (r == 0 && fsync(dir) < 0 && errno != EINVAL)
        r = err_os(e, "write %s to the disk", k->state_dir);
    if (r < 0)
        return r;
    struct policy old = k->policy;
    k->policy = *next;
    *next = old;
    policy_digest(&k->policy, k->policy_digest);
    r = wayout_judge(k, e);
    client_announce_state(k);
    return r;
}

static int take_policy(struct keeper *k, struct pale_err *e)
{
    own_policy next = {0};
    own_fd dir = open(k->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", k->state_dir);
    int r = read_next(k, dir, &next, e);
    return r == -PALE_NOT_FOUND ? 0 : r < 0 ? r : adopt(k, dir, &next, e);
}

int reload_now(struct keeper *k, struct pale_err *e)
{
    int r = take_cut(k, e);
    return r < 0 || k->once ? r : take_policy(k, e);
}

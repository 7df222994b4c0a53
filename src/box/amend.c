/* SPDX-License-Identifier: Apache-2.0 */
/* Owns changes of what holds for a box. */
#include "box/amend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/audit.h"
#include "box/policymark.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/reach.h"
#include "wire/message.h"

#define PAUSE_US 2000

void amend_done(struct amend *a)
{
    own_close(&a->lock_fd);
    own_close(&a->dir_fd);
}

int amend_begin(struct amend *a, const struct place *p, const char *caller, struct pale_err *e)
{
    *a = (struct amend){.place = p, .caller = caller, .dir_fd = -1, .lock_fd = -1};
    a->dir_fd = open(p->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->dir_fd < 0 || flock(a->dir_fd, LOCK_EX) < 0)
        return err_os(e, "lock %s", p->state);
    own_fd lock = openat(a->dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return err_os(e, "open %s/lock", p->state);
    if (flock(lock, LOCK_EX | LOCK_NB) == 0)
        a->lock_fd = take_fd(&lock);
    return 0;
}

int amend_record(const struct amend *a, const char *event, void (*fill)(const void *arg, struct json *j), const void *arg,
                 struct pale_err *e)
{
    struct audit log;
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/audit", a->place->state);
    int r = audit_open(&log, path, AUDIT_BOX, a->place->name, a->place->id, e);
    if (r < 0)
        return r;
    log.caller = a->caller;
    fill(arg, audit_begin(&log, event));
    r = audit_commit(&log, e);
    audit_close(&log);
    return r;
}

int amend_tell(const struct amend *a, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    struct frame f;
    reach_init(&reach);
    int r = reach_box(&reach, a->place, false, e);
    if (r == 0)
        r = life_send_caller(&reach, a->caller, e);
    if (r == 0)
        r = reach_send(&reach, ASK_RELOAD, NULL, 0, e);
    if (r == 0)
        r = reach_receive(&reach, &f, e);
    if (r == 0 && f.type != TELL_DONE)
        r = err_set(e, PALE_PROTOCOL, "the keeper of %s does not speak our language", a->place->name);
    return r == -PALE_PROTOCOL
               ? err_prefix(e, "box %s runs under another version of pale; `pale stop %s` and try again", a->place->name, a->place->name)
               : r;
}

bool amend_is_passing(int r, int64_t until_ms)
{
    if ((r != -PALE_NOT_FOUND && r != -PALE_GONE) || clock_ms() > until_ms)
        return false;
    usleep(PAUSE_US);
    return true;
}

/* --- the policy --- */

const char *amend_event(const struct policy *old, const struct policy *new)
{
    return policy_narrow(old, new, NULL) == 0 ? "policy.narrow" : "policy.change";
}

void amend_describe(struct json *j, const struct policy *old, const struct policy *new)
{
    char digest[SHA256_HEX];
    own_buf lines = {0};
    buf_init(&lines, 1 << 20);
    policy_digest(old, digest);
    json_text(j, "was", digest);
    policy_digest(new, digest);
    json_text(j, "policy_digest", digest);
    json_begin_list(j, "changes");
    policy_diff(old, new, &lines, j);
    json_end_list(j);
}

static void fill(const void *arg, struct json *j)
{
    const struct amend_policy *x = arg;
    amend_describe(j, &x->old, &x->new);
}

static int change_stopped(const struct amend *a, const struct amend_policy *x, struct pale_err *e)
{
    int r = layerdir_allot(a->place, &x->new, e);
    if (r == 0)
        r = amend_record(a, amend_event(&x->old, &x->new), fill, x, e);
    if (r == 0)
        r = policymark_write(a->dir_fd, "policy", &x->new, e);
    return r == 0 && fsync(a->dir_fd) < 0 ? err_os(e, "write %s to the disk", a->place->state) : r;
}

/* What can hold at once is the keeper's to say. A file that is left by who was killed here is of no use to anybody, and replaced by the
 * next. */
static int change_live(const struct amend *a, const struct amend_policy *x, struct pale_err *e)
{
    int r = policymark_write(a->dir_fd, AMEND_NEXT, &x->new, e);
    if (r == 0 && (r = amend_tell(a, e)) < 0)
        unlinkat(a->dir_fd, AMEND_NEXT, 0);
    return r;
}

static bool is_same(const struct policy *a, const struct policy *b)
{
    char digest[2][SHA256_HEX];
    policy_digest(a, digest[0]);
    policy_digest(b, digest[1]);
    return digest[0][0] && strcmp(digest[0], digest[1]) == 0;
}

static int try_change(const struct place *p, struct amend_policy *x, struct pale_err *e)
{
    own_amend a = {.dir_fd = -1, .lock_fd = -1};
    int r = amend_begin(&a, p, x->caller, e);
    policy_done(&x->old);
    policy_done(&x->new);
    x->old = x->new = (struct policy){0};
    if (r == 0)
        r = life_policy(p, &x->old, e);
    if (r == 0)
        r = x->next(x->arg, &x->old, &x->new, e);
    if (r < 0 || is_same(&x->old, &x->new))
        return r;
    return a.lock_fd >= 0 ? change_stopped(&a, x, e) : change_live(&a, x, e);
}

int amend_policy(const struct place *p, struct amend_policy *x, struct pale_err *e)
{
    int64_t until = clock_ms() + AMEND_WAIT_MS;
    int r;
    do
        r = try_change(p, x, e);
    while (amend_is_passing(r, until));
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the view of a policy as a list of shared folders. Pure but for memory. */
#include "policy/share.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "policy/hostpath.h"

#define UNKNOWN_PLACE "."

static void add(struct shares *m, struct share item)
{
    m->item[m->count++] = item;
}

int shares_init(struct shares *m, const struct policy *p, struct pale_err *e)
{
    static const enum share_access project_access[PROJECT_COUNT] = {
        [PROJECT_RO] = SHARE_READ, [PROJECT_REVIEW] = SHARE_REVIEW, [PROJECT_LIVE] = SHARE_LIVE};
    struct shares made = {.item = calloc(p->read.count + p->write.count + p->volume_count + 1, sizeof(*made.item))};
    if (!made.item)
        return err_nomem(e);
    if (p->project != PROJECT_NONE) {
        const char *path = p->project_path ? p->project_path : UNKNOWN_PLACE;
        add(&made, (struct share){"project", path, path, project_access[p->project]});
    }
    for (size_t i = 0; i < p->read.count; i++)
        add(&made, (struct share){"read", p->read.item[i], p->read.item[i], SHARE_READ});
    for (size_t i = 0; i < p->write.count; i++)
        add(&made, (struct share){"write", p->write.item[i], p->write.item[i], SHARE_WRITE});
    for (size_t i = 0; i < p->volume_count; i++) {
        const struct policy_volume *v = &p->volumes[i];
        add(&made, (struct share){"volumes", v->host, v->target, v->writable ? SHARE_WRITE : SHARE_READ});
    }
    *m = made;
    return 0;
}

void shares_done(struct shares *m)
{
    free(m->item);
    *m = (struct shares){0};
}

const struct share *shares_at(const struct shares *m, const char *path)
{
    const struct share *best = NULL;
    for (size_t i = 0; i < m->count; i++)
        if (hostpath_covers(m->item[i].target, path) && (!best || strlen(m->item[i].target) > strlen(best->target)))
            best = &m->item[i];
    return best;
}

/* The host path that this folder shows at a path of the box. */
static void host_at(const struct share *m, const char *path, char ret[2 * PATH_BYTES_MAX])
{
    snprintf(ret, 2 * PATH_BYTES_MAX, "%s%s", m->host, path + strlen(m->target));
}

static const char *const access_names[] = {
    [SHARE_READ] = "read-only", [SHARE_REVIEW] = "for review", [SHARE_LIVE] = "live", [SHARE_WRITE] = "writable"};

/* Judges one path. Between the targets of both lists what is seen goes in step, so judging at each target judges all. */
static int narrow_at(const struct shares *parent, const struct shares *child, const char *path, struct pale_err *e)
{
    const struct share *c = shares_at(child, path), *p = shares_at(parent, path);
    char shown[200], theirs[2 * PATH_BYTES_MAX], ours[2 * PATH_BYTES_MAX];
    if (!c)
        return 0;
    quote_into(shown, sizeof(shown), path, strlen(path));
    if (!p)
        return err_set(e, PALE_DENIED, "%s: %s is widened from nothing to %s; the parent does not have it", c->key, shown,
                       access_names[c->access]);
    if (c->access > p->access)
        return err_set(e, PALE_DENIED, "%s: %s is widened from %s to %s; the parent has it under %s", c->key, shown,
                       access_names[p->access], access_names[c->access], p->key);
    host_at(c, path, ours);
    host_at(p, path, theirs);
    if (strcmp(ours, theirs) != 0)
        return err_set(e, PALE_DENIED, "%s: %s shows another host folder than the parent's %s does there", c->key, shown, p->key);
    return 0;
}

int shares_narrow(const struct shares *parent, const struct shares *child, struct pale_err *e)
{
    for (size_t i = 0; i < child->count; i++) {
        int r = narrow_at(parent, child, child->item[i].target, e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < parent->count; i++) {
        int r = narrow_at(parent, child, parent->item[i].target, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the throwing away of what a box has changed in its project. */
#include "box/discard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/change.h"
#include "box/layerdir.h"
#include "box/review.h"
#include "tree/compare.h"
#include "tree/uncover.h"
#include "tree/weld.h"

/* --- what there is --- */

/* Is there anything of the project in the layers that count? */
static int has_changes(const struct change *c, bool *ret, struct pale_err *e)
{
    own_mem const char **ids = calloc(c->stack.layer_count + 1, sizeof(*ids));
    if (!ids)
        return err_nomem(e);
    size_t n = stack_chain(&c->stack, c->stack.below_open, ids);
    size_t from = c->stack.open_anew ? n : stack_project_from(&c->stack, c->stack.below_open);
    int r = layerdir_has(c->place, c->stack.open, PART_PROJECT, ret, e);
    for (size_t i = from; r == 0 && !*ret && i < n; i++)
        r = layerdir_has(c->place, ids[i], PART_PROJECT, ret, e);
    return r;
}

static int is_a_change(void *arg, const struct compare_record *r, struct pale_err *e)
{
    (void)arg, (void)r, (void)e;
    return 1; /* the first will do */
}

static int check_changed(const struct review *v, const char *path, struct pale_err *e)
{
    char shown[200];
    struct compare c = {.was_view = &v->was, .is_view = &v->is, .under = path, .tell = is_a_change};
    int r = compare_run(&c, e);
    if (r != 0)
        return r < 0 ? r : 0;
    return err_set(e, PALE_NOT_FOUND, "the box has changed nothing at %s of its project; its diff lists what it has",
                   quote_into(shown, sizeof(shown), path, strlen(path)));
}

/* What stands above it in the box must be a folder, or gone. */
static int check_way(const struct review *v, const char *path, struct pale_err *e)
{
    char at[PATH_BYTES_MAX], shown[200];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct view_place found;
        struct view_stack ignored;
        snprintf(at, sizeof(at), "%.*s", (int)(slash - path), path);
        int r = view_lookup(&v->is, at, &found, &ignored, e);
        if (r < 0 || found.leaf.kind == LEAF_NONE)
            return r;
        if (found.leaf.kind != LEAF_FOLDER)
            return err_set(e, PALE_BAD_INPUT, "%s is no folder in the box: discard that, and what was below it is there again",
                           quote_into(shown, sizeof(shown), at, strlen(at)));
    }
    return 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Before anything is stopped: does each of the paths name something that can be thrown away? */
static int check_paths(const struct place *p, struct review_paths *paths, struct pale_err *e)
{
    own_review v = {.base_fd = -1};
    int r = review_open(p, PART_PROJECT, NULL, NULL, &v, e);
    for (size_t i = 0; r == 0 && i < paths->count; i++)
        if ((r = check_changed(&v, paths->at[i], e)) == 0)
            r = check_way(&v, paths->at[i], e);
    qsort(paths->at, paths->count, sizeof(*paths->at), compare_texts);
    return r;
}

/* --- the layer that is left --- */

static int open_made(const struct place *p, const char *id, int *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int r = layerdir_path(p, id, path, sizeof(path), e);
    if (r < 0)
        return r;
    own_fd layer = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *ret = layer < 0 ? -1 : openat(layer, wall_part_names[PART_PROJECT], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 ? err_os(e, "open %s/%s", path, wall_part_names[PART_PROJECT]) : 0;
}

/* Fills the project of a new layer with what the layers of v have there, but for the paths. */
static int fill(const struct review *v, const struct review_paths *paths, int to, struct pale_err *e)
{
    own_mem int *fds = calloc(v->is.layer_count + 1, sizeof(*fds));
    if (!fds)
        return err_nomem(e);
    for (size_t i = 0; i < v->is.layer_count; i++)
        fds[i] = v->is_fds[v->is.layer_count - 1 - i]; /* the highest first */
    int r = weld_without(fds, v->is.layer_count, paths->at, paths->count, to, e);
    for (size_t i = 0; r == 0 && i < paths->count; i++)
        r = uncover_path(v->base_fd, to, paths->at[i], e);
    /* What the list of layers names must be on the disk before it does. */
    if (r == 0 && syncfs(to) < 0)
        r = err_os(e, "write a layer to the disk");
    return r;
}

static int leave_rest(struct change *c, const struct review_paths *paths, int layer, struct pale_err *e)
{
    struct stack_layer l = {.below = layer, .closed_ms = clock_unix_ms(), .anew = true, .rest = true};
    own_review v = {.base_fd = -1};
    own_fd to = -1;
    int r = stack_new_id(l.id, e);
    if (r == 0)
        r = review_open_at(c->place, &c->stack, layer, &v, e);
    if (r == 0)
        r = layerdir_make_whole(c->place, l.id, e);
    if (r == 0)
        r = open_made(c->place, l.id, &to, e);
    if (r == 0)
        r = fill(&v, paths, to, e);
    if (r == 0)
        r = layerdir_keep(c->place, l.id, e);
    if (r < 0)
        return r;
    int n = stack_add_layer(&c->stack, &l, e);
    if (n < 0)
        return n;
    c->stack.below_open = n;
    return 0;
}

/* --- the deed --- */

static int tell(struct change *c, const struct review_paths *paths, struct pale_err *e)
{
    char shown[2 * PATH_BYTES_MAX];
    int r = paths->count ? 0 : change_tell(c, "review.discard", c->policy.project_path, e);
    for (size_t i = 0; r == 0 && i < paths->count; i++) {
        int n = snprintf(shown, sizeof(shown), "%s/", c->policy.project_path);
        quote_into(shown + n, sizeof(shown) - (size_t)n, paths->at[i], strlen(paths->at[i]));
        r = change_tell(c, "review.discard", shown, e);
    }
    return r;
}

static int throw_away(struct change *c, const struct review_paths *paths, char ret_kept[SNAPSHOT_NAME_MAX + 1], struct pale_err *e)
{
    bool changed = false;
    int layer = STACK_NONE;
    int r = tell(c, paths, e);
    if (r == 0)
        r = change_close_open(c, &layer, &changed, e);
    if (r == 0)
        r = stack_add_snapshot(&c->stack, NULL, layer, clock_unix_ms(), true, e);
    if (r < 0)
        return r;
    struct stack_snapshot kept = c->stack.snapshots[c->stack.snapshot_count - 1];
    if (paths->count)
        r = leave_rest(c, paths, layer, e);
    else
        c->stack.open_anew = true;
    if (r == 0)
        r = change_save(c, e);
    if (r == 0)
        memcpy(ret_kept, kept.name, sizeof(kept.name));
    return r;
}

int discard_run(const struct place *p, struct discard *d, struct pale_err *e)
{
    own_change c = {0};
    own_review_paths paths = {0};
    bool any = false;
    uint64_t pause = 0;
    d->kept[0] = 0;
    int r = change_begin(&c, p, d->caller, e);
    if (r == 0 && (c.policy.project != PROJECT_REVIEW || !c.policy.project_path))
        r = err_set(e, PALE_BAD_INPUT, "the project of box %s is not for review: there is nothing to throw away", p->name);
    if (r == 0)
        r = review_choose(&c.policy, d->cwd, d->paths, d->path_count, &paths, e);
    if (r == 0 && paths.count)
        r = check_paths(p, &paths, e);
    if (r == 0)
        r = has_changes(&c, &any, e);
    if (r < 0 || !any || (r = change_halt(&c, d->force ? STOP_ANY : STOP_EMPTY, e)) < 0)
        return r;
    r = throw_away(&c, &paths, d->kept, e);
    return change_resume(&c, r, &pause, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the opening of a box's writes for review. */
#include "box/review.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/change.h"
#include "box/imageref.h"
#include "box/layerdir.h"
#include "box/stack.h"
#include "confine/seclusion.h"

const char *review_place(const struct policy *policy, enum wall_part part)
{
    static const char *const fixed[PART_COUNT] = {[PART_HOME] = WALL_HOME, [PART_TMP] = "/tmp", [PART_ROOT] = "/"};
    return part == PART_PROJECT ? policy->project_path : fixed[part];
}

/* Without empty steps, "." and "..". */
static bool tidy(const char *path, char ret[PATH_BYTES_MAX])
{
    size_t n = 0;
    ret[0] = 0;
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && path[0] == '.' && path[1] == '.') {
            while (n > 0 && ret[n - 1] != '/')
                n--;
            n -= n > 0;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            if (n + len + 2 > PATH_BYTES_MAX)
                return false;
            ret[n++] = '/';
            memcpy(ret + n, path, len);
            n += len;
        }
        ret[n] = 0;
        path += len + (path[len] == '/');
    }
    if (n == 0)
        memcpy(ret, "/", 2);
    return true;
}

int review_path(const struct policy *policy, const char *cwd, const char *given, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    char whole[2 * PATH_BYTES_MAX];
    const char *place = policy->project_path ? policy->project_path : WALL_HOME;
    const char *under = cwd && path_is_within(cwd, place) ? cwd : place;
    int n = given[0] == '/' ? snprintf(whole, sizeof(whole), "%s", given) : snprintf(whole, sizeof(whole), "%s/%s", under, given);
    if (n < 0 || (size_t)n >= sizeof(whole) || !tidy(whole, ret))
        return err_set(e, PALE_BAD_INPUT, "%.200s is no path", given);
    return 0;
}

int review_part(const struct policy *policy, const char *path, enum wall_part *ret, const char **ret_rest, struct pale_err *e)
{
    /* Narrower places first: a project may lie in /tmp. */
    static const enum wall_part order[] = {PART_PROJECT, PART_HOME, PART_TMP, PART_ROOT};
    if (policy->scratch != SCRATCH_DISK)
        return err_set(e, PALE_UNSUPPORTED, "this box keeps its writes in memory (scratch: memory)");
    if (!path) {
        *ret = wall_has_part(policy, true, PART_PROJECT) ? PART_PROJECT : PART_HOME;
        *ret_rest = "";
        return 0;
    }
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (!wall_has_part(policy, true, order[i]))
            continue;
        const char *place = review_place(policy, order[i]);
        if (!path_is_within(path, place))
            continue;
        const char *rest = path + strlen(place);
        *ret = order[i];
        *ret_rest = rest + strspn(rest, "/");
        return 0;
    }
    return err_set(e, PALE_BAD_INPUT,
                   "%s is no place of which the box keeps its own version; its project must be for review (--project review)", path);
}

void review_paths_done(struct review_paths *p)
{
    free(p->text);
    free(p->at);
}

int review_choose(const struct policy *policy, const char *cwd, const char *const *given, size_t count, struct review_paths *ret,
                  struct pale_err *e)
{
    ret->text = calloc(count + 1, sizeof(*ret->text));
    ret->at = calloc(count + 1, sizeof(*ret->at));
    if (!ret->text || !ret->at)
        return err_nomem(e);
    for (size_t i = 0; i < count; i++) {
        enum wall_part part;
        int r = review_path(policy, cwd, given[i], ret->text[i], e);
        if (r == 0)
            r = review_part(policy, ret->text[i], &part, &ret->at[i], e);
        if (r == 0 && part != PART_PROJECT)
            r = err_set(e, PALE_BAD_INPUT, "%.200s does not lie in the box's project", given[i]);
        if (r < 0)
            return r;
    }
    ret->count = count;
    for (size_t i = 0; i < count; i++)
        if (!ret->at[i][0])
            ret->count = 0; /* the project itself: everything */
    return 0;
}

void review_done(struct review *r)
{
    for (size_t i = 0; r->was_fds && i < r->was.layer_count; i++)
        own_close(&r->was_fds[i]);
    for (size_t i = 0; r->is_fds && i < r->is.layer_count; i++)
        own_close(&r->is_fds[i]);
    free(r->was_fds);
    free(r->is_fds);
    free(r->is_from);
    free(r->is_born_ns);
    own_close(&r->base_fd);
    policy_done(&r->policy);
    *r = (struct review){.base_fd = -1};
}

/* One layer's folder of the part; a layer that has none of it is passed over. */
static int add_layer(const struct place *p, const char *id, enum wall_part part, int *fds, size_t *count, struct pale_err *e)
{
    own_fd fd = -1;
    int r = layerdir_open_part(p, id, part, O_PATH, &fd, e);
    if (r == 0 && fd >= 0)
        fds[(*count)++] = take_fd(&fd);
    return r;
}

/* The layers that stand for a point: a closed layer and all below it, and the open one on top of it if that is meant. */
static int open_layers(const struct place *p, const struct stack *s, int layer, bool with_open, enum wall_part part, int **ret_fds,
                       size_t *ret_count, size_t **ret_from, struct pale_err *e)
{
    own_mem const char **ids = calloc(s->layer_count + 2, sizeof(*ids));
    int *fds = calloc(s->layer_count + 2, sizeof(*fds));
    size_t *numbers = calloc(s->layer_count + 2, sizeof(*numbers));
    if (!ids || !fds || !numbers) {
        free(fds);
        free(numbers);
        return err_nomem(e);
    }
    free(*ret_from);
    *ret_from = numbers;
    size_t n = stack_chain(s, layer, ids);
    size_t from = part != PART_PROJECT ? 0 : with_open && s->open_anew ? n : stack_project_from(s, layer);
    *ret_fds = fds;
    *ret_count = 0;
    if (with_open)
        ids[n++] = s->open;
    int r = 0;
    for (size_t i = from; r == 0 && i < n; i++) {
        size_t before = *ret_count;
        r = add_layer(p, ids[i], part, fds, ret_count, e);
        if (*ret_count > before)
            numbers[before] = i;
        if (r == -PALE_NOT_FOUND && with_open && i == n - 1)
            r = 0; /* a box that never ran */
    }
    return r;
}

static int find_point(const struct place *p, const struct stack *s, const char *name, int *ret, struct pale_err *e)
{
    const struct stack_snapshot *n = stack_find(s, name);
    if (!n)
        return err_set(e, PALE_NOT_FOUND, "box %s has no snapshot %s; `pale snapshots %s` lists them", p->name, name, p->name);
    *ret = n->layer;
    return 0;
}

static int open_base(struct review *r, struct pale_err *e)
{
    char path[PATH_BYTES_MAX] = "";
    int res = 0;
    if (r->part == PART_PROJECT)
        snprintf(path, sizeof(path), "%s", r->policy.project_path);
    else if (r->part == PART_ROOT)
        res = imageref_root(r->policy.image, path, sizeof(path), e);
    if (res < 0 || !path[0])
        return res;
    r->base_fd = fd_open_real_dir(path);
    return r->base_fd < 0 ? err_os(e, "open %s", path) : 0;
}

/* The births of the layers that were opened, in their order: those above the point at which the project begins. */
static int find_births(const struct stack *s, size_t opened, bool with_open, int layer, struct review *ret, struct pale_err *e)
{
    own_mem uint64_t *all = calloc(s->layer_count + 2, sizeof(*all));
    own_mem const char **ids = calloc(s->layer_count + 2, sizeof(*ids));
    ret->is_born_ns = calloc(opened + 1, sizeof(*ret->is_born_ns));
    if (!all || !ids || !ret->is_born_ns)
        return err_nomem(e);
    size_t n = stack_chain(s, layer, ids);
    stack_births(s, layer, all);
    if (with_open)
        all[n++] = s->open_born_ns;
    for (size_t i = 0; i < opened; i++)
        ret->is_born_ns[i] = weak_word("review-start") ? s->open_born_ns : all[ret->is_from[i]];
    return 0;
}

int review_open(const struct place *p, enum wall_part part, const char *from, const char *to, struct review *ret, struct pale_err *e)
{
    own_stack s = {0};
    int was = STACK_NONE, is = STACK_NONE;
    *ret = (struct review){.part = part, .base_fd = -1};
    stack_init(&s);
    int r = life_policy(p, &ret->policy, e);
    if (r == 0)
        r = stack_load(p, &s, e);
    if (r == 0 && from)
        r = find_point(p, &s, from, &was, e);
    if (r == 0 && to)
        r = find_point(p, &s, to, &is, e);
    if (r == 0)
        r = open_base(ret, e);
    if (r == 0 && from)
        r = open_layers(p, &s, was, false, part, &ret->was_fds, &ret->was.layer_count, &ret->is_from, e);
    if (r == 0)
        r = open_layers(p, &s, to ? is : s.below_open, !to, part, &ret->is_fds, &ret->is.layer_count, &ret->is_from, e);
    if (r == 0)
        r = find_births(&s, ret->is.layer_count, !to, to ? is : s.below_open, ret, e);
    ret->was.base_fd = ret->is.base_fd = ret->base_fd;
    ret->was.layer_fds = ret->was_fds;
    ret->is.layer_fds = ret->is_fds;
    if (r < 0)
        review_done(ret);
    return r;
}

size_t review_places(const struct review *r, const struct review_seclusion *s, struct landlock_place *places)
{
    size_t n = 0;
    for (size_t i = 0; i < r->was.layer_count; i++)
        places[n++].fd = r->was_fds[i];
    for (size_t i = 0; i < r->is.layer_count; i++)
        places[n++].fd = r->is_fds[i];
    if (s->beside_fd >= 0)
        places[n++].fd = s->beside_fd;
    if (s->written_fd >= 0)
        places[n++] = (struct landlock_place){.fd = s->written_fd, .use = s->lands ? LANDLOCK_WRITE : LANDLOCK_READ};
    if (r->base_fd >= 0)
        places[n++] = (struct landlock_place){.fd = r->base_fd, .use = s->lands ? LANDLOCK_WRITE : LANDLOCK_READ};
    return n;
}

int review_seclude(const struct review *r, const struct review_seclusion *s, struct pale_err *e)
{
    own_mem struct landlock_place *places = calloc(r->was.layer_count + r->is.layer_count + 3, sizeof(*places));
    if (!places)
        return err_nomem(e);
    const struct seclusion all = {
        .places = places, .place_count = review_places(r, s, places), .kept = s->kept, .kept_count = s->kept_count};
    return seclusion_enter(&all, e);
}

int review_open_at(const struct place *p, const struct stack *s, int layer, struct review *ret, struct pale_err *e)
{
    *ret = (struct review){.part = PART_PROJECT, .base_fd = -1};
    int r = life_policy(p, &ret->policy, e);
    if (r == 0)
        r = open_base(ret, e);
    if (r == 0)
        r = open_layers(p, s, layer, false, PART_PROJECT, &ret->is_fds, &ret->is.layer_count, &ret->is_from, e);
    if (r == 0)
        r = find_births(s, ret->is.layer_count, false, layer, ret, e);
    ret->was.base_fd = ret->is.base_fd = ret->base_fd;
    ret->is.layer_fds = ret->is_fds;
    if (r < 0)
        review_done(ret);
    return r;
}

int review_tell(const struct place *p, const char *event, const char *what, const char *caller, struct pale_err *e)
{
    own_change c = {0};
    int r = change_begin(&c, p, caller, e);
    return r < 0 ? r : change_tell(&c, event, what, e);
}

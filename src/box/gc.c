/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the collecting of what nobody needs. In doubt (a list of layers that cannot be read) everything stays. */
#include "box/kept_log.h"
#include "box/gc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/allot.h"
#include "box/identity.h"
#include "box/imageref.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/litter.h"
#include "box/removal.h"
#include "box/stack.h"
#include "box/tidy.h"
#include "image/staging.h"
#include "policy/policy.h"

static bool is_in(const void *arg, const char *id)
{
    const struct stack *s = arg;
    if (strcmp(s->open, id) == 0 || stack_find_layer(s, id) != STACK_NONE)
        return true;
    for (size_t i = 0; i < s->join_count; i++)
        if (strcmp(s->joins[i].id, id) == 0)
            return true;
    return false;
}

static int collect(const struct place *p, struct layerdir_swept *ret, struct pale_err *e)
{
    own_stack s = {0};
    own_fd lock = -1;
    stack_init(&s);
    int r = stack_lock(p, &lock, e);
    if (r == 0 && !ret->only_counts)
        r = stack_sweep(p, e);
    if (r == 0)
        r = stack_load(p, &s, e);
    size_t before = s.layer_count + s.join_count;
    if (r == 0)
        r = stack_prune(&s, e);
    if (r == 0 && s.layer_count + s.join_count != before && !ret->only_counts)
        r = stack_save(p, &s, e);
    return r < 0 ? r : layerdir_sweep(p, is_in, &s, ret, e);
}

/* One box: layers that neither a snapshot nor the box itself stands on. */
static int collect_box(const struct place *p, struct layerdir_swept *ret, struct pale_err *e)
{
    struct tidy_result tidied;
    own_fd hold = -1;
    /* Who does it behind the scenes takes its time, and we do the same. What somebody else who is at it makes is not in the list yet. */
    tidy_stop(p);
    int r = tidy_hold(p, true, &hold, e);
    if (r < 0 || (r = collect(p, ret, e)) < 0)
        return r;
    /* Still held: who begins behind the scenes in this moment would take his time again. */
    return ret->only_counts ? 0 : tidy_box(p, &tidied, e);
}

/* --- layers that several boxes stand on --- */

/* All boxes, and what they stand on. */
struct pool {
    const struct place *beside;
    struct stack *stacks;
    size_t count;
    bool prunes; /* as if every box had been collected before */
    struct pale_err *e;
};

static int take_stack(void *arg, const struct place *p)
{
    struct pool *l = arg;
    struct stack *more = realloc(l->stacks, (l->count + 1) * sizeof(*more));
    if (!more)
        return err_nomem(l->e);
    l->stacks = more;
    int r = stack_load(p, &l->stacks[l->count], l->e);
    if (r < 0)
        return r;
    l->count++;
    /* What a lost box stands on stays as it is. */
    return l->prunes && !p->lost ? stack_prune(&l->stacks[l->count - 1], l->e) : 0;
}

/* Boxes beside this one that go by another state folder stand on we know not what. */
static int refuse_strangers(const struct place *beside, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], path[PATH_BYTES_MAX], state[PATH_BYTES_MAX], boxes[PATH_BYTES_MAX], id[BOX_ID_LEN + 1];
    struct stat st;
    place_above(beside->data, dir);
    place_above(beside->state, boxes);
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open %s", dir);
    int r = 0;
    for (const struct dirent *en; r == 0 && (en = readdir(d));) {
        if (snprintf(path, sizeof(path), "%s/" IDENTITY_ID, en->d_name) < 0 || !identity_read(dirfd(d), path, id))
            continue;
        if (path_join(state, sizeof(state), boxes, id) && lstat(state, &st) == 0)
            continue;
        r = err_set(
            e, PALE_CONFLICT,
            "%s/%s is a box that your state folder does not know: layers that it may stand on stay; `pale adopt` it, or move it away", dir,
            en->d_name);
    }
    closedir(d);
    return r;
}

static void forget_stacks(struct pool *l)
{
    for (size_t i = 0; i < l->count; i++)
        stack_done(&l->stacks[i]);
    l->count = 0;
}

static int find_users(void *arg, struct pale_err *e)
{
    struct pool *l = arg;
    forget_stacks(l);
    l->e = e;
    int r = weak_word("strangers") ? 0 : refuse_strangers(l->beside, e);
    return r < 0 ? r : place_each_state(take_stack, l, e);
}

static bool is_in_any(const void *arg, const char *id)
{
    const struct pool *l = arg;
    for (size_t i = 0; i < l->count; i++)
        if (is_in(&l->stacks[i], id))
            return true;
    return false;
}

static int sweep_allotments(const struct place *p, struct pale_err *e)
{
    char base[PATH_BYTES_MAX];
    place_above(p->data, base);
    int r = allot_sweep(base, e);
    place_above(p->state, base);
    return r < 0 ? r : allot_sweep(base, e);
}

static int collect_shared(const struct place *p, struct layerdir_swept *ret, struct pale_err *e)
{
    struct pool l = {.beside = p, .prunes = ret->only_counts};
    const struct layerdir_users users = {.find = find_users, .wanted = is_in_any, .arg = &l};
    int r = layerdir_sweep_shared(p, &users, ret, e);
    forget_stacks(&l);
    free(l.stacks);
    if (r == 0 && !ret->only_counts)
        r = sweep_allotments(p, e);
    if (!ret->only_counts)
        place_tidy(p);
    return r;
}

int gc_shared(const struct place *p, struct pale_err *e)
{
    struct layerdir_swept ignored = {0};
    int r = collect_shared(p, &ignored, e);
    return r == -PALE_CONFLICT ? 0 : r; /* `pale gc` tells what is in the way */
}

/* --- all --- */

struct round {
    struct gc_result *result;
    struct layerdir_swept swept;
    char folder[PATH_BYTES_MAX]; /* the one whose pool was swept last; boxes of one folder mostly come together */
    /* The first failure, which is told at the end: what one box has made of its files must not be the end for the others. */
    struct pale_err failed;
};

static int visit(void *arg, const struct place *p)
{
    struct round *c = arg;
    char base[PATH_BYTES_MAX];
    struct pale_err why = {0};
    c->result->boxes++;
    int r = collect_box(p, &c->swept, &why);
    if (r == 0)
        r = litter_files(p, c->swept.only_counts, &c->result->files, &why);
    place_above(p->data, base);
    if (r == 0 && strcmp(base, c->folder) != 0) {
        memcpy(c->folder, base, sizeof(base));
        r = collect_shared(p, &c->swept, &why);
    }
    if (r < 0 && c->failed.code == PALE_OK) {
        (void)err_prefix(&why, "box %s", p->name);
        c->failed = why;
    }
    return 0;
}

static int collect_images(const struct gc_order *o, struct pale_err *e)
{
    own_store s = STORE_NONE;
    int r = imageref_store(&s, e);
    return r < 0 ? r : imageuse_collect(&s, o->only_tells, o->caller, o->told, o->arg, e);
}

/* The allotment of the last box, which left nothing to visit. */
static int sweep_last(struct pale_err *e)
{
    char data[PATH_BYTES_MAX];
    int r = place_data_dir(data, sizeof(data), e);
    return r < 0 ? r : allot_sweep(data, e);
}

int gc_all(const struct gc_order *o, struct gc_result *ret, struct pale_err *e)
{
    struct round c = {.result = ret, .swept = {.only_counts = o->only_tells}};
    *ret = (struct gc_result){0};
    int r = life_sweep_all(o->only_tells, &ret->orphans, e);
    if (r == 0)
        r = place_each_made(visit, &c, e);
    ret->layers = c.swept.count;
    if (r == 0)
        r = litter_staging(o->only_tells, &ret->staging, e);
    if (r == 0)
        r = litter_quarantines(o->only_tells, &ret->quarantines, e);
    if (r == 0)
        r = kept_log_prune(o->only_tells, &ret->logs, e);
    if (r == 0 && !o->only_tells)
        r = sweep_last(e);
    if (r == 0 && o->images)
        r = collect_images(o, e);
    if (c.failed.code == PALE_OK)
        return r;
    if (e)
        *e = c.failed;
    return -(int)c.failed.code;
}

void gc_json(const struct gc_result *g, struct json *j)
{
    json_u64(j, "boxes", g->boxes);
    json_u64(j, "layers", g->layers);
    json_u64(j, "orphans", g->orphans);
    json_u64(j, "files", g->files);
    json_u64(j, "staging", g->staging);
    json_u64(j, "quarantines", g->quarantines);
    json_u64(j, "logs", g->logs);
}

void gc_image_json(const struct imageuse_idle *i, struct json *j)
{
    json_begin_object(j, NULL);
    json_begin_list(j, "names");
    for (const char *at = i->names; *at;) {
        size_t n = strcspn(at, ",");
        json_bytes(j, NULL, at, n);
        at += n + (at[n] == ',');
    }
    json_end_list(j);
    json_text(j, "digest", i->digest);
    json_u64(j, "bytes", i->bytes);
    json_end_object(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the finding of a box's layers. */
#include "keeper/strata.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/allot.h"
#include "box/imageref.h"
#include "box/layerdir.h"
#include "box/stack.h"
#include "tier/wall.h"

void strata_done(struct strata *s)
{
    free(s->text);
    free(s->paths);
    *s = (struct strata){0};
}

static int find_closed(const struct place *p, const struct stack *s, struct strata *ret, struct pale_err *e)
{
    own_mem const char **ids = calloc(s->layer_count + 1, sizeof(*ids));
    if (!ids)
        return err_nomem(e);
    size_t n = stack_chain(s, s->below_open, ids);
    ret->project_from = s->open_anew ? n : stack_project_from(s, s->below_open);
    ret->text = malloc(n * PATH_BYTES_MAX + 1);
    ret->paths = calloc(n + 1, sizeof(*ret->paths));
    if (!ret->text || !ret->paths)
        return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        char *path = ret->text + i * PATH_BYTES_MAX;
        int r = layerdir_path(p, ids[i], path, PATH_BYTES_MAX, e);
        if (r == 0)
            r = layerdir_check_maker(p, ids[i], stack_maker(s, ids[i]), e);
        if (r < 0)
            return r;
        ret->paths[ret->count++] = path;
    }
    return 0;
}

static int find_image(struct keeper *k, struct strata *ret, struct pale_err *e)
{
    own_image i = {.lock_fd = -1};
    int r = imageref_find(k->policy.image, &i, e);
    if (r < 0)
        return r;
    memcpy(ret->image, i.root, sizeof(ret->image));
    k->image_lock = take_fd(&i.lock_fd);
    return 0;
}

/* For the receipt: how large the kernel says that the box's files can become. The wall needs some room, even of a box that is full; the
 * keeper takes it back when the wall stands. */
static int keep_allotted(struct keeper *k, const char *layer, struct pale_err *e)
{
    own_fd dir = fd_open_real_dir(layer);
    k->disk_fd = dir < 0 ? -1 : fd_open_beneath(dir, wall_part_names[PART_HOME], O_RDONLY | O_DIRECTORY, 0);
    return k->disk_fd < 0 ? err_os(e, "open the box's home in %s", layer) : allot_ease(k->disk_fd, e);
}

int strata_find(struct keeper *k, const struct buf *list, struct strata *ret, struct pale_err *e)
{
    struct place p = {0};
    own_stack s = {0};
    int r = k->policy.image ? find_image(k, ret, e) : 0;
    if (r < 0)
        return r;
    if (!k->data_dir || k->policy.scratch != SCRATCH_DISK)
        return 0;
    snprintf(p.name, sizeof(p.name), "%s", k->name);
    snprintf(p.id, sizeof(p.id), "%s", k->id);
    snprintf(p.data, sizeof(p.data), "%s", k->data_dir);
    snprintf(p.state, sizeof(p.state), "%s", k->state_dir);
    place_set_owner(&p);
    r = list ? stack_parse((const char *)list->data, list->len, &s, e) : stack_load(&p, &s, e);
    if (r == 0)
        r = stack_refuse_poison(&s, s.below_open, k->name, e);
    if (r == 0)
        r = find_closed(&p, &s, ret, e);
    if (r == 0)
        r = layerdir_make(&p, s.open, &k->policy, true, e);
    if (r == 0)
        r = layerdir_check_maker(&p, s.open, stack_maker(&s, s.open), e);
    if (r == 0)
        r = layerdir_path(&p, s.open, ret->open, sizeof(ret->open), e);
    return r == 0 && allot_is_wanted(&k->policy) ? keep_allotted(k, ret->open, e) : r;
}

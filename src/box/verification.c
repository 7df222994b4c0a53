/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the comparing of layers with their digests. Nothing is locked while a layer is read: what is closed does not change, and if it goes
 * meanwhile there is nothing to write down. */
#include "box/verification.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "box/layerwork.h"

static int mark(const struct place *p, const char *id, struct pale_err *e)
{
    own_stack s = {0};
    own_fd lock = -1;
    stack_init(&s);
    int r = stack_lock(p, &lock, e);
    if (r == 0)
        r = stack_load(p, &s, e);
    int layer = r < 0 ? STACK_NONE : stack_find_layer(&s, id);
    if (r < 0 || layer == STACK_NONE)
        return r;
    snprintf(s.layers[layer].poison, sizeof(s.layers[layer].poison), "digest");
    return stack_save(p, &s, e);
}

static int look_at(const struct place *p, const struct stack *s, int layer, struct verification *v, struct pale_err *e)
{
    const struct stack_layer *l = &s->layers[layer];
    struct layerwork_finding f;
    if (!l->digest[0]) {
        v->unknown++;
        return 0;
    }
    int r = layerwork_digest(p, l->id, &f, e);
    if (r < 0)
        return r;
    if (strcmp(f.digest, l->digest) == 0 && !l->poison[0]) {
        v->good++;
        return 0;
    }
    if (!l->poison[0])
        r = mark(p, l->id, e);
    v->bad++;
    v->tell(v->arg, s, layer);
    return r;
}

int verification_run(const struct place *p, struct verification *v, struct pale_err *e)
{
    own_stack s = {0};
    stack_init(&s);
    int r = stack_load(p, &s, e);
    for (size_t i = 0; r == 0 && i < s.layer_count; i++)
        r = look_at(p, &s, (int)i, v, e);
    return r;
}

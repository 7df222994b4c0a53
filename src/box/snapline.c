/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines of the list of snapshots. */
#include "box/snapline.h"

struct snapline snapline_of(const struct stack *s, const struct stack_snapshot *n)
{
    struct snapline l = {.name = n->name,
                         .made_ms = n->made_ms,
                         .kind = n->automatic ? "automatic" : "asked",
                         .state = "verified",
                         .current = n->layer == s->below_open};
    bool poisoned = false;
    for (int at = n->layer; at != STACK_NONE; at = s->layers[at].below) {
        l.layers++;
        poisoned = poisoned || s->layers[at].poison[0];
        if (!s->layers[at].digest[0])
            l.state = "fresh";
    }
    if (poisoned)
        l.state = "poisoned";
    return l;
}

void snapline_json(const struct snapline *l, struct json *j)
{
    json_begin_object(j, NULL);
    json_text(j, "name", l->name);
    json_u64(j, "made_unix_ms", l->made_ms);
    json_text(j, "kind", l->kind);
    json_u64(j, "layers", l->layers);
    json_text(j, "state", l->state);
    json_bool(j, "current", l->current);
    json_end_object(j);
}

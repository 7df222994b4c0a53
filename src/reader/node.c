/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tree of a policy file. Its depth is bounded by the loader, so freeing may recurse. */
#include "reader/node.h"

#include <string.h>

struct node *node_new(enum node_kind kind, struct place at)
{
    struct node *n = calloc(1, sizeof(*n));
    if (n) {
        n->kind = kind;
        n->place = n->key_place = at;
    }
    return n;
}

void node_free(struct node *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->count; i++)
        node_free(n->child[i]);
    free(n->child);
    free(n->key);
    free(n->text);
    free(n);
}

bool node_add(struct node *parent, struct node *child)
{
    struct node **grown = realloc(parent->child, (parent->count + 1) * sizeof(*grown));
    if (!grown)
        return false;
    parent->child = grown;
    grown[parent->count++] = child;
    return true;
}

const struct node *node_get(const struct node *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (map->child[i]->key && strcmp(map->child[i]->key, key) == 0)
            return map->child[i];
    return NULL;
}

bool node_is_null(const struct node *n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; n->kind == NODE_TEXT && n->plain && i < sizeof(nulls) / sizeof(nulls[0]); i++)
        if (strcmp(n->text, nulls[i]) == 0)
            return true;
    return false;
}

const char *node_kind_name(const struct node *n)
{
    static const char *const names[] = {
        [NODE_TEXT] = "a single value", [NODE_LIST] = "a list", [NODE_MAP] = "a map", [NODE_BROKEN] = "broken"};
    return node_is_null(n) ? "nothing" : names[n->kind];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file as a small tree in which every node knows its place. Both formats and both syntaxes end here. */
#pragma once

#include "reader/complaint.h"

enum node_kind {
    NODE_TEXT,
    NODE_LIST,
    NODE_MAP,
    NODE_BROKEN, /* an error was noted here; whoever walks the tree passes by */
};

struct node {
    enum node_kind kind;
    struct place place;
    char *key; /* in a map; NULL elsewhere */
    struct place key_place;
    char *text; /* of a NODE_TEXT; has no NUL inside */
    bool plain; /* written without quotes, so it may be a number or null */
    struct node **child;
    size_t count;
};

struct node *node_new(enum node_kind kind, struct place at);
void node_free(struct node *n);
static inline void node_release(struct node **n)
{
    node_free(*n);
    *n = NULL;
}
#define own_node CLEANUP(node_release) struct node

/* Gives child to parent. False if memory ran out; then child is still the caller's. */
bool node_add(struct node *parent, struct node *child);

/* The child of a map under this key, or NULL. */
const struct node *node_get(const struct node *map, const char *key);

/* null, ~ or nothing at all. */
bool node_is_null(const struct node *n);

/* "a text", "a list", "a map": for errors. */
const char *node_kind_name(const struct node *n);

/* SPDX-License-Identifier: Apache-2.0 */
/* From the tree of a file to a policy: what the pale format and the capability format share. */
#pragma once

#include "policy/policy.h"
#include "reader/node.h"

#define FIELD_MAX 64

struct job {
    struct policy *p;
    struct complaints *c;
    bool out_of_memory;
    const struct node *set_by[FIELD_MAX]; /* by index in the field table: the node that set it, for errors over the whole */
};

/* The two formats. root is a map. */
void filemap_pale(struct job *j, const struct node *root);
void filemap_capability(struct job *j, const struct node *root);

/* Does the file speak the capability format? One key of its own is enough, even if it is a little mistyped. */
bool filemap_is_capability(const struct node *root);

/* Sets key from text and notes what is wrong with it at this node. shown is the key as the file has it. */
void job_set(struct job *j, const struct node *at, const char *key, const char *shown, const char *value);

/* Is the node of this kind? If not, notes that the key needs `what`. A broken node is of no kind, silently. */
bool job_expects(struct job *j, const struct node *n, enum node_kind kind, const char *shown, const char *what);

/* A table of keys within one map. */
struct key_row {
    const char *name;
    void (*apply)(struct job *j, const struct node *value, const char *shown, void *data);
};

/* Applies each child of map through its row; other keys are noted, with the nearest name. prefix is put before keys in
 * errors ("resource_limits."). */
void job_walk(struct job *j, const struct node *map, const char *prefix, const struct key_row *rows, size_t count, void *data);

/* Notes an unknown key. best is the name that may have been meant, or NULL. */
void job_unknown(struct job *j, const struct node *n, const char *shown, const char *best);

/* One egress rule as a map; default_rate 0: none. The capability format has {domain, ports, rate_limit_per_min} alone. */
void job_rule(struct job *j, const struct node *rule, const char *shown, unsigned default_rate, bool capability);

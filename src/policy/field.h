/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policy keys. Everything that goes through all keys (defaults, flags, files, canonical text, JSON, diff,
 * narrowing) walks this table, so that a key cannot be known in one place and forgotten in another. */
#pragma once

#include "policy/policy.h"

/* How a key is written in a file. */
enum field_shape {
    SHAPE_ONE,   /* key: value */
    SHAPE_LIST,  /* key: [value, …] */
    SHAPE_PAIRS, /* key: {NAME: value, …}; each is set as "NAME=value" */
    SHAPE_RULES, /* key: [{domain, ports, …}, …]; each is set as one text (policy/rule.h) */
};

struct field;

/* What can be done with a key of some kind. i counts the items of a list and is 0 for a single value. */
struct field_kind {
    enum field_shape shape;
    size_t (*count)(const struct field *f, const struct policy *p);

    /* Item i as policy_set takes it. Exact: setting it again gives the same. */
    void (*text)(const struct field *f, const struct policy *p, size_t i, struct buf *out);

    /* Item i as people read it; NULL: like text. */
    void (*show)(const struct field *f, const struct policy *p, size_t i, struct buf *out);

    /* Sets or appends from text. The error does not name the key: the caller knows it. */
    int (*set)(const struct field *f, struct policy *p, const char *value, struct pale_err *e);

    /* Is child's value no wider than parent's? NULL: judged together with other keys (policy/narrow.c). */
    bool (*within)(const struct field *f, const struct policy *parent, const struct policy *child);

    /* What item i does: 1 it lets more through, -1 it holds something back, 0 neither. */
    int (*weight)(const struct field *f, const struct policy *p, size_t i);

    /* Item i as JSON; NULL: its text. */
    void (*json)(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key);

    void (*done)(const struct field *f, struct policy *p);
};

struct field {
    const char *key;   /* "limits.memory" */
    const char *alias; /* a shorter key for the same, or NULL */
    const struct field_kind *kind;
    size_t at;       /* offset in struct policy */
    const void *row; /* what the kind needs to know about this key */
};

/* In the order of the canonical text; NULL past the end. */
const struct field *field_at(size_t i);

/* By key or alias; NULL if there is none. */
const struct field *field_find(const char *key);

/* The value of a key in a policy. */
static inline void *field_value(const struct field *f, struct policy *p)
{
    return (char *)p + f->at;
}
static inline const void *field_value_const(const struct field *f, const struct policy *p)
{
    return (const char *)p + f->at;
}

/* Item i for people. */
void field_show(const struct field *f, const struct policy *p, size_t i, struct buf *out);

/* What several kinds are filled with: the count of a single value, and the weight of an item that lets more through. */
size_t field_count_one(const struct field *f, const struct policy *p);
int field_weight_wider(const struct field *f, const struct policy *p, size_t i);

/* The kinds, each in its own file, and their rows. */
extern const struct field_kind choice_kind, name_kind, path_kind;           /* single.c */
extern const struct field_kind limit_kind;                                  /* limit.c */
extern const struct field_kind paths_kind, guards_kind;                     /* list.c */
extern const struct field_kind env_set_kind, env_pass_kind, env_allow_kind; /* env.c */
extern const struct field_kind volume_kind;                                 /* volume.c */
extern const struct field_kind presets_kind;                                /* preset.c */
extern const struct field_kind publish_kind;                                /* publish.c */
extern const struct field_kind egress_kind;                                 /* egress_field.c */

/* A closed set of words. */
struct choice_row {
    const char *const *names; /* by value */
    unsigned count;
    const unsigned *within; /* by value: a bit for each value that is no wider; NULL: judged together with other keys */
    struct {
        const char *name;
        unsigned value;
    } aliases[2];
};

struct path_row {
    unsigned use;                                          /* enum hostpath_use */
    bool (*within)(const char *parent, const char *child); /* NULL: judged together with other keys */
};

struct limit_row {
    bool (*read)(const char *s, uint64_t *ret);
    void (*write)(uint64_t v, struct buf *out);
    void (*show)(uint64_t v, struct buf *out);
    uint64_t least, most;
    const char *example;
    uint64_t initial; /* 0: none */
};
extern const struct limit_row limit_rows[LIMIT_COUNT];

/* SPDX-License-Identifier: Apache-2.0 */
/* The roll of all boxes of a core: found by name, id, key and deed, and in the order in which they fall due. For fleet alone.
 *
 * How it works: sorted arrays of pointers, and a heap for each clock. All of them have room for every box from the moment the box
 * is added, so that only adding can run out of memory. */
#pragma once

#include "fleet/core.h"

enum wait_kind { WAIT_CREATE, WAIT_USE, WAIT_STOP, WAIT_REMOVE, WAIT_RENAME, WAIT_TERMS, WAIT_CHANGE, WAIT_STILL };

/* Somebody who waits in a box's queue, and later for the delivery of his answer. */
struct wait {
    struct wait *next;
    enum wait_kind kind;
    void *waiter;
    uint64_t born; /* of the box it was asked of */
    bool ensure;
    void *payload;
    char tenant[CORE_TENANT_MAX + 1], name[BOX_NAME_MAX + 1]; /* create: of the box; rename: the new name */
    struct core_terms terms;                                  /* create, terms: what is asked */
    unsigned more;                                            /* change: boxes it makes */
    char *told;                                               /* … and what it told; NULL: nothing */
    struct pale_err err;
    bool has_box;
    struct core_box box;
};

/* After a failure that nobody waits for: not again before then. */
struct pause {
    unsigned tries;
    int64_t until_ms;
};

enum roll_clock { ROLL_MONOTONIC, ROLL_UNIX, ROLL_CLOCKS };

struct box {
    struct core_box pub;
    bool there; /* on the disk, as far as we know */
    bool up;    /* there is a link to its keeper */
    bool dirty; /* the database does not have what terms say */

    uint64_t deed; /* 0: none under way */
    enum core_deed_kind kind;
    bool background;     /* nobody waits for it */
    uint64_t deed_born;  /* of whom it was ordered */
    bool made_again;     /* CORE_MAKE: an earlier try may be under way, whose box is as good, and must be found where it is */
    unsigned makes;      /* CORE_CHANGE: so many more boxes */
    bool fell;           /* CORE_STOP: the link broke since */
    bool linking;        /* whether there is a link will be told */
    bool started;        /* … and there should be */
    struct box *partner; /* CORE_RENAME: the box and the place it goes to */
    bool had_terms;      /* CORE_MAKE, and the place of CORE_RENAME: the row before */
    struct core_terms before;

    struct wait *head, *tail;
    unsigned waits;

    struct pause row_pause, idle_pause, remove_pause, look_pause, save_pause;
    int64_t saved_ms; /* the idle time that began then has had its checkpoint; 0: none */
    int64_t doubt_ms; /* until then a deed that ended doubtfully may change it */
    unsigned held;    /* somebody on the stack has it: it must not be forgotten */
    uint64_t ticked;
    int64_t due[ROLL_CLOCKS];  /* -1: never */
    size_t place[ROLL_CLOCKS]; /* in the heap, counted from 1; 0: not in it */
};

enum roll_index { ROLL_NAME, ROLL_ID, ROLL_KEY, ROLL_DEED, ROLL_INDEXES };

struct roll {
    struct box **index[ROLL_INDEXES];
    size_t count[ROLL_INDEXES];
    struct box **heap[ROLL_CLOCKS]; /* the first is at 1 */
    size_t heaped[ROLL_CLOCKS];
    size_t room;
};

/* Boxes, and rows without one. */
#define ROLL_MAX (2u * CORE_BOXES_MAX)

/* Adds a box that is not there and has no terms. NULL: no memory, or ROLL_MAX. */
struct box *roll_add(struct roll *r, const struct core_io *io, const char *tenant, const char *name, const char *project_id);
void roll_drop(struct roll *r, struct box *b);
void roll_done(struct roll *r);

/* Not a project's. */
struct box *roll_by_name(const struct roll *r, const char *tenant, const char *name);
struct box *roll_by_id(const struct roll *r, const char *id);
/* After a rename that was cut off two rows may have one key: then the one whose box is there. */
struct box *roll_by_key(const struct roll *r, const char *tenant, const char *key);
struct box *roll_by_deed(const struct roll *r, uint64_t number);

/* The place in the index of names of the first box at or after these. */
size_t roll_from(const struct roll *r, const char *tenant, const char *name, bool project, const char *id);

/* What indexes are made of is changed through these. */
void roll_set_id(struct roll *r, struct box *b, const char *id);
void roll_set_terms(struct roll *r, struct box *b, const struct core_terms *t); /* NULL: none */
void roll_set_deed(struct roll *r, struct box *b, uint64_t number);
void roll_set_due(struct roll *r, struct box *b, enum roll_clock clock, int64_t due); /* -1: never */

struct box *roll_soonest(const struct roll *r, enum roll_clock clock);

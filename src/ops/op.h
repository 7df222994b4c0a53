/* SPDX-License-Identifier: Apache-2.0 */
/* The operations: one table of what can be asked of the daemon. REST routes, the OpenAPI file, MCP tools and the SDK's types come from
 * it, so that they cannot drift apart.
 *
 * A row says who may, what comes in and what goes out; op_table is in the order in which people should read it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

/* What a token may be good for. The order is that of bits in the registry: append only. */
enum op_right {
    RIGHT_NONE, /* whoever may speak to the daemon at all */
    RIGHT_BOX_READ,
    RIGHT_BOX_MAKE,
    RIGHT_BOX_END, /* stop, start, freeze, thaw, terms */
    RIGHT_BOX_REMOVE,
    RIGHT_EXEC,
    RIGHT_JOB_READ,
    RIGHT_FILE_READ,
    RIGHT_FILE_WRITE,
    RIGHT_POLICY_READ,
    RIGHT_POLICY_NARROW,
    RIGHT_POLICY_WIDEN, /* operators only */
    RIGHT_AUDIT,
    RIGHT_PROVE,
    RIGHT_EVENTS,
    RIGHT_METRICS,  /* operators only */
    RIGHT_DOCTOR,   /* operators only */
    RIGHT_TOKENS,   /* operators only */
    RIGHT_WIRE,     /* whatever a box's keeper does for its clients: commands, files, jobs, stop, prove. Not for a box's own token */
    RIGHT_SNAPSHOT, /* keep a box as it is, and go back, which keeps what it was: nothing is lost by either */
    RIGHT_GC,       /* operators only */
    RIGHT_REVIEW, /* land what a box has changed, or throw it away. Not for a box's own token: what leaves a box is not its own to decide */
    RIGHT_IMAGE_READ, /* which images there are; a tenant sees the one that his boxes may be on. Not for a box's own token */
    RIGHT_IMAGES,     /* operators only: make, verify and remove them */
    RIGHT_COUNT,
};

extern const char *const op_right_names[RIGHT_COUNT];

enum op_kind {
    KIND_TEXT,
    KIND_NUMBER,
    KIND_BOOL,
    KIND_TIME,
    KIND_TEXTS,
    KIND_COMMAND,
    KIND_MAP,
    KIND_OBJECT,
    KIND_SECONDS, /* in an answer: with a fraction */
    KIND_LIST_OF, /* in an answer: of shapes */
};
enum op_where { IN_BODY, IN_QUERY };

struct op_field {
    const char *name;
    enum op_kind kind;
    bool required;
    uint64_t most; /* of a text or a list: its length; of a number: its value. 0: no more than the body allows */
    const char *help;
    enum op_where where;
    const char *of; /* KIND_OBJECT and KIND_LIST_OF in an answer: the name of a shape */
};

/* A named shape of an answer. */
struct op_shape {
    const char *name, *help;
    const struct op_field *fields;
};
extern const struct op_shape op_shapes[]; /* ended by a row without name */

enum op_input {
    INPUT_NONE,
    INPUT_JSON,
    INPUT_BYTES,
    INPUT_MESSAGE, /* JSON that the operation reads itself */
};
enum op_output {
    OUTPUT_NOTHING,
    OUTPUT_JSON,
    OUTPUT_LINES,
    OUTPUT_EVENTS,
    OUTPUT_BYTES,
    OUTPUT_TAR,
    OUTPUT_ARCHIVE, /* an export */
    OUTPUT_TEXT,
    OUTPUT_SOCKET,
    OUTPUT_WIRE
};

#define OP_FIELDS_MAX 16

struct op {
    const char *name;   /* "box.create": the operation's id everywhere */
    const char *method; /* of its route */
    const char *path;   /* "/v1/boxes/{box}" */
    enum op_right right;
    const char *summary;
    const struct op_field *fields; /* of the query and the body; NULL: none */
    enum op_input input;
    enum op_output output;
    unsigned status;    /* of success */
    const char *answer; /* the shape, or "Shape[]" for a list under "items" */
    bool operators_only;
    void (*run)(struct call *c);
};

extern const struct op op_table[]; /* ended by a row without name */

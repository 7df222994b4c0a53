/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of a box: what a model is offered, and how its calls are answered.
 *
 * Each tool is a row: its fields are checked as those of an operation are, and it works through operations (mcp/duty.h). Answers are
 * text for a model. What a box says stands in them as content, never as a part of ours that means something. */
#pragma once

#include "mcp/duty.h"
#include "ops/op.h"

#define TOOL_TEXT_MAX (256u << 10) /* bytes of an answer, beyond which a tool must have cut already */
#define TOOL_ANSWER_MAX (8u << 20) /* of an operation that a tool reads */

struct tool;

/* One tool at work for one request. */
struct use {
    struct duty duty; /* first */
    struct mcp_request *r;
    const struct tool *tool;
    json_t *arguments; /* the request's */
    struct value values[OP_FIELDS_MAX];
    void *own; /* the tool's */
    void (*done)(struct use *u);
};

enum tool_hint {
    TOOL_READS = 1,
    TOOL_DESTROYS = 2,
    TOOL_AGAIN = 4 /* twice is as once */,
    TOOL_OPEN = 8 /* reaches beyond the box */,
    TOOL_DISK = 16 /* only of a box that keeps its writes */
};

struct tool {
    const char *name, *title, *description;
    const struct op_field *fields;
    unsigned hints;
    enum op_right right; /* without which it is not even offered */
    void (*run)(struct use *u);
};

extern const struct tool toolbox[]; /* ended by a row without name */
extern const struct mcp_offer toolbox_offer;

/* --- for tools --- */

const struct value *use_value(const struct use *u, const char *name);
const char *use_text(const struct use *u, const char *name, const char *otherwise);
uint64_t use_number(const struct use *u, const char *name, uint64_t otherwise);

/* The answer: text of ours, or with foreign bytes in it. */
void use_answer(struct use *u, const struct buf *text, bool is_error);
void use_say(struct use *u, bool is_error, const char *fmt, ...) PRINTF_LIKE(3, 4);
void use_fail(struct use *u, const struct pale_err *e);

/* Tells the operator of somebody who wanted what he has no right to. */
void use_refuse(const struct mcp_request *r, const struct tool *t);

/* Is the caller one who may say yes for the operator, and can his client ask him? */
bool use_may_widen(const struct mcp_request *r);
bool use_can_ask(const struct use *u);
/* Asks him whether something is to be; the tool is run again with that state. means: what a yes does. use_is_allowed: then, did he say yes?
 */
void use_ask(struct use *u, const char *message, const char *means, const char *state);
bool use_is_allowed(const struct use *u);

/* Runs an operation with those of the use's values that it has a field of that name for, and more (taken over; may be NULL). */
void use_run(struct use *u, const char *op, uint64_t job, json_t *more,
             void (*done)(struct duty *k, const struct pale_err *e, const json_t *answer));

/* tool_exec.c, tool_files.c, tool_policy.c, tool_past.c */
void tool_exec(struct use *u);
void tool_job(struct use *u);
void tool_read(struct use *u);
void tool_write(struct use *u);
void tool_edit(struct use *u);
void tool_list(struct use *u);
void tool_glob(struct use *u);
void tool_grep(struct use *u);
void tool_apply_patch(struct use *u);
void tool_policy(struct use *u);
void tool_diff(struct use *u);
void tool_snapshot(struct use *u);
void tool_restore(struct use *u);

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of tools, tools/list and tools/call. */
#include "mcp/toolbox.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/weak.h"
#include "box/life.h"
#include "box/stack.h"
#include "ops/values.h"
#include "ops/world.h"

#define END                                                                                                                                \
    {                                                                                                                                      \
        0                                                                                                                                  \
    }
#define LIST_MAX (64u << 10)
#define CONTENT_MOST (1u << 20)

/* --- the tools --- */

static const struct op_field exec_fields[] = {
    {"command", KIND_COMMAND, true, 0, "a text for the shell, or a list of words that is run as it is", IN_BODY, NULL},
    {"cwd", KIND_TEXT, false, PATH_BYTES_MAX - 1, "where it begins; the project", IN_BODY, NULL},
    {"timeout", KIND_NUMBER, false, 86400, "seconds after which it is ended with all it started; 120", IN_BODY, NULL},
    {"background", KIND_BOOL, false, 0, "answer at once with the number of a job", IN_BODY, NULL},
    END,
};

static const struct op_field job_fields[] = {
    {"id", KIND_NUMBER, false, INT64_MAX, "its number; without one all jobs are listed", IN_BODY, NULL},
    {"since", KIND_NUMBER, false, INT64_MAX, "the first byte of output wanted; 0", IN_BODY, NULL},
    {"wait", KIND_NUMBER, false, 3600, "seconds to wait for its end first", IN_BODY, NULL},
    {"signal", KIND_NUMBER, false, 64, "send it this signal; 9 ends it with all it started", IN_BODY, NULL},
    END,
};

#define PATH                                                                                                                               \
    {                                                                                                                                      \
        "path", KIND_TEXT, true, PATH_BYTES_MAX - 1, "relative to the project, or absolute", IN_BODY, NULL                                 \
    }
#define FOLDER                                                                                                                             \
    {                                                                                                                                      \
        "path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "a folder; the project", IN_BODY, NULL                                               \
    }

static const struct op_field read_fields[] = {
    PATH,
    {"first", KIND_NUMBER, false, INT64_MAX, "the first line wanted; 1", IN_BODY, NULL},
    {"count", KIND_NUMBER, false, 100000, "how many lines; 2000", IN_BODY, NULL},
    {"tail", KIND_NUMBER, false, 100000, "so many lines from the end instead", IN_BODY, NULL},
    END,
};

static const struct op_field write_fields[] = {
    PATH,
    {"content", KIND_TEXT, true, CONTENT_MOST, "all of it", IN_BODY, NULL},
    END,
};

static const struct op_field edit_fields[] = {
    PATH,
    {"old", KIND_TEXT, true, CONTENT_MOST, "text that is there, exactly, once", IN_BODY, NULL},
    {"new", KIND_TEXT, true, CONTENT_MOST, "text in its place", IN_BODY, NULL},
    {"all", KIND_BOOL, false, 0, "replace every occurrence", IN_BODY, NULL},
    END,
};

static const struct op_field list_fields[] = {FOLDER, END};

static const struct op_field glob_fields[] = {
    {"pattern", KIND_TEXT, true, PATH_BYTES_MAX - 1, "such as **/*.c or src/{a,b}/*.h", IN_BODY, NULL},
    FOLDER,
    {"limit", KIND_NUMBER, false, 10000, "how many at most; 200", IN_BODY, NULL},
    {"hidden", KIND_BOOL, false, 0, "also in folders whose names begin with a dot", IN_BODY, NULL},
    END,
};

static const struct op_field grep_fields[] = {
    {"pattern", KIND_TEXT, true, PATH_BYTES_MAX - 1, "an extended regular expression", IN_BODY, NULL},
    {"path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "a file or folder; the project", IN_BODY, NULL},
    {"glob", KIND_TEXT, false, PATH_BYTES_MAX - 1, "only files whose path fits", IN_BODY, NULL},
    {"mode", KIND_TEXT, false, 16, "content, files or count; content", IN_BODY, NULL},
    {"ignore_case", KIND_BOOL, false, 0, "capital or not", IN_BODY, NULL},
    {"fixed", KIND_BOOL, false, 0, "the pattern is plain text", IN_BODY, NULL},
    {"before", KIND_NUMBER, false, 20, "lines shown before each match", IN_BODY, NULL},
    {"after", KIND_NUMBER, false, 20, "lines shown after each match", IN_BODY, NULL},
    {"limit", KIND_NUMBER, false, 5000, "how many lines at most; 200", IN_BODY, NULL},
    {"hidden", KIND_BOOL, false, 0, "also in folders whose names begin with a dot", IN_BODY, NULL},
    END,
};

static const struct op_field patch_fields[] = {
    {"patch", KIND_TEXT, true, CONTENT_MOST, "a unified diff, or one between *** Begin Patch and *** End Patch", IN_BODY, NULL},
    FOLDER,
    END,
};

static const struct op_field policy_fields[] = {
    {"set", KIND_MAP, false, 16, "keys of the policy and the values you ask for, such as {\"limits.memory\": \"4G\"}", IN_BODY, NULL},
    {"reason", KIND_TEXT, false, 500, "why you need it; the operator reads it", IN_BODY, NULL},
    END,
};

static const struct op_field diff_fields[] = {
    {"path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "only this file or folder; relative to the project, or absolute", IN_BODY, NULL},
    {"patch", KIND_BOOL, false, 0, "the changes line by line; else a line for each file", IN_BODY, NULL},
    {"from", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "since this snapshot, not since the beginning", IN_BODY, NULL},
    END,
};

static const struct op_field snapshot_fields[] = {
    {"name", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "letters, digits, '-', '_' and '.'; without one it gets one", IN_BODY, NULL},
    {"list", KIND_BOOL, false, 0, "take none, list those there are", IN_BODY, NULL},
    END,
};

static const struct op_field restore_fields[] = {
    {"snapshot", KIND_TEXT, true, SNAPSHOT_NAME_MAX, "its name", IN_BODY, NULL},
    {"force", KIND_BOOL, false, 0, "end commands that run first", IN_BODY, NULL},
    END,
};

const struct tool toolbox[] = {
    {"exec", "Run a command",
     "Run a command in the box. Answers with its output, stdout and stderr as they came, and its exit status unless that is 0. Long output "
     "is cut in the middle; job reads the rest.",
     exec_fields, TOOL_DESTROYS | TOOL_OPEN, RIGHT_EXEC, tool_exec},
    {"job", "Look after commands",
     "Commands that run or ran: their output from any byte on, waiting for their end, signals. Without an id it lists them.", job_fields,
     TOOL_DESTROYS, RIGHT_JOB_READ, tool_job},
    {"read", "Read a file", "Read lines of a text file.", read_fields, TOOL_READS | TOOL_AGAIN, RIGHT_FILE_READ, tool_read},
    {"write", "Write a file", "Write a whole file, with the folders above it. What was there is replaced.", write_fields,
     TOOL_DESTROYS | TOOL_AGAIN, RIGHT_FILE_WRITE, tool_write},
    {"edit", "Edit a file", "Replace text in a file. The old text must be there exactly once, unless all is set.", edit_fields,
     TOOL_DESTROYS, RIGHT_FILE_WRITE, tool_edit},
    {"list", "List a folder", "What is in a folder.", list_fields, TOOL_READS | TOOL_AGAIN, RIGHT_FILE_READ, tool_list},
    {"glob", "Find files by name", "Files whose path fits a pattern, newest first.", glob_fields, TOOL_READS | TOOL_AGAIN, RIGHT_FILE_READ,
     tool_glob},
    {"grep", "Search in files", "Lines that match a regular expression, in a file or all files below a folder.", grep_fields,
     TOOL_READS | TOOL_AGAIN, RIGHT_FILE_READ, tool_grep},
    {"apply_patch", "Apply a patch", "Change, add, move or remove files by a patch: all of it, or nothing.", patch_fields, TOOL_DESTROYS,
     RIGHT_FILE_WRITE, tool_apply_patch},
    {"policy", "What the box may do",
     "Shows what this box may do. With set and reason it asks the operator for more, who may say no; the box is then restarted, which ends "
     "its commands.",
     policy_fields, TOOL_OPEN, RIGHT_POLICY_READ, tool_policy},
    {"diff", "What has changed",
     "What this box has changed so far: in the project where the box has its own view of it (policy: project review), else in its home. "
     "With path: there, or in /tmp, or where it has installed something.",
     diff_fields, TOOL_READS | TOOL_AGAIN | TOOL_DISK, RIGHT_FILE_READ, tool_diff},
    {"snapshot", "Keep the box as it is",
     "Keep the box's files as they are now: home, /tmp, what is installed, and the project where the box has its own view of it (policy: "
     "project review). Takes milliseconds; no command may run meanwhile. restore brings them back.",
     snapshot_fields, TOOL_DISK, RIGHT_SNAPSHOT, tool_snapshot},
    {"restore", "Go back to a snapshot",
     "Make the box's files as they were at a snapshot. What they are now is kept first, as a snapshot of its own, so that this can be "
     "undone.",
     restore_fields, TOOL_DESTROYS | TOOL_DISK, RIGHT_SNAPSHOT, tool_restore},
    {0},
};

static_assert(sizeof(grep_fields) / sizeof(grep_fields[0]) <= OP_FIELDS_MAX + 1, "a use has room for every field");

/* --- tools/list --- */

static bool has_right(const struct mcp_request *r, const struct tool *t)
{
    return r->who.rights >> t->right & 1;
}

/* Are its writes in memory, where nothing can be kept of them? In doubt the operation will tell. */
static bool is_in_memory(const struct mcp_request *r)
{
    struct place p;
    bool found = false;
    return place_by_id(r->box, &p, NULL) == 0 && life_has_line(&p, "scratch memory\n", &found, NULL) == 0 && found;
}

static bool is_offered(const struct mcp_request *r, const struct tool *t)
{
    return has_right(r, t) && !((t->hints & TOOL_DISK) && is_in_memory(r));
}

static void text_schema(struct json *j)
{
    json_text(j, "type", "string");
}

static void schema_of(struct json *j, const struct op_field *f)
{
    static const char *const types[] = {[KIND_TEXT] = "string", [KIND_NUMBER] = "integer", [KIND_BOOL] = "boolean", [KIND_MAP] = "object"};
    json_text(j, "description", f->help);
    if (f->kind == KIND_COMMAND) {
        json_begin_list(j, "anyOf");
        json_begin_object(j, NULL);
        text_schema(j);
        json_end_object(j);
        json_begin_object(j, NULL);
        json_text(j, "type", "array");
        json_begin_object(j, "items");
        text_schema(j);
        json_end_object(j);
        json_end_object(j);
        json_end_list(j);
        return;
    }
    json_text(j, "type", types[f->kind]);
    if (f->kind == KIND_NUMBER)
        json_u64(j, "minimum", 0);
    if (f->kind == KIND_MAP) {
        json_begin_object(j, "additionalProperties");
        text_schema(j);
        json_end_object(j);
    }
}

static void put_schema(struct json *j, const struct op_field *fields)
{
    bool required = false;
    json_begin_object(j, "inputSchema");
    json_text(j, "type", "object");
    json_begin_object(j, "properties");
    for (const struct op_field *f = fields; f->name; f++) {
        required = required || f->required;
        json_begin_object(j, f->name);
        schema_of(j, f);
        json_end_object(j);
    }
    json_end_object(j);
    if (required) {
        json_begin_list(j, "required");
        for (const struct op_field *f = fields; f->name; f++)
            if (f->required)
                json_text(j, NULL, f->name);
        json_end_list(j);
    }
    json_bool(j, "additionalProperties", false);
    json_end_object(j);
}

static void put_tool(struct json *j, const struct tool *t)
{
    json_begin_object(j, NULL);
    json_text(j, "name", t->name);
    json_text(j, "title", t->title);
    json_text(j, "description", t->description);
    put_schema(j, t->fields);
    json_begin_object(j, "annotations");
    json_text(j, "title", t->title);
    json_bool(j, "readOnlyHint", t->hints & TOOL_READS);
    json_bool(j, "destructiveHint", t->hints & TOOL_DESTROYS);
    json_bool(j, "idempotentHint", t->hints & TOOL_AGAIN);
    json_bool(j, "openWorldHint", t->hints & TOOL_OPEN);
    json_end_object(j);
    json_end_object(j);
}

static void tools_list(struct mcp_request *r)
{
    own_buf b = {0};
    struct json j;
    const json_t *cursor = json_object_get(r->message.params, "cursor");
    if (cursor)
        return mcp_error(r, RPC_BAD_PARAMS, "cursor: there is one page only");
    buf_init(&b, LIST_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "tools");
    for (const struct tool *t = toolbox; t->name; t++)
        if (is_offered(r, t))
            put_tool(&j, t);
    json_end_list(&j);
    json_end_object(&j);
    mcp_result(r, b.failed ? NULL : json_loadb((const char *)b.data, b.len, 0, NULL));
}

/* --- tools/call --- */

static void let_go(struct mcp_request *r)
{
    struct use *u = r->own;
    r->own = NULL;
    duty_done(&u->duty, r->goes_on && !r->answered);
    if (u->done)
        u->done(u);
    free(u);
}

static const struct tool *find_tool(const struct mcp_request *r, const char *name)
{
    for (const struct tool *t = toolbox; t->name; t++)
        if (strcmp(t->name, name) == 0 && is_offered(r, t))
            return t;
    return NULL;
}

void use_refuse(const struct mcp_request *r, const struct tool *t)
{
    if (r->world->refused)
        r->world->refused(r->who.token, "an MCP tool", t->name);
}

static void no_tool(struct mcp_request *r, const char *name)
{
    char shown[80];
    struct nearest near;
    nearest_init(&near, name);
    for (const struct tool *t = toolbox; t->name; t++)
        if (is_offered(r, t))
            nearest_offer(&near, t->name);
        else if (strcmp(t->name, name) == 0 && !has_right(r, t))
            use_refuse(r, t);
    quote_into(shown, sizeof(shown), name, strlen(name));
    mcp_error(r, RPC_BAD_PARAMS, near.best ? "there is no tool %s; did you mean %s?" : "there is no tool %s%s", shown,
              near.best ? near.best : "");
}

static void tools_call(struct mcp_request *r)
{
    struct pale_err e;
    const char *name = mcp_param_text(r, "name");
    json_t *arguments = json_object_get(r->message.params, "arguments");
    if (!name || (arguments && !json_is_object(arguments)))
        return mcp_error(r, RPC_BAD_PARAMS, "tools/call needs name, and arguments that are an object");
    const struct tool *t = find_tool(r, name);
    if (!t)
        return no_tool(r, name);
    struct use *u = r->own; /* there already if it has asked the client */
    if (!u && !(u = calloc(1, sizeof(*u))))
        return mcp_error(r, RPC_INTERNAL, "out of memory");
    if (!r->own) {
        r->own = u;
        r->left = let_go;
        u->r = r;
        u->tool = t;
        u->arguments = arguments;
        duty_init(&u->duty, r, TOOL_ANSWER_MAX);
        if (values_object(t->name, t->fields, arguments, u->values, &e) < 0)
            return use_fail(u, &e);
    }
    t->run(u);
}

static const struct mcp_method methods[] = {
    {"tools/list", MCP_BOTH, NULL, false, true, tools_list},
    {"tools/call", MCP_BOTH, "name", true, false, tools_call},
    {0},
};

const struct mcp_offer toolbox_offer = {
    .name = "pale",
    .title = "pale",
    .instructions =
        "These tools work in a box: commands and files there, not on the machine you run on. The project lies at its usual path. "
        "What is refused is told with the rule and the remedy; policy shows what the box may do.",
    .capabilities = "{\"tools\": {}}",
    .methods = methods,
    .needs_box = true,
};

/* --- for tools --- */

const struct value *use_value(const struct use *u, const char *name)
{
    static const struct value none;
    for (size_t i = 0; u->tool->fields[i].name; i++)
        if (strcmp(u->tool->fields[i].name, name) == 0)
            return &u->values[i];
    return &none;
}

const char *use_text(const struct use *u, const char *name, const char *otherwise)
{
    const struct value *v = use_value(u, name);
    return v->given ? v->text : otherwise;
}

uint64_t use_number(const struct use *u, const char *name, uint64_t otherwise)
{
    const struct value *v = use_value(u, name);
    return v->given ? v->number : otherwise;
}

void use_answer(struct use *u, const struct buf *text, bool is_error)
{
    json_t *t = text->failed ? NULL : rpc_text(text->data ? text->data : (const uint8_t *)"", text->len);
    json_t *result = t ? json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text", t) : NULL;
    if (result && is_error)
        json_object_set_new(result, "isError", json_true());
    mcp_result(u->r, result);
}

void use_say(struct use *u, bool is_error, const char *fmt, ...)
{
    own_buf b = {0};
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    buf_init(&b, sizeof(text));
    buf_add_text(&b, text);
    use_answer(u, &b, is_error);
}

void use_fail(struct use *u, const struct pale_err *e)
{
    use_say(u, true, "%s: %s", err_name(e->code), e->text);
}

bool use_may_widen(const struct mcp_request *r)
{
    return (r->who.scope == CALLER_OPERATOR && (r->who.rights >> RIGHT_POLICY_WIDEN & 1)) || weak_word("widen");
}

bool use_can_ask(const struct use *u)
{
    return use_may_widen(u->r) && mcp_can(u->r, "elicitation");
}

void use_ask(struct use *u, const char *message, const char *means, const char *state)
{
    mcp_ask(u->r,
            json_pack("{s:{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s, s:s}}, s:[s]}}}}", "allow", "method", "elicitation/create", "params",
                      "mode", "form", "message", message, "requestedSchema", "type", "object", "properties", "allow", "type", "boolean",
                      "title", "Allow it", "description", means, "required", "allow"),
            state);
}

bool use_is_allowed(const struct use *u)
{
    const json_t *answer = json_object_get(u->r->answers, "allow");
    const char *action = json_string_value(json_object_get(answer, "action"));
    return action && strcmp(action, "accept") == 0 && json_is_true(json_object_get(json_object_get(answer, "content"), "allow"));
}

void use_run(struct use *u, const char *op, uint64_t job, json_t *more,
             void (*done)(struct duty *k, const struct pale_err *e, const json_t *answer))
{
    json_t *values = more ? more : json_object(), *v;
    const char *key;
    json_object_foreach(u->arguments, key, v) if (duty_takes(op, key) && !json_object_get(values, key)) json_object_set(values, key, v);
    u->duty.done = done;
    duty_run(&u->duty, op, job, values);
}

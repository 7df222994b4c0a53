/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the OpenAPI description, which is written from the table of operations. */
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"
#include "wire/message.h"

#define TEXT_MAX (1u << 20)

static void reference(struct json *j, const char *shape, size_t n)
{
    char ref[80];
    snprintf(ref, sizeof(ref), "#/components/schemas/%.*s", (int)n, shape);
    json_text(j, "$ref", ref);
}

/* asked: what comes in is never negative; a moment in an answer may lie before 1970. */
static void schema_of(struct json *j, const struct op_field *f, bool asked)
{
    static const char *const types[] = {[KIND_TEXT] = "string", [KIND_NUMBER] = "integer", [KIND_BOOL] = "boolean",  [KIND_TEXTS] = "array",
                                        [KIND_MAP] = "object",  [KIND_OBJECT] = "object",  [KIND_SECONDS] = "number"};
    json_text(j, "description", f->help);
    if (f->of && f->kind == KIND_LIST_OF) {
        json_text(j, "type", "array");
        json_begin_object(j, "items");
        reference(j, f->of, strlen(f->of));
        return json_end_object(j);
    }
    if (f->of)
        return reference(j, f->of, strlen(f->of));
    if (f->kind == KIND_TIME || f->kind == KIND_COMMAND) {
        /* Seconds or "30s"; words or a line for the shell. */
        json_begin_list(j, "type");
        json_text(j, NULL, "string");
        json_text(j, NULL, f->kind == KIND_TIME ? "number" : "array");
        json_end_list(j);
    } else
        json_text(j, "type", types[f->kind]);
    if (f->kind == KIND_TEXTS || f->kind == KIND_COMMAND) {
        json_begin_object(j, "items");
        json_text(j, "type", "string");
        json_end_object(j);
    }
    if (f->most && (f->kind == KIND_TEXT || f->kind == KIND_TIME))
        json_u64(j, "maxLength", f->most);
    if (asked && f->kind == KIND_NUMBER)
        json_u64(j, "minimum", 0);
    if (f->most && f->kind == KIND_NUMBER)
        json_u64(j, "maximum", f->most);
    if (f->most && f->kind == KIND_TEXTS)
        json_u64(j, "maxItems", f->most);
}

/* An object of those fields that have their place there. */
static void object_of(struct json *j, const struct op_field *fields, enum op_where where, bool asked)
{
    bool required = false;
    json_text(j, "type", "object");
    json_begin_object(j, "properties");
    for (const struct op_field *f = fields; f && f->name; f++)
        if (f->where == where) {
            required = required || f->required;
            json_begin_object(j, f->name);
            schema_of(j, f, asked);
            json_end_object(j);
        }
    json_end_object(j);
    if (asked)
        json_bool(j, "additionalProperties", false);
    if (!required)
        return;
    json_begin_list(j, "required");
    for (const struct op_field *f = fields; f->name; f++)
        if (f->where == where && f->required)
            json_text(j, NULL, f->name);
    json_end_list(j);
}

static void parameter(struct json *j, const char *name, const char *in, const struct op_field *f)
{
    json_begin_object(j, NULL);
    json_text(j, "name", name);
    json_text(j, "in", in);
    json_bool(j, "required", !f || f->required);
    json_begin_object(j, "schema");
    if (f)
        schema_of(j, f, true);
    else
        json_text(j, "type", "string");
    json_end_object(j);
    json_end_object(j);
}

/* What a request for the keeper's protocol must say. */
static void wire_headers(struct json *j)
{
    char version[16];
    snprintf(version, sizeof(version), "%u", WIRE_VERSION);
    const char *const rows[][2] = {{"Connection", "Upgrade"}, {"Upgrade", "pale-wire"}, {"Pale-Wire-Version", version}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_begin_object(j, NULL);
        json_text(j, "name", rows[i][0]);
        json_text(j, "in", "header");
        json_bool(j, "required", true);
        json_begin_object(j, "schema");
        json_text(j, "type", "string");
        json_text(j, "const", rows[i][1]);
        json_end_object(j);
        json_end_object(j);
    }
}

static void parameters(struct json *j, const struct op *o)
{
    json_begin_list(j, "parameters");
    for (const char *at = strchr(o->path, '{'); at; at = strchr(at + 1, '{')) {
        char name[32];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        parameter(j, name, "path", NULL);
    }
    for (const struct op_field *f = o->fields; f && f->name; f++)
        if (f->where == IN_QUERY)
            parameter(j, f->name, "query", f);
    if (o->output == OUTPUT_WIRE)
        wire_headers(j);
    json_end_list(j);
}

static void request_body(struct json *j, const struct op *o)
{
    if (o->input == INPUT_NONE)
        return;
    json_begin_object(j, "requestBody");
    json_begin_object(j, "content");
    json_begin_object(j, o->input == INPUT_BYTES ? "application/octet-stream" : "application/json");
    json_begin_object(j, "schema");
    if (o->input == INPUT_JSON)
        object_of(j, o->fields, IN_BODY, true);
    if (o->input == INPUT_MESSAGE) {
        json_text(j, "type", "object");
        json_text(j, "description", "a message of JSON-RPC 2.0; an error in it is answered with one");
    }
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
}

static void answer_schema(struct json *j, const struct op *o)
{
    size_t n = o->answer ? strcspn(o->answer, "[") : 0;
    json_begin_object(j, "schema");
    if (o->answer && o->answer[n] == '[') {
        json_text(j, "type", "object");
        json_begin_object(j, "properties");
        json_begin_object(j, "items");
        json_text(j, "type", "array");
        json_begin_object(j, "items");
        reference(j, o->answer, n);
        json_end_object(j);
        json_end_object(j);
        json_end_object(j);
    } else if (o->answer)
        reference(j, o->answer, n);
    json_end_object(j);
}

static void responses(struct json *j, const struct op *o)
{
    static const char *const types[] = {
        [OUTPUT_JSON] = "application/json",          [OUTPUT_LINES] = "application/x-ndjson", [OUTPUT_EVENTS] = "text/event-stream",
        [OUTPUT_BYTES] = "application/octet-stream", [OUTPUT_TAR] = "application/x-tar",      [OUTPUT_TEXT] = "text/plain",
        [OUTPUT_ARCHIVE] = "application/zstd"};
    char status[16];
    snprintf(status, sizeof(status), "%u", o->status);
    json_begin_object(j, "responses");
    json_begin_object(j, status);
    json_text(j, "description",
              o->output == OUTPUT_SOCKET ? "A WebSocket."
              : o->output == OUTPUT_WIRE ? "Frames of the keeper's protocol, both ways, until one side ends."
                                         : "Done.");
    if (o->output != OUTPUT_NOTHING && o->status != 101) {
        json_begin_object(j, "content");
        json_begin_object(j, types[o->output]);
        answer_schema(j, o);
        json_end_object(j);
        json_end_object(j);
    }
    json_end_object(j);
    json_begin_object(j, "default");
    json_text(j, "$ref", "#/components/responses/Problem");
    json_end_object(j);
    json_end_object(j);
}

static void operation(struct json *j, const struct op *o)
{
    char method[16] = "";
    for (size_t i = 0; o->method[i] && i + 1 < sizeof(method); i++)
        method[i] = (char)(o->method[i] | 0x20);
    json_begin_object(j, method);
    json_text(j, "operationId", o->name);
    json_text(j, "summary", o->summary);
    json_text(j, "x-pale-right", op_right_names[o->right]);
    json_bool(j, "x-pale-operators-only", o->operators_only);
    parameters(j, o);
    request_body(j, o);
    responses(j, o);
    json_end_object(j);
}

static void paths(struct json *j)
{
    json_begin_object(j, "paths");
    for (const struct op *o = op_table; o->name; o++) {
        bool seen = false;
        for (const struct op *before = op_table; before < o; before++)
            seen = seen || strcmp(before->path, o->path) == 0;
        if (seen)
            continue;
        json_begin_object(j, o->path);
        for (const struct op *same = o; same->name; same++)
            if (strcmp(same->path, o->path) == 0)
                operation(j, same);
        json_end_object(j);
    }
    json_end_object(j);
}

static void problem(struct json *j)
{
    json_begin_object(j, "Problem");
    json_text(j, "type", "object");
    json_begin_object(j, "properties");
    json_begin_object(j, "status");
    json_text(j, "type", "integer");
    json_end_object(j);
    json_begin_object(j, "code");
    json_text(j, "type", "string");
    json_begin_list(j, "enum");
    for (int i = 1; i < PALE_CODE_COUNT; i++)
        json_text(j, NULL, err_name((enum pale_code)i));
    json_end_list(j);
    json_end_object(j);
    json_begin_object(j, "detail");
    json_text(j, "type", "string");
    json_text(j, "description", "what was tried, on what, why it failed and what to do next");
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
}

static void components(struct json *j)
{
    json_begin_object(j, "components");
    json_begin_object(j, "schemas");
    for (const struct op_shape *s = op_shapes; s->name; s++) {
        json_begin_object(j, s->name);
        json_text(j, "description", s->help);
        object_of(j, s->fields, IN_BODY, false);
        json_end_object(j);
    }
    problem(j);
    json_end_object(j);
    json_begin_object(j, "responses");
    json_begin_object(j, "Problem");
    json_text(j, "description", "It failed.");
    json_begin_object(j, "content");
    json_begin_object(j, "application/problem+json");
    json_begin_object(j, "schema");
    reference(j, "Problem", 7);
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
    json_begin_object(j, "securitySchemes");
    json_begin_object(j, "token");
    json_text(j, "type", "http");
    json_text(j, "scheme", "bearer");
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
}

void openapi_write(struct buf *b)
{
    struct json j;
    json_start(&j, b);
    json_begin_object(&j, NULL);
    json_text(&j, "openapi", "3.1.0");
    json_begin_object(&j, "info");
    json_text(&j, "title", "pale");
    json_text(&j, "version", PALE_VERSION);
    json_text(&j, "description", "Boxes for what agents execute. Over the unix socket the user needs no token; over TCP everybody does.");
    json_end_object(&j);
    paths(&j);
    components(&j);
    json_begin_list(&j, "security");
    json_begin_object(&j, NULL);
    json_begin_list(&j, "token");
    json_end_list(&j);
    json_end_object(&j);
    json_end_list(&j);
    json_end_object(&j);
}

void op_openapi(struct call *c)
{
    own_buf b = {0};
    buf_init(&b, TEXT_MAX);
    openapi_write(&b);
    call_json(c, &b);
}

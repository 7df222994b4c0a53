/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the daemon's front, from a client's bytes through rest/, ops/ and fleet/ to keepers that answer what they like.
 *
 * An input is a byte of settings and a run of steps. A step is a byte that says which (its highest bit: the loop is not turned after it),
 * then what it needs. Lengths are one byte; texts end with a NUL. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "chosen_op.h"
#include "rest_rig.h"
#include "net/wsframe.h"
#include "wire/answer.h"
#include "wire/fileline.h"

#define STEPS_MAX 96

/* --- clients --- */

static struct rig_conn *client_of(struct input *in)
{
    return rig_nth(RIG_CLIENT, input_byte(in));
}

static void step_connect(struct input *in)
{
    uint8_t how = input_byte(in);
    struct rig_conn *c = rig_client(how & 1, (how & 6) == 6);
    if (c)
        c->split = how >> 3;
}

static void step_send(struct input *in)
{
    size_t n;
    struct rig_conn *c = client_of(in);
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    if (c)
        rig_push(c, p, n);
}

/* The same byte many times, which may be the rest of a body. */
static void step_repeat(struct input *in)
{
    static uint8_t mem[UINT16_MAX];
    struct rig_conn *c = client_of(in);
    size_t n = input_number(in, 2);
    memset(mem, input_byte(in), n);
    if (c)
        rig_push(c, mem, n);
}

/* The path of an operation with something in the place of its parameters. */
static void add_path(struct buf *b, const struct op *o, uint8_t how)
{
    static const char *const boxes[8] = {
        "a",   "b", "c", "p", "000000000000000000000000000000b0", "000000000000000000000000000000b2", "000000000000000000000000000000b3",
        "none"};
    for (const char *at = o->path; *at;) {
        size_t n = strcspn(at, "{");
        buf_add(b, at, n);
        at += n;
        if (*at != '{')
            break;
        if (strncmp(at, "{box}", 5) == 0)
            buf_add_text(b, boxes[how & 7]);
        else if (strncmp(at, "{job}", 5) == 0)
            buf_add_text(b, how & 8 ? "7" : "1");
        else
            buf_add_text(b, "00000000000000a1");
        at += strcspn(at, "}") + 1;
    }
}

/* What the operation cannot do without, for an input that says nothing. */
static void add_needed(struct buf *b, const struct op *o, enum op_where where)
{
    bool first = true;
    for (size_t i = 0; o->fields && o->fields[i].name; i++) {
        const struct op_field *f = &o->fields[i];
        if (f->where != where || !f->required)
            continue;
        if (where == IN_QUERY)
            buf_addf(b, "%s%s=x", first ? "" : "&", f->name);
        else
            buf_addf(b, f->kind == KIND_COMMAND ? "%c\"%s\":[\"x\"]" : "%c\"%s\":\"x\"", first ? '{' : ',', f->name);
        first = false;
    }
    if (where == IN_BODY)
        buf_add_text(b, first ? "{}" : "}");
}

static void add_headers(struct buf *b, const struct op *o, uint8_t who, uint8_t how, const char *extra)
{
    static const char *const tokens[8] = {NULL, "op", "te", "bo", "ex", "ro", "none", NULL};
    static const char *const accepts[4] = {NULL, "application/x-ndjson", "text/event-stream", "*/*"};
    buf_addf(b, " HTTP/1.1\r\nHost: localhost:%u\r\n", RIG_PORT);
    if (tokens[who])
        buf_addf(b, "Authorization: Bearer %s\r\n", tokens[who]);
    if (accepts[how & 3])
        buf_addf(b, "Accept: %s\r\n", accepts[how & 3]);
    if (how & 4)
        buf_add_text(b, "Idempotency-Key: k\r\n");
    if (how & 16)
        buf_add_text(b, "Expect: 100-continue\r\n");
    if (o->output == OUTPUT_SOCKET && !(how & 32))
        buf_add_text(b, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    else if (o->output == OUTPUT_WIRE && !(how & 32))
        buf_add_text(b, "Connection: Upgrade\r\nUpgrade: pale-wire\r\nPale-Wire-Version: " WIRE_VERSION_TEXT "\r\n");
    else if (how & 64)
        buf_add_text(b, "Connection: close\r\n");
    if (extra[0])
        buf_addf(b, "%s: %s\r\n", o->output == OUTPUT_BYTES ? "Range" : "Last-Event-ID", extra);
}

/* A request that is well-formed, of any operation. */
static void step_request(struct input *in)
{
    struct rig_conn *c = client_of(in);
    const struct op *o = op_chosen(in);
    uint8_t which = input_byte(in), how = input_byte(in);
    char query[300], extra[80] = "";
    size_t n, n_query = input_text(in, query, sizeof(query));
    if (how & 128)
        input_text(in, extra, sizeof(extra));
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    if (!c)
        return;
    own_buf b = {0}, body = {0};
    buf_init(&b, 65536);
    buf_init(&body, 65536);
    buf_addf(&b, "%s ", o->method);
    add_path(&b, o, which);
    buf_add_text(&b, "?");
    if (n_query)
        buf_add(&b, query, n_query);
    else
        add_needed(&b, o, IN_QUERY);
    if (b.data[b.len - 1] == '?')
        b.len--;
    add_headers(&b, o, which >> 4 & 7, how, extra);
    buf_add(&body, p, n);
    if (n == 0 && o->input == INPUT_JSON)
        add_needed(&body, o, IN_BODY);
    if (o->input == INPUT_JSON && body.len)
        buf_add_text(&b, "Content-Type: application/json\r\n");
    if (body.len && how & 8)
        buf_addf(&b, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", body.len);
    else
        buf_addf(&b, body.len ? "Content-Length: %zu\r\n\r\n" : "\r\n", body.len);
    buf_add(&b, body.data, body.len);
    if (body.len && how & 8)
        buf_add_text(&b, which & 128 ? "\r\n" : "\r\n0\r\n\r\n");
    rig_push(c, b.data, b.len);
}

#define MODERN                                                                                                                             \
    "\"io.modelcontextprotocol/protocolVersion\":\"" MCP_MODERN_VERSION                                                                    \
    "\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}"

/* What a tool is called with: as the input says, or what it cannot do without. */
static void add_arguments(struct buf *b, const struct tool *t, const uint8_t *p, size_t n)
{
    const struct op like = {.fields = t->fields};
    if (n)
        buf_add(b, p, n);
    else
        add_needed(b, &like, IN_BODY);
}

/* A message of MCP that is well-formed, of any tool: as a request, or as a line of a connection that has left HTTP. */
static void step_message(struct input *in)
{
    static const char *const others[] = {"tools/list", "server/discover", "initialize", "ping", "notifications/cancelled", "nope"};
    struct rig_conn *c = client_of(in);
    uint8_t which = input_byte(in), how = input_byte(in), box = input_byte(in);
    size_t n, tools = 0;
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    own_buf b = {0}, head = {0};
    while (toolbox[tools].name)
        tools++;
    const struct tool *t = &toolbox[which % tools];
    const char *method = how & 1 ? others[which % 6] : "tools/call";
    bool modern = how & 2;
    if (!c)
        return;
    buf_init(&b, 65536);
    buf_init(&head, 65536);
    buf_addf(&b, "{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":{", how & 4 ? "" : "\"id\":1,", method);
    if (how & 1)
        buf_add_text(&b, "\"requestId\":1,\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},\"clientInfo\":{}");
    else {
        buf_addf(&b, "\"name\":\"%s\",\"arguments\":", t->name);
        add_arguments(&b, t, p, n);
    }
    buf_addf(&b, ",\"_meta\":{\"progressToken\":\"t\"%s}}}\n", modern ? "," MODERN : "");
    if (c->answers.state == ANSWER_WIRE)
        return rig_push(c, b.data, b.len);
    buf_add_text(&head, "POST ");
    for (const struct op *o = op_table; o->name; o++)
        if (strcmp(o->name, "mcp") == 0) {
            add_path(&head, o, box);
            add_headers(&head, o, box >> 4 & 7, how & 8 ? 2 : 0, "");
        }
    if (modern)
        buf_addf(&head, "MCP-Protocol-Version: " MCP_MODERN_VERSION "\r\nMcp-Method: %s\r\nMcp-Name: %s\r\n", method, t->name);
    buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", b.len);
    rig_push(c, head.data, head.len);
    rig_push(c, b.data, b.len);
}

static void step_frame(struct input *in)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    struct rig_conn *c = client_of(in);
    uint8_t op = input_byte(in), head[WS_HEAD_MAX], data[256];
    size_t n;
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    for (size_t i = 0; i < n; i++)
        data[i] = p[i] ^ mask[i % 4];
    if (!c)
        return;
    /* More than one of them, as bits say, which a client may send without reading the answers. */
    for (int i = 0; i < 1 << (op >> 4 & 7); i++) {
        rig_push(c, head, ws_put_head(head, op & 15, op & 128, n, mask));
        rig_push(c, data, n);
    }
}

/* It stops reading, takes a little, a little more once the daemon has found it full, or everything from now on. */
static void step_room(struct input *in, enum rig_kind kind)
{
    struct rig_conn *c = rig_nth(kind, input_byte(in));
    uint8_t now = input_byte(in), soon = input_byte(in);
    if (!c)
        return;
    c->room = now == 255 ? SIZE_MAX : now * 64u;
    c->refill = c->room == SIZE_MAX ? 0 : soon * 256u;
    c->answers.slow = true;
}

static void step_leave(struct input *in)
{
    struct rig_conn *c = client_of(in);
    if (!c)
        return;
    if (input_byte(in) & 1)
        c->shut = true;
    else
        c->gone = true;
}

/* --- keepers --- */

static void say_number(struct rig_conn *c, uint8_t type, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    rig_frame(c, type, b, sizeof(b));
}

static void say_result(struct rig_conn *c, struct input *in)
{
    uint8_t mem[512];
    char text[200];
    struct record_writer w;
    struct msg_result m = {.flags = input_byte(in), .status = input_byte(in), .time_us = 7, .message = text};
    input_text(in, text, sizeof(text));
    record_start(&w, mem, sizeof(mem));
    msg_result_write(&m, &w);
    rig_frame(c, TELL_RESULT, mem, w.len);
}

static void say_error(struct rig_conn *c, struct input *in)
{
    uint8_t mem[512];
    char text[200];
    struct record_writer w;
    struct msg_error m = {.code = input_byte(in), .text = text};
    input_text(in, text, sizeof(text));
    record_start(&w, mem, sizeof(mem));
    msg_error_write(&m, &w);
    rig_frame(c, TELL_ERROR, mem, w.len);
}

static void say_job(struct rig_conn *c, struct input *in)
{
    uint8_t mem[512];
    char text[200];
    struct record_writer w;
    struct msg_job m = {
        .id = input_byte(in), .pid = 3, .state = input_byte(in) % JOB_STATE_COUNT, .key = "", .command = text, .message = ""};
    m.in_bytes = input_number(in, 2);
    m.out_bytes = m.in_bytes * m.in_bytes;
    input_text(in, text, sizeof(text));
    record_start(&w, mem, sizeof(mem));
    msg_job_write(&m, &w);
    rig_frame(c, TELL_JOB, mem, w.len);
}

static void say_entry(struct rig_conn *c, struct input *in)
{
    char mem[FILE_ENTRY_MAX], name[200];
    struct file_entry en = {.type = "fdlpscb?"[input_byte(in) % 8], .mode = 0644, .size = input_number(in, 2), .name = name, .target = ""};
    input_text(in, name, sizeof(name));
    if (en.type == 'l')
        en.target = "there";
    rig_frame(c, TELL_STDOUT, mem, file_entry_write(&en, mem));
}

static void say_happening(struct rig_conn *c, struct input *in)
{
    char mem[FILE_EVENT_MAX], name[200];
    uint8_t kind = input_byte(in);
    struct file_event ev = {.kind = (kind & 127) % FILE_HAPPENING_COUNT, .folder = kind & 128, .name = name};
    input_text(in, name, sizeof(name));
    rig_frame(c, TELL_STDOUT, mem, file_event_write(&ev, mem));
}

static void say_answer(struct rig_conn *c, struct input *in)
{
    static char mem[ANSWER_HEAD_MAX + 256];
    char name[200], text[200];
    uint8_t kind = input_byte(in);
    struct answer a = {.kind = (enum answer_kind)(kind % ANSWER_KIND_COUNT),
                       .type = "fdacrml?"[input_byte(in) % 8],
                       .path = name,
                       .other = "",
                       .text = text};
    a.line = input_byte(in);
    a.count = a.last = input_number(in, 2);
    a.flags = kind >> 4;
    a.total = a.flags & ANSWER_TOTAL ? a.last : 0;
    input_text(in, name, sizeof(name));
    a.text_len = input_text(in, text, sizeof(text));
    if (a.type == 'm')
        a.other = "there";
    size_t n = answer_head_write(&a, mem);
    bool has_text = a.kind == ANSWER_LINES || a.kind == ANSWER_MATCH || a.kind == ANSWER_CONTEXT;
    memcpy(mem + n, text, a.text_len);
    rig_frame(c, TELL_STDOUT, mem, n + (has_text ? a.text_len : 0));
}

static void say_much(struct rig_conn *c, struct input *in)
{
    static uint8_t mem[255 * 256];
    size_t n = input_byte(in) * 256u;
    memset(mem, input_byte(in), n);
    rig_frame(c, TELL_STDOUT, mem, n);
}

static void say_bytes(struct rig_conn *c, uint8_t type, struct input *in)
{
    size_t n;
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    rig_frame(c, type, p, n);
}

static void step_say(struct input *in)
{
    struct rig_conn *c = rig_nth(RIG_KEEPER, input_byte(in));
    uint8_t what = input_byte(in);
    if (!c)
        return;
    switch (what % 16) {
    case 0:
        return say_number(c, TELL_STARTED, input_byte(in));
    case 1:
        return say_bytes(c, TELL_STDOUT, in);
    case 2:
        return say_bytes(c, TELL_STDERR, in);
    case 3:
        return say_result(c, in);
    case 4:
        return say_error(c, in);
    case 5:
        return rig_tell_info(c, what & 16 ? "frozen" : "running", input_byte(in));
    case 6:
        return say_job(c, in);
    case 7:
        return rig_frame(c, TELL_DONE, NULL, 0);
    case 8:
        return say_bytes(c, TELL_RECEIPT, in);
    case 9:
        return say_number(c, TELL_MISSED, input_number(in, 2) * (what & 16 ? UINT64_MAX / 65535 : 1));
    case 10:
        return say_number(c, TELL_OFFSET, input_number(in, 2) * (what & 16 ? UINT64_MAX / 65535 : 1));
    case 11:
        return say_entry(c, in);
    case 12:
        return say_happening(c, in);
    case 13:
        return say_much(c, in);
    case 14:
        return say_answer(c, in);
    default:
        return say_bytes(c, input_byte(in), in);
    }
}

/* Bytes that need be no frame. */
static void step_babble(struct input *in)
{
    size_t n;
    struct rig_conn *c = rig_nth(RIG_KEEPER, input_byte(in));
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    if (c) {
        c->started = c->input_told = false;
        c->wild = true;
        rig_push(c, p, n);
    }
}

static void step_end(struct input *in)
{
    struct rig_conn *c = rig_nth(RIG_KEEPER, input_byte(in));
    if (!c)
        return;
    if (input_byte(in) & 1 && c->box >= 0)
        rig_kill_keeper(c->box);
    else
        c->gone = true;
}

/* --- the rest of the world --- */

static void step_deed(struct input *in)
{
    struct rig_conn *c = rig_nth(RIG_DEED, input_byte(in));
    uint8_t how = input_byte(in);
    char text[120];
    if (!c || c->gone)
        return;
    switch (how % 4) {
    case 0:
        return rig_do_deed(c);
    case 1:
        input_text(in, text, sizeof(text));
        return rig_answer_deed(c, how >> 2, text, c->deed.id);
    case 2:
        c->gone = true;
        return;
    default:
        return say_bytes(c, DEED_DONE, in);
    }
}

/* Somebody else does something to a box. */
static void step_disk(struct input *in)
{
    uint8_t how = input_byte(in);
    int i = how % RIG_BOXES;
    struct rig_box *b = &rig.boxes[i];
    char sock[48];
    if (!b->id[0])
        return;
    snprintf(sock, sizeof(sock), "%s.sock", b->id);
    switch (how / RIG_BOXES % 6) {
    case 0:
        rig_kill_keeper(i);
        b->there = false;
        return rig_happen(IN_DELETE, true, b->id);
    case 1:
        b->there = true;
        return rig_happen(IN_CREATE, true, b->id);
    case 2:
        b->runs = b->there;
        return rig_happen(IN_CREATE, false, sock);
    case 3:
        b->refuses = !b->refuses;
        return;
    case 4:
        rig.watch_by_hand = !rig.watch_by_hand;
        return;
    default:
        return rig_happen(IN_Q_OVERFLOW, true, "");
    }
}

static void step(struct input *in)
{
    uint8_t what = input_byte(in);
    switch ((what & 127) >= 120 ? 15 : (what & 127) % 15) {
    case 15:
        step_message(in);
        break;
    case 0:
        step_connect(in);
        break;
    case 1:
        step_send(in);
        break;
    case 2:
    case 3:
        step_request(in);
        break;
    case 4:
        step_frame(in);
        break;
    case 5:
        step_room(in, RIG_CLIENT);
        break;
    case 6:
        step_leave(in);
        break;
    case 7:
        step_say(in);
        break;
    case 8:
        step_babble(in);
        break;
    case 9:
        step_end(in);
        break;
    case 10:
        step_room(in, RIG_KEEPER);
        break;
    case 11:
        step_deed(in);
        break;
    case 12:
        step_disk(in);
        break;
    case 13:
        step_repeat(in);
        break;
    default:
        rig_pass(1ll << input_byte(in) % 24);
    }
    if (!(what & 128))
        rig_settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t settings = input_byte(&in);
    rig_begin();
    rig.watch_by_hand = settings & 1;
    rig.deeds_by_hand = settings & 2;
    if (!(settings & 4))
        (void)rig_client(true, false);
    for (int i = 0; i < STEPS_MAX && in.left && !rig.world.loop.stop; i++)
        step(&in);
    rig_settle();
    if (settings & 8)
        server_drain(&rig.server);
    rig_end();
    return 0;
}

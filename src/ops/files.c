/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on files of a box.
 *
 * How it works: each is a file request of pale-init (init/builtin.h), run in the box as one of its commands; no path of a box is ever
 * looked at on this side. What comes back is read by wire/fileline, as hostile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "ops/talk.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "wire/fileline.h"

#define CHORE_MS 60000      /* for what ends by itself */
#define LIST_MAX (8u << 20) /* of an answer */
#define COMPLAINT_MAX 1024u

struct chore {
    struct talk talk;
    void (*output)(struct chore *k, const uint8_t *p, size_t n); /* NULL: there is none */
    void (*ended)(struct chore *k);                              /* it went well */
    char label[400];
    struct buf complaint;
    struct buf in;   /* output that is not a whole entry yet */
    struct buf text; /* of the answer */
    struct json json;
    uint64_t entries; /* in it */
    bool begun, fed, running;
    uint64_t offset, length; /* of a range; length UINT64_MAX: to the end */
};

/* --- asking --- */

static void free_chore(struct talk *a)
{
    struct chore *k = (struct chore *)a;
    buf_done(&k->complaint);
    buf_done(&k->in);
    buf_done(&k->text);
}

/* What the request in the box said on its standard error, in a form that is safe to show. */
static void fail_chore(struct chore *k, const struct msg_result *r)
{
    struct pale_err e;
    char shown[500];
    size_t n = k->complaint.len;
    while (n > 0 && k->complaint.data[n - 1] == '\n')
        n--;
    quote_into(shown, sizeof(shown), k->complaint.data, n);
    enum pale_code code = r->flags & RESULT_TIMEOUT ? PALE_TIMEOUT : file_status_code(r->status);
    err_set(&e, code, "in the box: %s", n ? shown : r->message[0] ? r->message : "the request failed");
    call_fail(k->talk.call, &e);
}

static void end_chore(struct chore *k, const struct frame *f)
{
    struct msg_result r;
    if (!msg_result_parse(f->data, f->len, &r))
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the keeper's result cannot be read");
    if (r.status != 0 || (r.flags & (RESULT_TIMEOUT | RESULT_KILLED)))
        return fail_chore(k, &r);
    if (r.flags & RESULT_TRUNCATED)
        return call_refuse(k->talk.call, PALE_LIMIT, "the box's output limit cut the answer");
    k->ended(k);
}

static void on_frame(struct talk *a, const struct frame *f)
{
    struct chore *k = (struct chore *)a;
    switch (f->type) {
    case TELL_STDOUT:
        if (k->output && f->len > 0)
            k->output(k, f->data, f->len);
        return;
    case TELL_STDERR:
        buf_add(&k->complaint, f->data, f->len < COMPLAINT_MAX - k->complaint.len ? f->len : COMPLAINT_MAX - k->complaint.len);
        return;
    case TELL_RESULT:
        return end_chore(k, f);
    default:
        return;
    }
}

static void room_again(struct call *c)
{
    struct chore *k = c->state;
    if (k && k->talk.link)
        tether_pause(k->talk.link, false);
}

static struct chore *new_chore(struct call *c)
{
    struct chore *k = talk_new(c, sizeof(*k));
    if (!k)
        return NULL;
    k->talk.frame = on_frame;
    k->talk.done = free_chore;
    buf_init(&k->complaint, COMPLAINT_MAX);
    buf_init(&k->in, FILE_ENTRY_MAX + FRAME_DATA_MAX);
    buf_init(&k->text, LIST_MAX);
    json_start(&k->json, &k->text);
    c->room = room_again;
    return k;
}

/* words: the request and what it is about, NULL at the end. */
static void send_chore(struct chore *k, const char *const *words, uint64_t flags, uint64_t timeout_ms)
{
    static struct msg_exec m;
    struct record_writer w;
    memset(&m, 0, offsetof(struct msg_exec, argv));
    m.flags = EXEC_BUILTIN | flags;
    m.user = call_text(k->talk.call, "user", "");
    m.cwd = m.key = "";
    m.label = k->label;
    m.timeout_ms = timeout_ms;
    while (words[m.argc]) {
        m.argv[m.argc] = words[m.argc];
        m.argc++;
    }
    snprintf(k->label, sizeof(k->label), "%s %.300s", words[0], words[1]);
    if (!buf_reserve(&k->talk.request, 4 * PATH_BYTES_MAX))
        return call_refuse(k->talk.call, PALE_NO_MEMORY, "out of memory");
    record_start(&w, k->talk.request.data, 4 * PATH_BYTES_MAX);
    msg_exec_write(&m, &w);
    k->talk.request.len = w.len;
    if (w.full)
        return call_refuse(k->talk.call, PALE_LIMIT, "the path is too long");
    talk_send(&k->talk, ASK_EXEC, true);
}

static void say_nothing(struct chore *k)
{
    call_nothing(k->talk.call);
}

/* --- entries --- */

static void show_entry(struct json *j, const struct file_entry *en)
{
    static const struct {
        char letter;
        const char *name;
    } types[] = {{'f', "file"}, {'d', "folder"}, {'l', "symlink"}, {'p', "fifo"}, {'s', "socket"}, {'c', "device"}, {'b', "device"}};
    const char *type = "other";
    char mode[8];
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].letter == en->type)
            type = types[i].name;
    snprintf(mode, sizeof(mode), "%04o", en->mode);
    json_begin_object(j, NULL);
    json_text(j, "name", en->name);
    json_text(j, "type", type);
    json_text(j, "mode", mode);
    json_u64(j, "size", en->size);
    json_i64(j, "mtime", en->mtime);
    json_u64(j, "mtime_ns", en->mtime_ns);
    json_u64(j, "inode", en->inode);
    if (en->type == 'l')
        json_text(j, "target", en->target);
    json_end_object(j);
}

static void take_entries(struct chore *k, const uint8_t *p, size_t n)
{
    size_t at = 0, used = 0;
    int got = 0;
    struct file_entry en;
    buf_add(&k->in, p, n);
    while (!k->in.failed && (got = file_entry_parse(k->in.data + at, k->in.len - at, &en, &used)) == 1) {
        show_entry(&k->json, &en);
        k->entries++;
        at += used;
    }
    if (got < 0 || k->in.failed)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    buf_consume(&k->in, at);
}

static void end_list(struct chore *k)
{
    json_end_list(&k->json);
    json_end_object(&k->json);
    call_json(k->talk.call, &k->text);
}

static void end_stat(struct chore *k)
{
    if (k->entries != 1)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    call_json(k->talk.call, &k->text);
}

void op_file_list(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    json_begin_object(&k->json, NULL);
    json_begin_list(&k->json, "items");
    k->output = take_entries;
    k->ended = end_list;
    send_chore(k, (const char *[]){"list", call_text(c, "path", ""), NULL}, 0, CHORE_MS);
}

void op_file_stat(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->output = take_entries;
    k->ended = end_stat;
    send_chore(k, (const char *[]){"stat", call_text(c, "path", ""), call_number(c, "follow", 0) ? "follow" : NULL, NULL}, 0, CHORE_MS);
}

/* --- reading --- */

/* "bytes=A-B", "bytes=A-": the forms that need no size. The rest of the standard's are not obeyed, as it allows. */
static void take_range(struct chore *k, const char *range)
{
    char text[64];
    uint64_t from = 0, to = 0;
    if (strncmp(range, "bytes=", 6) != 0)
        return;
    snprintf(text, sizeof(text), "%s", range + 6);
    char *dash = strchr(text, '-');
    if (!dash)
        return;
    *dash = 0;
    bool open = dash[1] == 0;
    if (!number_u64(text, INT64_MAX, &from) || (!open && (!number_u64(dash + 1, INT64_MAX, &to) || to < from)))
        return;
    k->offset = from;
    k->length = open ? UINT64_MAX : to - from + 1;
}

static void begin_read(struct chore *k, const struct file_entry *en)
{
    struct call *c = k->talk.call;
    char headers[320], body[200] = "";
    uint64_t left = en->size > k->offset ? en->size - k->offset : 0, n = left < k->length ? left : k->length;
    bool ranged = k->offset > 0 || k->length != UINT64_MAX;
    /* A file that has no size, as those of /proc, ends where it ends. */
    if (en->size > 0 && ranged && n > 0)
        snprintf(body, sizeof(body), "Content-Length: %llu\r\nContent-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)n,
                 (unsigned long long)k->offset, (unsigned long long)(k->offset + n - 1), (unsigned long long)en->size);
    else if (en->size > 0)
        snprintf(body, sizeof(body), "Content-Length: %llu\r\n", (unsigned long long)n);
    snprintf(headers, sizeof(headers), "%sETag: \"%llx-%llx-%llx.%x\"\r\nAccept-Ranges: bytes\r\nContent-Disposition: attachment\r\n", body,
             (unsigned long long)en->inode, (unsigned long long)en->size, (unsigned long long)en->mtime, en->mtime_ns);
    k->begun = true;
    call_begin(c, "application/octet-stream", headers);
}

static void give_bytes(struct chore *k, const void *p, size_t n)
{
    struct call *c = k->talk.call;
    call_hold(c);
    if (n > 0 && !call_write(c, p, n) && !c->gone && !c->answered)
        tether_pause(k->talk.link, true);
    call_drop(c);
}

static void take_content(struct chore *k, const uint8_t *p, size_t n)
{
    struct file_entry en;
    size_t used = 0;
    if (k->begun)
        return give_bytes(k, p, n);
    buf_add(&k->in, p, n);
    int got = file_entry_parse(k->in.data, k->in.len, &en, &used);
    if (got < 0 || k->in.failed)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    if (got == 0)
        return;
    struct call *c = k->talk.call;
    begin_read(k, &en);
    if (c->state)
        give_bytes(k, k->in.data + used, k->in.len - used);
}

static void end_read(struct chore *k)
{
    if (!k->begun)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    call_end(k->talk.call, true);
}

void op_file_read(struct call *c)
{
    char offset[24], length[24] = "-";
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->length = UINT64_MAX;
    take_range(k, c->range);
    k->offset = call_number(c, "offset", k->offset);
    k->length = call_number(c, "length", k->length);
    snprintf(offset, sizeof(offset), "%llu", (unsigned long long)k->offset);
    if (k->length != UINT64_MAX)
        snprintf(length, sizeof(length), "%llu", (unsigned long long)k->length);
    k->output = take_content;
    k->ended = end_read;
    /* A slow reader may take his time. */
    send_chore(k, (const char *[]){"open", call_text(c, "path", ""), offset, length, NULL}, 0, 0);
}

/* --- writing --- */

static bool send_piece(struct chore *k, const uint8_t *p, size_t n)
{
    uint8_t piece[STDIN_WINDOW];
    file_piece_head((uint32_t)n, piece);
    memcpy(piece + FILE_PIECE_HEAD, p, n);
    return tether_send(k->talk.link, ASK_STDIN, piece, FILE_PIECE_HEAD + n);
}

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct chore *k = c->state;
    const uint8_t *at = p;
    bool sent = true;
    for (size_t step; sent && n > 0; n -= step, at += step) {
        step = n < STDIN_WINDOW - FILE_PIECE_HEAD ? n : STDIN_WINDOW - FILE_PIECE_HEAD;
        sent = send_piece(k, at, step);
    }
    if (sent && last)
        sent = send_piece(k, at, 0) && tether_send(k->talk.link, ASK_STDIN_END, NULL, 0);
    if (!sent)
        return call_refuse(c, PALE_GONE, "the box takes no more");
    if (!last && tether_unsent(k->talk.link) > 0)
        c->port->want(c, false);
}

static void on_taken(struct talk *a)
{
    a->call->port->want(a->call, true);
}

static void on_opened(struct talk *a)
{
    struct call *c = a->call;
    c->piece = on_piece;
    if (c->bytes_done)
        on_piece(c, "", 0, true);
    else
        c->port->want(c, true);
}

void op_file_write(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->ended = say_nothing;
    k->talk.opened = on_opened;
    k->talk.room = on_taken;
    send_chore(
        k, (const char *[]){"write", call_text(c, "path", ""), call_text(c, "mode", "-"), call_number(c, "new", 0) ? "new" : "over", NULL},
        EXEC_STDIN, 0);
}

/* --- names --- */

void op_file_move(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->ended = say_nothing;
    send_chore(k, (const char *[]){"move", call_text(c, "from", ""), call_text(c, "to", ""), call_number(c, "new", 0) ? "new" : NULL, NULL},
               0, CHORE_MS);
}

void op_file_mkdir(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->ended = say_nothing;
    send_chore(k, (const char *[]){"mkdir", call_text(c, "path", ""), call_number(c, "parents", 0) ? "parents" : NULL, NULL}, 0, CHORE_MS);
}

void op_file_remove(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->ended = say_nothing;
    send_chore(k, (const char *[]){"remove", call_text(c, "path", ""), call_number(c, "tree", 0) ? "tree" : NULL, NULL}, 0, CHORE_MS);
}

/* --- watching --- */

static void show_happening(struct chore *k, const struct file_event *ev)
{
    struct call *c = k->talk.call;
    own_buf b = {0};
    struct json j;
    buf_init(&b, 8 * PATH_BYTES_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "event", file_happening_name(ev->kind));
    json_text(&j, "path", ev->name);
    json_bool(&j, "folder", ev->folder);
    json_end_object(&j);
    bool first = !k->begun;
    k->begun = true;
    if (first)
        call_begin(c, c->wants_events ? "text/event-stream" : "application/x-ndjson", "");
    if (!shown_piece(c, file_happening_name(ev->kind), &b) && !c->gone && !c->answered)
        tether_pause(k->talk.link, true);
}

static void take_happenings(struct chore *k, const uint8_t *p, size_t n)
{
    struct call *c = k->talk.call;
    size_t at = 0, used = 0;
    int got = 0;
    struct file_event ev;
    buf_add(&k->in, p, n);
    call_hold(c);
    while (!c->gone && !c->answered && !k->in.failed && (got = file_event_parse(k->in.data + at, k->in.len - at, &ev, &used)) == 1) {
        show_happening(k, &ev);
        at += used;
    }
    if (!c->gone && !c->answered && (got < 0 || k->in.failed))
        call_refuse(c, PALE_PROTOCOL, "the box's answer cannot be read");
    else if (!c->gone && !c->answered)
        buf_consume(&k->in, at);
    call_drop(c);
}

void op_file_watch(struct call *c)
{
    struct chore *k = new_chore(c);
    if (!k)
        return;
    k->output = take_happenings;
    k->ended = end_read;
    send_chore(k, (const char *[]){"watch", call_text(c, "path", ""), call_number(c, "tree", 0) ? "tree" : NULL, NULL}, EXEC_STDIN, 0);
}

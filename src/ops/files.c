/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on files of a box.
 *
 * What comes back is read by wire/fileline, as hostile; those that look into files or change them are in
 * ops/looks.c and ops/edits.c. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "ops/filework.h"
#include "ops/ops.h"
#include "ops/shown.h"
#include "wire/fileline.h"

/* --- entries --- */

static void show_entry(struct json *j, const struct file_entry *en)
{
    char mode[8];
    snprintf(mode, sizeof(mode), "%04o", en->mode);
    json_begin_object(j, NULL);
    json_text(j, "name", en->name);
    json_text(j, "type", filework_type(en->type));
    json_text(j, "mode", mode);
    json_u64(j, "size", en->size);
    json_i64(j, "mtime", en->mtime);
    json_u64(j, "mtime_ns", en->mtime_ns);
    json_u64(j, "inode", en->inode);
    if (en->type == 'l')
        json_text(j, "target", en->target);
    json_end_object(j);
}

static void take_entries(struct filework *k, const uint8_t *p, size_t n)
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

static void end_list(struct filework *k)
{
    json_end_list(&k->json);
    json_end_object(&k->json);
    call_json(k->talk.call, &k->text);
}

static void end_stat(struct filework *k)
{
    if (k->entries != 1)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    call_json(k->talk.call, &k->text);
}

void op_file_list(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    json_begin_object(&k->json, NULL);
    json_begin_list(&k->json, "items");
    k->output = take_entries;
    k->ended = end_list;
    filework_send(k, (const char *[]){"list", call_text(c, "path", ""), NULL}, 0, FILEWORK_MS);
}

void op_file_stat(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->output = take_entries;
    k->ended = end_stat;
    filework_send(k, (const char *[]){"stat", call_text(c, "path", ""), call_number(c, "follow", 0) ? "follow" : NULL, NULL}, 0,
                  FILEWORK_MS);
}

/* --- reading --- */

/* "bytes=A-B", "bytes=A-": the forms that need no size. The rest of the standard's are not obeyed, as it allows. */
static void take_range(struct filework *k, const char *range)
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
    k->ranged = true;
    k->offset = from;
    k->length = open ? UINT64_MAX : to - from + 1;
}

static void refuse_range(struct filework *k, uint64_t size)
{
    struct call *c = k->talk.call;
    c->status = 416;
    snprintf(c->refusal_more, sizeof(c->refusal_more), "Content-Range: bytes */%llu\r\n", (unsigned long long)size);
    call_refuse(c, PALE_BAD_INPUT, "the range begins behind the end of the file, which has %llu bytes", (unsigned long long)size);
}

static void begin_read(struct filework *k, const struct file_entry *en)
{
    struct call *c = k->talk.call;
    char headers[320], body[200] = "";
    uint64_t left = en->size > k->offset ? en->size - k->offset : 0, n = left < k->length ? left : k->length;
    /* Of one without a size, as those of /proc, there is no telling which part it is: it is had as a whole, and ends where it ends. */
    bool whole = k->offset == 0 && k->length == UINT64_MAX;
    if (k->ranged && n == 0 && !whole)
        return refuse_range(k, en->size);
    if (k->ranged && n > 0) {
        c->status = 206;
        snprintf(body, sizeof(body), "Content-Length: %llu\r\nContent-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)n,
                 (unsigned long long)k->offset, (unsigned long long)(k->offset + n - 1), (unsigned long long)en->size);
    } else if (en->size > 0)
        snprintf(body, sizeof(body), "Content-Length: %llu\r\n", (unsigned long long)n);
    snprintf(headers, sizeof(headers), "%sETag: \"%llx-%llx-%llx.%x\"\r\nAccept-Ranges: bytes\r\nContent-Disposition: attachment\r\n", body,
             (unsigned long long)en->inode, (unsigned long long)en->size, (unsigned long long)en->mtime, en->mtime_ns);
    k->begun = true;
    call_begin(c, "application/octet-stream", headers);
}

static void give_bytes(struct filework *k, const void *p, size_t n)
{
    struct call *c = k->talk.call;
    call_hold(c);
    if (n > 0 && !call_write(c, p, n) && !c->gone && !c->answered)
        tether_pause(k->talk.link, true);
    call_drop(c);
}

static void take_content(struct filework *k, const uint8_t *p, size_t n)
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

static void end_read(struct filework *k)
{
    if (!k->begun)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    call_end(k->talk.call, true);
}

void op_file_read(struct call *c)
{
    char offset[24], length[24] = "-";
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->length = UINT64_MAX;
    /* A part that the address names is a whole of its own. */
    if (!call_value(c, "offset")->given && !call_value(c, "length")->given)
        take_range(k, c->range);
    k->offset = call_number(c, "offset", k->offset);
    k->length = call_number(c, "length", k->length);
    snprintf(offset, sizeof(offset), "%llu", (unsigned long long)k->offset);
    if (k->length != UINT64_MAX)
        snprintf(length, sizeof(length), "%llu", (unsigned long long)k->length);
    k->output = take_content;
    k->ended = end_read;
    /* A slow reader may take his time. */
    filework_send(k, (const char *[]){"open", call_text(c, "path", ""), offset, length, NULL}, 0, 0);
}

/* --- writing --- */

static bool send_piece(struct filework *k, const uint8_t *p, size_t n)
{
    uint8_t piece[STDIN_WINDOW];
    file_piece_head((uint32_t)n, piece);
    memcpy(piece + FILE_PIECE_HEAD, p, n);
    return tether_send(k->talk.link, ASK_STDIN, piece, FILE_PIECE_HEAD + n);
}

static void on_piece(struct call *c, const void *p, size_t n, bool last)
{
    struct filework *k = c->state;
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

static void on_opened(struct talk *a)
{
    talk_take(a, on_piece);
}

void op_file_write(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->ended = filework_say_nothing;
    k->talk.opened = on_opened;
    k->talk.room = talk_taken;
    filework_send(
        k, (const char *[]){"write", call_text(c, "path", ""), call_text(c, "mode", "-"), call_number(c, "new", 0) ? "new" : "over", NULL},
        EXEC_STDIN, 0);
}

/* --- names --- */

void op_file_move(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->ended = filework_say_nothing;
    filework_send(k,
                  (const char *[]){"move", call_text(c, "from", ""), call_text(c, "to", ""), call_number(c, "new", 0) ? "new" : NULL, NULL},
                  0, FILEWORK_MS);
}

void op_file_mkdir(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->ended = filework_say_nothing;
    filework_send(k, (const char *[]){"mkdir", call_text(c, "path", ""), call_number(c, "parents", 0) ? "parents" : NULL, NULL}, 0,
                  FILEWORK_MS);
}

void op_file_remove(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->ended = filework_say_nothing;
    filework_send(k, (const char *[]){"remove", call_text(c, "path", ""), call_number(c, "tree", 0) ? "tree" : NULL, NULL}, 0, FILEWORK_MS);
}

/* --- watching --- */

static void show_happening(struct filework *k, const struct file_event *ev)
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
        shown_begin(c);
    if (!shown_piece(c, file_happening_name(ev->kind), &b) && !c->gone && !c->answered)
        tether_pause(k->talk.link, true);
}

static void take_happenings(struct filework *k, const uint8_t *p, size_t n)
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
    struct filework *k = filework_new(c);
    if (!k)
        return;
    k->output = take_happenings;
    k->ended = end_read;
    filework_send(k, (const char *[]){"watch", call_text(c, "path", ""), call_number(c, "tree", 0) ? "tree" : NULL, NULL}, EXEC_STDIN, 0);
}

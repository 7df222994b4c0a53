/* SPDX-License-Identifier: Apache-2.0 */
/* Owns file work: asking, feeding, the end. */
#include "ops/filework.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "wire/fileline.h"

#define LIST_MAX (8u << 20) /* of an answer */
#define COMPLAINT_MAX 1024u
#define REQUEST_MAX (4 * PATH_BYTES_MAX)
#define FEED_HIGH (4u * STDIN_WINDOW)

/* --- asking --- */

static void let_go(struct talk *a)
{
    struct filework *k = (struct filework *)a;
    buf_done(&k->complaint);
    buf_done(&k->in);
    buf_done(&k->text);
}

void filework_fail(struct call *c, const struct buf *complaint, const struct msg_result *r)
{
    char shown[500];
    size_t n = complaint->len;
    enum pale_code code = r->flags & RESULT_TRUNCATED ? PALE_LIMIT : r->flags & RESULT_TIMEOUT ? PALE_TIMEOUT : file_status_code(r->status);
    while (n > 0 && complaint->data[n - 1] == '\n')
        n--;
    quote_into(shown, sizeof(shown), complaint->data, n);
    c->trace = TRACE_NEVER;
    call_refuse(c, code, "in the box: %s", n ? shown : r->message[0] ? r->message : "the request failed");
}

static void take_result(struct filework *k, const struct frame *f)
{
    struct msg_result r;
    if (!msg_result_parse(f->data, f->len, &r))
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the keeper's result cannot be read");
    if (r.status != 0 || (r.flags & (RESULT_TIMEOUT | RESULT_KILLED)))
        return filework_fail(k->talk.call, &k->complaint, &r);
    if (r.flags & RESULT_TRUNCATED)
        return call_refuse(k->talk.call, PALE_LIMIT, "the box's output limit cut the answer");
    k->ended(k);
}

static void on_frame(struct talk *a, const struct frame *f)
{
    struct filework *k = (struct filework *)a;
    switch (f->type) {
    case TELL_STDOUT:
        if (k->output && f->len > 0)
            k->output(k, f->data, f->len);
        return;
    case TELL_STDERR:
        buf_add(&k->complaint, f->data, f->len < COMPLAINT_MAX - k->complaint.len ? f->len : COMPLAINT_MAX - k->complaint.len);
        return;
    case TELL_RESULT:
        return take_result(k, f);
    default:
        return;
    }
}

struct filework *filework_new(struct call *c)
{
    struct filework *k = talk_new(c, sizeof(*k));
    if (!k)
        return NULL;
    k->talk.frame = on_frame;
    k->talk.done = let_go;
    buf_init(&k->complaint, COMPLAINT_MAX);
    buf_init(&k->in, FILE_ENTRY_MAX + FRAME_DATA_MAX);
    buf_init(&k->text, LIST_MAX);
    json_start(&k->json, &k->text);
    c->room = talk_room;
    return k;
}

void filework_send(struct filework *k, const char *const *words, uint64_t flags, uint64_t timeout_ms)
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
    if (!buf_reserve(&k->talk.request, REQUEST_MAX))
        return call_refuse(k->talk.call, PALE_NO_MEMORY, "out of memory");
    record_start(&w, k->talk.request.data, REQUEST_MAX);
    msg_exec_write(&m, &w);
    k->talk.request.len = w.len;
    if (w.full)
        return call_refuse(k->talk.call, PALE_LIMIT, "the path or the pattern is too long");
    talk_send(&k->talk, ASK_EXEC, true);
}

void filework_say_nothing(struct filework *k)
{
    call_nothing(k->talk.call);
}

const char *filework_type(char letter)
{
    static const struct {
        char letter;
        const char *name;
    } types[] = {{'f', "file"}, {'d', "folder"}, {'l', "symlink"}, {'p', "fifo"}, {'s', "socket"}, {'c', "device"}, {'b', "device"}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].letter == letter)
            return types[i].name;
    return "other";
}

/* --- input --- */

static bool send_piece(struct filework *k, const char *p, size_t n)
{
    uint8_t piece[STDIN_WINDOW];
    file_piece_head((uint32_t)n, piece);
    if (n > 0)
        memcpy(piece + FILE_PIECE_HEAD, p, n);
    return tether_send(k->talk.link, ASK_STDIN, piece, FILE_PIECE_HEAD + n);
}

/* The next piece of what is left; one of no bytes ends a part. */
static bool send_next(struct filework *k)
{
    size_t left = k->part_len[k->part_now] - k->part_at, most = STDIN_WINDOW - FILE_PIECE_HEAD, n = left < most ? left : most;
    if (!send_piece(k, k->part[k->part_now] + k->part_at, n))
        return false;
    k->part_at += n;
    if (n > 0)
        return true;
    k->part_now++;
    k->part_at = 0;
    return k->part_now < k->parts || tether_send(k->talk.link, ASK_STDIN_END, NULL, 0);
}

static void feed(struct talk *a)
{
    struct filework *k = (struct filework *)a;
    while (k->part_now < k->parts && tether_unsent(a->link) < FEED_HIGH)
        if (!send_next(k))
            return call_refuse(a->call, PALE_GONE, "the box takes no more");
}

void filework_feed(struct filework *k, const char *const *parts, size_t count)
{
    for (k->parts = 0; k->parts < count && k->parts < FILEWORK_PARTS; k->parts++) {
        k->part[k->parts] = parts[k->parts];
        k->part_len[k->parts] = strlen(parts[k->parts]);
    }
    k->talk.opened = k->talk.room = feed;
}

/* --- answers --- */

static void take_answers(struct filework *k, const uint8_t *p, size_t n)
{
    size_t at = 0, used = 0;
    int got = 0;
    struct answer a;
    buf_add(&k->in, p, n);
    while (!k->over && !k->in.failed && (got = answer_parse(k->in.data + at, k->in.len - at, &a, &used)) == 1) {
        got = k->show(k, &a) ? 1 : -1;
        if (got < 0)
            break;
        at += used;
    }
    if (got < 0 || k->in.failed || (k->over && at < k->in.len))
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer cannot be read");
    buf_consume(&k->in, at);
}

static void end_answers(struct filework *k)
{
    if (!k->over)
        return call_refuse(k->talk.call, PALE_PROTOCOL, "the box's answer is not whole");
    call_json(k->talk.call, &k->text);
}

void filework_answers(struct filework *k, bool (*show)(struct filework *k, const struct answer *a))
{
    k->in.max = ANSWER_MAX + FRAME_DATA_MAX;
    k->show = show;
    k->output = take_answers;
    k->ended = end_answers;
}

void filework_show_path(struct filework *k, const char *key, const char *path)
{
    char whole[2 * PATH_BYTES_MAX];
    size_t n = strlen(k->folder);
    bool slash = n > 0 && k->folder[n - 1] != '/' && path[0];
    snprintf(whole, sizeof(whole), "%s%s%s", k->folder, slash ? "/" : "", path);
    json_text(&k->json, key, whole);
}

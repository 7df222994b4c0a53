/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on what was recorded and proved: audit, receipt, prove, doctor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/jsonread.h"
#include "base/number.h"
#include "base/own.h"
#include "box/audit.h"
#include "box/place.h"
#include "ops/talk.h"
#include "ops/ops.h"

#define AUDIT_BYTES_MAX (1u << 20) /* in one answer; who wants more asks for what follows */
#define RECEIPT_MAX 262144u

/* A file of the box's state folder, which is the user's own. */
static int open_record(const char *id, const char *name, struct pale_err *e)
{
    struct place p;
    char path[PATH_BYTES_MAX + 16];
    int r = place_by_id(id, &p, e);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/%s", p.state, name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? err_set(e, PALE_NOT_FOUND, "box %s has none yet; it comes with its first start", p.name)
                               : err_os(e, "open %s", path);
    return fd;
}

/* The number and digest of the last record, as they stand beside the log: who has only the log cannot tell that it lost its end. */
static void read_head(const char *id, char *ret, size_t cap)
{
    struct pale_err e;
    own_fd fd = open_record(id, "audit.head", &e);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
    ret[strspn(ret, "0123456789abcdef ")] = 0;
}

/* Lines of the log as they stand there, from a byte on: X-Next-Offset says where to go on. */
void op_audit(struct call *c)
{
    struct pale_err e;
    struct stat st;
    char header[240], head[128];
    uint64_t offset = call_number(c, "offset", 0);
    const struct core_box *b = talk_find(c);
    if (!b)
        return;
    own_fd fd = open_record(b->id, "audit", &e);
    if (fd < 0)
        return call_fail(c, &e);
    own_buf text = {0};
    buf_init(&text, AUDIT_BYTES_MAX);
    if (fstat(fd, &st) < 0 || offset > (uint64_t)st.st_size || !buf_reserve(&text, AUDIT_BYTES_MAX))
        return call_refuse(c, PALE_BAD_INPUT, "offset: the log has %lld bytes", (long long)st.st_size);
    read_head(b->id, head, sizeof(head)); /* first, so that the log is never behind it */
    ssize_t n = pread(fd, text.data, AUDIT_BYTES_MAX, (off_t)offset);
    /* Whole lines; one that is being written comes with the next answer. */
    const uint8_t *end = n > 0 ? memrchr(text.data, '\n', (size_t)n) : NULL;
    text.len = end ? (size_t)(end + 1 - text.data) : 0;
    snprintf(header, sizeof(header), "X-Next-Offset: %llu\r\n%s%s%s", (unsigned long long)(offset + text.len),
             head[0] ? "X-Audit-Head: " : "", head, head[0] ? "\r\n" : "");
    call_hold(c);
    call_begin(c, "application/x-ndjson", header);
    call_write(c, text.data, text.len);
    call_end(c, true);
    call_drop(c);
}

void op_receipt(struct call *c)
{
    struct pale_err e;
    own_buf text = {0};
    buf_init(&text, RECEIPT_MAX);
    const struct core_box *b = talk_find(c);
    if (!b)
        return;
    own_fd fd = open_record(b->id, "receipt", &e);
    if (fd < 0 || fd_read_all(fd, &text, &e) < 0)
        return call_fail(c, &e);
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    call_json(c, &text);
}

/* Answers with JSON that somebody else wrote, if it is that. */
static void pass_json(struct call *c, const void *p, size_t n, const char *whose)
{
    own_buf text = {0};
    struct jsonread v;
    if (!jsonread_parse(p, n, &v) || v.kind != JSONREAD_OBJECT)
        return call_refuse(c, PALE_PROTOCOL, "%s cannot be read", whose);
    buf_init(&text, FRAME_PAYLOAD_MAX + 2);
    buf_add(&text, v.at, v.len);
    call_json(c, &text);
}

/* Lines for people, an empty one, the receipt as JSON. */
static void on_proved(struct talk *a, const struct frame *f)
{
    struct call *c = a->call;
    if (f->type != TELL_RECEIPT)
        return;
    const uint8_t *at = memmem(f->data, f->len, "\n\n", 2);
    if (!at)
        return call_refuse(c, PALE_PROTOCOL, "the keeper's receipt cannot be read");
    pass_json(c, at + 2, f->len - (size_t)(at + 2 - f->data), "the keeper's receipt");
}

void op_prove(struct call *c)
{
    struct talk *a = talk_new(c, sizeof(*a));
    if (!a)
        return;
    a->frame = on_proved;
    buf_add(&a->request, call_number(c, "full", 1) ? "\1" : "\0", 1);
    talk_send(a, ASK_PROVE, true);
}

static void on_doctor(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    if (d->code != 0)
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    else
        pass_json(c, d->text, strlen(d->text), "the diagnosis");
    call_drop(c);
}

void op_doctor(struct call *c)
{
    struct msg_deed m = {.kind = DEED_DOCTOR, .id = "", .name = "", .tenant = "", .policy = "", .sets = "", .caller = "paled"};
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_doctor, c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the shape of D-Bus messages. */
#include "confine/dbus.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"

#define FIXED_HEAD 16u /* order, type, flags, version, length of body, serial, length of fields */
#define SIGNATURE_MAX 255u
#define GREETING_MAX 256u /* "OK " and an id of 32 digits */

enum field { FIELD_PATH = 1, FIELD_INTERFACE, FIELD_MEMBER, FIELD_ERROR, FIELD_REPLY, FIELD_DESTINATION, FIELD_SENDER, FIELD_SIGNATURE };

/* --- writing --- */

static void put(struct dbus_writer *w, const void *p, size_t n)
{
    if (w->full || n > w->cap - w->len) {
        w->full = true;
        return;
    }
    if (n > 0)
        memcpy(w->mem + w->len, p, n);
    w->len += n;
}

static void set_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

void dbus_start(struct dbus_writer *w, void *mem, size_t cap)
{
    *w = (struct dbus_writer){.mem = mem, .cap = cap};
}

/* Alignment counts from the beginning of the message. */
void dbus_align(struct dbus_writer *w, size_t to)
{
    static const uint8_t zero[8];
    size_t past = (w->len - w->start) % to;
    put(w, zero, past ? to - past : 0);
}

void dbus_put_u32(struct dbus_writer *w, uint32_t v)
{
    uint8_t b[4];
    set_u32(b, v);
    dbus_align(w, 4);
    put(w, b, sizeof(b));
}

void dbus_put_text(struct dbus_writer *w, const char *s)
{
    size_t n = strlen(s);
    dbus_put_u32(w, (uint32_t)n);
    put(w, s, n + 1);
}

void dbus_put_signature(struct dbus_writer *w, const char *s)
{
    uint8_t n = (uint8_t)strlen(s);
    put(w, &n, 1);
    put(w, s, (size_t)n + 1);
}

size_t dbus_open_array(struct dbus_writer *w, size_t item_align)
{
    dbus_put_u32(w, 0);
    size_t mark = w->len;
    dbus_align(w, item_align); /* not counted in the length */
    return mark;
}

void dbus_close_array(struct dbus_writer *w, size_t mark, size_t item_align)
{
    size_t past = (mark - w->start) % item_align, first = mark + (past ? item_align - past : 0);
    if (!w->full)
        set_u32(w->mem + mark - 4, (uint32_t)(w->len - first));
}

static void put_field(struct dbus_writer *w, enum field code, const char *type, const char *text)
{
    uint8_t c = (uint8_t)code;
    if (!text)
        return;
    dbus_align(w, 8);
    put(w, &c, 1);
    dbus_put_signature(w, type);
    if (type[0] == 'g')
        dbus_put_signature(w, text);
    else
        dbus_put_text(w, text);
}

void dbus_begin(struct dbus_writer *w, const struct dbus_call *c)
{
    static const uint8_t head[4] = {'l', DBUS_CALL, 0, 1};
    w->start = w->len;
    put(w, head, sizeof(head));
    dbus_put_u32(w, 0); /* length of the body, filled in at the end */
    dbus_put_u32(w, c->serial);
    size_t fields = dbus_open_array(w, 8);
    put_field(w, FIELD_PATH, "o", c->path);
    put_field(w, FIELD_INTERFACE, "s", c->interface);
    put_field(w, FIELD_MEMBER, "s", c->member);
    put_field(w, FIELD_DESTINATION, "s", c->destination);
    put_field(w, FIELD_SIGNATURE, "g", c->signature);
    dbus_close_array(w, fields, 8);
    dbus_align(w, 8);
    w->body = w->len;
}

void dbus_end(struct dbus_writer *w)
{
    if (!w->full)
        set_u32(w->mem + w->start + 4, (uint32_t)(w->len - w->body));
}

size_t dbus_greet(void *mem, size_t cap, unsigned uid)
{
    char name[16], *out = mem;
    int n = snprintf(name, sizeof(name), "%u", uid), len = snprintf(out, cap, "%cAUTH EXTERNAL ", 0);
    for (int i = 0; i < n && len > 0 && (size_t)len < cap; i++)
        len += snprintf(out + len, cap - (size_t)len, "%02x", (unsigned char)name[i]);
    if (len <= 0 || (size_t)len >= cap)
        return 0;
    len += snprintf(out + len, cap - (size_t)len, "\r\nBEGIN\r\n");
    return (size_t)len < cap ? (size_t)len : 0;
}

/* --- reading --- */

int dbus_hear_greeting(const uint8_t *p, size_t n, size_t *ret_used)
{
    static const char ok[] = "OK ";
    const uint8_t *end = memchr(p, '\n', n < GREETING_MAX ? n : GREETING_MAX);
    if (memcmp(p, ok, n < 3 ? n : 3) != 0 || (!end && n >= GREETING_MAX) || (end && end[-1] != '\r'))
        return -1;
    if (!end)
        return 0;
    *ret_used = (size_t)(end - p) + 1;
    return 1;
}

/* The next n bytes, after a gap of zeros up to the alignment; NULL once anything is wrong. */
static const uint8_t *take(struct dbus_reader *r, size_t align, size_t n)
{
    size_t past = r->at % align, gap = past ? align - past : 0;
    if (r->bad || gap > r->end - r->at || n > r->end - r->at - gap) {
        r->bad = true;
        return NULL;
    }
    for (; gap > 0; gap--)
        if (r->base[r->at++] != 0) {
            r->bad = true;
            return NULL;
        }
    const uint8_t *p = r->base + r->at;
    r->at += n;
    return p;
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t dbus_take_u32(struct dbus_reader *r)
{
    const uint8_t *p = take(r, 4, 4);
    return p ? get_u32(p) : 0;
}

/* So many bytes and the NUL after them, with none between. */
static const char *take_chars(struct dbus_reader *r, size_t n)
{
    const uint8_t *p = n < r->end ? take(r, 1, n + 1) : NULL;
    if (!p || memchr(p, 0, n + 1) != p + n) {
        r->bad = true;
        return "";
    }
    return (const char *)p;
}

const char *dbus_take_text(struct dbus_reader *r)
{
    uint32_t n = dbus_take_u32(r);
    return r->bad ? "" : take_chars(r, n);
}

static const char *take_signature(struct dbus_reader *r)
{
    const uint8_t *n = take(r, 1, 1);
    return n ? take_chars(r, *n) : "";
}

/* One field of the head: a code and a value that says its own type. A code of times to come is passed over. */
static void take_field(struct dbus_reader *r, struct dbus_message *m)
{
    const char **const texts[] = {
        [FIELD_PATH] = &m->path, [FIELD_INTERFACE] = &m->interface,     [FIELD_MEMBER] = &m->member, [FIELD_ERROR] = &m->error,
        [FIELD_REPLY] = NULL,    [FIELD_DESTINATION] = &m->destination, [FIELD_SENDER] = &m->sender, [FIELD_SIGNATURE] = &m->signature};
    static const char types[] = {0, 'o', 's', 's', 's', 'u', 's', 's', 'g'};
    const uint8_t *code = take(r, 8, 1);
    const char *type = take_signature(r), *text = "";
    uint32_t number = 0;
    if (r->bad || type[0] == 0 || type[1] != 0 || *code == 0) {
        r->bad = true;
        return;
    }
    switch (type[0]) {
    case 's':
    case 'o':
        text = dbus_take_text(r);
        break;
    case 'g':
        text = take_signature(r);
        break;
    case 'u':
        number = dbus_take_u32(r);
        break;
    default:
        r->bad = true;
        return;
    }
    if (*code >= sizeof(types))
        return;
    if (type[0] != types[*code])
        r->bad = true;
    else if (*code == FIELD_REPLY)
        m->reply_serial = number;
    else
        *texts[*code] = text;
}

int dbus_parse(const uint8_t *p, size_t n, struct dbus_message *ret, size_t *ret_used)
{
    struct dbus_message m = {.path = "", .interface = "", .member = "", .error = "", .destination = "", .sender = "", .signature = ""};
    if (n < FIXED_HEAD) {
        bool good = (n < 1 || p[0] == 'l') && (n < 2 || (p[1] >= DBUS_CALL && p[1] <= DBUS_SIGNAL)) && (n < 4 || p[3] == 1);
        return good ? 0 : -1;
    }
    uint32_t body = get_u32(p + 4), fields = get_u32(p + 12);
    if (p[0] != 'l' || p[1] < DBUS_CALL || p[1] > DBUS_SIGNAL || p[3] != 1 || body > DBUS_MESSAGE_MAX || fields > DBUS_MESSAGE_MAX)
        return -1;
    size_t head = (FIXED_HEAD + (size_t)fields + 7) / 8 * 8, whole = head + body;
    if (whole > DBUS_MESSAGE_MAX)
        return -1;
    if (n < whole)
        return 0;
    m.type = (enum dbus_type)p[1];
    m.serial = get_u32(p + 8);
    m.body = p + head;
    m.body_len = body;
    struct dbus_reader r = {.base = p, .at = FIXED_HEAD, .end = FIXED_HEAD + fields};
    while (!r.bad && r.at < r.end)
        take_field(&r, &m);
    r.end = head;
    (void)take(&r, 8, 0); /* the gap before the body */
    if (r.bad || m.serial == 0)
        return -1;
    *ret = m;
    *ret_used = whole;
    return 1;
}

struct dbus_reader dbus_body(const struct dbus_message *m)
{
    return (struct dbus_reader){.base = m->body, .end = m->body_len};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* D-Bus messages: the few we send to systemd are written, the ones that come back are read.
 *
 * How it works: both sides are pure. The writer appends into memory it was given and never past it. The parser answers like
 * that of frames: one whole message, need more, or bad; a head out of bounds is bad at once, before its body arrives. Every
 * step goes through a cursor that checks length, alignment and padding. Little-endian alone: every machine we build for is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- writing --- */

struct dbus_writer {
    uint8_t *mem;
    size_t len, cap;
    size_t start, body; /* of the message under way */
    bool full;          /* something did not fit; nothing of it must be sent */
};

struct dbus_call {
    uint32_t serial;
    const char *destination; /* NULL where the peer itself is meant */
    const char *path, *interface, *member;
    const char *signature; /* of the arguments; NULL if there are none */
};

void dbus_start(struct dbus_writer *w, void *mem, size_t cap);

/* A method call: head, then the arguments by the functions below, then the end, which fills in the length. */
void dbus_begin(struct dbus_writer *w, const struct dbus_call *c);
void dbus_end(struct dbus_writer *w);

void dbus_put_u32(struct dbus_writer *w, uint32_t v);
void dbus_put_text(struct dbus_writer *w, const char *s);
void dbus_put_signature(struct dbus_writer *w, const char *s);
void dbus_align(struct dbus_writer *w, size_t to);

/* An array whose items are aligned to so much. The answer is handed back at its end. */
size_t dbus_open_array(struct dbus_writer *w, size_t item_align);
void dbus_close_array(struct dbus_writer *w, size_t mark, size_t item_align);

/* What a client says first: who he is, and that messages follow. The first byte carries our credentials. Nothing of it is answered with a
 * question, so that all can go at once. Returns its length, or 0 if it does not fit. */
size_t dbus_greet(void *mem, size_t cap, unsigned uid);

/* --- reading --- */

/* The line that lets us in: 1, and *ret_used is its length; 0: need more; -1: it is another. */
int dbus_hear_greeting(const uint8_t *p, size_t n, size_t *ret_used);

enum dbus_type { DBUS_CALL = 1, DBUS_RETURN, DBUS_ERROR, DBUS_SIGNAL };

/* Texts and body lie in the bytes that were parsed; texts end with NUL and hold no other. What the message lacks is "". */
struct dbus_message {
    enum dbus_type type;
    uint32_t serial, reply_serial;
    const char *path, *interface, *member, *error, *destination, *sender, *signature;
    const uint8_t *body;
    size_t body_len;
};

/* 1: a whole message stands at p, *ret_used bytes long; 0: need more; -1: this is no message, or one longer than we take. */
int dbus_parse(const uint8_t *p, size_t n, struct dbus_message *ret, size_t *ret_used);

/* A walk through bytes. Once bad it stays bad and gives 0 and "". */
struct dbus_reader {
    const uint8_t *base;
    size_t at, end;
    bool bad;
};

struct dbus_reader dbus_body(const struct dbus_message *m);
uint32_t dbus_take_u32(struct dbus_reader *r);
const char *dbus_take_text(struct dbus_reader *r);

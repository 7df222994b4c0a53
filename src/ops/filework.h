/* SPDX-License-Identifier: Apache-2.0 */
/* File work: one file request of pale-init (init/builtin.h) on behalf of a call. It runs in the box as one of its commands; no path of a
 * box is ever looked at on this side, and what comes back is hostile. */
#pragma once

#include "ops/talk.h"
#include "wire/answer.h"

#define FILEWORK_MS 60000 /* for what ends by itself */
#define FILEWORK_PARTS 2

struct filework {
    struct talk talk;
    void (*output)(struct filework *k, const uint8_t *p, size_t n); /* NULL: there is none */
    void (*ended)(struct filework *k);                              /* it went well */
    char label[400];
    struct buf complaint;
    struct buf in;   /* output that is not a whole entry yet */
    struct buf text; /* of the answer */
    struct json json;
    uint64_t entries; /* in it */
    bool begun;
    bool ranged;             /* by a Range header */
    uint64_t offset, length; /* of a range; length UINT64_MAX: to the end */
    /* Of filework_feed and filework_answers. */
    const char *part[FILEWORK_PARTS];
    size_t part_len[FILEWORK_PARTS], parts, part_now, part_at;
    bool (*show)(struct filework *k, const struct answer *a);
    enum answer_kind wanted;     /* of a search */
    bool over;                   /* its last answer has come */
    char folder[PATH_BYTES_MAX]; /* that paths of answers are relative to; "": where commands begin */
};

/* A new one for the call, or NULL when the call is answered. */
struct filework *filework_new(struct call *c);

/* words: the request, what it is about, and the rest; NULL at the end. flags: more of enum exec_flag. */
void filework_send(struct filework *k, const char *const *words, uint64_t flags, uint64_t timeout_ms);

/* The call fails for what the request in the box said on its standard error, in a form that is safe to show. */
void filework_fail(struct call *c, const struct buf *complaint, const struct msg_result *r);

/* For `ended` of what answers nothing. */
void filework_say_nothing(struct filework *k);

/* The name of an entry's type. */
const char *filework_type(char letter);

/* Before filework_send: texts that become its input, each of them whole or the request fails; they stay the call's. */
void filework_feed(struct filework *k, const char *const *parts, size_t count);

/* Before filework_send: what comes is answers, each of which is shown; false: not one of those that belong here. show sets k->over with
 * the last; without that, or with more after it, the call fails. When all went well the text is the call's answer, so show has to
 * complete it. */
void filework_answers(struct filework *k, bool (*show)(struct filework *k, const struct answer *a));

/* A path of an answer with the folder it is relative to, so that the caller can use it. */
void filework_show_path(struct filework *k, const char *key, const char *path);

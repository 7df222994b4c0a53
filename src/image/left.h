/* SPDX-License-Identifier: Apache-2.0 */
/* What an image does without: how many entries of a source were left out or changed, by kind, and the first few of each by name.
 *
 * Who unpacks in a box counts there and tells in lines (left_tell), which the host reads as it reads everything from a box. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum left_kind {
    LEFT_DEVICE,     /* not made */
    LEFT_FIFO,       /* not made */
    LEFT_SOCKET,     /* not made */
    LEFT_SET_BITS,   /* made without setuid, setgid or sticky */
    LEFT_ATTRIBUTES, /* made without extended attributes: file capabilities, overlay marks, access lists */
    LEFT_MODE,       /* its owner could not have read, entered or removed it: now he can */
    LEFT_UNREADABLE, /* a file of the host that we may not read: not made */
    LEFT_KINDS,
};

#define LEFT_SHOWN 8       /* names of each kind; the rest is counted */
#define LEFT_NAME_BYTES 96 /* quoted, and cut where it is longer */
#define LEFT_TEXT_MAX (LEFT_KINDS * (LEFT_SHOWN + 1) * (LEFT_NAME_BYTES + 32))

struct left {
    uint64_t count[LEFT_KINDS];
    char name[LEFT_KINDS][LEFT_SHOWN][LEFT_NAME_BYTES];
};

const char *left_kind_name(enum left_kind k);
void left_add(struct left *l, enum left_kind k, const char *path);
bool left_any(const struct left *l);

/* As lines to a descriptor. */
bool left_tell(const struct left *l, int fd);

/* Adds what such lines say. They come out of a box: anything unexpected is an error. */
int left_hear(struct left *l, const char *text, size_t n, struct pale_err *e) MUST_CHECK;

/* As an object: {"device": {"count": 3, "names": ["dev/null"]}}. */
void left_json(const struct left *l, struct json *j, const char *key);

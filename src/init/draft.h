/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts: a file that gets its name when it is whole. */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "wire/message.h"

/* The builtin `write PATH MODE over|new`. */
int draft_write(const struct msg_exec *m);

struct draft_content {
    const void *p;
    size_t n;
    const struct stat *was; /* of the file it replaces, whose permissions and owner it gets; NULL: nothing may be there */
    mode_t mode;            /* if nothing was there */
};

/* Gives a file this content, whole or not at all. PALE_BUSY: what stands at the name is not, or no more, what it was. PALE_DENIED: it
 * belongs to somebody whom it cannot be kept for. */
int draft_put(const char *path, const struct draft_content *c, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of `pale doctor --fix`: what was changed on the host, in order, so that it can be taken back exactly.
 *
 * How it works: a step is written down before it is done. The file is JSON in the very bytes that ledger_write gives; anything
 * else is refused, because root acts on it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define LEDGER_STEPS_MAX 512

enum ledger_deed {
    DEED_APPEND, /* text was added to the end of the file */
    DEED_CREATE, /* the file was made, with this text */
    DEED_MKDIR,  /* the folder was made */
    DEED_CHOWN,  /* it was given away; uid and gid are those it had */
    DEED_COUNT,
};

struct ledger_step {
    enum ledger_deed deed;
    char user[64]; /* for whom */
    char path[512];
    char text[512];
    uint32_t uid, gid;
};

struct ledger {
    size_t count;
    struct ledger_step step[LEDGER_STEPS_MAX];
};

void ledger_write(const struct ledger *l, struct buf *out);
int ledger_parse(const char *text, size_t len, struct ledger *ret, struct pale_err *e) MUST_CHECK;

/* From and to the file; one that is not there is empty, and an empty one is removed. */
int ledger_load(const char *path, struct ledger *ret, struct pale_err *e) MUST_CHECK;
int ledger_save(const char *path, const struct ledger *l, struct pale_err *e) MUST_CHECK;

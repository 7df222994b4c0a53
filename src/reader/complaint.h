/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a policy file: every error with its place, up to a maximum, told in the order of the file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

struct place {
    size_t line, column; /* from 1 */
};

struct complaint {
    struct place place;
    char key[128];
    char text[PALE_ERR_TEXT_MAX];
};

struct complaints {
    struct complaint item[POLICY_ERRORS_MAX];
    size_t count;
};

/* Notes one error; what comes after the last that fits is dropped. key may be "" where no key is to blame. */
void complain(struct complaints *c, struct place at, const char *key, const char *fmt, ...) PRINTF_LIKE(4, 5);
bool complaints_full(const struct complaints *c);

/* FILE:LINE:COLUMN: key: what is wrong. */
void complaints_text(const struct complaints *c, const char *file, struct buf *out);

/* {"valid":false,"errors":[{file,line,column,key,message}]} */
void complaints_json(const struct complaints *c, const char *file, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that a deed tells at length: handed to an outlet whenever a piece of it is whole, so that no list is too long. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "steward/outlet.h"

struct telling {
    struct outlet *out;
    struct buf text;
    struct json json; /* what is written to it is told */
    struct pale_err *e;
};
void telling_done(struct telling *t);
#define own_telling CLEANUP(telling_done) struct telling

/* e must live as long as the telling. */
int telling_begin(struct telling *t, int fd, struct pale_err *e) MUST_CHECK;
int telling_pass(struct telling *t) MUST_CHECK;
int telling_end(struct telling *t) MUST_CHECK;

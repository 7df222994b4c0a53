/* SPDX-License-Identifier: Apache-2.0 */
/* What a deed tells at length: parts, as opaque bytes to paled, no faster than its client takes them. Small ones are gathered. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/frame.h"

struct outlet {
    int fd;
    size_t len;
    uint64_t told; /* bytes */
    uint8_t mem[FRAME_HEAD + FRAME_DATA_MAX];
};

/* NULL: out of memory. A client that has left is an error from now on, as others are. */
struct outlet *outlet_new(int fd);

/* arg: the outlet. PALE_GONE if nobody takes it. */
int outlet_add(void *arg, const void *p, size_t n, struct pale_err *e) MUST_CHECK;
int outlet_flush(struct outlet *o, struct pale_err *e) MUST_CHECK;

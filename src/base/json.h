/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON. Commas and nesting are kept by the writer; text that is not UTF-8 has each bad byte replaced by U+FFFD. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH 16

struct json {
    struct buf *out;
    bool more[JSON_DEPTH]; /* something stands before the next item at this depth */
    int depth;
};

void json_start(struct json *j, struct buf *out);

/* key is NULL inside a list. */
void json_begin_object(struct json *j, const char *key);
void json_begin_list(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_list(struct json *j);

void json_text(struct json *j, const char *key, const char *s);
void json_bytes(struct json *j, const char *key, const void *p, size_t n);
void json_u64(struct json *j, const char *key, uint64_t v);
void json_i64(struct json *j, const char *key, int64_t v);
void json_bool(struct json *j, const char *key, bool v);
/* Text that is JSON already, and ours. */
void json_raw(struct json *j, const char *key, const void *p, size_t n);
void json_put_null(struct json *j, const char *key);

/* A number given as thousandths or millionths, written with a decimal point. */
void json_fixed(struct json *j, const char *key, uint64_t v, int places);

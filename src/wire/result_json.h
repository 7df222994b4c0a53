/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a command as JSON, the same for the command line, REST and what is told of jobs. */
#pragma once

#include "base/json.h"
#include "wire/message.h"

/* How it ended and what it used, as members of an open object: exit, signal (0: none), started, timed_out, cpu_limit, out_of_memory,
 * disk_full, killed, truncated, duration_ms, cpu_ms, peak_bytes, output_bytes, dropped_bytes, message. */
void result_json(struct json *j, const struct msg_result *r);

/* Bytes as an object: {"data": TEXT} if they are UTF-8, else {"base64": TEXT}. key NULL: in a list. */
void result_json_bytes(struct json *j, const char *key, const void *p, size_t n);

/* The one member of it, into an open object; key is what the text is called if the bytes are UTF-8. */
void result_json_bytes_as(struct json *j, const char *key, const void *p, size_t n);

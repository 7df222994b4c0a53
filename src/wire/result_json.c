/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the result of a command as JSON. */
#include "wire/result_json.h"

#include "base/base64.h"
#include "base/quote.h"

void result_json(struct json *j, const struct msg_result *r)
{
    json_u64(j, "exit", r->status);
    json_u64(j, "signal", r->signal);
    json_bool(j, "started", !(r->flags & RESULT_NOT_STARTED));
    json_bool(j, "timed_out", r->flags & RESULT_TIMEOUT);
    json_bool(j, "cpu_limit", r->flags & RESULT_CPU_LIMIT);
    json_bool(j, "out_of_memory", r->flags & RESULT_OOM);
    json_bool(j, "disk_full", r->flags & RESULT_DISK_FULL);
    json_bool(j, "killed", r->flags & RESULT_KILLED);
    json_bool(j, "truncated", r->flags & RESULT_TRUNCATED);
    json_fixed(j, "duration_ms", r->time_us, 3);
    json_fixed(j, "cpu_ms", r->cpu_us, 3);
    json_u64(j, "peak_bytes", r->peak_kib * 1024);
    json_u64(j, "output_bytes", r->out_bytes);
    json_u64(j, "dropped_bytes", r->dropped_bytes);
    json_text(j, "message", r->message);
}

static bool is_utf8(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned point;
        size_t step = quote_utf8(p + i, n - i, &point);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

void result_json_bytes_as(struct json *j, const char *key, const void *p, size_t n)
{
    if (is_utf8(p, n)) {
        json_bytes(j, key, p ? p : "", n);
        return;
    }
    own_buf b = {0};
    buf_init(&b, 4 * (n / 3 + 1));
    base64_write(p, n, &b);
    json_bytes(j, "base64", b.data, b.len);
}

void result_json_bytes(struct json *j, const char *key, const void *p, size_t n)
{
    json_begin_object(j, key);
    result_json_bytes_as(j, "data", p, n);
    json_end_object(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of results. */
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "cli/cli.h"

static void print_message(const struct msg_result *r)
{
    if (r->message[0])
        cli_complain(r->message);
    if (r->flags & RESULT_TRUNCATED) {
        char kept[32], lost[32];
        fprintf(stderr, "%s[pale: output cut at %s; %s more were dropped]%s\n", cli_colour(2, "yellow"),
                number_show_bytes(r->out_bytes, kept, sizeof(kept)), number_show_bytes(r->dropped_bytes, lost, sizeof(lost)),
                cli_colour(2, "reset"));
    }
}

void report_line(const struct msg_result *r, bool quiet)
{
    char time[32], peak[32], cpu[32];
    print_message(r);
    if (quiet || (r->flags & RESULT_NOT_STARTED))
        return;
    snprintf(cpu, sizeof(cpu), "%llu.%02llus", (unsigned long long)(r->cpu_us / 1000000),
             (unsigned long long)(r->cpu_us % 1000000 / 10000));
    fprintf(stderr, "%sexit=%llu time=%s cpu=%s peak=%s%s\n", cli_colour(2, "dim"), (unsigned long long)r->status,
            number_show_ms(r->time_us / 1000, time, sizeof(time)), cpu, number_show_bytes(r->peak_kib * 1024, peak, sizeof(peak)),
            cli_colour(2, "reset"));
}

void report_fields(const struct msg_result *r, struct json *j)
{
    json_u64(j, "exit", r->status);
    if (r->signal)
        json_u64(j, "signal", r->signal);
    else
        json_put_null(j, "signal");
    json_bool(j, "timeout", r->flags & RESULT_TIMEOUT);
    json_bool(j, "oom", r->flags & RESULT_OOM);
    json_bool(j, "cpu_limit", r->flags & RESULT_CPU_LIMIT);
    json_bool(j, "disk_full", r->flags & RESULT_DISK_FULL);
    json_bool(j, "killed", r->flags & RESULT_KILLED);
    json_bool(j, "started", !(r->flags & RESULT_NOT_STARTED));
    json_bool(j, "truncated", r->flags & RESULT_TRUNCATED);
    json_u64(j, "output_bytes", r->out_bytes);
    json_u64(j, "dropped_bytes", r->dropped_bytes);
    json_fixed(j, "time_ms", r->time_us, 3);
    json_fixed(j, "cpu_ms", r->cpu_us, 3);
    json_u64(j, "peak_bytes", r->peak_kib * 1024);
    json_text(j, "message", r->message);
}

/* Text if it is text; else base64, and the field says so. */
static void stream(struct json *j, const char *key, const char *key64, const struct buf *b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bool text = true;
    for (size_t i = 0; text && i < b->len;) {
        unsigned point;
        size_t n = quote_utf8(b->data + i, b->len - i, &point);
        text = n > 0;
        i += n;
    }
    if (text) {
        json_bytes(j, key, b->data ? (const char *)b->data : "", b->len);
        return;
    }
    own_buf e = {0};
    buf_init(&e, 2 * b->len + 16);
    for (size_t i = 0; i < b->len; i += 3) {
        unsigned v =
            (unsigned)b->data[i] << 16 | (i + 1 < b->len ? (unsigned)b->data[i + 1] << 8 : 0) | (i + 2 < b->len ? b->data[i + 2] : 0u);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], i + 1 < b->len ? digits[v >> 6 & 63] : '=',
                        i + 2 < b->len ? digits[v & 63] : '='};
        buf_add(&e, four, 4);
    }
    json_bytes(j, key64, e.data, e.len);
}

int report_json(const struct msg_result *r, const struct msg_exec *asked, struct buf *out, struct buf *err)
{
    own_buf b = {0};
    struct json j;
    buf_init(&b, 4ull << 30);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    report_fields(r, &j);
    if (asked && asked->heldc > 0) {
        json_begin_list(&j, "env_held_back");
        for (size_t i = 0; i < asked->heldc; i++)
            json_text(&j, NULL, asked->held[i]);
        json_end_list(&j);
    }
    stream(&j, "stdout", "stdout_base64", out);
    stream(&j, "stderr", "stderr_base64", err);
    json_end_object(&j);
    int failed = cli_json(&b);
    return failed ? failed : (int)r->status;
}

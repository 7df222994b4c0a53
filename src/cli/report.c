/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of results. */
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "wire/result_json.h"

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

int report_json(const struct msg_result *r, const struct msg_exec *asked, struct buf *out, struct buf *err)
{
    own_buf b = {0};
    struct json j;
    buf_init(&b, 4ull << 30);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    result_json(&j, r);
    if (asked && asked->heldc > 0) {
        json_begin_list(&j, "env_held_back");
        for (size_t i = 0; i < asked->heldc; i++)
            json_text(&j, NULL, asked->held[i]);
        json_end_list(&j);
    }
    result_json_bytes(&j, "stdout", out->data, out->len);
    result_json_bytes(&j, "stderr", err->data, err->len);
    json_end_object(&j);
    int failed = cli_json(&b);
    return failed ? failed : (int)r->status;
}

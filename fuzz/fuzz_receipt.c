/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the prober's report, which comes out of a box. Whatever it says, a receipt is whole or there is none, and a line is
 * good only with an answer that it expects. */
#include <assert.h>
#include <stdlib.h>

#include "box/receipt.h"
#include "input.h"

static bool expects(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == '|') && (at[n] == 0 || at[n] == '|'))
            return true;
    return false;
}

static void check_row(const struct receipt_row *row)
{
    bool any = strcmp(row->expected, "any") == 0 && strcmp(row->observed, "not tried") != 0;
    assert(row->name[0] && row->defence[0] && row->expected[0] && row->observed[0]);
    assert(row->good == (any || expects(row->expected, row->observed)));
}

/* Sizes from one byte to plenty. */
static void check_complaint(const struct receipt *r, uint8_t size)
{
    char text[256 * 4];
    size_t cap = (size_t)size * 4 + 1;
    memset(text, 'x', sizeof(text));
    receipt_complaint(r, text, cap);
    assert(memchr(text, 0, cap) && (text[0] != 0) == (r->bad > 0 && cap > 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t b = input_byte(&in), cap = input_byte(&in);
    struct receipt_facts f = {.uid = 1000,
                              .processes = b & 4 ? 512 : 0,
                              .init_user_space = b & 8 ? 77 : 0,
                              .full = b & 1,
                              .has_listeners = b & 2,
                              .has_planted = b & 2,
                              .landlock_left = b & 4 ? 16 : -1,
                              .scratch_bytes = b & 8 ? 8192 : 0};
    static struct receipt r;
    struct pale_err e = {0};
    for (int i = 0; i < SPACE_COUNT; i++)
        f.host_space[i] = b & 16 ? 88 : 0;
    for (int i = 0; i < (b >> 5) * 3; i++)
        receipt_outside(&f, "memory-limit", "the limit on memory (cgroup)", "4096", i % 5 ? "4096" : "none");
    /* Most inputs are a report of the right length, a byte for each answer: not tried, an errno, a namespace. */
    struct probe_report report;
    const void *p = in.at;
    size_t n = in.left;
    if (n >= PROBE_COUNT) {
        for (int i = 0; i < PROBE_COUNT; i++) {
            uint8_t v = input_byte(&in);
            report.answer[i] = v == 255 ? PROBE_NOT_TRIED : v == 254 ? 1000 : v == 253 ? 512 : v == 252 ? PROBE_TOUCH_BYTES : v;
        }
        report.took_us = (uint32_t)input_number(&in, 4);
        p = &report;
        n = sizeof(report) - (in.left ? input_byte(&in) % 8 == 7 : 0);
    }
    if (receipt_judge(&f, p, n, &r, &e) < 0) {
        assert(e.text[0] && n != sizeof(report));
        return 0;
    }
    size_t bad = 0;
    assert(n == sizeof(report) && r.count > 0 && r.count <= RECEIPT_ROWS_MAX && r.full == f.full);
    for (size_t i = 0; i < r.count; i++) {
        bad += !r.row[i].good;
        check_row(&r.row[i]);
    }
    assert(bad == r.bad);
    check_complaint(&r, cap);
    if (cap % 32) /* dear, and the same every time */
        return 0;
    char mem[16384];
    struct buf out;
    struct json j;
    const struct receipt_head head = {"b", "0", "2026", "native", "6", "0", "1", "0", b & 32 ? "0" : NULL};
    buf_init_lent(&out, sizeof(mem), mem, sizeof(mem));
    json_start(&j, &out);
    receipt_json(&r, &head, &j, NULL);
    assert(!out.failed && j.depth == 0);
    buf_clear(&out);
    receipt_brief(&r, &out);
    assert(!out.failed);
    buf_done(&out);
    return 0;
}

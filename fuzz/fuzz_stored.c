/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what we once wrote and read again: the ledger, which root acts on, the claims of other boxes, and answers that stand. */
#include <assert.h>
#include <string.h>

#include "box/claimrecord.h"
#include "box/ledger.h"
#include "box/standing.h"
#include "input.h"

/* What is taken is exactly what ledger_write gives. */
static void try_ledger(struct input *in)
{
    static struct ledger l;
    own_buf again = {0};
    struct pale_err e = {0};
    if (ledger_parse((const char *)in->at, in->left, &l, &e) < 0) {
        assert(e.text[0] && l.count == 0);
        return;
    }
    assert(l.count <= LEDGER_STEPS_MAX);
    buf_init(&again, 1 << 20);
    ledger_write(&l, &again);
    assert(!again.failed && again.len == in->left && memcmp(again.data, in->at, in->left) == 0);
}

/* Every line is read, or said to be none, and the reading ends. */
static void try_claims(struct input *in)
{
    static char text[4096 + 64];
    struct claim_record r = {.fd = -1};
    struct claim_line line;
    size_t lines = 0;
    input_text(in, text, sizeof(text));
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    claim_record_read(&r, text);
    assert(r.name && r.lines);
    for (const char *at = r.lines; *at;) {
        const char *was = at;
        memset(&line, 0, sizeof(line));
        bool good = claim_line_read(&at, &line);
        if (!good)
            break; /* it counts as a claim on everything */
        assert(at > was && memchr(line.path, 0, sizeof(line.path)));
        assert(lines-- + 1 > 0);
    }
}

/* What is taken is such as may be answered, and written it is taken again. */
static void try_standing(struct input *in)
{
    static struct standing_list l, second;
    own_buf text = {0};
    if (!standing_parse((const char *)in->at, in->left, &l))
        return;
    assert(l.count <= STANDING_MAX);
    for (size_t i = 0; i < l.count; i++)
        assert(standing_is_host(l.item[i].host) && l.item[i].port);
    buf_init(&text, 1 << 20);
    standing_write(&l, &text);
    assert(!text.failed && standing_parse(buf_text(&text), text.len, &second) && second.count == l.count);
    assert(memcmp(second.item, l.item, l.count * sizeof(l.item[0])) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    static void (*const tries[])(struct input *) = {try_ledger, try_claims, try_standing};
    tries[input_byte(&in) % 3](&in);
    return 0;
}

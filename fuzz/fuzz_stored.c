/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what we once wrote and read again: the ledger, which root acts on, the claims of other boxes, and answers that stand. */
#include <assert.h>

#include "box/claims.c"

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

/* Two boxes clash in whichever order they come; one whose folder we would write ourselves always does. */
static void try_claims(struct input *in)
{
    static char mine[4096], theirs[4096 + 8];
    static const char name[] = "other\n";
    struct pale_err e = {0};
    memcpy(theirs, name, sizeof(name) - 1);
    input_text(in, mine, sizeof(mine));
    input_text(in, theirs + sizeof(name) - 1, sizeof(theirs) - sizeof(name));
    /* Ours are lines of our own making. */
    for (const char *at = mine; *at; at += strcspn(at, "\n") + 1)
        if (at[strcspn(at, "\n")] != '\n')
            return;
    int r = compare(mine, theirs, &e);
    assert(r == 0 || e.code == PALE_DENIED);
    size_t first = strcspn(mine, "\n");
    if (first && memchr(mine, ' ', first) && strstr(theirs + sizeof(name) - 1, mine) == theirs + sizeof(name) - 1)
        assert(r < 0);
    if (r < 0)
        return;
    for (const char *a = mine; *a; a += strcspn(a, "\n") + 1)
        for (const char *b = theirs + sizeof(name) - 1; *b; b += strcspn(b, "\n"), b += *b == '\n')
            assert(!clash(b, strcspn(b, "\n"), a, strcspn(a, "\n")));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the prober's lines, which come out of a box. Whatever they say, a receipt is whole or there is none, and a row is
 * good only with an answer that it expects. */
#include <assert.h>
#include <stdio.h>
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct policy p;
    static struct receipt r;
    struct input in = {data, size};
    struct pale_err e = {0};
    p.seccomp = input_byte(&in) % SECCOMP_COUNT;
    own_mem char *lines = malloc(in.left + 1);
    assert(lines);
    input_text(&in, lines, in.left + 1);
    if (receipt_judge(&p, lines, &r, &e) < 0) {
        assert(e.text[0]);
        return 0;
    }
    size_t bad = 0;
    assert(r.count > 0 && r.count <= RECEIPT_ROWS_MAX);
    for (size_t i = 0; i < r.count; i++) {
        bad += !r.row[i].good;
        assert(r.row[i].observed[0] && r.row[i].good == expects(r.row[i].expected, r.row[i].observed));
        char line[80];
        snprintf(line, sizeof(line), "%s\t%s\n", r.row[i].name, r.row[i].observed);
        assert(strstr(lines, line));
    }
    assert(bad == r.bad);
    return 0;
}

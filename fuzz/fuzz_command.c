/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what reaches the command: its own words, against every verb's tables, and the listing of a box's folder. */
#include <assert.h>

#include "cli/verb_file.c"

#include "input.h"

#define WORDS_MAX 48

/* Positions stay in order; every word is an option, its value, a position or part of the command. */
static void try_args(struct input *in)
{
    static char mem[4096];
    static char *words[WORDS_MAX + 1];
    static struct args a;
    struct pale_err e = {0};
    size_t verbs = 0, used = 0;
    int n = 0;
    while (cli_verbs[verbs])
        verbs++;
    const struct verb *v = cli_verbs[input_byte(in) % verbs];
    while (in->left && n < WORDS_MAX && used + 1 < sizeof(mem)) {
        words[n++] = mem + used;
        used += input_text(in, mem + used, sizeof(mem) - used) + 1;
    }
    words[n] = NULL;
    if (args_parse(v, n, words, &a, &e) < 0) {
        assert(e.text[0] && e.code);
        return;
    }
    assert(a.count <= n && a.command >= 0 && a.command <= a.count && a.given_count <= ARGS_OPTIONS_MAX);
    for (int i = 1; i < a.count; i++)
        assert(a.word[i - 1] < a.word[i]);
    for (int i = 0; i < a.given_count; i++)
        assert(a.given[i].value && (a.given[i].option->value || !a.given[i].value[0]) && args_has(&a, a.given[i].option->name));
    if (!args_has(&a, "help"))
        assert(a.count >= v->min && (v->max < 0 || a.count <= v->max));
}

/* An entry that is taken is the one that stands there, byte for byte. */
static void try_entries(struct input *in)
{
    const char *at = (const char *)in->at, *end = at + in->left;
    struct entry en;
    own_listing table = {0}, json = {0};
    struct args as_table = {0}, as_json = {.json = true};
    listing_init(&table, &as_table, NULL, 4);
    listing_init(&json, &as_json, NULL, 4);
    for (const char *from = at; at < end && take_entry(&at, end, &en); from = at) {
        char again[128];
        int n = snprintf(again, sizeof(again), "%c %llu %llu %lld ", en.type, (unsigned long long)en.mode, (unsigned long long)en.size,
                         (long long)en.mtime);
        const char *numbers = from + 2;
        assert(en.type && en.name > from && en.name - from >= n && en.target == en.name + strlen(en.name) + 1);
        assert(at == en.target + strlen(en.target) + 1 && at <= end);
        assert((size_t)(en.name - numbers) == strnlen(numbers, (size_t)(en.name - numbers)));
        list_entry(&table, &en);
        list_entry(&json, &en);
    }
    assert(!table.table.cells.failed && !json.text.failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    (input_byte(&in) & 1 ? try_entries : try_args)(&in);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what reaches the command: its own words, against every verb's tables, and what a box tells of its files. */
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

/* An entry that is taken is the one that stands there, byte for byte, and no part of it is one. */
static void try_entries(struct input *in)
{
    struct file_entry en;
    own_listing table = {0}, json = {0};
    struct args as_table = {0}, as_json = {.json = true};
    size_t used = 0, less = 0;
    listing_init(&table, &as_table, NULL, 4);
    listing_init(&json, &as_json, NULL, 4);
    for (; file_entry_parse(in->at, in->left, &en, &used) == 1; in->at += used, in->left -= used) {
        char again[FILE_ENTRY_MAX];
        assert(used <= in->left && file_entry_write(&en, again) == used && memcmp(again, in->at, used) == 0);
        for (size_t n = 0; n < used; n++)
            assert(file_entry_parse(in->at, n, &en, &less) == 0);
        assert(file_entry_parse(in->at, used, &en, &less) == 1 && !strchr(en.name, '/'));
        list_entry(&table, &en, "path");
        list_entry(&json, &en, "path");
    }
    assert(!table.table.cells.failed && !json.text.failed);
}

static void try_events(struct input *in)
{
    struct file_event ev;
    size_t used = 0, less = 0;
    for (; file_event_parse(in->at, in->left, &ev, &used) == 1; in->at += used, in->left -= used) {
        char again[FILE_EVENT_MAX];
        assert(used <= in->left && file_event_write(&ev, again) == used && memcmp(again, in->at, used) == 0);
        for (size_t n = 0; n < used; n++)
            assert(file_event_parse(in->at, n, &ev, &less) == 0);
        assert(file_event_parse(in->at, used, &ev, &less) == 1 && ev.name[0] != '/' && strncmp(ev.name, "../", 3) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t which = input_byte(&in);
    (!(which & 1) ? try_args : which & 2 ? try_events : try_entries)(&in);
    return 0;
}

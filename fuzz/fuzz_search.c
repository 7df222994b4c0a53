/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: patterns for names and for searches. What a pattern of names matches is reached through folders that it goes on in. A
 * pattern of a search becomes one that the C library reads without stepping beyond it, and whatever that matches has the literal in it. */
#include <assert.h>
#include <regex.h>
#include <stdlib.h>

#include "base/wildcard.h"
#include "init/pattern.h"
#include "input.h"

static void try_names(struct input *in)
{
    static struct wildcard w;
    struct wildcard_state s, next;
    struct pale_err e = {0};
    char text[400], name[64];
    bool anywhere = input_byte(in) & 1;
    input_text(in, text, sizeof(text));
    if (wildcard_parse(&w, text, anywhere, &e) < 0) {
        assert(e.code == PALE_BAD_INPUT && e.text[0]);
        return;
    }
    assert(w.count > 0 && w.count <= WILDCARD_ALTERNATIVES);
    wildcard_begin(&w, &s);
    for (int depth = 0; depth < 6 && in->left; depth++) {
        bool went_on = wildcard_goes_on(&w, &s);
        input_text(in, name, sizeof(name));
        wildcard_step(&w, &s, name, depth & 1, &next);
        assert(went_on || (!wildcard_is_match(&w, &next) && !wildcard_goes_on(&w, &next)));
        s = next;
    }
    char folder[32];
    const char *rest = wildcard_split(text, folder, sizeof(folder));
    assert(rest >= text && rest <= text + strlen(text) && strlen(folder) < sizeof(folder) && !strpbrk(folder, "*?[{"));
}

static bool has_literal(const struct pattern *p, const char *line)
{
    return (p->ignore_case ? strcasestr(line, p->literal) : strstr(line, p->literal)) != NULL;
}

static void try_search(struct input *in)
{
    static struct pattern p;
    struct pale_err e = {0};
    char text[100], line[200];
    regex_t re;
    uint8_t flags = input_byte(in);
    input_text(in, text, sizeof(text));
    input_text(in, line, sizeof(line));
    if (pattern_read(&p, text, flags & 1, flags & 2, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    assert(strlen(p.literal) == p.literal_len && strlen(p.regex) < sizeof(p.regex) && (!p.plain || p.literal_len > 0));
    /* What nests counted repetitions takes the library's memory and time, which a box bounds. */
    if (strchr(line, '\n') || strstr(p.regex, "){") || strstr(p.regex, "]{"))
        return;
    int r = regcomp(&re, p.regex, REG_EXTENDED | REG_NEWLINE | REG_NOSUB | (p.ignore_case ? REG_ICASE : 0));
    assert(r == 0 || !p.plain);
    if (r != 0)
        return;
    bool match = regexec(&re, line, 0, NULL, 0) == 0;
    assert(!match || p.literal_len == 0 || has_literal(&p, line));
    assert(!p.plain || match == has_literal(&p, line));
    regfree(&re);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    if (input_byte(&in) & 1)
        try_names(&in);
    else
        try_search(&in);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns lists of words. */
#include "agents/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void words_done(struct words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->item[i]);
    *w = (struct words){0};
}

static void give(struct words *w, char *s)
{
    if (!s || w->count == WORDS_MAX) {
        w->failed = true;
        free(s);
        return;
    }
    w->item[w->count++] = s;
    w->item[w->count] = NULL;
}

void words_add(struct words *w, const char *s)
{
    give(w, strdup(s));
}

void words_addf(struct words *w, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    give(w, s);
}

static size_t find(const struct words *w, const char *name)
{
    size_t n = strlen(name), i = 0;
    while (i < w->count && !(strncmp(w->item[i], name, n) == 0 && w->item[i][n] == '='))
        i++;
    return i;
}

void words_set_env(struct words *w, const char *name, const char *value)
{
    size_t at = find(w, name);
    if (at < w->count) {
        free(w->item[at]);
        w->item[at] = w->item[--w->count];
        w->item[w->count] = NULL;
    }
    words_addf(w, "%s=%s", name, value);
}

const char *words_env(const struct words *w, const char *name)
{
    size_t at = find(w, name);
    return at < w->count ? w->item[at] + strlen(name) + 1 : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the distance between names. Pure. */
#include "base/nearest.h"

#include <string.h>

#define WORD_MAX 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    size_t la = strnlen(a, WORD_MAX), lb = strnlen(b, WORD_MAX);
    size_t d[3][WORD_MAX + 1];
    for (size_t j = 0; j <= lb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *row = d[i % 3], *up = d[(i + 2) % 3], *upup = d[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t cost = a[i - 1] != b[j - 1];
            row[j] = least(least(row[j - 1], up[j]) + 1, up[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], upup[j - 2] + 1);
        }
    }
    return d[la % 3][lb];
}

void nearest_init(struct nearest *n, const char *word)
{
    /* A third of the letters may be wrong; more is another word. */
    *n = (struct nearest){.word = word, .distance = strnlen(word, WORD_MAX) / 3 + 1};
}

void nearest_offer(struct nearest *n, const char *name)
{
    size_t d = nearest_distance(n->word, name);
    if (d <= n->distance && (!n->best || d < n->distance)) {
        n->distance = d;
        n->best = name;
    }
}

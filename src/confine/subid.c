/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of subordinate id ranges. */
#include "confine/subid.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* Where shadow's tools begin, and where the ids of root's boxes begin (confine/ids.c). */
#define FIRST_ID 100000u
#define END_ID 0x40000000u

/* One line: up to four fields between colons, which do not end with a NUL. */
struct line {
    const char *field[4];
    size_t len[4];
    int count;
};

/* The next line that is neither empty nor a comment; false at the end. */
static bool next_line(const char **at, struct line *ret)
{
    while (**at) {
        const char *p = *at;
        size_t len = strcspn(p, "\n");
        *at = p + len + (p[len] == '\n');
        if (len == 0 || *p == '#')
            continue;
        *ret = (struct line){0};
        for (const char *end = p + len; ret->count < 4; p++) {
            size_t n = strcspn(p, ":\n");
            ret->field[ret->count] = p;
            ret->len[ret->count++] = n;
            p += n;
            if (p >= end)
                break;
        }
        return true;
    }
    return false;
}

static bool field_number(const struct line *l, int i, uint64_t *ret)
{
    char word[24];
    if (i >= l->count || l->len[i] == 0 || l->len[i] >= sizeof(word))
        return false;
    memcpy(word, l->field[i], l->len[i]);
    word[l->len[i]] = 0;
    return number_u64(word, UINT32_MAX, ret);
}

static bool field_is(const struct line *l, int i, const char *word)
{
    return i < l->count && l->len[i] == strlen(word) && memcmp(l->field[i], word, l->len[i]) == 0;
}

bool subid_has(const char *text, const char *name, uint32_t uid)
{
    struct line l;
    char number[16];
    uint64_t start, count;
    snprintf(number, sizeof(number), "%u", uid);
    while (next_line(&text, &l))
        if ((field_is(&l, 0, name) || field_is(&l, 0, number)) && field_number(&l, 1, &start) && field_number(&l, 2, &count) &&
            count >= SUBID_COUNT)
            return true;
    return false;
}

/* Moves *start past whatever of this text it would touch; false if a line cannot be read. */
static bool move_past(const char *text, int start_field, bool counted, uint64_t *start, bool *moved)
{
    struct line l;
    while (next_line(&text, &l)) {
        uint64_t from, count = 1;
        if (!field_number(&l, start_field, &from) || (counted && !field_number(&l, start_field + 1, &count)))
            return false;
        if (from < *start + SUBID_COUNT && *start < from + count) {
            *start = from + count;
            *moved = true;
        }
    }
    return true;
}

bool subid_free(const char *const *texts, size_t count, const char *passwd, uint32_t *ret_start)
{
    uint64_t start = FIRST_ID;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < count; i++)
            if (!move_past(texts[i], 1, true, &start, &moved))
                return false;
        if (!move_past(passwd, 2, false, &start, &moved) || start + SUBID_COUNT > END_ID)
            return false;
    }
    *ret_start = (uint32_t)start;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the form of answers. Pure. */
#include "wire/answer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "wire/scan.h"

/* A field, its letter in the rows below, and what it may be. */
enum how { HOW_NUMBER, HOW_SIGNED, HOW_LETTER, HOW_PATH, HOW_MAYBE_PATH, HOW_TEXT };

#define AT(member) offsetof(struct answer, member)

static const struct field {
    char id;
    enum how how;
    size_t at;
    uint64_t most;       /* of a number */
    const char *letters; /* of a letter */
} fields[] = {
    {'n', HOW_NUMBER, AT(line), INT64_MAX, NULL},
    {'l', HOW_NUMBER, AT(last), INT64_MAX, NULL},
    {'t', HOW_NUMBER, AT(total), INT64_MAX, NULL},
    {'s', HOW_NUMBER, AT(size), INT64_MAX, NULL},
    {'c', HOW_NUMBER, AT(count), INT64_MAX, NULL},
    {'f', HOW_NUMBER, AT(files), INT64_MAX, NULL},
    {'e', HOW_NUMBER, AT(seen), INT64_MAX, NULL},
    {'g', HOW_NUMBER, AT(flags), ANSWER_MORE | ANSWER_BINARY | ANSWER_CUT | ANSWER_TOTAL, NULL},
    {'i', HOW_SIGNED, AT(mtime), 0, NULL},
    {'y', HOW_LETTER, AT(type), 0, "fdlpscb?"},
    {'a', HOW_LETTER, AT(type), 0, "acrm"},
    {'p', HOW_PATH, AT(path), 0, NULL},
    {'q', HOW_MAYBE_PATH, AT(path), 0, NULL},
    {'o', HOW_MAYBE_PATH, AT(other), 0, NULL},
    {'x', HOW_TEXT, AT(text), 0, NULL},
};

static const struct row {
    char letter;
    const char *fields; /* their ids, in order */
    size_t text_max;
} rows[] = {
    [ANSWER_LINES] = {'L', "nltsgx", LINES_BYTES_MAX},
    [ANSWER_EDITED] = {'E', "cn", 0},
    [ANSWER_ENTRY] = {'G', "ysip", 0},
    [ANSWER_MATCH] = {'M', "nqx", GREP_LINE_MAX},
    [ANSWER_CONTEXT] = {'C', "nqx", GREP_LINE_MAX},
    [ANSWER_FILE] = {'F', "q", 0},
    [ANSWER_COUNT] = {'N', "cq", 0},
    [ANSWER_CHANGE] = {'P', "apo", 0},
    [ANSWER_END] = {'.', "fceg", 0},
};
static_assert(sizeof(rows) / sizeof(rows[0]) == ANSWER_KIND_COUNT, "a row for every kind");

static const struct field *field_of(char id)
{
    size_t i = 0;
    while (fields[i].id != id) {
        i++;
        assert(i < sizeof(fields) / sizeof(fields[0]));
    }
    return &fields[i];
}

/* --- writing --- */

static size_t write_field(const struct field *f, const struct answer *a, char *ret, size_t cap)
{
    const void *at = (const char *)a + f->at;
    int n = -1;
    switch (f->how) {
    case HOW_NUMBER:
        n = snprintf(ret, cap, "%llu ", (unsigned long long)*(const uint64_t *)at);
        break;
    case HOW_SIGNED:
        n = snprintf(ret, cap, "%lld ", (long long)*(const int64_t *)at);
        break;
    case HOW_LETTER:
        n = snprintf(ret, cap, "%c ", *(const char *)at);
        break;
    case HOW_PATH:
    case HOW_MAYBE_PATH:
        n = snprintf(ret, cap, "%s", *(const char *const *)at) + 1;
        break;
    case HOW_TEXT:
        n = snprintf(ret, cap, "%zu ", a->text_len);
        break;
    }
    assert(n > 0 && (size_t)n <= cap);
    return (size_t)n;
}

size_t answer_head_write(const struct answer *a, char *ret)
{
    size_t n = 0;
    ret[n++] = rows[a->kind].letter;
    ret[n++] = ' ';
    for (const char *id = rows[a->kind].fields; *id; id++)
        n += write_field(field_of(*id), a, ret + n, ANSWER_HEAD_MAX - n);
    return n;
}

/* --- reading --- */

static int take_path(struct scan *c, bool maybe, const char **ret)
{
    int r = scan_text(c, PATH_BYTES_MAX, ret);
    if (r <= 0)
        return r;
    return scan_is_relative(*ret) && (maybe || (*ret)[0]) ? 1 : -1;
}

static int take_text(struct scan *c, size_t most, struct answer *a)
{
    uint64_t n = 0;
    int r = scan_number(c, 10, most, &n);
    if (r <= 0)
        return r;
    a->text_len = (size_t)n;
    return scan_bytes(c, a->text_len, &a->text);
}

static int take_field(struct scan *c, const struct field *f, size_t text_max, struct answer *a)
{
    void *at = (char *)a + f->at;
    int r = -1;
    switch (f->how) {
    case HOW_NUMBER:
        return scan_number(c, 10, f->most, at);
    case HOW_SIGNED:
        return scan_signed(c, at);
    case HOW_LETTER:
        r = scan_letter(c, f->letters, at);
        return r <= 0 ? r : scan_space(c);
    case HOW_PATH:
    case HOW_MAYBE_PATH:
        return take_path(c, f->how == HOW_MAYBE_PATH, at);
    case HOW_TEXT:
        return take_text(c, text_max, a);
    }
    return r;
}

static int take_kind(struct scan *c, enum answer_kind *ret)
{
    static const char letters[] = "LEGMCFNP.";
    char found = 0;
    static_assert(sizeof(letters) - 1 == ANSWER_KIND_COUNT, "a letter for every kind");
    int r = scan_letter(c, letters, &found);
    if (r <= 0)
        return r;
    *ret = (enum answer_kind)(strchr(letters, found) - letters);
    return scan_space(c);
}

/* Do the parts belong together? */
static bool makes_sense(const struct answer *a)
{
    switch (a->kind) {
    case ANSWER_LINES:
        return a->line > 0 && (a->last == 0 ? a->text_len == 0 : a->last >= a->line && a->text_len > 0) &&
               !((a->flags & ANSWER_BINARY) && a->last > 0) && ((a->flags & ANSWER_TOTAL) ? a->total >= a->last : a->total == 0);
    case ANSWER_EDITED:
        return a->count > 0 && a->line > 0;
    case ANSWER_MATCH:
    case ANSWER_CONTEXT:
        return a->line > 0;
    case ANSWER_CHANGE:
        return (a->type == 'm') == (a->other[0] != 0);
    case ANSWER_END:
        return a->flags <= ANSWER_MORE;
    default:
        return true;
    }
}

int answer_parse(const void *p, size_t n, struct answer *ret, size_t *ret_used)
{
    struct scan c = {.p = p, .n = n};
    struct answer a = {.path = "", .other = "", .text = ""};
    int r = take_kind(&c, &a.kind);
    if (r <= 0)
        return r;
    assert(rows[a.kind].letter == c.p[0]);
    for (const char *id = rows[a.kind].fields; *id; id++)
        if ((r = take_field(&c, field_of(*id), rows[a.kind].text_max, &a)) <= 0)
            return r;
    if (!makes_sense(&a))
        return -1;
    *ret = a;
    *ret_used = c.at;
    return 1;
}

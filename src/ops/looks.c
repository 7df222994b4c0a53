/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations that look into files of a box.
 *
 * What comes back is read by wire/answer, as hostile: its paths are names below the folder that was asked about, which is put before
 * them here. */
#include <stdio.h>
#include <string.h>

#include "base/wildcard.h"
#include "ops/filework.h"
#include "ops/ops.h"
#include "ops/shown.h"

#define LINES_COUNT 2000u
#define LINES_BYTES 65536u
#define GLOB_LIMIT 200u
#define GREP_LIMIT 200u

static const char *number_text(uint64_t v, char *ret, size_t cap)
{
    snprintf(ret, cap, "%llu", (unsigned long long)v);
    return ret;
}

/* --- lines --- */

static bool show_lines(struct filework *k, const struct answer *a)
{
    struct json *j = &k->json;
    if (a->kind != ANSWER_LINES)
        return false;
    json_begin_object(j, NULL);
    json_text(j, "path", call_text(k->talk.call, "path", ""));
    json_u64(j, "first", a->line);
    json_u64(j, "last", a->last);
    if (a->flags & ANSWER_TOTAL)
        json_u64(j, "total", a->total);
    json_bool(j, "more", a->flags & ANSWER_MORE);
    json_u64(j, "size", a->size);
    json_bool(j, "binary", a->flags & ANSWER_BINARY);
    json_bool(j, "cut", a->flags & ANSWER_CUT);
    if (!(a->flags & ANSWER_BINARY))
        shown_bytes_as(j, "text", a->text, a->text_len);
    json_end_object(j);
    return k->over = true;
}

void op_file_lines(struct call *c)
{
    char from[24], count[24], bytes[24];
    const struct value *tail = call_value(c, "tail");
    struct filework *k = filework_new(c);
    if (!k)
        return;
    if (tail->given && call_value(c, "first")->given)
        return call_refuse(c, PALE_BAD_INPUT, "first or tail, not both");
    if ((call_value(c, "first")->given && call_number(c, "first", 1) == 0) || call_number(c, "bytes", LINES_BYTES) == 0)
        return call_refuse(c, PALE_BAD_INPUT, "first and bytes begin at 1");
    number_text(tail->given ? tail->number : call_number(c, "first", 1), from, sizeof(from));
    number_text(call_number(c, "count", LINES_COUNT), count, sizeof(count));
    number_text(call_number(c, "bytes", LINES_BYTES), bytes, sizeof(bytes));
    filework_answers(k, show_lines);
    filework_send(k, (const char *[]){"lines", call_text(c, "path", ""), tail->given ? "tail" : "from", from, count, bytes, NULL}, 0,
                  FILEWORK_MS);
}

/* --- names by pattern --- */

/* The numbers after the items. */
static bool show_end(struct filework *k, const struct answer *a, bool searched)
{
    struct json *j = &k->json;
    json_end_list(j);
    if (searched) {
        json_u64(j, "files", a->files);
        json_u64(j, "matches", a->count);
    }
    json_bool(j, "more", a->flags & ANSWER_MORE);
    json_u64(j, "seen", a->seen);
    json_end_object(j);
    return k->over = true;
}

static bool show_name(struct filework *k, const struct answer *a)
{
    struct json *j = &k->json;
    if (a->kind == ANSWER_END)
        return show_end(k, a, false);
    if (a->kind != ANSWER_ENTRY)
        return false;
    json_begin_object(j, NULL);
    filework_show_path(k, "path", a->path);
    json_text(j, "type", filework_type(a->type));
    json_u64(j, "size", a->size);
    json_i64(j, "mtime", a->mtime);
    json_end_object(j);
    return true;
}

void op_file_glob(struct call *c)
{
    char limit[24];
    struct filework *k = filework_new(c);
    if (!k)
        return;
    const char *pattern = call_text(c, "pattern", "");
    snprintf(k->folder, sizeof(k->folder), "%s", call_text(c, "path", ""));
    if (pattern[0] == '/') /* as with any path: one that begins at the top is not relative to anything */
        pattern = wildcard_split(pattern, k->folder, sizeof(k->folder));
    number_text(call_number(c, "limit", GLOB_LIMIT), limit, sizeof(limit));
    filework_answers(k, show_name);
    json_begin_object(&k->json, NULL);
    json_begin_list(&k->json, "items");
    filework_send(k, (const char *[]){"glob", k->folder, pattern, limit, call_number(c, "hidden", 0) ? "hidden" : "plain", NULL}, 0,
                  FILEWORK_MS);
}

/* --- searches --- */

static bool show_found(struct filework *k, const struct answer *a)
{
    struct json *j = &k->json;
    if (a->kind == ANSWER_END)
        return show_end(k, a, true);
    if (a->kind != k->wanted && !(a->kind == ANSWER_CONTEXT && k->wanted == ANSWER_MATCH))
        return false;
    json_begin_object(j, NULL);
    filework_show_path(k, "path", a->path);
    if (a->kind == ANSWER_COUNT)
        json_u64(j, "count", a->count);
    if (k->wanted == ANSWER_MATCH) {
        json_u64(j, "line", a->line);
        json_bytes(j, "text", a->text, a->text_len);
        json_text(j, "kind", a->kind == ANSWER_MATCH ? "match" : "context");
    }
    json_end_object(j);
    return true;
}

static bool take_mode(const char *mode, enum answer_kind *ret)
{
    static const struct {
        const char *name;
        enum answer_kind kind;
    } rows[] = {{"content", ANSWER_MATCH}, {"files", ANSWER_FILE}, {"count", ANSWER_COUNT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(mode, rows[i].name) == 0) {
            *ret = rows[i].kind;
            return true;
        }
    return false;
}

void op_file_grep(struct call *c)
{
    char limit[24], before[24], after[24], flags[8];
    const char *mode = call_text(c, "mode", "content");
    struct filework *k = filework_new(c);
    if (!k)
        return;
    if (!take_mode(mode, &k->wanted))
        return call_refuse(c, PALE_BAD_INPUT, "mode: content, files or count");
    snprintf(k->folder, sizeof(k->folder), "%s", call_text(c, "path", ""));
    snprintf(flags, sizeof(flags), "-%s%s%s", call_number(c, "ignore_case", 0) ? "i" : "", call_number(c, "fixed", 0) ? "f" : "",
             call_number(c, "hidden", 0) ? "h" : "");
    number_text(call_number(c, "limit", GREP_LIMIT), limit, sizeof(limit));
    number_text(call_number(c, "before", 0), before, sizeof(before));
    number_text(call_number(c, "after", 0), after, sizeof(after));
    filework_answers(k, show_found);
    json_begin_object(&k->json, NULL);
    json_begin_list(&k->json, "items");
    filework_send(
        k,
        (const char *[]){"grep", k->folder, call_text(c, "pattern", ""), call_text(c, "glob", ""), flags, before, after, mode, limit, NULL},
        0, FILEWORK_MS);
}

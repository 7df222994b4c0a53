/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tools that work with files. Names are a box's: they are shown through base/quote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "mcp/toolbox.h"

#define NAME_SHOWN 4096u
#define ENTRIES_SHOWN 1000u

static void put_name(struct buf *b, const json_t *v, const char *key)
{
    const json_t *name = json_object_get(v, key);
    quote_again(b, json_string_value(name) ? json_string_value(name) : "", json_string_length(name), NAME_SHOWN);
}

static void put_path(struct buf *b, const char *path)
{
    quote_again(b, path, strlen(path), NAME_SHOWN);
}

/* --- read --- */

static void answer_read(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    if (e)
        return use_fail(u, e);
    const json_t *text = json_object_get(answer, "text");
    uint64_t first = duty_number(answer, "first"), last = duty_number(answer, "last"), total = duty_number(answer, "total");
    if (json_is_true(json_object_get(answer, "binary")) || !text)
        return use_say(u, true, "this is no text file (%llu bytes); look into it with a command, such as file or xxd",
                       (unsigned long long)duty_number(answer, "size"));
    buf_init(&b, TOOL_ANSWER_MAX);
    buf_add(&b, json_string_value(text), json_string_length(text));
    if (last == 0 && total > 0)
        buf_addf(&b, "[line %llu is beyond the end: there are %llu]", (unsigned long long)first, (unsigned long long)total);
    else if (json_string_length(text) == 0)
        buf_add_text(&b, "[empty]");
    if (json_is_true(json_object_get(answer, "cut")))
        buf_addf(&b, "\n[line %llu is too long and was cut]", (unsigned long long)last);
    else if (json_is_true(json_object_get(answer, "more")))
        buf_addf(&b, "[lines %llu-%llu; read on with first: %llu]", (unsigned long long)first, (unsigned long long)last,
                 (unsigned long long)last + 1);
    use_answer(u, &b, false);
}

void tool_read(struct use *u)
{
    use_run(u, "file.lines", 0, NULL, answer_read);
}

/* --- write --- */

static void answer_write(struct duty *k, const struct pale_err *e, const json_t *answer);

static void write_content(struct use *u)
{
    u->duty.body = use_text(u, "content", "");
    u->duty.body_len = strlen(u->duty.body);
    use_run(u, "file.write", 0, NULL, answer_write);
}

/* The folders above it are there now. */
static void made_parents(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    (void)answer;
    if (e)
        return use_fail(u, e);
    write_content(u); /* once: a box in which they are gone again is not followed */
}

static void answer_write(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const char *path = use_text(u, "path", ""), *slash = strrchr(path, '/');
    static char tried; /* its address says that the folders have been made */
    (void)answer;
    if (e && e->code == PALE_NOT_FOUND && slash && slash != path && !u->own) {
        u->own = &tried;
        k->body_len = 0;
        return use_run(u, "file.mkdir", 0, json_pack("{s:s%, s:b}", "path", path, (size_t)(slash - path), "parents", 1), made_parents);
    }
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    buf_addf(&b, "Wrote %zu bytes to ", strlen(use_text(u, "content", "")));
    put_path(&b, path);
    buf_add_text(&b, ".");
    use_answer(u, &b, false);
}

void tool_write(struct use *u)
{
    write_content(u);
}

/* --- edit, apply_patch --- */

static void answer_edit(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    uint64_t n = duty_number(answer, "replaced");
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    buf_addf(&b, "Replaced %llu occurrence%s in ", (unsigned long long)n, n == 1 ? "" : "s");
    put_path(&b, use_text(u, "path", ""));
    buf_addf(&b, ", line %llu%s.", (unsigned long long)duty_number(answer, "line"), n == 1 ? "" : " first");
    use_answer(u, &b, false);
}

void tool_edit(struct use *u)
{
    use_run(u, "file.edit", 0, NULL, answer_edit);
}

static void answer_patch(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    size_t i;
    json_t *f;
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    json_array_foreach(json_object_get(answer, "files"), i, f)
    {
        const char *action = json_string_value(json_object_get(f, "action"));
        buf_addf(&b, "%s ", action ? action : "?");
        put_name(&b, f, "path");
        if (json_object_get(f, "to")) {
            buf_add_text(&b, " to ");
            put_name(&b, f, "to");
        }
        buf_add_text(&b, "\n");
    }
    use_answer(u, &b, false);
}

void tool_apply_patch(struct use *u)
{
    use_run(u, "file.patch", 0, NULL, answer_patch);
}

/* --- list, glob, grep --- */

static int by_name(const void *a, const void *b)
{
    const char *x = json_string_value(json_object_get(*(json_t *const *)a, "name"));
    const char *y = json_string_value(json_object_get(*(json_t *const *)b, "name"));
    return strcmp(x ? x : "", y ? y : "");
}

static void put_entry(struct buf *b, const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    put_name(b, entry, "name");
    if (type && strcmp(type, "folder") == 0)
        buf_add_text(b, "/\n");
    else if (type && strcmp(type, "symlink") == 0) {
        buf_add_text(b, " -> ");
        put_name(b, entry, "target");
        buf_add_text(b, "\n");
    } else if (type && strcmp(type, "file") == 0)
        buf_addf(b, "  %llu\n", (unsigned long long)duty_number(entry, "size"));
    else
        buf_addf(b, "  (%s)\n", type ? type : "?");
}

static void answer_list(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const json_t *items = json_object_get(answer, "items");
    size_t n = json_array_size(items);
    if (e)
        return use_fail(u, e);
    own_mem json_t **sorted = calloc(n + 1, sizeof(json_t *));
    if (!sorted || !json_is_array(items))
        return use_say(u, true, "the folder is too large to list; use glob");
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_array_get(items, i);
    qsort(sorted, n, sizeof(sorted[0]), by_name);
    buf_init(&b, TOOL_TEXT_MAX);
    for (size_t i = 0; i < n && i < ENTRIES_SHOWN; i++)
        put_entry(&b, sorted[i]);
    if (n > ENTRIES_SHOWN)
        buf_addf(&b, "[%zu more; use glob with a pattern]", n - ENTRIES_SHOWN);
    if (n == 0)
        buf_add_text(&b, "[empty]");
    use_answer(u, &b, false);
}

void tool_list(struct use *u)
{
    use_run(u, "file.list", 0, json_pack("{s:s}", "path", use_text(u, "path", ".")), answer_list);
}

static void put_more(struct buf *b, const json_t *answer, size_t shown)
{
    if (shown == 0 && !json_is_true(json_object_get(answer, "more")))
        buf_add_text(b, "[nothing found]");
    if (json_is_true(json_object_get(answer, "more")))
        buf_addf(b, "[%zu shown; there is more: narrow the pattern or the path, or raise limit]", shown);
}

static void answer_glob(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const json_t *items = json_object_get(answer, "items");
    size_t i;
    json_t *item;
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_ANSWER_MAX);
    json_array_foreach(items, i, item)
    {
        put_name(&b, item, "path");
        buf_add_text(&b, "\n");
    }
    put_more(&b, answer, json_array_size(items));
    use_answer(u, &b, false);
}

void tool_glob(struct use *u)
{
    use_run(u, "file.glob", 0, NULL, answer_glob);
}

static void put_match(struct buf *b, const json_t *item)
{
    const char *kind = json_string_value(json_object_get(item, "kind"));
    char mark = kind && strcmp(kind, "context") == 0 ? '-' : ':';
    const json_t *text = json_object_get(item, "text");
    put_name(b, item, "path");
    if (json_object_get(item, "count"))
        buf_addf(b, ":%llu", (unsigned long long)duty_number(item, "count"));
    if (text) {
        buf_addf(b, "%c%llu%c", mark, (unsigned long long)duty_number(item, "line"), mark);
        buf_add(b, json_string_value(text), json_string_length(text));
    }
    buf_add_text(b, "\n");
}

static void answer_grep(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const json_t *items = json_object_get(answer, "items");
    size_t i;
    json_t *item;
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_ANSWER_MAX);
    json_array_foreach(items, i, item) put_match(&b, item);
    put_more(&b, answer, json_array_size(items));
    use_answer(u, &b, false);
}

void tool_grep(struct use *u)
{
    use_run(u, "file.grep", 0, NULL, answer_grep);
}

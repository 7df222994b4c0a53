/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that edits.
 *
 * How it works: the old text and the new come over standard input, the file is held in memory, and what becomes of it is written as a
 * draft. Whoever edits has read the file and says what stands there: a text that is not there, or stands there more often than he
 * knows, means that he is wrong about it, and nothing is changed. A symlink is followed: the file it leads to is the one that was read. */
#include "init/edit.h"

#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "init/builtin.h"
#include "init/draft.h"
#include "init/memory.h"
#include "init/tell.h"
#include "init/whole.h"

struct edit {
    const char *path;
    struct whole old, new, file;
    size_t count, line; /* of the first */
};

static size_t count_lines(const char *p, size_t n)
{
    size_t lines = 1;
    for (const char *nl; n > 0 && (nl = memchr(p, '\n', n)); lines++) {
        n -= (size_t)(nl - p) + 1;
        p = nl + 1;
    }
    return lines;
}

static void find_all(struct edit *ed)
{
    const char *at = ed->file.at, *end = at + ed->file.len;
    for (const char *found; (found = memmem(at, (size_t)(end - at), ed->old.at, ed->old.len)); at = found + ed->old.len)
        if (ed->count++ == 0)
            ed->line = count_lines(ed->file.at, (size_t)(found - ed->file.at));
}

/* A frequent reason is worth a word. */
static const char *why_not(const struct edit *ed)
{
    bool crlf = memmem(ed->file.at, ed->file.len, "\r\n", 2), wanted = memmem(ed->old.at, ed->old.len, "\r\n", 2);
    if (crlf && !wanted && memchr(ed->old.at, '\n', ed->old.len))
        return "its lines end in \\r\\n, those of the old text in \\n";
    return "read the file again, and give the old text exactly, white space too";
}

static int check(const struct edit *ed, bool all, struct pale_err *e)
{
    if (ed->count == 0)
        return err_set(e, PALE_BAD_INPUT, "edit %.300s: the old text occurs 0 times: %s", ed->path, why_not(ed));
    if (ed->count > 1 && !all)
        return err_set(e, PALE_BAD_INPUT,
                       "edit %.300s: the old text occurs %zu times, first in line %zu: give more of what stands around it, or ask for all",
                       ed->path, ed->count, ed->line);
    return 0;
}

/* All that becomes of the file. */
static int replace(const struct edit *ed, struct whole *ret, struct pale_err *e)
{
    size_t len = ed->file.len - ed->count * ed->old.len;
    if (ed->new.len > 0 && ed->count > (EDIT_FILE_MAX - len) / ed->new.len)
        return err_set(e, PALE_LIMIT, "edit %.300s: it would be longer than %u bytes", ed->path, EDIT_FILE_MAX);
    len += ed->count * ed->new.len;
    char *out = memory_map(len, e);
    if (!out)
        return -(int)e->code;
    ret->at = out;
    ret->len = len;
    const char *at = ed->file.at, *end = at + ed->file.len;
    for (const char *found; (found = memmem(at, (size_t)(end - at), ed->old.at, ed->old.len)); at = found + ed->old.len) {
        out = mempcpy(out, at, (size_t)(found - at));
        out = mempcpy(out, ed->new.at, ed->new.len);
    }
    memcpy(out, at, (size_t)(end - at));
    return 0;
}

static int take_texts(struct edit *ed, struct pale_err *e)
{
    int r = whole_input(&ed->old, EDIT_TEXT_MAX, "the old text", e);
    if (r == 0)
        r = whole_input(&ed->new, EDIT_TEXT_MAX, "the new text", e);
    if (r < 0)
        return r;
    if (ed->old.len == 0)
        return err_set(e, PALE_BAD_INPUT, "edit %.300s: the old text is empty; to make a file, write it", ed->path);
    if (ed->old.len == ed->new.len && memcmp(ed->old.at, ed->new.at, ed->old.len) == 0)
        return err_set(e, PALE_BAD_INPUT, "edit %.300s: the old text and the new are the same", ed->path);
    return 0;
}

int edit_run(const struct msg_exec *m)
{
    static struct edit ed;
    struct whole out = {0};
    struct pale_err e;
    bool all = strcmp(m->argv[2], "all") == 0;
    ed.path = m->argv[1];
    if (!all && strcmp(m->argv[2], "once") != 0)
        return builtin_bad_words(m);
    int r = take_texts(&ed, &e);
    if (r == 0)
        r = whole_file(&ed.file, ed.path, EDIT_FILE_MAX, &e);
    if (r == 0) {
        find_all(&ed);
        r = check(&ed, all, &e);
    }
    if (r == 0)
        r = replace(&ed, &out, &e);
    if (r == 0)
        r = draft_put(ed.file.real, &(struct draft_content){.p = out.at, .n = out.len, .was = &ed.file.st}, &e);
    if (r < 0)
        return builtin_fail(&e);
    struct answer a = {.kind = ANSWER_EDITED, .count = ed.count, .line = ed.line};
    return tell_answer(&a) && tell_flush() ? 0 : builtin_fail_os("edit", ed.path);
}

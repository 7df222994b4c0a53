/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the unified form of a difference. Pure. */
#include "tree/unified.h"

#include <string.h>

#include "base/limits.h"
#include "base/weak.h"
#include "tree/script.h"

#define CONTEXT 3

void unified_name(struct buf *out, const char *prefix, const char *path)
{
    static const char escapes[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    bool plain = true;
    for (const char *p = weak_word("quote") ? "" : path; *p && plain; p++)
        plain = (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && *p != '"' && *p != '\\';
    if (plain) {
        buf_addf(out, "%s%s", prefix, path);
        return;
    }
    buf_addf(out, "\"%s", prefix);
    for (const char *p = path; *p; p++) {
        const char *known = strchr(escapes, *p);
        if (known)
            buf_addf(out, "\\%c", letters[known - escapes]);
        else if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            buf_addf(out, "\\%03o", (unsigned char)*p);
        else
            buf_add(out, p, 1);
    }
    buf_add_text(out, "\"");
}

/* git knows two modes of files. */
static unsigned git_mode(const struct unified_side *s)
{
    return s->kind == UNIFIED_LINK ? 0120000 : s->mode & 0100 ? 0100755 : 0100644;
}

/* "a/path" or /dev/null behind a word of the header. A name with a blank is ended by a tab, so that readers see where. */
static void put_file(struct buf *out, const char *word, const char *prefix, const char *path, bool there)
{
    buf_add_text(out, word);
    if (there)
        unified_name(out, prefix, path);
    else
        buf_add_text(out, "/dev/null");
    buf_add_text(out, there && strchr(path, ' ') ? "\t\n" : "\n");
}

static void put_head(struct buf *out, const char *path, const struct unified_side *was, const struct unified_side *is)
{
    buf_add_text(out, "diff --git ");
    unified_name(out, "a/", path);
    buf_add_text(out, " ");
    unified_name(out, "b/", path);
    buf_add_text(out, "\n");
    if (was->kind == UNIFIED_NONE)
        buf_addf(out, "new file mode %06o\n", git_mode(is));
    else if (is->kind == UNIFIED_NONE)
        buf_addf(out, "deleted file mode %06o\n", git_mode(was));
    else if (git_mode(was) != git_mode(is))
        buf_addf(out, "old mode %06o\nnew mode %06o\n", git_mode(was), git_mode(is));
    else if (was->kind == UNIFIED_FILE && was->mode != is->mode)
        buf_addf(out, "old mode 100%03o\nnew mode 100%03o\n", was->mode & 0777, is->mode & 0777);
}

static void put_lines(struct buf *out, char sign, const struct script_side *side, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        size_t n;
        const uint8_t *p = script_lines(side, i, i + 1, &n);
        buf_add(out, &sign, 1);
        buf_add(out, p, n);
        if (p[n - 1] != '\n')
            buf_add_text(out, "\n\\ No newline at end of file\n");
    }
}

static void put_range(struct buf *out, char sign, uint32_t from, uint32_t to)
{
    buf_addf(out, " %c%u", sign, to > from ? from + 1 : from);
    if (to - from != 1)
        buf_addf(out, ",%u", to - from);
}

/* One hunk of the output: runs of changes that are so near that their context touches. Leaves *h at the last of them. */
static bool put_hunk(struct buf *out, const struct script *s, struct script_hunk *h, bool more)
{
    struct script_hunk first = *h, last = *h, next = *h;
    while ((more = script_next(s, &next)) && next.was_from - last.was_to <= 2 * CONTEXT)
        last = next;
    uint32_t before = first.was_from < CONTEXT ? first.was_from : CONTEXT;
    uint32_t left = s->was.count - last.was_to, behind = left < CONTEXT ? left : CONTEXT;
    buf_add_text(out, "@@");
    put_range(out, '-', first.was_from - before, last.was_to + behind);
    put_range(out, '+', first.is_from - before, last.is_to + behind);
    buf_add_text(out, " @@\n");
    uint32_t at = first.was_from - before;
    for (struct script_hunk g = first;;) {
        put_lines(out, ' ', &s->was, at, g.was_from);
        put_lines(out, '-', &s->was, g.was_from, g.was_to);
        put_lines(out, '+', &s->is, g.is_from, g.is_to);
        at = g.was_to;
        if (g.was_to == last.was_to && g.is_to == last.is_to)
            break;
        (void)script_next(s, &g);
    }
    put_lines(out, ' ', &s->was, at, last.was_to + behind);
    *h = next;
    return more;
}

static bool is_shown_whole(const struct unified_side *s)
{
    return !s->too_large && (s->kind != UNIFIED_FILE || !script_is_binary(s->at, s->len));
}

/* Names of both sides in one line, as in "Binary files a/x and /dev/null differ". */
static void put_unshown(struct buf *out, const char *path, const struct unified_side *was, const struct unified_side *is)
{
    bool large = was->too_large || is->too_large;
    buf_add_text(out, large ? "Files " : "Binary files ");
    if (was->kind != UNIFIED_NONE)
        unified_name(out, "a/", path);
    else
        buf_add_text(out, "/dev/null");
    buf_add_text(out, " and ");
    if (is->kind != UNIFIED_NONE)
        unified_name(out, "b/", path);
    else
        buf_add_text(out, "/dev/null");
    buf_add_text(out, large ? " are too large to show\n" : " differ\n");
}

static int write_one(const char *path, const struct unified_side *was, const struct unified_side *is, struct unified_count *ret,
                     struct buf *out, struct pale_err *e)
{
    bool same = !was->too_large && !is->too_large && was->len == is->len && (was->len == 0 || memcmp(was->at, is->at, was->len) == 0);
    bool same_mode = was->kind == is->kind && (was->kind != UNIFIED_FILE || ((was->mode ^ is->mode) & 0777) == 0);
    struct script_hunk h = {0};
    if (same && same_mode)
        return 0;
    put_head(out, path, was, is);
    if (same)
        return 0;
    own_script s = {0};
    int r = !is_shown_whole(was) || !is_shown_whole(is) ? -PALE_LIMIT : script_init(&s, was->at, was->len, is->at, is->len, e);
    if (r == -PALE_LIMIT) {
        struct unified_side long_is = *is;
        long_is.too_large = is->too_large || (is_shown_whole(was) && is_shown_whole(is)); /* too many lines */
        ret->binary = true;
        put_unshown(out, path, was, &long_is);
        return 0;
    }
    if (r < 0)
        return r;
    uint32_t removed, added;
    script_count(&s, &removed, &added);
    ret->removed += removed;
    ret->added += added;
    put_file(out, "--- ", "a/", path, was->kind != UNIFIED_NONE);
    put_file(out, "+++ ", "b/", path, is->kind != UNIFIED_NONE);
    for (bool more = script_next(&s, &h); more && !out->failed;)
        more = put_hunk(out, &s, &h, more);
    return 0;
}

int unified_write(const char *path, const struct unified_side *was, const struct unified_side *is, struct unified_count *ret,
                  struct buf *out, struct pale_err *e)
{
    static const struct unified_side none = {.kind = UNIFIED_NONE};
    own_buf ignored;
    buf_init(&ignored, 0);
    struct buf *to = out ? out : &ignored;
    struct unified_count count = {0};
    bool two = was->kind != is->kind && was->kind != UNIFIED_NONE && is->kind != UNIFIED_NONE;
    int r = write_one(path, was, two ? &none : is, &count, to, e);
    if (r == 0 && two)
        r = write_one(path, &none, is, &count, to, e);
    if (r < 0)
        return r;
    if (out && out->failed)
        return err_set(e, PALE_LIMIT, "the difference is longer than %zu bytes", out->max);
    *ret = count;
    return 0;
}

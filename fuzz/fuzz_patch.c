/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: patches and the texts they are applied to. Names lead nowhere but down and none occurs twice, hunks lie in the patch, and
 * what becomes of a text is within its bound and made of its lines and those that were added. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "init/changes.h"
#include "init/hunks.h"
#include "input.h"

static struct changes c;

UNSEEN static void check_name(const char *name)
{
    assert(name[0] && name[0] != '/' && strlen(name) < PATH_BYTES_MAX);
    for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        assert(at[0] && at[0] != '/' && strncmp(at, "../", 3) != 0 && strcmp(at, "..") != 0 && strncmp(at, "./", 2) != 0 &&
               strcmp(at, ".") != 0);
}

UNSEEN static void check_change(const struct change *ch, const char *patch, size_t n)
{
    check_name(ch->path);
    assert((ch->kind == CHANGE_MOVE) == (ch->to[0] != 0));
    if (ch->to[0])
        check_name(ch->to);
    assert(ch->first + ch->hunks <= c.hunks);
    for (size_t i = 0; i < ch->hunks; i++) {
        const struct change_hunk *h = &c.hunk[ch->first + i];
        assert(h->text >= patch && h->text + h->len <= patch + n);
        assert(!h->anchor || (h->anchor >= patch && h->anchor + h->anchor_len <= patch + n));
    }
}

UNSEEN static size_t newlines(const char *p, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += p[i] == '\n';
    return found;
}

/* Lines of the old text, less those that are taken away, and those that are added. */
UNSEEN static void check_lines(const struct change *ch, const struct hunks_text *old, const char *out, size_t n)
{
    struct change_line l;
    int64_t lines = (int64_t)newlines(old->at, old->len) + (old->len > 0 && old->at[old->len - 1] != '\n');
    for (size_t i = 0; i < ch->hunks; i++)
        for (size_t at = 0; change_next_line(&c.hunk[ch->first + i], &at, &l);)
            lines += (l.mark == '+') - (l.mark == '-');
    int64_t have = (int64_t)newlines(out, n) + (n > 0 && out[n - 1] != '\n');
    /* A last line of nothing that says it has no newline is none. */
    assert(have <= lines && have + (int64_t)ch->hunks + 64 >= lines);
}

static void apply(const struct change *ch, const struct hunks_text *old, size_t patch_len)
{
    struct pale_err e = {0};
    size_t n = 0;
    uint32_t *index = malloc(HUNKS_INDEX(old->len) * sizeof(*index));
    char *out = malloc(HUNKS_OUT(old->len, patch_len));
    assert(index && out);
    if (hunks_apply(&c, ch, old, index, out, &n, &e) == 0) {
        assert(n <= HUNKS_OUT(old->len, patch_len));
        check_lines(ch, old, out, n);
    } else
        assert(e.text[0]);
    free(index);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct pale_err e = {0};
    size_t old_len;
    const uint8_t *old = input_bytes(&in, input_byte(&in), &old_len);
    char *copy = malloc(old_len + 1), *patch = malloc(in.left + 1);
    assert(copy && patch);
    memcpy(copy, old, old_len);
    memcpy(patch, in.at, in.left);
    struct hunks_text t = {copy, old_len};
    if (changes_parse(&c, patch, in.left, &e) == 0) {
        assert(c.count > 0);
        for (size_t i = 0; i < c.count; i++) {
            check_change(&c.row[i], patch, in.left);
            apply(&c.row[i], &t, in.left);
        }
    } else
        assert(e.text[0]);
    free(copy);
    free(patch);
    return 0;
}

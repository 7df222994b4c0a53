/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the difference of two texts and the merge of three. The unified form, read by a reader of this target's own, makes the old
 * text the new one; the counts are those of its marks; merging with a side that changed nothing gives the other, and the order of sides
 * does not matter. */
#include <assert.h>
#include <stdlib.h>

#include "input.h"
#include "tree/merge3.h"
#include "tree/script.h"
#include "tree/unified.h"

struct text {
    const uint8_t *at;
    size_t len;
};

/* The next line of a text, with its newline. */
UNSEEN static bool next_line(const struct text *t, size_t *at, const uint8_t **ret, size_t *ret_len)
{
    if (*at >= t->len)
        return false;
    const uint8_t *end = memchr(t->at + *at, '\n', t->len - *at);
    *ret = t->at + *at;
    *ret_len = end ? (size_t)(end - *ret) + 1 : t->len - *at;
    *at += *ret_len;
    return true;
}

UNSEEN static size_t read_number(const uint8_t **p)
{
    size_t v = 0;
    while (**p >= '0' && **p <= '9')
        v = v * 10 + (size_t)(*(*p)++ - '0');
    return v;
}

/* Copies lines of the old text up to a line. */
UNSEEN static void copy_until(const struct text *old, size_t *at, size_t *line, size_t to, struct buf *out)
{
    const uint8_t *p;
    size_t n;
    while (*line < to && next_line(old, at, &p, &n)) {
        buf_add(out, p, n);
        ++*line;
    }
}

/* Applies what unified_write wrote. */
UNSEEN static void apply(const struct text *old, const struct text *patch, const struct unified_count *count, struct buf *out)
{
    size_t at = 0, old_at = 0, line = 0, removed = 0, added = 0, n, m;
    const uint8_t *p, *q;
    bool in_hunk = false;
    while (next_line(patch, &at, &p, &n)) {
        if (n > 4 && memcmp(p, "@@ -", 4) == 0) {
            const uint8_t *number = p + 4;
            size_t from = read_number(&number);
            bool none = number[0] == ',' && number[1] == '0';
            copy_until(old, &old_at, &line, none ? from : from - 1, out);
            in_hunk = true;
        } else if (in_hunk) {
            size_t peek = at;
            bool cut = next_line(patch, &peek, &q, &m) && q[0] == '\\';
            n -= cut ? 1 : 0;
            if (p[0] == '-' || p[0] == ' ') {
                assert(next_line(old, &old_at, &q, &m) && m == n - 1 && memcmp(q, p + 1, m) == 0);
                line++;
            }
            if (p[0] == '+' || p[0] == ' ')
                buf_add(out, p + 1, n - 1);
            removed += p[0] == '-';
            added += p[0] == '+';
            at = cut ? peek : at;
        }
    }
    copy_until(old, &old_at, &line, SIZE_MAX, out);
    assert(removed == count->removed && added == count->added);
}

static void try_difference(struct text was, struct text is)
{
    struct unified_side a = {UNIFIED_FILE, 0644, was.at, was.len, false}, b = {UNIFIED_FILE, 0644, is.at, is.len, false};
    struct unified_count count = {0}, alone = {0};
    struct pale_err e = {0};
    own_buf patch, made;
    buf_init(&patch, 1 << 22);
    buf_init(&made, 1 << 22);
    assert(unified_write("a", &a, &b, &count, &patch, &e) == 0 && unified_write("a", &a, &b, &alone, NULL, &e) == 0);
    assert(count.added == alone.added && count.removed == alone.removed && count.binary == alone.binary);
    bool same = was.len == is.len && memcmp(was.at, is.at, was.len) == 0;
    assert((patch.len == 0) == same);
    if (same || count.binary)
        return;
    apply(&was, &(struct text){patch.data, patch.len}, &count, &made);
    assert(!made.failed && made.len == is.len && (is.len == 0 || memcmp(made.data, is.at, is.len) == 0));
}

/* The merged text, or NULL for a conflict. */
static bool merge(struct text base, struct text ours, struct text theirs, struct buf *out)
{
    struct pale_err e = {0};
    bool clean = false;
    buf_init(out, 1 << 22);
    assert(merge3_run((struct merge3_text){base.at, base.len}, (struct merge3_text){ours.at, ours.len},
                      (struct merge3_text){theirs.at, theirs.len}, &clean, out, &e) == 0);
    assert(clean || out->len == 0);
    return clean;
}

UNSEEN static bool is_text(const struct buf *b, struct text t)
{
    return b->len == t.len && memcmp(b->data ? b->data : (const uint8_t *)"", t.at, t.len) == 0;
}

static void try_merge(struct text base, struct text ours, struct text theirs)
{
    own_buf one, other, kept;
    bool clean = merge(base, ours, theirs, &one), again = merge(base, theirs, ours, &other);
    assert(clean == again && one.len == other.len && (one.len == 0 || memcmp(one.data, other.data, one.len) == 0));
    if (merge(base, ours, base, &kept))
        assert(is_text(&kept, ours));
    else
        assert(script_is_binary(base.at, base.len) || script_is_binary(ours.at, ours.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct text t[3];
    uint8_t *copy[3];
    for (int i = 0; i < 3; i++) {
        size_t n;
        const uint8_t *p = input_bytes(&in, i < 2 ? input_byte(&in) : in.left, &n);
        copy[i] = malloc(n + 1);
        assert(copy[i]);
        memcpy(copy[i], p, n);
        t[i] = (struct text){copy[i], n};
    }
    try_difference(t[0], t[1]);
    try_difference(t[1], t[2]);
    try_merge(t[0], t[1], t[2]);
    for (int i = 0; i < 3; i++)
        free(copy[i]);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the comparison of two texts by lines. Pure. */
#include "tree/script.h"

#include <string.h>

#include "base/limits.h"

#define BINARY_LOOK 8000

bool script_is_binary(const void *p, size_t n)
{
    return n > 0 && memchr(p, 0, n < BINARY_LOOK ? n : BINARY_LOOK) != NULL;
}

const uint8_t *script_lines(const struct script_side *side, uint32_t from, uint32_t to, size_t *ret_len)
{
    *ret_len = side->start[to] - side->start[from];
    return side->bytes + side->start[from];
}

void script_done(struct script *s)
{
    free(s->was.start);
    free(s->was.changed);
    free(s->is.start);
    free(s->is.changed);
    *s = (struct script){0};
}

static int split(struct script_side *side, const void *p, size_t n, struct pale_err *e)
{
    size_t lines = 0;
    if (n > TEXT_BYTES_MAX)
        return err_set(e, PALE_LIMIT, "a text of %zu bytes is longer than %u and is not compared by lines", n, TEXT_BYTES_MAX);
    side->bytes = n ? p : (const uint8_t *)""; /* whoever has no text may have no pointer either */
    side->len = n;
    for (size_t at = 0; at < n; lines++) {
        const uint8_t *end = memchr(side->bytes + at, '\n', n - at);
        at = end ? (size_t)(end - side->bytes) + 1 : n;
    }
    if (lines > TEXT_LINES_MAX)
        return err_set(e, PALE_LIMIT, "a text of %zu lines is longer than %u and is not compared by lines", lines, TEXT_LINES_MAX);
    side->count = (uint32_t)lines;
    side->start = malloc((lines + 1) * sizeof(*side->start));
    side->changed = calloc(lines + 1, 1);
    if (!side->start || !side->changed)
        return err_nomem(e);
    size_t at = 0;
    for (size_t i = 0; i < lines; i++) {
        side->start[i] = (uint32_t)at;
        const uint8_t *end = memchr(side->bytes + at, '\n', n - at);
        at = end ? (size_t)(end - side->bytes) + 1 : n;
    }
    side->start[lines] = (uint32_t)n;
    return 0;
}

static bool same_line(const struct script_side *a, uint32_t i, const struct script_side *b, uint32_t k)
{
    size_t n, m;
    const uint8_t *p = script_lines(a, i, i + 1, &n), *q = script_lines(b, k, k + 1, &m);
    return n == m && memcmp(p, q, n) == 0;
}

/* --- equal lines get equal numbers --- */

struct ranked {
    uint64_t hash;
    uint32_t line;
    bool of_is;
};

struct numbering {
    const struct script *s;
    struct ranked *rank;
    size_t count;
};

static int by_line(const void *a, const void *b, void *script)
{
    const struct script *s = script;
    const struct ranked *x = a, *y = b;
    size_t n, m;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    const uint8_t *p = script_lines(x->of_is ? &s->is : &s->was, x->line, x->line + 1, &n);
    const uint8_t *q = script_lines(y->of_is ? &s->is : &s->was, y->line, y->line + 1, &m);
    return n != m ? (n < m ? -1 : 1) : memcmp(p, q, n);
}

/* Only to make most comparisons short: two lines with one hash are compared byte by byte. */
static uint64_t hash_line(const struct script_side *side, uint32_t i)
{
    size_t n;
    const uint8_t *p = script_lines(side, i, i + 1, &n);
    uint64_t h = n;
    for (size_t k = 0; k < n; k++)
        h = (h ^ p[k]) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* The part of both that is compared: lines whose like the other side has, by number. */
struct middle {
    uint32_t *id, *line; /* of each: its number, and where it stands */
    uint32_t count;
};

static void middle_done(struct middle *m)
{
    free(m->id);
    free(m->line);
}

static void rank_side(struct numbering *n, const struct script_side *side, bool of_is, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        n->rank[n->count++] = (struct ranked){hash_line(side, i), i, of_is};
}

/* Numbers the lines of [from, was_to) and [from, is_to); those that only one side has are changed, and have none. */
static int number_lines(struct script *s, uint32_t from, uint32_t was_to, uint32_t is_to, uint32_t *was_id, uint32_t *is_id,
                        struct pale_err *e)
{
    size_t total = (size_t)(was_to - from) + (is_to - from);
    own_mem struct ranked *rank = malloc((total + 1) * sizeof(*rank));
    if (!rank)
        return err_nomem(e);
    struct numbering n = {.s = s, .rank = rank};
    rank_side(&n, &s->was, false, from, was_to);
    rank_side(&n, &s->is, true, from, is_to);
    qsort_r(rank, total, sizeof(*rank), by_line, s);
    uint32_t number = 1;
    for (size_t i = 0, end; i < total; i = end) {
        bool in_was = false, in_is = false;
        for (end = i; end < total && (end == i || by_line(&rank[i], &rank[end], s) == 0); end++) {
            in_was = in_was || !rank[end].of_is;
            in_is = in_is || rank[end].of_is;
        }
        for (size_t k = i; k < end; k++)
            (rank[k].of_is ? is_id : was_id)[rank[k].line - from] = in_was && in_is ? number : 0;
        number++;
    }
    return 0;
}

static bool collect(struct middle *m, struct script_side *side, const uint32_t *id, uint32_t from, uint32_t to)
{
    m->id = malloc((to - from + 1) * sizeof(*m->id));
    m->line = malloc((to - from + 1) * sizeof(*m->line));
    if (!m->id || !m->line)
        return false;
    for (uint32_t i = from; i < to; i++) {
        if (id[i - from] == 0) {
            side->changed[i] = 1;
            continue;
        }
        m->id[m->count] = id[i - from];
        m->line[m->count++] = i;
    }
    return true;
}

/* --- Myers, from both ends to the middle --- */

struct box {
    int32_t a_from, a_to, b_from, b_to;
};

struct search {
    const uint32_t *a, *b;
    int32_t *forward, *backward; /* by diagonal, from -(count of b) - 1 on */
    uint64_t steps;              /* left */
};

/* One more edit from the start: how far each diagonal comes. True if it met the way back, at *x on *diagonal. */
static bool go_forward(struct search *s, const struct box *box, int32_t low, int32_t high, int32_t back_low, int32_t back_high,
                       int32_t *ret_x, int32_t *ret_diagonal)
{
    for (int32_t d = high; d >= low; d -= 2) {
        int32_t less = s->forward[d - 1], more = s->forward[d + 1], x = less < more ? more : less + 1, from = x;
        while (x < box->a_to && x - d < box->b_to && s->a[x] == s->b[x - d])
            x++;
        s->steps -= s->steps > (uint64_t)(x - from) ? (uint64_t)(x - from) + 1 : s->steps;
        s->forward[d] = x;
        if (d >= back_low && d <= back_high && s->backward[d] <= x) {
            *ret_x = x;
            *ret_diagonal = d;
            return true;
        }
    }
    return false;
}

static bool go_backward(struct search *s, const struct box *box, int32_t low, int32_t high, int32_t fore_low, int32_t fore_high,
                        int32_t *ret_x, int32_t *ret_diagonal)
{
    for (int32_t d = high; d >= low; d -= 2) {
        int32_t less = s->backward[d - 1], more = s->backward[d + 1], x = less < more ? less : more - 1, from = x;
        while (x > box->a_from && x - d > box->b_from && s->a[x - 1] == s->b[x - d - 1])
            x--;
        s->steps -= s->steps > (uint64_t)(from - x) ? (uint64_t)(from - x) + 1 : s->steps;
        s->backward[d] = x;
        if (d >= fore_low && d <= fore_high && x <= s->forward[d]) {
            *ret_x = x;
            *ret_diagonal = d;
            return true;
        }
    }
    return false;
}

/* Widens a range of diagonals by one on each side, or narrows it where the box ends: diagonals alternate. */
static void widen(int32_t *line, int32_t *low, int32_t *high, int32_t least, int32_t most, int32_t unreached)
{
    if (*low > least)
        line[--*low - 1] = unreached;
    else
        ++*low;
    if (*high < most)
        line[++*high + 1] = unreached;
    else
        --*high;
}

/* A point that a shortest script of the box passes through; false if the steps ran out. */
static bool find_middle(struct search *s, const struct box *box, int32_t *ret_x, int32_t *ret_y)
{
    int32_t least = box->a_from - box->b_to, most = box->a_to - box->b_from;
    int32_t fore = box->a_from - box->b_from, back = box->a_to - box->b_to, d = 0;
    int32_t fore_low = fore, fore_high = fore, back_low = back, back_high = back;
    bool odd = (fore - back) & 1, met = false;
    s->forward[fore] = box->a_from;
    s->backward[back] = box->a_to;
    while (!met) {
        if (s->steps == 0)
            return false;
        widen(s->forward, &fore_low, &fore_high, least, most, -1);
        met = go_forward(s, box, fore_low, fore_high, odd ? back_low : INT32_MAX, back_high, ret_x, &d);
        if (met)
            break;
        widen(s->backward, &back_low, &back_high, least, most, INT32_MAX);
        met = go_backward(s, box, back_low, back_high, odd ? INT32_MAX : fore_low, fore_high, ret_x, &d);
    }
    *ret_y = *ret_x - d;
    return true;
}

static void mark(struct script_side *side, const struct middle *m, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++)
        side->changed[m->line[i]] = 1;
}

static int64_t area(const struct box *b)
{
    return (int64_t)(b->a_to - b->a_from) + (b->b_to - b->b_from);
}

/* The smaller half is done first, so that no more than the logarithm of the whole ever waits. */
#define WAITING_MAX 64

static void compare_middle(struct script *s, struct search *w, const struct middle *was, const struct middle *is)
{
    struct box waiting[WAITING_MAX] = {{0, (int32_t)was->count, 0, (int32_t)is->count}};
    for (int n = 1; n > 0;) {
        struct box b = waiting[--n];
        int32_t x, y;
        while (b.a_from < b.a_to && b.b_from < b.b_to && w->a[b.a_from] == w->b[b.b_from])
            b.a_from++, b.b_from++;
        while (b.a_from < b.a_to && b.b_from < b.b_to && w->a[b.a_to - 1] == w->b[b.b_to - 1])
            b.a_to--, b.b_to--;
        bool has_both = b.a_from < b.a_to && b.b_from < b.b_to;
        if (!has_both || n + 2 > WAITING_MAX || !find_middle(w, &b, &x, &y)) {
            s->coarse = s->coarse || has_both;
            mark(&s->was, was, b.a_from, b.a_to);
            mark(&s->is, is, b.b_from, b.b_to);
            continue;
        }
        struct box first = {b.a_from, x, b.b_from, y}, second = {x, b.a_to, y, b.b_to};
        bool first_larger = area(&first) > area(&second);
        waiting[n++] = first_larger ? first : second;
        waiting[n++] = first_larger ? second : first;
    }
}

static int compare_range(struct script *s, uint32_t from, uint32_t was_to, uint32_t is_to, struct pale_err *e)
{
    CLEANUP(middle_done) struct middle was = {0};
    CLEANUP(middle_done) struct middle is = {0};
    own_mem uint32_t *was_id = malloc((was_to - from + 1) * sizeof(*was_id)), *is_id = malloc((is_to - from + 1) * sizeof(*is_id));
    if (!was_id || !is_id)
        return err_nomem(e);
    int r = number_lines(s, from, was_to, is_to, was_id, is_id, e);
    bool room = r < 0 || (collect(&was, &s->was, was_id, from, was_to) && collect(&is, &s->is, is_id, from, is_to));
    if (r < 0 || !room)
        return r < 0 ? r : err_nomem(e);
    size_t diagonals = (size_t)was.count + is.count + 3;
    own_mem int32_t *lines = malloc(2 * diagonals * sizeof(*lines));
    if (!lines)
        return err_nomem(e);
    struct search w = {was.id, is.id, lines + is.count + 1, lines + diagonals + is.count + 1, TEXT_STEPS_MAX};
    compare_middle(s, &w, &was, &is);
    return 0;
}

int script_init(struct script *s, const void *was, size_t was_len, const void *is, size_t is_len, struct pale_err *e)
{
    *s = (struct script){0};
    int r = split(&s->was, was, was_len, e);
    if (r == 0)
        r = split(&s->is, is, is_len, e);
    uint32_t from = 0, was_to = s->was.count, is_to = s->is.count;
    while (r == 0 && from < was_to && from < is_to && same_line(&s->was, from, &s->is, from))
        from++;
    while (r == 0 && from < was_to && from < is_to && same_line(&s->was, was_to - 1, &s->is, is_to - 1))
        was_to--, is_to--;
    if (r == 0)
        r = compare_range(s, from, was_to, is_to, e);
    if (r < 0)
        script_done(s);
    return r;
}

bool script_next(const struct script *s, struct script_hunk *h)
{
    uint32_t i = h->was_to, k = h->is_to;
    while (i < s->was.count && k < s->is.count && !s->was.changed[i] && !s->is.changed[k])
        i++, k++;
    *h = (struct script_hunk){i, i, k, k};
    while (h->was_to < s->was.count && s->was.changed[h->was_to])
        h->was_to++;
    while (h->is_to < s->is.count && s->is.changed[h->is_to])
        h->is_to++;
    return h->was_to > i || h->is_to > k;
}

void script_count(const struct script *s, uint32_t *ret_removed, uint32_t *ret_added)
{
    *ret_removed = *ret_added = 0;
    for (uint32_t i = 0; i < s->was.count; i++)
        *ret_removed += s->was.changed[i];
    for (uint32_t i = 0; i < s->is.count; i++)
        *ret_added += s->is.changed[i];
}

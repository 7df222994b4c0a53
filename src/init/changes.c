/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of patches. Pure. */
#include "init/changes.h"

#include <string.h>

#include "base/limits.h"
#include "wire/scan.h"

struct line {
    const char *at;
    size_t len; /* without its end */
};

struct reading {
    struct changes *c;
    const char *at, *end;
    size_t number; /* of the line at `at` */
    struct change *now;
    bool headed;   /* it has its --- and +++ */
    bool envelope; /* where those mean nothing */
    bool prose;    /* what is no part of a patch may stand here */
};

/* --- lines --- */

static bool peek(const struct reading *r, struct line *ret)
{
    if (r->at == r->end)
        return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *ret = (struct line){r->at, (size_t)((nl ? nl : r->end) - r->at)};
    return true;
}

/* The same; an empty one at the end. */
static struct line here(const struct reading *r)
{
    struct line l = {r->at, 0};
    (void)peek(r, &l);
    return l;
}

static void step(struct reading *r)
{
    struct line l = {0};
    if (!peek(r, &l))
        return;
    r->at = l.at + l.len;
    r->at += r->at < r->end;
    r->number++;
}

static bool begins(const struct line *l, const char *word)
{
    size_t n = strlen(word);
    return l->len >= n && memcmp(l->at, word, n) == 0;
}

static bool is_blank(const struct line *l)
{
    return l->len == 0 || (l->len == 1 && l->at[0] == '\r');
}

/* What follows a word of a header, without blanks around it and a carriage return. */
static struct line rest_of(struct line l, const char *word)
{
    size_t n = strlen(word) < l.len ? strlen(word) : l.len;
    l.at += n;
    l.len -= n;
    while (l.len > 0 && (l.at[l.len - 1] == '\r' || l.at[l.len - 1] == ' '))
        l.len--;
    while (l.len > 0 && l.at[0] == ' ')
        l.at++, l.len--;
    return l;
}

static int bad(const struct reading *r, const char *what, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "line %zu of the patch: %s", r->number, what);
}

/* Does a diff's header of two lines stand here? */
static bool is_header(const struct reading *r)
{
    struct reading next = *r;
    struct line l = {0};
    if (!peek(&next, &l) || !begins(&l, "--- "))
        return false;
    step(&next);
    return peek(&next, &l) && begins(&l, "+++ ");
}

/* --- names --- */

/* A byte of a name that git has quoted. */
static size_t unquote(const char *p, size_t n, char *ret)
{
    static const char names[] = "abtnvfr\"\\", values[] = "\a\b\t\n\v\f\r\"\\";
    const char *found;
    if (p[0] != '\\')
        return *ret = p[0], 1;
    if (n >= 2 && p[1] && (found = strchr(names, p[1])))
        return *ret = values[found - names], 2;
    if (n >= 4 && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' && p[3] <= '7')
        return *ret = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')), 4;
    return 0;
}

/* Takes a name over. skip: how many bytes of it are a/ or b/. */
static int add_name(struct reading *r, struct line l, size_t skip, const char **ret, struct pale_err *e)
{
    struct changes *c = r->c;
    char *to = c->names + c->used;
    size_t n = 0;
    bool quoted = l.len >= 2 && l.at[0] == '"' && l.at[l.len - 1] == '"';
    if (quoted)
        l = (struct line){l.at + 1, l.len - 2};
    if (l.len >= PATH_BYTES_MAX || sizeof(c->names) - c->used < l.len + 1)
        return bad(r, "its names are too long", e);
    for (size_t i = 0, used; i < l.len; i += used) {
        used = quoted ? unquote(l.at + i, l.len - i, &to[n]) : (to[n] = l.at[i], 1);
        if (used == 0 || !to[n])
            return bad(r, "this is no name", e);
        n++;
    }
    to[n] = 0;
    while (n > 2 && strncmp(to, "./", 2) == 0)
        to += 2, n -= 2;
    if (n <= skip || !scan_is_relative(to + skip))
        return bad(r, "a name is relative, and has no . or .. in it", e);
    *ret = to + skip;
    c->used += l.len + 1;
    return 0;
}

/* --- changes --- */

static int begin_change(struct reading *r, enum change_kind kind, struct pale_err *e)
{
    struct changes *c = r->c;
    if (c->count == CHANGES_MAX)
        return err_set(e, PALE_LIMIT, "the patch changes more than %d files", CHANGES_MAX);
    r->now = &c->row[c->count++];
    *r->now = (struct change){.kind = kind, .path = "", .to = "", .first = c->hunks};
    r->prose = r->headed = false;
    return 0;
}

static struct change_hunk *begin_hunk(struct reading *r, struct pale_err *e)
{
    struct changes *c = r->c;
    if (c->hunks == CHANGES_HUNKS_MAX) {
        err_set(e, PALE_LIMIT, "the patch has more than %d hunks", CHANGES_HUNKS_MAX);
        return NULL;
    }
    struct change_hunk *h = &c->hunk[c->hunks++];
    *h = (struct change_hunk){.text = r->at};
    r->now->hunks++;
    return h;
}

static bool clashes(const char *a, const char *b)
{
    return a[0] && b[0] && strcmp(a, b) == 0;
}

static int check_changes(const struct changes *c, struct pale_err *e)
{
    if (c->count == 0)
        return err_set(e, PALE_BAD_INPUT, "this is no patch: neither a unified diff nor *** Begin Patch");
    for (size_t i = 0; i < c->count; i++) {
        const struct change *a = &c->row[i];
        if (!a->path[0])
            return err_set(e, PALE_BAD_INPUT, "the patch has a change without a name");
        if ((a->kind == CHANGE_MOVE) != (a->to[0] != 0))
            return err_set(e, PALE_BAD_INPUT, "the patch says of %.300s that it is moved and that it is not", a->path);
        if (a->kind == CHANGE_UPDATE && a->hunks == 0)
            return err_set(e, PALE_BAD_INPUT, "the patch says nothing about %.300s", a->path);
        for (size_t k = 0; k < i; k++) {
            const struct change *b = &c->row[k];
            if (clashes(a->path, b->path) || clashes(a->path, b->to) || clashes(a->to, b->path) || clashes(a->to, b->to))
                return err_set(e, PALE_BAD_INPUT, "%.300s is in the patch twice; put all that changes it in one place",
                               clashes(a->to, b->path) || clashes(a->to, b->to) ? a->to : a->path);
        }
        if (clashes(a->path, a->to))
            return err_set(e, PALE_BAD_INPUT, "%.300s is moved to itself", a->path);
    }
    return 0;
}

/* --- hunks --- */

bool change_next_line(const struct change_hunk *h, size_t *at, struct change_line *ret)
{
    if (*at >= h->len)
        return false;
    const char *p = h->text + *at, *nl = memchr(p, '\n', h->len - *at);
    size_t n = nl ? (size_t)(nl - p) : h->len - *at;
    *at += n + (nl != NULL);
    *ret = (struct change_line){.mark = ' ', .at = p, .len = n};
    if (n > 0 && (n != 1 || p[0] != '\r'))
        *ret = (struct change_line){.mark = p[0], .at = p + 1, .len = n - 1};
    if (*at < h->len && h->text[*at] == '\\') {
        nl = memchr(h->text + *at, '\n', h->len - *at);
        *at = nl ? (size_t)(nl - h->text) + 1 : h->len;
        ret->bare = true;
    }
    return true;
}

static bool take_digits(struct line *l, uint64_t *ret)
{
    size_t n = 0;
    for (*ret = 0; n < l->len && n < 10 && l->at[n] >= '0' && l->at[n] <= '9'; n++)
        *ret = *ret * 10 + (uint64_t)(l->at[n] - '0');
    l->at += n;
    l->len -= n;
    return n > 0;
}

static bool take_word(struct line *l, const char *word)
{
    if (!begins(l, word))
        return false;
    l->at += strlen(word);
    l->len -= strlen(word);
    return true;
}

/* ",4", which stands for 1 if it is not there. */
static bool take_count(struct line *l, uint64_t *ret)
{
    *ret = 1;
    return !take_word(l, ",") || take_digits(l, ret);
}

struct counts {
    uint64_t old, new;
};

/* "@@ -1,2 +3,4 @@"; or a line of the file behind which it stands. */
static void take_place(struct line l, struct change_hunk *h, struct counts *ret)
{
    struct line at = l;
    uint64_t there;
    if (take_word(&at, "@@ -") && take_digits(&at, &h->line) && take_count(&at, &ret->old) && take_word(&at, " +") &&
        take_digits(&at, &there) && take_count(&at, &ret->new) && take_word(&at, " @@")) {
        h->counted = true;
        return;
    }
    l = rest_of(l, "@@");
    if (l.len >= 2 && memcmp(l.at + l.len - 2, "@@", 2) == 0)
        l.len -= 2;
    while (l.len > 0 && l.at[l.len - 1] == ' ')
        l.len--;
    h->line = 0;
    if (l.len > 0 && memcmp(l.at, "...", l.len < 3 ? l.len : 3) != 0) {
        h->anchor = l.at;
        h->anchor_len = l.len;
    }
}

static bool has_mark(const struct line *l, const char *marks)
{
    return l->len > 0 && l->at[0] && strchr(marks, l->at[0]);
}

/* Steps over empty lines if what follows them belongs to the hunk too; says whether something does. */
static bool goes_on(struct reading *r, struct counts *have)
{
    struct reading next = *r;
    struct line l = {0};
    while (peek(&next, &l) && is_blank(&l))
        step(&next);
    bool empty = next.at != r->at;
    if (!peek(&next, &l) || (!r->envelope && is_header(&next)) || !has_mark(&l, empty ? " +-" : " +-\\"))
        return false;
    have->old += next.number - r->number;
    have->new += next.number - r->number;
    *r = next;
    return true;
}

static void count_line(const struct line *l, struct counts *c)
{
    char mark = is_blank(l) ? ' ' : l->at[0];
    c->old += mark == ' ' || mark == '-';
    c->new += mark == ' ' || mark == '+';
}

/* Is there one more line of the hunk? One that counts them ends when it has them. */
static bool has_line(struct reading *r, const struct change_hunk *h, const struct counts *want, struct counts *have)
{
    struct line l = {0};
    if (!h->counted)
        return goes_on(r, have);
    if (!peek(r, &l))
        return false;
    if (have->old >= want->old && have->new >= want->new)
        return has_mark(&l, "\\");
    return is_blank(&l) || has_mark(&l, " +-\\");
}

static int take_lines(struct reading *r, struct change_hunk *h, const struct counts *want, struct pale_err *e)
{
    struct counts have = {0};
    struct line l = {0};
    h->text = r->at;
    while (has_line(r, h, want, &have) && peek(r, &l)) {
        if (!has_mark(&l, "\\"))
            count_line(&l, &have);
        step(r);
    }
    h->len = (size_t)(r->at - h->text);
    if (h->counted && (have.old != want->old || have.new != want->new))
        return err_set(e, PALE_BAD_INPUT,
                       "line %zu of the patch: the hunk says it has %llu old and %llu new lines, and has %llu and %llu; who does not count "
                       "writes @@ alone",
                       r->number, (unsigned long long)want->old, (unsigned long long)want->new, (unsigned long long)have.old,
                       (unsigned long long)have.new);
    return 0;
}

static int take_hunk(struct reading *r, struct pale_err *e)
{
    struct counts want = {0};
    struct line l = {0};
    if (!r->now || !r->now->path[0])
        return bad(r, "a hunk without a file", e);
    struct change_hunk *h = begin_hunk(r, e);
    if (!h)
        return -PALE_LIMIT;
    if (peek(r, &l) && begins(&l, "@@")) {
        take_place(l, h, &want);
        step(r);
    }
    int res = take_lines(r, h, &want, e);
    if (res == 0 && h->len == 0 && !h->anchor)
        return bad(r, "a hunk without lines", e);
    return res;
}

/* --- unified diffs --- */

static bool is_nothing(const struct line *l)
{
    return l->len == 9 && memcmp(l->at, "/dev/null", 9) == 0;
}

/* The name in a header line, without the time that diff puts after a tab. */
static struct line name_of(struct line l, const char *word)
{
    l = rest_of(l, word);
    const char *tab = memchr(l.at, '\t', l.len);
    if (tab && l.at[0] != '"')
        l.len = (size_t)(tab - l.at);
    return l;
}

static bool has_prefix(const struct line *l, char letter)
{
    size_t quote = l->len > 0 && l->at[0] == '"';
    return l->len > quote + 2 && l->at[quote] == letter && l->at[quote + 1] == '/';
}

/* --- and +++: what it was and what it will be. */
static int take_header(struct reading *r, struct pale_err *e)
{
    struct line old, new;
    const char *before = "", *after = "";
    int res = 0;
    if ((!r->now || r->headed || r->now->hunks > 0) && (res = begin_change(r, CHANGE_UPDATE, e)) < 0)
        return res;
    struct change *ch = r->now;
    r->headed = true;
    old = name_of(here(r), "--- ");
    step(r);
    new = name_of(here(r), "+++ ");
    bool from_none = is_nothing(&old), to_none = is_nothing(&new);
    size_t skip = (from_none || has_prefix(&old, 'a')) && (to_none || has_prefix(&new, 'b')) ? 2 : 0;
    if (from_none && to_none)
        return bad(r, "a change from nothing to nothing", e);
    if (!from_none)
        res = add_name(r, old, skip, &before, e);
    if (res == 0 && !to_none)
        res = add_name(r, new, skip, &after, e);
    if (res < 0)
        return res;
    step(r);
    ch->path = before[0] ? before : after;
    if (ch->kind == CHANGE_MOVE)
        return clashes(before, after) || from_none || to_none ? bad(r, "a move that is none", e) : (ch->to = after, 0);
    if (!from_none && !to_none && strcmp(before, after) != 0)
        return bad(r, "the names before and after differ; a move says `rename from` and `rename to`", e);
    ch->kind = from_none ? CHANGE_ADD : to_none ? CHANGE_REMOVE : CHANGE_UPDATE;
    return 0;
}

/* "a/x b/x": of a change that has no other names. */
static int take_git_names(struct reading *r, struct line l, struct pale_err *e)
{
    size_t half = l.len / 2;
    if (l.len % 2 == 0 || l.len < 7 || l.at[half] != ' ' || memcmp(l.at, "a/", 2) != 0 || memcmp(l.at + half + 1, "b/", 2) != 0 ||
        memcmp(l.at + 2, l.at + half + 3, half - 2) != 0)
        return 0;
    return add_name(r, (struct line){l.at, half}, 2, &r->now->path, e);
}

static int take_git_line(struct reading *r, const struct line *l, struct pale_err *e)
{
    static const char *const harmless[] = {"index ", "similarity index ", "dissimilarity index "};
    static const char *const beyond[] = {"old mode ", "new mode ", "copy from ", "copy to ", "Binary files ", "GIT binary patch"};
    struct change *ch = r->now;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (begins(l, harmless[i]))
            return 1;
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
        if (begins(l, beyond[i]))
            return err_set(e, PALE_UNSUPPORTED, "line %zu of the patch: copies, binary content and changes of mode are not applied",
                           r->number);
    if (begins(l, "new file mode ")) {
        ch->kind = CHANGE_ADD;
        ch->executable = l->len >= 20 && memcmp(l->at + 14, "100755", 6) == 0;
    } else if (begins(l, "deleted file mode "))
        ch->kind = CHANGE_REMOVE;
    else if (begins(l, "rename from ")) {
        ch->kind = CHANGE_MOVE;
        int res = add_name(r, rest_of(*l, "rename from "), 0, &ch->path, e);
        return res < 0 ? res : 1;
    } else if (begins(l, "rename to ")) {
        int res = add_name(r, rest_of(*l, "rename to "), 0, &ch->to, e);
        return res < 0 ? res : 1;
    } else
        return 0;
    return 1;
}

static int take_git(struct reading *r, struct pale_err *e)
{
    struct line l = {0};
    int res = begin_change(r, CHANGE_UPDATE, e);
    if (res < 0)
        return res;
    res = take_git_names(r, rest_of(here(r), "diff --git "), e);
    for (step(r); res >= 0 && peek(r, &l); step(r))
        if ((res = take_git_line(r, &l, e)) <= 0)
            break;
    if (res >= 0 && r->now->kind == CHANGE_MOVE && (!r->now->path[0] || !r->now->to[0]))
        return bad(r, "a move needs `rename from` and `rename to`", e);
    return res < 0 ? res : 0;
}

static int take_unified(struct reading *r, struct pale_err *e)
{
    struct line l = {0};
    int res = 0;
    for (r->prose = true; res == 0 && peek(r, &l);) {
        if (begins(&l, "diff --git "))
            res = take_git(r, e);
        else if (is_header(r))
            res = take_header(r, e);
        else if (begins(&l, "@@"))
            res = take_hunk(r, e);
        else if (r->prose || is_blank(&l) || begins(&l, "-- ") || begins(&l, "diff ") || begins(&l, "Index: ") || begins(&l, "====")) {
            r->prose = r->prose || begins(&l, "-- ");
            step(r);
        } else
            res = bad(r, "this is no part of a hunk, and no header", e);
    }
    return res;
}

/* --- the envelope --- */

static int take_added(struct reading *r, struct pale_err *e)
{
    struct line l = {0};
    struct change_hunk *h = begin_hunk(r, e);
    if (!h)
        return -PALE_LIMIT;
    while (peek(r, &l) && begins(&l, "+"))
        step(r);
    h->len = (size_t)(r->at - h->text);
    return 0;
}

static bool is_body(const struct reading *r)
{
    struct reading next = *r;
    struct counts have = {0};
    return goes_on(&next, &have);
}

static int take_updated(struct reading *r, struct pale_err *e)
{
    struct line l = {0};
    int res = 0;
    if (peek(r, &l) && begins(&l, "*** Move to:")) {
        r->now->kind = CHANGE_MOVE;
        res = add_name(r, rest_of(l, "*** Move to:"), 0, &r->now->to, e);
        step(r);
    }
    while (res == 0 && peek(r, &l)) {
        if (begins(&l, "*** End of File")) {
            if (r->now->hunks == 0)
                return bad(r, "an end without a hunk", e);
            r->c->hunk[r->c->hunks - 1].at_end = true;
            step(r);
        } else if (begins(&l, "@@") || is_body(r))
            res = take_hunk(r, e);
        else
            break;
    }
    return res;
}

static int take_section(struct reading *r, struct pale_err *e)
{
    static const struct {
        const char *word;
        enum change_kind kind;
    } rows[] = {{"*** Add File:", CHANGE_ADD}, {"*** Delete File:", CHANGE_REMOVE}, {"*** Update File:", CHANGE_UPDATE}};
    struct line l = here(r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!begins(&l, rows[i].word))
            continue;
        int res = begin_change(r, rows[i].kind, e);
        if (res == 0)
            res = add_name(r, rest_of(l, rows[i].word), 0, &r->now->path, e);
        step(r);
        r->now->whole = rows[i].kind == CHANGE_REMOVE;
        if (res < 0 || rows[i].kind == CHANGE_REMOVE)
            return res;
        return rows[i].kind == CHANGE_ADD ? take_added(r, e) : take_updated(r, e);
    }
    return bad(r, "not *** Add File:, *** Delete File: or *** Update File:, nor a line of one", e);
}

static int take_envelope(struct reading *r, struct pale_err *e)
{
    struct line l = {0};
    int res = 0;
    r->envelope = true;
    while (res == 0 && peek(r, &l) && !begins(&l, "*** End Patch")) {
        if (is_blank(&l) || begins(&l, "*** Begin Patch"))
            step(r);
        else
            res = take_section(r, e);
    }
    if (res == 0 && !peek(r, &l))
        return bad(r, "the patch ends without *** End Patch, so it may not be all of it", e);
    return res;
}

int changes_parse(struct changes *c, const char *text, size_t n, struct pale_err *e)
{
    struct reading r = {.c = c, .at = text, .end = text + n, .number = 1};
    struct line l = {0};
    c->count = c->hunks = c->used = 0;
    /* What stands before a patch in a mail or an answer is no part of it. */
    while (peek(&r, &l) && !begins(&l, "*** Begin Patch") && !begins(&l, "*** Update File:") && !begins(&l, "*** Add File:") &&
           !begins(&l, "*** Delete File:") && !begins(&l, "diff --git ") && !is_header(&r))
        step(&r);
    bool envelope = peek(&r, &l) && begins(&l, "*** ");
    int res = envelope ? take_envelope(&r, e) : take_unified(&r, e);
    return res < 0 ? res : check_changes(c, e);
}

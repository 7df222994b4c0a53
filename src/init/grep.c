/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that searches.
 *
 * How it works: each file that a walk visits is read into a page, which holds nearly every file whole. Of a larger one the page moves
 * on, with the lines at its end that are not whole yet, or may still be told because they stand before a match. Lines are told as
 * they are found, cut to what a reader of results wants, until there are as many as were asked for, the answer is long, or the
 * time is up. A line that is longer than the page is searched in parts. Files with a NUL in their first bytes are no text; a NUL further on
 * is taken for a space. */
#include "init/grep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/own.h"
#include "base/quote.h"
#include "init/builtin.h"
#include "init/memory.h"
#include "init/search.h"
#include "init/tell.h"
#include "init/walk.h"

#define PAGE_BYTES (8u << 20)
#define BINARY_LOOK 8192
#define ANSWER_BYTES (1u << 20)

enum mode { MODE_CONTENT, MODE_FILES, MODE_COUNT };

/* One per process. */
static struct grep {
    struct search search;
    struct wildcard glob;
    enum mode mode;
    uint64_t before, after, limit;
    uint64_t items, files, matches, seen;
    bool more; /* there was one too many */
    bool mute; /* nobody takes what is told */
    int64_t since_ms;
    char *page;
} g;

/* The file that is being searched. */
struct looking {
    const char *path;
    int fd;
    struct search_text text; /* its len is that of whole lines */
    size_t filled;           /* bytes in the page; the rest of the last line is beyond text.len */
    size_t from;             /* what is before it has been searched */
    size_t told;             /* what is before it has been told, or will not be */
    uint64_t line;           /* the number of the line at `counted` */
    size_t counted;
    uint64_t after, matches;
    bool ended;
};

/* --- telling --- */

static size_t cut_line(const char *p, size_t n)
{
    if (n > 0 && p[n - 1] == '\r')
        n--;
    if (n <= GREP_LINE_MAX)
        return n;
    n = GREP_LINE_MAX;
    while (n > GREP_LINE_MAX - 4 && ((unsigned char)p[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    return n;
}

static uint64_t line_number(struct looking *k, size_t at)
{
    for (const char *nl; k->counted < at && (nl = memchr(k->text.at + k->counted, '\n', at - k->counted)); k->line++)
        k->counted = (size_t)(nl - k->text.at) + 1;
    return k->line;
}

static void tell_line(struct looking *k, enum answer_kind kind, size_t begin, size_t end)
{
    struct answer a = {.kind = kind, .line = line_number(k, begin), .path = k->path, .text = k->text.at + begin};
    a.text_len = cut_line(a.text, end - begin);
    g.mute = g.mute || !tell_answer(&a);
    k->told = end + 1;
}

static size_t end_of_line(const struct looking *k, size_t at)
{
    const char *nl = memchr(k->text.at + at, '\n', k->text.len - at);
    return nl ? (size_t)(nl - k->text.at) : k->text.len;
}

/* The lines after the last match, up to some place. */
static void tell_after(struct looking *k, size_t to)
{
    for (; k->after > 0 && k->told < to; k->after--)
        tell_line(k, ANSWER_CONTEXT, k->told, end_of_line(k, k->told));
}

/* Where so many lines before a line begin, not before some place. */
static size_t lines_before(const struct looking *k, size_t at, size_t least, uint64_t lines)
{
    for (; lines > 0 && at > least; lines--) {
        const char *nl = at - 1 > least ? memrchr(k->text.at + least, '\n', at - 1 - least) : NULL;
        at = nl ? (size_t)(nl - k->text.at) + 1 : least;
    }
    return at;
}

static void tell_match(struct looking *k, size_t begin, size_t end)
{
    tell_after(k, begin);
    for (size_t at = lines_before(k, begin, k->told < begin ? k->told : begin, g.before); at < begin; at = k->told)
        tell_line(k, ANSWER_CONTEXT, at, end_of_line(k, at));
    tell_line(k, ANSWER_MATCH, begin, end);
    k->after = g.after;
}

/* --- one file --- */

static bool is_enough(void)
{
    return g.more || g.mute || tell_bytes() > ANSWER_BYTES;
}

/* All lines of the page that are whole. False: no more of this file is wanted. */
static bool search_page(struct looking *k)
{
    size_t begin, end;
    while (k->from < k->text.len && search_next(&g.search, &k->text, k->from, &begin, &end)) {
        bool one_too_many = g.mode == MODE_CONTENT ? g.items == g.limit : k->matches == 0 && g.items == g.limit;
        if (one_too_many)
            return g.more = true, false;
        k->matches++;
        k->from = end + 1;
        if (g.mode == MODE_FILES)
            return false;
        if (g.mode == MODE_CONTENT) {
            tell_match(k, begin, end);
            g.items++;
            g.matches++;
            g.more = g.more || tell_bytes() > ANSWER_BYTES;
        }
        if (is_enough())
            return false;
    }
    k->from = k->text.len;
    return true;
}

static void look_at_text(struct search_text *t)
{
    size_t at = 0;
    unsigned point;
    for (char *nul = t->at, *end = t->at + t->len; (nul = memchr(nul, 0, (size_t)(end - nul)));)
        while (nul < end && !*nul)
            *nul++ = ' ';
    for (t->is_utf8 = true; at < t->len && t->is_utf8;) {
        uint64_t eight;
        if (t->len - at >= 8 && (memcpy(&eight, t->at + at, 8), !(eight & 0x8080808080808080u))) {
            at += 8;
            continue;
        }
        size_t step = quote_utf8((const unsigned char *)t->at + at, t->len - at, &point);
        t->is_utf8 = step > 0;
        at += step;
    }
}

/* Makes room at the page's end: what has been told or searched goes, but for lines that may stand before the next match. */
static void move_page(struct looking *k)
{
    size_t keep = lines_before(k, k->text.len, 0, g.mode == MODE_CONTENT ? g.before : 0);
    if (keep < k->told && k->told <= k->text.len)
        keep = k->told;
    if (k->text.len - keep > PAGE_BYTES / 2)
        keep = k->text.len;
    line_number(k, keep);
    memmove(g.page, g.page + keep, k->filled - keep);
    k->filled -= keep;
    k->from = k->text.len - keep;
    k->told = k->told > keep ? k->told - keep : 0;
    k->counted -= keep;
}

/* Fills the page. The text is then all lines in it that are whole, or all there is. False: it cannot be read. */
static bool fill_page(struct looking *k)
{
    while (k->filled < PAGE_BYTES && !k->ended) {
        ssize_t n = read(k->fd, g.page + k->filled, PAGE_BYTES - k->filled);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        k->ended = n == 0;
        k->filled += (size_t)n;
    }
    const char *nl = k->ended ? NULL : memrchr(g.page, '\n', k->filled);
    k->text.at = g.page;
    k->text.len = nl ? (size_t)(nl - g.page) + 1 : k->filled;
    return true;
}

/* The NUL behind the text is put there for the search alone. */
static bool search_filled(struct looking *k)
{
    char was = k->text.at[k->text.len];
    k->text.at[k->text.len] = 0;
    look_at_text(&k->text);
    bool on = search_page(k);
    tell_after(k, k->text.len);
    k->text.at[k->text.len] = was;
    return on;
}

static void tell_file(struct looking *k)
{
    if (k->matches == 0)
        return;
    g.files++;
    if (g.mode == MODE_CONTENT)
        return;
    struct answer a = {.kind = g.mode == MODE_FILES ? ANSWER_FILE : ANSWER_COUNT, .count = k->matches, .path = k->path};
    if (g.mode == MODE_FILES)
        a.count = 0;
    g.mute = g.mute || !tell_answer(&a);
    g.items++;
    g.matches += k->matches;
    g.more = g.more || tell_bytes() > ANSWER_BYTES;
}

static void search_file(int fd, const char *path, const struct stat *st)
{
    struct looking k = {.path = path, .fd = fd, .line = 1};
    g.seen++;
    /* The first read tells of most files that they are done: one that has come to its stated size is not asked again. */
    size_t want = st->st_size > 0 && st->st_size < PAGE_BYTES ? (size_t)st->st_size + 1 : PAGE_BYTES;
    ssize_t n = read(fd, g.page, want);
    if (n <= 0 || memchr(g.page, 0, (size_t)n < BINARY_LOOK ? (size_t)n : BINARY_LOOK))
        return;
    k.filled = (size_t)n;
    k.ended = (off_t)n == st->st_size && want > (size_t)n;
    while (fill_page(&k) && search_filled(&k) && !k.ended && !walk_is_late(g.since_ms)) {
        if (k.filled == PAGE_BYTES || k.text.len > 0)
            move_page(&k);
    }
    tell_file(&k);
}

/* --- the tree --- */

static bool visit(void *arg, const struct walk_entry *en)
{
    struct stat st;
    (void)arg;
    if (en->type != 'f')
        return true;
    own_fd fd = openat(en->dir_fd, en->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        search_file(fd, en->path, &st);
    return !is_enough();
}

static int search_one(const char *path, struct pale_err *e)
{
    struct stat st = {0};
    own_fd fd = builtin_open_plain(path, &st);
    if (fd < 0)
        return err_os(e, "open %.400s", path);
    search_file(fd, "", &st);
    return 0;
}

static int search_all(struct walk *w, const char *path, struct pale_err *e)
{
    struct stat st;
    g.since_ms = clock_ms();
    if (path[0] && stat(path, &st) < 0)
        return err_os(e, "open %.400s", path);
    return path[0] && !S_ISDIR(st.st_mode) ? search_one(path, e) : walk_run(w, path, e);
}

static bool take_words(const struct msg_exec *m)
{
    static const char *const modes[] = {[MODE_CONTENT] = "content", [MODE_FILES] = "files", [MODE_COUNT] = "count"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(m->argv[7], modes[i]) == 0) {
            g.mode = (enum mode)i;
            return m->argv[4][strspn(m->argv[4], "-ifh")] == 0 && number_u64(m->argv[5], GREP_CONTEXT_MAX, &g.before) &&
                   number_u64(m->argv[6], GREP_CONTEXT_MAX, &g.after) && number_u64(m->argv[8], GREP_ITEMS_MAX, &g.limit);
        }
    return false;
}

int grep_run(const struct msg_exec *m)
{
    struct pale_err e;
    const char *flags = m->argv[4];
    struct walk w = {.visit = visit, .sorted = true, .hidden = strchr(flags, 'h'), .pattern = m->argv[3][0] ? &g.glob : NULL};
    if (!take_words(m))
        return builtin_bad_words(m);
    int r = w.pattern ? wildcard_parse(&g.glob, m->argv[3], true, &e) : 0;
    if (r == 0)
        r = memory_open_heap(&e);
    if (r == 0)
        r = search_init(&g.search, m->argv[2], strchr(flags, 'f'), strchr(flags, 'i'), &e);
    if (r == 0 && !(g.page = memory_map(PAGE_BYTES + 1, &e)))
        r = -(int)e.code;
    if (r == 0)
        r = search_all(&w, m->argv[1], &e);
    if (r < 0)
        return builtin_fail(&e);
    bool more = g.more || w.partial || walk_is_late(g.since_ms);
    struct answer end = {.kind = ANSWER_END, .files = g.files, .count = g.matches, .seen = g.seen, .flags = more ? ANSWER_MORE : 0};
    return !g.mute && tell_answer(&end) && tell_flush() ? 0 : builtin_fail_os("grep", m->argv[1]);
}

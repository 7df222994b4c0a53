/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the printing of what a box has changed. */
#include "cli/shown_change.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonread.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/weak.h"

#define LINE_SHOWN_MAX 4096u
#define LINE_HELD_MAX (128u << 10) /* more than any line takes but one of a file's content, which goes out in pieces */
#define CONTENT_SHOWN_BYTES 8192u

/* --- lines on a terminal --- */

static const char *patch_colour(const char *line, size_t n)
{
    if (n >= 5 && memcmp(line, "diff ", 5) == 0)
        return "bold";
    return n > 0 && line[0] == '+' ? "green" : n > 0 && line[0] == '-' ? "red" : n > 1 && line[0] == '@' ? "dim" : "reset";
}

/* A tab is harmless, and code is unreadable without. */
static void print_harmless(const char *line, size_t n)
{
    own_buf b = {0};
    buf_init(&b, 16 * LINE_SHOWN_MAX);
    for (size_t at = 0; at < n;) {
        size_t part = 0;
        while (at + part < n && line[at + part] != '\t')
            part++;
        quote_again(&b, line + at, part, LINE_SHOWN_MAX);
        at += part;
        if (at < n)
            buf_add_text(&b, "\t"), at++;
    }
    printf("%s", buf_text(&b));
}

static void print_patch_line(const char *line, size_t n)
{
    printf("%s", cli_colour(1, patch_colour(line, n)));
    print_harmless(line, n);
    printf("%s\n", cli_colour(1, "reset"));
}

/* The word that says what became of it, and behind the last mark why a person must look. */
static void print_stat_line(const char *line, size_t n)
{
    const char *mark = NULL;
    size_t word = 0;
    while (word < n && line[word] != ' ')
        word++;
    for (size_t at = word; at + 4 <= n; at++)
        if (memcmp(line + at, "  ! ", 4) == 0)
            mark = line + at + 2;
    const char *colour = n > 0 && line[0] == 'a' ? "green" : n > 0 && line[0] == 'd' ? "red" : "yellow";
    if (n > 0 && line[0] >= '0' && line[0] <= '9')
        colour = "reset"; /* the sum */
    printf("%s", cli_colour(1, colour));
    print_harmless(line, word);
    printf("%s", cli_colour(1, "reset"));
    print_harmless(line + word, mark ? (size_t)(mark - line) - word : n - word);
    if (mark) {
        printf("%s", cli_colour(1, "yellow"));
        print_harmless(mark, n - (size_t)(mark - line));
        printf("%s", cli_colour(1, "reset"));
    }
    printf("\n");
}

void shown_change_content(int fd)
{
    char block[CONTENT_SHOWN_BYTES];
    ssize_t n = fd < 0 ? -1 : pread(fd, block, sizeof(block), 0);
    if (n < 0)
        printf("(no file)\n");
    else if (memchr(block, 0, (size_t)n))
        printf("(binary)\n");
    for (ssize_t at = 0; n > 0 && !memchr(block, 0, (size_t)n) && at < n;) {
        const char *end = memchr(block + at, '\n', (size_t)(n - at));
        ssize_t len = end ? end - (block + at) : n - at;
        print_patch_line(block + at, (size_t)len);
        at += len + (end != NULL);
    }
    if (n == (ssize_t)sizeof(block))
        printf("…\n");
}

/* --- lines as they come --- */

static void complain(struct shown_change *s, const char *text)
{
    cli_complain(text);
    s->troubles++;
}

/* An object that is whole, and what it tells of is a change or a trouble. */
static void take_json(struct shown_change *s, const char *line, size_t n)
{
    struct jsonread v, m;
    char word[16] = "", path[1024], why[1024], name[1024], text[2100];
    if (weak_word("quote")) {
        printf("%s%.*s", s->count++ ? "," : "[", (int)n, line);
        return;
    }
    if (!jsonread_parse(line, n, &v) || v.kind != JSONREAD_OBJECT)
        return complain(s, "a change was told in words that cannot be read");
    if (jsonread_get(&v, "change", &m))
        jsonread_text(&m, word, sizeof(word));
    if (strcmp(word, "trouble") != 0) {
        printf("%s", s->count++ ? "," : "[");
        fwrite(v.at, 1, v.len, stdout);
        return;
    }
    path[0] = why[0] = 0;
    if (jsonread_get(&v, "path", &m))
        jsonread_text(&m, path, sizeof(path));
    if (jsonread_get(&v, "reason", &m))
        jsonread_text(&m, why, sizeof(why));
    snprintf(text, sizeof(text), "%s: %s", quote_into(name, sizeof(name), path, strlen(path)), why);
    complain(s, text);
}

/* One line, or the first of it that is held; whole: with its end. */
static void take_line(struct shown_change *s, bool whole)
{
    const char *line = buf_text(&s->line);
    size_t n = s->line.len, mark = strlen(RENDITION_TROUBLE);
    bool goes_on = s->within;
    s->within = !whole;
    if (s->form == RENDITION_JSON)
        take_json(s, line, n);
    else if (!goes_on && n > mark && memcmp(line, RENDITION_TROUBLE, mark) == 0)
        complain(s, line + mark);
    else if (!s->terminal) {
        fwrite(line, 1, n, stdout);
        if (whole)
            putchar('\n');
    } else if (!goes_on && s->form == RENDITION_PATCH)
        print_patch_line(line, n);
    else if (!goes_on && s->form == RENDITION_STAT)
        print_stat_line(line, n);
    else if (!goes_on) {
        print_harmless(line, n);
        putchar('\n');
    }
    buf_clear(&s->line);
}

enum rendition_form shown_change_form(const struct args *a)
{
    return a->json ? RENDITION_JSON : args_has(a, "stat") ? RENDITION_STAT : args_has(a, "name-only") ? RENDITION_NAMES : RENDITION_PATCH;
}

void shown_change_begin(struct shown_change *s, enum rendition_form form)
{
    *s = (struct shown_change){.form = form, .terminal = isatty(1)};
    buf_init(&s->line, LINE_HELD_MAX + 1);
}

void shown_change_done(struct shown_change *s)
{
    buf_done(&s->line);
}

static int check_reader(struct pale_err *e)
{
    return ferror(stdout) ? err_set(e, PALE_GONE, "nobody reads the output") : 0;
}

int shown_change_take(void *arg, const void *p, size_t n, struct pale_err *e)
{
    struct shown_change *s = arg;
    for (const char *at = p; n > 0;) {
        const char *end = memchr(at, '\n', n);
        size_t len = end ? (size_t)(end - at) : n, room = LINE_HELD_MAX - s->line.len;
        bool whole = end && len <= room;
        size_t part = len < room ? len : room;
        buf_add(&s->line, at, part);
        if (s->line.failed)
            return err_nomem(e);
        if (whole || s->line.len == LINE_HELD_MAX)
            take_line(s, whole);
        part += whole;
        at += part;
        n -= part;
    }
    return check_reader(e);
}

int shown_change_end(struct shown_change *s, struct pale_err *e)
{
    if (s->line.len > 0)
        take_line(s, false);
    if (s->form == RENDITION_JSON)
        printf("%s]\n", s->count ? "" : "[");
    (void)fflush(stdout);
    return check_reader(e);
}

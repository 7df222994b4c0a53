/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the command says: errors, notes, help, tables, colour. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "cli/cli.h"

const char *cli_colour(int fd, const char *name)
{
    static const struct {
        const char *name, *code;
    } rows[] = {{"bold", "\033[1m"}, {"red", "\033[31m"},  {"green", "\033[32m"}, {"yellow", "\033[33m"},
                {"dim", "\033[2m"},  {"reset", "\033[0m"}, {"blue", "\033[34m"}};
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
    if (no && no[0])
        return "";
    if (!(force && force[0] && strcmp(force, "0") != 0) && (!isatty(fd) || !term || strcmp(term, "dumb") == 0))
        return "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].code;
    return "";
}

void cli_complain(const char *text)
{
    own_buf b = {0};
    buf_init(&b, 8192);
    quote_again(&b, text, strlen(text), 4000);
    fprintf(stderr, "%spale: %s%s\n", cli_colour(2, "red"), cli_colour(2, "reset"), buf_text(&b));
}

static int print_json(struct buf *b, FILE *to)
{
    buf_add_text(b, "\n");
    return b->failed || fwrite(b->data, 1, b->len, to) != b->len || fflush(to) != 0 ? 125 : 0;
}

int cli_json(struct buf *b)
{
    return print_json(b, stdout);
}

static int fail(const struct args *a, const struct pale_err *e, FILE *to)
{
    if (a && a->json) {
        own_buf b = {0};
        struct json j;
        buf_init(&b, 8192);
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_begin_object(&j, "error");
        json_text(&j, "code", err_name(e->code));
        json_text(&j, "message", e->text);
        json_end_object(&j);
        json_end_object(&j);
        (void)print_json(&b, to);
    } else {
        cli_complain(e->text);
    }
    return err_exit_status(e->code);
}

int cli_fail(const struct args *a, const struct pale_err *e)
{
    return fail(a, e, stdout);
}

int cli_fail_aside(const struct args *a, const struct pale_err *e)
{
    return fail(a, e, stderr);
}

void cli_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s", cli_colour(2, "dim"));
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "%s\n", cli_colour(2, "reset"));
    va_end(ap);
}

static void print_options(const struct option *t)
{
    for (; t->name; t++) {
        char left[64];
        int n = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", t->letter ? '-' : ' ', t->letter ? t->letter : ' ', t->letter ? "," : " ",
                         t->name, t->value ? " " : "", t->value ? t->value : "");
        printf("%s%*s%s\n", left, n < 32 ? 32 - n : 1, "", t->help);
    }
}

void cli_help(const struct verb *v)
{
    printf("%spale %s%s %s\n\n%s\n", cli_colour(1, "bold"), v->name, cli_colour(1, "reset"), v->usage, v->about);
    for (const struct option *const *t = v->options; *t; t++) {
        printf("\n%s:\n", *t == common_options ? "Common" : (*t)->key || t[1] == NULL ? "Box" : "Options");
        print_options(*t);
    }
}

void cli_overview(void)
{
    const char *group = "";
    printf("%spale%s: boxes for what agents execute. Usage: pale VERB …; `pale VERB --help` says more.\n", cli_colour(1, "bold"),
           cli_colour(1, "reset"));
    for (const struct verb *const *v = cli_verbs; *v; v++) {
        if (strcmp(group, (*v)->group) != 0)
            printf("\n%s\n", (*v)->group);
        group = (*v)->group;
        printf("  %s%-11s%s %s\n", cli_colour(1, "bold"), (*v)->name, cli_colour(1, "reset"), (*v)->summary);
    }
    printf("\nTry: pale run -- python3 -c 'print(6*7)'\n");
}

void table_init(struct table *t, const char *const *heads, int columns)
{
    *t = (struct table){.columns = columns, .has_head = heads};
    buf_init(&t->cells, 64 << 20);
    for (int i = 0; heads && i < columns; i++)
        table_cell(t, heads[i]);
}

void table_cell(struct table *t, const char *text)
{
    quote_text(&t->cells, text, strlen(text), 200);
    buf_add(&t->cells, "", 1);
    t->rows++;
}

/* Columns on the screen: bytes less the continuation bytes of UTF-8. */
static size_t width(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void table_print(struct table *t)
{
    size_t widest[TABLE_COLUMNS] = {0}, i = 0;
    const char *end = (const char *)t->cells.data + t->cells.len;
    for (const char *at = (const char *)t->cells.data; at && at < end; at += strlen(at) + 1, i++)
        if (width(at) > widest[i % (size_t)t->columns])
            widest[i % (size_t)t->columns] = width(at);
    i = 0;
    for (const char *at = (const char *)t->cells.data; at && at < end; at += strlen(at) + 1, i++) {
        size_t column = i % (size_t)t->columns;
        bool head = t->has_head && i < (size_t)t->columns, last = column + 1 == (size_t)t->columns;
        printf("%s%s%s", head ? cli_colour(1, "dim") : "", at, head ? cli_colour(1, "reset") : "");
        if (last)
            printf("\n");
        else
            printf("%*s", (int)(widest[column] - width(at) + 2), "");
    }
    buf_done(&t->cells);
}

void listing_init(struct listing *l, const struct args *a, const char *const *heads, int columns)
{
    *l = (struct listing){.is_json = a->json};
    buf_init(&l->text, 256 << 20);
    json_start(&l->json, &l->text);
    json_begin_list(&l->json, NULL);
    table_init(&l->table, heads, columns);
}

void listing_done(struct listing *l)
{
    buf_done(&l->text);
    buf_done(&l->table.cells);
}

int listing_print(struct listing *l)
{
    if (l->is_json) {
        json_end_list(&l->json);
        return cli_json(&l->text);
    }
    if (l->table.rows > 0)
        table_print(&l->table);
    return 0;
}

void cli_field(const char *line, const char *key, char *ret, size_t cap)
{
    char pattern[32];
    snprintf(pattern, sizeof(pattern), "\"%s\":", key);
    const char *at = strstr(line, pattern);
    ret[0] = 0;
    if (!at)
        return;
    at += strlen(pattern);
    size_t n = 0;
    if (*at == '"') {
        for (at++; at[n] && at[n] != '"'; n++)
            n += at[n] == '\\' && at[n + 1];
    } else {
        int depth = 0;
        bool text = false;
        for (; at[n] && (depth > 0 || text || (at[n] != ',' && at[n] != '}')); n++) {
            if (at[n] == '\\' && at[n + 1])
                n++;
            else if (at[n] == '"')
                text = !text;
            else if (!text)
                depth += (at[n] == '[') - (at[n] == ']');
        }
    }
    snprintf(ret, cap, "%.*s", (int)(n < cap ? n : cap - 1), at);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* pale-policy: reads a policy file (YAML or JSON, the pale or the capability format) and prints its canonical text.
 *
 * How it works: the file may come from a hostile repository, so this is a program of its own: it opens its files, locks
 * itself up, and only then reads. It prints either the canonical text on stdout (exit 0) or every error it can find on stderr
 * (exit 1); trouble of its own is exit 125. Whoever started it reads the canonical text with policy_parse, which trusts
 * nothing either. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "policy/field.h"
#include "reader/filemap.h"
#include "reader/load.h"
#include "reader/lock.h"

#define EXIT_BAD_FILE 1
#define EXIT_TROUBLE 125

static const char usage[] =
    "usage: pale-policy [--format auto|pale|capability] [--name NAME] [--base FILE] [--errors text|json] [--] FILE|-\n";

struct program {
    const char *format, *name, *base, *errors, *file;
    int file_fd, base_fd;
    struct complaints complaints;
};

static const struct option_row {
    const char *name;
    size_t at;
    const char *values[3]; /* the first is the default; none: anything goes */
} option_rows[] = {
    {"--format", offsetof(struct program, format), {"auto", "pale", "capability"}},
    {"--errors", offsetof(struct program, errors), {"text", "json"}},
    {"--name", offsetof(struct program, name), {NULL}},
    {"--base", offsetof(struct program, base), {NULL}},
};
#define OPTION_COUNT (sizeof(option_rows) / sizeof(option_rows[0]))

static bool is_value(const struct option_row *row, const char *value)
{
    for (size_t i = 0; i < sizeof(row->values) / sizeof(row->values[0]); i++)
        if (row->values[i] && strcmp(row->values[i], value) == 0)
            return true;
    return !row->values[0];
}

static int take_option(struct program *g, const char *name, const char *value, struct pale_err *e)
{
    struct nearest near;
    char shown[60];
    nearest_init(&near, name);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        nearest_offer(&near, row->name);
        if (strcmp(row->name, name) != 0)
            continue;
        if (!value || !is_value(row, value))
            return err_set(e, PALE_BAD_INPUT, "%s has no value, or none it knows\n%s", name, usage);
        *(const char **)((char *)g + row->at) = value;
        return 0;
    }
    quote_into(shown, sizeof(shown), name, strlen(name));
    if (near.best)
        return err_set(e, PALE_BAD_INPUT, "unknown option %s; did you mean %s?\n%s", shown, near.best, usage);
    return err_set(e, PALE_BAD_INPUT, "unknown option %s\n%s", shown, usage);
}

/* Stage 1. Needs: nothing. */
static int read_options(struct program *g, char **argv, struct pale_err *e)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        *(const char **)((char *)g + option_rows[i].at) = option_rows[i].values[0];
    bool options = true;
    for (char **a = argv + 1; *a; a++) {
        if (options && strcmp(*a, "--") == 0) {
            options = false;
        } else if (options && (*a)[0] == '-' && (*a)[1]) {
            int r = take_option(g, a[0], a[1], e);
            if (r < 0)
                return r;
            a++;
        } else if (g->file) {
            return err_set(e, PALE_BAD_INPUT, "more than one file\n%s", usage);
        } else {
            g->file = *a;
        }
    }
    if (!g->file)
        return err_set(e, PALE_BAD_INPUT, "no file\n%s", usage);
    if (!g->name)
        g->name = g->file;
    return 0;
}

/* A repository could hold a pipe or a device in place of the file: reading it might never end. */
static int open_file(const char *path, int *ret_fd, struct pale_err *e)
{
    char shown[200];
    struct stat st;
    quote_into(shown, sizeof(shown), path, strlen(path));
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "read policy %s", shown);
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "read policy %s: not a regular file; give - to read from a pipe", shown);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Stage 2. Needs: the file system. The last descriptors of this program. */
static int open_files(struct program *g, struct pale_err *e)
{
    g->file_fd = STDIN_FILENO;
    load_prepare();
    if (g->base) {
        int r = open_file(g->base, &g->base_fd, e);
        if (r < 0)
            return r;
    }
    return strcmp(g->file, "-") == 0 ? 0 : open_file(g->file, &g->file_fd, e);
}

/* One byte more than allowed is read, so that the caller sees that it is too much. */
static int read_all(int fd, struct buf *out, struct pale_err *e)
{
    buf_init(out, POLICY_TEXT_MAX + 2);
    for (;;) {
        char chunk[16384];
        size_t room = POLICY_TEXT_MAX + 1 - out->len;
        ssize_t n = read(fd, chunk, room < sizeof(chunk) ? room : sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "read policy");
        if (n == 0)
            return out->failed ? err_nomem(e) : 0;
        buf_add(out, chunk, (size_t)n);
    }
}

/* Stage 4. Needs: descriptors that are open. */
static int read_base(struct program *g, struct policy *p, struct pale_err *e)
{
    own_buf text = {0};
    if (!g->base)
        return policy_init(p, e);
    int r = read_all(g->base_fd, &text, e);
    if (r == 0)
        r = policy_parse(buf_text(&text), text.len, p, e);
    return r < 0 ? err_prefix(e, "--base") : 0;
}

static bool looks_like_json(const char *name, const char *text, size_t len)
{
    size_t n = strlen(name), i = 0;
    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return (i < len && text[i] == '{') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

static void map_tree(const struct program *g, struct job *j, const struct node *root)
{
    bool capability = strcmp(g->format, "capability") == 0;
    if (root->kind != NODE_MAP) {
        job_expects(j, root, NODE_MAP, "", "a map of keys");
        return;
    }
    if (strcmp(g->format, "auto") == 0)
        capability = filemap_is_capability(root);
    if (capability)
        filemap_capability(j, root);
    else
        filemap_pale(j, root);
}

/* Rules over the whole name the key first; the place is where the file sets it. */
static void check_whole(struct job *j)
{
    struct pale_err e = {0};
    if (policy_check(j->p, &e) == 0)
        return;
    const struct field *f;
    const char *key = "", *text = e.text;
    size_t n = strcspn(e.text, ":");
    struct place at = {1, 1};
    for (size_t i = 0; (f = field_at(i)); i++)
        if (strlen(f->key) == n && strncmp(e.text, f->key, n) == 0 && e.text[n]) {
            key = f->key;
            text = e.text + n + 2;
            at = j->set_by[i] ? j->set_by[i]->place : at;
        }
    complain(j->c, at, key, "%s", text);
}

/* Stage 5. Needs: memory and time. Everything hostile happens here. */
static int read_policy(struct program *g, struct policy *p, struct pale_err *e)
{
    own_buf text = {0};
    own_node *root = NULL;
    struct job j = {.p = p, .c = &g->complaints};
    int r = read_all(g->file_fd, &text, e);
    if (r < 0)
        return r;
    if (text.len > POLICY_TEXT_MAX) {
        complain(j.c, (struct place){1, 1}, "", "the file is longer than %u bytes; no policy is", POLICY_TEXT_MAX);
        return 0;
    }
    const char *bytes = buf_text(&text);
    r = text.len ? load_tree((char *)text.data, text.len, looks_like_json(g->name, bytes, text.len), &root, j.c, e) : 0;
    if (r < 0)
        return r;
    if (root && !node_is_null(root))
        map_tree(g, &j, root);
    else if (strcmp(g->format, "capability") == 0 && !j.c->count)
        filemap_capability(&j, &(struct node){.kind = NODE_MAP, .place = {1, 1}});
    if (!j.out_of_memory && !j.c->count)
        check_whole(&j);
    return j.out_of_memory ? err_nomem(e) : 0;
}

static int write_all(int fd, const struct buf *b, struct pale_err *e)
{
    for (size_t done = 0; done < b->len;) {
        ssize_t n = write(fd, b->data + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "write");
        done += (size_t)n;
    }
    return b->failed ? err_nomem(e) : 0;
}

/* Stage 6. Needs: stdout and stderr. */
static int print(struct program *g, const struct policy *p, struct pale_err *e)
{
    own_buf out = {0};
    buf_init(&out, 4 * POLICY_TEXT_MAX);
    if (g->complaints.count == 0) {
        policy_write(p, &out);
        return write_all(STDOUT_FILENO, &out, e);
    }
    (strcmp(g->errors, "json") == 0 ? complaints_json : complaints_text)(&g->complaints, g->name, &out);
    return write_all(STDERR_FILENO, &out, e);
}

int main(int argc, char **argv)
{
    struct program g = {.file_fd = -1, .base_fd = -1};
    struct pale_err e = {0};
    own_policy p = {0};
    int r = argc > 0 ? read_options(&g, argv, &e) : -PALE_BAD_INPUT;
    if (r == 0)
        r = open_files(&g, &e);
    /* Stage 3: from here on no file, process or privilege can be had. */
    if (r == 0)
        r = lock_self(&e);
    if (r == 0)
        r = read_base(&g, &p, &e);
    if (r == 0)
        r = read_policy(&g, &p, &e);
    if (r == 0)
        r = print(&g, &p, &e);
    if (r < 0) {
        fprintf(stderr, "pale-policy: %s\n", e.text);
        return EXIT_TROUBLE;
    }
    return g.complaints.count ? EXIT_BAD_FILE : 0;
}

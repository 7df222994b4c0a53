/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and copies the list of what a box's apply has landed. */
#include "box/landed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "tree/pathtext.h"
#include "tree/script.h"

#define LIST "list"
#define HEAD "pale landed 1\n"
#define LIST_BYTES_MAX (256u << 20)
#define WORDS 6
#define SUM_LEN 16

static const char *const kinds[] = {[LEAF_NONE] = "none", [LEAF_FILE] = "file", [LEAF_FOLDER] = "folder", [LEAF_LINK] = "link"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
static const char forgotten[] = "forgotten";

void landed_done(struct landed *l)
{
    own_close(&l->dir_fd);
    own_close(&l->list_fd);
    free(l->lines);
    l->lines = NULL;
    buf_done(&l->text);
}

/* --- text --- */

static void sum_of(const char *line, size_t n, char ret[SHA256_HEX])
{
    sha256_hex(line, n, ret);
    ret[SUM_LEN] = 0;
}

static bool is_digest(const char *word)
{
    return strlen(word) == SHA256_HEX - 1 && strspn(word, "0123456789abcdef") == SHA256_HEX - 1;
}

/* One line without its newline: time, kind, mode, digest, path, sum. */
static bool read_line(char *line, struct landed_line *ret)
{
    char sum[SHA256_HEX], *words[WORDS];
    char *last = strrchr(line, ' ');
    uint64_t mode;
    if (!last)
        return false;
    sum_of(line, (size_t)(last - line), sum);
    if (strcmp(last + 1, sum) != 0)
        return false;
    *last = 0;
    char *at = line;
    for (size_t i = 0; i < WORDS - 1; i++) {
        if (!(words[i] = at))
            return false;
        at = strchr(at, ' ');
        if (at)
            *at++ = 0;
    }
    bool known = strcmp(words[1], forgotten) == 0;
    *ret = (struct landed_line){.path = words[4], .kind = LANDED_FORGOTTEN};
    for (size_t k = 0; k < KINDS; k++)
        if (strcmp(words[1], kinds[k]) == 0) {
            ret->kind = (enum leaf_kind)k;
            known = true;
        }
    bool has_content = ret->kind == LEAF_FILE || ret->kind == LEAF_LINK;
    if (at || !known || !number_u64(words[0], INT64_MAX, &ret->at_ms) || !number_u64(words[2], 0777, &mode) ||
        (has_content ? !is_digest(words[3]) : strcmp(words[3], "-") != 0) || !pathtext_read(words[4]))
        return false;
    ret->mode = (mode_t)mode;
    if (has_content)
        memcpy(ret->digest, words[3], sizeof(ret->digest));
    return true;
}

static size_t count_lines(const char *at)
{
    size_t n = 0;
    for (; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

int landed_parse(const char *text, size_t len, struct landed *ret, struct pale_err *e)
{
    size_t head = strlen(HEAD);
    if (len == 0)
        return 0;
    if (len < head || memcmp(text, HEAD, head) != 0 || memchr(text, 0, len))
        return err_set(e, PALE_CORRUPT, "this is no list of what was landed, of this version");
    buf_init(&ret->text, LIST_BYTES_MAX);
    buf_add(&ret->text, text + head, len - head);
    char *at = (char *)(uintptr_t)buf_text(&ret->text);
    ret->lines = calloc(count_lines(at) + 1, sizeof(*ret->lines));
    if (ret->text.failed || !ret->lines)
        return err_nomem(e);
    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        if (!read_line(at, &ret->lines[ret->count]))
            return err_set(e, PALE_CORRUPT, "the list of what was landed is damaged at its line %zu", ret->count + 2);
        ret->count++;
    }
    return 0; /* what follows the last newline was never written */
}

/* --- what counts --- */

/* Had the layers of the open one been written in at that time? */
static bool counts(const struct stack *s, uint64_t at_ms)
{
    if (at_ms >= s->open_born_ns / 1000000)
        return true;
    bool goes_on = !s->open_anew;
    for (int i = s->below_open; i != STACK_NONE && goes_on; i = s->layers[i].below) {
        if (at_ms >= s->layers[i].born_ns / 1000000 && at_ms <= s->layers[i].closed_ms)
            return true;
        goes_on = !s->layers[i].anew || s->layers[i].rest;
    }
    return false;
}

static int by_path_and_time(const void *a, const void *b)
{
    const struct landed_line *x = a, *y = b;
    int r = strcmp(x->path, y->path);
    return r ? r : x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms ? 1 : x < y ? -1 : x > y;
}

static void keep_counting(struct landed *l, const struct stack *s)
{
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++)
        if (counts(s, l->lines[i].at_ms))
            l->lines[n++] = l->lines[i];
    if (n > 0)
        qsort(l->lines, n, sizeof(*l->lines), by_path_and_time);
    l->count = 0;
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || strcmp(l->lines[i].path, l->lines[i + 1].path) != 0)
            l->lines[l->count++] = l->lines[i];
}

static int open_folder(const char *state, bool makes, int *ret, struct pale_err *e)
{
    own_fd dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (makes && mkdirat(dir, LANDED_FOLDER, 0700) < 0 && errno != EEXIST))
        return err_os(e, "make %s/" LANDED_FOLDER, state);
    *ret = openat(dir, LANDED_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 && errno != ENOENT ? err_os(e, "open %s/" LANDED_FOLDER, state) : 0;
}

static int read_list(int fd, struct landed *ret, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    int r = fd_read_all(fd, &text, e);
    return r < 0 ? r : landed_parse(buf_text(&text), text.len, ret, e);
}

/* A line that was cut off must not become part of the next one. */
static int end_last_line(int fd, struct pale_err *e)
{
    struct stat st;
    char block[4096];
    if (fstat(fd, &st) < 0)
        return err_os(e, "look at the list of what was landed");
    off_t end = st.st_size;
    for (bool found = false; end > 0 && !found;) {
        size_t n = end < (off_t)sizeof(block) ? (size_t)end : sizeof(block);
        if (pread(fd, block, n, end - (off_t)n) != (ssize_t)n)
            return err_os(e, "read the list of what was landed");
        const char *last = memrchr(block, '\n', n);
        found = last != NULL;
        end -= last ? (off_t)(block + n - (last + 1)) : (off_t)n;
    }
    if (end < st.st_size && ftruncate(fd, end) < 0)
        return err_os(e, "repair the list of what was landed");
    return end == 0 && !fd_write_full(fd, HEAD, strlen(HEAD)) ? err_os(e, "begin the list of what was landed") : 0;
}

int landed_open(const struct place *p, const struct stack *s, bool makes, struct landed *ret, struct pale_err *e)
{
    *ret = (struct landed)LANDED_NONE;
    int r = open_folder(p->state, makes, &ret->dir_fd, e);
    if (r < 0 || ret->dir_fd < 0)
        return r;
    ret->list_fd = openat(ret->dir_fd, LIST, (makes ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (ret->list_fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s/" LANDED_FOLDER "/" LIST, p->state);
    r = read_list(ret->list_fd, ret, e);
    if (r == 0 && makes)
        r = end_last_line(ret->list_fd, e);
    if (r < 0)
        return err_prefix(e, "%s/" LANDED_FOLDER "/" LIST " (without it, what was landed before is told as a conflict)", p->state);
    keep_counting(ret, s);
    return 0;
}

const struct landed_line *landed_find(const struct landed *l, const char *path)
{
    size_t from = 0, to = l->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int r = strcmp(path, l->lines[middle].path);
        if (r == 0)
            return l->lines[middle].kind == LANDED_FORGOTTEN ? NULL : &l->lines[middle];
        *(r < 0 ? &to : &from) = middle + (r > 0);
    }
    return NULL;
}

int landed_thing(const struct landed *l, const struct landed_line *line, struct threeway_thing *ret, struct pale_err *e)
{
    char digest[SHA256_HEX];
    *ret = (struct threeway_thing){.kind = line->kind, .mode = line->mode, .fd = -1};
    buf_init(&ret->target, PATH_BYTES_MAX);
    memcpy(ret->digest, line->digest, sizeof(ret->digest));
    if (line->kind != LEAF_FILE)
        return 0;
    own_fd fd = openat(l->dir_fd, line->digest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || threeway_digest(&(struct threeway_thing){.kind = LEAF_FILE, .fd = fd}, digest, e) < 0 ||
        strcmp(digest, line->digest) != 0)
        return 0;
    ret->fd = take_fd(&fd);
    return 0;
}

/* --- writing --- */

/* A text that is worth to be merged with later. What cannot be kept is known by its digest. */
static void keep_content(const struct landed *l, int fd, const char *digest)
{
    struct stat st, old;
    if (fstat(fd, &st) < 0 || st.st_size > LANDED_TEXT_MAX)
        return;
    if (fstatat(l->dir_fd, digest, &old, AT_SYMLINK_NOFOLLOW) == 0) {
        if (old.st_size == st.st_size)
            return;
        (void)unlinkat(l->dir_fd, digest, 0);
    }
    own_buf text = {0};
    struct pale_err ignored;
    buf_init(&text, LANDED_TEXT_MAX);
    if (leaf_read(fd, &text, &ignored) < 0 || script_is_binary(text.data, text.len))
        return;
    own_fd to = openat(l->dir_fd, digest, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to >= 0 && !fd_write_full(to, text.data, text.len))
        (void)unlinkat(l->dir_fd, digest, 0);
}

bool landed_describe(struct buf *out, const char *path, const struct threeway_thing *t)
{
    char digest[SHA256_HEX] = "-";
    struct pale_err ignored;
    if ((size_t)t->kind >= KINDS || ((t->kind == LEAF_FILE || t->kind == LEAF_LINK) && threeway_digest(t, digest, &ignored) < 0))
        return false;
    unsigned mode = t->kind == LEAF_FILE || t->kind == LEAF_FOLDER ? (unsigned)t->mode & 0777u : 0;
    buf_addf(out, "%s %u %s ", kinds[t->kind], mode, digest);
    pathtext_write(out, path);
    return !out->failed;
}

void landed_describe_line(struct buf *out, const struct landed_line *n)
{
    buf_addf(out, "%s %u %s ", n->kind == LANDED_FORGOTTEN ? forgotten : kinds[n->kind], (unsigned)n->mode, n->digest[0] ? n->digest : "-");
    pathtext_write(out, n->path);
}

/* Puts the sum behind the line that begins there. */
static void end_line(struct buf *out, size_t begin)
{
    char sum[SHA256_HEX];
    if (out->failed)
        return;
    sum_of(buf_text(out) + begin, out->len - begin, sum);
    buf_addf(out, " %s\n", sum);
}

char *landed_write(const struct landed *l, uint64_t at_ms, const char *path, const struct threeway_thing *t)
{
    own_buf line = {0};
    buf_init(&line, 4 * PATH_BYTES_MAX);
    buf_addf(&line, "%llu ", (unsigned long long)at_ms);
    if (!landed_describe(&line, path, t))
        return NULL;
    if (t->kind == LEAF_FILE) {
        char digest[SHA256_HEX];
        struct pale_err ignored;
        if (threeway_digest(t, digest, &ignored) == 0)
            keep_content(l, t->fd, digest);
    }
    end_line(&line, 0);
    return line.failed ? NULL : strdup(buf_text(&line));
}

int landed_add(const struct landed *l, const char *line, struct pale_err *e)
{
    return fd_write_full(l->list_fd, line, strlen(line)) ? 0 : err_os(e, "write down what was landed");
}

/* Gives a folder these lines and the content that they name in from_fd. */
static int write_all(int from_fd, int to_fd, const struct landed *l, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    buf_add_text(&text, HEAD);
    for (size_t i = 0; i < l->count; i++) {
        const struct landed_line *n = &l->lines[i];
        size_t begin = text.len;
        buf_addf(&text, "%llu ", (unsigned long long)n->at_ms);
        landed_describe_line(&text, n);
        end_line(&text, begin);
        /* Never written again under its name, so one file may serve both. */
        if (from_fd != to_fd && n->kind == LEAF_FILE && linkat(from_fd, n->digest, to_fd, n->digest, 0) < 0 && errno != ENOENT &&
            errno != EEXIST)
            return err_os(e, "keep the content of what was landed");
    }
    return text.failed ? err_nomem(e) : fd_replace_file(to_fd, LIST, text.data, text.len, 0600, true, e);
}

int landed_import(const struct place *p, uint64_t at_ms, const struct jsonread *texts, struct pale_err *e)
{
    own_landed l = LANDED_NONE;
    own_buf text = {0};
    own_fd dir = -1;
    struct jsonread item;
    char one[4 * PATH_BYTES_MAX];
    buf_init(&text, LIST_BYTES_MAX);
    buf_add_text(&text, HEAD);
    for (size_t pos = 0; jsonread_next(texts, &pos, NULL, &item);) {
        size_t begin = text.len;
        if (!jsonread_text(&item, one, sizeof(one)) || strchr(one, '\n'))
            return err_set(e, PALE_CORRUPT, "what the export says of its project's files is damaged");
        buf_addf(&text, "%llu %s", (unsigned long long)at_ms, one);
        end_line(&text, begin);
    }
    if (text.failed)
        return err_nomem(e);
    int r = landed_parse(buf_text(&text), text.len, &l, e);
    if (r < 0)
        return err_prefix(e, "what the export says of its project's files");
    if (l.count == 0)
        return 0;
    r = open_folder(p->state, true, &dir, e);
    return r < 0 ? r : write_all(dir, dir, &l, e);
}

/* Reads every line, whatever counts. -1 in ret->list_fd: there is no list. */
static int read_every_line(const struct place *p, struct landed *ret, struct pale_err *e)
{
    int r = open_folder(p->state, false, &ret->dir_fd, e);
    if (r < 0 || ret->dir_fd < 0)
        return r;
    ret->list_fd = openat(ret->dir_fd, LIST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (ret->list_fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open what box %s has landed", p->name);
    return read_list(ret->list_fd, ret, e);
}

int landed_settle(const struct place *p, const struct stack *s, struct pale_err *e)
{
    own_landed l = LANDED_NONE;
    bool any = false;
    if (s->below_open == STACK_NONE || s->open_anew)
        return 0;
    int r = read_every_line(p, &l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++)
        if (l.lines[i].at_ms >= s->open_born_ns / 1000000) {
            l.lines[i].at_ms = s->layers[s->below_open].closed_ms;
            any = true;
        }
    return r < 0 || !any ? r : write_all(l.dir_fd, l.dir_fd, &l, e);
}

int landed_copy(const struct place *from, const struct place *to, struct pale_err *e)
{
    own_landed l = LANDED_NONE;
    own_fd dir = -1;
    int r = read_every_line(from, &l, e);
    if (r < 0 || l.list_fd < 0)
        return r;
    r = open_folder(to->state, true, &dir, e);
    return r < 0 ? r : write_all(l.dir_fd, dir, &l, e);
}

static bool is_in(const char *path, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(paths[i]);
        if (strncmp(path, paths[i], n) == 0 && (path[n] == 0 || path[n] == '/'))
            return true;
    }
    return false;
}

static void add_anew(struct buf *out, const struct landed_line *line, bool counts, uint64_t now_ms)
{
    struct landed_line l = *line;
    size_t begin = out->len;
    if (!counts) {
        l.kind = LANDED_FORGOTTEN;
        l.mode = 0;
        l.digest[0] = 0;
    }
    buf_addf(out, "%llu ", (unsigned long long)now_ms);
    landed_describe_line(out, &l);
    end_line(out, begin);
}

int landed_forget(const struct place *p, const struct stack *s, const char *const *paths, size_t count, struct pale_err *e)
{
    own_landed l = LANDED_NONE, all = LANDED_NONE;
    own_buf text = {0};
    uint64_t now_ms = clock_unix_ms();
    int r = read_every_line(p, &all, e);
    if (r < 0 || all.count == 0)
        return r;
    if ((r = landed_open(p, s, true, &l, e)) < 0)
        return r;
    buf_init(&text, LIST_BYTES_MAX);
    qsort(all.lines, all.count, sizeof(*all.lines), by_path_and_time);
    for (size_t i = 0; i < all.count; i++) {
        const struct landed_line *last = landed_find(&l, all.lines[i].path);
        if (i + 1 == all.count || strcmp(all.lines[i].path, all.lines[i + 1].path) != 0)
            add_anew(&text, last ? last : &all.lines[i], last && !is_in(last->path, paths, count), now_ms);
    }
    if (text.failed)
        return err_nomem(e);
    return landed_add(&l, buf_text(&text), e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the writing of layers as an archive. */
#include "tree/tarwriter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/bundlehead.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "net/cargo.h"
#include "net/tarentry.h"
#include "net/tarpax.h"

#define CHUNK 262144
#define RECORDS_MAX (4 * ATTRIBUTES_BYTES_MAX) /* a name of one byte and no value becomes some forty */

int tarwriter_init(struct tarwriter *w, int out_fd, struct pale_err *e)
{
    *w = (struct tarwriter){.out_fd = out_fd, .chunk = malloc(CHUNK)};
    buf_init(&w->attributes, 2 * ATTRIBUTES_BYTES_MAX);
    buf_init(&w->records, RECORDS_MAX);
    return w->chunk ? 0 : err_nomem(e);
}

void tarwriter_done(struct tarwriter *w)
{
    twins_done(&w->twins);
    buf_done(&w->attributes);
    buf_done(&w->records);
    free(w->chunk);
    w->chunk = NULL;
}

static int give(struct tarwriter *w, const void *p, size_t n, struct pale_err *e)
{
    if (w->stop && *w->stop)
        return err_set(e, PALE_GONE, "interrupted");
    return fd_write_full(w->out_fd, p, n) ? 0 : err_os(e, "write the archive");
}

static int give_zeros(struct tarwriter *w, size_t n, struct pale_err *e)
{
    memset(w->chunk, 0, n);
    return give(w, w->chunk, n, e);
}

static int give_head(struct tarwriter *w, const struct tar_head *h, const char *path, const char *target, struct pale_err *e)
{
    uint8_t bytes[TARENTRY_BYTES_MAX];
    return give(w, bytes, tarentry_put(bytes, h, path, target), e);
}

/* Makes records of attributes. */
static void make_records(struct tarwriter *w)
{
    const char *name;
    const uint8_t *value;
    size_t at = 0, len;
    buf_clear(&w->records);
    while (attributes_next(w->attributes.data, w->attributes.len, &at, &name, &value, &len)) {
        char key[FILE_NAME_MAX + sizeof(TARPAX_ATTRIBUTE)];
        snprintf(key, sizeof(key), TARPAX_ATTRIBUTE "%s", name);
        if (!buf_reserve(&w->records, strlen(key) + len + TARPAX_RECORD_MORE))
            return;
        w->records.len += tarpax_put_bytes((char *)w->records.data + w->records.len, key, value, len);
    }
}

/* The head of what has attributes, which those of fd are. */
static int give_dressed(struct tarwriter *w, const struct tar_head *h, const char *path, int fd, struct pale_err *e)
{
    own_buf out = {0};
    buf_clear(&w->attributes);
    int r = attributes_read(fd, &w->attributes, e);
    if (r < 0 || w->attributes.len == 0)
        return r < 0 ? r : give_head(w, h, path, "", e);
    make_records(w);
    buf_init(&out, 2 * RECORDS_MAX);
    tarentry_add(&out, h, path, "", &w->records);
    return w->records.failed || out.failed ? err_nomem(e) : give(w, out.data, out.len, e);
}

int tarwriter_text(struct tarwriter *w, const char *name, const void *p, size_t n, int64_t mtime, struct pale_err *e)
{
    const struct tar_head h = {.type = TAR_FILE, .mode = 0600, .size = (int64_t)n, .mtime = mtime};
    int r = give_head(w, &h, name, "", e);
    if (r == 0)
        r = give(w, p, n, e);
    return r < 0 ? r : give_zeros(w, tar_padding(n), e);
}

int tarwriter_end(struct tarwriter *w, struct pale_err *e)
{
    return give_zeros(w, TAR_END_BLOCKS * TAR_BLOCK, e);
}

/* Beyond the maximum files are written once for each name, which costs room and nothing else. */
static int remember_twin(struct tarwriter *w, const struct stat *st, const char *path, struct pale_err *e)
{
    bool full;
    return twins_add(&w->twins, st, path, &full, e);
}

/* --- entries --- */

static int give_content(struct tarwriter *w, int fd, uint64_t size, struct pale_err *e)
{
    for (uint64_t at = 0; at < size;) {
        size_t want = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        ssize_t n = fd_read_full(fd, w->chunk, want);
        if (n < 0)
            return err_os(e, "read");
        if ((size_t)n != want)
            return err_set(e, PALE_CORRUPT, "it became shorter, and nothing in a closed layer may change");
        int r = give(w, w->chunk, want, e);
        if (r < 0)
            return r;
        at += want;
        w->bytes += want;
        if (w->progress)
            w->progress(w->arg, w->entries, w->bytes);
    }
    return give_zeros(w, tar_padding(size), e);
}

static int give_file(struct tarwriter *w, const struct descent_step *s, const char *path, struct pale_err *e)
{
    const struct stat *st = &s->leaf.st;
    struct tar_head h = {.type = TAR_FILE, .mode = st->st_mode & 0777, .size = st->st_size, .mtime = st->st_mtime};
    const char *twin = st->st_nlink > 1 ? twins_find(&w->twins, st) : NULL;
    if (twin) {
        h.type = TAR_HARD_LINK;
        h.size = 0;
        return give_head(w, &h, path, twin, e);
    }
    if ((uint64_t)st->st_size > CARGO_BYTES_MAX - w->bytes)
        return err_set(e, PALE_LIMIT, "with it (%lld bytes, holes counted) the export is larger than %llu bytes; remove what is not needed",
                       (long long)st->st_size, CARGO_BYTES_MAX);
    own_fd fd = leaf_reopen(s->fd, O_RDONLY);
    if (fd < 0)
        return err_os(e, "open");
    int r = give_dressed(w, &h, path, s->fd, e);
    if (r == 0)
        r = give_content(w, fd, (uint64_t)st->st_size, e);
    return r == 0 && st->st_nlink > 1 ? remember_twin(w, st, path, e) : r;
}

static int give_link(struct tarwriter *w, const struct descent_step *s, const char *path, struct pale_err *e)
{
    char to[PATH_BYTES_MAX];
    const struct tar_head h = {.type = TAR_LINK, .mode = 0777, .mtime = s->leaf.st.st_mtime};
    ssize_t n = readlinkat(s->fd, "", to, sizeof(to) - 1);
    if (n < 0)
        return err_os(e, "read the link");
    to[n] = 0;
    return give_head(w, &h, path, to, e);
}

/* An empty file whose name says what it means, in the folder of path. */
static int give_mark(struct tarwriter *w, const char *path, size_t folder, const char *mark, const char *name, struct pale_err *e)
{
    char marked[PATH_BYTES_MAX];
    const struct tar_head h = {.type = TAR_FILE, .mode = 0600};
    int n = snprintf(marked, sizeof(marked), "%.*s/%s%s", (int)folder, path, mark, name);
    if (n < 0 || (size_t)n >= sizeof(marked))
        return err_set(e, PALE_UNSUPPORTED, "its path is too long for an archive");
    return give_head(w, &h, marked, "", e);
}

/* A folder that is left: if it hides what lies below, that comes before it. path has room for one byte more. */
static int give_folder(struct tarwriter *w, const struct leaf *l, int fd, char *path, struct pale_err *e)
{
    const struct tar_head h = {.type = TAR_FOLDER, .mode = l->st.st_mode & 01777, .mtime = l->st.st_mtime};
    size_t n = strlen(path);
    int r = l->opaque ? give_mark(w, path, n, CARGO_OPAQUE, "", e) : 0;
    memcpy(path + n, "/", 2);
    if (r < 0)
        return r;
    return fd < 0 ? give_head(w, &h, path, "", e) : give_dressed(w, &h, path, fd, e);
}

static int refuse(const struct descent_step *s, const char *name, struct pale_err *e)
{
    size_t depth = 3; /* the top, the part, and the first step */
    for (const char *at = s->path; *at; at++)
        depth += *at == '/';
    if (s->leaf.kind == LEAF_DEVICE)
        return err_set(e, PALE_CORRUPT, "a device, which no box can make; do not use this layer");
    if (strncmp(name, CARGO_GONE, strlen(CARGO_GONE)) == 0)
        return err_set(e, PALE_UNSUPPORTED, "a name that begins with " CARGO_GONE " means a deletion in an archive; rename it in the box");
    if (depth > BUNDLE_DEPTH_MAX)
        return err_set(e, PALE_UNSUPPORTED, "it lies deeper than %d folders, which no import takes", BUNDLE_DEPTH_MAX - 2);
    return 0;
}

/* A folder that is left is opened once more for its attributes. */
static int leave_folder(struct tarwriter *w, int layer_fd, const struct descent_step *s, char *path, struct pale_err *e)
{
    own_fd fd = fd_open_beneath(layer_fd, s->path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    return fd < 0 ? err_os(e, "open the folder") : give_folder(w, &s->leaf, fd, path, e);
}

static int give_step(struct tarwriter *w, int layer_fd, const char *part, const struct descent_step *s, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
    if (s->leaf.kind == LEAF_FOLDER && !s->leaving)
        return refuse(s, name, e);
    int n = snprintf(path, sizeof(path) - 1, "%s/%s", part, s->path);
    if (n < 0 || (size_t)n >= sizeof(path) - 1)
        return err_set(e, PALE_UNSUPPORTED, "its path is too long for an archive");
    int r = s->leaving ? 0 : refuse(s, name, e);
    if (r < 0)
        return r;
    if (++w->entries > CARGO_ENTRIES_MAX)
        return err_set(e, PALE_LIMIT, "an export has at most %u entries; remove what is not needed", CARGO_ENTRIES_MAX);
    if (w->progress)
        w->progress(w->arg, w->entries, w->bytes);
    switch (s->leaf.kind) {
    case LEAF_FILE:
        return give_file(w, s, path, e);
    case LEAF_LINK:
        return give_link(w, s, path, e);
    case LEAF_FOLDER:
        return leave_folder(w, layer_fd, s, path, e);
    default:
        return give_mark(w, path, (size_t)n - strlen(name) - 1, CARGO_GONE, name, e);
    }
}

int tarwriter_part(struct tarwriter *w, const char *name, int layer_fd, bool lowest, struct pale_err *e)
{
    own_descent d;
    struct descent_step s;
    struct carriage carry = {.lowest = lowest};
    struct leaf top = {.st = {.st_mode = 0700}};
    char shown[240], path[PATH_BYTES_MAX];
    int r;
    twins_done(&w->twins); /* a hard link leads to nothing outside its part */
    descent_init(&d, layer_fd, true);
    while ((r = descent_next(&d, &s, e)) > 0) {
        if (s.trouble) {
            *e = *s.trouble;
            r = -(int)e->code;
        } else if (carriage_step(&carry, &d, &s)) {
            r = give_step(w, layer_fd, name, &s, e);
        }
        if (r < 0)
            return err_prefix(e, "%s/%s", name, quote_into(shown, sizeof(shown), s.path, strlen(s.path)));
    }
    snprintf(path, sizeof(path) - 1, "%s", name);
    return r < 0 ? r : give_folder(w, &top, -1, path, e);
}

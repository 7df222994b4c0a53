/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the decision about one path of three trees. */
#include "tree/threeway.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "tree/merge3.h"

void threeway_thing_done(struct threeway_thing *t)
{
    own_close(&t->fd);
    buf_done(&t->target);
}

int threeway_open(int root_fd, const char *path, const struct leaf *leaf, struct threeway_thing *ret, struct pale_err *e)
{
    struct leaf now;
    *ret = (struct threeway_thing){.kind = leaf->kind, .mode = leaf->st.st_mode & 0777, .fd = -1};
    buf_init(&ret->target, PATH_BYTES_MAX);
    if (leaf->kind == LEAF_LINK)
        return leaf_read_link(root_fd, path, &ret->target, e);
    if (leaf->kind != LEAF_FILE)
        return 0;
    int r = leaf_open(root_fd, path, &now, &ret->fd, e);
    if (r == 0 && !leaf_is_unchanged(leaf, &now))
        r = err_set(e, PALE_BUSY, "it was changed while it was read; try again");
    return r;
}

#define BLOCK_BYTES 65536

static bool is_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Holes are passed over, and zeros count as holes: a file of terabytes that holds nothing is no work. */
static int digest_file(int fd, char ret[SHA256_HEX], struct pale_err *e)
{
    uint8_t block[BLOCK_BYTES], raw[SHA256_BYTES];
    struct sha256 h;
    off_t was = lseek(fd, 0, SEEK_CUR), at = 0, size = lseek(fd, 0, SEEK_END);
    ssize_t n = was < 0 || size < 0 ? -1 : 0;
    sha256_init(&h);
    while (n >= 0 && at < size) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data > at)
            at = data - data % BLOCK_BYTES;
        n = pread(fd, block, sizeof(block), at);
        if (n == 0)
            break;
        if (n > 0 && !is_zero(block, (size_t)n)) {
            const uint64_t head[2] = {(uint64_t)at, (uint64_t)n};
            sha256_add(&h, head, sizeof(head));
            sha256_add(&h, block, (size_t)n);
        }
        at += n;
    }
    if (n < 0 || lseek(fd, was, SEEK_SET) < 0)
        return err_os(e, "read a file");
    sha256_add(&h, &(uint64_t){(uint64_t)size}, sizeof(uint64_t));
    sha256_final(&h, raw);
    sha256_to_hex(raw, ret);
    return 0;
}

int threeway_digest(const struct threeway_thing *t, char ret[SHA256_HEX], struct pale_err *e)
{
    if (t->digest[0])
        memcpy(ret, t->digest, sizeof(t->digest));
    else if (t->kind == LEAF_LINK)
        sha256_hex(t->target.data, t->target.len, ret);
    else
        return digest_file(t->fd, ret, e);
    return 0;
}

static bool same_mode(const struct threeway_thing *a, const struct threeway_thing *b)
{
    return (a->kind != LEAF_FILE && a->kind != LEAF_FOLDER) || a->mode == b->mode;
}

static int same_content(const struct threeway_thing *a, const struct threeway_thing *b, bool *ret, struct pale_err *e)
{
    struct stat x, y;
    *ret = false;
    if ((a->digest[0] || b->digest[0]) && (a->kind == LEAF_FILE || a->kind == LEAF_LINK)) {
        char p[SHA256_HEX], q[SHA256_HEX];
        int r = threeway_digest(a, p, e);
        if (r == 0)
            r = threeway_digest(b, q, e);
        *ret = r == 0 && strcmp(p, q) == 0;
        return r;
    }
    if (a->kind == LEAF_LINK)
        *ret = a->target.len == b->target.len && memcmp(a->target.data, b->target.data, a->target.len) == 0;
    if (a->kind != LEAF_FILE) {
        *ret = *ret || a->kind == LEAF_NONE || a->kind == LEAF_FOLDER || a->kind == LEAF_FIFO || a->kind == LEAF_SOCKET;
        return 0;
    }
    if (fstat(a->fd, &x) < 0 || fstat(b->fd, &y) < 0)
        return err_os(e, "look at a file");
    return x.st_size == y.st_size ? leaf_same_bytes(a->fd, b->fd, ret, e) : 0;
}

int threeway_same(const struct threeway_thing *a, const struct threeway_thing *b, bool *ret, struct pale_err *e)
{
    *ret = a == b;
    return a != b && a->kind == b->kind && same_mode(a, b) ? same_content(a, b, ret, e) : 0;
}

static int conflict(struct threeway *w, const char *reason)
{
    w->verdict = THREEWAY_CONFLICT;
    w->reason = reason;
    return 0;
}

static int read_text(const struct threeway_thing *t, struct buf *out, bool *too_long, struct pale_err *e)
{
    buf_init(out, TEXT_BYTES_MAX);
    int r = leaf_read(t->fd, out, e);
    *too_long = *too_long || r == -PALE_LIMIT;
    return r == -PALE_LIMIT ? 0 : r;
}

static int merge_texts(struct threeway *w, struct pale_err *e)
{
    own_buf base = {0}, ours = {0}, theirs = {0};
    bool too_long = false, clean = false;
    if (w->base->fd < 0)
        return conflict(w, "both changed it, and the content that both began with is not kept");
    buf_init(&ours, 0);
    buf_init(&theirs, 0);
    int r = read_text(w->base, &base, &too_long, e);
    if (r == 0)
        r = read_text(w->ours, &ours, &too_long, e);
    if (r == 0)
        r = read_text(w->theirs, &theirs, &too_long, e);
    if (r < 0)
        return r;
    if (!too_long)
        r = merge3_run((struct merge3_text){base.data, base.len}, (struct merge3_text){ours.data, ours.len},
                       (struct merge3_text){theirs.data, theirs.len}, &clean, &w->merged, e);
    if (r < 0 && r != -PALE_LIMIT)
        return r;
    if (too_long || r < 0)
        return conflict(w, "both changed it, and it is too long to be merged");
    if (!clean)
        return conflict(w, "both changed the same lines, or it is not text");
    w->verdict = THREEWAY_MERGE;
    return 0;
}

/* All three are files: content and mode are each decided as a whole would be. */
static int decide_files(struct threeway *w, struct pale_err *e)
{
    bool ours_kept = false, theirs_kept = false, agree = false;
    mode_t base = w->base->mode, ours = w->ours->mode, theirs = w->theirs->mode;
    if (ours != base && theirs != base && ours != theirs)
        return conflict(w, "both changed its mode");
    w->mode = ours == base ? theirs : ours;
    int r = same_content(w->ours, w->base, &ours_kept, e);
    if (r == 0)
        r = same_content(w->theirs, w->base, &theirs_kept, e);
    if (r == 0)
        r = same_content(w->theirs, w->ours, &agree, e);
    if (r < 0)
        return r;
    if (!ours_kept && !theirs_kept && !agree)
        return merge_texts(w, e);
    /* One of them is the result as it stands; it may be long, or binary. */
    w->verdict = ours_kept ? THREEWAY_LAND : THREEWAY_MERGE;
    if (ours_kept)
        return 0;
    r = leaf_read(w->ours->fd, &w->merged, e);
    return r == -PALE_LIMIT ? conflict(w, "both changed it, and it is too long to be merged") : r;
}

int threeway_decide(struct threeway *w, struct pale_err *e)
{
    bool same = false;
    w->mode = w->theirs->mode;
    w->verdict = THREEWAY_NOTHING;
    int r = threeway_same(w->ours, w->theirs, &same, e);
    w->agrees = same;
    if (r < 0 || same)
        return r;
    if (!w->base)
        return conflict(w, "it was changed since the box began, and what the box began with is not known");
    r = threeway_same(w->theirs, w->base, &same, e);
    if (r < 0 || same)
        return r;
    w->agrees = true; /* unless it is a conflict */
    r = threeway_same(w->ours, w->base, &same, e);
    w->verdict = THREEWAY_LAND;
    if (r < 0 || same)
        return r;
    if (w->base->kind == LEAF_FILE && w->ours->kind == LEAF_FILE && w->theirs->kind == LEAF_FILE)
        return decide_files(w, e);
    if (w->theirs->kind == LEAF_NONE)
        return conflict(w, "the box deleted it, and it was changed meanwhile");
    if (w->ours->kind == LEAF_NONE)
        return conflict(w, "the box changed it, and it was deleted meanwhile");
    return conflict(w, "both changed it, and it is not a file on each side");
}

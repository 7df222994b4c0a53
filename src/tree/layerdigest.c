/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the canonical listing of a layer. */
#include "tree/layerdigest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/weak.h"
#include "tree/descent.h"

#define CHUNK 262144

static const char format[] = "pale layer 2\n";

static void add_number(struct sha256 *h, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    sha256_add(h, b, sizeof(b));
}

static void add_bytes(struct sha256 *h, const void *p, size_t n)
{
    add_number(h, n);
    sha256_add(h, p, n);
}

static int fail_at(const char *path, struct pale_err *e)
{
    char shown[240];
    return err_prefix(e, "%s", quote_into(shown, sizeof(shown), path, strlen(path)));
}

static bool is_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Where the next chunk begins that may hold something; -1 if none does. What a file system cannot tell is taken as written. */
static off_t next_chunk(int fd, off_t from)
{
    off_t data = weak_word("holes") ? from : lseek(fd, from, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? -1 : from;
    return data - data % CHUNK;
}

/* Chunks of nothing but zeros do not count, whether they are written down or holes: a box makes a file of any size in no time, and
 * reading it must take none either. The size tells how many there are. */
static int add_content(struct layerdigest *d, struct sha256 *h, const struct descent_step *s, char *chunk, struct pale_err *e)
{
    struct sha256 own;
    struct stat st;
    uint8_t digest[SHA256_BYTES];
    own_fd fd = leaf_reopen(s->fd, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open");
    sha256_init(&own);
    for (off_t at = 0; (at = next_chunk(fd, at)) >= 0; at += CHUNK) {
        if (d->stop && *d->stop)
            return err_set(e, PALE_GONE, "interrupted");
        ssize_t n = lseek(fd, at, SEEK_SET) < 0 ? -1 : fd_read_full(fd, chunk, CHUNK);
        if (n < 0)
            return err_os(e, "read");
        if (!is_zero(chunk, (size_t)n)) {
            add_number(&own, (uint64_t)at);
            sha256_add(&own, chunk, (size_t)n);
        }
        if (n < CHUNK)
            break; /* the end; no file is so long that the next chunk could not be told */
    }
    sha256_final(&own, digest);
    add_number(h, (uint64_t)st.st_size);
    sha256_add(h, digest, sizeof(digest));
    d->files++;
    d->bytes = (uint64_t)st.st_size > UINT64_MAX - d->bytes ? UINT64_MAX : d->bytes + (uint64_t)st.st_size;
    return 0;
}

static int add_target(struct sha256 *h, const struct descent_step *s, struct pale_err *e)
{
    char to[PATH_BYTES_MAX];
    ssize_t n = readlinkat(s->fd, "", to, sizeof(to));
    if (n < 0)
        return err_os(e, "read the link");
    add_bytes(h, to, (size_t)n);
    return 0;
}

static void tell(struct layerdigest *d, const char *path, const char *reason)
{
    char shown[200];
    if (d->poisoned++ == 0)
        snprintf(d->first, sizeof(d->first), "%s %s", quote_into(shown, sizeof(shown), path, strlen(path)), reason);
    if (d->poison)
        d->poison(d->arg, path, reason);
}

static void inspect(struct layerdigest *d, const struct descent_step *s)
{
    char at[32], value[4];
    snprintf(at, sizeof(at), "/proc/self/fd/%d", s->fd);
    if (s->leaf.kind == LEAF_DEVICE)
        tell(d, s->path, "a device");
    if ((s->leaf.kind == LEAF_FILE || s->leaf.kind == LEAF_FOLDER) && (s->leaf.st.st_mode & S_ISUID) && !d->allow_setid)
        tell(d, s->path, "runs as its owner (setuid)");
    if (s->leaf.kind == LEAF_FILE && (s->leaf.st.st_mode & S_ISGID) && !d->allow_setid)
        tell(d, s->path, "runs as its group (setgid)");
    if (s->leaf.kind == LEAF_FILE && (getxattr(at, "security.capability", value, sizeof(value)) >= 0 || errno == ERANGE))
        tell(d, s->path, "has capabilities");
}

static int add_entry(struct layerdigest *d, struct sha256 *h, const struct descent_step *s, char *chunk, struct pale_err *e)
{
    const struct leaf *l = &s->leaf;
    d->entries++;
    inspect(d, s);
    sha256_add(h, &"fdlpsDw"[l->kind - LEAF_FILE], 1);
    add_bytes(h, s->path, strlen(s->path));
    add_number(h, l->kind == LEAF_LINK || l->kind == LEAF_WHITEOUT ? 0 : l->st.st_mode & 07777);
    add_number(h, (uint64_t)l->opaque | (uint64_t)l->has_whiteouts << 1 | (uint64_t)l->marked_deleted << 2);
    if (d->carry && (l->kind == LEAF_FILE || l->kind == LEAF_FOLDER)) {
        own_buf attributes = {0};
        buf_init(&attributes, 2 * ATTRIBUTES_BYTES_MAX);
        int r = attributes_read(s->fd, &attributes, e);
        if (r < 0)
            return r;
        add_bytes(h, attributes.len ? attributes.data : (const void *)"", attributes.len);
    }
    if (l->kind == LEAF_FILE)
        return add_content(d, h, s, chunk, e);
    if (l->kind == LEAF_LINK)
        return add_target(h, s, e);
    if (l->kind == LEAF_DEVICE)
        add_number(h, l->st.st_rdev);
    return 0;
}

int layerdigest_run(struct layerdigest *d, int layer_fd, struct pale_err *e)
{
    own_mem char *chunk = malloc(CHUNK);
    own_descent walk;
    struct descent_step s;
    struct sha256 h;
    int r;
    descent_init(&walk, layer_fd, true);
    if (!chunk)
        return err_nomem(e);
    d->files = d->entries = d->bytes = d->poisoned = 0;
    sha256_init(&h);
    sha256_add(&h, format, sizeof(format) - 1);
    while ((r = descent_next(&walk, &s, e)) > 0) {
        if (s.trouble && s.trouble->code == PALE_CORRUPT) {
            tell(d, s.path, "has an attribute by which the overlay is steered");
            add_bytes(&h, s.path, strlen(s.path));
            continue;
        }
        if (s.trouble) {
            *e = *s.trouble;
            return fail_at(s.path, e);
        }
        if (d->carry && !s.leaving && !carriage_step(d->carry, &walk, &s))
            continue;
        r = s.leaving ? 0 : add_entry(d, &h, &s, chunk, e);
        if (r < 0)
            return fail_at(s.path, e);
    }
    if (r < 0)
        return r;
    sha256_final(&h, d->digest);
    return 0;
}

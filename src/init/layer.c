/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the laying of layers: the reading of an archive. What becomes of an entry is in init/plot.c. */
#include "init/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/quote.h"
#include "init/builtin.h"
#include "init/inflate.h"
#include "init/plot.h"
#include "net/cargo.h"
#include "net/tarhead.h"
#include "net/tarpath.h"
#include "net/tarpax.h"

#define MARK ".wh."
#define MARK_OPAQUE ".wh..wh..opq"
#define MARK_OTHER ".wh..wh."

enum layer_pass { PASS_WHOLE, PASS_HIDE, PASS_LAY, PASS_CARGO, PASS_COUNT };

static const char *const pass_names[PASS_COUNT] = {"whole", "hide", "lay", "cargo"};

struct layer {
    enum layer_pass pass;
    struct inflate in;
    struct plot plot;
    struct tar_head head;
    struct tarpax pax;
    bool extra; /* something was said of an entry that has not come */
    uint64_t entries, bytes;
    uint64_t written; /* … of these, without zeros */
    struct cargo cargo;
    uint64_t offset; /* in the archive, of what is read next */
    char path[PATH_BYTES_MAX], target[PATH_BYTES_MAX];
};

/* One per process: a builtin does one thing and ends. */
static struct layer layer;
static struct tarpax_attributes attributes;

/* Before the next entry. Attributes are taken of an export alone. */
static void forget_extra(struct layer *l)
{
    attributes.len = 0;
    l->extra = false;
    l->pax = (struct tarpax){.attributes = l->pass == PASS_CARGO ? &attributes : NULL};
}

/* As many bytes, in one or more pieces, each handed on. */
static int pass_bytes(struct layer *l, uint64_t n, int (*fn)(struct layer *l, const uint8_t *p, size_t n, struct pale_err *e),
                      struct pale_err *e)
{
    while (n > 0) {
        const uint8_t *p;
        ssize_t got = inflate_take(&l->in, n < INFLATE_PIECE ? (size_t)n : INFLATE_PIECE, &p);
        if (got < 0)
            return err_os(e, "read the archive");
        if (got == 0)
            return err_set(e, PALE_BAD_INPUT, "the archive ended early: it was cut, or is none");
        int r = fn ? fn(l, p, (size_t)got, e) : 0;
        if (r < 0)
            return r;
        n -= (uint64_t)got;
        l->offset += (uint64_t)got;
    }
    return 0;
}

static uint8_t block[TAR_BLOCK];
static size_t block_len;

static int take_block(struct layer *l, const uint8_t *p, size_t n, struct pale_err *e)
{
    (void)l, (void)e;
    memcpy(block + block_len, p, n);
    block_len += n;
    return 0;
}

static int take_records(struct layer *l, const uint8_t *p, size_t n, struct pale_err *e)
{
    switch (l->head.type) {
    case TAR_LONG_NAME:
        return tarpax_take_long(&l->pax, TARPAX_PATH, p, n, e);
    case TAR_LONG_LINK:
        return tarpax_take_long(&l->pax, TARPAX_LINK, p, n, e);
    case TAR_PAX:
        return tarpax_take(&l->pax, p, n, e);
    default:
        return 0; /* what is said of all that follow is of no interest */
    }
}

static int end_records(struct layer *l, struct pale_err *e)
{
    switch (l->head.type) {
    case TAR_LONG_NAME:
        return tarpax_end_long(&l->pax, TARPAX_PATH, e);
    case TAR_LONG_LINK:
        return tarpax_end_long(&l->pax, TARPAX_LINK, e);
    default:
        return tarpax_end(&l->pax, e);
    }
}

/* A header that says more about another entry, or all others. */
static int read_extra(struct layer *l, struct pale_err *e)
{
    uint64_t size = (uint64_t)l->head.size;
    if (size > TAR_EXTRA_MAX)
        return err_set(e, PALE_LIMIT, "a header is longer than %llu bytes", TAR_EXTRA_MAX);
    l->extra = l->extra || l->head.type != TAR_PAX_GLOBAL;
    int r = pass_bytes(l, size, take_records, e);
    if (r == 0)
        r = end_records(l, e);
    return r < 0 ? r : pass_bytes(l, tar_padding(size), NULL, e);
}

static int write_content(struct layer *l, const uint8_t *p, size_t n, struct pale_err *e)
{
    return plot_write(&l->plot, p, n, e);
}

/* What is not zeros takes room on the disk, and so may not come out of nearly nothing. */
static int count_written(struct layer *l, size_t n, struct pale_err *e)
{
    l->written += n;
    if (l->written > CARGO_RATIO_FROM && l->written / CARGO_RATIO_MAX > inflate_came(&l->in))
        return err_set(e, PALE_LIMIT, "it is more than %u times as large as what it was compressed to, as only bombs are", CARGO_RATIO_MAX);
    return 0;
}

static int write_cargo(struct layer *l, const uint8_t *p, size_t n, struct pale_err *e)
{
    bool zeros = p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
    int r = zeros ? 0 : count_written(l, n, e);
    return r < 0 ? r : plot_write(&l->plot, p, n, e);
}

static const char *name_of(const struct layer *l)
{
    return l->pax.has[TARPAX_PATH] ? l->pax.path : l->head.name;
}

static const char *target_of(const struct layer *l)
{
    return l->pax.has[TARPAX_LINK] ? l->pax.link : l->head.link;
}

static int64_t time_of(const struct layer *l)
{
    return l->pax.has[TARPAX_MTIME] ? l->pax.mtime : l->head.mtime;
}

/* The last step of the cleaned path, if it is a mark. */
static const char *mark_of(const struct layer *l)
{
    const char *slash = strrchr(l->path, '/'), *name = slash ? slash + 1 : l->path;
    return strncmp(name, MARK, strlen(MARK)) == 0 ? name : NULL;
}

static int obey_mark(struct layer *l, const char *mark, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX], hidden[PATH_BYTES_MAX];
    size_t n = (size_t)(mark - l->path);
    if (l->pass == PASS_LAY)
        return 0;
    memcpy(folder, l->path, n);
    folder[n ? n - 1 : 0] = 0;
    if (strcmp(mark, MARK_OPAQUE) == 0)
        return plot_empty(&l->plot, folder, e);
    if (strncmp(mark, MARK_OTHER, strlen(MARK_OTHER)) == 0)
        return 0; /* notes of one file system to itself */
    const char *name = mark + strlen(MARK);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, PALE_BAD_INPUT, "it hides no name");
    memcpy(hidden, l->path, n);
    memcpy(hidden + n, name, strlen(name) + 1);
    return plot_hide(&l->plot, hidden, e);
}

static void count_left(struct layer *l)
{
    if (l->head.set_bits && l->head.type != TAR_LINK && l->head.type != TAR_HARD_LINK)
        left_add(&l->plot.left, LEFT_SET_BITS, l->path);
    if (l->pax.has_attributes)
        left_add(&l->plot.left, LEFT_ATTRIBUTES, l->path);
}

static int lay_link(struct layer *l, bool hard, struct pale_err *e)
{
    const char *target = target_of(l);
    if (!*target)
        return err_set(e, PALE_BAD_INPUT, "it is a link to nothing");
    if (!hard)
        return plot_link(&l->plot, l->path, target, e);
    int r = tarpath_clean(target, false, l->target, e);
    return r < 0 ? err_prefix(e, "the target of a hard link") : plot_hard_link(&l->plot, l->path, l->target, e);
}

static int lay_file(struct layer *l, uint64_t size, struct pale_err *e)
{
    if (size > TAR_FILE_MAX || size > IMAGE_BYTES_MAX - l->bytes)
        return err_set(e, PALE_LIMIT, "with it the image is larger than %llu bytes", IMAGE_BYTES_MAX);
    l->bytes += size;
    int r = plot_begin_file(&l->plot, l->path, e);
    if (r == 0)
        r = pass_bytes(l, size, write_content, e);
    return r < 0 ? r : plot_end_file(&l->plot, l->head.mode, time_of(l), e);
}

/* Makes of the entry what it says it is. Its content is used up if it is a file. */
static int lay(struct layer *l, uint64_t size, bool *used, struct pale_err *e)
{
    switch (l->head.type) {
    case TAR_FILE:
        *used = true;
        count_left(l);
        return lay_file(l, size, e);
    case TAR_FOLDER:
        count_left(l);
        return plot_folder(&l->plot, l->path, l->head.mode, e);
    case TAR_LINK:
        return lay_link(l, false, e);
    case TAR_HARD_LINK:
        return lay_link(l, true, e);
    case TAR_CHAR_DEVICE:
    case TAR_BLOCK_DEVICE:
        left_add(&l->plot.left, LEFT_DEVICE, l->path);
        return 0;
    case TAR_FIFO:
        left_add(&l->plot.left, LEFT_FIFO, l->path);
        return 0;
    case TAR_SPARSE:
        return err_set(e, PALE_BAD_INPUT, "it is sparse, which is not taken; make the archive without --sparse");
    default:
        return err_set(e, PALE_BAD_INPUT, "it is of the type 0x%02x, which is not known", l->head.type);
    }
}

/* --- an export --- */

static int lay_cargo_file(struct layer *l, uint64_t size, struct pale_err *e)
{
    if (size > CARGO_BYTES_MAX - l->bytes)
        return err_set(e, PALE_LIMIT, "with it the export is larger than %llu bytes", CARGO_BYTES_MAX);
    l->bytes += size;
    int r = plot_begin_file(&l->plot, l->path, e);
    if (r == 0)
        r = pass_bytes(l, size, write_cargo, e);
    return r < 0 ? r : plot_end_file(&l->plot, l->head.mode, time_of(l), e);
}

static int lay_cargo(struct layer *l, enum cargo_kind kind, uint64_t size, struct pale_err *e)
{
    if (kind == CARGO_IS_GONE)
        return plot_mark(&l->plot, CARGO_MARKS, CARGO_MARK_GONE, l->path, e);
    if (kind == CARGO_IS_OPAQUE)
        return plot_mark(&l->plot, CARGO_MARKS, CARGO_MARK_OPAQUE, l->path, e);
    switch (l->head.type) {
    case TAR_FOLDER:
        return plot_leave_folder(&l->plot, l->path, l->head.mode | l->head.set_bits, time_of(l), e);
    case TAR_LINK:
        return plot_dated_link(&l->plot, l->path, target_of(l), time_of(l), e);
    case TAR_HARD_LINK:
        return plot_hard_link(&l->plot, l->path, l->cargo.target, e);
    default:
        return lay_cargo_file(l, size, e);
    }
}

static int read_cargo(struct layer *l, struct pale_err *e)
{
    const struct cargo_member m = {.head = &l->head,
                                   .pax = &l->pax,
                                   .name = name_of(l),
                                   .link = target_of(l),
                                   .size = l->pax.has[TARPAX_SIZE] ? l->pax.size : (uint64_t)l->head.size};
    enum cargo_kind kind;
    if (++l->entries > CARGO_ENTRIES_MAX)
        return err_set(e, PALE_LIMIT, "an export has at most %u entries", CARGO_ENTRIES_MAX);
    int r = cargo_judge(&l->cargo, &m, &kind, l->path, e);
    l->plot.attributes = attributes.bytes;
    l->plot.attributes_len = attributes.len;
    if (r == 0)
        r = count_written(l, attributes.len, e);
    if (r == 0)
        r = lay_cargo(l, kind, m.size, e);
    if (r == 0)
        r = pass_bytes(l, tar_padding(m.size), NULL, e);
    if (r == 0)
        forget_extra(l);
    return r;
}

static int read_entry(struct layer *l, struct pale_err *e)
{
    uint64_t size = l->pax.has[TARPAX_SIZE] ? l->pax.size : (uint64_t)l->head.size;
    bool used = false;
    if (++l->entries > IMAGE_ENTRIES_MAX)
        return err_set(e, PALE_LIMIT, "an image has at most %u entries", IMAGE_ENTRIES_MAX);
    if (size && l->head.type != TAR_FILE)
        return err_set(e, PALE_BAD_INPUT, "it has content and is no file");
    int r = tarpath_clean(name_of(l), l->head.type == TAR_FOLDER, l->path, e);
    const char *mark = r < 0 || l->pass == PASS_WHOLE ? NULL : mark_of(l);
    if (r == 0 && mark)
        r = obey_mark(l, mark, e);
    else if (r == 0 && l->pass != PASS_HIDE)
        r = lay(l, size, &used, e);
    if (r == 0 && !used)
        r = pass_bytes(l, size, NULL, e);
    if (r == 0)
        r = pass_bytes(l, tar_padding(size), NULL, e);
    forget_extra(l);
    return r;
}

/* Puts before an error which entry it is about. */
static int about_entry(const struct layer *l, struct pale_err *e)
{
    char shown[192];
    const char *name = name_of(l);
    if (!*name)
        return err_prefix(e, "byte %llu of the archive", (unsigned long long)l->offset);
    return err_prefix(e, "the archive's entry %s", quote_into(shown, sizeof(shown), name, strlen(name)));
}

/* One header and what belongs to it. 1: a block of zeros. */
static int read_next(struct layer *l, bool after_zeros, struct pale_err *e)
{
    block_len = 0;
    int r = pass_bytes(l, TAR_BLOCK, take_block, e);
    if (r < 0)
        return r;
    r = tar_head_parse(block, &l->head, e);
    if (r == 0 && l->extra)
        r = err_set(e, PALE_BAD_INPUT, "the end comes after a header that belongs to an entry");
    else if (r == 0)
        return 1;
    else if (r > 0 && after_zeros)
        r = err_set(e, PALE_BAD_INPUT, "it comes after a block of zeros, which ends an archive");
    else if (r > 0 && l->pass == PASS_CARGO)
        r = l->head.type == TAR_PAX && !l->extra ? read_extra(l, e) : read_cargo(l, e);
    else if (r > 0)
        r = strchr("xgLK", l->head.type) ? read_extra(l, e) : read_entry(l, e);
    return r < 0 ? about_entry(l, e) : 0;
}

/* After the end there is nothing but zeros; all of it is read, or who writes it would be stopped. */
static int read_tail(struct layer *l, struct pale_err *e)
{
    for (;;) {
        const uint8_t *p;
        ssize_t n = inflate_take(&l->in, INFLATE_PIECE, &p);
        if (n < 0)
            return err_os(e, "read the archive");
        if (n == 0)
            return inflate_close(&l->in, e);
        for (ssize_t i = 0; i < n; i++)
            if (p[i])
                return err_set(e, PALE_BAD_INPUT, "the archive is followed by something that is not zero");
    }
}

static int read_archive(struct layer *l, struct pale_err *e)
{
    unsigned zeros = 0;
    int r = inflate_open(&l->in, 0, e);
    while (r >= 0 && zeros < TAR_END_BLOCKS) {
        r = read_next(l, zeros > 0, e);
        zeros += r == 1;
    }
    if (r >= 0 && l->pass == PASS_CARGO)
        r = cargo_end(&l->cargo, e);
    return r < 0 ? r : read_tail(l, e);
}

int layer_run(const struct msg_exec *m)
{
    struct pale_err e;
    struct layer *l = &layer;
    memset(l, 0, sizeof(*l));
    for (l->pass = 0; l->pass < PASS_COUNT && strcmp(m->argv[2], pass_names[l->pass]) != 0; l->pass++)
        ;
    if (l->pass == PASS_COUNT)
        return builtin_bad_words(m);
    int r = plot_open(&l->plot, m->argv[1], &e);
    l->plot.strict = l->plot.holes = l->pass == PASS_CARGO;
    forget_extra(l);
    if (r == 0)
        r = read_archive(l, &e);
    if (r == 0)
        r = plot_close(&l->plot, &e);
    if (r == 0 && !left_tell(&l->plot.left, 1))
        r = err_os(&e, "tell what was left out");
    return r < 0 ? builtin_fail(&e) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a tar archive to a bundle. */
#include "net/untar.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "net/tarpath.h"

/* What a state comes to, besides an error. */
#define WAIT 0 /* for input, for room, or for nothing any more */
#define GO 1   /* with the next */

#define FOLDER_MODE 0755 /* of a folder that nothing was said about */

void untar_init(struct untar *t, const char *top)
{
    assert(bundle_is_name(top, strlen(top)));
    *t = (struct untar){0};
    snprintf(t->top, sizeof(t->top), "%s", top);
}

/* Puts before an error which entry it is about. */
static int about_entry(struct untar *t)
{
    char shown[192];
    const char *name = t->pax.has[TARPAX_PATH] ? t->pax.path : t->head.name;
    if (!*name)
        return err_prefix(&t->failed, "byte %llu of the archive", (unsigned long long)t->offset);
    return err_prefix(&t->failed, "the archive's entry %s", quote_into(shown, sizeof(shown), name, strlen(name)));
}

static int read_need(struct untar *t, const struct pieces *p)
{
    return p->last ? err_set(&t->failed, PALE_BAD_INPUT, "the archive ended early: it was cut, or is none") : WAIT;
}

static void give_head(struct untar *t, struct bundle_head h, const char *name, size_t n)
{
    h.name_len = (uint8_t)n;
    t->pending = bundle_head_put(t->give, &h, name);
}

static const char *target_of(const struct untar *t)
{
    return t->pax.has[TARPAX_LINK] ? t->pax.link : t->head.link;
}

/* A file, folder or symlink. */
static int begin_entry(struct untar *t, enum bundle_type type)
{
    uint64_t size = t->pax.has[TARPAX_SIZE] ? t->pax.size : (uint64_t)t->head.size;
    if (size > TAR_FILE_MAX)
        return err_set(&t->failed, PALE_LIMIT, "it is larger than %llu bytes", TAR_FILE_MAX);
    if (size && type != BUNDLE_FILE)
        return err_set(&t->failed, PALE_BAD_INPUT, "it has content and is no file");
    if (type == BUNDLE_LINK && !*target_of(t))
        return err_set(&t->failed, PALE_BAD_INPUT, "it is a symlink to nothing");
    const char *path = t->pax.has[TARPAX_PATH] ? t->pax.path : t->head.name;
    int r = tarpath_clean(path, type == BUNDLE_FOLDER, t->path, &t->failed);
    if (r < 0)
        return r;
    size_t len = strlen(t->path);
    t->folder_len = type == BUNDLE_FOLDER ? len : tar_parent(t->path, len);
    t->entry = (struct bundle_head){.type = type,
                                    .mode = t->head.mode,
                                    .mtime = t->pax.has[TARPAX_MTIME] ? t->pax.mtime : t->head.mtime,
                                    .size = type == BUNDLE_LINK ? strlen(target_of(t)) : size};
    t->left = t->entry.size;
    t->padding = tar_padding(size);
    t->offset += size + t->padding;
    t->count.files += type == BUNDLE_FILE;
    t->count.folders += type == BUNDLE_FOLDER;
    t->count.links += type == BUNDLE_LINK;
    t->state = UNTAR_PLACE;
    return GO;
}

/* A header that says more about another entry, or all others. */
static int begin_extra(struct untar *t)
{
    if ((uint64_t)t->head.size > TAR_EXTRA_MAX)
        return err_set(&t->failed, PALE_LIMIT, "a header is longer than %llu bytes", TAR_EXTRA_MAX);
    t->left = (uint64_t)t->head.size;
    t->padding = tar_padding(t->left);
    t->offset += t->left + t->padding;
    t->extra = t->extra || t->head.type != TAR_PAX_GLOBAL;
    t->state = UNTAR_EXTRA;
    return GO;
}

static int refuse_type(struct untar *t)
{
    static const struct {
        uint8_t type;
        const char *why;
    } rows[] = {
        {TAR_HARD_LINK, "a hard link, which is not taken; tar --hard-dereference makes an archive without them"},
        {TAR_CHAR_DEVICE, "a device, which is not taken"},
        {TAR_BLOCK_DEVICE, "a device, which is not taken"},
        {TAR_FIFO, "a FIFO, which is not taken"},
        {TAR_SPARSE, "sparse, which is not taken; make the archive without --sparse"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].type == t->head.type)
            return err_set(&t->failed, PALE_BAD_INPUT, "it is %s", rows[i].why);
    return err_set(&t->failed, PALE_BAD_INPUT, "it is of the type 0x%02x; only files, folders and symlinks are taken", t->head.type);
}

static int begin(struct untar *t)
{
    if (t->zero_blocks)
        return err_set(&t->failed, PALE_BAD_INPUT, "it comes after a block of zeros, which ends an archive");
    switch (t->head.type) {
    case TAR_FILE:
        return begin_entry(t, BUNDLE_FILE);
    case TAR_FOLDER:
        return begin_entry(t, BUNDLE_FOLDER);
    case TAR_LINK:
        return begin_entry(t, BUNDLE_LINK);
    case TAR_PAX:
    case TAR_PAX_GLOBAL:
    case TAR_LONG_NAME:
    case TAR_LONG_LINK:
        return begin_extra(t);
    default:
        return refuse_type(t);
    }
}

static int read_head(struct untar *t, struct pieces *p)
{
    if (!pieces_collect(p, t->block, &t->filled, TAR_BLOCK))
        return read_need(t, p);
    int r = tar_head_parse(t->block, &t->head, &t->failed);
    if (r > 0)
        r = begin(t);
    else if (r == 0 && t->extra)
        r = err_set(&t->failed, PALE_BAD_INPUT, "the end comes after a header that belongs to an entry");
    else if (r == 0)
        t->state = ++t->zero_blocks == TAR_END_BLOCKS ? UNTAR_TAIL : UNTAR_HEAD;
    if (r < 0)
        return about_entry(t);
    t->offset += TAR_BLOCK;
    return GO;
}

static int read_extra(struct untar *t, struct pieces *p)
{
    enum tarpax_field field = t->head.type == TAR_LONG_LINK ? TARPAX_LINK : TARPAX_PATH;
    bool is_long = t->head.type == TAR_LONG_NAME || t->head.type == TAR_LONG_LINK;
    size_t n;
    const uint8_t *at = pieces_take(p, t->left, &n);
    int r = is_long                   ? tarpax_take_long(&t->pax, field, at, n, &t->failed)
            : t->head.type == TAR_PAX ? tarpax_take(&t->pax, at, n, &t->failed)
                                      : 0;
    t->left -= n;
    if (r == 0 && t->left > 0)
        return read_need(t, p);
    if (r == 0 && is_long)
        r = tarpax_end_long(&t->pax, field, &t->failed);
    else if (r == 0)
        r = tarpax_end(&t->pax, &t->failed);
    t->state = UNTAR_PADDING;
    return r < 0 ? about_entry(t) : GO;
}

static void enter(struct untar *t, struct bundle_head h, const char *name, size_t n)
{
    h.type = BUNDLE_FOLDER;
    h.size = 0;
    give_head(t, h, name, n);
    t->depth++;
    t->begun = true;
}

/* Is a folder the other, or in it? */
static bool is_within(const char *path, size_t n, const char *other, size_t other_n)
{
    return other_n == 0 || (other_n <= n && memcmp(path, other, other_n) == 0 && (other_n == n || path[other_n] == '/'));
}

/* One step on the way to the folder that the entry lies in, or is; then the entry itself. */
static int read_place(struct untar *t)
{
    static const struct bundle_head unknown = {.mode = FOLDER_MODE};
    bool is_folder = t->entry.type == BUNDLE_FOLDER;
    size_t len = t->here_len, whole = t->folder_len;
    if (!t->begun) {
        enter(t, is_folder && whole == 0 ? t->entry : unknown, t->top, strlen(t->top));
    } else if (is_folder && is_within(t->here, len, t->path, whole)) {
        t->state = UNTAR_DATA; /* it is there */
    } else if (!is_within(t->path, whole, t->here, len)) {
        give_head(t, (struct bundle_head){.type = BUNDLE_LEAVE}, "", 0);
        t->here_len = tar_parent(t->here, len);
        t->depth--;
    } else if (len < whole) {
        size_t from = len ? len + 1 : 0;
        const char *slash = memchr(t->path + from, '/', whole - from);
        size_t to = slash ? (size_t)(slash - t->path) : whole;
        enter(t, is_folder && to == whole ? t->entry : unknown, t->path + from, to - from);
        memcpy(t->here + len, t->path + len, to - len);
        t->here_len = to;
    } else {
        const char *name = t->path + whole + (whole ? 1 : 0);
        give_head(t, t->entry, name, strlen(name));
        t->state = t->entry.type == BUNDLE_LINK ? UNTAR_TARGET : UNTAR_DATA;
    }
    return GO;
}

static int read_target(struct untar *t, struct pieces *p)
{
    t->left -= pieces_give(p, target_of(t) + (t->entry.size - t->left), t->left);
    if (t->left > 0)
        return WAIT;
    t->state = UNTAR_DATA;
    return GO;
}

/* After it, if it is not there any more, the entry is over. */
static int read_data(struct untar *t, struct pieces *p)
{
    size_t n = pieces_pass(p, t->left);
    t->count.bytes += n;
    t->left -= n;
    if (t->left > 0)
        return p->made == p->room ? WAIT : read_need(t, p);
    if (t->extra)
        t->pax = (struct tarpax){0};
    t->extra = false;
    t->state = UNTAR_PADDING;
    return GO;
}

static int read_padding(struct untar *t, struct pieces *p)
{
    size_t n;
    (void)pieces_take(p, t->padding, &n);
    t->padding -= (unsigned)n;
    if (t->padding > 0)
        return read_need(t, p);
    t->state = UNTAR_HEAD;
    return GO;
}

static int read_tail(struct untar *t, struct pieces *p)
{
    size_t n;
    const uint8_t *at = pieces_take(p, SIZE_MAX, &n);
    for (size_t i = 0; i < n; i++)
        if (at[i])
            return err_set(&t->failed, PALE_BAD_INPUT, "the archive is followed by something that is not zero");
    if (!p->last)
        return WAIT;
    t->state = UNTAR_CLOSE;
    return GO;
}

static int read_close(struct untar *t)
{
    if (!t->begun) {
        enter(t, (struct bundle_head){.mode = FOLDER_MODE}, t->top, strlen(t->top));
        return GO;
    }
    t->state = t->depth ? UNTAR_CLOSE : UNTAR_DONE;
    give_head(t, (struct bundle_head){.type = t->depth ? BUNDLE_LEAVE : BUNDLE_END}, "", 0);
    t->depth -= t->depth ? 1 : 0;
    return GO;
}

static int read_turn(struct untar *t, struct pieces *p)
{
    switch (t->state) {
    case UNTAR_HEAD:
        return read_head(t, p);
    case UNTAR_EXTRA:
        return read_extra(t, p);
    case UNTAR_PLACE:
        return read_place(t);
    case UNTAR_TARGET:
        return read_target(t, p);
    case UNTAR_DATA:
        return read_data(t, p);
    case UNTAR_PADDING:
        return read_padding(t, p);
    case UNTAR_TAIL:
        return read_tail(t, p);
    case UNTAR_CLOSE:
        return read_close(t);
    default:
        return WAIT;
    }
}

int untar_step(struct untar *t, struct pieces *p, struct pale_err *e)
{
    int r = -(int)t->failed.code;
    p->used = p->made = 0;
    while (r >= 0) {
        t->given += pieces_give(p, t->give + t->given, t->pending - t->given);
        if (t->given < t->pending)
            return 0;
        t->given = t->pending = 0;
        r = read_turn(t, p);
        if (r == WAIT)
            return t->state == UNTAR_DONE;
    }
    if (e)
        *e = t->failed;
    return r;
}

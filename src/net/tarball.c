/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a bundle to a tar archive. */
#include "net/tarball.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"

/* What a state comes to, besides an error. */
#define WAIT 0 /* for input, for room, or for nothing any more */
#define GO 1   /* with the next */

int tarball_init(struct tarball *t, const char *top, bool inner_links_only, struct pale_err *e)
{
    if (strcmp(top, ".") != 0 && !bundle_is_name(top, strlen(top)))
        return err_set(e, PALE_BAD_INPUT, "an archive's top is one plain name, or \".\"");
    *t = (struct tarball){.inner_links_only = inner_links_only};
    snprintf(t->top, sizeof(t->top), "%s", top);
    return 0;
}

static int make_need(struct tarball *t, const struct pieces *p)
{
    return p->last ? err_set(&t->failed, PALE_CORRUPT, "the copy ended early") : WAIT;
}

/* All headers of an entry, whose path is set. */
static void put_headers(struct tarball *t, enum tar_type type, const char *target)
{
    struct tar_head h = {.type = (uint8_t)type, .mode = t->entry.mode, .mtime = t->entry.mtime};
    h.size = type == TAR_FILE ? (int64_t)t->entry.size : 0;
    t->pending = tarentry_put(t->give, &h, t->path, target);
}

static void up(struct tarball *t)
{
    t->path_len = tar_parent(t->path, t->path_len);
    t->path[t->path_len] = 0;
}

static int too_long(struct tarball *t, const char *what, unsigned long long most)
{
    char shown[192];
    quote_into(shown, sizeof(shown), t->path, t->path_len);
    return err_set(&t->failed, PALE_LIMIT, "%s %s is longer than %llu bytes", what, shown, most);
}

/* Makes the path of an entry from the folder's; the first one's is the name chosen for it. */
static int down(struct tarball *t, const char *name, size_t n)
{
    if (!t->begun && (t->entry.type == BUNDLE_FOLDER || strcmp(t->top, ".") != 0)) {
        name = t->top;
        n = strlen(name);
    }
    t->begun = true;
    /* With a slash before it, one after it if it is a folder, and an end. */
    if (t->path_len + n + 3 > PATH_BYTES_MAX)
        return too_long(t, "a path in the folder", PATH_BYTES_MAX - 3);
    if (t->path_len)
        t->path[t->path_len++] = '/';
    memcpy(t->path + t->path_len, name, n);
    t->path_len += n;
    t->path[t->path_len] = 0;
    return 0;
}

static int make_mark(struct tarball *t)
{
    if (t->entry.type == BUNDLE_ERROR)
        return err_set(&t->failed, PALE_GONE, "the sender gave up");
    if (t->entry.type == BUNDLE_LEAVE) {
        if (t->depth == 0)
            return err_set(&t->failed, PALE_CORRUPT, "the copy leaves a folder it never entered");
        t->depth--;
        up(t);
        return GO;
    }
    if (t->depth > 0 || !t->begun)
        return err_set(&t->failed, PALE_CORRUPT, "the copy ended early");
    t->state = TARBALL_TAIL;
    return GO;
}

static int make_head(struct tarball *t, struct pieces *p)
{
    if (!pieces_collect(p, t->part, &t->filled, BUNDLE_HEAD_BYTES))
        return make_need(t, p);
    if (!bundle_head_parse(t->part, &t->entry))
        return err_set(&t->failed, PALE_CORRUPT, "the copy is damaged");
    if (t->entry.type >= BUNDLE_LEAVE)
        return make_mark(t);
    if (t->begun && t->depth == 0)
        return err_set(&t->failed, PALE_CORRUPT, "the copy holds more than one thing");
    if (t->entry.type == BUNDLE_FOLDER && t->depth == BUNDLE_DEPTH_MAX)
        return err_set(&t->failed, PALE_LIMIT, "folders are nested deeper than %d", BUNDLE_DEPTH_MAX);
    t->state = TARBALL_NAME;
    return GO;
}

static int make_name(struct tarball *t, struct pieces *p)
{
    if (!pieces_collect(p, t->part, &t->filled, t->entry.name_len))
        return make_need(t, p);
    if (!bundle_is_name((const char *)t->part, t->entry.name_len))
        return err_set(&t->failed, PALE_CORRUPT, "the copy holds a name that is no name");
    int r = down(t, (const char *)t->part, t->entry.name_len);
    if (r < 0)
        return r;
    if (t->entry.type == BUNDLE_LINK) {
        t->state = TARBALL_TARGET;
    } else if (t->entry.type == BUNDLE_FILE) {
        if (t->entry.size > TAR_FILE_MAX)
            return too_long(t, "the file", TAR_FILE_MAX);
        put_headers(t, TAR_FILE, "");
        t->left = t->entry.size;
        t->count.files++;
        t->state = TARBALL_DATA;
    } else {
        t->path[t->path_len++] = '/';
        t->path[t->path_len] = 0;
        put_headers(t, TAR_FOLDER, "");
        t->path[--t->path_len] = 0;
        t->depth++;
        t->count.folders++;
        t->state = TARBALL_HEAD;
    }
    return GO;
}

static int make_target(struct tarball *t, struct pieces *p)
{
    size_t n = (size_t)t->entry.size;
    if (!pieces_collect(p, t->part, &t->filled, n))
        return make_need(t, p);
    if (memchr(t->part, 0, n))
        return err_set(&t->failed, PALE_CORRUPT, "the copy holds a link that is no link");
    t->part[n] = 0;
    if (t->inner_links_only && !bundle_is_inner_link((const char *)t->part, (int)t->depth)) {
        t->count.skipped++;
    } else {
        put_headers(t, TAR_LINK, (const char *)t->part);
        t->count.links++;
    }
    up(t);
    t->state = TARBALL_HEAD;
    return GO;
}

static int make_data(struct tarball *t, struct pieces *p)
{
    size_t n = pieces_pass(p, t->left);
    t->count.bytes += n;
    t->left -= n;
    if (t->left > 0)
        return p->made == p->room ? WAIT : make_need(t, p);
    t->zeros = tar_padding(t->entry.size);
    up(t);
    t->state = TARBALL_HEAD;
    return GO;
}

static int make_tail(struct tarball *t, struct pieces *p)
{
    if (p->used < p->in_len)
        return err_set(&t->failed, PALE_CORRUPT, "the copy goes on after its end");
    if (!p->last)
        return WAIT;
    t->zeros = TAR_END_BLOCKS * TAR_BLOCK;
    t->state = TARBALL_DONE;
    return GO;
}

static int make_turn(struct tarball *t, struct pieces *p)
{
    switch (t->state) {
    case TARBALL_HEAD:
        return make_head(t, p);
    case TARBALL_NAME:
        return make_name(t, p);
    case TARBALL_TARGET:
        return make_target(t, p);
    case TARBALL_DATA:
        return make_data(t, p);
    case TARBALL_TAIL:
        return make_tail(t, p);
    default:
        return WAIT;
    }
}

int tarball_step(struct tarball *t, struct pieces *p, struct pale_err *e)
{
    int r = -(int)t->failed.code;
    p->used = p->made = 0;
    while (r >= 0) {
        t->given += pieces_give(p, t->give + t->given, t->pending - t->given);
        if (t->given == t->pending)
            t->zeros -= (unsigned)pieces_give(p, NULL, t->zeros);
        if (t->given < t->pending || t->zeros > 0)
            return 0;
        t->given = t->pending = 0;
        r = make_turn(t, p);
        if (r == WAIT)
            return t->state == TARBALL_DONE;
    }
    if (e)
        *e = t->failed;
    return r;
}

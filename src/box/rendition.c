/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the writing out of what a box has changed. */
#include "box/rendition.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/weak.h"
#include "tree/compare.h"
#include "tree/hazard.h"
#include "tree/unified.h"

#define NAME_SHOWN_MAX (8 * PATH_BYTES_MAX)

struct writing {
    const struct review *review;
    enum rendition_form form;
    rendition_out *out;
    void *arg;
    unsigned count;
    uint64_t added, removed;
    struct buf text; /* of one difference */
};

static const char *const form_names[] = {
    [RENDITION_PATCH] = "patch", [RENDITION_STAT] = "stat", [RENDITION_NAMES] = "names", [RENDITION_JSON] = "json"};
static_assert(sizeof(form_names) / sizeof(form_names[0]) == RENDITION_FORM_COUNT, "a name for every form");

bool rendition_form(const char *name, enum rendition_form *ret)
{
    for (unsigned i = 0; i < RENDITION_FORM_COUNT; i++)
        if (strcmp(name, form_names[i]) == 0) {
            *ret = (enum rendition_form)i;
            return true;
        }
    return false;
}

/* --- one difference --- */

/* One side of a difference with its content, read into b. */
static int load(const struct view *v, const struct view_place *at, const char *path, struct buf *b, struct unified_side *ret,
                struct pale_err *e)
{
    int r = 0;
    *ret = (struct unified_side){.kind = UNIFIED_NONE};
    if (at->leaf.kind == LEAF_LINK) {
        r = view_read_link(v, at, path, b, e);
        *ret = (struct unified_side){.kind = UNIFIED_LINK, .at = b->data, .len = b->len};
    } else if (at->leaf.kind == LEAF_FILE) {
        own_fd fd = -1;
        *ret = (struct unified_side){.kind = UNIFIED_FILE, .mode = at->leaf.st.st_mode & 0777};
        if ((uint64_t)at->leaf.st.st_size > TEXT_BYTES_MAX) {
            ret->too_large = true;
            return 0;
        }
        if ((r = view_open(v, at, path, &fd, e)) == 0)
            r = fd_read_all(fd, b, e);
        ret->at = b->data;
        ret->len = b->len;
    }
    return r;
}

/* Both sides of a difference with their content. */
struct content {
    struct buf was_text, is_text;
    struct unified_side was, is;
};

static void content_done(struct content *x)
{
    buf_done(&x->was_text);
    buf_done(&x->is_text);
}

static int compare_content(const struct writing *w, const struct compare_record *c, struct content *x, struct unified_count *ret,
                           struct buf *out, struct pale_err *e)
{
    buf_init(&x->was_text, TEXT_BYTES_MAX + 1);
    buf_init(&x->is_text, TEXT_BYTES_MAX + 1);
    int r = load(&w->review->was, &c->was, c->path, &x->was_text, &x->was, e);
    if (r == 0)
        r = load(&w->review->is, &c->is, c->path, &x->is_text, &x->is, e);
    return r < 0 ? r : unified_write(c->path, &x->was, &x->is, ret, out, e);
}

/* By what was read of it already; of a file that is too large to be compared the beginning is read here. */
static struct hazard hazard_in(const struct writing *w, const struct compare_record *c, const struct unified_side *is)
{
    struct hazard_question q = {
        .path = c->path,
        .kind = c->is.leaf.kind,
        .mode = c->is.leaf.st.st_mode,
        .was_mode = c->was.leaf.kind == LEAF_NONE ? 0 : c->was.leaf.st.st_mode,
        .is_new = c->was.leaf.kind == LEAF_NONE,
        .guard = &w->review->policy.guard,
        .head = is->at,
        .head_len = is->kind == UNIFIED_FILE && is->len > HAZARD_HEAD_BYTES ? HAZARD_HEAD_BYTES : is->len,
    };
    char block[HAZARD_HEAD_BYTES];
    own_fd fd = -1;
    struct pale_err ignored;
    if (is->too_large && view_open(&w->review->is, &c->is, c->path, &fd, &ignored) == 0) {
        ssize_t n = fd_read_full(fd, block, sizeof(block));
        q.head = block;
        q.head_len = n > 0 ? (size_t)n : 0;
    }
    return hazard_of(&q);
}

/* --- forms --- */

static void write_name(struct writing *w, const char *path)
{
    quote_text(&w->text, path, strlen(path), NAME_SHOWN_MAX);
}

static int write_patch(struct writing *w, const struct compare_record *c, struct pale_err *e)
{
    CLEANUP(content_done) struct content x = {0};
    struct unified_count n;
    return compare_content(w, c, &x, &n, &w->text, e);
}

static int write_stat(struct writing *w, const struct compare_record *c, struct pale_err *e)
{
    CLEANUP(content_done) struct content x = {0};
    struct unified_count n = {0};
    int r = compare_content(w, c, &x, &n, NULL, e);
    if (r < 0)
        return r;
    struct hazard h = hazard_in(w, c, &x.is);
    buf_addf(&w->text, "%-8s ", compare_word(c->what));
    write_name(w, c->path);
    if (n.binary)
        buf_add_text(&w->text, "  (binary)");
    else if (n.added || n.removed)
        buf_addf(&w->text, "  +%u -%u", n.added, n.removed);
    if (h.class != HAZARD_NONE)
        buf_addf(&w->text, "  ! %s: %s", hazard_word(h.class), h.reason);
    buf_add_text(&w->text, "\n");
    w->added += n.added;
    w->removed += n.removed;
    return 0;
}

static int write_names(struct writing *w, const struct compare_record *c, struct pale_err *e)
{
    (void)e;
    write_name(w, c->path);
    buf_add_text(&w->text, "\n");
    return 0;
}

static void json_side(struct json *j, const char *key, const struct view_place *at)
{
    static const char *const kinds[LEAF_KIND_COUNT] = {"none", "file", "folder", "link", "fifo", "socket", "device", "whiteout"};
    char mode[8];
    if (at->leaf.kind == LEAF_NONE)
        return;
    snprintf(mode, sizeof(mode), "%04o", (unsigned)at->leaf.st.st_mode & 07777u);
    json_begin_object(j, key);
    json_text(j, "kind", kinds[at->leaf.kind]);
    json_text(j, "mode", mode);
    json_u64(j, "size", (uint64_t)at->leaf.st.st_size);
    json_end_object(j);
}

static void json_begin_change(struct json *j, struct writing *w, const struct compare_record *c, const char *word)
{
    json_start(j, &w->text);
    json_begin_object(j, NULL);
    json_bytes(j, "path", c->path, strlen(c->path));
    json_text(j, "change", word);
}

static int write_json(struct writing *w, const struct compare_record *c, struct pale_err *e)
{
    CLEANUP(content_done) struct content x = {0};
    struct unified_count n = {0};
    struct json j;
    int r = compare_content(w, c, &x, &n, NULL, e);
    if (r < 0)
        return r;
    struct hazard h = hazard_in(w, c, &x.is);
    json_begin_change(&j, w, c, compare_word(c->what));
    json_side(&j, "was", &c->was);
    json_side(&j, "is", &c->is);
    json_bool(&j, "binary", n.binary);
    json_u64(&j, "added", n.added);
    json_u64(&j, "removed", n.removed);
    if (h.class != HAZARD_NONE) {
        json_text(&j, "guarded", hazard_word(h.class));
        json_text(&j, "reason", h.reason);
    }
    json_end_object(&j);
    buf_add_text(&w->text, "\n");
    return 0;
}

static void write_trouble(struct writing *w, const struct compare_record *c, const char *why)
{
    struct json j;
    buf_clear(&w->text);
    if (w->form == RENDITION_JSON) {
        json_begin_change(&j, w, c, compare_word(COMPARE_TROUBLE));
        json_text(&j, "reason", why);
        json_end_object(&j);
    } else {
        buf_add_text(&w->text, RENDITION_TROUBLE);
        write_name(w, c->path);
        buf_add_text(&w->text, ": ");
        quote_again(&w->text, why, strlen(why), NAME_SHOWN_MAX);
    }
    buf_add_text(&w->text, "\n");
}

static int write_one(void *arg, const struct compare_record *c, struct pale_err *e)
{
    static int (*const forms[])(struct writing * w, const struct compare_record *c, struct pale_err *e) = {
        [RENDITION_PATCH] = write_patch, [RENDITION_STAT] = write_stat, [RENDITION_NAMES] = write_names, [RENDITION_JSON] = write_json};
    static_assert(sizeof(forms) / sizeof(forms[0]) == RENDITION_FORM_COUNT, "a writer for every form");
    struct writing *w = arg;
    struct pale_err own = {0};
    /* One that took the place of a file is something: the file goes. */
    bool folder = (c->is.leaf.kind == LEAF_FOLDER && c->what != COMPARE_TYPE) ||
                  (c->is.leaf.kind == LEAF_NONE && c->was.leaf.kind == LEAF_FOLDER) ||
                  (c->is.leaf.kind == LEAF_FOLDER && weak_word("review-type"));
    bool trouble = c->what == COMPARE_TROUBLE;
    buf_clear(&w->text);
    /* Folders alone are nothing to people. */
    if (folder && !trouble && w->form != RENDITION_JSON && w->form != RENDITION_PATCH)
        return 0;
    if (trouble)
        write_trouble(w, c, c->trouble->text);
    else if (forms[w->form](w, c, &own) < 0)
        write_trouble(w, c, own.text);
    else if (w->text.failed)
        write_trouble(w, c, "the difference is too long to be shown");
    else
        w->count++;
    if (w->text.failed)
        return err_nomem(e);
    return w->text.len > 0 ? w->out(w->arg, w->text.data, w->text.len, e) : 0;
}

static int write_all(struct writing *w, const char *under, struct pale_err *e)
{
    const struct compare c = {.was_view = &w->review->was, .is_view = &w->review->is, .under = under, .tell = write_one, .arg = w};
    int r = compare_run(&c, e);
    buf_clear(&w->text);
    if (r == 0 && w->form == RENDITION_STAT && w->count) {
        buf_addf(&w->text, "%u files, %llu lines added, %llu removed\n", w->count, (unsigned long long)w->added,
                 (unsigned long long)w->removed);
        r = w->text.failed ? err_nomem(e) : w->out(w->arg, w->text.data, w->text.len, e);
    }
    return r;
}

int rendition_write(const struct review *v, const struct rendition *rendition, struct pale_err *e)
{
    struct writing w = {.review = v, .form = rendition->form, .out = rendition->out, .arg = rendition->arg};
    const struct review_seclusion s = {.kept = &rendition->out_fd, .kept_count = 1, .beside_fd = -1, .written_fd = -1};
    int r = review_seclude(v, &s, e);
    if (r < 0)
        return r;
    buf_init(&w.text, 4 * TEXT_BYTES_MAX);
    r = write_all(&w, rendition->under, e);
    buf_done(&w.text);
    return r;
}

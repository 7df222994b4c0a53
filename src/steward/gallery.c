/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds on images that are there. */
#include "steward/gallery.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/own.h"
#include "box/imageref.h"
#include "box/imageuse.h"
#include "image/imageline.h"
#include "image/staging.h"
#include "steward/telling.h"

/* A list that is told. */
struct listing {
    struct telling *telling;
    bool shows_root;
};

static int tell_line(void *arg, const struct image *i)
{
    const struct listing *l = arg;
    imageline_json(i, l->shows_root, &l->telling->json);
    return telling_pass(l->telling);
}

static int tell_only(const struct store *s, const char *only, struct listing *l)
{
    own_image i = {.lock_fd = -1};
    int r = only[0] ? store_find(s, only, &i, l->telling->e) : -PALE_NOT_FOUND;
    /* What the operator's file names may not be there, or be none. */
    return r == -PALE_NOT_FOUND || r == -PALE_BAD_INPUT ? 0 : r < 0 ? r : tell_line(l, &i);
}

int gallery_list(const char *only, int fd, struct pale_err *e)
{
    own_store s = STORE_NONE;
    own_telling t = {0};
    struct listing l = {.telling = &t, .shows_root = !only};
    int r = imageref_store(&s, e);
    if (r == 0)
        r = telling_begin(&t, fd, e);
    if (r < 0)
        return r;
    json_begin_object(&t.json, NULL);
    json_begin_list(&t.json, "items");
    r = only ? tell_only(&s, only, &l) : store_each(&s, tell_line, &l, e);
    json_end_list(&t.json);
    json_end_object(&t.json);
    return r < 0 ? r : telling_end(&t);
}

/* What he may not see is not there. */
static int find_visible(const struct store *s, const char *ref, const char *only, struct image *ret, struct pale_err *e)
{
    own_image seen = {.lock_fd = -1};
    struct pale_err ignored;
    int r = store_find(s, ref, ret, e);
    if (r < 0 || !only)
        return r;
    if (!only[0] || store_find(s, only, &seen, &ignored) < 0 || strcmp(seen.digest, ret->digest) != 0)
        r = err_set(e, PALE_NOT_FOUND, "there is no image %s; `pale image ls` shows those there are, `pale image build` makes one", ref);
    return r;
}

int gallery_show(const char *ref, const char *only, int fd, struct pale_err *e)
{
    own_store s = STORE_NONE;
    own_image i = {.lock_fd = -1};
    own_telling t = {0};
    int r = imageref_store(&s, e);
    if (r == 0)
        r = find_visible(&s, ref, only, &i, e);
    if (r == 0)
        r = telling_begin(&t, fd, e);
    if (r < 0)
        return r;
    imageline_all_json(&i, !only, &t.json);
    return telling_end(&t);
}

/* --- verifying --- */

struct waiting {
    int fd; /* to paled */
    volatile sig_atomic_t left;
};

static void look_around(void *arg, uint64_t entries, uint64_t bytes)
{
    struct waiting *w = arg;
    struct pollfd p = {.fd = w->fd, .events = POLLRDHUP};
    (void)entries, (void)bytes;
    w->left = w->left || (poll(&p, 1, 0) > 0 && p.revents);
}

int gallery_verify(const char *ref, int fd, struct pale_err *e)
{
    own_store s = STORE_NONE;
    own_image i = {.lock_fd = -1};
    struct waiting w = {.fd = fd};
    const struct store_check check = {.stop = &w.left, .progress = look_around, .progress_arg = &w};
    own_telling t = {0};
    int r = imageref_store(&s, e);
    if (r == 0)
        r = store_find(&s, ref, &i, e);
    if (r == 0 && (r = store_verify(&s, &i, &check, e)) < 0)
        return err_prefix(e, "image %s", ref);
    if (r == 0)
        r = telling_begin(&t, fd, e);
    if (r < 0)
        return r;
    json_begin_object(&t.json, NULL);
    json_bool(&t.json, "good", true);
    json_text(&t.json, "digest", i.digest);
    json_end_object(&t.json);
    return telling_end(&t);
}

int gallery_remove(const char *ref, const char *caller, struct pale_err *e)
{
    own_store s = STORE_NONE;
    int r = imageref_store(&s, e);
    if (r < 0)
        return r;
    (void)staging_sweep(&s, false);
    return imageuse_remove(&s, ref, caller, e);
}

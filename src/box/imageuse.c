/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question who needs an image. */
#include "box/imageuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/ceiling.h"
#include "box/identity.h"
#include "box/life.h"
#include "box/place.h"

#define NAMES_BYTES_MAX (64u << 10) /* of one image, as they are told */

int imageuse_tell(const char *event, const char *name, const char *digest, const char *caller, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX - 16], path[PATH_BYTES_MAX];
    struct audit a;
    int r = place_state_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/runs.audit", dir);
    if ((r = audit_open(&a, path, AUDIT_SHARED, "", "", e)) < 0)
        return r;
    a.caller = caller;
    struct json *j = audit_begin(&a, event);
    json_text(j, "image", name);
    if (digest[0])
        json_text(j, "digest", digest);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

static bool has(int boxes, const char *id, const char *what)
{
    char path[FILE_NAME_MAX + 16];
    snprintf(path, sizeof(path), "%s/%s", id, what);
    return faccessat(boxes, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static int visit_policy(int boxes, const char *dir, const char *id, int (*fn)(void *arg, const struct place *p), void *arg)
{
    struct place p = {0};
    char path[PATH_BYTES_MAX], to[PATH_BYTES_MAX];
    bool is_removed = has(boxes, id, IDENTITY_REMOVING) && !has(boxes, id, IDENTITY_DATA);
    if (id[0] == '.' || !has(boxes, id, "policy") || is_removed || !path_join(p.state, sizeof(p.state), dir, id))
        return 0; /* it was never finished, or is no box any more */
    snprintf(path, sizeof(path), "%s/" IDENTITY_DATA, id);
    ssize_t n = readlinkat(boxes, path, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(to, '/');
    snprintf(p.name, sizeof(p.name), "%s", slash && path_is_box_name(slash + 1) ? slash + 1 : id);
    return fn(arg, &p);
}

/* Calls fn for each box that has a policy, wherever its folder is now: one that is away (a project on another disk, moved, or deleted) may
 * come back, and would not start without its image. Of such a place only the name and the state are told. */
static int each_policy(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_state_dir(dir, sizeof(dir) - 8, e);
    if (r < 0)
        return r;
    memcpy(dir + strlen(dir), "/boxes", 7);
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open %s", dir);
    errno = 0;
    for (const struct dirent *en; r == 0 && (en = readdir(d)); errno = 0)
        r = visit_policy(dirfd(d), dir, en->d_name, fn, arg);
    if (r == 0 && errno)
        r = err_os(e, "read %s", dir);
    closedir(d);
    return r;
}

/* --- one image --- */

/* What is to go: a name, or the image with all of them. */
struct going {
    const char *name, *digest;
    bool is_last; /* the image itself goes */
    const char *caller;
    struct pale_err *e;
};

/* Does a policy ask for what is to go? By the name, or by the digest of what goes with its last name. */
static bool asks_for(const struct going *g, const char *image)
{
    const char *at = strstr(image, "sha256:");
    if (image[0] == '/')
        return g->is_last && strstr(image, g->digest);
    bool by_digest = at && (at == image || at[-1] == '@');
    if (by_digest)
        return g->is_last && strncmp(g->digest, at + 7, strlen(at + 7)) == 0;
    return *g->name && strcmp(g->name, image) == 0;
}

static int look_at_box(void *arg, const struct place *p)
{
    struct going *g = arg;
    own_policy policy = {0};
    /* A box whose policy cannot be read might ask for it. */
    int r = life_policy(p, &policy, g->e);
    if (r < 0)
        return r;
    if (!policy.image || !asks_for(g, policy.image))
        return 0;
    return err_set(g->e, PALE_CONFLICT, "the box %s is made on the image %s; remove the box first (its state: %s)", p->name, policy.image,
                   p->state);
}

/* The last question before it goes, under the store's lock. */
static int ask_boxes(void *arg, const char *name, const char *digest, bool is_last, struct pale_err *e)
{
    struct going g = {.name = name, .digest = digest, .is_last = is_last, .e = e};
    const char *caller = arg;
    int r = each_policy(look_at_box, &g, e);
    return r < 0 ? r : imageuse_tell("image.remove", name, digest, caller, e);
}

int imageuse_remove(const struct store *s, const char *ref, const char *caller, struct pale_err *e)
{
    return store_remove(s, ref, ask_boxes, (void *)caller, e);
}

/* --- all that nobody needs --- */

struct row {
    char name[IMAGE_NAME_MAX + 1], digest[SHA256_HEX];
    uint64_t bytes;
    bool needed;
};

struct rows {
    struct row *at;
    size_t count;
    struct pale_err *e;
};

static void rows_done(struct rows *l)
{
    free(l->at);
}

static int add_row(void *arg, const struct image *i)
{
    struct rows *l = arg;
    struct jsonread m;
    struct row *more = realloc(l->at, (l->count + 1) * sizeof(*more));
    if (!more)
        return err_nomem(l->e);
    l->at = more;
    struct row *row = &l->at[l->count++];
    *row = (struct row){0};
    memcpy(row->name, i->name, sizeof(row->name));
    memcpy(row->digest, i->digest, sizeof(row->digest));
    if (!jsonread_get(&i->facts, "bytes", &m) || !jsonread_u64(&m, &row->bytes))
        row->bytes = 0;
    return 0;
}

static void mark(struct rows *l, const char *image)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct going g = {.name = l->at[i].name, .digest = l->at[i].digest, .is_last = true};
        if (asks_for(&g, image))
            l->at[i].needed = true;
    }
}

static int mark_for_box(void *arg, const struct place *p)
{
    struct rows *l = arg;
    own_policy policy = {0};
    int r = life_policy(p, &policy, l->e);
    if (r == 0 && policy.image)
        mark(l, policy.image);
    return r;
}

static int find_needed(struct rows *l, struct pale_err *e)
{
    own_policy most = {0};
    int r = each_policy(mark_for_box, l, e);
    if (r == 0)
        r = ceiling_read(&most, e);
    if (r == 0 && most.image)
        mark(l, most.image);
    return r;
}

/* All the names of an image, if none of them and not its digest is needed, and this is the first of its rows. */
static bool is_idle(const struct rows *l, size_t at, struct buf *ret_names)
{
    const struct row *row = &l->at[at];
    for (size_t i = 0; i < l->count; i++) {
        if (strcmp(l->at[i].digest, row->digest) != 0)
            continue;
        if (i < at || l->at[i].needed)
            return false;
        if (l->at[i].name[0])
            buf_addf(ret_names, "%s%s", ret_names->len ? "," : "", l->at[i].name);
    }
    return true;
}

static int collect_one(const struct store *s, const struct row *row, bool only_tells, const char *caller, bool *ret, struct pale_err *e)
{
    char ref[SHA256_HEX + 8];
    struct pale_err why = {0};
    snprintf(ref, sizeof(ref), "sha256:%s", row->digest);
    int r = only_tells ? 0 : imageuse_remove(s, ref, caller, &why);
    *ret = r == 0;
    if (r == 0 || r == -PALE_BUSY || r == -PALE_NOT_FOUND)
        return 0; /* somebody uses it, or has removed it */
    *e = why;
    return r;
}

int imageuse_collect(const struct store *s, bool only_tells, const char *caller, void (*told)(void *arg, const struct imageuse_idle *i),
                     void *arg, struct pale_err *e)
{
    CLEANUP(rows_done) struct rows l = {.e = e};
    int r = store_each(s, add_row, &l, e);
    if (r == 0)
        r = find_needed(&l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++) {
        own_buf names = {0};
        bool goes = false;
        buf_init(&names, NAMES_BYTES_MAX);
        if (!is_idle(&l, i, &names))
            continue;
        r = collect_one(s, &l.at[i], only_tells, caller, &goes, e);
        if (goes)
            told(arg, &(struct imageuse_idle){.names = buf_text(&names), .digest = l.at[i].digest, .bytes = l.at[i].bytes});
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the store of images. */
#include "image/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/quote.h"
#include "image/imprint.h"
#include "image/inventory.h"
#include "image/staging.h"

#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define SHORT_DIGITS 12u
#define HEX_DIGITS (SHA256_HEX - 1)
#define FIND_TRIES 8

/* --- folders --- */

static int make_folder(const char *path, struct pale_err *e)
{
    char part[PATH_BYTES_MAX];
    size_t n = strlen(path);
    for (size_t i = 1; i <= n; i++)
        if (path[i] == '/' || path[i] == 0) {
            memcpy(part, path, i);
            part[i] = 0;
            if (mkdir(part, 0700) < 0 && errno != EEXIST)
                return err_os(e, "make folder %s", part);
        }
    return 0;
}

/* A folder of ours below data_dir, or beside it: made, and its real path and descriptor. */
static int open_own(const char *data_dir, const char *more, char *ret, int *ret_fd, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s%s", data_dir, more);
    if (n < 0 || (size_t)n + 128 >= sizeof(path))
        return err_set(e, PALE_BAD_INPUT, "%s: the path is too long", data_dir);
    int r = make_folder(path, e);
    if (r < 0)
        return r;
    if (!realpath(path, ret))
        return err_os(e, "find %s", path);
    *ret_fd = open(ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0 || fstat(*ret_fd, &st) < 0)
        return err_os(e, "open %s", ret);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "%s must belong to you and be writable by nobody else", ret);
    return 0;
}

static int open_part(int dir, const char *name, int *ret_fd, struct pale_err *e)
{
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make the folder %s of images", name);
    *ret_fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? err_os(e, "open the folder %s of images", name) : 0;
}

int store_open(struct store *s, const char *data_dir, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    int ignored = -1;
    *s = (struct store){.fd = -1, .staging_fd = -1, .digests_fd = -1, .names_fd = -1};
    int r = open_own(data_dir, "", real, &ignored, e);
    own_close(&ignored);
    if (r == 0)
        r = open_own(real, "/images", s->dir, &s->fd, e);
    if (r == 0)
        r = open_own(real, "-staging", s->staging_dir, &s->staging_fd, e);
    if (r == 0)
        r = open_part(s->fd, "by-digest", &s->digests_fd, e);
    if (r == 0)
        r = open_part(s->fd, "names", &s->names_fd, e);
    if (r < 0)
        store_close(s);
    return r;
}

void store_close(struct store *s)
{
    own_close(&s->fd);
    own_close(&s->staging_fd);
    own_close(&s->digests_fd);
    own_close(&s->names_fd);
}

/* Whoever changes what there is holds it, for moments. */
static int lock_store(const struct store *s, int *ret_fd, struct pale_err *e)
{
    own_fd fd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -1 : flock(fd, LOCK_EX);
    while (r < 0 && fd >= 0 && errno == EINTR)
        r = flock(fd, LOCK_EX);
    if (r < 0)
        return err_os(e, "lock the images");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* --- names --- */

static bool is_hex(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n;
}

bool store_is_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:+-";
    size_t n = strlen(name);
    return n > 0 && n <= STORE_NAME_MAX && strspn(name, plain) == n && !strchr("._:+-", name[0]) && !strstr(name, "..") &&
           strncmp(name, PREFIX, PREFIX_LEN) != 0;
}

/* The digest that a name leads to. */
static int read_name(const struct store *s, const char *name, char ret[SHA256_HEX], struct pale_err *e)
{
    char text[SHA256_HEX + 1];
    own_fd fd = openat(s->names_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, PALE_NOT_FOUND, "there is no image %s; `pale image ls` shows those there are, `pale image build` makes one",
                       name);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text));
    if (n < 0)
        return err_os(e, "read the image name %s", name);
    if (n != SHA256_HEX || text[HEX_DIGITS] != '\n' || !is_hex(text, HEX_DIGITS))
        return err_set(e, PALE_CORRUPT, "the image name %s leads nowhere; build the image again", name);
    memcpy(ret, text, HEX_DIGITS);
    ret[HEX_DIGITS] = 0;
    return 0;
}

/* The only digest that begins so. */
static int complete(const struct store *s, const char *digits, char ret[SHA256_HEX], struct pale_err *e)
{
    size_t n = strlen(digits);
    int copy = -1, found = 0;
    if (n < SHORT_DIGITS || n > HEX_DIGITS || !is_hex(digits, n))
        return err_set(e, PALE_BAD_INPUT, PREFIX "%.80s: a digest has 64 hex digits, of which at least %u are needed", digits,
                       SHORT_DIGITS);
    copy = openat(s->digests_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return err_os(e, "read the images");
    }
    for (const struct dirent *en; (en = readdir(d));)
        if (strncmp(en->d_name, digits, n) == 0 && strlen(en->d_name) == HEX_DIGITS) {
            memcpy(ret, en->d_name, SHA256_HEX);
            found++;
        }
    closedir(d);
    if (found > 1)
        return err_set(e, PALE_BAD_INPUT, PREFIX "%s: more than one image begins so; give more digits", digits);
    return found ? 0 : err_set(e, PALE_NOT_FOUND, "there is no image " PREFIX "%s; `pale image ls` shows those there are", digits);
}

/* What a reference means. ret_name is "" if it is a digest alone. */
static int resolve(const struct store *s, const char *ref, char ret_name[IMAGE_NAME_MAX + 1], char ret_digest[SHA256_HEX],
                   struct pale_err *e)
{
    char shown[100];
    const char *at = strchr(ref, '@'), *digest = at ? at + 1 : ref;
    size_t n = at ? (size_t)(at - ref) : strlen(ref);
    bool by_digest = strncmp(digest, PREFIX, PREFIX_LEN) == 0;
    ret_name[0] = 0;
    if (n <= IMAGE_NAME_MAX && (at || !by_digest)) {
        memcpy(ret_name, ref, n);
        ret_name[n] = 0;
    }
    if ((at && !by_digest) || ((at || !by_digest) && !store_is_name(ret_name)))
        return err_set(e, PALE_BAD_INPUT, "%s is no name of an image: letters, digits and . _ : + - make one, or " PREFIX "DIGEST",
                       quote_into(shown, sizeof(shown), ref, strlen(ref)));
    return by_digest ? complete(s, digest + PREFIX_LEN, ret_digest, e) : read_name(s, ret_name, ret_digest, e);
}

/* Calls fn for each name that is there, in no order. */
static int each_name(const struct store *s, int (*fn)(void *arg, const char *name, const char *digest), void *arg, struct pale_err *e)
{
    int copy = openat(s->names_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return err_os(e, "read the names of images");
    }
    for (const struct dirent *en; r == 0 && (en = readdir(d));) {
        char digest[SHA256_HEX];
        if (store_is_name(en->d_name) && read_name(s, en->d_name, digest, NULL) == 0)
            r = fn(arg, en->d_name, digest);
    }
    closedir(d);
    return r;
}

/* --- holding --- */

void store_release(struct image *i)
{
    own_close(&i->lock_fd);
    buf_done(&i->manifest);
}

static int read_manifest(const struct store *s, struct image *i, struct pale_err *e)
{
    char path[SHA256_HEX + 16];
    snprintf(path, sizeof(path), "%s/manifest.json", i->digest);
    own_fd fd = fd_open_beneath(s->digests_fd, path, O_RDONLY | O_CLOEXEC, 0);
    buf_init(&i->manifest, IMAGE_JSON_MAX);
    int r = fd < 0 ? err_os(e, "open the manifest of the image %s", i->digest) : fd_read_all(fd, &i->manifest, e);
    if (r < 0)
        return r;
    if (!jsonread_parse((const char *)i->manifest.data, i->manifest.len, &i->facts) || i->facts.kind != JSONREAD_OBJECT)
        return err_set(e, PALE_CORRUPT, "the manifest of the image %s cannot be read; remove the image and build it again", i->digest);
    return 0;
}

/* The shared lock of an image that is still there once it is locked. 0: it is not. */
static int try_hold(const struct store *s, const char *digest, int *ret_fd, struct pale_err *e)
{
    char path[SHA256_HEX + 8];
    struct stat held, there;
    snprintf(path, sizeof(path), "%s/lock", digest);
    own_fd fd = openat(s->digests_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open the lock of the image %s", digest);
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 0 : err_os(e, "hold the image %s", digest);
    if (fstat(fd, &held) < 0 || fstatat(s->digests_fd, path, &there, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != there.st_ino)
        return 0;
    *ret_fd = take_fd(&fd);
    return 1;
}

static int hold(const struct store *s, const char *name, const char *digest, struct image *ret, struct pale_err *e)
{
    own_image i = {.lock_fd = -1};
    int n = snprintf(i.root, sizeof(i.root), "%s/by-digest/%s/root", s->dir, digest);
    if (n < 0 || (size_t)n >= sizeof(i.root))
        return err_set(e, PALE_BAD_INPUT, "%s: the path is too long", s->dir);
    int r = try_hold(s, digest, &i.lock_fd, e);
    if (r == 0)
        return err_set(e, PALE_NOT_FOUND, "the image %s was removed, or is being removed", *name ? name : digest);
    snprintf(i.name, sizeof(i.name), "%s", name);
    memcpy(i.digest, digest, SHA256_HEX);
    if (r > 0)
        r = read_manifest(s, &i, e);
    if (r < 0)
        return r;
    *ret = i;
    i = (struct image){.lock_fd = -1};
    return 0;
}

int store_find(const struct store *s, const char *ref, struct image *ret, struct pale_err *e)
{
    int r = 0;
    for (int tries = 0; tries < FIND_TRIES; tries++) {
        char name[IMAGE_NAME_MAX + 1], digest[SHA256_HEX];
        /* A name may be given to another image, and its old one go, between these two. */
        r = resolve(s, ref, name, digest, e);
        if (r < 0 || (r = hold(s, name, digest, ret, e)) != -PALE_NOT_FOUND)
            return r;
    }
    return r;
}

/* --- listing --- */

struct row {
    char name[IMAGE_NAME_MAX + 1], digest[SHA256_HEX];
};

struct rows {
    struct buf all; /* of struct row */
};

static int add_row(void *arg, const char *name, const char *digest)
{
    struct rows *rows = arg;
    struct row row = {0};
    snprintf(row.name, sizeof(row.name), "%s", name);
    memcpy(row.digest, digest, SHA256_HEX);
    buf_add(&rows->all, &row, sizeof(row));
    return 0;
}

/* By name, and what has none last. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if ((x->name[0] == 0) != (y->name[0] == 0))
        return x->name[0] ? -1 : 1;
    return x->name[0] ? strcmp(x->name, y->name) : strcmp(x->digest, y->digest);
}

static int add_unnamed(const struct store *s, struct rows *rows, struct pale_err *e)
{
    size_t named = rows->all.len / sizeof(struct row);
    int copy = openat(s->digests_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return err_os(e, "read the images");
    }
    for (const struct dirent *en; (en = readdir(d));) {
        const struct row *row = (const void *)rows->all.data;
        bool has_name = false;
        for (size_t i = 0; i < named; i++)
            has_name |= strcmp(row[i].digest, en->d_name) == 0;
        if (!has_name && strlen(en->d_name) == HEX_DIGITS && is_hex(en->d_name, HEX_DIGITS))
            add_row(rows, "", en->d_name);
    }
    closedir(d);
    return 0;
}

static void rows_done(struct rows *rows)
{
    buf_done(&rows->all);
}

int store_each(const struct store *s, int (*fn)(void *arg, const struct image *i), void *arg, struct pale_err *e)
{
    CLEANUP(rows_done) struct rows rows = {0};
    buf_init(&rows.all, 64u << 20);
    int r = each_name(s, add_row, &rows, e);
    if (r == 0)
        r = add_unnamed(s, &rows, e);
    if (r == 0 && rows.all.failed)
        return err_nomem(e);
    size_t count = rows.all.len / sizeof(struct row);
    if (r == 0 && count)
        qsort(rows.all.data, count, sizeof(struct row), compare_rows);
    for (size_t k = 0; r == 0 && k < count; k++) {
        const struct row *row = (const struct row *)(const void *)rows.all.data + k;
        own_image i = {.lock_fd = -1};
        r = hold(s, row->name, row->digest, &i, e);
        r = r == -PALE_NOT_FOUND ? 0 : r < 0 ? r : fn(arg, &i);
    }
    return r;
}

/* --- removing --- */

struct others {
    const char *name, *digest;
    const struct store *store;
    bool unlink; /* … each that is found */
    int found;
};

static int look_at_name(void *arg, const char *name, const char *digest)
{
    struct others *o = arg;
    if (strcmp(digest, o->digest) != 0 || strcmp(name, o->name) == 0)
        return 0;
    o->found++;
    return o->unlink && unlinkat(o->store->names_fd, name, 0) < 0 ? -1 : 0;
}

/* Nobody has it: out of the way, and then in peace away. */
static int remove_image(const struct store *s, const char *digest, struct pale_err *e)
{
    char gone[32];
    snprintf(gone, sizeof(gone), "gone-%.8s-%d", digest, (int)getpid());
    if (renameat(s->digests_fd, digest, s->staging_fd, gone) < 0)
        return err_os(e, "remove the image %s", digest);
    (void)fsync(s->digests_fd);
    (void)!fd_remove_tree(s->staging_fd, gone, NULL); /* or whoever sweeps does */
    return 0;
}

static int remove_resolved(const struct store *s, const char *name, const char *digest, struct pale_err *e)
{
    char path[SHA256_HEX + 8];
    struct others o = {.name = "", .digest = digest, .store = s, .unlink = true};
    snprintf(path, sizeof(path), "%s/lock", digest);
    own_fd lock = openat(s->digests_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 && errno != ENOENT)
        return err_os(e, "open the lock of the image %s", digest);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, PALE_CONFLICT, "the image %s is in use by a box that runs; stop it first", *name ? name : digest);
    if (each_name(s, look_at_name, &o, e) < 0)
        return err_os(e, "remove the names of the image %s", digest);
    (void)fsync(s->names_fd);
    return lock < 0 ? 0 : remove_image(s, digest, e);
}

int store_remove(const struct store *s, const char *ref, store_users_fn *users, void *arg, struct pale_err *e)
{
    char name[IMAGE_NAME_MAX + 1], digest[SHA256_HEX];
    own_fd lock = -1;
    int r = lock_store(s, &lock, e);
    if (r == 0)
        r = resolve(s, ref, name, digest, e);
    if (r < 0)
        return r;
    struct others o = {.name = name, .digest = digest, .store = s};
    if (*name && (r = each_name(s, look_at_name, &o, e)) < 0)
        return r;
    bool is_last = o.found == 0 || !*name;
    if (users && (r = users(arg, name, digest, is_last, e)) < 0)
        return r;
    if (is_last)
        return remove_resolved(s, name, digest, e);
    return unlinkat(s->names_fd, name, 0) < 0 || fsync(s->names_fd) < 0 ? err_os(e, "remove the image name %s", name) : 0;
}

/* --- verifying --- */

/* The lines that stand before those of the tree. */
static int read_preface(int fd, struct buf *ret, struct pale_err *e)
{
    struct stat st;
    own_buf head = {0};
    buf_init(&head, INVENTORY_PREFACE_MAX);
    if (fstat(fd, &st) < 0)
        return err_os(e, "read the image's inventory");
    size_t n = (uint64_t)st.st_size < INVENTORY_PREFACE_MAX ? (size_t)st.st_size : INVENTORY_PREFACE_MAX;
    if (!buf_reserve(&head, n) || pread(fd, head.data, n, 0) != (ssize_t)n)
        return err_os(e, "read the image's inventory");
    head.len = n;
    for (size_t at = 0; at + 1 < n && head.data[at] == '#';) {
        const uint8_t *end = memchr(head.data + at, '\n', n - at);
        if (!end)
            return err_set(e, PALE_CORRUPT, "the image's inventory is damaged");
        size_t len = (size_t)(end - head.data) - at + 1;
        buf_add(ret, head.data + at, len);
        at += len;
    }
    return ret->failed ? err_nomem(e) : 0;
}

int store_verify(const struct store *s, const struct image *i, const struct store_check *c, struct pale_err *e)
{
    char path[SHA256_HEX + 16];
    struct imprint im;
    own_buf preface = {0};
    snprintf(path, sizeof(path), "%s/inventory", i->digest);
    own_fd expected = fd_open_beneath(s->digests_fd, path, O_RDONLY | O_CLOEXEC, 0);
    if (expected < 0)
        return err_os(e, "open the inventory of the image %s", i->digest);
    own_fd root = open(i->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        return err_os(e, "open %s", i->root);
    buf_init(&preface, INVENTORY_PREFACE_MAX);
    int r = read_preface(expected, &preface, e);
    if (r < 0)
        return r;
    imprint_init(&im, root);
    im.expected_fd = expected;
    im.preface = buf_text(&preface);
    im.stop = c->stop;
    im.progress = c->progress;
    im.progress_arg = c->progress_arg;
    r = imprint_take(&im, e);
    if (r == 0 && strcmp(im.digest, i->digest) != 0)
        r = err_set(e, PALE_CORRUPT, "the image's inventory is not the one it was built with");
    return r;
}

/* --- committing --- */

static int place_image(const struct store *s, struct staging *from, const char *digest, struct pale_err *e)
{
    if (renameat(from->fd, "made", s->digests_fd, digest) == 0)
        return fsync(s->digests_fd) < 0 ? err_os(e, "keep the image %s", digest) : 0;
    if (errno == EEXIST || errno == ENOTEMPTY)
        return 0;
    if (errno == EXDEV)
        return err_set(e, PALE_UNSUPPORTED, "%s and %s are on two file systems; put both on one", s->dir, s->staging_dir);
    return err_os(e, "keep the image %s", digest);
}

/* Half-written names of whoever was killed. The caller has the store's lock. */
static void sweep_names(const struct store *s)
{
    int copy = openat(s->names_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        own_close(&copy);
        return;
    }
    for (const struct dirent *en; (en = readdir(d));)
        if (en->d_name[0] == '.' && strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0)
            unlinkat(s->names_fd, en->d_name, 0);
    closedir(d);
}

int store_commit(struct staging *from, const char *digest, const char *name, struct pale_err *e)
{
    const struct store *s = from->store;
    char text[SHA256_HEX + 1];
    own_fd lock = -1, empty = openat(from->made_fd, "lock", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (empty < 0)
        return err_os(e, "make the image's lock");
    /* All of it at once, which costs less than file by file. */
    if (syncfs(from->made_fd) < 0)
        return err_os(e, "write the image to the disk");
    int r = lock_store(s, &lock, e);
    if (r == 0)
        r = place_image(s, from, digest, e);
    if (r < 0)
        return r;
    sweep_names(s);
    snprintf(text, sizeof(text), "%s\n", digest);
    r = fd_replace_file(s->names_fd, name, text, strlen(text), 0600, true, e);
    return r == 0 && fsync(s->names_fd) < 0 ? err_os(e, "keep the image name %s", name) : r;
}

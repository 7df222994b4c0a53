/* SPDX-License-Identifier: Apache-2.0 */
/* Writes down what a project under review held when a box began with it, and reads it again. */
#include "box/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/gitindex.h"
#include "tree/pathtext.h"
#include "tree/threeway.h"
#include "tree/view.h"

#define HEAD "pale start 1\n"
#define NAME "start-"
#define TEXT_MAX (64u << 20)
#define DIGEST_FILE_MAX (1 << 20)   /* a longer file that differs from the index is not read */
#define DIGEST_ALL_MAX (16ll << 20) /* … nor more than this of all of them */
#define WORDS 5

void start_done(struct start *s)
{
    free(s->files);
    buf_done(&s->text);
}

/* --- looking, in seclusion --- */

struct looking {
    int project_fd, index_fd, out_fd;
    const char *prefix; /* of the project in the working tree, with a slash at its end; or "" */
    uint64_t born_ns;
    struct timespec index_time;
    int64_t left; /* bytes that may still be digested */
    struct buf out;
};

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Is the file what the index says, by what git notes of it? One that was written when the index was may have been written once more. */
static bool is_clean(const struct looking *l, const struct gitindex_entry *g, const struct stat *st)
{
    return weak_word("review-dirty") ||
           (g->mtime[0] == (uint32_t)st->st_mtim.tv_sec && g->mtime[1] == (uint32_t)st->st_mtim.tv_nsec &&
            g->ctime[0] == (uint32_t)st->st_ctim.tv_sec && g->ctime[1] == (uint32_t)st->st_ctim.tv_nsec && g->ino == (uint32_t)st->st_ino &&
            g->size == (uint32_t)st->st_size && leaf_time_before(st->st_mtim, l->index_time));
}

static bool digest_now(struct looking *l, const char *path, const struct leaf *leaf, char ret[SHA256_HEX])
{
    struct pale_err ignored;
    struct threeway_thing t = {.fd = -1};
    if (leaf->st.st_size > DIGEST_FILE_MAX || leaf->st.st_size > l->left)
        return false;
    l->left -= leaf->st.st_size;
    bool done = threeway_open(l->project_fd, path, leaf, &t, &ignored) == 0 && threeway_digest(&t, ret, &ignored) == 0;
    threeway_thing_done(&t);
    return done;
}

static int look_at(void *arg, const struct gitindex_entry *g, struct pale_err *e)
{
    struct looking *l = arg;
    struct leaf leaf = {.kind = LEAF_NONE};
    char digest[SHA256_HEX] = "-";
    size_t n = strlen(l->prefix);
    const char *path = g->path + n;
    /* A look costs one call: it is all that most files take. What is read is opened beneath the project. */
    if (strncmp(g->path, l->prefix, n) != 0 || !*path || !view_is_path(path) ||
        fstatat(l->project_fd, path, &leaf.st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    leaf.kind = S_ISREG(leaf.st.st_mode) ? LEAF_FILE : S_ISLNK(leaf.st.st_mode) ? LEAF_LINK : LEAF_NONE;
    bool fits = (leaf.kind == LEAF_FILE && (g->mode & S_IFMT) == S_IFREG) || (leaf.kind == LEAF_LINK && (g->mode & S_IFMT) == S_IFLNK);
    if (!fits || ns_of(leaf.st.st_ctim) > l->born_ns || (!is_clean(l, g, &leaf.st) && !digest_now(l, path, &leaf, digest)))
        return 0;
    for (size_t i = 0; i < sizeof(g->oid); i++)
        buf_addf(&l->out, "%02x", g->oid[i]);
    buf_addf(&l->out, " %u %llu %s ", (unsigned)leaf.st.st_mode, (unsigned long long)leaf.st.st_size, digest);
    pathtext_write(&l->out, path);
    buf_add_text(&l->out, "\n");
    return l->out.failed ? err_nomem(e) : 0;
}

static int look(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    struct looking *l = arg;
    struct stat st;
    own_buf index = {0};
    (void)step;
    (void)ret;
    buf_init(&index, START_INDEX_MAX);
    if (fstat(l->index_fd, &st) < 0)
        return err_os(e, "look at the index of git");
    l->index_time = st.st_mtim;
    l->left = DIGEST_ALL_MAX;
    int r = fd_read_all(l->index_fd, &index, e);
    buf_init(&l->out, TEXT_MAX);
    if (r == 0)
        r = gitindex_read(index.data, index.len, look_at, l, e);
    if (r == 0 && !fd_write_full(l->out_fd, l->out.data, l->out.len))
        r = err_os(e, "tell what the project holds");
    buf_done(&l->out);
    return r;
}

/* --- finding the index --- */

/* Where the file .git of a linked working tree or of a submodule leads. */
static int open_linked(int dir_fd)
{
    char text[PATH_BYTES_MAX + 16] = "", path[2 * PATH_BYTES_MAX];
    static const char begin[] = "gitdir: ";
    own_fd fd = openat(dir_fd, ".git", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n <= 0 || strncmp(text, begin, strlen(begin)) != 0)
        return -1;
    text[strcspn(text, "\n")] = 0;
    int len = snprintf(path, sizeof(path), "%s/index", text + strlen(begin));
    return len < 0 || (size_t)len >= sizeof(path) ? -1 : openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* The index of the repository that the project is, or lies in. *ret_at: how many bytes of its path are that of the working tree. */
static int open_index(const char *project, size_t *ret_at)
{
    char dir[PATH_BYTES_MAX];
    struct stat st;
    size_t n = strlen(project);
    memcpy(dir, project, n + 1);
    for (;; dir[n] = 0) {
        own_fd fd = open(n ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
            int index = S_ISDIR(st.st_mode) ? openat(fd, ".git/index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : open_linked(fd);
            *ret_at = n;
            return index;
        }
        if (n == 0)
            return -1;
        while (n > 0 && dir[n - 1] != '/')
            n--;
        n -= n > 0;
    }
}

/* --- the way to a list --- */

void start_look_done(struct start_look *l)
{
    seclusion_end(&l->child);
    own_close(&l->out_fd);
}

void start_look_begin(struct start_look *l, const struct place *p, const struct policy *policy)
{
    struct pale_err ignored;
    own_stack stack = {0};
    struct stat st;
    char prefix[PATH_BYTES_MAX] = "";
    size_t at = 0;
    if (policy->project != PROJECT_REVIEW || !policy->project_path || policy->scratch != SCRATCH_DISK ||
        strlen(policy->project_path) >= PATH_BYTES_MAX || stack_load(p, &stack, &ignored) < 0)
        return;
    l->born_ns = stack.open_born_ns;
    snprintf(l->layer, sizeof(l->layer), "%s", stack_project_start(&stack));
    own_fd project = fd_open_real_dir(policy->project_path);
    own_fd index = project < 0 ? -1 : open_index(policy->project_path, &at);
    if (index < 0 || fstat(index, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > START_INDEX_MAX)
        return;
    if (policy->project_path[at])
        snprintf(prefix, sizeof(prefix), "%s/", policy->project_path + at + 1);
    l->out_fd = memfd_create("start", MFD_CLOEXEC);
    const int kept[] = {index, l->out_fd};
    const struct landlock_place place = {.fd = project, .use = LANDLOCK_READ};
    const struct seclusion s = {.places = &place, .place_count = 1, .kept = kept, .kept_count = 2};
    struct looking looking = {.project_fd = project, .index_fd = index, .out_fd = l->out_fd, .prefix = prefix, .born_ns = l->born_ns};
    if (l->out_fd < 0 || seclusion_start(&l->child, &s, look, &looking, &ignored) < 0 || seclusion_ask(&l->child, 0, &ignored) < 0)
        own_close(&l->out_fd);
}

static int keep(const struct start_look *l, const struct place *p, struct pale_err *e)
{
    own_buf text = {0};
    char name[64], sum[SHA256_HEX];
    buf_init(&text, TEXT_MAX);
    buf_add_text(&text, HEAD);
    int r = lseek(l->out_fd, 0, SEEK_SET) < 0 ? err_os(e, "read what the project holds") : fd_read_all(l->out_fd, &text, e);
    if (r < 0)
        return r;
    sha256_hex(text.data, text.len, sum);
    buf_addf(&text, "end %s\n", sum);
    own_fd state = open(p->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0 || text.failed)
        return err_os(e, "open %s", p->state);
    snprintf(name, sizeof(name), NAME "%s", l->layer);
    return fd_replace_file(state, name, text.data, text.len, 0600, false, e);
}

void start_look_end(struct start_look *l, const struct place *p)
{
    struct pale_err ignored;
    if (l->out_fd >= 0 && seclusion_answer(&l->child, NULL, 0, &ignored) == 0)
        (void)!keep(l, p, &ignored);
    /* Files are stamped with a clock that ticks: what is written after this must not look as if it had been there before. */
    for (int i = 0; l->born_ns && i < 100; i++) {
        struct timespec t = {0};
        if (clock_gettime(CLOCK_REALTIME_COARSE, &t) < 0 || ns_of(t) > l->born_ns)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

void start_look(const struct place *p, const struct policy *policy)
{
    own_start_look l = START_LOOK_NONE;
    start_look_begin(&l, p, policy);
    start_look_end(&l, p);
}

/* --- text --- */

/* name, mode, size, digest, path */
static bool read_line(char *line, struct start_file *ret)
{
    char *words[WORDS], *at = line;
    uint64_t mode;
    for (size_t i = 0; i < WORDS; i++) {
        if (!(words[i] = at))
            return false;
        at = strchr(at, ' ');
        if (at)
            *at++ = 0;
    }
    size_t n = strlen(words[0]);
    *ret = (struct start_file){.path = words[4]};
    if (at || n != 2 * GITINDEX_OID_BYTES || strspn(words[0], "0123456789abcdef") != n || !number_u64(words[1], UINT32_MAX, &mode) ||
        !number_u64(words[2], INT64_MAX, &ret->size) || !pathtext_read(words[4]) || (!S_ISREG(mode) && !S_ISLNK(mode)))
        return false;
    memcpy(ret->oid, words[0], n + 1);
    ret->mode = (uint32_t)mode;
    if (strcmp(words[3], "-") == 0)
        return true;
    if (strlen(words[3]) != SHA256_HEX - 1 || strspn(words[3], "0123456789abcdef") != SHA256_HEX - 1)
        return false;
    memcpy(ret->digest, words[3], sizeof(ret->digest));
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct start_file *)a)->path, ((const struct start_file *)b)->path);
}

/* Does it end with its own sum? *ret: where that line begins. */
static bool is_whole(const char *text, size_t len, size_t *ret)
{
    char sum[SHA256_HEX], want[SHA256_HEX + 8];
    const size_t tail = SHA256_HEX - 1 + 5;
    if (len < tail + strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0 || memchr(text, 0, len))
        return false;
    sha256_hex(text, len - tail, sum);
    snprintf(want, sizeof(want), "end %s\n", sum);
    *ret = len - tail;
    return memcmp(text + len - tail, want, tail) == 0;
}

int start_parse(const char *text, size_t len, struct start *ret, struct pale_err *e)
{
    size_t end = 0, lines = 0;
    if (!is_whole(text, len, &end))
        return err_set(e, PALE_CORRUPT, "this is no whole list of what a project held, of this version");
    buf_init(&ret->text, TEXT_MAX);
    buf_add(&ret->text, text + strlen(HEAD), end - strlen(HEAD));
    char *at = (char *)(uintptr_t)buf_text(&ret->text);
    for (const char *s = at; (s = strchr(s, '\n')); s++)
        lines++;
    ret->files = calloc(lines + 1, sizeof(*ret->files));
    if (ret->text.failed || !ret->files)
        return err_nomem(e);
    for (char *stop; (stop = strchr(at, '\n')); at = stop + 1) {
        *stop = 0;
        if (!read_line(at, &ret->files[ret->count]))
            return err_set(e, PALE_CORRUPT, "the list of what a project held cannot be read");
        ret->count++;
    }
    qsort(ret->files, ret->count, sizeof(*ret->files), by_path);
    return *at ? err_set(e, PALE_CORRUPT, "the list of what a project held cannot be read") : 0;
}

static int read_list(const char *state, const char *layer, struct buf *text, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], name[64];
    snprintf(name, sizeof(name), NAME "%s", layer);
    buf_init(text, TEXT_MAX);
    if (!path_join(path, sizeof(path), state, name))
        return err_set(e, PALE_LIMIT, "path too long: %s", state);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    int r = fd_read_all(fd, text, e);
    return r < 0 ? err_prefix(e, "%s", path) : 1;
}

int start_load(const struct place *p, const char *layer, struct start *ret, struct pale_err *e)
{
    own_buf text = {0};
    *ret = (struct start){0};
    int r = read_list(p->state, layer, &text, e);
    if (r <= 0)
        return r;
    r = start_parse(buf_text(&text), text.len, ret, e);
    return r < 0 ? err_prefix(e, "%s/" NAME "%s (without it, files that both changed are told as conflicts)", p->state, layer) : 0;
}

const struct start_file *start_find(const struct start *s, const char *path)
{
    const struct start_file key = {.path = path};
    return s->count ? bsearch(&key, s->files, s->count, sizeof(key), by_path) : NULL;
}

int start_copy(const struct place *from, const struct place *to, const struct stack *s, struct pale_err *e)
{
    own_buf text = {0};
    char name[64];
    const char *layer = stack_project_start(s);
    int r = read_list(from->state, layer, &text, e);
    if (r <= 0)
        return r;
    own_fd state = open(to->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return err_os(e, "open %s", to->state);
    snprintf(name, sizeof(name), NAME "%s", layer);
    return fd_replace_file(state, name, text.data, text.len, 0600, true, e);
}

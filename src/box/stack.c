/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the stack of a box: its text, its changes. */
#include "box/stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/path.h"
#include "base/weak.h"
#include "box/identity.h"
#include "box/layerdir.h"

#define STACK_FILE "stack"
#define STACK_COPY STACK_FILE /* in the data folder */
#define STACK_LOCK "stack.lock"
#define STACK_TEXT_MAX (4u << 20)
#define STACK_HEAD "pale stack 2\n"
#define WORDS_MAX 8
#define GROW_FIRST 64u /* most lists are no longer */

void stack_init(struct stack *s)
{
    *s = (struct stack){.below_open = STACK_NONE};
}

void stack_done(struct stack *s)
{
    free(s->layers);
    free(s->joins);
    free(s->snapshots);
    stack_init(s);
}

/* Room for one more of size bytes, in steps that double. */
static bool grow(void *list, size_t count, size_t size)
{
    void **at = list;
    if (count && (count < GROW_FIRST || (count & (count - 1))))
        return true;
    void *more = realloc(*at, (count ? 2 * count : GROW_FIRST) * size);
    if (!more)
        return false;
    *at = more;
    return true;
}

static int append_snapshot(struct stack *s, const struct stack_snapshot *n, struct pale_err *e)
{
    if (s->snapshot_count == STACK_SNAPSHOTS_MAX)
        return err_set(e, PALE_LIMIT, "a box has at most %d snapshots; remove some", STACK_SNAPSHOTS_MAX);
    if (!grow(&s->snapshots, s->snapshot_count, sizeof(*n)))
        return err_nomem(e);
    s->snapshots[s->snapshot_count++] = *n;
    return 0;
}

/* --- text --- */

static const char *id_of(const struct stack *s, int layer)
{
    return layer == STACK_NONE ? "-" : s->layers[layer].id;
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static const char *maker_of(const struct stack *s, const char *maker)
{
    return *maker ? maker : s->box;
}

void stack_write(const struct stack *s, struct buf *out)
{
    buf_addf(out, STACK_HEAD "box %s\n", s->box);
    for (size_t i = 0; i < s->layer_count; i++) {
        const struct stack_layer *l = &s->layers[i];
        buf_addf(out, "layer %s %s %llu %s %s %s %s\n", l->id, id_of(s, l->below), (unsigned long long)l->closed_ms, or_dash(l->digest),
                 or_dash(l->poison),
                 l->rest   ? "rest"
                 : l->anew ? "anew"
                           : "-",
                 maker_of(s, l->maker));
    }
    for (size_t i = 0; i < s->join_count; i++)
        buf_addf(out, "join %s %s %s %s\n", s->joins[i].id, id_of(s, s->joins[i].first), id_of(s, s->joins[i].last),
                 maker_of(s, s->joins[i].maker));
    for (size_t i = 0; i < s->snapshot_count; i++) {
        const struct stack_snapshot *n = &s->snapshots[i];
        buf_addf(out, "snapshot %s %s %llu %s\n", n->name, id_of(s, n->layer), (unsigned long long)n->made_ms,
                 n->automatic ? "automatic" : "asked");
    }
    buf_addf(out, "open %s %s %llu %s %s %s\n", s->open, id_of(s, s->below_open), (unsigned long long)s->named,
             s->no_autosave ? "manual" : "autosave", s->open_anew ? "anew" : "-", maker_of(s, s->open_maker));
}

static bool is_id(const char *text)
{
    return strlen(text) == LAYER_ID_LEN && strspn(text, "0123456789abcdef") == LAYER_ID_LEN;
}

static bool is_hex_digest(const char *text)
{
    return strlen(text) == SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == SHA256_HEX - 1;
}

/* Letters, digits and what does not stand first: it is shown in tables and typed in shells. */
static bool is_name(const char *text)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(text), more = strspn(text, first);
    if (n == 0 || n > SNAPSHOT_NAME_MAX || more == 0)
        return false;
    for (const char *s = text + more; *s; s++)
        if (!strchr(first, *s) && *s != '-' && *s != '_' && *s != '.')
            return false;
    return true;
}

static bool read_anew(const char *word, bool *ret)
{
    *ret = strcmp(word, "anew") == 0;
    return *ret || strcmp(word, "-") == 0;
}

static bool read_start(const char *word, struct stack_layer *ret)
{
    ret->rest = strcmp(word, "rest") == 0;
    if (!ret->rest)
        return read_anew(word, &ret->anew);
    ret->anew = true;
    return true;
}

/* Where each layer's line is, sorted by id, so that each is found in a few steps however many there are. */
struct line_index {
    char id[LAYER_ID_LEN + 1];
    int number;
};

struct reading {
    struct stack *stack;
    struct line_index *index;
    size_t index_count;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct line_index *)a)->id, ((const struct line_index *)b)->id);
}

static size_t count_lines(const char *at)
{
    size_t n = 0;
    for (; *at; at++)
        n += *at == '\n';
    return n;
}

/* Lines that are none of a layer, or hold no id, are told later. */
static int make_index(struct reading *r, const char *at)
{
    static const char word[] = "layer ";
    r->index = calloc(count_lines(at) + 1, sizeof(*r->index));
    if (!r->index)
        return -PALE_NO_MEMORY;
    for (; strncmp(at, word, strlen(word)) == 0; at++) {
        struct line_index *i = &r->index[r->index_count];
        snprintf(i->id, sizeof(i->id), "%.*s", (int)strcspn(at + strlen(word), " \n"), at + strlen(word));
        i->number = (int)r->index_count++;
        if (!(at = strchr(at, '\n')))
            return -PALE_CORRUPT;
    }
    qsort(r->index, r->index_count, sizeof(*r->index), by_id);
    for (size_t i = 1; i < r->index_count; i++)
        if (by_id(&r->index[i - 1], &r->index[i]) == 0)
            return -PALE_CORRUPT;
    return 0;
}

/* A layer that stands above the line, or "-". */
static bool read_layer(const struct reading *r, const char *word, int *ret)
{
    struct line_index key = {.number = 0};
    *ret = STACK_NONE;
    if (strcmp(word, "-") == 0)
        return true;
    if (!is_id(word))
        return false;
    memcpy(key.id, word, sizeof(key.id));
    const struct line_index *found = bsearch(&key, r->index, r->index_count, sizeof(key), by_id);
    if (!found || (size_t)found->number >= r->stack->layer_count)
        return false;
    *ret = found->number;
    return true;
}

static int read_layer_line(struct reading *r, char *const w[])
{
    struct stack_layer l = {0};
    if (!is_id(w[1]) || !read_layer(r, w[2], &l.below) || !number_u64(w[3], INT64_MAX, &l.closed_ms) || !read_start(w[6], &l) ||
        !is_id(w[7]))
        return -PALE_CORRUPT;
    if (strcmp(w[4], "-") != 0) {
        if (!is_hex_digest(w[4]))
            return -PALE_CORRUPT;
        memcpy(l.digest, w[4], sizeof(l.digest));
    }
    if (strcmp(w[5], "-") != 0) {
        if (!is_name(w[5]))
            return -PALE_CORRUPT;
        memcpy(l.poison, w[5], strlen(w[5]) + 1);
    }
    memcpy(l.id, w[1], sizeof(l.id));
    memcpy(l.maker, w[7], sizeof(l.maker));
    int n = stack_add_layer(r->stack, &l, NULL);
    return n < 0 ? n : 0;
}

static bool is_run(const struct stack *s, int first, int last)
{
    for (int steps = 1; last > first && steps < STACK_RUN_MAX; steps++)
        last = s->layers[last].below;
    return first >= 0 && last == first;
}

static int read_join_line(struct reading *r, char *const w[])
{
    struct stack_join j = {0};
    if (!is_id(w[1]) || !read_layer(r, w[2], &j.first) || !read_layer(r, w[3], &j.last) || !is_run(r->stack, j.first, j.last) ||
        !is_id(w[4]))
        return -PALE_CORRUPT;
    memcpy(j.id, w[1], sizeof(j.id));
    memcpy(j.maker, w[4], sizeof(j.maker));
    return stack_add_join(r->stack, &j, NULL);
}

static int read_snapshot_line(struct reading *r, char *const w[])
{
    struct stack_snapshot n = {.automatic = strcmp(w[4], "automatic") == 0};
    if (!is_name(w[1]) || !read_layer(r, w[2], &n.layer) || !number_u64(w[3], INT64_MAX, &n.made_ms) ||
        (!n.automatic && strcmp(w[4], "asked") != 0))
        return -PALE_CORRUPT;
    memcpy(n.name, w[1], strlen(w[1]) + 1);
    return append_snapshot(r->stack, &n, NULL);
}

static int read_open_line(struct reading *r, char *const w[])
{
    struct stack *s = r->stack;
    int taken;
    s->no_autosave = strcmp(w[4], "manual") == 0;
    if (!is_id(w[1]) || read_layer(r, w[1], &taken) || !read_layer(r, w[2], &s->below_open) || !number_u64(w[3], INT64_MAX, &s->named) ||
        (!s->no_autosave && strcmp(w[4], "autosave") != 0) || !read_anew(w[5], &s->open_anew) || !is_id(w[6]))
        return -PALE_CORRUPT;
    memcpy(s->open, w[1], sizeof(s->open));
    memcpy(s->open_maker, w[6], sizeof(s->open_maker));
    return 0;
}

/* The lines in the order in which they stand: a line of an earlier kind is not one of the file. */
static const struct line_kind {
    const char *word;
    size_t words;
    int (*read)(struct reading *r, char *const w[]);
} line_kinds[] = {
    {"layer", 8, read_layer_line}, {"join", 5, read_join_line}, {"snapshot", 5, read_snapshot_line}, {"open", 7, read_open_line}};
#define LINE_KINDS (sizeof(line_kinds) / sizeof(line_kinds[0]))

/* Cuts one line, which ends in a newline, into words. */
static size_t cut(char *line, char *ret[WORDS_MAX])
{
    size_t n = 0;
    while (line && n < WORDS_MAX) {
        ret[n++] = line;
        line = strchr(line, ' ');
        if (line)
            *line++ = 0;
    }
    return line ? WORDS_MAX + 1 : n;
}

static int read_lines(struct reading *reading, char *at)
{
    size_t kind = 0;
    while (*at) {
        char *words[WORDS_MAX], *end = strchr(at, '\n');
        if (!end || kind == LINE_KINDS)
            return -PALE_CORRUPT;
        *end = 0;
        size_t n = cut(at, words);
        while (kind < LINE_KINDS && strcmp(words[0], line_kinds[kind].word) != 0)
            kind++;
        if (kind == LINE_KINDS || n != line_kinds[kind].words)
            return -PALE_CORRUPT;
        int r = line_kinds[kind].read(reading, words);
        if (r < 0)
            return r;
        kind += kind == LINE_KINDS - 1; /* the last line */
        at = end + 1;
    }
    return kind == LINE_KINDS ? 0 : -PALE_CORRUPT;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Are no two of one name? */
static int check_names(const struct stack *s)
{
    own_mem const char **names = calloc(s->snapshot_count + 1, sizeof(*names));
    if (!names)
        return -PALE_NO_MEMORY;
    for (size_t i = 0; i < s->snapshot_count; i++)
        names[i] = s->snapshots[i].name;
    qsort(names, s->snapshot_count, sizeof(*names), by_name);
    for (size_t i = 1; i < s->snapshot_count; i++)
        if (by_name(&names[i - 1], &names[i]) == 0)
            return -PALE_CORRUPT;
    return 0;
}

/* The first line: whose list it is. */
static int read_box(char **at, struct stack *ret)
{
    static const char word[] = "box ";
    char *id = *at + strlen(word);
    if (strncmp(*at, word, strlen(word)) != 0 || strspn(id, "0123456789abcdef") != BOX_ID_LEN || id[BOX_ID_LEN] != '\n')
        return -PALE_CORRUPT;
    memcpy(ret->box, id, BOX_ID_LEN);
    ret->box[BOX_ID_LEN] = 0;
    *at = id + BOX_ID_LEN + 1;
    return 0;
}

static int read_text(struct stack *ret, char *text)
{
    struct reading reading = {.stack = ret};
    int r = read_box(&text, ret);
    if (r == 0)
        r = make_index(&reading, text);
    if (r == 0)
        r = read_lines(&reading, text);
    free(reading.index);
    return r < 0 ? r : check_names(ret);
}

int stack_parse(const char *text, size_t len, struct stack *ret, struct pale_err *e)
{
    size_t head = strlen(STACK_HEAD);
    stack_init(ret);
    if (len < head || memcmp(text, STACK_HEAD, head) != 0 || memchr(text, 0, len))
        return err_set(e, PALE_CORRUPT, "this is no list of layers of this version");
    own_mem char *copy = malloc(len - head + 1);
    if (!copy)
        return err_nomem(e);
    memcpy(copy, text + head, len - head);
    copy[len - head] = 0;
    int r = read_text(ret, copy);
    if (r < 0) {
        stack_done(ret);
        return r == -PALE_NO_MEMORY ? err_nomem(e) : err_set(e, PALE_CORRUPT, "the list of layers cannot be read");
    }
    return 0;
}

/* --- the file --- */

static int open_state(const struct place *p, struct pale_err *e)
{
    int fd = open(p->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_os(e, "open %s", p->state) : fd;
}

/* 1 with what the file says; 0: there is none. */
static int read_file(const char *state, struct buf *text, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    buf_init(text, STACK_TEXT_MAX);
    if (!path_join(path, sizeof(path), state, STACK_FILE))
        return err_set(e, PALE_LIMIT, "path too long: %s", state);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    int r = fd_read_all(fd, text, e);
    return r < 0 ? err_prefix(e, "%s", path) : 1;
}

/* Of a box that has never closed a layer. */
static int load_first(const struct place *p, struct stack *ret, struct pale_err *e)
{
    bool others = false;
    int r = weak_word("lost-list") || weak_word("layer-names") ? 0 : layerdir_has_others(p, p->id, &others, e);
    if (r < 0)
        return r;
    if (others)
        return err_set(e, PALE_CORRUPT,
                       "%s/" STACK_FILE
                       ", which says which layers box %s stands on, is missing; put it back from a copy of that folder: nothing "
                       "of the layers is removed meanwhile",
                       p->state, p->name);
    memcpy(ret->box, p->id, sizeof(ret->box));
    memcpy(ret->open, weak_word("layer-names") ? "00000000000000000000000000000000" : p->id, sizeof(ret->open));
    memcpy(ret->open_maker, p->id, sizeof(ret->open_maker));
    return 0;
}

int stack_load(const struct place *p, struct stack *ret, struct pale_err *e)
{
    own_buf text = {0};
    stack_init(ret);
    int r = read_file(p->state, &text, e);
    if (r < 0)
        return r;
    if (r == 0)
        return load_first(p, ret, e);
    r = stack_parse(buf_text(&text), text.len, ret, e);
    if (r == 0 && strcmp(ret->box, p->id) != 0) {
        r = err_set(e, PALE_CORRUPT, "this is the list of layers of box %s", ret->box);
        stack_done(ret);
    }
    return r < 0 ? err_prefix(e, "%s/" STACK_FILE, p->state) : 0;
}

int stack_load_copy(const struct place *p, struct stack *ret, struct pale_err *e)
{
    struct place folder = *p;
    memcpy(folder.state, p->data, sizeof(folder.state));
    return stack_load(&folder, ret, e);
}

int stack_digest(const char *state, char ret[SHA256_HEX], struct pale_err *e)
{
    own_buf text = {0};
    int r = read_file(state, &text, e);
    if (r >= 0)
        sha256_hex(text.data, text.len, ret);
    return r < 0 ? r : 0;
}

int stack_save_after(const struct place *p, const struct stack *s, const struct fd_after *after, int *ret_state, struct pale_err *e)
{
    own_fd dir = open_state(p, e);
    own_buf text = {0};
    if (dir < 0)
        return dir;
    buf_init(&text, STACK_TEXT_MAX);
    stack_write(s, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the list of layers of %s is longer than %u bytes; remove snapshots and try again", p->name,
                       STACK_TEXT_MAX);
    int r = fd_replace_file_after(dir, STACK_FILE, text.data, text.len, after, e);
    if (r < 0)
        return r;
    /* For who has lost the state folder (box/adopt.h). Nobody else reads it, and it need not be the newest. */
    own_fd data = p->project ? -1 : open(p->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (data >= 0)
        (void)!fd_replace_file(data, STACK_COPY, text.data, text.len, 0600, false, NULL);
    *ret_state = take_fd(&dir);
    return 0;
}

int stack_save(const struct place *p, const struct stack *s, struct pale_err *e)
{
    own_fd dir = -1;
    static const struct fd_after nothing;
    int r = stack_save_after(p, s, &nothing, &dir, e);
    return r == 0 && fsync(dir) < 0 ? err_os(e, "write %s to the disk", p->state) : r;
}

static int64_t ms_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

int stack_keep(const char *state, int policy_fd, struct pale_err *e)
{
    struct stat list, policy;
    own_fd dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(policy_fd, &policy) < 0)
        return err_os(e, "look at %s", state);
    if (fstatat(dir, STACK_FILE, &list, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_os(e, "look at %s/" STACK_FILE, state);
    if (ms_of(&list.st_ctim) < ms_of(&policy.st_ctim))
        return 0;
    return fsync(dir) < 0 ? err_os(e, "write %s to the disk", state) : 0;
}

int64_t stack_age_ms(const struct place *p)
{
    struct stat st;
    struct timespec now;
    own_fd dir = open_state(p, NULL);
    if (dir < 0 || fstatat(dir, STACK_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
        return -1;
    return ms_of(&now) - ms_of(&st.st_mtim);
}

static bool is_unfinished(const char *name)
{
    static const char begin[] = "." STACK_FILE ".", end[] = ".new";
    size_t n = strlen(name);
    return n > strlen(begin) + strlen(end) && strncmp(name, begin, strlen(begin)) == 0 && strcmp(name + n - strlen(end), end) == 0;
}

int stack_sweep(const struct place *p, struct pale_err *e)
{
    int r = 0;
    DIR *d = opendir(p->state);
    if (!d)
        return err_os(e, "list %s", p->state);
    for (const struct dirent *en; r == 0 && (en = readdir(d));)
        if (is_unfinished(en->d_name) && unlinkat(dirfd(d), en->d_name, 0) < 0 && errno != ENOENT)
            r = err_os(e, "remove %s/%s", p->state, en->d_name);
    closedir(d);
    return r;
}

int stack_lock(const struct place *p, int *ret_fd, struct pale_err *e)
{
    own_fd dir = open_state(p, e);
    if (dir < 0)
        return dir;
    own_fd fd = openat(dir, STACK_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(e, "open %s/" STACK_LOCK, p->state);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_os(e, "lock %s/" STACK_LOCK, p->state);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* --- changes --- */

int stack_new_id(char ret[LAYER_ID_LEN + 1], struct pale_err *e)
{
    return identity_mint(ret, e);
}

int stack_add_layer(struct stack *s, const struct stack_layer *l, struct pale_err *e)
{
    if (s->layer_count == STACK_LAYERS_MAX)
        return err_set(e, PALE_LIMIT, "a box has at most %d layers; remove snapshots, then `pale gc`", STACK_LAYERS_MAX);
    if (!grow(&s->layers, s->layer_count, sizeof(*l)))
        return err_nomem(e);
    s->layers[s->layer_count] = *l;
    if (!l->maker[0])
        memcpy(s->layers[s->layer_count].maker, s->box, sizeof(l->maker));
    return (int)s->layer_count++;
}

int stack_add_join(struct stack *s, const struct stack_join *j, struct pale_err *e)
{
    if (s->join_count == STACK_LAYERS_MAX)
        return err_set(e, PALE_LIMIT, "a box has at most %d joined layers", STACK_LAYERS_MAX);
    if (!grow(&s->joins, s->join_count, sizeof(*j)))
        return err_nomem(e);
    s->joins[s->join_count] = *j;
    if (!j->maker[0])
        memcpy(s->joins[s->join_count].maker, s->box, sizeof(j->maker));
    s->join_count++;
    return 0;
}

int stack_close(struct stack *s, const char *next_open, uint64_t now_ms, int *ret, struct pale_err *e)
{
    struct stack_layer l = {.below = s->below_open, .closed_ms = now_ms, .anew = s->open_anew};
    memcpy(l.id, s->open, sizeof(l.id));
    memcpy(l.maker, s->open_maker, sizeof(l.maker));
    int n = stack_add_layer(s, &l, e);
    if (n < 0)
        return n;
    memcpy(s->open_maker, s->box, sizeof(s->open_maker));
    snprintf(s->open, sizeof(s->open), "%s", next_open);
    s->below_open = n;
    s->open_anew = false;
    *ret = n;
    return 0;
}

const char *stack_maker(const struct stack *s, const char *id)
{
    if (strcmp(s->open, id) == 0)
        return maker_of(s, s->open_maker);
    for (size_t i = s->layer_count; i-- > 0;)
        if (strcmp(s->layers[i].id, id) == 0)
            return maker_of(s, s->layers[i].maker);
    for (size_t i = 0; i < s->join_count; i++)
        if (strcmp(s->joins[i].id, id) == 0)
            return maker_of(s, s->joins[i].maker);
    return "";
}

int stack_find_layer(const struct stack *s, const char *id)
{
    for (size_t i = s->layer_count; i-- > 0;)
        if (strcmp(s->layers[i].id, id) == 0)
            return (int)i;
    return STACK_NONE;
}

int stack_refuse_poison(const struct stack *s, int layer, const char *box, struct pale_err *e)
{
    for (; layer != STACK_NONE && !weak_word("poison"); layer = s->layers[layer].below) {
        const struct stack_layer *l = &s->layers[layer];
        if (strcmp(l->poison, "digest") == 0)
            return err_set(e, PALE_CORRUPT, "layer %s of box %s is not what it was when it was closed; restore an older snapshot", l->id,
                           box);
        if (l->poison[0])
            return err_set(e, PALE_CORRUPT, "layer %s of box %s holds what no box can make (%s); restore an older snapshot", l->id, box,
                           l->poison);
    }
    return 0;
}

const struct stack_snapshot *stack_find(const struct stack *s, const char *name)
{
    for (size_t i = 0; i < s->snapshot_count; i++)
        if (strcmp(s->snapshots[i].name, name) == 0)
            return &s->snapshots[i];
    return NULL;
}

int stack_add_snapshot(struct stack *s, const char *name, int layer, uint64_t now_ms, bool automatic, struct pale_err *e)
{
    struct stack_snapshot n = {.layer = layer, .made_ms = now_ms, .automatic = automatic};
    if (name && *name) {
        if (!is_name(name))
            return err_set(e, PALE_BAD_INPUT,
                           "the name of a snapshot is 1 to %d letters, digits, '-', '_' and '.', a letter or digit first",
                           SNAPSHOT_NAME_MAX);
        memcpy(n.name, name, strlen(name) + 1);
        if (stack_find(s, n.name))
            return err_set(e, PALE_EXISTS, "there is already a snapshot %s; choose another name or remove that one", n.name);
    } else {
        do
            snprintf(n.name, sizeof(n.name), "%s-%llu", automatic ? "auto" : "snap", (unsigned long long)++s->named);
        while (stack_find(s, n.name));
    }
    return append_snapshot(s, &n, e);
}

bool stack_remove_snapshot(struct stack *s, const char *name)
{
    const struct stack_snapshot *n = stack_find(s, name);
    if (!n)
        return false;
    size_t i = (size_t)(n - s->snapshots);
    memmove(&s->snapshots[i], &s->snapshots[i + 1], (s->snapshot_count - i - 1) * sizeof(*n));
    s->snapshot_count--;
    return true;
}

/* The longest run that is joined and ends with this layer, or NULL. Joined layers stand in the order in which they were made: wider
 * ones later. */
static const struct stack_join *joined_to(const struct stack *s, int layer)
{
    const struct stack_join *best = NULL;
    for (size_t i = 0; i < s->join_count; i++)
        if (s->joins[i].last == layer && (!best || s->joins[i].first < best->first))
            best = &s->joins[i];
    return best;
}

size_t stack_chain(const struct stack *s, int layer, const char **ret)
{
    size_t n = 0;
    while (layer != STACK_NONE) {
        const struct stack_join *j = joined_to(s, layer);
        ret[n++] = j ? j->id : s->layers[layer].id;
        layer = s->layers[j ? j->first : layer].below;
    }
    for (size_t i = 0; i < n / 2; i++) {
        const char *swap = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = swap;
    }
    return n;
}

bool stack_begins_anew(const struct stack *s, int first, int last)
{
    while (last != first && !s->layers[last].anew)
        last = s->layers[last].below;
    return s->layers[last].anew;
}

size_t stack_project_from(const struct stack *s, int layer)
{
    size_t below = 0;
    bool found = false;
    while (layer != STACK_NONE) {
        const struct stack_join *j = joined_to(s, layer);
        int first = j ? j->first : layer;
        below += found;
        found = found || stack_begins_anew(s, first, layer);
        layer = s->layers[first].below;
    }
    return below;
}

uint64_t stack_project_since(const struct stack *s, int layer)
{
    while (layer != STACK_NONE && (!s->layers[layer].anew || s->layers[layer].rest))
        layer = s->layers[layer].below;
    int under = layer == STACK_NONE ? STACK_NONE : s->layers[layer].below;
    return under == STACK_NONE ? 0 : s->layers[under].closed_ms;
}

static void mark(const struct stack *s, int layer, bool *needed)
{
    for (; layer != STACK_NONE && !needed[layer]; layer = s->layers[layer].below)
        needed[layer] = true;
}

int stack_prune(struct stack *s, struct pale_err *e)
{
    own_mem bool *needed = calloc(s->layer_count + 1, sizeof(*needed));
    own_mem int *number = calloc(s->layer_count + 1, sizeof(*number));
    size_t kept = 0;
    if (!needed || !number)
        return err_nomem(e);
    mark(s, s->below_open, needed);
    for (size_t i = 0; i < s->snapshot_count; i++)
        mark(s, s->snapshots[i].layer, needed);
    for (size_t i = 0; i < s->layer_count; i++)
        if (needed[i]) {
            struct stack_layer l = s->layers[i];
            l.below = l.below == STACK_NONE ? STACK_NONE : number[l.below];
            number[i] = (int)kept;
            s->layers[kept++] = l;
        }
    s->layer_count = kept;
    kept = 0;
    for (size_t i = 0; i < s->join_count; i++) /* who stands on the last of a run stands on all of it */
        if (needed[s->joins[i].last]) {
            struct stack_join j = s->joins[i];
            j.first = number[j.first];
            j.last = number[j.last];
            s->joins[kept++] = j;
        }
    s->join_count = kept;
    for (size_t i = 0; i < s->snapshot_count; i++)
        if (s->snapshots[i].layer != STACK_NONE)
            s->snapshots[i].layer = number[s->snapshots[i].layer];
    s->below_open = s->below_open == STACK_NONE ? STACK_NONE : number[s->below_open];
    return 0;
}

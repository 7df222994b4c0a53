/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a difference into the user's tree. */
#include "tree/landing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/weak.h"
#include "tree/filecopy.h"
#include "tree/stage.h"
#include "tree/threeway.h"

/* Jobs that wait for one flush to the disk, and bytes they may hold in the hidden folder. */
#define BATCH_JOBS 1024
#define BATCH_BYTES 268435456u

static const char *const words[] = {
    [LANDING_LANDED] = "landed", [LANDING_MERGED] = "merged",   [LANDING_SAME] = "same",       [LANDING_CONFLICT] = "conflict",
    [LANDING_HELD] = "held",     [LANDING_REFUSED] = "refused", [LANDING_SKIPPED] = "skipped", [LANDING_FAILED] = "failed",
};
static_assert(sizeof(words) / sizeof(words[0]) == LANDING_RESULT_COUNT, "a word for every result");

const char *landing_word(enum landing_result result)
{
    return (unsigned)result < LANDING_RESULT_COUNT ? words[result] : "failed";
}

enum job_kind {
    JOB_PUT,    /* what is staged takes the place of what is expected */
    JOB_TAKE,   /* a file or link goes */
    JOB_REMOVE, /* a folder, which must be empty */
    JOB_MODE,   /* of a folder */
    JOB_TELL,   /* nothing: the result was known at once, and waits for its turn */
};

struct job {
    enum job_kind kind;
    char *path; /* owned */
    struct staged staged;
    struct leaf expect;
    mode_t mode;
    struct landing_report report; /* but for its path and reason, as it will be */
    char *reason;                 /* owned; may be NULL */
    char *note;                   /* owned; of the box's version, once it has landed; may be NULL */
};

struct run {
    struct landing *l;
    struct stage stage;
    bool live; /* the base of the old view is the target itself */
    struct job jobs[BATCH_JOBS];
    size_t job_count;
    uint64_t batch_bytes;
    bool must_sync; /* a job brings content */
    struct filecopy_count copied;
    int *fds; /* every tree that may hold a part of a repository */
    size_t fd_count;
    char folder[PATH_BYTES_MAX]; /* the last that was looked at for a repository, and the answer */
    bool folder_known, in_repository;
    char becomes[PATH_BYTES_MAX]; /* in a dry run: what would be a folder now; "" for none */
    char held[PATH_BYTES_MAX];    /* a folder whose replacement may not land, so that what it holds stays as well; "" for none */
};

/* The bits of a mode that are ever landed: none by which a file runs as somebody else. */
static mode_t landed_bits(mode_t mode)
{
    return mode & (weak_word("bits") ? 07777 : 0777);
}

static void tell(struct run *w, struct landing_report r, const char *path, enum landing_result result, const char *reason)
{
    r.path = path;
    r.result = result;
    r.reason = reason ? reason : "";
    w->l->count[result]++;
    if (w->l->tell)
        w->l->tell(w->l->arg, &r);
}

/* --- jobs --- */

static void job_done(struct run *w, struct job *j)
{
    stage_drop(&w->stage, &j->staged);
    free(j->path);
    free(j->reason);
    free(j->note);
    j->path = j->reason = j->note = NULL;
}

/* Root lands in other people's trees: what it makes there is theirs. The hidden folder is root's alone, so nobody can slip anything else
 * under this, as they could once it has its name in the tree. */
static int give_to_owner(struct run *w, const struct staged *st, const struct leaf *expect, int dir_fd, struct pale_err *e)
{
    struct stat owner;
    if (geteuid() != 0)
        return 0;
    if (expect->kind != LEAF_NONE)
        owner = expect->st;
    else if (fstat(dir_fd, &owner) < 0)
        return err_os(e, "look at the folder it belongs in");
    if (fchownat(w->stage.fd, st->name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(e, "give it to its owner");
    return 0;
}

/* A folder on the way to something that lands, in no view of its own. */
static int make_folder(struct run *w, int dir_fd, const char *name, struct pale_err *e)
{
    static const struct leaf none = {.kind = LEAF_NONE};
    struct staged st;
    int r = stage_folder(&w->stage, 0755, &st, e);
    if (r == 0)
        r = give_to_owner(w, &st, &none, dir_fd, e);
    if (r == 0)
        r = stage_promise(&w->stage, &st, &none, e);
    if (r == 0)
        r = stage_put(&w->stage, &st, dir_fd, name, &none, e);
    stage_drop(&w->stage, &st);
    return r;
}

/* Opens the folder that holds a path, name by name; with make, what is missing of it is made. */
static int open_parent(struct run *w, const char *path, bool make, const char **ret_name, int *ret_fd, struct pale_err *e)
{
    own_fd at = openat(w->stage.target_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name = path;
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char step[FILE_NAME_MAX + 1];
        size_t n = (size_t)(slash - name);
        if (n > FILE_NAME_MAX)
            return err_set(e, PALE_BAD_INPUT, "a name longer than %d bytes", FILE_NAME_MAX);
        memcpy(step, name, n);
        step[n] = 0;
        int next = fd_open_beneath(at, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (next < 0 && errno == ENOENT && make) {
            int r = make_folder(w, at, step, e);
            if (r < 0 && r != -PALE_BUSY) /* busy: somebody else has made it */
                return r;
            next = fd_open_beneath(at, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        }
        int os = errno;
        close(at);
        at = next;
        errno = os;
    }
    if (at < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_set(e, PALE_BUSY, "the folder it belongs in is a file or a link in your tree; nothing is followed");
    if (at < 0)
        return err_os(e, "open the folder it belongs in");
    *ret_name = name;
    *ret_fd = take_fd(&at);
    return 0;
}

static int do_remove(const struct job *j, int dir_fd, const char *name, struct pale_err *e)
{
    (void)j;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(e, PALE_BUSY, "the folder still holds something, so it stays");
    return errno == ENOTDIR || errno == ENOENT ? err_set(e, PALE_BUSY, "it was changed meanwhile") : err_os(e, "remove the folder");
}

/* Special bits that the folder has in the user's tree stay as they are. */
static int do_mode(const struct job *j, int dir_fd, const char *name, struct pale_err *e)
{
    struct leaf now;
    own_fd fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 || leaf_look_fd(fd, name, false, &now, NULL) < 0 || !leaf_is_unchanged(&j->expect, &now))
        return err_set(e, PALE_BUSY, "the folder was changed meanwhile");
    return fchmod(fd, (now.st.st_mode & 07000) | (j->mode & 0777)) < 0 ? err_os(e, "set the mode of the folder") : 0;
}

static int do_job(struct run *w, struct job *j, struct pale_err *e)
{
    own_fd dir = -1;
    const char *name = NULL;
    if (j->kind == JOB_TELL)
        return 0;
    int r = open_parent(w, j->path, j->kind == JOB_PUT, &name, &dir, e);
    if (r < 0)
        return r;
    switch (j->kind) {
    case JOB_PUT:
        r = give_to_owner(w, &j->staged, &j->expect, dir, e);
        return r < 0 ? r : stage_put(&w->stage, &j->staged, dir, name, &j->expect, e);
    case JOB_TAKE:
        return stage_take(&w->stage, dir, name, &j->expect, e);
    case JOB_REMOVE:
        return do_remove(j, dir, name, e);
    case JOB_MODE:
    case JOB_TELL:
    default:
        return do_mode(j, dir, name, e);
    }
}

/* Makes what is staged durable, then does every job that waits. */
static int flush(struct run *w, struct pale_err *e)
{
    int r = w->must_sync && w->l->durable && syncfs(w->stage.fd) < 0 ? err_os(e, "write what is to land to the disk") : 0;
    for (size_t i = 0; i < w->job_count; i++) {
        struct job *j = &w->jobs[i];
        struct pale_err why = {0};
        int done = r < 0 ? r : do_job(w, j, &why);
        /* What landed and could not be written down has landed all the same: the next landing takes it for a conflict. */
        if (done == 0 && j->note && w->l->origin.noted)
            (void)!w->l->origin.noted(w->l->origin.arg, j->note, &why);
        if (done == 0)
            tell(w, j->report, j->path, j->report.result, j->reason);
        else if (r == 0)
            tell(w, j->report, j->path, done == -PALE_BUSY ? LANDING_CONFLICT : LANDING_FAILED, why.text);
        job_done(w, j);
    }
    w->job_count = 0;
    w->batch_bytes = 0;
    w->must_sync = false;
    return r;
}

/* --- what is asked about one difference --- */

/* One difference on its way. */
struct passing {
    const struct compare_record *r;
    struct landing_report report;
    struct staged staged; /* the new thing, unless it is a dry run */
    struct threeway_thing theirs, ours, base;
    struct leaf ours_leaf;
    uint64_t born_ns; /* of the oldest layer that says something about it; 0: not known */
    char *note;
};

static void passing_done(struct passing *p)
{
    threeway_thing_done(&p->theirs);
    threeway_thing_done(&p->ours);
    threeway_thing_done(&p->base);
    free(p->note);
}

static int add_job(struct run *w, struct passing *p, enum job_kind kind, mode_t mode, const char *reason, struct pale_err *e)
{
    if (w->job_count == BATCH_JOBS || w->batch_bytes > BATCH_BYTES) {
        int r = flush(w, e);
        if (r < 0)
            return r;
    }
    struct job *j = &w->jobs[w->job_count];
    *j = (struct job){.kind = kind, .path = strdup(p->r->path), .expect = p->ours_leaf, .mode = mode, .report = p->report};
    j->reason = reason ? strdup(reason) : NULL;
    if (!j->path || (reason && !j->reason)) {
        job_done(w, j);
        return err_nomem(e);
    }
    j->staged = p->staged;
    p->staged.name[0] = 0;
    j->note = kind == JOB_TELL ? NULL : take_mem(&p->note);
    w->job_count++;
    w->must_sync = w->must_sync || (kind == JOB_PUT && p->theirs.kind == LEAF_FILE);
    return 0;
}

/* A result that needs no job is told in the order of paths all the same. */
static int tell_in_turn(struct run *w, struct passing *p, enum landing_result result, const char *reason, struct pale_err *e)
{
    p->report.result = result;
    stage_drop(&w->stage, &p->staged);
    if (w->job_count > 0)
        return add_job(w, p, JOB_TELL, 0, reason, e);
    tell(w, p->report, p->r->path, result, reason);
    return 0;
}

static bool is_wanted(const struct landing *l, const struct compare_record *r)
{
    bool is_way = r->what == COMPARE_ADDED && r->is.leaf.kind == LEAF_FOLDER; /* to something that is wanted, perhaps */
    for (size_t i = 0; i < l->path_count; i++) {
        size_t n = strlen(l->paths[i]), m = strlen(r->path);
        if (n == 0 || (strncmp(r->path, l->paths[i], n) == 0 && (r->path[n] == 0 || r->path[n] == '/')))
            return true;
        if (is_way && strncmp(l->paths[i], r->path, m) == 0 && l->paths[i][m] == '/')
            return true;
    }
    return l->path_count == 0;
}

/* Does the path lie in a folder that git would take for a repository? Walks come folder by folder, so the last answer mostly serves. */
static bool in_repository(struct run *w, const char *path)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    memcpy(folder, path, n);
    folder[n] = 0;
    if (w->folder_known && strcmp(folder, w->folder) == 0)
        return w->in_repository;
    memcpy(w->folder, folder, n + 1);
    w->folder_known = true;
    w->in_repository = false;
    while (!w->in_repository && folder[0]) {
        w->in_repository = hazard_is_repository(w->fds, w->fd_count, folder);
        char *up = strrchr(folder, '/');
        *(up ? up : folder) = 0;
    }
    /* The root itself may be bare; then its own files are the repository's, but its subfolders are not all. */
    if (!w->in_repository && n == 0)
        w->in_repository = hazard_is_repository(w->fds, w->fd_count, "");
    return w->in_repository;
}

static struct hazard class_of(struct run *w, struct passing *p)
{
    const struct compare_record *r = p->r;
    char head[HAZARD_HEAD_BYTES];
    ssize_t n = p->theirs.kind == LEAF_FILE ? pread(p->theirs.fd, head, sizeof(head), 0) : 0;
    struct hazard_question q = {
        .path = r->path,
        .kind = r->is.leaf.kind,
        .mode = r->is.leaf.st.st_mode & 07777,
        .was_mode = r->was.leaf.kind == LEAF_FILE ? r->was.leaf.st.st_mode & 07777 : 0,
        .is_new = r->was.leaf.kind != LEAF_FILE,
        .head = p->theirs.kind == LEAF_LINK ? (const void *)p->theirs.target.data : head,
        .head_len = p->theirs.kind == LEAF_LINK ? p->theirs.target.len
                    : n > 0                     ? (size_t)n
                                                : 0,
        .in_repository = in_repository(w, r->path),
        .guard = w->l->guard,
    };
    return hazard_of(&q);
}

/* Copies the new file into the hidden folder. Everything that follows looks at the copy. */
static int stage_content(struct run *w, struct passing *p, struct pale_err *e)
{
    own_fd from = -1;
    int r = view_open(w->l->is_view, &p->r->is, p->r->path, &from, e);
    if (r < 0 || w->l->dry_run) {
        p->theirs.fd = r < 0 ? -1 : take_fd(&from);
        return r;
    }
    uint64_t before = w->copied.bytes;
    r = stage_file(&w->stage, &p->staged, &p->theirs.fd, e);
    if (r == 0)
        r = filecopy_run(from, p->theirs.fd, &w->copied, e);
    w->batch_bytes += w->copied.bytes - before;
    return r;
}

static int stage_theirs(struct run *w, struct passing *p, struct pale_err *e)
{
    const struct leaf *is = &p->r->is.leaf;
    p->theirs = (struct threeway_thing){.kind = is->kind, .mode = landed_bits(is->st.st_mode), .fd = -1};
    buf_init(&p->theirs.target, PATH_BYTES_MAX);
    if (is->kind == LEAF_FILE)
        return stage_content(w, p, e);
    if (is->kind == LEAF_LINK) {
        int r = view_read_link(w->l->is_view, &p->r->is, p->r->path, &p->theirs.target, e);
        return r < 0 || w->l->dry_run ? r : stage_link(&w->stage, buf_text(&p->theirs.target), &p->staged, e);
    }
    return 0;
}

static struct timespec later(struct timespec t, long ms)
{
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static bool is_fresh(const struct leaf *l)
{
    struct timespec now;
    return l->kind != LEAF_NONE && l->kind != LEAF_FOLDER && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           !leaf_time_before(later(l->st.st_ctim, LANDING_TICK_MS), now) && leaf_time_before(l->st.st_ctim, later(now, LANDING_TICK_MS));
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* What the user has now. Written this very moment it could be written once more without a trace, so it must rest for a tick. */
static int look_at_ours(struct run *w, struct passing *p, struct pale_err *e)
{
    int r = 0;
    p->ours_leaf = (struct leaf){.kind = LEAF_NONE};
    if (w->l->dry_run && is_below(p->r->path, w->becomes))
        return threeway_open(w->l->target_fd, p->r->path, &p->ours_leaf, &p->ours, e);
    r = leaf_look(w->l->target_fd, p->r->path, false, &p->ours_leaf, e);
    /* A link that stands on the way may be one that a folder is about to take the place of. */
    if (r == -PALE_BUSY && w->job_count > 0 && (r = flush(w, e)) == 0)
        r = leaf_look(w->l->target_fd, p->r->path, false, &p->ours_leaf, e);
    if (r == 0 && is_fresh(&p->ours_leaf)) {
        nanosleep(&(struct timespec){.tv_nsec = (LANDING_TICK_MS + 5) * 1000000L}, NULL);
        r = leaf_look(w->l->target_fd, p->r->path, false, &p->ours_leaf, e);
        if (r == 0 && is_fresh(&p->ours_leaf))
            return err_set(e, PALE_BUSY, "it is being written");
    }
    return r < 0 ? r : threeway_open(w->l->target_fd, p->r->path, &p->ours_leaf, &p->ours, e);
}

/* The birth of the oldest entry that the layers have for this path, or for the nearest folder above. */
static bool birth_of(struct run *w, const char *path, struct timespec *ret)
{
    char at[PATH_BYTES_MAX];
    snprintf(at, sizeof(at), "%s", path);
    for (;;) {
        uint16_t source = 0;
        if (view_oldest(w->l->is_view, at, &source, NULL) < 0)
            return false;
        if (source > 0)
            return leaf_birth(view_fd(w->l->is_view, source), at, ret);
        char *slash = strrchr(at, '/');
        if (!slash)
            return false;
        *slash = 0;
    }
}

static uint64_t ns_of(struct timespec t)
{
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

/* Does the layer say something about the path itself: an entry, or what hides what lay there before? */
static bool says_something(int layer_fd, const char *path)
{
    char at[PATH_BYTES_MAX];
    for (size_t end = 0; path[end];) {
        struct leaf l;
        struct pale_err ignored;
        end += path[end] == '/';
        end += strcspn(path + end, "/");
        memcpy(at, path, end);
        at[end] = 0;
        if (leaf_look(layer_fd, at, true, &l, &ignored) < 0)
            return true; /* in doubt */
        if (l.kind == LEAF_NONE)
            return false;
        if (l.kind != LEAF_FOLDER || l.opaque)
            return true;
    }
    return true;
}

/* The birth of the oldest layer that says something about the path. */
static uint64_t layer_birth(struct run *w, const char *path)
{
    const struct landing *l = w->l;
    for (size_t i = 0; l->born_ns && i < l->is_view->layer_count; i++)
        if (says_something(l->is_view->layer_fds[i], path))
            return l->born_ns[i];
    return 0;
}

/* Nothing stands there. Nothing has stood there since, if the folder that would hold it, or the nearest one above, was not touched. */
static bool was_never_there(struct run *w, struct passing *p)
{
    char at[PATH_BYTES_MAX];
    struct leaf l;
    struct pale_err ignored;
    snprintf(at, sizeof(at), "%s", p->r->path);
    do {
        char *slash = strrchr(at, '/');
        *(slash ? slash : at) = 0;
        if (leaf_look(w->l->target_fd, at, false, &l, &ignored) < 0)
            return false;
    } while (l.kind == LEAF_NONE && at[0]);
    return l.kind == LEAF_FOLDER && p->born_ns && ns_of(l.st.st_ctim) <= p->born_ns;
}

/* A folder above it was moved there since: the file keeps its times, and comes from somewhere else. What is moved has a younger ctime than
 * mtime, unless something was put into it later. */
static bool came_along(struct run *w, struct passing *p)
{
    char at[PATH_BYTES_MAX];
    struct leaf l;
    struct pale_err ignored;
    snprintf(at, sizeof(at), "%s", p->r->path);
    for (char *slash = strrchr(at, '/'); slash; slash = strrchr(at, '/')) {
        *slash = 0;
        if (leaf_look(w->l->target_fd, at, false, &l, &ignored) < 0)
            return true; /* in doubt */
        if (ns_of(l.st.st_ctim) > p->born_ns && ns_of(l.st.st_mtim) < ns_of(l.st.st_ctim))
            return !weak_word("review-moved");
    }
    return false;
}

/* Rules 2 and 4 of the header. */
static bool is_untouched(struct run *w, struct passing *p)
{
    struct timespec touched = later(p->ours_leaf.st.st_ctim, LANDING_TICK_MS), birth;
    if (p->ours_leaf.kind == LEAF_NONE || p->ours_leaf.kind == LEAF_FOLDER)
        return true; /* a folder holds no work but what lies in it, and is only removed empty */
    if (w->l->born_ns && !weak_word("review-tick") ? p->born_ns && ns_of(p->ours_leaf.st.st_ctim) <= p->born_ns
                                                   : leaf_time_before(touched, w->l->born_ns ? time_of(p->born_ns) : w->l->since))
        return !w->l->born_ns || !came_along(w, p);
    return (w->l->birth_counts && birth_of(w, p->r->path, &birth) && leaf_time_before(touched, birth)) || weak_word("review-guess");
}

/* What whoever wrote it down knows of the base. */
static int ask_origin(struct run *w, struct passing *p, bool *ret_known, struct pale_err *e)
{
    const struct landing_origin *o = &w->l->origin;
    int r = 0;
    *ret_known = false;
    if (o->find_landed)
        r = o->find_landed(o->arg, p->r->path, p->born_ns, ret_known, &p->base, e);
    /* Of a version that came from elsewhere the start of the project here tells nothing. */
    if (r < 0 || *ret_known || !w->live || !o->find_start || !p->born_ns)
        return r;
    bool stands = p->ours_leaf.kind != LEAF_NONE;
    if (stands ? is_untouched(w, p) && p->ours_leaf.kind != LEAF_FOLDER : was_never_there(w, p))
        return 0;
    return o->find_start(o->arg, p->r->path, ret_known, &p->base, e);
}

/* What the box began with: opened into p->base, or what the user has now, or NULL. */
static int find_base(struct run *w, struct passing *p, const struct threeway_thing **ret, struct pale_err *e)
{
    struct leaf l = {.kind = LEAF_NONE};
    int root = w->l->origin_fd;
    bool known = false;
    p->born_ns = layer_birth(w, p->r->path);
    int r = ask_origin(w, p, &known, e);
    *ret = known ? &p->base : NULL;
    if (r == 0 && !known && root >= 0)
        r = leaf_look(root, p->r->path, false, &l, e);
    if (r < 0 || known)
        return r;
    if (l.kind == LEAF_NONE && w->live) {
        *ret = is_untouched(w, p) ? &p->ours : NULL;
        return 0;
    }
    if (l.kind == LEAF_NONE) {
        l = p->r->was.leaf;
        root = view_fd(w->l->was_view, p->r->was.source);
    }
    *ret = &p->base;
    return threeway_open(root, p->r->path, &l, &p->base, e);
}

/* --- from a difference to a job --- */

/* Gives what is staged its last form, and its promise. */
static int finish_staged(struct run *w, struct passing *p, const struct threeway *t, struct pale_err *e)
{
    if (p->theirs.kind == LEAF_FOLDER) {
        int r = stage_folder(&w->stage, t->mode, &p->staged, e);
        if (r < 0)
            return r;
    }
    if (p->theirs.kind == LEAF_FILE) {
        if (t->verdict == THREEWAY_MERGE && (ftruncate(p->theirs.fd, 0) < 0 || lseek(p->theirs.fd, 0, SEEK_SET) < 0 ||
                                             !fd_write_full(p->theirs.fd, t->merged.data, t->merged.len)))
            return err_os(e, "write the merged text");
        if (fchmod(p->theirs.fd, landed_bits(t->mode)) < 0)
            return err_os(e, "set the mode of the new file");
    }
    return stage_promise(&w->stage, &p->staged, &p->ours_leaf, e);
}

static enum job_kind kind_of_job(const struct passing *p)
{
    if (p->theirs.kind == LEAF_NONE)
        return p->ours_leaf.kind == LEAF_FOLDER ? JOB_REMOVE : JOB_TAKE;
    if (p->theirs.kind != LEAF_FOLDER)
        return JOB_PUT;
    return p->ours_leaf.kind == LEAF_FOLDER ? JOB_MODE : JOB_PUT;
}

/* The verdict carried out, or told. */
static int carry_out(struct run *w, struct passing *p, const struct threeway *t, struct pale_err *e)
{
    const char *path = p->r->path;
    const struct landing_origin *o = &w->l->origin;
    if (!w->l->dry_run && o->note && t->verdict != THREEWAY_CONFLICT && t->agrees)
        p->note = o->note(o->arg, path, &p->theirs);
    if (t->verdict == THREEWAY_NOTHING && p->note)
        (void)!o->noted(o->arg, p->note, e);
    if (t->verdict == THREEWAY_CONFLICT || t->verdict == THREEWAY_NOTHING) {
        return tell_in_turn(w, p, t->verdict == THREEWAY_NOTHING ? LANDING_SAME : LANDING_CONFLICT, t->reason, e);
    }
    p->report.path = path;
    p->report.reason = "";
    p->report.result = t->verdict == THREEWAY_MERGE ? LANDING_MERGED : LANDING_LANDED;
    if (w->l->ask && !w->l->ask(w->l->arg, &p->report, p->theirs.fd)) {
        return tell_in_turn(w, p, LANDING_SKIPPED, NULL, e);
    }
    if (w->l->dry_run) {
        if (p->theirs.kind == LEAF_FOLDER && p->ours_leaf.kind != LEAF_FOLDER && !is_below(path, w->becomes))
            snprintf(w->becomes, sizeof(w->becomes), "%s", path);
        return tell_in_turn(w, p, p->report.result, NULL, e);
    }
    enum job_kind kind = kind_of_job(p);
    int r = kind == JOB_PUT ? finish_staged(w, p, t, e) : 0;
    return r < 0 ? r : add_job(w, p, kind, t->mode, NULL, e);
}

/* What the caller wants of conflicts. Folders that hold something stay in any case: they are only removed empty. */
static void prefer(enum landing_prefer how, struct threeway *t)
{
    if (t->verdict != THREEWAY_CONFLICT || how == LANDING_PREFER_NONE)
        return;
    t->verdict = how == LANDING_PREFER_THEIRS ? THREEWAY_LAND : THREEWAY_NOTHING;
    t->mode = t->theirs->mode;
    t->reason = how == LANDING_PREFER_THEIRS ? NULL : "yours stays";
    t->agrees = true;
}

static int decide(struct run *w, struct passing *p, struct pale_err *e)
{
    const struct threeway_thing *base = NULL;
    int r = stage_theirs(w, p, e);
    if (r < 0)
        return r;
    bool folder = p->r->is.leaf.kind == LEAF_FOLDER || (p->r->is.leaf.kind == LEAF_NONE && p->r->was.leaf.kind == LEAF_FOLDER);
    if (w->l->origin.is_ignored && w->l->origin.is_ignored(w->l->origin.arg, p->r->path, folder))
        return tell_in_turn(w, p, LANDING_SKIPPED, "git ignores it; --ignored lands it", e);
    p->report.hazard = class_of(w, p);
    if (p->report.hazard.class != HAZARD_NONE && !w->l->include_guarded) {
        return tell_in_turn(w, p, LANDING_HELD, p->report.hazard.reason, e);
    }
    r = look_at_ours(w, p, e);
    if (r == 0)
        r = find_base(w, p, &base, e);
    if (r < 0)
        return r;
    struct threeway t = {.base = base, .theirs = &p->theirs, .ours = &p->ours};
    buf_init(&t.merged, 2 * TEXT_BYTES_MAX);
    if (w->l->origin.tell_base)
        r = w->l->origin.tell_base(w->l->origin.arg, p->r->path, base != NULL, base, e);
    if (r == 0)
        r = threeway_decide(&t, e);
    if (r == 0)
        prefer(w->l->prefer, &t);
    if (r == 0)
        r = carry_out(w, p, &t, e);
    buf_done(&t.merged);
    return r;
}

/* Why a difference is never landed; NULL if it may. */
static const char *why_refused(const struct compare_record *r)
{
    size_t n = strcspn(r->path, "/");
    if (n == strlen(STAGE_FOLDER) && strncasecmp(r->path, STAGE_FOLDER, n) == 0)
        return "the name is used by landings themselves";
    if (r->is.leaf.kind == LEAF_FIFO || r->is.leaf.kind == LEAF_SOCKET || r->is.leaf.kind == LEAF_DEVICE)
        return "only files, folders and links are landed";
    return NULL;
}

/* A folder is to become something else. If that will not land, nothing below may be deleted for it. */
static int foresee(struct run *w, struct passing *p, const char *refused, struct pale_err *e)
{
    int r = refused || p->r->is.leaf.kind == LEAF_NONE ? 0 : stage_theirs(w, p, e);
    stage_drop(&w->stage, &p->staged);
    if (r < 0 || refused || (class_of(w, p).class != HAZARD_NONE && !w->l->include_guarded))
        snprintf(w->held, sizeof(w->held), "%s", p->r->path);
    return 0;
}

/* What both have the same is no difference, but it began with something as well. */
static int tell_same(struct run *w, struct passing *p)
{
    struct pale_err ignored;
    const struct threeway_thing *base = NULL;
    const struct landing_origin *o = &w->l->origin;
    if (look_at_ours(w, p, &ignored) < 0 || find_base(w, p, &base, &ignored) < 0)
        return 0;
    return o->tell_base(o->arg, p->r->path, base != NULL, base, &ignored);
}

static int consider(void *arg, const struct compare_record *r, struct pale_err *e)
{
    struct run *w = arg;
    CLEANUP(passing_done)
    struct passing p = {.r = r, .report = {.what = r->what, .was_kind = r->was.leaf.kind, .is_kind = r->is.leaf.kind}};
    struct pale_err why = {0};
    p.theirs.fd = p.ours.fd = p.base.fd = -1;
    /* A folder that goes is dealt with when everything below it has been. */
    bool goes = r->was.leaf.kind == LEAF_FOLDER && r->is.leaf.kind != LEAF_FOLDER && r->what != COMPARE_TROUBLE;
    const char *refused = why_refused(r);
    if (goes && !r->leaving && !is_below(r->path, w->held))
        return foresee(w, &p, refused, &why);
    if (!is_wanted(w->l, r) || goes != r->leaving)
        return 0;
    if (r->what == COMPARE_SAME)
        return tell_same(w, &p);
    if (is_below(r->path, w->held))
        return tell_in_turn(w, &p, LANDING_HELD, "it lies in a folder that does not go either", e);
    w->held[0] = 0;
    if (r->what == COMPARE_TROUBLE || refused) {
        return tell_in_turn(w, &p, refused ? LANDING_REFUSED : LANDING_FAILED, refused ? refused : r->trouble->text, e);
    }
    int done = decide(w, &p, &why);
    stage_drop(&w->stage, &p.staged);
    if (done == -PALE_NO_MEMORY || (done < 0 && why.os == ENOSPC)) {
        *e = why;
        return done;
    }
    if (done < 0)
        return tell_in_turn(w, &p, done == -PALE_BUSY ? LANDING_CONFLICT : LANDING_FAILED, why.text, e);
    return 0;
}

static int run_stages(struct run *w, struct pale_err *e)
{
    struct landing *l = w->l;
    struct compare c = {.was_view = l->was_view,
                        .is_view = l->is_view,
                        .tell_same = l->dry_run && l->origin.tell_base,
                        .tell_leaving = true,
                        .tell = consider,
                        .arg = w};
    int r = l->dry_run ? 0 : stage_open(&w->stage, l->target_fd, e);
    if (r < 0)
        return r;
    l->kept = w->stage.kept;
    r = compare_run(&c, e);
    if (r == 0)
        r = flush(w, e);
    for (size_t i = 0; i < w->job_count; i++)
        job_done(w, &w->jobs[i]);
    if (r == 0 && l->durable && !l->dry_run && syncfs(w->stage.fd) < 0)
        r = err_os(e, "write what was landed to the disk");
    l->kept = w->stage.kept;
    if (!l->dry_run)
        stage_close(&w->stage);
    return r;
}

int landing_run(struct landing *l, struct pale_err *e)
{
    struct stat target, base;
    size_t layers = l->is_view->layer_count;
    for (size_t i = 0; i < l->path_count; i++)
        if (!view_is_path(l->paths[i]))
            return err_set(e, PALE_BAD_INPUT, "a path to be applied must be relative to the project, of plain names");
    if (fstat(l->target_fd, &target) < 0)
        return err_os(e, "look at the tree");
    own_mem struct run *w = calloc(1, sizeof(*w));
    own_mem int *fds = calloc(layers + 2, sizeof(*fds));
    if (!w || !fds)
        return err_nomem(e);
    *w = (struct run){.l = l, .stage = {.target_fd = -1, .fd = -1}, .fds = fds, .fd_count = layers + 2};
    for (size_t i = 0; i < layers; i++)
        fds[i] = l->is_view->layer_fds[i];
    fds[layers] = l->is_view->base_fd;
    fds[layers + 1] = l->target_fd;
    int was = l->was_view->base_fd;
    w->live = was >= 0 && fstat(was, &base) == 0 && base.st_dev == target.st_dev && base.st_ino == target.st_ino;
    return run_stages(w, e);
}

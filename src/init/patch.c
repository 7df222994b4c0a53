/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the builtin that applies patches.
 *
 * How it works: the patch comes over standard input and is read (init/changes.h); every file it names is read, and what becomes of it is
 * made in memory (init/hunks.h). Only when all of that has gone well is the first file written, each as a draft; what is added
 * or moved goes to a name where nothing stands. So a patch that does not fit changes nothing. One that cannot be written to its end, for
 * want of room or of rights, says which files it has written. */
#include "init/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "init/builtin.h"
#include "init/changes.h"
#include "init/draft.h"
#include "init/hunks.h"
#include "init/memory.h"
#include "init/names.h"
#include "init/tell.h"
#include "init/whole.h"

#define TOTAL_MAX (64u << 20) /* of what all files become together */

struct becoming {
    char *at;
    size_t len;
    struct stat was;
    char real[PATH_BYTES_MAX]; /* of what is changed */
};

/* One per process. */
static struct patch {
    struct whole text;
    struct changes changes;
    struct becoming *row; /* one for each change */
    size_t total;
    size_t written;
} p;

/* --- in memory --- */

static int must_not_be(const char *path, struct pale_err *e)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return err_set(e, PALE_EXISTS, "%.400s is there already; to replace it, change or remove it", path);
    return errno == ENOENT    ? 0
           : errno == ENOTDIR ? err_set(e, PALE_BAD_INPUT, "%.400s: a file stands where a folder should", path)
                              : err_os(e, "%.400s", path);
}

/* What becomes of a content. */
static int apply(const struct change *ch, const struct hunks_text *old, struct becoming *b, struct pale_err *e)
{
    size_t index_bytes = HUNKS_INDEX(old->len) * sizeof(uint32_t), out_bytes = HUNKS_OUT(old->len, p.text.len);
    uint32_t *index = memory_map(index_bytes, e);
    b->at = index ? memory_map(out_bytes, e) : NULL;
    if (!b->at)
        return -(int)e->code;
    int r = hunks_apply(&p.changes, ch, old, index, b->at, &b->len, e);
    munmap(index, index_bytes);
    p.total += r == 0 ? b->len : 0;
    if (r == 0 && (b->len > EDIT_FILE_MAX || p.total > TOTAL_MAX))
        return err_set(e, PALE_LIMIT, "%.300s would be longer than %u bytes, or all files of the patch together than %u", ch->path,
                       EDIT_FILE_MAX, TOTAL_MAX);
    return r;
}

/* A file that is there: read, and changed in memory. */
static int prepare_old(const struct change *ch, struct becoming *b, struct pale_err *e)
{
    static struct whole file;
    int r = whole_file(&file, ch->path, EDIT_FILE_MAX, e);
    if (r < 0)
        return r;
    b->was = file.st;
    memcpy(b->real, file.real, sizeof(b->real));
    r = apply(ch, &(struct hunks_text){file.at, file.len}, b, e);
    munmap(file.at, EDIT_FILE_MAX + 1);
    return r;
}

static int prepare_removal(const struct change *ch, struct becoming *b, struct pale_err *e)
{
    struct stat st;
    if (lstat(ch->path, &st) < 0)
        return err_os(e, "remove %.400s", ch->path);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "remove %.400s: it is no file", ch->path);
    if (ch->whole)
        return 0;
    int r = prepare_old(ch, b, e);
    return r == 0 && b->len > 0 ? err_set(e, PALE_BAD_INPUT, "remove %.400s: there is more in it than the patch removes", ch->path) : r;
}

static int prepare(const struct change *ch, struct becoming *b, struct pale_err *e)
{
    int r = 0;
    switch (ch->kind) {
    case CHANGE_ADD:
        r = must_not_be(ch->path, e);
        return r < 0 ? r : apply(ch, &(struct hunks_text){"", 0}, b, e);
    case CHANGE_REMOVE:
        return prepare_removal(ch, b, e);
    case CHANGE_MOVE:
        r = must_not_be(ch->to, e);
        return r < 0 ? r : prepare_old(ch, b, e);
    case CHANGE_UPDATE:
        break;
    }
    return prepare_old(ch, b, e);
}

/* --- on the disk --- */

static int make_folder_of(const char *path, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return 0;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    return names_make_parents(folder) < 0 ? err_os(e, "make folder %.400s", folder) : 0;
}

static int write_new(const char *path, const struct becoming *b, mode_t mode, struct pale_err *e)
{
    int r = make_folder_of(path, e);
    return r < 0 ? r : draft_put(path, &(struct draft_content){.p = b->at, .n = b->len, .mode = mode}, e);
}

static int move(const struct change *ch, const struct becoming *b, struct pale_err *e)
{
    int r;
    if (ch->hunks > 0) {
        r = write_new(ch->to, b, b->was.st_mode & 0777, e);
        return r < 0 || unlink(ch->path) == 0 ? r : err_os(e, "remove %.400s, which is %.200s now", ch->path, ch->to);
    }
    r = make_folder_of(ch->to, e);
    if (r == 0 && names_rename_new(AT_FDCWD, ch->path, AT_FDCWD, ch->to) < 0)
        r = err_os(e, "move %.300s to %.300s", ch->path, ch->to);
    return r;
}

static int write_one(const struct change *ch, const struct becoming *b, struct pale_err *e)
{
    switch (ch->kind) {
    case CHANGE_ADD:
        return write_new(ch->path, b, ch->executable ? 0755 : 0644, e);
    case CHANGE_REMOVE:
        return unlink(ch->path) == 0 ? 0 : err_os(e, "remove %.400s", ch->path);
    case CHANGE_MOVE:
        return move(ch, b, e);
    case CHANGE_UPDATE:
        break;
    }
    return draft_put(b->real, &(struct draft_content){.p = b->at, .n = b->len, .was = &b->was}, e);
}

/* Which files were written before one was not. */
static int tell_written(struct pale_err *e)
{
    char list[300] = "";
    size_t at = 0;
    for (size_t i = 0; i < p.written && at < sizeof(list) - 1; i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", p.changes.row[i].path);
    return p.written == 0 ? err_prefix(e, "nothing was changed: ")
                          : err_prefix(e, "%zu of %zu changes were made (%s); then: ", p.written, p.changes.count, list);
}

static int write_all(struct pale_err *e)
{
    for (; p.written < p.changes.count; p.written++)
        if (write_one(&p.changes.row[p.written], &p.row[p.written], e) < 0)
            return tell_written(e);
    return 0;
}

/* --- the request --- */

static bool tell_all(void)
{
    static const char letters[] = {[CHANGE_ADD] = 'a', [CHANGE_UPDATE] = 'c', [CHANGE_REMOVE] = 'r', [CHANGE_MOVE] = 'm'};
    for (size_t i = 0; i < p.changes.count; i++) {
        const struct change *ch = &p.changes.row[i];
        struct answer a = {.kind = ANSWER_CHANGE, .type = letters[ch->kind], .path = ch->path, .other = ch->to};
        if (!tell_answer(&a))
            return false;
    }
    struct answer end = {.kind = ANSWER_END, .files = p.changes.count};
    return tell_answer(&end) && tell_flush();
}

static int prepare_all(const char *folder, struct pale_err *e)
{
    int r = whole_input(&p.text, PATCH_TEXT_MAX, "the patch", e);
    if (r == 0)
        r = changes_parse(&p.changes, p.text.at, p.text.len, e);
    if (r == 0 && folder[0] && chdir(folder) < 0)
        r = err_os(e, "open %.400s", folder);
    if (r == 0 && !(p.row = memory_map(p.changes.count * sizeof(*p.row), e)))
        r = -(int)e->code;
    for (size_t i = 0; r == 0 && i < p.changes.count; i++)
        r = prepare(&p.changes.row[i], &p.row[i], e);
    return r < 0 ? err_prefix(e, "nothing was changed: ") : 0;
}

int patch_run(const struct msg_exec *m)
{
    struct pale_err e;
    bool check = strcmp(m->argv[2], "check") == 0;
    if (!check && strcmp(m->argv[2], "write") != 0)
        return builtin_bad_words(m);
    int r = prepare_all(m->argv[1], &e);
    if (r == 0 && !check)
        r = write_all(&e);
    if (r < 0)
        return builtin_fail(&e);
    return tell_all() ? 0 : builtin_fail_os("patch", m->argv[1]);
}

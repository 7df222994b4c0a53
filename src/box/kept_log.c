/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps, finds and drops the logs of removed boxes. */
#include "box/kept_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/gc.h"
#include "box/identity.h"
#include "box/removal.h"

#define FOLDER "removed"
#define DAY_MS UINT64_C(86400000)
#define ENTRY_NAME_MAX (BOX_ID_LEN + 1 + 20 + 1 + BOX_NAME_MAX + 1)

struct entry {
    char folder[ENTRY_NAME_MAX];
    struct kept_log k;
};

struct entries {
    struct entry *item;
    size_t count, room;
};

static void entries_done(struct entries *l)
{
    free(l->item);
}

static int removed_dir(char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    char state[PATH_BYTES_MAX];
    int r = place_state_dir(state, sizeof(state), e);
    return r < 0                                           ? r
           : path_join(ret, PATH_BYTES_MAX, state, FOLDER) ? 0
                                                           : err_set(e, PALE_LIMIT, "%s/" FOLDER ": the path is too long", state);
}

/* ID-MILLISECONDS-NAME; what has another form is not ours. */
static bool parse(const char *folder, struct entry *ret)
{
    char time[24];
    size_t id = strspn(folder, "0123456789abcdef"), digits = folder[id] == '-' ? strspn(folder + id + 1, "0123456789") : 0;
    const char *name = folder + id + 1 + digits;
    if (id == 0 || id > BOX_ID_LEN || digits == 0 || digits >= sizeof(time) || *name != '-' || !path_is_box_name(name + 1) ||
        strlen(folder) >= sizeof(ret->folder))
        return false;
    snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
    snprintf(ret->k.id, sizeof(ret->k.id), "%.*s", (int)id, folder);
    snprintf(ret->k.name, sizeof(ret->k.name), "%s", name + 1);
    snprintf(time, sizeof(time), "%.*s", (int)digits, folder + id + 1);
    return number_u64(time, UINT64_MAX, &ret->k.removed_unix_ms);
}

static int newest_first(const void *x, const void *y)
{
    uint64_t a = ((const struct entry *)x)->k.removed_unix_ms, b = ((const struct entry *)y)->k.removed_unix_ms;
    return a > b ? -1 : a < b ? 1 : strcmp(((const struct entry *)x)->folder, ((const struct entry *)y)->folder);
}

static int add(struct entries *l, const struct entry *en, struct pale_err *e)
{
    if (l->count == l->room) {
        struct entry *grown = realloc(l->item, (2 * l->room + 16) * sizeof(*grown));
        if (!grown)
            return err_nomem(e);
        l->item = grown;
        l->room = 2 * l->room + 16;
    }
    l->item[l->count++] = *en;
    return 0;
}

static int list(const char *dir, struct entries *ret, struct pale_err *e)
{
    DIR *d = opendir(dir);
    int r = 0;
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open folder %s", dir);
    for (const struct dirent *de; r == 0 && (de = readdir(d));) {
        struct entry en;
        if (parse(de->d_name, &en))
            r = add(ret, &en, e);
    }
    closedir(d);
    if (ret->count > 0)
        qsort(ret->item, ret->count, sizeof(*ret->item), newest_first);
    return r;
}

static uint64_t bytes_of(const char *dir, const char *folder)
{
    char path[PATH_BYTES_MAX];
    uint64_t sum = 0;
    DIR *d = path_join(path, sizeof(path), dir, folder) ? opendir(path) : NULL;
    for (const struct dirent *de; d && (de = readdir(d));) {
        struct stat st;
        if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    }
    if (d)
        closedir(d);
    return sum;
}

int kept_log_prune(bool only_counts, unsigned *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    CLEANUP(entries_done) struct entries l = {0};
    uint64_t now = clock_unix_ms(), sum = 0;
    int r = removed_dir(dir, e);
    *ret = 0;
    if (r == 0)
        r = list(dir, &l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++) {
        const struct entry *en = &l.item[i];
        bool is_old = en->k.removed_unix_ms + KEPT_LOG_DAYS * DAY_MS < now;
        sum += bytes_of(dir, en->folder);
        /* The newest stays, however large. */
        if (!is_old && (i == 0 || (i < KEPT_LOG_MOST && sum <= KEPT_LOG_BYTES_MAX)))
            continue;
        ++*ret;
        if (!only_counts && path_join(path, sizeof(path), dir, en->folder))
            r = removal_tree(AT_FDCWD, path, e);
    }
    return r;
}

/* The log, and all that belongs to it and is named after it. */
static int link_logs(int from_fd, int to_fd, struct pale_err *e)
{
    int fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (!d)
        return err_os(e, "open the box's state folder");
    for (const struct dirent *de; r == 0 && (de = readdir(d));) {
        bool is_log = strncmp(de->d_name, "audit", 5) == 0 || strcmp(de->d_name, "born") == 0;
        if (is_log && linkat(from_fd, de->d_name, to_fd, de->d_name, 0) < 0 && errno != EEXIST)
            r = err_os(e, "keep %s of the box that is to be removed", de->d_name);
    }
    closedir(d);
    return r;
}

static int write_last(const struct place *p, const char *path, const char *caller, bool forced, struct pale_err *e)
{
    struct audit a;
    int r = audit_open(&a, path, false, p->name, p->id, e);
    if (r < 0)
        return r;
    a.caller = caller;
    struct json *j = audit_begin(&a, "box.remove");
    if (forced)
        json_text(j, "what", "with work that may not have landed");
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

/* On a full disk, and where the log cannot be read any more, the box must be removable all the same: 1, and e says why. */
static int no_room(int r, const struct pale_err *e)
{
    return e->os == ENOSPC || e->os == EDQUOT || e->code == PALE_CORRUPT ? 1 : r;
}

int kept_log_save(const struct place *p, const char *caller, bool forced, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], audit[PATH_BYTES_MAX], name[ENTRY_NAME_MAX];
    unsigned dropped;
    ret[0] = 0;
    if (!path_join(audit, sizeof(audit), p->state, "audit") || access(audit, F_OK) < 0)
        return 0; /* nothing was ever done in it */
    int r = write_last(p, audit, caller, forced, e);
    if (r == 0)
        r = removed_dir(dir, e);
    if (r < 0 || (mkdir(dir, 0700) < 0 && errno != EEXIST))
        return r < 0 ? no_room(r, e) : no_room(err_os(e, "make folder %s", dir), e);
    snprintf(name, sizeof(name), "%s-%llu-%s", p->id, (unsigned long long)clock_unix_ms(), p->name);
    if (!path_join(ret, PATH_BYTES_MAX, dir, name) || mkdir(ret, 0700) < 0) {
        ret[0] = 0;
        return no_room(err_os(e, "make folder %s/%s", dir, name), e);
    }
    own_fd from = open(p->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_fd to = open(ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = from < 0 || to < 0 ? err_os(e, "open %s and %s", p->state, ret) : link_logs(from, to, e);
    if (r == 0)
        r = kept_log_prune(false, &dropped, e);
    if (r < 0)
        kept_log_undo(ret);
    return r < 0 ? no_room(r, e) : 0;
}

void kept_log_undo(const char *folder)
{
    if (folder[0])
        (void)!removal_tree(AT_FDCWD, folder, NULL);
}

int kept_log_find(const char *id, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    CLEANUP(entries_done) struct entries l = {0};
    int r = removed_dir(dir, e);
    if (r == 0)
        r = list(dir, &l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++) {
        if (strcmp(l.item[i].k.id, id) != 0)
            continue;
        *ret = (struct place){0};
        snprintf(ret->name, sizeof(ret->name), "%s", l.item[i].k.name);
        snprintf(ret->id, sizeof(ret->id), "%s", id);
        return path_join(ret->state, sizeof(ret->state), dir, l.item[i].folder) ? 0
                                                                                : err_set(e, PALE_LIMIT, "%s: the path is too long", dir);
    }
    return r < 0 ? r : err_set(e, PALE_NOT_FOUND, "no box with the id %s was removed in the last %d days", id, KEPT_LOG_DAYS);
}

int kept_log_each(void (*fn)(void *arg, const struct kept_log *k), void *arg, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    CLEANUP(entries_done) struct entries l = {0};
    int r = removed_dir(dir, e);
    if (r == 0)
        r = list(dir, &l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++)
        fn(arg, &l.item[i].k);
    return r;
}

int kept_log_remove(const struct place *p, bool data, const char *caller, bool forced, char ret_note[PALE_ERR_TEXT_MAX], struct pale_err *e)
{
    char folder[PATH_BYTES_MAX], link[PATH_BYTES_MAX];
    struct pale_err why = {0};
    struct stat st;
    int r = kept_log_save(p, caller, forced, folder, &why);
    snprintf(ret_note, PALE_ERR_TEXT_MAX, "%s", r == 1 ? why.text : "");
    if (r < 0) {
        if (e)
            *e = why;
        return r;
    }
    r = place_remove(p, data, e);
    /* One that was half removed does not come back; its log stays. */
    if (r < 0 && path_join(link, sizeof(link), p->state, IDENTITY_DATA) && lstat(link, &st) == 0)
        kept_log_undo(folder);
    return r < 0 ? r : gc_shared(p, e);
}

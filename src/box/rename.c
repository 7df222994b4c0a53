/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the renaming of boxes. */
#include "box/rename.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/life.h"

#define INTENT "renaming"
#define INTENT_MAX (PATH_BYTES_MAX + BOX_NAME_MAX + 2)
#define LOCK_WAIT_MS 3000
#define HOLD_OFF_TRIES 10

/* The folders in which the moves are made. */
struct ground {
    int state, boxes;
};

static void ground_close(struct ground *g)
{
    own_close(&g->boxes);
    own_close(&g->state);
}
#define own_ground CLEANUP(ground_close) struct ground

static int ground_open(struct ground *g, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = place_state_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    g->state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->state < 0 || (mkdirat(g->state, "boxes", 0700) < 0 && errno != EEXIST))
        return err_os(e, "open %s", dir);
    g->boxes = openat(g->state, "boxes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return g->boxes < 0 ? err_os(e, "open %s/boxes", dir) : 0;
}

static int lock_boxes(int boxes, int how, struct pale_err *e)
{
    int64_t until = clock_ms() + LOCK_WAIT_MS;
    while (flock(boxes, how | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(e, "lock the folder of boxes");
        if (clock_ms() > until)
            return err_set(e, PALE_BUSY, "somebody has been making, removing or renaming a box for %d s; try again", LOCK_WAIT_MS / 1000);
        usleep(1000);
    }
    return 0;
}

/* --- the moves --- */

/* From one name to another that is free. */
static int move_name(int dir, const char *from, const char *to)
{
    struct stat st;
    if (syscall(SYS_renameat2, dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    /* Some file systems know no flags. There a folder takes the place of an empty one at most. */
    if (errno != EINVAL || fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -1;
    return renameat(dir, from, dir, to);
}

/* A folder of ours gets another name; one that has it already was moved before. On the way back one that was never moved has its old name,
 * and what has the new one is somebody else's. */
static int move_dir(int dir, const char *from, const char *to, bool back, struct pale_err *e)
{
    struct stat st;
    if (back && fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    bool there = fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT)
        return err_os(e, "look at %s", from);
    if (!there && fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_os(e, "look at %s", to);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return err_set(e, PALE_DENIED, "%s is no folder of yours", there ? from : to);
    if (there && move_name(dir, from, to) < 0)
        return errno == EEXIST ? err_set(e, PALE_EXISTS, "%s is there already", to) : err_os(e, "rename %s to %s", from, to);
    return 0;
}

/* The id is a digest: this says whose. */
static int point_link(int boxes, const struct place *to, struct pale_err *e)
{
    char now[PATH_BYTES_MAX];
    own_fd dir = openat(boxes, to->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", to->state);
    ssize_t n = readlinkat(dir, "data", now, sizeof(now));
    if (n == (ssize_t)strlen(to->data) && memcmp(now, to->data, (size_t)n) == 0)
        return 0;
    if (unlinkat(dir, ".data.new", 0) < 0 && errno != ENOENT)
        return err_os(e, "write %s/data", to->state);
    if (symlinkat(to->data, dir, ".data.new") < 0 || renameat(dir, ".data.new", dir, "data") < 0)
        return err_os(e, "write %s/data", to->state);
    return 0;
}

/* The folder that holds a box's data, by a way without a symlink: it had none when the box was found. */
static int open_above(const struct place *p, struct pale_err *e)
{
    char above[PATH_BYTES_MAX];
    const char *slash = strrchr(p->data, '/');
    snprintf(above, sizeof(above), "%.*s", (int)(slash - p->data - 1), p->data + 1);
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dir = root < 0 ? -1 : fd_open_beneath(root, above[0] ? above : ".", O_RDONLY | O_DIRECTORY, 0);
    return dir < 0 ? err_os(e, "open the folder that holds %s", p->data) : dir;
}

/* All that is not done yet of the way from one to the other. */
static int move_box(const struct ground *g, const struct place *from, const struct place *to, bool back, struct pale_err *e)
{
    own_fd above = open_above(from, e);
    int r = above < 0 ? above : move_dir(g->boxes, from->id, to->id, back, e);
    if (r == 0)
        r = move_dir(above, from->name, to->name, back, e);
    if (r == 0)
        r = point_link(g->boxes, to, e);
    /* Before the intent goes. */
    if (r == 0 && (fsync(g->boxes) < 0 || fsync(above) < 0) && errno != EINVAL)
        r = err_os(e, "write the new name of %s to the disk", from->name);
    return r;
}

static void audit_failure(const struct place *from, const struct place *to, const char *why)
{
    char path[PATH_BYTES_MAX];
    struct audit a;
    snprintf(path, sizeof(path), "%s/audit", from->state);
    if (audit_open(&a, path, AUDIT_BOX, from->name, from->id, NULL) < 0)
        return;
    struct json *j = audit_begin(&a, "box.rename.failed");
    json_text(j, "to", to->name);
    json_text(j, "reason", why);
    (void)!audit_commit(&a, NULL);
    audit_close(&a);
}

/* Takes the way to its end, or, where that cannot be, back. 0 only if the box has its new name. If neither is to be had the intent stays,
 * for somebody who can. */
static int carry_out(const struct ground *g, const struct place *from, const struct place *to, struct pale_err *e)
{
    struct pale_err why = {0}, back = {0};
    int r = move_box(g, from, to, false, &why);
    if (r < 0 && move_box(g, to, from, true, &back) < 0)
        return err_set(e, back.code, "box %s is half renamed to %s: %.200s; and back: %.200s", from->name, to->name, why.text, back.text);
    if (r < 0)
        audit_failure(from, to, why.text);
    if (unlinkat(g->state, INTENT, 0) < 0 && errno != ENOENT && r == 0)
        return err_os(e, "remove %s", INTENT);
    return r < 0 ? err_set(e, why.code, "%s", why.text) : 0;
}

/* --- the intent --- */

static int write_intent(const struct ground *g, const struct place *from, const struct place *to, struct pale_err *e)
{
    char text[INTENT_MAX];
    int n = snprintf(text, sizeof(text), "%s\n%s", to->name, from->data);
    if (n < 0 || (size_t)n >= sizeof(text))
        return err_set(e, PALE_LIMIT, "the path of %s is too long", from->name);
    int r = fd_write_new(g->state, INTENT, text, (size_t)n, 0600, true, e);
    if (r == 0 && fsync(g->state) < 0 && errno != EINVAL) {
        r = err_os(e, "write %s to the disk", INTENT);
        unlinkat(g->state, INTENT, 0);
    }
    return r;
}

/* The place of that name beside another. */
static int beside(const struct place *p, const char *name, struct place *ret, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], data[PATH_BYTES_MAX];
    const char *slash = strrchr(p->data, '/');
    int r = place_check_name(name, e);
    if (r < 0)
        return r;
    snprintf(dir, sizeof(dir), "%.*s", (int)(slash - p->data), p->data);
    if (!path_join(data, sizeof(data), dir, name))
        return err_set(e, PALE_BAD_INPUT, "the path of %s is too long", name);
    return place_of(data, ret, e);
}

/* 1 and the two places, or 0: nobody means anything. */
static int read_intent(const struct ground *g, struct place *ret_from, struct place *ret_to, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, INTENT_MAX);
    own_fd fd = openat(g->state, INTENT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", INTENT);
    int r = fd_read_all(fd, &text, e);
    if (r < 0)
        return err_prefix(e, "%s", INTENT);
    char *name = (char *)buf_text(&text), *path = strchr(name, '\n');
    if (!path || strlen(name) != text.len || path[1] != '/')
        return err_set(e, PALE_CORRUPT, "%s, which says what box was to be renamed, cannot be read", INTENT);
    *path++ = 0;
    if ((r = place_of(path, ret_from, e)) == 0)
        r = beside(ret_from, name, ret_to, e);
    return r < 0 ? err_prefix(e, "%s", INTENT) : 1;
}

/* The box's lock, as its keeper takes it: 1 if a keeper has it. */
static int lock_box(const struct ground *g, const struct place *p, int flags, int *ret_fd, struct pale_err *e)
{
    char path[BOX_ID_LEN + 8];
    snprintf(path, sizeof(path), "%s/lock", p->id);
    own_fd fd = openat(g->boxes, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return errno == ENOENT && !(flags & O_CREAT) ? 0 : err_os(e, "open %s/lock", p->state);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 1 : err_os(e, "lock %s/lock", p->state);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* The folder of boxes is ours alone. */
static int settle_locked(const struct ground *g, struct pale_err *e)
{
    struct place from, to;
    own_fd lock = -1;
    int r = read_intent(g, &from, &to, e);
    if (r <= 0)
        return r;
    if ((r = lock_box(g, &from, 0, &lock, e)) < 0)
        return r;
    /* Somebody who found the box before has started it: nothing was moved yet, and nothing will be. */
    if (r == 1)
        return unlinkat(g->state, INTENT, 0) < 0 ? err_os(e, "remove %s", INTENT) : 0;
    struct pale_err why = {0};
    r = carry_out(g, &from, &to, &why);
    /* What was taken back is settled too. */
    if (r < 0 && faccessat(g->state, INTENT, F_OK, 0) == 0)
        return err_set(e, why.code, "%s", why.text);
    return 0;
}

static int intent_is_there(struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int r = place_state_dir(path, sizeof(path) - sizeof("/" INTENT), e);
    if (r < 0)
        return r;
    memcpy(path + strlen(path), "/" INTENT, sizeof("/" INTENT));
    if (access(path, F_OK) == 0)
        return 1;
    return errno == ENOENT ? 0 : err_os(e, "look for %s", path);
}

int rename_settle(struct pale_err *e)
{
    own_ground g = {-1, -1};
    int r = intent_is_there(e);
    if (r <= 0)
        return r;
    if ((r = ground_open(&g, e)) == 0 && (r = lock_boxes(g.boxes, LOCK_EX, e)) == 0)
        r = settle_locked(&g, e);
    return r;
}

int rename_hold_off(int *ret_fd, struct pale_err *e)
{
    own_ground g = {-1, -1};
    int r = ground_open(&g, e);
    for (int tries = 0; r == 0 && tries < HOLD_OFF_TRIES; tries++) {
        if ((r = lock_boxes(g.boxes, LOCK_SH, e)) < 0 || (r = intent_is_there(e)) < 0)
            return r;
        if (r == 0) {
            *ret_fd = take_fd(&g.boxes);
            return 0;
        }
        /* Somebody was killed over it just now. */
        flock(g.boxes, LOCK_UN);
        r = rename_settle(e);
    }
    return r < 0 ? r : err_set(e, PALE_BUSY, "boxes are renamed again and again; try once more");
}

int rename_hold_alone(int *ret_fd, struct pale_err *e)
{
    own_ground g = {-1, -1};
    int r = ground_open(&g, e);
    *ret_fd = r == 0 && flock(g.boxes, LOCK_EX | LOCK_NB) == 0 && intent_is_there(NULL) == 0 ? take_fd(&g.boxes) : -1;
    return r;
}

/* --- from the beginning --- */

/* The name is free, and nothing is left of a box that had it. */
static int check_free(const struct ground *g, const struct place *to, struct pale_err *e)
{
    struct stat st;
    own_fd above = open_above(to, e);
    if (above < 0)
        return above;
    if (fstatat(above, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, PALE_EXISTS, "there is already %s; choose another name, or `pale rm` that box first", to->data);
    if (errno != ENOENT)
        return err_os(e, "look at %s", to->data);
    /* Of a box without data only somebody who was killed while he removed it has left this. */
    return fd_remove_tree(g->boxes, to->id, e);
}

/* Before the deed. The log goes with the box, so that its chain goes on under the new name. */
static int audit_rename(const struct place *from, const struct place *to, const char *caller, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct audit a;
    snprintf(path, sizeof(path), "%s/audit", from->state);
    int r = audit_open(&a, path, AUDIT_BOX, from->name, from->id, e);
    if (r < 0)
        return r;
    a.caller = caller;
    struct json *j = audit_begin(&a, "box.rename");
    json_text(j, "to", to->name);
    json_text(j, "to_id", to->id);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

int rename_box(const struct place *p, const char *name, const char *caller, struct place *ret, struct pale_err *e)
{
    own_ground g = {-1, -1};
    own_fd lock = -1;
    struct place to;
    char policy[BOX_ID_LEN + 8];
    if (strcmp(p->name, name) == 0)
        return err_set(e, PALE_EXISTS, "box %s has that name already", name);
    int r = beside(p, name, &to, e);
    if (r < 0 || (r = ground_open(&g, e)) < 0 || (r = lock_boxes(g.boxes, LOCK_EX, e)) < 0 || (r = settle_locked(&g, e)) < 0)
        return r;
    /* Somebody else may have renamed or removed it since it was found. */
    snprintf(policy, sizeof(policy), "%s/policy", p->id);
    if (faccessat(g.boxes, policy, F_OK, 0) < 0)
        return errno == ENOENT ? err_set(e, PALE_NOT_FOUND, "box %s is not there any more", p->name) : err_os(e, "look for its policy");
    if ((r = lock_box(&g, p, O_CREAT, &lock, e)) != 0)
        return r < 0 ? r : err_set(e, PALE_BUSY, "box %s is running; `pale stop %s` it first", p->name, p->name);
    /* What a killed keeper left has the old id in its name: nobody would look for it again. */
    if ((r = life_clear(p, e)) < 0 || (r = check_free(&g, &to, e)) < 0 || (r = audit_rename(p, &to, caller, e)) < 0 ||
        (r = write_intent(&g, p, &to, e)) < 0 || (r = carry_out(&g, p, &to, e)) < 0)
        return r;
    *ret = to;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Mints ids of boxes, and compares what a box's folders say of it. */
#include "box/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/weak.h"

#define HEX "0123456789abcdef"

int identity_mint(char ret[BOX_ID_LEN + 1], struct pale_err *e)
{
    uint8_t random[BOX_ID_LEN / 2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_os(e, "getrandom");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(ret + 2 * i, 3, "%02x", random[i]);
    return 0;
}

bool identity_is_id(const char *text)
{
    return strlen(text) == BOX_ID_LEN && strspn(text, HEX) == BOX_ID_LEN;
}

bool identity_read(int dir_fd, const char *link, char ret[BOX_ID_LEN + 1])
{
    char text[BOX_ID_LEN + 2] = "";
    ssize_t n = readlinkat(dir_fd, link, text, sizeof(text) - 1);
    if (n != BOX_ID_LEN || !identity_is_id(text))
        return false;
    memcpy(ret, text, BOX_ID_LEN + 1);
    return true;
}

bool identity_is_at(const char *data, const char *id)
{
    char found[BOX_ID_LEN + 1];
    own_fd dir = open(data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir >= 0 && identity_read(dir, IDENTITY_ID, found) && strcmp(found, id) == 0;
}

bool identity_recorded(const char *state, const char *link, char ret[PATH_BYTES_MAX])
{
    char path[PATH_BYTES_MAX], text[PATH_BYTES_MAX];
    if (!path_join(path, sizeof(path), state, link))
        return false;
    ssize_t n = readlink(path, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(text, '/');
    memcpy(ret, text, strlen(text) + 1);
    return text[0] == '/' && slash != text && path_is_box_name(slash + 1);
}

static bool is_there(const char *dir, const char *name)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    return path_join(path, sizeof(path), dir, name) && lstat(path, &st) == 0;
}

/* Such a box's id was the beginning of the digest of its path. */
static bool is_old(const struct place *p)
{
    char hex[SHA256_HEX], state[PATH_BYTES_MAX], boxes[PATH_BYTES_MAX], old[PATH_BYTES_MAX];
    sha256_hex(p->data, strlen(p->data), hex);
    hex[IDENTITY_OLD_LEN] = 0;
    return place_state_dir(state, sizeof(state), NULL) == 0 && path_join(boxes, sizeof(boxes), state, "boxes") &&
           path_join(old, sizeof(old), boxes, hex) && is_there(old, "policy");
}

/* Its state folder is there: does that say that it is here? */
static enum identity_kind compare_places(struct place *p, int dir_fd, char *ret_other)
{
    char on_the_way[PATH_BYTES_MAX];
    struct stat here, there;
    if (identity_recorded(p->state, IDENTITY_MOVING, on_the_way)) {
        if (strcmp(on_the_way, p->data) == 0)
            return IDENTITY_WHOLE;
        if (identity_is_at(on_the_way, p->id)) {
            memcpy(ret_other, on_the_way, PATH_BYTES_MAX);
            return IDENTITY_COPIED;
        }
    }
    if (!identity_recorded(p->state, IDENTITY_DATA, ret_other))
        return IDENTITY_STATELESS;
    if (strcmp(ret_other, p->data) == 0)
        return IDENTITY_WHOLE;
    if (!identity_is_at(ret_other, p->id))
        return IDENTITY_MOVED;
    /* The same folder by another path, as of a bind mount, is the same box. */
    if (fstat(dir_fd, &here) == 0 && stat(ret_other, &there) == 0 && here.st_ino == there.st_ino && here.st_dev == there.st_dev) {
        /* It goes by the path that it was made at, unless that is one through a symlink by now. */
        own_fd real = fd_open_real_dir(ret_other);
        if (real >= 0 || weak_word("real-paths"))
            memcpy(p->data, ret_other, sizeof(p->data));
        return IDENTITY_WHOLE;
    }
    return IDENTITY_COPIED;
}

int identity_look(struct place *p, enum identity_kind *ret, char *ret_other, struct pale_err *e)
{
    char born[BOX_ID_LEN + 1];
    ret_other[0] = 0;
    own_fd dir = open(p->data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno != ENOENT)
        return err_os(e, "open %s", p->data);
    if (dir < 0 || !identity_read(dir, IDENTITY_ID, p->id)) {
        *ret = dir < 0 ? IDENTITY_NO_FOLDER : is_old(p) ? IDENTITY_OLD : IDENTITY_UNMARKED;
        return 0;
    }
    int r = place_complete(p, e);
    if (r < 0)
        return r;
    own_fd state = open(p->state, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0 && errno != ENOENT)
        return err_os(e, "open %s", p->state);
    if (state < 0 || !identity_read(state, IDENTITY_BORN, born) || strcmp(born, p->id) != 0)
        *ret = IDENTITY_STATELESS;
    else if (is_there(p->state, IDENTITY_REMOVING))
        *ret = IDENTITY_REMOVED;
    else
        *ret = compare_places(p, dir, ret_other);
    if (*ret == IDENTITY_WHOLE && faccessat(state, "policy", F_OK, 0) < 0) {
        if (errno != ENOENT)
            return err_os(e, "look for %s/policy", p->state);
        *ret = IDENTITY_STATELESS;
    }
    if (weak_word("identity") && (*ret == IDENTITY_MOVED || *ret == IDENTITY_COPIED))
        *ret = IDENTITY_WHOLE;
    return 0;
}

int identity_refuse(const struct place *p, enum identity_kind kind, const char *other, struct pale_err *e)
{
    switch (kind) {
    case IDENTITY_WHOLE:
        return 0;
    case IDENTITY_OLD:
        return err_set(
            e, PALE_CONFLICT,
            "%s is a box of an earlier version of pale, which this one does not open; nothing of it is changed: take what you need "
            "from %s/layers, then move it away",
            p->data, p->data);
    case IDENTITY_UNMARKED:
        return err_set(
            e, PALE_CONFLICT,
            "%s was not made by you on this host: it has no id, as if it had come with a repository; move it away, then `pale create %s`",
            p->data, p->name);
    case IDENTITY_STATELESS:
        if (access(p->state, F_OK) == 0)
            return err_set(e, PALE_CONFLICT,
                           "%s is what was kept of box %.8s… when it was removed; `pale adopt %s` makes a box of it, `pale forget %s` "
                           "gives up the rest",
                           p->data, p->id, p->name, p->id);
        return err_set(
            e, PALE_CONFLICT,
            "%s was not made by you on this host: your state folder knows no box %.8s…; `pale adopt %s` makes a box of it, or move it away",
            p->data, p->id, p->name);
    case IDENTITY_MOVED:
        return err_set(e, PALE_CONFLICT,
                       "%s was moved: box %.8s… was made at %s; `pale adopt %s` lets it be here, `pale forget %s` gives it up", p->data,
                       p->id, other, p->name, p->id);
    case IDENTITY_COPIED:
        return err_set(
            e, PALE_CONFLICT,
            "%s is a copy of the folder of box %.8s…, which is at %s; `pale adopt %s` makes a fork of that box here, or move the copy away",
            p->data, p->id, other, p->name);
    case IDENTITY_REMOVED:
        return err_set(e, PALE_NOT_FOUND, "box %s is being removed, or somebody was stopped over it; `pale gc` finishes that", p->name);
    case IDENTITY_NO_FOLDER:
        break;
    }
    return err_set(e, PALE_NOT_FOUND, "there is no box %s", p->name);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the .pale folders of projects by the links in the user's state folder. */
#include "box/projects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "box/identity.h"
#include "box/place.h"

struct list {
    char **at;
    size_t count, room;
};

static void list_done(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->at[i]);
    free(l->at);
}

static int add(struct list *l, const char *path, struct pale_err *e)
{
    for (size_t i = l->count; i-- > 0;) /* boxes of one project mostly come together */
        if (strcmp(l->at[i], path) == 0)
            return 0;
    if (l->count == l->room) {
        char **more = realloc(l->at, (l->room + 32) * sizeof(*more));
        if (!more)
            return err_nomem(e);
        l->at = more;
        l->room += 32;
    }
    if (!(l->at[l->count] = strdup(path)))
        return err_nomem(e);
    l->count++;
    return 0;
}

/* The .pale of a box, of one of the links to its folder; false if it is in none. */
static bool pale_of(int boxes, const char *id, const char *which, char ret[PATH_BYTES_MAX])
{
    char link[FILE_NAME_MAX + 16], text[PATH_BYTES_MAX];
    static const char last[] = "/.pale";
    snprintf(link, sizeof(link), "%s/%s", id, which);
    ssize_t n = readlinkat(boxes, link, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    char *slash = strrchr(text, '/');
    if (text[0] != '/' || !slash || slash < text + sizeof(last) - 1)
        return false;
    *slash = 0;
    memcpy(ret, text, strlen(text) + 1);
    return strcmp(slash - (sizeof(last) - 1), last) == 0;
}

static int find(struct list *l, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    int r = place_state_dir(dir, sizeof(dir) - 8, e);
    if (r < 0)
        return r;
    memcpy(dir + strlen(dir), "/boxes", 7);
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "open %s", dir);
    for (const struct dirent *en; r == 0 && (en = readdir(d));) {
        /* One that is on its way is at the one place or the other. */
        if (en->d_name[0] != '.' && pale_of(dirfd(d), en->d_name, IDENTITY_DATA, path))
            r = add(l, path, e);
        if (r == 0 && en->d_name[0] != '.' && pale_of(dirfd(d), en->d_name, IDENTITY_MOVING, path))
            r = add(l, path, e);
    }
    closedir(d);
    return r;
}

int projects_each(int (*fn)(void *arg, const char *pale, struct pale_err *e), void *arg, struct pale_err *e)
{
    CLEANUP(list_done) struct list l = {0};
    int r = find(&l, e);
    for (size_t i = 0; r >= 0 && i < l.count; i++)
        r = fn(arg, l.at[i], e);
    return r < 0 ? r : 0;
}

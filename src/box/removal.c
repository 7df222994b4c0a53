/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the removing of what a box wrote. */
#include "box/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/errand.h"
#include "confine/seclusion.h"

#define CONTESTS_MAX 100 /* rounds that found a folder full which was empty, as somebody else removes it too */

struct removal {
    int dirfd;
    const char *name;
};

static int empty(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const int *fd = arg;
    (void)step;
    (void)ret;
    return fd_empty_tree(*fd, e);
}

static int remove_secluded(void *arg, struct pale_err *e)
{
    const struct removal *m = arg;
    own_fd fd = fd_open_own(m->dirfd, m->name);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", m->name);
    const struct landlock_place place = {fd, LANDLOCK_WRITE};
    const struct seclusion s = {.places = &place, .place_count = 1};
    for (unsigned contested = 0;; contested++) {
        int r = seclusion_run(&s, empty, &fd, NULL, 0, e);
        if (r < 0 || unlinkat(m->dirfd, m->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return r;
        if (errno != ENOTEMPTY || contested == CONTESTS_MAX)
            return err_os(e, "remove folder %s", m->name);
    }
}

int removal_tree(int dirfd, const char *name, struct pale_err *e)
{
    struct ids ids;
    struct removal m = {dirfd, name};
    int r = remove_secluded(&m, e);
    if (r != -PALE_DENIED || ids_choose(&ids, 0, IDS_WANT_MANY, NULL) < 0 || ids.kind != IDS_RANGE)
        return r;
    return errand_run(&ids, remove_secluded, &m, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns shadow folders. */
#include "agents/shadow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/sha256.h"
#include "box/place.h"

#define SHADOWS_MAX 64 /* of one harness in one project at once */

static int agents_dir(char *ret, size_t cap, struct pale_err *e)
{
    int r = place_runtime_dir(ret, cap - 8, e);
    if (r < 0)
        return r;
    memcpy(ret + strlen(ret), "/agents", 8);
    return mkdir(ret, 0700) < 0 && errno != EEXIST ? err_os(e, "make folder %s", ret) : 0;
}

int shadow_name(struct shadow *s, const char *harness, const char *project, unsigned number, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], hex[SHA256_HEX], suffix[16] = "";
    int r = place_runtime_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    sha256_hex(project, strlen(project), hex);
    if (number > 1)
        snprintf(suffix, sizeof(suffix), "-%u", number);
    *s = (struct shadow){.dir_fd = -1, .lock_fd = -1};
    snprintf(s->path, sizeof(s->path), "%s/agents/%s-%.12s%s", dir, harness, hex, suffix);
    snprintf(s->work, sizeof(s->work), "%s/work", s->path);
    snprintf(s->home, sizeof(s->home), "%s/home", s->path);
    return 0;
}

/* The lock stands beside the folder and goes with it. Who gets one that has no name any more got it too late. 1: ours, 0: taken. */
static int lock(struct shadow *s, int agents_fd, const char *name, struct pale_err *e)
{
    char file[96];
    struct stat st;
    snprintf(file, sizeof(file), "%s.lock", name);
    for (;;) {
        s->lock_fd = openat(agents_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (s->lock_fd < 0)
            return err_os(e, "open %s", file);
        bool mine = flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0, taken = !mine && errno == EWOULDBLOCK;
        if (mine && fstat(s->lock_fd, &st) == 0 && st.st_nlink > 0)
            return 1;
        own_close(&s->lock_fd);
        if (!mine)
            return taken ? 0 : err_set(e, PALE_OS, "%s cannot be locked", file);
    }
}

static int fill(struct shadow *s, int agents_fd, const char *name, struct pale_err *e)
{
    int r = fd_remove_tree(agents_fd, name, e);
    if (r < 0)
        return r;
    if (mkdirat(agents_fd, name, 0700) < 0)
        return err_os(e, "make %s", s->path);
    s->dir_fd = openat(agents_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir_fd < 0 || mkdirat(s->dir_fd, "work", 0700) < 0 || mkdirat(s->dir_fd, "home", 0700) < 0)
        return err_os(e, "make %s", s->path);
    return 0;
}

int shadow_open(struct shadow *s, const char *harness, const char *project, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    int r = agents_dir(dir, sizeof(dir), e);
    if (r < 0)
        return r;
    own_fd agents = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (agents < 0)
        return err_os(e, "open %s", dir);
    for (unsigned number = 1; number <= SHADOWS_MAX; number++) {
        if ((r = shadow_name(s, harness, project, number, e)) < 0)
            return r;
        const char *name = strrchr(s->path, '/') + 1;
        r = lock(s, agents, name, e);
        if (r == 0)
            continue;
        r = r < 0 ? r : fill(s, agents, name, e);
        if (r < 0)
            own_close(&s->lock_fd);
        return r;
    }
    return err_set(e, PALE_LIMIT, "%d of %s run in this project already", SHADOWS_MAX, harness);
}

void shadow_close(struct shadow *s)
{
    if (s->dir_fd >= 0) {
        own_fd agents = openat(s->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char file[PATH_BYTES_MAX];
        own_close(&s->dir_fd);
        (void)!fd_remove_tree(agents, strrchr(s->path, '/') + 1, NULL);
        snprintf(file, sizeof(file), "%s.lock", strrchr(s->path, '/') + 1);
        (void)unlinkat(agents, file, 0);
    }
    own_close(&s->lock_fd);
}

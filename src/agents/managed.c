/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look at a site's settings. The files are root's, so they are trusted to be what the site wants, not to be well formed. */
#include "agents/managed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/jsonread.h"
#include "base/limits.h"

struct look {
    const struct managed_file *file;
    void (*tell)(void *arg, bool defeats, const char *path, const char *text);
    void *arg;
    bool defeated;
    struct sha256 *digest;
};

static void found(struct look *l, bool defeats, const char *path, const char *text)
{
    l->defeated = l->defeated || defeats;
    l->tell(l->arg, defeats, path, text);
}

/* "false", null and 0 are as good as absent. */
static bool says_yes(const struct jsonread *v)
{
    return v->kind != JSONREAD_FALSE && v->kind != JSONREAD_NULL && !(v->kind == JSONREAD_NUMBER && v->len == 1 && v->at[0] == '0');
}

static int look_at(struct look *l, const char *path, struct pale_err *e)
{
    own_buf b = {0};
    struct jsonread v, m;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_os(e, "read %s, the site's settings", path);
    buf_init(&b, MANAGED_BYTES_MAX);
    int r = fd_read_all(fd, &b, e);
    if (r < 0)
        return err_prefix(e, "%s, the site's settings", path);
    sha256_add(l->digest, path, strlen(path) + 1);
    sha256_add(l->digest, b.data, b.len);
    if (!l->file->key) {
        found(l, l->file->defeats, path, l->file->text);
        return 0;
    }
    if (!jsonread_parse((const char *)b.data, b.len, &v) || v.kind != JSONREAD_OBJECT) {
        found(l, true, path, "is no JSON that can be read here, so nobody can say what it sets");
        return 0;
    }
    for (const struct managed_key *k = l->file->key; k->name; k++)
        if (jsonread_get(&v, k->name, &m) && says_yes(&m))
            found(l, k->defeats, path, k->text);
    return 0;
}

static int look_below(struct look *l, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    int r = 0, seen = 0;
    DIR *dir = opendir(l->file->path);
    if (!dir)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_os(e, "read %s, the site's settings", l->file->path);
    for (struct dirent *d; r == 0 && (d = readdir(dir));) {
        size_t n = strlen(d->d_name);
        if (d->d_name[0] == '.' || n < 6 || strcmp(d->d_name + n - 5, ".json") != 0)
            continue;
        if (++seen > MANAGED_FILES_MAX)
            r = err_set(e, PALE_LIMIT, "%s holds more than %d files", l->file->path, MANAGED_FILES_MAX);
        else if (snprintf(path, sizeof(path), "%s%s", l->file->path, d->d_name) < (int)sizeof(path))
            r = look_at(l, path, e);
    }
    closedir(dir);
    return r;
}

int managed_look(const struct managed_file *files, void (*tell)(void *arg, bool defeats, const char *path, const char *text), void *arg,
                 bool *ret_defeated, struct sha256 *digest, struct pale_err *e)
{
    struct look l = {.tell = tell, .arg = arg, .digest = digest};
    int r = 0;
    for (l.file = files; r == 0 && l.file && l.file->path; l.file++)
        r = l.file->path[strlen(l.file->path) - 1] == '/' ? look_below(&l, e) : look_at(&l, l.file->path, e);
    *ret_defeated = l.defeated;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a log that may grow. */
#include "cli/trail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/far.h"

void trail_close(struct trail *t)
{
    if (t->file)
        fclose(t->file);
    free(t->line);
    buf_done(&t->text);
    door_close(&t->door);
}

int trail_open(struct trail *t, const struct args *a, const char *box, struct pale_err *e)
{
    buf_init(&t->text, REMOTE_ANSWER_MAX);
    return door_find(&t->door, a, box, e);
}

static int next_here(struct trail *t, const char **ret, size_t *ret_len, struct pale_err *e)
{
    char path[PATH_BYTES_MAX + 16];
    snprintf(path, sizeof(path), "%s/audit", t->door.place.state);
    if (!t->file && !(t->file = fopen(path, "re")))
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    long at = ftell(t->file);
    clearerr(t->file);
    ssize_t n = getline(&t->line, &t->cap, t->file);
    if (n <= 0)
        return 0;
    /* One that is being written comes with the next call. */
    if (t->line[n - 1] != '\n')
        return fseek(t->file, at, SEEK_SET) < 0 ? err_os(e, "read %s", path) : 0;
    t->line[n - 1] = 0;
    *ret = t->line;
    *ret_len = (size_t)n - 1;
    return 1;
}

static int next_far(struct trail *t, const char **ret, size_t *ret_len, struct pale_err *e)
{
    if (t->at == t->text.len) {
        buf_clear(&t->text);
        t->at = 0;
        int r = far_log(&t->door, &t->offset, &t->text, e);
        if (r < 0)
            return r == -PALE_NOT_FOUND && strstr(e->text, "none yet") ? 0 : r;
    }
    const char *from = (const char *)t->text.data + t->at, *end = t->at < t->text.len ? memchr(from, '\n', t->text.len - t->at) : NULL;
    if (!end)
        return 0;
    *ret = from;
    *ret_len = (size_t)(end - from);
    t->at += *ret_len + 1;
    return 1;
}

int trail_next(struct trail *t, const char **ret, size_t *ret_len, struct pale_err *e)
{
    return t->door.is_far ? next_far(t, ret, ret_len, e) : next_here(t, ret, ret_len, e);
}

int trail_skip(struct trail *t, struct pale_err *e)
{
    const char *line;
    size_t n;
    int r;
    while ((r = trail_next(t, &line, &n, e)) == 1)
        ;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the log of checkpoints. */
#include "box/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "box/life.h"
#include "box/place.h"

static int log_path(char *ret, size_t cap, struct pale_err *e)
{
    int r = place_state_dir(ret, cap - 32, e);
    if (r == 0)
        memcpy(ret + strlen(ret), "/checkpoints", 13);
    return r;
}

struct taking {
    unsigned count;
    char path[PATH_BYTES_MAX];
    struct pale_err *e;
};

/* What was taken last stands beside the log too, so that most boxes need no look into the long one. */
static bool is_known(int dir, const char *text)
{
    char old[SHA256_HEX + 32] = "";
    own_fd fd = openat(dir, "checkpoint", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fd_read_full(fd, old, sizeof(old) - 1) > 0 && strcmp(old, text) == 0;
}

static int write_record(struct taking *t, const struct place *p, const struct audit_anchor *a)
{
    struct audit log;
    int r = audit_open(&log, t->path, AUDIT_SHARED, p->name, p->id, t->e);
    if (r < 0)
        return r;
    struct json *j = audit_begin(&log, "audit.checkpoint");
    json_u64(j, "born", life_born(p));
    json_u64(j, "records", a->seq);
    json_text(j, "head", a->digest);
    r = audit_commit(&log, t->e);
    if (r == 0 && fdatasync(log.fd) < 0)
        r = err_os(t->e, "sync %s", t->path);
    audit_close(&log);
    return r;
}

static int take_one(void *arg, const struct place *p)
{
    struct taking *t = arg;
    struct audit_anchor a;
    char path[PATH_BYTES_MAX + 8], text[SHA256_HEX + 32];
    snprintf(path, sizeof(path), "%s/audit", p->state);
    /* What is wrong with one box's log must not keep those of others without a checkpoint; its next opening tells. */
    if (audit_head(path, &a, NULL) < 0 || a.seq == 0)
        return 0;
    own_fd dir = open(p->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), log = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(text, sizeof(text), "%llu %s\n", (unsigned long long)a.seq, a.digest);
    if (dir < 0 || log < 0 || is_known(dir, text))
        return 0; /* it is being removed, or nothing has happened */
    if (fdatasync(log) < 0)
        return err_os(t->e, "sync %s", path);
    int r;
    if ((r = write_record(t, p, &a)) == 0)
        r = fd_replace_file(dir, "checkpoint", text, strlen(text), 0600, false, t->e);
    t->count += r == 0;
    return r;
}

int checkpoint_take(unsigned *ret, struct pale_err *e)
{
    struct taking t = {.e = e};
    int r = log_path(t.path, sizeof(t.path), e);
    if (r == 0)
        r = place_each_made(take_one, &t, e);
    *ret = t.count;
    return r;
}

int checkpoint_find(uint64_t born, struct audit_anchor *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    uint64_t found = 0;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    *ret = (struct audit_anchor){0};
    int r = log_path(path, sizeof(path), e);
    FILE *f = r < 0 ? NULL : fopen(path, "re");
    if (!f)
        return r < 0 ? r : errno == ENOENT ? 0 : err_os(e, "open %s", path);
    while ((n = getline(&line, &cap, f)) > 0) {
        struct jsonread v, m;
        struct audit_anchor a = {0};
        if (!jsonread_parse(line, (size_t)n, &v) || !jsonread_get(&v, "born", &m) || !jsonread_u64(&m, &found) || found != born)
            continue;
        if (jsonread_get(&v, "records", &m) && jsonread_u64(&m, &a.seq) && jsonread_get(&v, "head", &m)) {
            jsonread_text(&m, a.digest, sizeof(a.digest));
            *ret = a;
        }
    }
    free(line);
    fclose(f);
    return 0;
}

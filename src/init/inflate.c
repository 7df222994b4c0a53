/* SPDX-License-Identifier: Apache-2.0 */
/* Owns compressed streams.
 *
 * How it works: the first bytes, which tell the kind, have been read by then, so a second process hands them and all that follows to the
 * program. Whoever gives up before the end just ends: the box takes the others with it. */
#include "init/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define MAGIC_MAX 6u

static const struct kind {
    const char *magic;
    size_t len;
    const char *program, *package;
    const char *path[2];
} kinds[] = {
    {"\x1f\x8b", 2, "gzip", "gzip", {"/usr/bin/gzip", "/bin/gzip"}},
    {"\xfd"
     "7zXZ\0",
     6,
     "xz",
     "xz-utils",
     {"/usr/bin/xz", "/bin/xz"}},
    {"\x28\xb5\x2f\xfd", 4, "zstd", "zstd", {"/usr/bin/zstd", "/bin/zstd"}},
};

static const struct kind *kind_of(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (n >= kinds[i].len && memcmp(p, kinds[i].magic, kinds[i].len) == 0)
            return &kinds[i];
    return NULL;
}

static const char *program_of(const struct kind *k)
{
    for (size_t i = 0; i < sizeof(k->path) / sizeof(k->path[0]); i++)
        if (access(k->path[i], X_OK) == 0)
            return k->path[i];
    return NULL;
}

/* Hands on what was read already, and the rest. */
static _Noreturn void pump(struct inflate *f, int from, int to)
{
    bool good = fd_write_full(to, f->piece, f->len);
    *f->came = f->len;
    while (good) {
        ssize_t n = read(from, f->piece, sizeof(f->piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(n < 0);
        __atomic_fetch_add(f->came, (uint64_t)n, __ATOMIC_RELAXED);
        good = fd_write_full(to, f->piece, (size_t)n);
    }
    _exit(1);
}

static _Noreturn void become(const char *path, const char *name, int in, int out)
{
    char *const argv[] = {(char *)name, (char *)"-dc", NULL};
    char *const env[] = {NULL};
    if (dup2(in, 0) == 0 && dup2(out, 1) == 1)
        execve(path, argv, env);
    _exit(126);
}

static int start(struct inflate *f, const struct kind *k, int fd, struct pale_err *e)
{
    int in[2], out[2];
    const char *path = program_of(k);
    if (!path)
        return err_set(e, PALE_UNSUPPORTED, "the archive is compressed and there is no %s on this host; install the package %s", k->program,
                       k->package);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe for %s", k->program);
    f->came = mmap(NULL, sizeof(*f->came), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f->came == MAP_FAILED)
        return err_os(e, "share a number with who feeds %s", k->program);
    f->pump = fork();
    if (f->pump == 0) {
        close(in[0]), close(out[0]), close(out[1]);
        pump(f, fd, in[1]);
    }
    f->pid = f->pump < 0 ? -1 : fork();
    if (f->pid == 0)
        become(path, k->program, in[0], out[1]);
    if (f->pid < 0)
        return err_os(e, "start %s", k->program);
    close(in[0]), close(in[1]), close(out[1]);
    f->fd = out[0];
    f->program = k->program;
    f->at = f->len = 0;
    return 0;
}

int inflate_open(struct inflate *f, int fd, struct pale_err *e)
{
    f->fd = fd;
    f->program = NULL;
    f->at = 0;
    ssize_t n = fd_read_full(fd, f->piece, MAGIC_MAX);
    if (n < 0)
        return err_os(e, "read the archive");
    f->len = (size_t)n;
    const struct kind *k = kind_of(f->piece, f->len);
    return k ? start(f, k, fd, e) : 0;
}

uint64_t inflate_came(const struct inflate *f)
{
    return f->program ? __atomic_load_n(f->came, __ATOMIC_RELAXED) : UINT64_MAX;
}

ssize_t inflate_take(struct inflate *f, size_t n, const uint8_t **ret)
{
    while (f->at == f->len) {
        ssize_t got = read(f->fd, f->piece, sizeof(f->piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got;
        f->at = 0;
        f->len = (size_t)got;
    }
    size_t there = f->len - f->at;
    *ret = f->piece + f->at;
    f->at += n < there ? n : there;
    return (ssize_t)(n < there ? n : there);
}

int inflate_close(struct inflate *f, struct pale_err *e)
{
    int status = -1, fed = -1;
    if (!f->program)
        return 0;
    close(f->fd);
    while (waitpid(f->pid, &status, 0) < 0 && errno == EINTR)
        ;
    while (waitpid(f->pump, &fed, 0) < 0 && errno == EINTR)
        ;
    if (status != 0 || fed != 0)
        return err_set(e, PALE_BAD_INPUT, "%s could not uncompress all of the archive: it is damaged or cut", f->program);
    return 0;
}

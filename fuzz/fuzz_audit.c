/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the audit log. Arbitrary bytes as log and head never harm; a log of our own making that was cut anywhere is whole
 * again after it is opened, and says so; one changed byte is found. Files live in memory here, and a write may fail half way. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owning locals close through the files in memory too. */
static int mem_close(int fd);
#define close mem_close
#include "base/own.h"
#undef close

#include "base/clock.h"
#include "base/fd.h"
#include "input.h"

/* --- files in memory --- */

#define FILE_MAX 32768
enum { FD_LOG = 100, FD_HEAD };

static struct {
    uint8_t data[FILE_MAX];
    size_t len, read_at;
} file[2];
static size_t write_fails_after; /* so many bytes the disk still takes */

static int mem_open(const char *path, int flags, ...)
{
    (void)flags;
    int which = strcmp(path, "log.head") == 0;
    file[which].read_at = 0;
    return FD_LOG + which;
}

static off_t mem_lseek(int fd, off_t off, int whence)
{
    assert(off == 0 && whence == SEEK_END);
    return (off_t)file[fd - FD_LOG].len;
}

static ssize_t mem_pread(int fd, void *p, size_t n, off_t off)
{
    size_t from = (size_t)off, len = file[fd - FD_LOG].len;
    n = from >= len ? 0 : n < len - from ? n : len - from;
    memcpy(p, file[fd - FD_LOG].data + from, n);
    return (ssize_t)n;
}

static ssize_t mem_write(int fd, const void *p, size_t n)
{
    size_t *len = &file[fd - FD_LOG].len, room = FILE_MAX - *len < write_fails_after ? FILE_MAX - *len : write_fails_after;
    if (n > 0 && room == 0)
        return errno = ENOSPC, -1;
    n = n < room ? n : room;
    memcpy(file[fd - FD_LOG].data + *len, p, n);
    *len += n;
    write_fails_after -= n;
    return (ssize_t)n;
}

static int mem_ftruncate(int fd, off_t len)
{
    size_t had = file[fd - FD_LOG].len;
    if ((size_t)len > had)
        memset(file[fd - FD_LOG].data + had, 0, (size_t)len - had);
    file[fd - FD_LOG].len = (size_t)len;
    return 0;
}

static int mem_fstat(int fd, struct stat *st)
{
    *st = (struct stat){.st_size = (off_t)file[fd - FD_LOG].len, .st_mode = S_IFREG | 0600, .st_uid = geteuid()};
    return 0;
}

static ssize_t mem_read_full(int fd, void *p, size_t n)
{
    return mem_pread(fd, p, n, 0);
}

/* The head alone is written in place; it has its room. */
static ssize_t mem_pwrite(int fd, const void *p, size_t n, off_t off)
{
    assert(off == 0 && n <= FILE_MAX);
    memcpy(file[fd - FD_LOG].data, p, n);
    file[fd - FD_LOG].len = n > file[fd - FD_LOG].len ? n : file[fd - FD_LOG].len;
    return (ssize_t)n;
}

static FILE *mem_fdopen(int fd, const char *mode)
{
    (void)mode;
    static char nothing[1];
    size_t len = file[fd - FD_LOG].len;
    return len ? fmemopen(file[fd - FD_LOG].data, len, "r") : fmemopen(nothing, 1, "w+");
}

static int mem_close(int fd)
{
    (void)fd;
    return 0;
}

/* clang-format off: audit.c with files in memory */
#define open mem_open
#define lseek mem_lseek
#define pread mem_pread
#define write mem_write
#define ftruncate mem_ftruncate
#define fstat(fd, st) mem_fstat(fd, st)
#define fd_read_full mem_read_full
#define pwrite mem_pwrite
#define fdopen mem_fdopen
#define fcntl(fd, ...) (fd)
#define access(path, how) (-1)
#define close mem_close
#define fdatasync mem_close
#define flock(fd, how) 0
#include "box/audit.c"
#include "box/audit_head.c"
#include "box/audit_tail.c"
#include "box/audit_verify.c"
#undef open
/* clang-format on */

/* --- the cases --- */

static bool is_good(struct audit_check *c)
{
    struct pale_err e = {0};
    assert(audit_verify("log", NULL, NULL, c, &e) == 0);
    assert(c->good || c->problem[0]);
    return c->good;
}

static bool add(struct audit *a, struct input *in)
{
    size_t n;
    struct pale_err e = {0};
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    uint64_t seq = a->seq;
    size_t len = file[0].len;
    struct json *j = audit_begin(a, n & 1 ? "exec" : "exec.end");
    json_bytes(j, "argv", p, n);
    int r = audit_commit(a, &e);
    assert(a->shared || (r == 0 ? a->seq == seq + 1 : (a->seq == seq && file[0].len == len && e.text[0])));
    return r == 0;
}

static void arbitrary(struct input *in, bool shared)
{
    struct audit a;
    struct audit_check c;
    struct pale_err e = {0};
    size_t n;
    const uint8_t *p = input_bytes(in, input_byte(in), &n);
    memcpy(file[1].data, p, n);
    file[1].len = n;
    size_t more = input_byte(in);
    p = input_bytes(in, in->left > more ? in->left - more : 0, &n);
    n = n < FILE_MAX / 2 ? n : FILE_MAX / 2;
    memcpy(file[0].data, p, n);
    file[0].len = n;
    (void)is_good(&c);
    if (audit_open(&a, "log", shared ? AUDIT_SHARED : AUDIT_BIRTH, "box", "0123456789abcdef", &e) < 0) {
        assert(e.text[0] && a.fd == -1);
        return;
    }
    assert(file[0].len >= n && memcmp(file[0].data, p, n) == 0);
    bool wrote = add(&a, in);
    uint64_t seq = a.seq;
    char last[SHA256_HEX];
    memcpy(last, a.last, sizeof(last));
    audit_close(&a);
    if (!wrote)
        return;
    assert(audit_open(&a, "log", AUDIT_BIRTH, "box", "0123456789abcdef", &e) == 0);
    assert(a.seq == seq && strcmp(a.last, last) == 0);
    audit_close(&a);
}

/* Records, then a cut in the last of them with the head as it was before, then more records. */
static void cut(struct input *in, bool shared)
{
    struct audit a;
    struct audit_check c;
    struct pale_err e = {0};
    uint8_t head[AUDIT_HEAD_BYTES];
    unsigned count = 1 + input_byte(in) % 3;
    size_t before = 0;
    for (unsigned round = 0; round < 2; round++) {
        if (audit_open(&a, "log", shared ? AUDIT_SHARED : AUDIT_BIRTH, "box", "0123456789abcdef", &e) < 0)
            break; /* there is no room to say that it was cut; later there is */
        for (unsigned i = 0; i < count; i++) {
            before = file[0].len;
            memcpy(head, file[1].data, sizeof(head));
            if (!add(&a, in))
                before = file[0].len;
        }
        audit_close(&a);
        assert(is_good(&c));
        if (file[0].len > before) {
            file[0].len = before + input_number(in, 2) % (file[0].len - before + 1);
            memcpy(file[1].data, head, sizeof(head));
        }
    }
    write_fails_after = SIZE_MAX;
    assert(audit_open(&a, "log", shared ? AUDIT_SHARED : AUDIT_BIRTH, "box", "0123456789abcdef", &e) == 0);
    bool wrote = add(&a, in);
    audit_close(&a);
    assert(is_good(&c) || !wrote);
}

/* A chain without a cut: no byte of it can be another. */
static void change(struct input *in)
{
    struct audit a;
    struct audit_check c;
    struct pale_err e = {0};
    write_fails_after = SIZE_MAX;
    size_t at = input_number(in, 2);
    uint8_t flip = input_byte(in);
    unsigned count = 1 + input_byte(in) % 4;
    assert(audit_open(&a, "log", AUDIT_BIRTH, "box", "0123456789abcdef", &e) == 0);
    for (unsigned i = 0; i < count; i++)
        assert(add(&a, in));
    audit_close(&a);
    assert(is_good(&c) && c.records == count && c.torn == 0);
    file[0].data[at % file[0].len] ^= flip;
    assert(is_good(&c) == (flip == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t mode = input_byte(&in);
    file[0].len = file[1].len = 0;
    write_fails_after = mode & 0x80 ? input_number(&in, 2) : SIZE_MAX;
    if (mode % 4 == 0)
        change(&in);
    else if (mode % 4 == 1)
        cut(&in, mode & 0x40);
    else
        arbitrary(&in, mode & 0x40);
    return 0;
}

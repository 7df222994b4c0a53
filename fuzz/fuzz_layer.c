/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: init/layer, with an archive on standard input and a ground that only looks at what is laid on it. The first byte says
 * which pass it is, and whether the rest is an archive or what to make one of (fuzz/archive.h). What is compressed would start a program
 * and is left to the system tests. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive.h"
#include "init/builtin.h"
#include "init/layer.h"
#include "init/plot.h"
#include "net/cargo.h"
#include "net/tarhead.h"

static struct {
    bool hides, in_file;
    char last[PATH_BYTES_MAX];
    uint64_t written, steps;
} seen;

/* Below the folder, every step a name. */
static void check_path(const char *path, bool may_be_top)
{
    assert(strlen(path) < PATH_BYTES_MAX && path[0] != '/' && (path[0] || may_be_top));
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        assert(n > 0 && n <= FILE_NAME_MAX && !(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.'));
        assert(at[n] == 0 || at[n + 1]);
        at += n + (at[n] == '/');
    }
    assert(!seen.in_file);
    seen.steps++;
}

/* An export has the bill first and then four parts, and no name of it follows itself. */
static void check_part(const char *path)
{
    static const char *const parts[] = {"home", "project", "root", "tmp"};
    bool known = strcmp(path, CARGO_BILL) == 0 && seen.steps == 1;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        known = known || (strncmp(path, parts[i], strlen(parts[i])) == 0 && strchr("/", path[strlen(parts[i])]));
    assert(known && !strstr(path, "/" CARGO_GONE) && strcmp(path, seen.last) != 0);
    memcpy(seen.last, path, strlen(path) + 1);
}

int plot_open(struct plot *p, const char *folder, struct pale_err *e)
{
    (void)folder, (void)e;
    *p = (struct plot){.root = -1, .here = -1, .file = -1};
    return 0;
}

int plot_close(struct plot *p, struct pale_err *e)
{
    (void)p, (void)e;
    assert(!seen.in_file);
    return 0;
}

int plot_folder(struct plot *p, const char *path, unsigned mode, struct pale_err *e)
{
    (void)p, (void)e;
    check_path(path, true);
    assert(mode <= 0777 && !seen.hides);
    return 0;
}

int plot_leave_folder(struct plot *p, const char *path, unsigned mode, int64_t mtime, struct pale_err *e)
{
    (void)mtime, (void)e;
    check_path(path, false);
    check_part(path);
    assert(p->strict && mode <= 01777);
    return 0;
}

/* Of a deletion or of a folder that hides, where something lies below. */
int plot_mark(struct plot *p, const char *name, char what, const char *path, struct pale_err *e)
{
    (void)e;
    check_path(path, false);
    assert(p->strict && strcmp(name, CARGO_MARKS) == 0 && (what == CARGO_MARK_GONE || what == CARGO_MARK_OPAQUE));
    assert(cargo_lies_on(path) && strchr(path, '/'));
    return 0;
}

int plot_link(struct plot *p, const char *path, const char *target, struct pale_err *e)
{
    (void)e;
    check_path(path, false);
    assert(target[0] && !seen.hides);
    if (p->strict)
        check_part(path);
    return 0;
}

int plot_dated_link(struct plot *p, const char *path, const char *target, int64_t mtime, struct pale_err *e)
{
    (void)mtime;
    return plot_link(p, path, target, e);
}

int plot_hard_link(struct plot *p, const char *path, const char *target, struct pale_err *e)
{
    (void)e;
    check_path(path, false);
    check_path(target, false);
    assert(!seen.hides);
    if (p->strict)
        check_part(path);
    return 0;
}

int plot_begin_file(struct plot *p, const char *path, struct pale_err *e)
{
    (void)e;
    check_path(path, false);
    assert(!seen.hides);
    if (p->strict)
        check_part(path);
    seen.in_file = true;
    return 0;
}

int plot_write(struct plot *p, const void *data, size_t n, struct pale_err *e)
{
    (void)p, (void)data, (void)e;
    assert(seen.in_file && n > 0);
    seen.written += n;
    return 0;
}

int plot_end_file(struct plot *p, unsigned mode, int64_t mtime, struct pale_err *e)
{
    (void)p, (void)mtime, (void)e;
    assert(seen.in_file && mode <= 0777);
    seen.in_file = false;
    return 0;
}

int plot_hide(struct plot *p, const char *path, struct pale_err *e)
{
    (void)p, (void)e;
    check_path(path, false);
    assert(seen.hides);
    return 0;
}

int plot_empty(struct plot *p, const char *path, struct pale_err *e)
{
    (void)p, (void)e;
    check_path(path, true);
    assert(seen.hides);
    return 0;
}

int builtin_fail(const struct pale_err *e)
{
    assert(e->code && e->text[0]);
    return 1;
}

int builtin_bad_words(const struct msg_exec *m)
{
    (void)m;
    assert(false);
    return 1;
}

static int lay(const uint8_t *data, size_t size, const char *pass)
{
    static int file = -1, quiet = -1;
    static struct msg_exec m;
    if (file < 0) {
        file = memfd_create("archive", MFD_CLOEXEC);
        quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        assert(file >= 0 && dup2(file, 0) == 0 && dup2(quiet, 1) == 1);
    }
    assert(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size && lseek(file, 0, SEEK_SET) == 0);
    m.argc = 3;
    m.argv[0] = "layer", m.argv[1] = "/", m.argv[2] = pass;
    memset(&seen, 0, sizeof(seen));
    seen.hides = strcmp(pass, "hide") == 0;
    return layer_run(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const passes[] = {"whole", "hide", "lay"};
    static uint8_t archive[1u << 20];
    struct input in = {data, size};
    uint8_t way = input_byte(&in);
    const char *pass = way & 0x80 ? "cargo" : passes[way % 3];
    bool makes = way & 0x40;
    size_t n = makes ? archive_make(&in, archive, sizeof(archive)) : in.left;
    const uint8_t *p = makes ? archive : in.at;
    /* The first bytes of a header are a name, so a plain archive can begin so too; it is taken for a compressed one all the same. */
    if (n >= 2 && (memcmp(p, "\x1f\x8b", 2) == 0 || p[0] == 0xfd || p[0] == 0x28))
        return 0;
    int status = lay(p, n, pass);
    assert(seen.written <= n);
    /* Whole only with its end: two blocks of zeros, and nothing after them but more. */
    if (status == 0)
        assert(n >= TAR_END_BLOCKS * TAR_BLOCK);
    while (status == 0 && n > 0 && p[n - 1] == 0)
        n--;
    if (status == 0 && n > 0)
        assert(lay(p, n, pass) != 0);
    return 0;
}

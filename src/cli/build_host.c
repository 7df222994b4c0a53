/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sources that take from the host itself: host-copy, which copies its programs, and minimal, which makes a root of busybox. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/path.h"
#include "cli/build.h"
#include "cli/listen.h"
#include "image/hostcopy.h"
#include "tier/etc.h"

/* What a copy may take before somebody has to ask for it, on a file system that cannot share blocks. */
#define UNASKED_BYTES (1ull << 30)

/* Folders that every root has, and boxes cover with their own. */
static const char *const folders[] = {"dev",       "proc",    "sys",  "run",  "tmp", "var/tmp", "var/lib",
                                      "var/cache", "var/log", "home", "root", "mnt", "opt",     "srv"};

static int make_folders(struct build *b, struct pale_err *e)
{
    if (mkdirat(b->root_fd, "var", 0755) < 0 && errno != EEXIST)
        return err_os(e, "make var of the image");
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (mkdirat(b->root_fd, folders[i], 0755) < 0 && errno != EEXIST)
            return err_os(e, "make %s of the image", folders[i]);
    if (mkdirat(b->root_fd, "etc", 0755) < 0 && errno != EEXIST)
        return err_os(e, "make etc of the image");
    own_fd etc = fd_open_beneath(b->root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return etc < 0 ? err_os(e, "open etc of the image") : etc_fill_image(etc, b->manifest.from[0] == 'h', e);
}

/* --- host-copy --- */

/* Programs, and what dpkg knows about them. Of /etc only what boxes see anyway (tier/etc.c). */
static const char *const copied[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/var/lib/dpkg"};
#define COPIED (sizeof(copied) / sizeof(copied[0]))

static int copy_all(struct hostcopy *h, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < COPIED; i++)
        r = hostcopy_take(h, copied[i], e);
    return r;
}

/* Somebody who did not ask for it does not get gigabytes on his disk. */
static int ask_size(struct build *b, struct pale_err *e)
{
    char size[32];
    struct left ignored = {0};
    struct hostcopy count = {.to_fd = b->root_fd, .only_counts = true, .left = &ignored, .stop = b->stop};
    if (args_has(b->args, "force-copy") || hostcopy_can_share(b->root_fd, "/usr/bin/env"))
        return 0;
    int r = copy_all(&count, e);
    if (r < 0 || count.bytes <= UNASKED_BYTES)
        return r;
    return err_set(
        e, PALE_LIMIT,
        "the host's programs are %s in %llu files, and the disk of the images cannot share their blocks; --force-copy copies them",
        number_show_bytes(count.bytes, size, sizeof(size)), (unsigned long long)count.files);
}

int build_copy(struct build *b, struct pale_err *e)
{
    struct hostcopy h = {
        .to_fd = b->root_fd, .left = &b->left, .stop = b->stop, .progress = progress_show, .progress_arg = &b->progress, .shares = true};
    int r = ask_size(b, e);
    if (r == 0)
        r = copy_all(&h, e);
    return r < 0 ? r : make_folders(b, e);
}

/* --- minimal --- */

static int find_busybox(char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t n = strcspn(at, ":");
        int len = snprintf(ret, PATH_BYTES_MAX, "%.*s/busybox", (int)n, at);
        if (n > 0 && at[0] == '/' && len > 0 && len < PATH_BYTES_MAX && access(ret, X_OK) == 0)
            return 0;
        at += n + (at[n] == ':');
    }
    return err_set(e, PALE_UNSUPPORTED,
                   "there is no busybox on this host, of which a minimal image is made; install the package busybox-static");
}

/* Does a program need no other file? One with an interpreter does. */
static bool is_static(int fd)
{
    Elf64_Ehdr h;
    if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + (uint64_t)i * h.e_phentsize)) != (ssize_t)sizeof(p) || p.p_type == PT_INTERP)
            return false;
    }
    return true;
}

static int copy_program(struct build *b, const char *from, struct pale_err *e)
{
    static char piece[65536];
    struct sha256 h;
    uint8_t d[SHA256_BYTES];
    ssize_t n = 0;
    own_fd in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return err_os(e, "open %s", from);
    if (!is_static(in))
        return err_set(e, PALE_UNSUPPORTED, "%s needs other files to run; install the package busybox-static, whose one does not", from);
    own_fd out = openat(b->root_fd, "usr/bin/busybox", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (out < 0)
        return err_os(e, "make usr/bin/busybox of the image");
    sha256_init(&h);
    while ((n = read(in, piece, sizeof(piece))) > 0) {
        if (!fd_write_full(out, piece, (size_t)n))
            return err_os(e, "write usr/bin/busybox of the image");
        sha256_add(&h, piece, (size_t)n);
        b->manifest.source_bytes += (uint64_t)n;
    }
    sha256_final(&h, d);
    sha256_to_hex(d, b->source_hex);
    b->manifest.source_digest = b->source_hex;
    return n < 0 || fchmod(out, 0755) < 0 ? err_os(e, "copy %s", from) : 0;
}

/* A name for each thing that busybox does. */
static int make_links(struct build *b, const char *busybox, struct pale_err *e)
{
    own_buf names = {0};
    buf_init(&names, 65536);
    int r = listen_to((char *const[]){(char *)busybox, (char *)"--list", NULL}, &names, e);
    if (r < 0)
        return r;
    for (const char *at = buf_text(&names); *at;) {
        char path[64];
        size_t n = strcspn(at, "\n");
        int len = snprintf(path, sizeof(path), "usr/bin/%.*s", (int)n, at);
        bool is_name = n > 0 && len > 0 && (size_t)len < sizeof(path) && !memchr(at, '/', n) && at[0] != '.';
        if (is_name && symlinkat("busybox", b->root_fd, path) < 0 && errno != EEXIST)
            return err_os(e, "make %s of the image", path);
        at += n + (at[n] == '\n');
    }
    return 0;
}

int build_minimal(struct build *b, struct pale_err *e)
{
    static const char *const merged[][2] = {{"usr/bin", "bin"}, {"usr/sbin", "sbin"}, {"usr/lib", "lib"}};
    static const char *const made[] = {"usr", "usr/bin", "usr/sbin", "usr/lib"};
    char busybox[PATH_BYTES_MAX];
    int r = find_busybox(busybox, e);
    for (size_t i = 0; r == 0 && i < sizeof(made) / sizeof(made[0]); i++)
        if (mkdirat(b->root_fd, made[i], 0755) < 0)
            r = err_os(e, "make %s of the image", made[i]);
    for (size_t i = 0; r == 0 && i < sizeof(merged) / sizeof(merged[0]); i++)
        if (symlinkat(merged[i][0], b->root_fd, merged[i][1]) < 0)
            r = err_os(e, "make %s of the image", merged[i][1]);
    if (r == 0)
        r = copy_program(b, busybox, e);
    if (r == 0)
        r = make_links(b, busybox, e);
    return r < 0 ? r : make_folders(b, e);
}

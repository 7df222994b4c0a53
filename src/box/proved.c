/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of full probes.
 *
 * A file is the receipt's digest, key and signature, each on a line, and the text that was signed; so one short read answers both
 * questions of a start. Losing a file costs one full probe. A forged one saves one, and no more: every box gets the short probe all
 * the same, and who can write here can write policies. */
#include "box/proved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "box/place.h"

#define BOOT_PREFIX 8

static int read_boot(char ret[40], struct pale_err *e)
{
    own_fd fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret, 36);
    if (n != 36)
        return err_os(e, "read the kernel's boot id");
    ret[36] = 0;
    return 0;
}

static void add_program(struct buf *b, const char *path)
{
    struct stat st = {0};
    if (stat(path, &st) == 0)
        buf_addf(b, "%s %llu %llu %lld %lld.%ld\n", path, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                 (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static bool read_digest(int dir, const char *name, char ret[SHA256_HEX])
{
    own_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fd_read_full(fd, ret, 64) == 64 && strspn(ret, "0123456789abcdef") == 64)
        return true;
    ret[0] = 0;
    return false;
}

int proved_find(const struct proved_kind *k, struct proved *ret, struct pale_err *e)
{
    char mem[2048], key[SHA256_HEX];
    struct buf b;
    *ret = (struct proved){0};
    int r = read_boot(ret->boot, e);
    if (r == 0)
        r = place_state_dir(ret->dir, sizeof(ret->dir) - 8, e);
    if (r < 0)
        return r;
    memcpy(ret->dir + strlen(ret->dir), "/proved", 8);
    buf_init_lent(&b, 65536, mem, sizeof(mem));
    buf_addf(&b, "%s\n%s\n%s\n%s\n%s\n%u %u\n", ret->boot, k->kernel, k->tier, k->policy_digest, k->build, k->ids_kind, k->limits_kind);
    for (int i = 0; i < 2; i++)
        add_program(&b, k->programs[i]);
    if (b.failed) {
        buf_done(&b);
        return err_nomem(e);
    }
    sha256_hex(b.data, b.len, key);
    buf_done(&b);
    snprintf(ret->name, sizeof(ret->name), "%.*s-%.40s", BOOT_PREFIX, ret->boot, key);
    char path[sizeof(ret->dir) + sizeof(ret->name) + 1];
    snprintf(path, sizeof(path), "%s/%s", ret->dir, ret->name);
    if (read_digest(AT_FDCWD, path, ret->digest))
        return 0;
    if (mkdir(ret->dir, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make %s", ret->dir);
    return 0;
}

static void clear_away(int dir, const char *boot)
{
    static _Alignas(8) char block[8192];
    for (long n; (n = fd_entries(dir, block, sizeof(block))) > 0;)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            /* Half a file has a point before its name, where the file system knows none without. */
            const char *name = d->d_name + (d->d_name[0] == '.');
            if (name[0] && name[0] != '.' && strncmp(name, boot, BOOT_PREFIX) != 0)
                unlinkat(dir, d->d_name, 0);
        }
}

int proved_store(struct proved *p, const char *receipt, size_t n, const struct sealed *sealed, struct pale_err *e)
{
    own_buf b = {0};
    own_fd dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", p->dir);
    clear_away(dir, p->boot);
    sha256_hex(receipt, n, p->digest);
    buf_init(&b, 1 << 20);
    buf_addf(&b, "%s\n%s\n%s\n", p->digest, sealed->key, sealed->signature);
    buf_add(&b, receipt, n);
    int r = b.failed ? err_nomem(e) : fd_write_new(dir, p->name, b.data, b.len, 0600, false, e);
    /* One of the same kind was faster, and its receipt is as good; or what is there is no receipt. */
    if (r == -PALE_EXISTS && read_digest(dir, p->name, p->digest))
        return 0;
    if (r == -PALE_EXISTS) {
        sha256_hex(receipt, n, p->digest);
        unlinkat(dir, p->name, 0);
        r = fd_write_new(dir, p->name, b.data, b.len, 0600, false, e);
    }
    if (r < 0)
        p->digest[0] = 0;
    return r < 0 ? err_prefix(e, "%s", p->dir) : 0;
}

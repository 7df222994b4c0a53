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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "box/place.h"

#define BOOT_PREFIX 8
#define NEW_WORD "-new-"

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
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fd_read_full(fd, ret->digest, 64) == 64 && strspn(ret->digest, "0123456789abcdef") == 64)
        return 0;
    ret->digest[0] = 0;
    if (mkdir(ret->dir, 0700) < 0 && errno != EEXIST)
        return err_os(e, "make %s", ret->dir);
    return 0;
}

/* Half a file of a keeper that was killed over it. */
static bool is_litter(const char *name)
{
    const char *pid = strstr(name, NEW_WORD);
    uint64_t n = 0;
    return pid && (!number_u64(pid + strlen(NEW_WORD), INT32_MAX, &n) || (kill((pid_t)n, 0) < 0 && errno == ESRCH));
}

static void clear_away(int dir, const char *boot)
{
    static _Alignas(8) char block[8192];
    for (long n; (n = fd_entries(dir, block, sizeof(block))) > 0;)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (d->d_name[0] != '.' && (strncmp(d->d_name, boot, BOOT_PREFIX) != 0 || is_litter(d->d_name)))
                unlinkat(dir, d->d_name, 0);
        }
}

int proved_store(struct proved *p, const char *receipt, size_t n, const struct sealed *sealed, struct pale_err *e)
{
    char tmp[64], head[320];
    own_fd dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", p->dir);
    clear_away(dir, p->boot);
    sha256_hex(receipt, n, p->digest);
    snprintf(tmp, sizeof(tmp), "%.*s" NEW_WORD "%d", BOOT_PREFIX, p->boot, (int)getpid());
    own_fd fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    snprintf(head, sizeof(head), "%s\n%s\n%s\n", p->digest, sealed->key, sealed->signature);
    if (fd < 0 || !fd_write_full(fd, head, strlen(head)) || !fd_write_full(fd, receipt, n) || renameat(dir, tmp, dir, p->name) < 0) {
        int r = err_os(e, "write %s/%s", p->dir, p->name);
        unlinkat(dir, tmp, 0);
        p->digest[0] = 0;
        return r;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the file of the host's key: 32 bytes of seed in hex and a newline, mode 0600. */
#include "seal/hostkey.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define SEED_HEX (2 * crypto_sign_SEEDBYTES)

static_assert(HOSTKEY_PUBLIC == crypto_sign_PUBLICKEYBYTES && HOSTKEY_SECRET == crypto_sign_SECRETKEYBYTES &&
                  HOSTKEY_SIGNATURE == crypto_sign_BYTES,
              "the sizes of Ed25519");

/* Somebody may have been faster: then theirs is the one. */
static int write_new(int dir, const char *name, const char *text, struct pale_err *e)
{
    int r = fd_write_new(dir, name, text, strlen(text), 0600, true, e);
    return r == -PALE_EXISTS ? 0 : r;
}

static int make_key(int dir, struct pale_err *e)
{
    unsigned char seed[crypto_sign_SEEDBYTES];
    char hex[SEED_HEX + 2];
    randombytes_buf(seed, sizeof(seed));
    sodium_bin2hex(hex, sizeof(hex), seed, sizeof(seed));
    sodium_memzero(seed, sizeof(seed));
    hex[SEED_HEX] = '\n';
    hex[SEED_HEX + 1] = 0;
    int r = write_new(dir, "host.key", hex, e);
    sodium_memzero(hex, sizeof(hex));
    return r;
}

static int read_seed(int dir, unsigned char ret[crypto_sign_SEEDBYTES], struct pale_err *e)
{
    char hex[SEED_HEX + 2] = "";
    struct stat st;
    size_t n = 0;
    own_fd fd = openat(dir, "host.key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open host.key");
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(e, PALE_DENIED, "host.key must belong to you and be readable by nobody else (chmod 600)");
    ssize_t got = fd_read_full(fd, hex, SEED_HEX + 1);
    bool good = got == SEED_HEX + 1 && sodium_hex2bin(ret, crypto_sign_SEEDBYTES, hex, SEED_HEX, NULL, &n, NULL) == 0;
    sodium_memzero(hex, sizeof(hex));
    return good && n == crypto_sign_SEEDBYTES ? 0 : err_set(e, PALE_CORRUPT, "host.key is damaged; remove it to get a new one");
}

static void publish(int dir, const unsigned char *public)
{
    char hex[2 * HOSTKEY_PUBLIC + 2];
    if (faccessat(dir, "host.pub", F_OK, 0) == 0)
        return;
    sodium_bin2hex(hex, sizeof(hex), public, HOSTKEY_PUBLIC);
    memcpy(hex + 2 * (size_t)HOSTKEY_PUBLIC, "\n", 2);
    (void)!write_new(dir, "host.pub", hex, NULL);
}

int hostkey_open(const char *path, unsigned char ret_public[HOSTKEY_PUBLIC], unsigned char ret_secret[HOSTKEY_SECRET], struct pale_err *e)
{
    unsigned char seed[crypto_sign_SEEDBYTES];
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", path);
    int r = faccessat(dir, "host.key", F_OK, 0) < 0 ? make_key(dir, e) : 0;
    if (r == 0)
        r = read_seed(dir, seed, e);
    if (r < 0)
        return err_prefix(e, "%s", path);
    crypto_sign_seed_keypair(ret_public, ret_secret, seed);
    sodium_memzero(seed, sizeof(seed));
    publish(dir, ret_public);
    return 0;
}

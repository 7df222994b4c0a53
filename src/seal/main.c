/* SPDX-License-Identifier: Apache-2.0 */
/* pale-seal: signs a text with the host's key, or checks a signature. It stands alone because it holds the key and links the
 * library that knows what to do with it.
 *
 *     pale-seal sign STATE_DIR            text on descriptor 0; answers "PUBLIC SIGNATURE" in hex on 1
 *     pale-seal verify PUBLIC SIGNATURE   text on descriptor 0; ends with 0 if the signature is right, 1 if not
 *
 * Stages: open the key, lock up, only then read. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "confine/seccomp.h"
#include "seal/hostkey.h"

#define TEXT_MAX (1u << 20)
/* Before every text, so that a signature of a receipt is of nothing else. */
#define PURPOSE "pale-receipt-1\n"

static int complain(const struct pale_err *e)
{
    fprintf(stderr, "pale-seal: %s\n", e->text);
    return 125;
}

/* Needs: everything is open. Gives up: all but reading what comes, computing, answering; the list is the policy reader's. */
static int lock_up(struct pale_err *e)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(e, "lock up");
#ifdef __SANITIZE_ADDRESS__
    return 0;
#else
    return seccomp_load(seccomp_for_program(OWN_READER), e);
#endif
}

static int sign(const char *dir, struct buf *text, struct pale_err *e)
{
    unsigned char public[HOSTKEY_PUBLIC], secret[HOSTKEY_SECRET], signature[HOSTKEY_SIGNATURE];
    char hex[2 * (HOSTKEY_PUBLIC + HOSTKEY_SIGNATURE) + 3];
    int r = hostkey_open(dir, public, secret, e);
    if (r == 0)
        r = lock_up(e);
    if (r == 0)
        r = fd_read_all(0, text, e);
    if (r < 0)
        return r;
    crypto_sign_detached(signature, NULL, text->data, text->len, secret);
    sodium_memzero(secret, sizeof(secret));
    sodium_bin2hex(hex, sizeof(hex), public, sizeof(public));
    hex[2 * HOSTKEY_PUBLIC] = ' ';
    sodium_bin2hex(hex + 2 * HOSTKEY_PUBLIC + 1, 2 * HOSTKEY_SIGNATURE + 1, signature, sizeof(signature));
    hex[sizeof(hex) - 2] = '\n';
    return fd_write_full(1, hex, sizeof(hex) - 1) ? 0 : err_os(e, "answer");
}

static bool from_hex(const char *hex, unsigned char *ret, size_t n)
{
    size_t got = 0;
    return strlen(hex) == 2 * n && sodium_hex2bin(ret, n, hex, 2 * n, NULL, &got, NULL) == 0 && got == n;
}

static int verify(char **word, struct buf *text, bool *ret_good, struct pale_err *e)
{
    unsigned char public[HOSTKEY_PUBLIC], signature[HOSTKEY_SIGNATURE];
    if (!from_hex(word[0], public, sizeof(public)) || !from_hex(word[1], signature, sizeof(signature)))
        return err_set(e, PALE_BAD_INPUT, "a key is 64 and a signature 128 hex digits");
    int r = lock_up(e);
    if (r == 0)
        r = fd_read_all(0, text, e);
    if (r == 0)
        *ret_good = crypto_sign_verify_detached(signature, text->data, text->len, public) == 0;
    return r;
}

int main(int argc, char **argv)
{
    struct pale_err e = {0};
    own_buf text = {0};
    bool good = true;
    int r;
    buf_init(&text, TEXT_MAX);
    buf_add_text(&text, PURPOSE);
    if (sodium_init() < 0)
        r = err_set(&e, PALE_INTERNAL, "libsodium does not start");
    else if (argc == 3 && strcmp(argv[1], "sign") == 0)
        r = sign(argv[2], &text, &e);
    else if (argc == 4 && strcmp(argv[1], "verify") == 0)
        r = verify(argv + 2, &text, &good, &e);
    else
        r = err_set(&e, PALE_BAD_INPUT, "started by pale, not by hand");
    return r < 0 ? complain(&e) : good ? 0 : 1;
}

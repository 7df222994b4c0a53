/* SPDX-License-Identifier: Apache-2.0 */
/* pale-dial: a TLS connection for a program that links no TLS.
 *
 *     pale-dial NAME PORT      started by pale: 3 is a socket to it
 *
 * It tells over the socket that the other end is NAME, or why not, as a keeper would (TELL_DONE, TELL_ERROR); afterwards the bytes
 * are those of the connection. It knows no token: that passes through it as any byte does.
 *
 * main() reads as the list of stages. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/weak.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"
#include "dial/dial.h"
#include "wire/frame.h"
#include "wire/message.h"

static bool tell(uint8_t type, const struct pale_err *e)
{
    uint8_t mem[FRAME_HEAD + 2048];
    struct record_writer w;
    record_start(&w, mem + FRAME_HEAD, sizeof(mem) - FRAME_HEAD);
    if (e)
        msg_error_write(&(struct msg_error){.code = e->code, .text = e->text}, &w);
    frame_put_head(mem, type, 0, (uint32_t)w.len);
    return send(DIAL_OWN, mem, FRAME_HEAD + w.len, MSG_NOSIGNAL) == (ssize_t)(FRAME_HEAD + w.len);
}

/* Needs: certificates are read. Gives up: writing any file, new privileges. Must not yet: files that the resolver reads, sockets. */
static int stage_no_writes(struct pale_err *e)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    return landlock_abi() == 0 ? 0 : landlock_restrict_writes(NULL, 0, true, e);
}

/* Needs: the connection stands and nothing has been read from it. Gives up: every file, every other connection, every program. */
static int stage_lock(struct pale_err *e)
{
    int r = 0;
    if (weak_word("dial-lock"))
        return 0;
    /* A kernel without Landlock has the system call list alone. */
    if (landlock_abi() != 0 && (r = landlock_restrict_all(NULL, 0, e)) < 0)
        return r;
#ifdef __SANITIZE_ADDRESS__
    return 0;
#else
    return seccomp_load(seccomp_for_program(OWN_DIAL), e);
#endif
}

int main(int argc, char **argv)
{
    struct pale_err e;
    own_fd net = -1;
    int64_t until = clock_ms() + DIAL_WAIT_MS;
    SSL *ssl = NULL;
    if (argc != 3) {
        fprintf(stderr, "pale-dial is started by pale\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    /* Whether a certificate holds now is reckoned with the C library's clocks, which would look for a file of the time zone. */
    if (setenv("TZ", "UTC0", 1) < 0)
        return 1;
    tzset();
    SSL_CTX *trusted = trust_load(&e);
    if (!trusted || stage_no_writes(&e) < 0 || call_out(argv[1], argv[2], until, &net, &e) < 0 || stage_lock(&e) < 0 ||
        !(ssl = trust_prove(trusted, net, argv[1], until, &e))) {
        (void)tell(TELL_ERROR, &e);
        return 1;
    }
    if (tell(TELL_DONE, NULL))
        carry(ssl, net, DIAL_OWN);
    return 0;
}

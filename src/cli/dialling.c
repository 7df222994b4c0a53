/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the starting of pale-dial. */
#include "cli/dialling.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/place.h"
#include "box/reach.h"
#include "wire/message.h"

/* Descriptor 3 is our socket and there is no other; a session of its own, so that no key of our terminal ends it before us. It parses
 * what the network brings, so our environment, where the token stands, is not for it. */
static pid_t spawn(const char *program, char *const argv[], char *const envp[], int fd, int null_fd)
{
    pid_t pid = vfork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid();
        for (int i = 0; i < 3; i++)
            if (dup2(null_fd, i) < 0)
                _exit(127);
        if (dup2(fd, 3) < 0 || syscall(SYS_close_range, 4, ~0u, 0) < 0)
            _exit(127);
        execve(program, argv, envp);
        _exit(127);
    }
    return pid;
}

/* What it needs to know of our environment: whose word counts. */
static void choose_env(char *store, size_t cap, char *ret[4])
{
    static const char *const names[] = {"PALE_CA_FILE", "SSL_CERT_FILE"};
    size_t at = 0, n = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = getenv(names[i]);
        if (!v || !v[0] || strlen(names[i]) + strlen(v) + 2 > cap - at)
            continue;
        ret[n++] = store + at;
        at += (size_t)snprintf(store + at, cap - at, "%s=%s", names[i], v) + 1;
    }
    ret[n] = NULL;
}

/* Its word that the other end is who it should be, or why not. Nobody speaks before he is asked. */
static int await_word(struct reach *r, int64_t until_ms, struct pale_err *e)
{
    struct frame f;
    int64_t left = until_ms - clock_ms();
    left = left < 1 ? 1 : left;
    struct timeval t = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000}, none = {0};
    if (setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0)
        return err_os(e, "wait for pale-dial");
    int res = reach_receive(r, &f, e);
    if (res == 0 && (f.type != TELL_DONE || r->taken != r->in.len))
        res = err_set(e, PALE_PROTOCOL, "the daemon spoke before it was asked");
    if (res == 0 && setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) < 0)
        res = err_os(e, "wait for pale-dial");
    return res;
}

int dialling_open(const char *name, uint16_t port, int64_t until_ms, int *ret_fd, struct pale_err *e)
{
    char program[PATH_BYTES_MAX], number[8], store[2 * PATH_BYTES_MAX];
    char *envp[4], *argv[] = {(char *)"pale-dial", (char *)name, number, NULL};
    int pair[2], res = place_program("pale-dial", program, sizeof(program), e);
    own_reach r = {.fd = -1};
    if (res < 0)
        return err_prefix(e, "https needs it");
    reach_init(&r);
    snprintf(number, sizeof(number), "%u", port);
    choose_env(store, sizeof(store), envp);
    own_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    own_fd theirs = pair[1];
    r.fd = pair[0];
    if (spawn(program, argv, envp, theirs, null) < 0)
        return err_os(e, "start %s", program);
    own_close(&theirs);
    res = await_word(&r, until_ms, e);
    if (res == 0)
        *ret_fd = take_fd(&r.fd);
    return res;
}

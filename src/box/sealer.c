/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the starting of pale-seal and the talk with it. */
#include "box/sealer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/place.h"
#include "confine/kernel.h"

#define ANSWER_MS 10000
/* Two words in hex, a blank between them, a newline after. */
#define ANSWER_BYTES (SEALER_KEY_HEX + SEALER_SIGNATURE_HEX)

void sealer_init(struct sealer *s)
{
    *s = (struct sealer){.fd = -1};
}

static int start(struct sealer *s, char *const argv[], struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    char *envp[] = {NULL};
    int pair[2];
    int r = place_program("pale-seal", program, sizeof(program), e);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, "make a socket pair");
    pid_t pid = vfork();
    if (pid == 0) {
        dup2(pair[1], 0);
        dup2(pair[1], 1);
        k_close_range(3, ~0u, 0);
        execve(program, argv, envp);
        _exit(127);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_os(e, "start %s", program);
    }
    *s = (struct sealer){.fd = pair[0], .pid = pid};
    return 0;
}

int sealer_start(struct sealer *s, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX];
    char *argv[] = {(char *)"pale-seal", (char *)"sign", dir, NULL};
    int r = place_state_dir(dir, sizeof(dir), e);
    return r == 0 ? start(s, argv, e) : r;
}

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdef", p[i]) || !p[i])
            return false;
    return true;
}

int sealer_sign(struct sealer *s, const void *text, size_t n, struct sealed *ret, struct pale_err *e)
{
    char answer[ANSWER_BYTES];
    struct pollfd ready = {.fd = s->fd, .events = POLLIN};
    if (!fd_write_full(s->fd, text, n) || shutdown(s->fd, SHUT_WR) < 0 || poll(&ready, 1, ANSWER_MS) != 1 ||
        fd_read_full(s->fd, answer, sizeof(answer)) != ANSWER_BYTES || !is_hex(answer, SEALER_KEY_HEX - 1) ||
        answer[SEALER_KEY_HEX - 1] != ' ' || !is_hex(answer + SEALER_KEY_HEX, SEALER_SIGNATURE_HEX - 1))
        return err_set(e, PALE_CORRUPT, "pale-seal does not sign; is host.key in the state folder (~/.local/state/pale) damaged?");
    memcpy(ret->key, answer, SEALER_KEY_HEX - 1);
    memcpy(ret->signature, answer + SEALER_KEY_HEX, SEALER_SIGNATURE_HEX - 1);
    ret->key[SEALER_KEY_HEX - 1] = ret->signature[SEALER_SIGNATURE_HEX - 1] = 0;
    return 0;
}

static int end(struct sealer *s)
{
    int status = -1;
    own_close(&s->fd);
    while (s->pid > 0 && waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
    return status;
}

int sealer_verify(const struct sealed *sealed, const void *text, size_t n, bool *ret_good, struct pale_err *e)
{
    struct sealer s;
    char *argv[] = {(char *)"pale-seal", (char *)"verify", (char *)sealed->key, (char *)sealed->signature, NULL};
    int r = start(&s, argv, e);
    if (r < 0)
        return r;
    if (!fd_write_full(s.fd, text, n) || shutdown(s.fd, SHUT_WR) < 0)
        r = err_os(e, "ask pale-seal");
    int status = end(&s);
    if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) > 1))
        r = err_set(e, PALE_BAD_INPUT, "pale-seal cannot check this key and signature");
    if (r == 0)
        *ret_good = WEXITSTATUS(status) == 0;
    return r;
}

void sealer_done(struct sealer *s)
{
    if (s->pid > 0)
        kill(s->pid, SIGKILL);
    end(s);
}

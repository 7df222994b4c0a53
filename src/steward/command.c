/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the running of commands for deeds. */
#include "steward/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "box/place.h"
#include "steward/inlet.h"
#include "wire/message.h"

/* For one that was told to end, which may have to wait for the disk before it can take back what it has begun. Killed before, it leaves
 * work for `gc`; and nobody waits for it. */
#define END_WAIT_MS 60000
#define ASK_AGAIN_US 50000
#define WORD_TEXT_MAX 600

static void command_done(struct command *c)
{
    own_close(&c->in);
    own_close(&c->out);
    own_close(&c->err);
    buf_done(&c->frame);
}

/* --- starting --- */

#define ABOVE_FD 10 /* out of the way of descriptors that have a meaning */

static int open_order(const struct msg_deed *m, int *ret, struct pale_err *e)
{
    struct record_writer w;
    own_mem uint8_t *mem = malloc(FRAME_PAYLOAD_MAX);
    if (!mem)
        return err_nomem(e);
    record_start(&w, mem, FRAME_PAYLOAD_MAX);
    msg_deed_write(m, &w);
    own_fd fd = memfd_create("order", MFD_CLOEXEC);
    if (w.full || fd < 0 || !fd_write_full(fd, mem, w.len) || lseek(fd, 0, SEEK_SET) < 0 ||
        (*ret = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE_FD)) < 0)
        return err_os(e, "hand the order on");
    return 0;
}

static _Noreturn void become(const struct command *c, const char *program, char *const argv[], const int ends[4], pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    bool good = getppid() == parent && dup2(c->takes ? ends[0] : null, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[2], 2) == 2;
    good = good && dup2(ends[3], DEED_ORDER_FD) == DEED_ORDER_FD && setenv(DEED_ORDER_VARIABLE, "yes", 1) == 0;
    if (good)
        execv(program, argv);
    _exit(125);
}

static int make_pipe(int *ret_read, int *ret_write, struct pale_err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static int start(struct command *c, char *const argv[], struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    own_fd in = -1, out = -1, err = -1, order = -1;
    int r = place_command(program, sizeof(program), e);
    if (r == 0)
        r = make_pipe(&in, &c->in, e);
    if (r == 0)
        r = make_pipe(&c->out, &out, e);
    if (r == 0)
        r = make_pipe(&c->err, &err, e);
    if (r == 0)
        r = open_order(c->order, &order, e);
    if (r < 0)
        return r;
    const int ends[4] = {in, out, err, order};
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0)
        become(c, program, argv, ends, parent);
    if (c->pid < 0)
        return err_os(e, "start %s", program);
    if (!c->takes)
        own_close(&c->in);
    return c->takes && fcntl(c->in, F_SETFL, O_NONBLOCK) < 0 ? err_os(e, "prepare a pipe") : 0;
}

/* --- while it works --- */

/* The next part, or the end of them. */
static int take_part(struct command *c, struct pale_err *e)
{
    struct frame f;
    int r = inlet_frame(c->fd, &c->frame, &f, e);
    if (r == 0 && f.type != DEED_PART)
        r = err_set(e, PALE_PROTOCOL, "this is no part of an archive");
    if (r < 0)
        return r;
    c->at = FRAME_HEAD;
    c->left = f.len;
    c->takes = f.len > 0;
    if (!c->takes)
        own_close(&c->in);
    return 0;
}

/* One that takes no more has its reasons, and will say so. */
static void give_part(struct command *c)
{
    ssize_t n = write(c->in, c->frame.data + c->at, c->left);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        own_close(&c->in);
        c->left = 0;
        return;
    }
    c->at += (size_t)n;
    c->left -= (size_t)n;
}

static int hear(struct command *c, int *fd, command_ear *ear, struct pale_err *e)
{
    char block[32768];
    ssize_t n = read(*fd, block, sizeof(block));
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        own_close(fd);
    return n > 0 ? ear(c->arg, block, (size_t)n, e) : 0;
}

static int attend(struct command *c, const struct pollfd p[4], struct pale_err *e)
{
    int r = 0;
    if (p[0].revents & (POLLHUP | POLLERR | POLLRDHUP))
        return err_set(e, PALE_GONE, "nobody waits for it any more");
    if (p[0].revents & POLLIN)
        r = take_part(c, e);
    if (r == 0 && p[1].revents && c->in >= 0)
        give_part(c);
    if (r == 0 && p[2].revents)
        r = hear(c, &c->err, c->said, e);
    if (r == 0 && p[3].revents)
        r = hear(c, &c->out, c->answered, e);
    return r == 0 && c->waits ? c->waits(c->arg, e) : r;
}

/* Until it has closed both of what it speaks by. */
static int follow(struct command *c, struct pale_err *e)
{
    int r = 0;
    while (r == 0 && (c->err >= 0 || c->out >= 0)) {
        /* Parts that it no longer takes are taken all the same, and dropped: whoever sends them is to hear why. */
        if (c->in < 0)
            c->left = 0;
        bool wants = c->takes && c->left == 0;
        struct pollfd p[4] = {{.fd = c->fd, .events = (short)(POLLRDHUP | (wants ? POLLIN : 0))},
                              {.fd = c->left > 0 ? c->in : -1, .events = POLLOUT},
                              {.fd = c->err, .events = POLLIN},
                              {.fd = c->out, .events = POLLIN}};
        if (poll(p, 4, 1000) < 0 && errno != EINTR)
            return err_os(e, "wait for the command");
        r = attend(c, p, e);
    }
    return r;
}

/* --- its end --- */

static int await(const struct command *c)
{
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* It is asked again and again: while it starts a box it hears none of it. Its standard input stays open meanwhile: an end of that would
 * look like the archive's. Nobody reads its answer any more, and it must not wait for that. */
static void end_it(struct command *c)
{
    own_close(&c->out);
    for (int64_t until = clock_ms() + END_WAIT_MS; clock_ms() < until; usleep(ASK_AGAIN_US)) {
        kill(c->pid, SIGTERM);
        if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
            return;
    }
    kill(c->pid, SIGKILL);
    (void)await(c);
}

int command_run(struct command *c, char *const argv[], int *ret, struct pale_err *e)
{
    c->pid = -1;
    c->in = c->out = c->err = -1;
    c->at = c->left = 0;
    buf_init(&c->frame, FRAME_HEAD + FRAME_PAYLOAD_MAX);
    int r = start(c, argv, e);
    if (r == 0)
        r = follow(c, e);
    if (r < 0 && c->pid > 0)
        end_it(c);
    if (r == 0)
        *ret = await(c);
    command_done(c);
    return r;
}

int command_judge(const char *text, size_t n, int status, struct jsonread *ret, struct pale_err *e)
{
    struct jsonread error, m;
    char code[32] = "", message[WORD_TEXT_MAX] = "";
    bool is_read = jsonread_parse(text, n, ret) && ret->kind == JSONREAD_OBJECT;
    if (is_read && status == 0)
        return 0;
    if (!is_read || !jsonread_get(ret, "error", &error))
        return err_set(e, PALE_OS, "the command ended with status %d and did not say why; look at the daemon's log", status);
    if (jsonread_get(&error, "code", &m))
        jsonread_text(&m, code, sizeof(code));
    if (jsonread_get(&error, "message", &m))
        jsonread_text(&m, message, sizeof(message));
    return err_set(e, err_code_of(code), "%s", message);
}

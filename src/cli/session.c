/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the carrying of bytes between this process and a command in a box.
 *
 * How it works: poll over the keeper's socket, our input and a pipe that signal handlers write to. Input is read only when the
 * last piece has gone out, so a command that does not read stops our input and nothing else. The terminal is put into raw mode
 * for the time of the session and put back on every way out; for a kill that cannot be caught a small guard process holds the
 * old settings and restores them when we are gone. */
#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "wire/fileline.h"

static int signal_pipe[2] = {-1, -1};

/* Signals are the command's to answer; but whoever sends a third one means us. */
#define PATIENCE 3

static void on_signal(int sig)
{
    static volatile sig_atomic_t asked;
    int os = errno;
    unsigned char c = (unsigned char)sig;
    if (sig != SIGWINCH && ++asked >= PATIENCE)
        _exit(128 + sig);
    (void)!write(signal_pipe[1], &c, 1);
    errno = os;
}

void session_init(struct session *s, struct reach *r, struct msg_exec *m)
{
    *s = (struct session){.reach = r, .request = m, .out_fd = -1, .in_fd = 0};
}

int session_ask(struct session *s, struct pale_err *e)
{
    static uint8_t mem[FRAME_PAYLOAD_MAX];
    struct record_writer w;
    record_start(&w, mem, sizeof(mem));
    if (!s->request) {
        msg_attach_write(&s->attach, &w);
        return reach_send(s->reach, ASK_ATTACH, mem, w.len, e);
    }
    msg_exec_write(s->request, &w);
    if (w.full)
        return err_set(e, PALE_LIMIT, "arguments and environment together are longer than %u bytes", FRAME_PAYLOAD_MAX);
    return reach_send(s->reach, ASK_EXEC, mem, w.len, e);
}

/* --- the terminal --- */

struct raw_mode {
    bool on;
    struct termios old;
    int guard_fd; /* closing it sends the guard away */
};

static void set_raw(struct termios *t)
{
    cfmakeraw(t);
    t->c_cc[VMIN] = 1;
    t->c_cc[VTIME] = 0;
}

/* Sits in a session of its own until we are gone, however that happens; then puts the terminal back. */
static void __attribute__((noreturn)) guard(int watch_fd, const struct termios *old)
{
    char c;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    if (read(watch_fd, &c, 1) != 1)
        tcsetattr(0, TCSANOW, old);
    _exit(0);
}

static void enter_raw(struct raw_mode *m)
{
    int pair[2];
    m->guard_fd = -1;
    if (tcgetattr(0, &m->old) < 0)
        return;
    if (pipe2(pair, O_CLOEXEC) == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            close(pair[1]);
            guard(pair[0], &m->old);
        }
        close(pair[0]);
        m->guard_fd = pair[1];
    }
    struct termios raw = m->old;
    set_raw(&raw);
    m->on = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

static void leave_raw(struct raw_mode *m)
{
    if (m->on)
        tcsetattr(0, TCSADRAIN, &m->old);
    if (m->guard_fd >= 0) {
        (void)!write(m->guard_fd, "", 1);
        close(m->guard_fd);
    }
    m->on = false;
}

static void send_size(struct session *s)
{
    struct winsize w;
    uint8_t b[8] = {0};
    if (ioctl(0, TIOCGWINSZ, &w) < 0)
        return;
    uint64_t v = (uint64_t)w.ws_row << 16 | w.ws_col;
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    (void)reach_tell(s->reach, ASK_RESIZE, b, sizeof(b));
}

/* --- signals --- */

/* The last is not the command's business if it goes on without us: our terminal is gone, not its. */
static const int forwarded[] = {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP};

static int catch_signals(const struct session *s, struct pale_err *e)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_os(e, "pipe");
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]) - (s->lasts ? 1 : 0); i++)
        sigaction(forwarded[i], &sa, NULL);
    if (s->terminal)
        sigaction(SIGWINCH, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static void take_signals(struct session *s)
{
    unsigned char sig[64];
    ssize_t n = read(signal_pipe[0], sig, sizeof(sig));
    for (ssize_t i = 0; i < n; i++) {
        if (sig[i] == SIGWINCH) {
            send_size(s);
            continue;
        }
        uint8_t b[8] = {sig[i]};
        (void)reach_tell(s->reach, ASK_SIGNAL, b, sizeof(b));
    }
}

/* --- bytes --- */

#define PROGRESS_AFTER_MS 1000
#define PROGRESS_EVERY_MS 200

static void show_progress(struct session *s, size_t moved)
{
    char text[32];
    if (!s->shows_progress)
        return;
    int64_t now = clock_ms();
    s->moved_bytes += moved;
    if (now - s->began_ms < PROGRESS_AFTER_MS || now - s->shown_ms < PROGRESS_EVERY_MS)
        return;
    s->shown_ms = now;
    dprintf(2, "\r\033[K%s", number_show_bytes(s->moved_bytes, text, sizeof(text)));
}

static void end_progress(const struct session *s)
{
    if (s->shown_ms)
        dprintf(2, "\r\033[K");
}

static int deliver(struct session *s, const struct frame *f, struct pale_err *e)
{
    bool is_err = f->type == TELL_STDERR;
    if (!is_err && s->sink)
        return s->sink(s->sink_to, f->data, f->len, e);
    struct buf *b = is_err ? s->err : s->out;
    if (b) {
        buf_add(b, f->data, f->len);
        return 0;
    }
    int fd = is_err ? 2 : s->out_fd >= 0 ? s->out_fd : 1;
    show_progress(s, f->len);
    if (!fd_write_full(fd, f->data, f->len))
        return errno == EPIPE ? err_set(e, PALE_GONE, "nobody reads the output") : err_os(e, "write output");
    return 0;
}

/* One piece of input. False when there will be no more. */
static bool feed(struct session *s)
{
    static uint8_t block[STDIN_WINDOW];
    size_t head = s->in_pieces ? FILE_PIECE_HEAD : 0;
    ssize_t n = read(s->in_fd, block + head, sizeof(block) - head);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    s->fed = true;
    show_progress(s, n > 0 ? (size_t)n : 0);
    if (head && n >= 0)
        file_piece_head((uint32_t)n, block);
    if (n > 0 && reach_tell(s->reach, ASK_STDIN, block, head + (size_t)n))
        return true;
    if (head && n == 0)
        (void)reach_tell(s->reach, ASK_STDIN, block, head);
    (void)reach_tell(s->reach, ASK_STDIN_END, NULL, 0);
    return false;
}

uint64_t session_skip(const struct frame *f, uint64_t wanted)
{
    uint64_t begins = 0;
    return msg_u64_parse(f->data, f->len, &begins) && begins < wanted ? wanted - begins : 0;
}

struct frame session_rest(const struct frame *f, uint64_t *skip)
{
    struct frame rest = *f;
    uint32_t less = *skip < f->len ? (uint32_t)*skip : f->len;
    rest.data += less;
    rest.len -= less;
    *skip -= less;
    return rest;
}

void session_missed(const struct frame *f)
{
    uint64_t n = 0;
    char text[32];
    if (msg_u64_parse(f->data, f->len, &n))
        dprintf(2, "pale: %s of output before this are no longer kept\n", number_show_bytes(n, text, sizeof(text)));
}

/* Frames that are here: 1 when the result has come. */
static int take_frames(struct session *s, struct msg_result *ret, struct pale_err *e)
{
    struct frame f;
    int got;
    while ((got = reach_next(s->reach, &f)) == 1) {
        struct msg_error m;
        int r = 0;
        switch (f.type) {
        case TELL_STDOUT:
        case TELL_STDERR:
            f = session_rest(&f, &s->skip);
            r = deliver(s, &f, e);
            break;
        case TELL_RESULT:
            if (!msg_result_parse(f.data, f.len, ret))
                return err_set(e, PALE_PROTOCOL, "the result cannot be read");
            snprintf(s->message, sizeof(s->message), "%s", ret->message);
            ret->message = s->message;
            return 1;
        case TELL_ERROR:
            if (!msg_error_parse(f.data, f.len, &m) || m.code == 0 || m.code >= PALE_CODE_COUNT)
                return err_set(e, PALE_PROTOCOL, "the keeper sent an error that cannot be read");
            s->turned_away = !s->heard && m.code == PALE_GONE;
            return err_set(e, (enum pale_code)m.code, "%s", m.text);
        case TELL_STARTED:
        case TELL_JOB: /* how one that was there already stands */
            break;
        case TELL_OFFSET:
            s->skip = session_skip(&f, s->attach.offset);
            break;
        case TELL_MISSED:
            session_missed(&f);
            break;
        default:
            return err_set(e, PALE_PROTOCOL, "the keeper does not speak our language");
        }
        s->heard = true;
        if (r < 0)
            return r;
    }
    return got < 0 ? err_set(e, PALE_PROTOCOL, "the keeper does not speak our language") : 0;
}

static int carry(struct session *s, struct msg_result *ret, struct pale_err *e)
{
    bool input = s->forward_input;
    for (;;) {
        int r = take_frames(s, ret, e);
        if (r != 0)
            return r < 0 ? r : 0;
        struct pollfd p[3] = {
            {.fd = s->reach->fd, .events = POLLIN}, {.fd = signal_pipe[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
        if (input) {
            /* Input is taken only while the keeper takes ours: a full socket must not block us from reading output. */
            struct pollfd w = {.fd = s->reach->fd, .events = POLLOUT};
            if (poll(&w, 1, 0) == 1)
                p[2].fd = s->in_fd;
            else
                p[0].events |= POLLOUT;
        }
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return err_os(e, "poll");
        if (p[1].revents)
            take_signals(s);
        if (p[2].revents)
            input = feed(s);
        if (p[0].revents & (POLLIN | POLLHUP | POLLERR)) {
            int n = reach_fill(s->reach);
            if (n < 0 && errno != ECONNRESET)
                return err_os(e, "listen to the keeper");
            if (n <= 0)
                return err_set(e, PALE_GONE, "the keeper ended before the command did");
        }
    }
}

int session_run(struct session *s, struct msg_result *ret, struct pale_err *e)
{
    struct raw_mode raw = {.guard_fd = -1};
    int r = session_ask(s, e);
    s->turned_away = r == -PALE_GONE; /* it did not even take the request */
    if (r < 0)
        return r;
    if ((r = catch_signals(s, e)) < 0)
        return r;
    if (s->terminal) {
        enter_raw(&raw);
        if (!s->request)
            send_size(s);
    }
    s->began_ms = s->shows_progress ? clock_ms() : 0;
    r = carry(s, ret, e);
    end_progress(s);
    leave_raw(&raw);
    return r;
}

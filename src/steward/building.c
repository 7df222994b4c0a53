/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the building of images for clients of the daemon. */
#include "steward/building.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "box/imageref.h"
#include "box/place.h"
#include "image/staging.h"
#include "image/store.h"
#include "steward/inlet.h"
#include "steward/outlet.h"

#define SILENCE_MS 5000  /* then whoever follows it hears that it goes on */
#define END_WAIT_MS 5000 /* for a builder that was told to end */
#define ASK_AGAIN_US 50000
#define ANSWER_MAX 65536u
#define LINE_MAX_BYTES 1000u /* of what the builder says, the rest of the line is cut */
#define WORDS_MAX 16

enum form { FORM_NONE, FORM_LINES, FORM_EVENTS };

struct building {
    const struct msg_deed *order;
    int fd; /* to paled */
    enum form form;
    struct outlet *out;
    pid_t pid;
    int in, said, answered; /* the builder's standard descriptors; -1: done with */
    bool takes;             /* parts are still to come */
    struct buf frame, line, answer;
    size_t at, left; /* of the part that the builder takes */
    int64_t began_ms, told_ms;
};

static void building_done(struct building *b)
{
    free(b->out);
    own_close(&b->in);
    own_close(&b->said);
    own_close(&b->answered);
    buf_done(&b->frame);
    buf_done(&b->line);
    buf_done(&b->answer);
}

/* --- telling --- */

/* A client that still sends its archive need not read yet, and must not be waited for: what is only a word on the way is left out then. */
static bool is_heard(const struct building *b)
{
    struct pollfd p = {.fd = b->fd, .events = POLLOUT};
    return b->form != FORM_NONE && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);
}

/* One event, as the client wants them; fields: what stands in it besides, a JSON object or NULL. */
static int tell(struct building *b, const char *event, const char *key, const char *text, const struct jsonread *fields, struct pale_err *e)
{
    own_buf out = {0};
    struct json j;
    struct jsonread name, value;
    if (b->form == FORM_NONE)
        return 0;
    buf_init(&out, 2 * ANSWER_MAX);
    if (b->form == FORM_EVENTS)
        buf_addf(&out, "event: %s\ndata: ", event);
    json_start(&j, &out);
    json_begin_object(&j, NULL);
    json_text(&j, "event", event);
    json_u64(&j, "elapsed_ms", (uint64_t)(clock_ms() - b->began_ms));
    if (key)
        json_text(&j, key, text);
    for (size_t pos = 0; fields && jsonread_next(fields, &pos, &name, &value);) {
        char member[64];
        size_t quote = value.kind == JSONREAD_TEXT ? 1 : 0;
        json_raw(&j, jsonread_text(&name, member, sizeof(member)), value.at - quote, value.len + 2 * quote);
    }
    json_end_object(&j);
    buf_add_text(&out, b->form == FORM_EVENTS ? "\n\n" : "\n");
    if (out.failed)
        return err_nomem(e);
    b->told_ms = clock_ms();
    int r = outlet_add(b->out, out.data, out.len, e);
    return r < 0 ? r : outlet_flush(b->out, e);
}

/* What the builder says, line by line. */
static int hear(struct building *b, const char *p, size_t n, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (p[i] != '\n') {
            if (b->line.len < LINE_MAX_BYTES)
                buf_add(&b->line, p + i, 1);
            continue;
        }
        r = b->line.len && is_heard(b) ? tell(b, "note", "text", buf_text(&b->line), NULL, e) : 0;
        b->line.len = 0;
    }
    return r;
}

/* --- the builder --- */

/* What a source may be told, by the names of the command line's flags. */
static bool is_flag(const char *key)
{
    static const char *const known[] = {"suite", "variant", "include", "force-copy"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

/* KEY TAB VALUE, line by line, each a word of its own that cannot be taken for another. */
static int add_flags(const char *sets, struct buf *words, size_t *count, struct pale_err *e)
{
    char key[32];
    for (const char *at = sets; *at;) {
        const char *end = strchr(at, '\n'), *tab = strchr(at, '\t');
        if (!end || !tab || tab > end || (size_t)(tab - at) >= sizeof(key) || *count == WORDS_MAX)
            return err_set(e, PALE_PROTOCOL, "an order has no such form");
        snprintf(key, sizeof(key), "%.*s", (int)(tab - at), at);
        if (!is_flag(key))
            return err_set(e, PALE_BAD_INPUT, "%s is nothing that an image is built with", key);
        buf_addf(words, tab + 1 == end ? "--%s" : "--%s=%.*s", key, (int)(end - tab - 1), tab + 1);
        buf_add(words, "", 1);
        ++*count;
        at = end + 1;
    }
    return 0;
}

static _Noreturn void become(const struct building *b, const char *program, char *const argv[], const int ends[3], pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("PALE_CALLER", b->order->caller, 1);
    if (getppid() == parent && dup2(b->takes ? ends[0] : null, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[2], 2) == 2)
        execv(program, argv);
    _exit(125);
}

static int start(struct building *b, char *const argv[], struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int in[2], out[2], said[2];
    int r = place_command(program, sizeof(program), e);
    if (r < 0)
        return r;
    if (pipe2(in, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd in_end = in[0];
    b->in = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd out_end = out[1];
    b->answered = out[0];
    if (pipe2(said, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd said_end = said[1];
    b->said = said[0];
    const int ends[3] = {in_end, out_end, said_end};
    pid_t parent = getpid();
    b->pid = fork();
    if (b->pid == 0)
        become(b, program, argv, ends, parent);
    if (b->pid < 0)
        return err_os(e, "start %s", program);
    if (!b->takes)
        own_close(&b->in);
    return b->takes && fcntl(b->in, F_SETFL, O_NONBLOCK) < 0 ? err_os(e, "prepare a pipe") : 0;
}

static int start_pale(struct building *b, struct pale_err *e)
{
    const struct msg_deed *m = b->order;
    char from[64];
    char *argv[WORDS_MAX + 12] = {(char *)"pale", (char *)"image", (char *)"build", (char *)"--json", (char *)"--progress",
                                  /* This host, whatever PALE_HOST says: else it might ask us. */
                                  (char *)"--host", (char *)"", (char *)m->name, from};
    size_t n = 9, flags = 0;
    own_buf words = {0};
    snprintf(from, sizeof(from), "--from=%s", m->form);
    buf_init(&words, FRAME_PAYLOAD_MAX);
    int r = add_flags(m->sets, &words, &flags, e);
    if (r == 0 && words.failed)
        r = err_nomem(e);
    if (r < 0)
        return r;
    char *at = (char *)words.data;
    for (size_t i = 0; i < flags; i++, at += strlen(at) + 1)
        argv[n++] = at;
    if (b->takes)
        argv[n++] = (char *)"--file=-";
    return start(b, argv, e);
}

/* --- while it builds --- */

/* The next part, or the end of them. */
static int take_part(struct building *b, struct pale_err *e)
{
    struct frame f;
    int r = inlet_frame(b->fd, &b->frame, &f, e);
    if (r == 0 && f.type != DEED_PART)
        r = err_set(e, PALE_PROTOCOL, "this is no part of an archive");
    if (r < 0)
        return r;
    b->at = FRAME_HEAD;
    b->left = f.len;
    b->takes = f.len > 0;
    if (!b->takes)
        own_close(&b->in);
    return 0;
}

/* A builder that takes no more has its reasons, and will say so. */
static void give_part(struct building *b)
{
    ssize_t n = write(b->in, b->frame.data + b->at, b->left);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        own_close(&b->in);
        b->left = 0;
        return;
    }
    b->at += (size_t)n;
    b->left -= (size_t)n;
}

/* 0 at its end. */
static ssize_t drain(int *fd, char *block, size_t cap)
{
    ssize_t n = read(*fd, block, cap);
    if (n < 0 && errno == EINTR)
        return -1;
    if (n <= 0)
        own_close(fd);
    return n;
}

static int attend(struct building *b, const struct pollfd p[4], struct pale_err *e)
{
    char block[4096];
    ssize_t n;
    int r = 0;
    if (p[0].revents & (POLLHUP | POLLERR | POLLRDHUP))
        return err_set(e, PALE_GONE, "nobody waits for the image any more");
    if (p[0].revents & POLLIN)
        r = take_part(b, e);
    if (r == 0 && p[1].revents && b->in >= 0)
        give_part(b);
    if (r == 0 && p[2].revents && (n = drain(&b->said, block, sizeof(block))) > 0)
        r = hear(b, block, (size_t)n, e);
    if (r == 0 && p[3].revents && (n = drain(&b->answered, block, sizeof(block))) > 0)
        buf_add(&b->answer, block, (size_t)n);
    if (r == 0 && clock_ms() - b->told_ms > SILENCE_MS && is_heard(b))
        r = tell(b, "building", NULL, NULL, NULL, e);
    return r;
}

/* Until the builder has closed both of what it speaks by. */
static int follow(struct building *b, struct pale_err *e)
{
    int r = 0;
    while (r == 0 && (b->said >= 0 || b->answered >= 0)) {
        /* Parts that a builder no longer takes are taken all the same, and dropped: whoever sends them is to hear why. */
        if (b->in < 0)
            b->left = 0;
        bool wants = b->takes && b->left == 0;
        struct pollfd p[4] = {{.fd = b->fd, .events = (short)(POLLRDHUP | (wants ? POLLIN : 0))},
                              {.fd = b->left > 0 ? b->in : -1, .events = POLLOUT},
                              {.fd = b->said, .events = POLLIN},
                              {.fd = b->answered, .events = POLLIN}};
        if (poll(p, 4, 1000) < 0 && errno != EINTR)
            return err_os(e, "wait for the builder");
        r = attend(b, p, e);
    }
    return r;
}

/* A builder that was interrupted may not have been able to take away all that its box had made. */
static void sweep(void)
{
    own_store s = STORE_NONE;
    struct pale_err ignored;
    if (imageref_store(&s, &ignored) == 0)
        (void)staging_sweep(&s, false);
}

/* It is asked again and again: while it starts a box it hears none of it. Its standard input stays open meanwhile: an end of that
 * would look like the archive's. */
static void end_builder(struct building *b)
{
    int status;
    for (int64_t until = clock_ms() + END_WAIT_MS; clock_ms() < until; usleep(ASK_AGAIN_US)) {
        kill(b->pid, SIGTERM);
        if (waitpid(b->pid, &status, WNOHANG) == b->pid)
            return sweep();
    }
    kill(b->pid, SIGKILL);
    while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
        ;
    sweep();
}

static int await(const struct building *b)
{
    int status = 0;
    while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* --- what came of it --- */

static int judge(struct building *b, int status, struct jsonread *ret, struct pale_err *e)
{
    struct jsonread error, m;
    char code[32] = "", text[600] = "";
    bool is_read = !b->answer.failed && jsonread_parse(buf_text(&b->answer), b->answer.len, ret) && ret->kind == JSONREAD_OBJECT;
    if (is_read && status == 0)
        return 0;
    if (!is_read || !jsonread_get(ret, "error", &error))
        return err_set(e, PALE_OS, "the builder ended with status %d and did not say why; look at the daemon's log", status);
    if (jsonread_get(&error, "code", &m))
        jsonread_text(&m, code, sizeof(code));
    if (jsonread_get(&error, "message", &m))
        jsonread_text(&m, text, sizeof(text));
    return err_set(e, err_code_of(code), "%s", text);
}

/* Whoever follows it has begun to read: what went wrong is the last line then, and no failure of the deed's. */
static int tell_end(struct building *b, int so_far, const struct jsonread *built, struct buf *told, struct pale_err *e)
{
    if (so_far < 0 && (b->form == FORM_NONE || b->out->told == 0))
        return so_far;
    if (so_far < 0) {
        own_buf fields = {0};
        struct json j;
        struct jsonread v;
        buf_init(&fields, 4096);
        json_start(&j, &fields);
        json_begin_object(&j, NULL);
        json_text(&j, "code", err_name(e->code));
        json_text(&j, "detail", e->text);
        json_end_object(&j);
        return jsonread_parse(buf_text(&fields), fields.len, &v) ? tell(b, "failed", NULL, NULL, &v, e) : so_far;
    }
    buf_add(told, b->answer.data, b->answer.len);
    if (b->form != FORM_NONE)
        return tell(b, "built", NULL, NULL, built, e);
    int r = outlet_add(b->out, b->answer.data, b->answer.len, e);
    return r < 0 ? r : outlet_flush(b->out, e);
}

int building_run(const struct msg_deed *m, int fd, struct buf *told, struct pale_err *e)
{
    static const char *const sources[] = {"mmdebstrap", "minimal", "host-copy", "tar", "oci"};
    CLEANUP(building_done) struct building b = {.order = m, .fd = fd, .in = -1, .said = -1, .answered = -1, .began_ms = clock_ms()};
    struct jsonread built = {0};
    size_t source = 0;
    buf_init(&b.frame, FRAME_HEAD + FRAME_PAYLOAD_MAX);
    buf_init(&b.line, LINE_MAX_BYTES + 1);
    buf_init(&b.answer, ANSWER_MAX);
    b.told_ms = b.began_ms;
    b.form = strcmp(m->until, "lines") == 0 ? FORM_LINES : strcmp(m->until, "events") == 0 ? FORM_EVENTS : FORM_NONE;
    b.takes = strcmp(m->form, "tar") == 0 || strcmp(m->form, "oci") == 0;
    if (!store_is_name(m->name)) /* it becomes a word of a command */
        return err_set(e, PALE_BAD_INPUT, "name: letters, digits and . _ : + -, beginning with a letter or digit");
    while (source < sizeof(sources) / sizeof(sources[0]) && strcmp(sources[source], m->form) != 0)
        source++;
    if (source == sizeof(sources) / sizeof(sources[0]))
        return err_set(e, PALE_BAD_INPUT, "from: an image is built from mmdebstrap, minimal, host-copy, tar or oci");
    b.out = outlet_new(fd);
    if (!b.out)
        return err_nomem(e);
    int r = start_pale(&b, e);
    if (r < 0)
        return r;
    r = follow(&b, e);
    if (r < 0)
        end_builder(&b);
    else
        r = judge(&b, await(&b), &built, e);
    return tell_end(&b, r, &built, told, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns trials. */
#include "agents/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/shadow.h"
#include "agents/stub.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/quote.h"

#define SAID_MAX 4096 /* of what a harness that fails has said last */
#define TOLD_MAX (4u << 20)
#define FIRST_MAX 8192

/* --- running --- */

struct watched {
    pid_t pid;
    int pid_fd;
    int out_fd; /* its output */
};

static void watched_end(struct watched *w)
{
    if (w->pid > 0) {
        kill(-w->pid, SIGKILL);
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    own_close(&w->pid_fd);
    own_close(&w->out_fd);
}

/* In a session of its own, without our terminal, with nothing to read. */
static int watched_start(struct watched *w, char *const argv[], char *const envp[], const char *cwd, struct pale_err *e)
{
    int pair[2];
    *w = (struct watched){.pid = -1, .pid_fd = -1, .out_fd = -1};
    own_fd null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || pipe2(pair, O_CLOEXEC) < 0)
        return err_os(e, "make a pipe");
    own_fd in = pair[0], out = pair[1];
    w->pid = fork();
    if (w->pid < 0)
        return err_os(e, "start %s", argv[0]);
    if (w->pid == 0) {
        setsid();
        if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(cwd) < 0)
            _exit(127);
        execve(argv[0], argv, envp);
        _exit(127);
    }
    w->out_fd = take_fd(&in);
    w->pid_fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    (void)fd_set_nonblock(w->out_fd, true);
    return w->pid_fd < 0 ? err_os(e, "watch %s", argv[0]) : 0;
}

/* Reads what is there, keeping its last bytes. false at the end. */
static bool keep_last(int fd, struct buf *b)
{
    char chunk[4096];
    ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    if (b->len + (size_t)n > SAID_MAX)
        buf_consume(b, b->len + (size_t)n - SAID_MAX < b->len ? b->len + (size_t)n - SAID_MAX : b->len);
    buf_add(b, chunk, (size_t)n);
    return true;
}

/* Until it has ended. told: what the stub tells, or NULL. The last it said is in said. */
static int watched_wait(struct watched *w, int told_fd, struct buf *told, struct buf *said, int64_t until, struct pale_err *e)
{
    struct pollfd p[3] = {{.fd = w->pid_fd, .events = POLLIN}, {.fd = w->out_fd, .events = POLLIN}, {.fd = told_fd, .events = POLLIN}};
    for (;;) {
        int64_t left = until - clock_ms();
        if (left <= 0)
            return err_set(e, PALE_TIMEOUT, "it did not end within %d s", TRIAL_MS / 1000);
        if (poll(p, 3, (int)left) < 0 && errno != EINTR)
            return err_os(e, "wait");
        if (p[1].revents && !keep_last(w->out_fd, said))
            p[1].fd = -1;
        if (p[2].revents) {
            char chunk[4096];
            ssize_t n = read(told_fd, chunk, sizeof(chunk));
            if (n > 0)
                buf_add(told, chunk, (size_t)n);
            else
                p[2].fd = -1;
        }
        if (p[0].revents && !p[2].revents && !p[1].revents)
            return 0;
    }
}

/* --- version --- */

static void find_version(const char *text, char ret[32])
{
    ret[0] = 0;
    for (const char *at = text; *at; at++) {
        size_t n = strspn(at, "0123456789.");
        int dots = 0;
        for (size_t i = 0; i < n; i++)
            dots += at[i] == '.';
        if (n > 0 && at[0] != '.' && dots >= 2 && n < 32) {
            memcpy(ret, at, n);
            ret[n] = 0;
            return;
        }
        at += n > 0 ? n - 1 : 0;
    }
}

int trial_compare_versions(const char *a, const char *b)
{
    while (*a || *b) {
        unsigned long x = 0, y = 0;
        for (; *a >= '0' && *a <= '9'; a++)
            x = x * 10 + (unsigned long)(*a - '0');
        for (; *b >= '0' && *b <= '9'; b++)
            y = y * 10 + (unsigned long)(*b - '0');
        if (x != y)
            return x < y ? -1 : 1;
        a += *a != 0;
        b += *b != 0;
    }
    return 0;
}

/* Of our environment what any program needs, and no more: no token of the user's is in it. */
static int plain_env(const struct harness *h, const char *project, const char *home, struct words *out, struct pale_err *e)
{
    static const char *const names[] = {"LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", NULL};
    own_words ours = {0};
    int r = harness_env(h, project, &ours, e);
    if (r < 0)
        return r;
    for (const char *const *n = names; *n; n++)
        if (words_env(&ours, *n))
            words_set_env(out, *n, words_env(&ours, *n));
    words_set_env(out, "PATH", words_env(&ours, "PATH"));
    words_set_env(out, "HOME", home);
    words_set_env(out, "TERM", "dumb");
    words_set_env(out, "NO_COLOR", "1");
    words_set_env(out, "CI", "1");
    return out->failed ? err_nomem(e) : 0;
}

int trial_version(const struct harness *h, const char *program, const char *project, char ret[32], struct pale_err *e)
{
    own_shadow s = {.dir_fd = -1, .lock_fd = -1};
    own_words argv = {0}, env = {0};
    own_buf said = {0};
    struct watched w;
    int r = shadow_open(&s, h->name, "version", e);
    if (r == 0)
        r = plain_env(h, project, s.home, &env, e);
    if (r < 0)
        return r;
    buf_init(&said, 2 * SAID_MAX);
    words_add(&argv, program);
    words_add(&argv, "--version");
    r = argv.failed ? err_nomem(e) : watched_start(&w, argv.item, env.item, s.work, e);
    if (r == 0)
        r = watched_wait(&w, -1, NULL, &said, clock_ms() + TRIAL_MS, e);
    watched_end(&w);
    if (r == 0)
        find_version(buf_text(&said), ret);
    return r < 0 ? err_prefix(e, "%s --version", h->name) : 0;
}

/* --- memory --- */

static void add_stat(struct sha256 *d, const char *path)
{
    struct stat st;
    sha256_add(d, path, strlen(path) + 1);
    if (stat(path, &st) < 0)
        return;
    struct {
        dev_t dev;
        ino_t ino;
        off_t size;
        struct timespec changed, written;
    } what;
    memset(&what, 0, sizeof(what));
    what.dev = st.st_dev;
    what.ino = st.st_ino;
    what.size = st.st_size;
    what.changed = st.st_ctim;
    what.written = st.st_mtim;
    sha256_add(d, &what, sizeof(what));
}

/* The program, the package it is of (a program of npm's is a short script), and pale itself, in which our tables are. */
static void key_of(const struct wiring_facts *f, const struct sha256 *more, char ret[SHA256_HEX])
{
    struct sha256 d = *more;
    uint8_t digest[SHA256_BYTES];
    char path[PATH_BYTES_MAX];
    add_stat(&d, f->program);
    add_stat(&d, f->pale);
    snprintf(path, sizeof(path), "%s", f->program);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        char package[PATH_BYTES_MAX];
        if (!slash)
            break;
        *slash = 0;
        if (snprintf(package, sizeof(package), "%s/package.json", path) < (int)sizeof(package))
            add_stat(&d, package);
    }
    sha256_final(&d, digest);
    sha256_to_hex(digest, ret);
}

/* The folder of remembered trials, made if need be; -1 where there is none: then nothing is remembered. */
static int memory_dir(void)
{
    char path[PATH_BYTES_MAX];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    static const char *const parts[] = {"", "/pale", "/agents"};
    size_t n;
    if (cache && cache[0] == '/')
        n = (size_t)snprintf(path, sizeof(path) - 32, "%s", cache);
    else if (home && home[0] == '/')
        n = (size_t)snprintf(path, sizeof(path) - 32, "%s/.cache", home);
    else
        return -1;
    for (size_t i = 0; n < sizeof(path) - 32 && i < 3; i++) {
        n += (size_t)snprintf(path + n, sizeof(path) - n, "%s", parts[i]);
        (void)mkdir(path, 0700);
    }
    struct stat st;
    own_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
        return -1;
    return take_fd(&fd);
}

/* Lines: the key, the version, then a tool each. */
static bool remembered(int dir, const struct harness *h, const char *key, struct trial *ret)
{
    own_buf b = {0};
    struct stat st;
    own_fd fd = openat(dir, h->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
        return false;
    buf_init(&b, 65536);
    if (fd_read_all(fd, &b, NULL) < 0)
        return false;
    const char *at = buf_text(&b);
    if (strncmp(at, key, SHA256_HEX - 1) != 0 || at[SHA256_HEX - 1] != '\n')
        return false;
    at += SHA256_HEX;
    *ret = (struct trial){.is_remembered = true};
    size_t n = strcspn(at, "\n");
    snprintf(ret->version, sizeof(ret->version), "%.*s", (int)n, at);
    for (at += n; *at == '\n' && at[1] && ret->count < TRIAL_TOOLS_MAX; at += n) {
        n = strcspn(++at, "\n");
        snprintf(ret->tool[ret->count++], sizeof(ret->tool[0]), "%.*s", (int)n, at);
    }
    return ret->count > 0;
}

static void remember(int dir, const struct harness *h, const char *key, const struct trial *t)
{
    own_buf b = {0};
    buf_init(&b, 65536);
    buf_addf(&b, "%s\n%s\n", key, t->version);
    for (size_t i = 0; i < t->count; i++)
        buf_addf(&b, "%s\n", t->tool[i]);
    if (!b.failed)
        (void)!fd_replace_file(dir, h->name, b.data, b.len, 0600, false, NULL);
}

/* --- the trial --- */

static int unexpected(const struct harness *h, const char *tool, struct pale_err *e)
{
    char shown[160];
    return err_set(
        e, PALE_DENIED,
        "%s would offer the model the tool %s, which pale does not know to be harmless: it is not started. A newer pale may know "
        "this version; `pale agents` lists those that were verified",
        h->name, quote_into(shown, sizeof(shown), tool, strlen(tool)));
}

/* The lines of the stub, once each. */
static int judge(const struct harness *h, const char *told, struct trial *t, struct pale_err *e)
{
    char wanted[64];
    bool asked = false, has_exec = false;
    snprintf(wanted, sizeof(wanted), "%sexec", h->tool_prefix);
    for (const char *at = told; *at;) {
        char name[sizeof(t->tool[0])];
        size_t n = strcspn(at, "\n"), i = 0;
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        at += n + (at[n] == '\n');
        if (strcmp(name, "!") == 0 || n >= sizeof(name))
            return err_set(e, PALE_PROTOCOL, "%s sent the model a request that cannot be read: it is not started", h->name);
        asked = asked || strcmp(name, ".") == 0;
        if (strcmp(name, ".") == 0)
            continue;
        if (!harness_expects(h, name))
            return unexpected(h, name, e);
        has_exec = has_exec || strcmp(name, wanted) == 0;
        while (i < t->count && strcmp(t->tool[i], name) != 0)
            i++;
        if (i == TRIAL_TOOLS_MAX)
            return err_set(e, PALE_LIMIT, "%s offers more than %d tools", h->name, TRIAL_TOOLS_MAX);
        if (i == t->count)
            snprintf(t->tool[t->count++], sizeof(t->tool[0]), "%s", name);
    }
    if (!asked)
        return err_set(e, PALE_UNSUPPORTED, "%s did not ask the model anything", h->name);
    return has_exec ? 0 : err_set(e, PALE_UNSUPPORTED, "%s does not offer the model %s: the box's tools are missing", h->name, wanted);
}

static int ask_once(const struct harness *h, struct shadow *s, const struct wiring_facts *facts, struct buf *told, struct buf *said,
                    struct pale_err *e)
{
    own_wiring w = {0};
    struct watched run = {.pid = -1, .pid_fd = -1, .out_fd = -1};
    struct stub stub;
    char url[96];
    own_buf first = {0};
    struct wiring_facts f = *facts;
    f.shadow = s->path;
    f.work = s->work;
    f.home = s->home;
    f.model_url = url;
    buf_init(&first, FIRST_MAX);
    if (h->probe)
        h->probe(&f, &first);
    int r = first.failed ? err_nomem(e) : stub_start(&stub, buf_text(&first), e);
    if (r < 0)
        return r;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", stub.port, stub.secret);
    words_add(&w.argv, f.program);
    r = plain_env(h, f.project, s->home, &w.env, e);
    h->wire(&w, &f);
    h->ask_stub(&w, &f);
    if (r == 0)
        r = wiring_write(&w, s->dir_fd, e);
    if (r == 0)
        r = watched_start(&run, w.argv.item, w.env.item, s->work, e);
    if (r == 0)
        r = watched_wait(&run, stub.out_fd, told, said, clock_ms() + TRIAL_MS, e);
    watched_end(&run);
    stub_end(&stub);
    if (r == 0 && faccessat(s->dir_fd, "work/tripped", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        r = err_set(e, PALE_DENIED, "%s let the model act on the host with a tool that should be dead: it is not started", h->name);
    return r == 0 && told->failed ? err_set(e, PALE_LIMIT, "%s asks the model without end", h->name) : r;
}

/* What it said itself is the best help there is. */
static int with_words(const struct buf *said, struct pale_err *e)
{
    char shown[300];
    size_t from = said->len > 280 ? said->len - 280 : 0;
    if (said->len == 0 || e->code == PALE_DENIED)
        return -(int)e->code;
    quote_into(shown, sizeof(shown), said->data + from, said->len - from);
    struct pale_err first = *e;
    return err_set(e, first.code, "%s; it said: %s", first.text, shown);
}

/* One that is older lacks what it would be started with, and would say so in words that help nobody. */
static int check_age(const struct harness *h, const char *program, const char *version, struct pale_err *e)
{
    char shown[200];
    if (!version[0] || trial_compare_versions(version, h->oldest) >= 0)
        return 0;
    return err_set(
        e, PALE_UNSUPPORTED,
        "%s is %s %s, which is too old: pale needs %s or newer, where its own tools can be taken away; `npm install -g %s@latest` "
        "brings it, or the way it was installed",
        quote_into(shown, sizeof(shown), program, strlen(program)), h->title, version, h->oldest, h->package);
}

int trial_run(const struct harness *h, const struct wiring_facts *facts, const struct sha256 *more, bool force, struct trial *ret,
              struct pale_err *e)
{
    char key[SHA256_HEX];
    own_shadow s = {.dir_fd = -1, .lock_fd = -1};
    own_buf told = {0}, said = {0};
    own_fd memory = memory_dir();
    key_of(facts, more, key);
    if (!force && memory >= 0 && remembered(memory, h, key, ret))
        return 0;
    *ret = (struct trial){0};
    buf_init(&told, TOLD_MAX);
    buf_init(&said, 2 * SAID_MAX);
    int r = trial_version(h, facts->program, facts->project, ret->version, e);
    if (r == 0 && (r = check_age(h, facts->program, ret->version, e)) < 0)
        return r;
    if (r == 0)
        r = shadow_open(&s, h->name, "trial", e);
    if (r == 0)
        r = ask_once(h, &s, facts, &told, &said, e);
    if (r == 0)
        r = judge(h, buf_text(&told), ret, e);
    if (r < 0) {
        (void)with_words(&said, e);
        return err_prefix(e, "the trial of %s", h->name);
    }
    if (memory >= 0)
        remember(memory, h, key, ret);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the preparing, showing and running of launches. */
#include "cli/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/snippet.h"
#include "base/json.h"
#include "base/quote.h"
#include "box/daemon.h"

extern char **environ;

void launch_done(struct launch *l)
{
    wiring_done(&l->wiring);
    words_done(&l->mcp_env);
    buf_done(&l->instructions);
    shadow_close(&l->shadow);
}

struct wiring_facts launch_facts(const struct launch *l)
{
    return (struct wiring_facts){.program = l->program,
                                 .pale = l->pale,
                                 .box_id = l->box.place.id,
                                 .box_name = l->box.place.name,
                                 .project = l->project,
                                 .shadow = l->shadow.path,
                                 .work = l->shadow.work,
                                 .instructions = l->instructions.data ? (const char *)l->instructions.data : "",
                                 .mcp_env = &l->mcp_env};
}

/* --- preparing --- */

static void tell_site(void *arg, bool defeats, const char *path, const char *text)
{
    struct pale_err *first = arg;
    if (defeats && first->code == PALE_OK)
        err_set(first, PALE_UNSUPPORTED, "%s, the site's settings, %s", path, text);
    else
        cli_note("note: %s, the site's settings, %s", path, text);
}

static int look_at_site(struct launch *l, struct pale_err *e)
{
    bool defeated = false;
    struct pale_err first = {0};
    sha256_init(&l->site);
    int r = managed_look(l->harness->managed, tell_site, &first, &defeated, &l->site, e);
    if (r == 0 && defeated)
        r = err_set(e, first.code, "%s", first.text);
    return r;
}

static int read_instructions(struct launch *l, struct pale_err *e)
{
    const char *home = getenv("HOME");
    const char *const own[] = {l->harness->home_instructions, NULL};
    buf_init(&l->instructions, INSTRUCTIONS_MAX);
    instructions_preface(l->project, l->box.place.name, l->harness->hint, &l->instructions);
    int r = instructions_read(l->project, l->harness->instructions, &l->instructions, cli_note, e);
    if (r == 0 && own[0] && home && home[0] == '/')
        r = instructions_read(home, own, &l->instructions, cli_note, e);
    (void)buf_text(&l->instructions); /* ends it with a NUL */
    return r == 0 && l->instructions.failed ? err_nomem(e) : r;
}

static int find_ourselves(struct launch *l, struct pale_err *e)
{
    ssize_t n = readlink("/proc/self/exe", l->pale, sizeof(l->pale) - 1);
    if (n <= 0)
        return err_os(e, "find our own program");
    l->pale[n] = 0;
    if (!realpath(".", l->project))
        return err_os(e, "find the working folder");
    return 0;
}

/* The MCP server would start it by itself, but then below the harness, and some end all that is below them when they end. */
static int start_daemon(struct pale_err *e)
{
    struct daemon_paths paths;
    own_fd fd = -1;
    int r = daemon_paths(&paths, e);
    return r < 0 ? r : daemon_connect(&paths, true, 0, &fd, e);
}

int launch_prepare(struct launch *l, struct args *a, const struct harness *h, bool dry, struct pale_err *e)
{
    l->harness = h;
    l->args = a;
    l->shadow.dir_fd = l->shadow.lock_fd = -1;
    own_words passed = {0};
    int r = find_ourselves(l, e);
    if (r == 0)
        r = harness_pass(h, a->word + a->command, a->count - a->command, &passed, e);
    if (r == 0)
        r = harness_program(h, l->project, l->program, sizeof(l->program), e);
    if (r == 0)
        r = look_at_site(l, e);
    if (r == 0)
        r = ensure_box(a, l->project, dry, &l->box, e);
    if (r == 0)
        r = dry ? shadow_name(&l->shadow, h->name, l->project, 1, e) : shadow_open(&l->shadow, h->name, l->project, e);
    if (r == 0 && !dry)
        r = start_daemon(e);
    if (r == 0)
        r = read_instructions(l, e);
    if (r == 0)
        r = harness_env(h, l->project, &l->wiring.env, e);
    if (r < 0)
        return r;
    snippet_env(l->box.place.id, &l->mcp_env);
    struct wiring_facts f = launch_facts(l);
    words_add(&l->wiring.argv, l->program);
    h->wire(&l->wiring, &f);
    for (size_t i = 0; i < passed.count; i++)
        words_add(&l->wiring.argv, passed.item[i]);
    return wiring_is_good(&l->wiring) && !l->mcp_env.failed ? 0 : err_nomem(e);
}

/* --- showing --- */

/* Is this very NAME=VALUE among ours? */
static bool is_ours(const char *word)
{
    for (char **at = environ; *at; at++)
        if (strcmp(*at, word) == 0)
            return true;
    return false;
}

static bool is_dropped(const struct launch *l, const char *word, char *name, size_t cap)
{
    size_t n = strcspn(word, "=");
    if (n >= cap)
        return false;
    memcpy(name, word, n);
    name[n] = 0;
    return !words_env(&l->wiring.env, name);
}

static int show_json(struct launch *l)
{
    own_buf b = {0};
    struct json j;
    char name[256];
    buf_init(&b, 16u << 20);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "harness", l->harness->name);
    json_text(&j, "box", l->box.place.name);
    json_bool(&j, "box_is_there", !l->box.is_made);
    json_text(&j, "project", l->project);
    json_text(&j, "cwd", l->shadow.work);
    json_begin_list(&j, "argv");
    for (size_t i = 0; i < l->wiring.argv.count; i++)
        json_text(&j, NULL, l->wiring.argv.item[i]);
    json_end_list(&j);
    json_begin_list(&j, "env");
    for (size_t i = 0; i < l->wiring.env.count; i++)
        if (!is_ours(l->wiring.env.item[i]))
            json_text(&j, NULL, l->wiring.env.item[i]);
    json_end_list(&j);
    json_begin_list(&j, "env_without");
    for (char **at = environ; *at; at++)
        if (is_dropped(l, *at, name, sizeof(name)))
            json_text(&j, NULL, name);
    json_end_list(&j);
    json_begin_list(&j, "files");
    for (size_t i = 0; i < l->wiring.file_count; i++) {
        char path[PATH_BYTES_MAX + 80];
        snprintf(path, sizeof(path), "%s/%s", l->shadow.path, l->wiring.file[i].name);
        json_begin_object(&j, NULL);
        json_text(&j, "path", path);
        if (l->wiring.file[i].is_link)
            json_bool(&j, "link", true);
        json_bytes(&j, "text", l->wiring.file[i].text.data, l->wiring.file[i].text.len);
        json_end_object(&j);
    }
    json_end_list(&j);
    json_end_object(&j);
    return cli_json(&b);
}

static void print_quoted(const char *before, const void *p, size_t n)
{
    own_buf b = {0};
    buf_init(&b, 8u << 20);
    quote_text(&b, p, n, 4u << 20);
    printf("%s%s\n", before, buf_text(&b));
}

static void print_lines(struct buf *text)
{
    const char *at = buf_text(text);
    while (*at) {
        size_t n = strcspn(at, "\n");
        print_quoted("    ", at, n);
        at += n + (at[n] == '\n');
    }
}

int launch_show(struct launch *l)
{
    char name[256];
    if (l->args->json)
        return show_json(l);
    printf("box       %s%s\nproject   %s\nfolder    %s\narguments\n", l->box.place.name, l->box.is_made ? " (would be made)" : "",
           l->project, l->shadow.work);
    for (size_t i = 0; i < l->wiring.argv.count; i++)
        print_quoted("    ", l->wiring.argv.item[i], strlen(l->wiring.argv.item[i]));
    printf("variables set\n");
    for (size_t i = 0; i < l->wiring.env.count; i++)
        if (!is_ours(l->wiring.env.item[i]))
            print_quoted("    ", l->wiring.env.item[i], strlen(l->wiring.env.item[i]));
    printf("variables left out\n");
    for (char **at = environ; *at; at++)
        if (is_dropped(l, *at, name, sizeof(name)))
            print_quoted("    ", name, strlen(name));
    for (size_t i = 0; i < l->wiring.file_count; i++) {
        printf("%s %s/%s\n", l->wiring.file[i].is_link ? "link" : "file", l->shadow.path, l->wiring.file[i].name);
        print_lines(&l->wiring.file[i].text);
    }
    return 0;
}

/* --- running --- */

static _Noreturn void become(const struct launch *l, const sigset_t *old, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGHUP); /* its settings are gone with us */
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    sigprocmask(SIG_SETMASK, old, NULL);
    if (getppid() == parent && chdir(l->shadow.work) == 0)
        execve(l->program, l->wiring.argv.item, l->wiring.env.item);
    fprintf(stderr, "pale: %s: %s\n", l->program, strerror(errno));
    _exit(126);
}

/* Keys of the terminal reach the harness by themselves; what is sent to us is handed on; if it stops, so do we. */
static int wait_for(pid_t pid, const sigset_t *mask)
{
    for (;;) {
        int status, sig = sigwaitinfo(mask, NULL);
        if (sig == SIGTERM || sig == SIGHUP)
            kill(pid, sig);
        pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (got == pid && WIFSTOPPED(status)) {
            kill(getpid(), SIGSTOP);
            kill(pid, SIGCONT);
        } else if (got == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}

int launch_go(struct launch *l, struct pale_err *e)
{
    sigset_t mask, old;
    int r = wiring_write(&l->wiring, l->shadow.dir_fd, e);
    if (r < 0)
        return r;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &old);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(l, &old, parent);
    if (pid < 0)
        return err_os(e, "start %s", l->program);
    int status = wait_for(pid, &mask);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}

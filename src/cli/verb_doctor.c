/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb doctor: what works on this host, which claims fall away, and setting up what can be set up. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/provision.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/verbs.h"
#include "confine/survey.h"

#define ROWS_MAX 96
#define CLAIMS_MAX 64
#define BOX_TIMEOUT_MS 15000

struct finding {
    const struct survey_row *row;
    struct answer answer;
    const char *remedy; /* "" if there is nothing to do */
};

struct diagnosis {
    struct finding finding[ROWS_MAX];
    size_t count;
    bool lost[CLAIMS_MAX]; /* by number: something it rests on is not whole here */
    bool startable;
};

static const char *const state_names[] = {"ok", "degraded", "missing"};
static_assert(sizeof(state_names) / sizeof(state_names[0]) == FINDING_COUNT, "a name for every state");

/* --- looking --- */

/* Waits for the end of output, at most so long, and keeps what it was. */
static void collect(int fd, struct buf *ret)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char block[1024];
    ssize_t n;
    while (poll(&p, 1, BOX_TIMEOUT_MS) > 0 && (n = read(fd, block, sizeof(block))) > 0)
        buf_add(ret, block, (size_t)n);
}

/* The proof of all the rest: a real box, by this very program. */
static void look_box(const struct survey_row *row, struct answer *ret)
{
    own_buf b = {0};
    char shown[200];
    int out[2], status = -1;
    (void)row;
    if (pipe2(out, O_CLOEXEC) < 0) {
        attempt_os(ret, FINDING_MISSING, "make a pipe");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char *)"pale", (char *)"run", (char *)"-q", (char *)"--", (char *)"true", NULL};
        dup2(out[1], 2);
        unsetenv("PALE_HOST"); /* this host is asked about */
        execv("/proc/self/exe", argv);
        _exit(125);
    }
    close(out[1]);
    buf_init(&b, 8192);
    collect(out[0], &b);
    close(out[0]);
    if (pid > 0) {
        kill(pid, SIGKILL); /* it has ended unless it hangs */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        attempt_say(ret, FINDING_OK, "`pale run -- true` ran");
    else
        attempt_say(ret, FINDING_MISSING, "%s", quote_into(shown, sizeof(shown), buf_text(&b), strcspn(buf_text(&b), "\n")));
}

static const struct survey_row whole[] = {
    {"Box", "a box", true, "", "what is missing above", NULL, 0, look_box},
    {0},
};

/* Takes the next word of "C1 C2". */
static bool next_claim(const char **at, char *ret, size_t cap)
{
    size_t n = strcspn(*at, " ");
    snprintf(ret, cap, "%.*s", (int)n, *at);
    *at += n;
    *at += strspn(*at, " ");
    return n > 0;
}

static void lose(struct diagnosis *d, const char *claims)
{
    char word[8];
    uint64_t n;
    while (next_claim(&claims, word, sizeof(word)))
        if (number_u64(word + 1, CLAIMS_MAX - 1, &n))
            d->lost[n] = true;
}

/* The first row of all is the user namespace, without which most of the others cannot even be tried. */
static void examine(struct diagnosis *d, const struct survey_row *rows, const struct survey_target *t)
{
    for (; rows->name && d->count < ROWS_MAX; rows++) {
        struct finding *f = &d->finding[d->count++];
        f->row = rows;
        f->remedy = rows->remedy;
        if (f > d->finding && (rows->flags & CLONE_NEWUSER) && d->finding[0].answer.state == FINDING_MISSING) {
            attempt_say(&f->answer, FINDING_MISSING, "not tried: it needs a user namespace");
            f->remedy = "as above";
        } else {
            survey_try(rows, t, &f->answer);
        }
        if (f->answer.state == FINDING_OK)
            f->remedy = "";
        if (f->answer.state != FINDING_OK)
            lose(d, rows->claims);
        if (f->answer.state == FINDING_MISSING && rows->required)
            d->startable = false;
    }
}

/* The nearest folder that exists, at or above the one where the user's boxes are or will be. */
static void data_folder(char *ret, size_t cap)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && data[0] == '/')
        snprintf(ret, cap, "%s/pale/boxes", data);
    else
        snprintf(ret, cap, "%s/.local/share/pale/boxes", home && home[0] == '/' ? home : "/root");
    while (strlen(ret) > 1 && access(ret, F_OK) < 0) {
        char *slash = strrchr(ret, '/');
        slash[slash == ret] = 0;
    }
}

static void diagnose(struct diagnosis *d)
{
    char folder[PATH_BYTES_MAX];
    struct survey_target t = {.data_dir = folder};
    *d = (struct diagnosis){.startable = true};
    data_folder(folder, sizeof(folder));
    examine(d, survey_wall, &t);
    examine(d, survey_host, &t);
    examine(d, whole, &t);
}

/* --- telling --- */

static void claims_json(struct json *j, const char *key, const char *claims)
{
    char word[8];
    json_begin_list(j, key);
    while (next_claim(&claims, word, sizeof(word)))
        json_text(j, NULL, word);
    json_end_list(j);
}

static void lost_text(const struct diagnosis *d, char *ret, size_t cap)
{
    size_t n = 0;
    ret[0] = 0;
    for (int i = 1; i < CLAIMS_MAX && n + 8 < cap; i++)
        if (d->lost[i])
            n += (size_t)snprintf(ret + n, cap - n, "%sC%d", n ? " " : "", i);
}

static int tell_json(const struct diagnosis *d)
{
    own_buf b = {0};
    struct json j;
    struct utsname u;
    char lost[512];
    uname(&u);
    lost_text(d, lost, sizeof(lost));
    buf_init(&b, 1 << 20);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "version", PALE_VERSION);
    json_text(&j, "kernel", u.release);
    json_u64(&j, "uid", geteuid());
    json_bool(&j, "boxes_can_start", d->startable);
    json_text(&j, "tier_auto", "native");
    claims_json(&j, "claims_weakened", lost);
    json_begin_list(&j, "mechanisms");
    for (size_t i = 0; i < d->count; i++) {
        const struct finding *f = &d->finding[i];
        json_begin_object(&j, NULL);
        json_text(&j, "group", f->row->group);
        json_text(&j, "name", f->row->name);
        json_text(&j, "state", state_names[f->answer.state]);
        json_bool(&j, "required", f->row->required);
        json_text(&j, "detail", f->answer.detail);
        claims_json(&j, "claims", f->row->claims);
        json_text(&j, "remedy", f->remedy);
        json_end_object(&j);
    }
    json_end_list(&j);
    json_end_object(&j);
    int r = cli_json(&b);
    return r ? r : d->startable ? 0 : 1;
}

static void tell_row(const struct finding *f)
{
    static const char *const colours[] = {"green", "yellow", "red"};
    char shown[512];
    enum finding_state s = f->answer.state;
    printf("  %s%-8s%s  %-44s  %s\n", cli_colour(1, colours[s]), state_names[s], cli_colour(1, "reset"), f->row->name,
           quote_into(shown, sizeof(shown), f->answer.detail, strlen(f->answer.detail)));
    if (s == FINDING_OK)
        return;
    if (f->row->claims[0])
        printf("            without it: %s\n", f->row->claims);
    if (f->remedy[0])
        printf("            remedy: %s\n", f->remedy);
}

static int tell_people(const struct diagnosis *d)
{
    const char *group = "";
    char lost[512];
    for (size_t i = 0; i < d->count; i++) {
        const struct finding *f = &d->finding[i];
        if (strcmp(group, f->row->group) != 0)
            printf("%s%s%s%s\n", i ? "\n" : "", cli_colour(1, "bold"), f->row->group, cli_colour(1, "reset"));
        group = f->row->group;
        tell_row(f);
    }
    lost_text(d, lost, sizeof(lost));
    printf("\n%s\n", d->startable ? "Boxes can start here." : "Boxes cannot start here.");
    if (lost[0])
        printf("Claims of docs/threat-model.md that are not whole here: %s\n", lost);
    return fflush(stdout) ? 125 : d->startable ? 0 : 1;
}

/* --- changing --- */

struct log {
    struct json *j; /* NULL: for people */
};

static void say(void *arg, const char *line)
{
    struct log *l = arg;
    char shown[1400];
    if (l->j)
        json_text(l->j, NULL, line);
    else
        printf("%s\n", quote_into(shown, sizeof(shown), line, strlen(line)));
}

static int change(struct args *a, bool fix)
{
    struct pale_err e;
    own_buf b = {0};
    struct json j;
    struct log l = {.j = a->json ? &j : NULL};
    const char *user = a->count > 0 ? a->word[0] : fix ? getenv("SUDO_USER") : NULL;
    if (fix && !user) {
        err_set(&e, PALE_BAD_INPUT, "for whom? pale doctor --fix USER");
        return cli_fail(a, &e);
    }
    buf_init(&b, 1 << 20);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_begin_list(&j, fix ? "done" : "undone");
    int r = fix ? provision_fix(user, say, &l, &e) : provision_undo(user, say, &l, &e);
    if (r < 0)
        return cli_fail(a, &e);
    json_end_list(&j);
    json_end_object(&j);
    return a->json ? cli_json(&b) : fflush(stdout) ? 125 : 0;
}

static int run_doctor(struct args *a)
{
    static struct diagnosis d;
    struct pale_err e;
    bool fix = args_has(a, "fix"), undo = args_has(a, "undo");
    if ((fix || undo) && door_only_here(a, fix ? "doctor --fix" : "doctor --undo", "it changes files of a host as its root", &e) < 0)
        return cli_fail(a, &e);
    if (fix && undo)
        err_set(&e, PALE_BAD_INPUT, "--fix and --undo contradict each other");
    else if (a->count > 0 && !fix && !undo)
        err_set(&e, PALE_BAD_INPUT, "a user is named with --fix or --undo only");
    else if (fix || undo)
        return change(a, fix);
    else if (a->host)
        return far_doctor(a);
    else {
        diagnose(&d);
        return a->json ? tell_json(&d) : tell_people(&d);
    }
    return cli_fail(a, &e);
}

static const struct option doctor_options[] = {
    {"fix", 0, NULL, "set up what can be set up for USER (or who called sudo); root only", NULL},
    {"undo", 0, NULL, "take back what --fix did, for USER or for all", NULL},
    {0},
};
static const struct option *const tables[] = {doctor_options, common_options, NULL};

const struct verb verb_doctor = {
    "doctor",
    "Trust",
    "say what works here and which claims fall away",
    "[--fix [USER] | --undo [USER]]",
    "Tries every mechanism a wall rests on, in a child of its own, and starts a box. Each row says whether it\n"
    "works here, and if not which claims of docs/threat-model.md fall away and what to do. Exit status 0 if boxes\n"
    "can start, 1 if not. --fix gives USER a range of ids and, where systemd does not hand them out already, control\n"
    "groups of their own; what it did stands in /var/lib/pale/doctor-fix.json, and --undo takes exactly that back.",
    tables,
    0,
    1,
    -1,
    run_doctor};

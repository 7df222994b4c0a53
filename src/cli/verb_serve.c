/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb serve: starting, stopping and looking at the daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "box/daemon.h"
#include "box/place.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/verbs.h"

#define SERVE_TRIES 20
#define HEALTH_TRIES 50
#define HEALTH_PAUSE_US 5000

static const struct option serve_options[] = {
    {"port", 0, "N", "listen on 127.0.0.1:N too (8839 is the usual one); callers need a token there", NULL},
    {"foreground", 0, NULL, "stay, and log to standard error", NULL},
    {"stop", 0, NULL, "end the daemon; boxes go on", NULL},
    {"status", 0, NULL, "is it there?", NULL},
    {0},
};

static int foreground(unsigned port, struct pale_err *e)
{
    char program[PATH_BYTES_MAX], number[16];
    int r = place_program("pale-steward", program, sizeof(program), e);
    if (r < 0)
        return r;
    snprintf(number, sizeof(number), "%u", port);
    char *argv[] = {(char *)"pale-steward", port ? (char *)"port" : NULL, number, NULL};
    execv(program, argv);
    return err_os(e, "start %s", program);
}

static void say_number(struct json *j, const struct jsonread *v, const char *name)
{
    struct jsonread m;
    uint64_t n = 0;
    if (jsonread_get(v, name, &m) && jsonread_u64(&m, &n))
        json_u64(j, name, n);
}

/* One that is just ending may have taken our connection: the next has its own. */
static int ask_health(struct remote *r, const char *host, struct buf *text, struct jsonread *v, struct pale_err *e)
{
    for (int tries = 0;; tries++) {
        int res = remote_open(r, host, false, e);
        if (res == 0)
            res = remote_ask(r, "GET", "/v1/health", NULL, text, v, e);
        if (res == 0 || host || tries == HEALTH_TRIES || (e->code != PALE_GONE && e->os != ECONNRESET && e->os != EPIPE))
            return res;
        remote_close(r);
        remote_init(r);
        buf_clear(text);
        usleep(HEALTH_PAUSE_US);
    }
}

/* 0 if it serves, 1 if it does not: as service managers have it. only_good: else nothing is said. */
static int status(struct args *a, const struct daemon_paths *paths, bool only_good)
{
    struct pale_err e;
    own_remote r = {.fd = -1};
    bool here = a->host == NULL;
    const char *where = here ? paths->socket : a->host;
    own_buf text = {0}, out = {0};
    struct jsonread v, m;
    struct json j;
    pid_t pid = 0;
    char version[40] = "";
    uint64_t boxes = 0;
    remote_init(&r);
    buf_init(&text, 65536);
    buf_init(&out, 65536);
    if (here && daemon_pid(paths, &pid, &e) < 0)
        return cli_fail(a, &e);
    int res = ask_health(&r, a->host, &text, &v, &e);
    if (res < 0 && only_good)
        return 1;
    if (res < 0 && e.code != PALE_NOT_FOUND)
        return cli_fail(a, &e);
    if (res == 0)
        far_text(&v, "version", version, sizeof(version));
    if (res == 0 && jsonread_get(&v, "boxes", &m))
        (void)jsonread_u64(&m, &boxes);
    if (a->json) {
        json_start(&j, &out);
        json_begin_object(&j, NULL);
        json_bool(&j, "running", res == 0);
        json_text(&j, here ? "socket" : "host", where);
        if (res == 0) {
            if (here)
                json_u64(&j, "steward_pid", (uint64_t)pid);
            say_number(&j, &v, "pid");
            json_text(&j, "version", version);
            say_number(&j, &v, "boxes");
            say_number(&j, &v, "live");
        }
        json_end_object(&j);
        return cli_json(&out) != 0 || res < 0;
    }
    if (res < 0 && here)
        printf("the daemon does not run; `pale serve` starts it\n");
    else if (res < 0)
        printf("no daemon serves on %s\n", where);
    else if (!here)
        printf("serves on %s: version %s, %llu boxes\n", where, version, (unsigned long long)boxes);
    else
        printf("serves on %s: pid %d, version %s, %llu boxes\n", paths->socket, (int)pid, version, (unsigned long long)boxes);
    return res < 0;
}

static int run_serve(struct args *a)
{
    struct pale_err e;
    struct daemon_paths paths;
    uint64_t port = 0;
    pid_t pid = 0;
    const char *text = args_get(a, "port");
    if (text && (!number_u64(text, 65535, &port) || port == 0)) {
        err_set(&e, PALE_BAD_INPUT, "--port: a number from 1 to 65535");
        return cli_fail(a, &e);
    }
    if (!args_has(a, "status") &&
        door_only_here(a, args_has(a, "stop") ? "serve --stop" : "serve", "a daemon is started and ended on its own host", &e) < 0)
        return cli_fail(a, &e);
    if (a->host)
        return status(a, NULL, false);
    if (daemon_paths(&paths, &e) < 0)
        return cli_fail(a, &e);
    if (args_has(a, "status"))
        return status(a, &paths, false);
    if (args_has(a, "stop"))
        return daemon_stop(&paths, &e) < 0 ? cli_fail(a, &e) : 0;
    if (args_has(a, "foreground"))
        return foreground((unsigned)port, &e) < 0 ? cli_fail(a, &e) : 0;
    if (port && daemon_pid(&paths, &pid, &e) == 0 && pid) {
        err_set(&e, PALE_EXISTS, "a daemon (pid %d) serves already; `pale serve --stop` first", (int)pid);
        return cli_fail(a, &e);
    }
    /* What we reach may be the end of another, which somebody is just killing. */
    int r = 1;
    for (int tries = 0; r != 0 && tries < SERVE_TRIES; tries++) {
        own_fd fd = -1;
        if (daemon_connect(&paths, true, (unsigned)port, &fd, &e) < 0)
            return cli_fail(a, &e);
        own_close(&fd);
        r = status(a, &paths, tries + 1 < SERVE_TRIES);
    }
    return r;
}

static const struct option *const serve_tables[] = {serve_options, common_options, NULL};

const struct verb verb_serve = {
    "serve",
    "Daemon",
    "start, stop or look at the daemon",
    "[--port N] [--foreground] | --stop | --status",
    "The daemon offers boxes over HTTP: on a socket of yours, and with --port on the loopback interface too, where\n"
    "callers need a token (`pale token create`). Verbs that need it start it. Boxes outlive it: when it is stopped,\n"
    "killed or upgraded, commands run on, and the next daemon finds them.",
    serve_tables,
    0,
    0,
    -1,
    run_serve};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb mcp. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agents/snippet.h"
#include "base/clock.h"
#include "base/limits.h"
#include "cli/bridge.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

struct far {
    const struct args *args;
    char path[BOX_NAME_MAX + 40];
};

static int connect_once(struct bridge *b, struct pale_err *e)
{
    const struct far *f = b->arg;
    own_remote r = {.fd = -1};
    remote_init(&r);
    int res = remote_open(&r, f->args->host, true, e);
    if (res == 0)
        res = remote_pass(&r, f->path, e);
    if (res < 0)
        return res;
    buf_add(&b->far, r.in.data, r.in.len);
    b->far_fd = take_fd(&r.fd);
    return b->far.failed ? err_nomem(e) : 0;
}

/* A daemon that was just killed is back in a moment; what it says no to is not asked twice. */
static int connect_daemon(struct bridge *b, struct pale_err *e)
{
    int64_t until = clock_ms() + BRIDGE_AGAIN_MS;
    int r;
    while ((r = connect_once(b, e)) < 0 && (e->code == PALE_GONE || e->code == PALE_OS || e->code == PALE_BUSY) && clock_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return r;
}

static int run_mcp(struct args *a)
{
    struct pale_err e;
    struct bridge b;
    struct far f = {.args = a};
    own_door d = {0};
    if (door_find(&d, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    snprintf(f.path, sizeof(f.path), "/v1/boxes/%s/mcp", d.is_far ? d.name : d.place.id);
    bridge_init(&b);
    b.connect = connect_daemon;
    b.arg = &f;
    int r = bridge_run(&b, &e);
    bridge_done(&b);
    return r < 0 ? cli_fail(a, &e) : 0;
}

/* pale mcp config BOX --for HARNESS: the text alone on standard output, where it goes on standard error. */
static int run_config(struct args *a)
{
    struct pale_err e;
    own_door d = {0};
    own_buf text = {0};
    char self[PATH_BYTES_MAX];
    const char *place = "", *harness = args_get(a, "for");
    buf_init(&text, 65536);
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int r = n > 0 ? 0 : err_os(&e, "find our own program");
    if (r == 0)
        self[n] = 0;
    if (r == 0 && a->count < 2)
        r = err_set(&e, PALE_BAD_INPUT, "of which box? pale mcp config BOX --for HARNESS");
    if (r == 0 && !harness)
        r = err_set(&e, PALE_BAD_INPUT, "for which harness? pale mcp config BOX --for HARNESS; `pale agents` lists them");
    if (r == 0)
        r = door_only_here(a, "mcp config", "the snippet starts a program of this host", &e);
    if (r == 0)
        r = door_find(&d, a, a->word[1], &e);
    if (r == 0)
        r = snippet_make(harness, self, d.place.id, &text, &place, &e);
    if (r < 0)
        return cli_fail(a, &e);
    cli_note("for %s:", place);
    return fwrite(text.data, 1, text.len, stdout) == text.len ? 0 : 125;
}

static int run_words(struct args *a)
{
    struct pale_err e;
    if (strcmp(a->word[0], "config") == 0 && (a->count > 1 || args_has(a, "for")))
        return run_config(a);
    if (a->count == 1 && !args_has(a, "for"))
        return run_mcp(a);
    err_set(&e, PALE_BAD_INPUT, "pale mcp %s", a->verb->usage);
    return cli_fail(a, &e);
}

static const struct option mcp_options[] = {
    {"for", 0, "HARNESS", "with config: the harness whose settings are printed", NULL},
    {0},
};
static const struct option *const mcp_tables[] = {mcp_options, scope_options, common_options, NULL};

const struct verb verb_mcp = {
    "mcp",
    "Agents",
    "serve the tools of a box to an MCP client on standard input and output",
    "BOX | config BOX --for HARNESS",
    "For the configuration of an agent: `pale mcp BOX` is an MCP server by stdio. Its tools (exec, read, edit, …) work in\n"
    "the box. It speaks through the user's daemon, which is started if need be, and outlives its restarts.\n"
    "`pale mcp config BOX --for claude` prints what to write into a harness's settings; its own tools stay beside the box's,\n"
    "unlike with `pale claude`.",
    mcp_tables,
    1,
    2,
    -1,
    run_words};

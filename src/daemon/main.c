/* SPDX-License-Identifier: Apache-2.0 */
/* paled: REST, the registry of boxes, tokens, timers.
 *
 *     paled PORT [alone]  started by pale-steward: 3 is the link to it, 4 the unix socket, 5 the TCP socket unless PORT is 0;
 *                         alone: no deed of an earlier daemon runs any more
 *     paled openapi       prints the OpenAPI description
 *
 * Everything is opened first, then it locks itself up, then it reads the first byte of a stranger. main() reads as the list of stages;
 * trouble before it serves is told to the steward. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "box/daemon.h"
#include "daemon/lockup.h"
#include "daemon/log.h"
#include "mcp/http.h"
#include "mcp/linewise.h"
#include "mcp/toolbox.h"
#include "daemon/refusal.h"
#include "ops/ops.h"
#include "ops/world.h"
#include "rest/server.h"

#define STEWARD 3
#define LOCAL 4
#define TCP 5

static struct world world;
static struct server server = {.local = {.fd = -1}, .tcp = {.fd = -1}};
static struct loop_source signals;

static void tell_steward(char what, const char *text)
{
    char message[700];
    int n = snprintf(message, sizeof(message), "%c%s", what, text);
    (void)!send(STEWARD, message, (size_t)n < sizeof(message) ? (size_t)n : sizeof(message) - 1, MSG_NOSIGNAL);
}

static int give_up(const struct pale_err *e)
{
    fprintf(stderr, "paled: %s\n", e->text);
    tell_steward('e', e->text);
    return 1;
}

static void on_signal(struct loop_source *s, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        server_drain(&server);
}

static struct mcp mcp;

static void on_mcp_post(struct call *c)
{
    mcp_http_post(c, &toolbox_offer);
}

static void on_mcp_lines(struct call *c)
{
    mcp_lines_open(c, &toolbox_offer);
}

/* Needs: the loop, and randomness before it locks itself up. */
static int stage_mcp(struct pale_err *e)
{
    world.mcp = &mcp;
    world.mcp_post = on_mcp_post;
    world.mcp_lines = on_mcp_lines;
    return mcp_init(&mcp, &world.loop) ? 0 : err_os(e, "getrandom");
}

/* Needs: the loop. From here on signals are events. */
static int stage_signals(struct pale_err *e)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signals = (struct loop_source){.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    return signals.fd < 0 ? err_os(e, "signalfd") : loop_add(&world.loop, &signals, EPOLLIN, e);
}

/* Needs: the state folder. A registry that cannot be read is left alone and told. */
static int stage_registry(struct pale_err *e)
{
    struct daemon_paths paths;
    int r = daemon_paths(&paths, e);
    if (r == 0)
        log_init(paths.log);
    return r < 0 ? r : registry_open(paths.registry, &world.registry, e);
}

static void on_swept(void *arg, const struct msg_deed_done *d)
{
    (void)arg;
    if (d->code != 0)
        log_line("what the dead have left could not be taken away: %s", d->text);
    else if (strcmp(d->text, "0") != 0)
        log_line("forgot %s boxes whose folders are gone", d->text);
}

/* --- checkpoints of audit logs: when boxes have stopped, and once a day --- */

#define CHECKPOINT_SOON_MS 2000
#define CHECKPOINT_DAY_MS 86400000

static struct {
    struct loop_timer timer;
    struct listener listener;
    bool soon;
} checkpoints;

static void on_checkpoint(void *arg, const struct msg_deed_done *d)
{
    (void)arg;
    if (d->code != 0)
        log_line("no checkpoint of the audit logs: %s", d->text);
}

static void take_checkpoints(struct loop_timer *t)
{
    struct msg_deed m = {.kind = DEED_CHECKPOINT, .id = "", .name = "", .tenant = "", .policy = "", .sets = "", .caller = "paled"};
    checkpoints.soon = false;
    fleet_deed(&world.fleet, &m, on_checkpoint, NULL);
    loop_arm(&world.loop, t, clock_ms() + CHECKPOINT_DAY_MS);
}

static void box_stopped(struct listener *l, const struct event *ev)
{
    (void)l;
    if (strcmp(ev->kind, "box.down") != 0 || checkpoints.soon)
        return;
    checkpoints.soon = true;
    loop_arm(&world.loop, &checkpoints.timer, clock_ms() + CHECKPOINT_SOON_MS);
}

/* Needs: to serve already. What killed keepers left is taken away, and the log says what there is. */
static void stage_tidy(void)
{
    struct msg_deed m = {.kind = DEED_SWEEP, .id = "", .name = "", .tenant = "", .policy = "", .sets = "", .caller = "paled"};
    log_line("serves, version %s", PALE_VERSION);
    log_events(&world.fleet.events);
    fleet_deed(&world.fleet, &m, on_swept, NULL);
    checkpoints.timer.fire = take_checkpoints;
    checkpoints.listener.heard = box_stopped;
    events_listen(&world.fleet.events, &checkpoints.listener);
    loop_arm(&world.loop, &checkpoints.timer, clock_ms() + CHECKPOINT_DAY_MS);
}

/* How long a box is idle before it is kept as it is. */
#define SAVE_AFTER_VARIABLE "PALE_AUTOSAVE_AFTER"
#define SAVE_AFTER_MS 600000

static int read_save_after(int64_t *ret, struct pale_err *e)
{
    const char *text = getenv(SAVE_AFTER_VARIABLE);
    uint64_t ms = SAVE_AFTER_MS;
    if (text && text[0] && (!number_duration(text, &ms) || ms > CORE_IDLE_MAX_MS))
        return err_set(e, PALE_BAD_INPUT, SAVE_AFTER_VARIABLE ": a time such as 30s or 10m; 0 for never");
    *ret = (int64_t)ms;
    return 0;
}

static int serve(unsigned port, bool alone)
{
    int64_t save_after_ms = 0;
    struct pale_err e;
    world.started_unix_ms = clock_unix_ms();
    world.port = port;
    world.refused = refusal_tell;
    refusal_init(&world.loop);
    server.loop = &world.loop;
    server.world = &world;
    server.port = port;
    if (read_save_after(&save_after_ms, &e) < 0 || loop_open(&world.loop, &e) < 0 || stage_signals(&e) < 0 || stage_mcp(&e) < 0 ||
        stage_registry(&e) < 0 || fleet_open(&world.fleet, &world.loop, world.registry, STEWARD, save_after_ms, &e) < 0 ||
        server_open(&server, LOCAL, port ? TCP : -1, &e) < 0 || lockup_self(world.fleet.state_dir, &e) < 0)
        return give_up(&e);
    if (alone)
        core_alone(world.fleet.core);
    tell_steward('r', "");
    stage_tidy();
    int r = loop_run(&world.loop, &e);
    server_close(&server);
    fleet_close(&world.fleet);
    registry_close(world.registry);
    return r < 0 ? give_up(&e) : 0;
}

int main(int argc, char **argv)
{
    uint64_t port = 0;
    if (argc == 2 && strcmp(argv[1], "openapi") == 0) {
        own_buf b = {0};
        buf_init(&b, 1 << 20);
        openapi_write(&b);
        return b.failed || !fd_write_full(1, b.data, b.len) || !fd_write_full(1, "\n", 1);
    }
    bool alone = argc == 3 && strcmp(argv[2], "alone") == 0;
    if (argc < 2 || argc > 3 || !number_u64(argv[1], 65535, &port) || (argc == 3 && !alone)) {
        fprintf(stderr, "paled is started by pale-steward; `pale serve` starts that\n");
        return 2;
    }
    return serve((unsigned)port, alone);
}

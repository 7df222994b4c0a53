/* SPDX-License-Identifier: Apache-2.0 */
/* pale-gateway: the way out of one box. It answers questions about names, says yes or no to connections, and moves their bytes.
 *
 *     pale-gateway   started by pale-keeper, with the descriptors of box/gatemsg.h
 *
 * How it works: the first process takes the box's sockets and does nothing but wait for the second, which serves: it locks itself up, asks
 * its keeper for the policy and reads what the box and the network send. If that one dies, connections end with it and nothing passes until
 * a new one has the policy that holds by then. If the keeper ends, so do both, and the box's sockets with them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "confine/kernel.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"
#include "confine/weaken.h"
#include "gateway/gateway.h"

/* A server that dies as soon as it is there does so for a reason. */
#define DEATHS_MAX 20u
#define DEATH_PAUSE_MS 200

static struct gateway state;

/* Needs: nothing. Gives up: the keeper's session and signals. */
static int stage_settle(struct gateway *g, struct pale_err *e)
{
    struct rlimit files;
    if (fcntl(GATE_TALK_FD, F_GETFD) < 0 || fcntl(GATE_METER_FD, F_GETFD) < 0)
        return err_set(e, PALE_BAD_INPUT, "pale-gateway is started by pale-keeper, not by hand");
    for (int fd = GATE_TALK_FD; fd < GATE_FDS; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_os(e, "settle");
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    (void)!setsid();
    g->weaken = weaken_from_env();
    g->resolv_fd = g->hosts_fd = -1;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(e, "read the limit of open files");
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(e, "raise the limit of open files");
    rlim_t spare = 2 * PIPES_MAX + LOOKUPS_MAX + STREAMS_MAX + 64;
    rlim_t most = files.rlim_max > 2 * spare ? (files.rlim_max - spare) / 2 : files.rlim_max / 8;
    g->flow_max = most < FLOWS_MAX ? (uint32_t)most : FLOWS_MAX;
    g->meters = mmap(NULL, sizeof(*g->meters), PROT_READ | PROT_WRITE, MAP_SHARED, GATE_METER_FD, 0);
    return g->meters == MAP_FAILED ? err_os(e, "share the meters with the keeper") : 0;
}

/* Needs: the builder of the box's wall. */
static int stage_sockets(struct gateway *g, struct pale_err *e)
{
    int r = detour_receive(GATE_HAND_FD, g->sockets, e);
    if (r == 0)
        r = detour_receive_inward(GATE_HAND_FD, g->inward, &g->inward_count, e);
    close(GATE_HAND_FD);
    close(GATE_METER_FD);
    return r;
}

/* Gives up: every file. What is dialled is up to the policy. */
static int stage_lock_files(struct pale_err *e)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    return landlock_abi() != 0 ? landlock_restrict_to_connect(e) : 0;
}

/* --- the second process --- */

static void on_tick(struct loop_timer *t)
{
    struct gateway *g = (struct gateway *)((char *)t - offsetof(struct gateway, tick));
    int64_t now = clock_ms();
    bool waits = resolve_tick(g, now);
    waits |= oracle_tick(g, now);
    waits |= flow_tick(g, now);
    waits |= inward_tick(g, now);
    liaison_flood(g);
    loop_arm(&g->loop, t, now + (waits || g->untold ? TICK_MS : IDLE_TICK_MS));
}

void gateway_wake(struct gateway *g)
{
    int64_t soon = clock_ms() + TICK_MS;
    if (g->tick.due_ms > soon)
        loop_arm(&g->loop, &g->tick, soon);
}

/* A connection or a question came: time counts again. */
static void on_listener(struct loop_source *s, uint32_t events)
{
    struct listener *l = (struct listener *)((char *)s - offsetof(struct listener, source));
    gateway_wake(l->g);
    if (l->which == DETOUR_TCP4 || l->which == DETOUR_TCP6)
        flow_accept(s, events);
    else if (l->which == DETOUR_NAMES4 || l->which == DETOUR_NAMES6)
        oracle_datagram(s, events);
    else if (l->which == DETOUR_REFUSED)
        packet_refused(s, events);
    else
        oracle_stream(s, events);
}

static int stage_serve(struct gateway *g, struct pale_err *e)
{
    int r = loop_open(&g->loop, e);
    if (r == 0)
        r = liaison_watch(g, e);
    for (int i = 0; r == 0 && i < DETOUR_SOCKETS; i++) {
        g->listeners[i] = (struct listener){.source = {.fd = g->sockets[i], .ready = on_listener}, .g = g, .which = i};
        if (g->sockets[i] >= 0)
            r = loop_add(&g->loop, &g->listeners[i].source, EPOLLIN, e);
    }
    g->meters->open = 0;
    inward_start(g);
    g->tick = (struct loop_timer){.fire = on_tick};
    loop_arm(&g->loop, &g->tick, clock_ms() + TICK_MS);
    return r;
}

/* Needs: all is open. Gives up: every call but those for serving. */
static int stage_lock_up(struct pale_err *e)
{
    return seccomp_load(seccomp_for_program(OWN_GATEWAY), e);
}

static int serve(struct gateway *g)
{
    struct pale_err e = {0};
    /* Whoever holds our sockets must not outlive who watches us. */
    int r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? err_os(&e, "tie the gateway's life to its watcher's") : 0;
    if (r == 0)
        r = stage_serve(g, &e);
    if (r == 0)
        r = stage_lock_up(&e);
    if (r < 0) {
        liaison_error(&e);
        return 125;
    }
    liaison_hello(g);
    liaison_want_files(g);
    return loop_run(&g->loop, &e) < 0 ? 1 : 0;
}

/* --- the first --- */

static bool keeper_is_there(void)
{
    struct pollfd p = {.fd = GATE_TALK_FD};
    return poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR));
}

int main(void)
{
    struct gateway *g = &state;
    struct pale_err e = {0};
    int r = stage_settle(g, &e);
    if (r == 0)
        r = stage_sockets(g, &e);
    if (r == 0)
        r = stage_lock_files(&e);
    if (r < 0) {
        liaison_error(&e);
        return 125;
    }
    for (g->begun = 0; g->begun < DEATHS_MAX && keeper_is_there(); g->begun++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(serve(g));
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 1)
            return WEXITSTATUS(status);
        struct pollfd p = {.fd = GATE_TALK_FD};
        (void)!poll(&p, 1, DEATH_PAUSE_MS);
    }
    return 1;
}

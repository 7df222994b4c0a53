/* SPDX-License-Identifier: Apache-2.0 */
/* Owns leases. */
#include "cli/far_run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/far.h"

#define USUAL_TTL_S 86400u /* of a box nobody came back for; a command that may take longer says so with --timeout */
#define SPARE_TTL_S 600u   /* … and what making and ending it may take */
#define REMOVE_TRIES 10

/* Sits in a session of its own until we are gone. The box may be in the making just then, or somebody may be at it. */
static void __attribute__((noreturn)) guard(int watch_fd, const char *host, const char *name)
{
    char c;
    sigset_t all;
    struct pale_err e;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; null >= 0 && i < 3; i++)
        (void)!dup2(null, i);
    if (read(watch_fd, &c, 1) == 1)
        _exit(0);
    for (int tries = 0; tries < REMOVE_TRIES; tries++) {
        own_remote r = {.fd = -1};
        remote_init(&r);
        if (remote_open(&r, host, false, &e) == 0 && far_remove_anyway(&r, name, &e) == 0)
            break;
        usleep(500000);
    }
    _exit(0);
}

static int set_guard(struct far_lease *l, const struct args *a, const char *name, struct pale_err *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_os(e, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[1]);
        guard(pair[0], a->host, name);
    }
    close(pair[0]);
    if (pid < 0) {
        close(pair[1]);
        return err_os(e, "fork");
    }
    l->guard_fd = pair[1];
    return 0;
}

static void dismiss(struct far_lease *l)
{
    if (l->guard_fd >= 0)
        (void)!write(l->guard_fd, "", 1);
    own_close(&l->guard_fd);
}

static int choose_name(char *ret, size_t cap, struct pale_err *e)
{
    uint8_t random[8];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_os(e, "getrandom");
    int n = snprintf(ret, cap, "run-");
    for (size_t i = 0; i < sizeof(random); i++)
        n += snprintf(ret + n, cap - (size_t)n, "%02x", random[i]);
    return 0;
}

int far_lease_open(struct far_lease *l, const struct args *a, const char *name, uint64_t timeout_ms, struct pale_err *e)
{
    char own[BOX_NAME_MAX + 1], ttl[32];
    own_buf order = {0}, text = {0};
    struct jsonread v;
    bool once = !name;
    int r = 0;
    l->guard_fd = -1;
    buf_init(&order, 1 << 20);
    buf_init(&text, FAR_ANSWER_MAX);
    if (once && (r = choose_name(own, sizeof(own), e)) < 0)
        return r;
    name = once ? own : name;
    snprintf(ttl, sizeof(ttl), "%llus", (unsigned long long)(timeout_ms ? timeout_ms / 1000 + SPARE_TTL_S : USUAL_TTL_S));
    if ((r = far_order(a, name, once ? ttl : NULL, true, &order, e)) < 0 || (r = door_find(&l->door, a, name, e)) < 0)
        return r;
    /* A box of that name which is there already is not ours to remove: a guard for it is set when it is made. */
    if (once && !l->is_kept && (r = set_guard(l, a, name, e)) < 0)
        return r;
    r = far_make(&l->door.remote, buf_text(&order), &text, &v, e);
    if (r == 0 && !once && !l->is_kept)
        r = set_guard(l, a, name, e);
    if (r < 0 && e->code != PALE_GONE && e->code != PALE_TIMEOUT && e->code != PALE_PROTOCOL)
        dismiss(l); /* it says that there is none */
    if (r < 0)
        own_close(&l->guard_fd);
    return r;
}

int far_lease_close(struct far_lease *l, struct pale_err *e)
{
    int r = l->is_kept ? 0 : far_remove_anyway(&l->door.remote, l->door.name, e);
    if (r == 0 || r == -PALE_NOT_FOUND)
        dismiss(l);
    own_close(&l->guard_fd);
    door_close(&l->door);
    return r == -PALE_NOT_FOUND ? 0 : r;
}

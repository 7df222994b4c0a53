/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for cli/bridge. */
#include "cli/bridge.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test.h"

/* A daemon that takes a connection and ends it, after a few bytes perhaps. */
static int hang_up(struct bridge *b, struct pale_err *e)
{
    int pair[2];
    (void)e;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    ++*(unsigned *)b->arg;
    b->far_fd = pair[0];
    close(pair[1]);
    return 0;
}

static void bridge_gives_up_a_daemon_that_always_hangs_up(void **state)
{
    static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}\n";
    struct bridge b;
    struct pale_err e;
    unsigned calls = 0;
    int in[2], out[2];
    char text[1024];
    (void)state;
    assert_int_equal(pipe(in) | pipe(out), 0);
    bridge_init(&b);
    b.in_fd = in[0];
    b.out_fd = out[1];
    b.connect = hang_up;
    b.arg = &calls;
    assert_int_equal(write(in[1], ask, strlen(ask)), strlen(ask));
    assert_int_equal(bridge_run(&b, &e), -PALE_GONE);
    assert_int_equal(calls, BRIDGE_LOSSES_MAX + 1);
    /* Whoever waited has heard of it, once. */
    ssize_t n = read(out[0], text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = 0;
    assert_non_null(strstr(text, "\"id\":\"a\",\"error\""));
    assert_ptr_equal(strchr(text, '\n'), text + n - 1);
    bridge_done(&b);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
}

TESTS(cmocka_unit_test(bridge_gives_up_a_daemon_that_always_hangs_up))

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/handing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/test.h"

static void a_descriptor_goes_along_with_bytes_or_does_not(void **state)
{
    (void)state;
    int pair[2], fd = -2;
    char b[4];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(handing_send(pair[0], "one", 3, pair[0], 0), 3);
    assert_int_equal(handing_receive(pair[1], b, sizeof(b), &fd, 0), 3);
    assert_true(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    close(fd);
    assert_int_equal(handing_send(pair[0], "two", 3, -1, 0), 3);
    assert_int_equal(handing_receive(pair[1], b, sizeof(b), &fd, 0), 3);
    assert_int_equal(fd, -1);
    close(pair[0]);
    close(pair[1]);
}

static void a_second_descriptor_is_not_left_open(void **state)
{
    (void)state;
    int pair[2], fd = -1;
    char b[4];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    struct iovec part = {.iov_base = b, .iov_len = 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(2 * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
    memcpy(CMSG_DATA(c), pair, sizeof(pair));
    assert_int_equal(sendmsg(pair[0], &m, 0), 1);
    own_fd lowest = dup(0);
    int before = lowest;
    own_close(&lowest);
    assert_int_equal(handing_receive(pair[1], b, sizeof(b), &fd, 0), 1);
    assert_int_equal(fd, before);
    own_fd next = dup(0);
    assert_int_equal(next, before + 1); /* nothing else was opened */
    close(fd);
    close(pair[0]);
    close(pair[1]);
}

TESTS(cmocka_unit_test(a_descriptor_goes_along_with_bytes_or_does_not), cmocka_unit_test(a_second_descriptor_is_not_left_open))

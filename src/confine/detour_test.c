/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/detour, each in a network namespace of its own, as whoever runs them. */
#include "base/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "confine/detour.h"
#include "confine/netlink.h"

#define NOT_HERE 77 /* no namespaces for this user, or no nftables */
#define ORIGINAL_DST 80

static bool raise_lo(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    own_fd s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return s >= 0 && ioctl(s, SIOCSIFFLAGS, &lo) == 0;
}

/* Runs a case in a namespace that has been laid out; it returns 0, or the line where something was not as it should be. */
static void run(int (*body)(int sockets[DETOUR_SOCKETS]))
{
    int status = 0, sockets[DETOUR_SOCKETS];
    struct pale_err e = {0};
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || !raise_lo())
            _exit(NOT_HERE);
        if (detour_make(sockets, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            _exit(e.os == ENOENT || e.os == EOPNOTSUPP ? NOT_HERE : 1);
        }
        int line = body(sockets);
        if (line)
            fprintf(stderr, "line %d: errno %d\n", line, errno);
        _exit(line ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static socklen_t address(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (void *)ret;
    struct sockaddr_in6 *six = (void *)ret;
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &six->sin6_addr) == 1 ? sizeof(*six) : 0;
}

static int dial(int kind, const char *to, uint16_t port)
{
    struct sockaddr_storage a;
    socklen_t n = address(to, port, &a);
    own_fd s = socket(a.ss_family, kind | SOCK_CLOEXEC, 0);
    return s < 0 || connect(s, (struct sockaddr *)&a, n) < 0 ? -1 : take_fd(&s);
}

/* The connection that comes to this socket was dialled to there. */
static bool is_led(int listener, const char *to, uint16_t port)
{
    struct sockaddr_storage want, was = {0};
    socklen_t n = address(to, port, &want), m = n;
    own_fd client = dial(SOCK_STREAM, to, port), s = client < 0 ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int level = want.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    return s >= 0 && getsockopt(s, level, ORIGINAL_DST, &was, &m) == 0 && m == n && memcmp(&was, &want, 24 < n ? 24 : n) == 0;
}

static int lead(int s[DETOUR_SOCKETS])
{
    static const char *const four[] = {"192.0.2.1", "10.0.0.1", "169.254.169.254", "8.8.8.8", "172.17.0.1"};
    static const char *const six[] = {"2001:db8::1", "fd00::1", "fe80::1:1", "::ffff:0:1:1"};
    for (size_t i = 0; i < sizeof(four) / sizeof(four[0]); i++)
        if (!is_led(s[DETOUR_TCP4], four[i], 443))
            return __LINE__;
    for (size_t i = 0; s[DETOUR_TCP6] >= 0 && i < sizeof(six) / sizeof(six[0]); i++)
        if (strncmp(six[i], "fe80", 4) != 0 && !is_led(s[DETOUR_TCP6], six[i], 443))
            return __LINE__;
    return is_led(s[DETOUR_STREAM4], "9.9.9.9", 53) ? 0 : __LINE__;
}

static void every_connection_is_led_to_the_socket(void **state)
{
    (void)state;
    run(lead);
}

static int ask(int s[DETOUR_SOCKETS])
{
    char got[8];
    struct sockaddr_storage from;
    socklen_t n = sizeof(from);
    own_fd client = dial(SOCK_DGRAM, "9.9.9.9", 53);
    if (client < 0 || send(client, "who", 3, 0) != 3)
        return __LINE__;
    if (recvfrom(s[DETOUR_NAMES4], got, sizeof(got), 0, (struct sockaddr *)&from, &n) != 3)
        return __LINE__;
    if (sendto(s[DETOUR_NAMES4], "you", 3, 0, (struct sockaddr *)&from, n) != 3)
        return __LINE__;
    /* A connected socket takes only what comes from whom it asked. */
    return recv(client, got, sizeof(got), 0) == 3 ? 0 : __LINE__;
}

static void an_answer_comes_from_the_server_that_was_asked(void **state)
{
    (void)state;
    run(ask);
}

static int refuse(int s[DETOUR_SOCKETS])
{
    char told[4096];
    own_fd client = dial(SOCK_DGRAM, "9.9.9.9", 443), six = s[DETOUR_TCP6] >= 0 ? dial(SOCK_DGRAM, "2001:db8::1", 443) : -1;
    if (client < 0 || send(client, "quic", 4, 0) != -1 || errno != EPERM)
        return __LINE__;
    if (six >= 0 && (send(six, "quic", 4, 0) != -1 || errno != EPERM))
        return __LINE__;
    /* … and the kernel tells of it. */
    return s[DETOUR_REFUSED] < 0 || recv(s[DETOUR_REFUSED], told, sizeof(told), 0) > 0 ? 0 : __LINE__;
}

static void other_datagrams_are_refused_at_once_and_told(void **state)
{
    (void)state;
    run(refuse);
}

static int keep(int s[DETOUR_SOCKETS])
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    own_fd server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)s;
    if (bind(server, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(server, 1) < 0 ||
        bind(udp, (struct sockaddr *)&own, sizeof(own)) < 0)
        return __LINE__;
    own_fd a = dial(SOCK_STREAM, "127.0.0.1", 8080), b = dial(SOCK_DGRAM, "127.0.0.1", 8080), none = dial(SOCK_STREAM, "127.0.0.2", 8081);
    if (a < 0 || b < 0 || send(b, "x", 1, 0) != 1)
        return __LINE__;
    return none < 0 && errno == ECONNREFUSED ? 0 : __LINE__;
}

static void the_loopback_stays_the_boxs_own(void **state)
{
    (void)state;
    run(keep);
}

static int hand(int s[DETOUR_SOCKETS])
{
    int pair[2], got[DETOUR_SOCKETS];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return __LINE__;
    if (detour_hand_over(pair[0], s, NULL) < 0 || detour_receive(pair[1], got, NULL) < 0)
        return __LINE__;
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        if ((got[i] < 0) != (s[i] < 0))
            return __LINE__;
    if (!is_led(got[DETOUR_TCP4], "192.0.2.9", 80))
        return __LINE__;
    /* One that ends in between leaves nothing open. */
    close(pair[0]);
    return detour_receive(pair[1], got, NULL) < 0 && got[0] == -1 ? 0 : __LINE__;
}

static void sockets_are_handed_over_whole_or_not_at_all(void **state)
{
    (void)state;
    run(hand);
}

static void a_batch_that_does_not_fit_is_not_sent(void **state)
{
    struct netlink_batch b = {0};
    struct pale_err e = {0};
    static const uint8_t much[4096];
    (void)state;
    netlink_begin(&b, 16, 0);
    netlink_attr(&b, 1, much, sizeof(much));
    netlink_attr(&b, 2, much, sizeof(much));
    netlink_end(&b);
    assert_true(b.full);
    assert_int_equal(netlink_do(&b, 0, "say too much", &e), -PALE_INTERNAL);
}

static void what_the_kernel_refuses_is_an_error(void **state)
{
    struct netlink_batch b = {0};
    struct pale_err e = {0};
    (void)state;
    netlink_begin(&b, 0x7fff, 4 /* NLM_F_ACK */);
    netlink_end(&b);
    assert_true(netlink_do(&b, 0, "ask for what is not there", &e) < 0);
    assert_true(e.os != 0);
}

TESTS(cmocka_unit_test(every_connection_is_led_to_the_socket), cmocka_unit_test(an_answer_comes_from_the_server_that_was_asked),
      cmocka_unit_test(other_datagrams_are_refused_at_once_and_told), cmocka_unit_test(the_loopback_stays_the_boxs_own),
      cmocka_unit_test(sockets_are_handed_over_whole_or_not_at_all), cmocka_unit_test(a_batch_that_does_not_fit_is_not_sent),
      cmocka_unit_test(what_the_kernel_refuses_is_an_error))

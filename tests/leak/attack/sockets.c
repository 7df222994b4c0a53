/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: families, types, protocols, options, and what can be reached with those that are allowed. */
#include "attack.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#define NO_TYPE 15 /* the kernel answers EINVAL to it whatever families it has */

/* family N: any type, and one that does not exist, which tells a filter from a kernel without that family. */
static void family(int argc, char **argv)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, NO_TYPE};
    long f = number(argc, argv, 1);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (CALL(__NR_socket, f, types[i], 0) >= 0 || errno != EAFNOSUPPORT)
            leak("family %ld type %d: %s", f, types[i], strerror(errno));
    held("family %ld: %s", f, strerror(EAFNOSUPPORT));
}

/* socket FAMILY TYPE PROTOCOL */
static void one_socket(int argc, char **argv)
{
    static const int refusals[] = {EAFNOSUPPORT, 0};
    judge("socket", CALL(__NR_socket, number(argc, argv, 1), number(argc, argv, 2), number(argc, argv, 3)), refusals);
}

static void pair(int argc, char **argv)
{
    static const int refusals[] = {EAFNOSUPPORT, 0};
    int fds[2];
    judge("socketpair", CALL(__NR_socketpair, number(argc, argv, 1), number(argc, argv, 2), 0, fds), refusals);
}

/* option TYPE LEVEL NAME [TEXT]: on a socket of the internet. */
static void option(int argc, char **argv)
{
    static const int refusals[] = {ENOPROTOOPT, 0};
    struct sock_filter code[1] = {{BPF_RET | BPF_K, 0, 0, 0xffff}};
    struct sock_fprog prog = {1, code};
    const char *text = argc > 4 ? argv[4] : NULL;
    int s = socket(AF_INET, (int)number(argc, argv, 1), 0);
    if (s < 0)
        held("socket: %s", strerror(errno));
    judge("setsockopt",
          CALL(__NR_setsockopt, s, number(argc, argv, 2), number(argc, argv, 3), text ? (const void *)text : &prog,
               text ? strlen(text) + 1 : sizeof(prog)),
          refusals);
}

/* fastopen sendto|sendmsg|sendmmsg: a connection that connect() does not see. */
static void fastopen(int argc, char **argv)
{
    static const int refusals[] = {EOPNOTSUPP, 0};
    const char *how = word(argc, argv, 1);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec v = {(void *)"x", 1};
    struct mmsghdr m = {.msg_hdr = {.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &v, .msg_iovlen = 1}};
    long flags = 0x20000000 | MSG_DONTWAIT, r;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (strcmp(how, "sendto") == 0)
        r = CALL(__NR_sendto, s, "x", 1, flags, &to, sizeof(to));
    else if (strcmp(how, "sendmsg") == 0)
        r = CALL(__NR_sendmsg, s, &m.msg_hdr, flags);
    else
        r = CALL(__NR_sendmmsg, s, &m, 1, flags);
    judge(how, r, refusals);
}

struct request {
    struct nlmsghdr head;
    union {
        struct ifinfomsg link;
        struct tcmsg tc;
        struct ifaddrmsg address;
        struct rtmsg route;
    } body;
    char attributes[64];
};

static void add(struct request *q, unsigned short type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));
    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), data, len);
    q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* Sends the request and gives the kernel's answer to it: 0 or an errno. */
static int ask(struct request *q, size_t body)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[512];
    } answer;
    q->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (q->head.nlmsg_len < NLMSG_LENGTH(body))
        q->head.nlmsg_len = (unsigned)NLMSG_LENGTH(body);
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (s < 0)
        held("socket: %s", strerror(errno));
    if (send(s, q, q->head.nlmsg_len, 0) < 0 || recv(s, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
        broken("netlink: %s", strerror(errno));
    return answer.head.nlmsg_type == NLMSG_ERROR ? -answer.error.error : 0;
}

/* route link|qdisc|address|route: asks the kernel to change the network of this namespace. */
static void route(int argc, char **argv)
{
    const char *what = word(argc, argv, 1);
    struct request q = {0};
    size_t body = sizeof(struct ifinfomsg);
    q.head.nlmsg_len = (unsigned)NLMSG_LENGTH(body);
    if (strcmp(what, "link") == 0) {
        q.head.nlmsg_type = RTM_NEWLINK;
        q.body.link.ifi_index = 1;
        q.body.link.ifi_change = 0;
        unsigned mtu = 1280;
        add(&q, IFLA_MTU, &mtu, sizeof(mtu));
    } else if (strcmp(what, "qdisc") == 0) {
        body = sizeof(struct tcmsg);
        q.head.nlmsg_len = (unsigned)NLMSG_LENGTH(body);
        q.head.nlmsg_type = RTM_NEWQDISC;
        q.head.nlmsg_flags = NLM_F_CREATE;
        q.body.tc = (struct tcmsg){.tcm_ifindex = 1, .tcm_parent = TC_H_ROOT};
        add(&q, TCA_KIND, "pfifo", 6);
    } else if (strcmp(what, "address") == 0) {
        unsigned ip = htonl(0x0a636363);
        body = sizeof(struct ifaddrmsg);
        q.head.nlmsg_len = (unsigned)NLMSG_LENGTH(body);
        q.head.nlmsg_type = RTM_NEWADDR;
        q.head.nlmsg_flags = NLM_F_CREATE;
        q.body.address = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
        add(&q, IFA_LOCAL, &ip, sizeof(ip));
    } else {
        unsigned ip = htonl(0x0a636300), out = 1;
        body = sizeof(struct rtmsg);
        q.head.nlmsg_len = (unsigned)NLMSG_LENGTH(body);
        q.head.nlmsg_type = RTM_NEWROUTE;
        q.head.nlmsg_flags = NLM_F_CREATE;
        q.body.route = (struct rtmsg){.rtm_family = AF_INET,
                                      .rtm_dst_len = 24,
                                      .rtm_table = RT_TABLE_MAIN,
                                      .rtm_protocol = RTPROT_BOOT,
                                      .rtm_type = RTN_UNICAST,
                                      .rtm_scope = RT_SCOPE_LINK};
        add(&q, RTA_DST, &ip, sizeof(ip));
        add(&q, RTA_OIF, &out, sizeof(out));
    }
    int os = ask(&q, body);
    if (os == EPERM)
        held("%s: %s", what, strerror(os));
    leak("%s: %s", what, os ? strerror(os) : "done");
}

static void receive(int s)
{
    char text[256];
    ssize_t n = recv(s, text, sizeof(text), 0);
    if (n > 0)
        dprintf(1, "%.*s\n", (int)n, text);
    tried();
}

/* tcp ADDRESS PORT: prints what the listener says. */
static void tcp(int argc, char **argv)
{
    struct timeval t = {2, 0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)number(argc, argv, 2))};
    inet_pton(AF_INET, word(argc, argv, 1), &to.sin_addr);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
        tried();
    receive(s);
}

static void tcp6(int argc, char **argv)
{
    struct timeval t = {2, 0};
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)number(argc, argv, 2))};
    inet_pton(AF_INET6, word(argc, argv, 1), &to.sin6_addr);
    int s = socket(AF_INET6, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
        tried();
    receive(s);
}

/* udp ADDRESS PORT TEXT: the host looks whether it came. */
static void udp(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)number(argc, argv, 2))};
    const char *text = word(argc, argv, 3);
    inet_pton(AF_INET, word(argc, argv, 1), &to.sin_addr);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    (void)!sendto(s, text, strlen(text), 0, (struct sockaddr *)&to, sizeof(to));
    tried();
}

/* unix abstract|path NAME [dgram] */
static void local(int argc, char **argv)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    bool is_abstract = strcmp(word(argc, argv, 1), "abstract") == 0, dgram = argc > 3 && strcmp(argv[3], "dgram") == 0;
    const char *name = word(argc, argv, 2);
    struct timeval t = {2, 0};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (is_abstract ? 1 : 0));
    snprintf(to.sun_path + is_abstract, sizeof(to.sun_path) - 1, "%s", name);
    int s = socket(AF_UNIX, dgram ? SOCK_DGRAM : SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    if (connect(s, (struct sockaddr *)&to, len) < 0)
        tried();
    if (dgram) {
        (void)!send(s, word(argc, argv, 4), strlen(argv[4]), 0);
        tried();
    }
    receive(s);
}

/* interfaces: is there anything but lo? */
static void interfaces(int argc, char **argv)
{
    (void)argc;
    char line[256];
    FILE *f = fopen("/proc/self/net/dev", "re");
    if (!f)
        broken("/proc/net/dev: %s", strerror(errno));
    for (int n = 0; fgets(line, sizeof(line), f); n++) {
        const char *name = line + strspn(line, " ");
        if (n >= 2 && strncmp(name, "lo:", 3) != 0)
            leak("%s: there is %.*s", argv[0], (int)strcspn(name, ":"), name);
    }
    held("nothing but lo");
}

const struct attack socket_attacks[] = {
    {"family", family}, {"socket", one_socket}, {"socketpair", pair}, {"option", option}, {"fastopen", fastopen},     {"route", route},
    {"tcp", tcp},       {"tcp6", tcp6},         {"udp", udp},         {"unix", local},    {"interfaces", interfaces}, {0},
};

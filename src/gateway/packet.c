/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the kernel's word about packets that the detour refused: the audit has them too.
 *
 * How it works: messages come from the kernel, and what is in them from the box: the first bytes of a packet. Only the addresses, the
 * protocol and the port are read, each where the packet is long enough to have it. */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/gateway.h"
#include "init/probe.h"

#define MESSAGES_PER_TURN 16

static const uint8_t nobody[4] = {192, 0, 2, 1};

static void tell(struct gateway *g, const uint8_t *p, size_t n)
{
    struct address to = {0};
    size_t head = 0;
    uint8_t protocol = 0;
    char why[64];
    if (n >= 20 && p[0] >> 4 == 4) {
        to.family = ADDRESS_V4;
        memcpy(to.byte, p + 16, 4);
        protocol = p[9];
        head = (size_t)(p[0] & 15) * 4;
    } else if (n >= 40 && p[0] >> 4 == 6) {
        to.family = ADDRESS_V6;
        memcpy(to.byte, p + 24, 16);
        protocol = p[6];
        head = 40;
    } else {
        return;
    }
    struct refusal r = {.kind = protocol == IPPROTO_UDP ? GATE_UDP : GATE_OTHER, .address = &to, .rule = "network", .why = why};
    if (protocol == IPPROTO_UDP && head >= 20 && head + 4 <= n)
        r.port = (uint16_t)(p[head + 2] << 8 | p[head + 3]);
    /* The prober tries this at every start; the receipt has it. */
    if (to.family == ADDRESS_V4 && memcmp(to.byte, nobody, sizeof(nobody)) == 0 && r.port == PROBE_NOBODY_PORT)
        return;
    if (protocol == IPPROTO_UDP)
        snprintf(why, sizeof(why), "only TCP and questions about names leave a box");
    else
        snprintf(why, sizeof(why), "only TCP leaves a box, not protocol %u", protocol);
    liaison_deny(g, &r);
}

static void read_message(struct gateway *g, const struct nlmsghdr *h)
{
    if (h->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
        return;
    const uint8_t *p = (const uint8_t *)h;
    size_t at = NLMSG_LENGTH(sizeof(struct nfgenmsg)), end = h->nlmsg_len;
    while (at + NLA_HDRLEN <= end) {
        struct nlattr a;
        memcpy(&a, p + at, sizeof(a));
        if (a.nla_len < NLA_HDRLEN || a.nla_len > end - at)
            return;
        if ((a.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD)
            tell(g, p + at + NLA_HDRLEN, a.nla_len - NLA_HDRLEN);
        at += NLA_ALIGN(a.nla_len);
    }
}

void packet_refused(struct loop_source *s, uint32_t events)
{
    const struct listener *l = (struct listener *)((char *)s - offsetof(struct listener, source));
    _Alignas(8) uint8_t bytes[8192];
    (void)events;
    for (int i = 0; i < MESSAGES_PER_TURN; i++) {
        ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n <= 0)
            return;
        for (size_t at = 0; at + sizeof(struct nlmsghdr) <= (size_t)n;) {
            const struct nlmsghdr *h = (const void *)(bytes + at);
            if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > (size_t)n - at)
                break;
            read_message(l->g, h);
            at += NLMSG_ALIGN(h->nlmsg_len);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the detour: routes, rules and sockets of a network namespace from which no packet leaves. */
#include "confine/detour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/handing.h"
#include "base/own.h"
#include "confine/netlink.h"

#define TABLE "pale"
#define LO_INDEX 1u /* of every network namespace */
#define LOG_GROUP 1
#define LOG_SNAP_BYTES 64u  /* enough for the heads of IP and UDP */
#define LOG_PER_SECOND 20u  /* what a flood is refused for is told by the first of it */
#define LISTEN_BACKLOG 4096 /* connections that wait for the gateway; beyond it a dialler tries again */

/* --- routes --- */

static void put_route(struct netlink_batch *b, uint8_t family)
{
    const struct rtmsg route = {
        .rtm_family = family, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_BOOT, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL};
    netlink_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK);
    netlink_put(b, &route, sizeof(route));
    netlink_attr_u32(b, RTA_OIF, LO_INDEX);
    netlink_end(b);
}

/* Programs that ask for addresses only of a family that the machine has (AI_ADDRCONFIG) do not count the loopback. These lead nowhere:
 * what is dialled at them goes the way of everything else. */
static void put_address(struct netlink_batch *b, uint8_t family, const void *address, size_t n)
{
    const struct ifaddrmsg head = {.ifa_family = family,
                                   .ifa_prefixlen = (uint8_t)(8 * n),
                                   .ifa_flags = IFA_F_NODAD,
                                   .ifa_scope = RT_SCOPE_UNIVERSE,
                                   .ifa_index = LO_INDEX};
    netlink_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK);
    netlink_put(b, &head, sizeof(head));
    netlink_attr(b, IFA_LOCAL, address, n);
    netlink_attr(b, IFA_ADDRESS, address, n);
    netlink_end(b);
}

static int lay_routes(bool six, struct pale_err *e)
{
    static const uint8_t four[4] = {192, 0, 0, 8};                                   /* RFC 7600: the dummy address of IPv4 */
    static const uint8_t unique[16] = {0xfd, 'p', 'a', 'l', 'e', 0, 0, 0, [15] = 1}; /* nobody's, by RFC 4193 */
    struct netlink_batch b = {0};
    put_address(&b, AF_INET, four, sizeof(four));
    if (six)
        put_address(&b, AF_INET6, unique, sizeof(unique));
    put_route(&b, AF_INET);
    if (six)
        put_route(&b, AF_INET6);
    return netlink_do(&b, NETLINK_ROUTE, "make every address one of the box's own", e);
}

/* --- rules --- */

static void put_head(struct netlink_batch *b, uint8_t family, uint16_t id)
{
    const struct nfgenmsg head = {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(id)};
    netlink_put(b, &head, sizeof(head));
}

static void begin_table_message(struct netlink_batch *b, uint16_t what, uint16_t flags)
{
    netlink_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | what), NLM_F_CREATE | flags);
    put_head(b, NFPROTO_INET, 0);
}

static void put_mark(struct netlink_batch *b, uint16_t which)
{
    netlink_begin(b, which, 0);
    put_head(b, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    netlink_end(b);
}

static void put_table(struct netlink_batch *b)
{
    begin_table_message(b, NFT_MSG_NEWTABLE, 0);
    netlink_attr_text(b, NFTA_TABLE_NAME, TABLE);
    netlink_end(b);
}

static void put_chain(struct netlink_batch *b, const char *name, const char *type, int priority)
{
    begin_table_message(b, NFT_MSG_NEWCHAIN, 0);
    netlink_attr_text(b, NFTA_CHAIN_TABLE, TABLE);
    netlink_attr_text(b, NFTA_CHAIN_NAME, name);
    size_t hook = netlink_nest(b, NFTA_CHAIN_HOOK);
    netlink_attr_be32(b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    netlink_attr_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    netlink_unnest(b, hook);
    netlink_attr_text(b, NFTA_CHAIN_TYPE, type);
    netlink_end(b);
}

/* An expression of a rule, within which others nest. */
struct part {
    size_t element, data;
};

static struct part begin_part(struct netlink_batch *b, const char *name)
{
    struct part p = {.element = netlink_nest(b, NFTA_LIST_ELEM)};
    netlink_attr_text(b, NFTA_EXPR_NAME, name);
    p.data = netlink_nest(b, NFTA_EXPR_DATA);
    return p;
}

static void end_part(struct netlink_batch *b, const struct part *p)
{
    netlink_unnest(b, p->data);
    netlink_unnest(b, p->element);
}

static void put_value(struct netlink_batch *b, uint16_t type, const void *value, size_t n)
{
    size_t at = netlink_nest(b, type);
    netlink_attr(b, NFTA_DATA_VALUE, value, n);
    netlink_unnest(b, at);
}

static void compare(struct netlink_batch *b, enum nft_cmp_ops how, const void *value, size_t n)
{
    struct part p = begin_part(b, "cmp");
    netlink_attr_be32(b, NFTA_CMP_SREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_CMP_OP, how);
    put_value(b, NFTA_CMP_DATA, value, n);
    end_part(b, &p);
}

static void if_meta(struct netlink_batch *b, enum nft_meta_keys key, uint8_t is)
{
    struct part p = begin_part(b, "meta");
    netlink_attr_be32(b, NFTA_META_DREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_META_KEY, key);
    end_part(b, &p);
    compare(b, NFT_CMP_EQ, &is, 1);
}

static void if_bytes(struct netlink_batch *b, enum nft_payload_bases base, uint32_t offset, const void *are, uint32_t n)
{
    struct part p = begin_part(b, "payload");
    netlink_attr_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_PAYLOAD_BASE, base);
    netlink_attr_be32(b, NFTA_PAYLOAD_OFFSET, offset);
    netlink_attr_be32(b, NFTA_PAYLOAD_LEN, n);
    end_part(b, &p);
    compare(b, NFT_CMP_EQ, are, n);
}

/* A packet of a connection that was let begin, or the kernel's word about one. */
static void if_known(struct netlink_batch *b)
{
    static const uint32_t known = 2 | 4, none = 0; /* established, related */
    struct part p = begin_part(b, "ct");
    netlink_attr_be32(b, NFTA_CT_DREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_CT_KEY, NFT_CT_STATE);
    end_part(b, &p);
    p = begin_part(b, "bitwise");
    netlink_attr_be32(b, NFTA_BITWISE_SREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_BITWISE_DREG, NFT_REG_1);
    netlink_attr_be32(b, NFTA_BITWISE_LEN, sizeof(known));
    put_value(b, NFTA_BITWISE_MASK, &known, sizeof(known));
    put_value(b, NFTA_BITWISE_XOR, &none, sizeof(none));
    end_part(b, &p);
    compare(b, NFT_CMP_NEQ, &none, sizeof(none));
}

static void then(struct netlink_batch *b, uint32_t verdict)
{
    struct part p = begin_part(b, "immediate");
    netlink_attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = netlink_nest(b, NFTA_IMMEDIATE_DATA), at = netlink_nest(b, NFTA_DATA_VERDICT);
    netlink_attr_be32(b, NFTA_VERDICT_CODE, verdict);
    netlink_unnest(b, at);
    netlink_unnest(b, data);
    end_part(b, &p);
}

static void then_redirect(struct netlink_batch *b, uint16_t port)
{
    uint16_t wire = htons(port);
    struct part p = begin_part(b, "immediate");
    netlink_attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    put_value(b, NFTA_IMMEDIATE_DATA, &wire, sizeof(wire));
    end_part(b, &p);
    p = begin_part(b, "redir");
    netlink_attr_be32(b, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    end_part(b, &p);
}

static void then_log(struct netlink_batch *b)
{
    static const uint16_t group = LOG_GROUP;
    uint64_t rate = htobe64(LOG_PER_SECOND), second = htobe64(1);
    uint16_t wire = htons(group);
    struct part p = begin_part(b, "limit");
    netlink_attr(b, NFTA_LIMIT_RATE, &rate, sizeof(rate));
    netlink_attr(b, NFTA_LIMIT_UNIT, &second, sizeof(second));
    netlink_attr_be32(b, NFTA_LIMIT_BURST, LOG_PER_SECOND);
    netlink_attr_be32(b, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
    end_part(b, &p);
    p = begin_part(b, "log");
    netlink_attr(b, NFTA_LOG_GROUP, &wire, sizeof(wire));
    netlink_attr_be32(b, NFTA_LOG_SNAPLEN, LOG_SNAP_BYTES);
    end_part(b, &p);
}

static void then_reject(struct netlink_batch *b)
{
    static const uint8_t code = NFT_REJECT_ICMPX_PORT_UNREACH;
    struct part p = begin_part(b, "reject");
    netlink_attr_be32(b, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    netlink_attr(b, NFTA_REJECT_ICMP_CODE, &code, 1);
    end_part(b, &p);
}

static size_t begin_rule(struct netlink_batch *b, const char *chain)
{
    begin_table_message(b, NFT_MSG_NEWRULE, NLM_F_APPEND | NLM_F_ACK);
    netlink_attr_text(b, NFTA_RULE_TABLE, TABLE);
    netlink_attr_text(b, NFTA_RULE_CHAIN, chain);
    return netlink_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void end_rule(struct netlink_batch *b, size_t rule)
{
    netlink_unnest(b, rule);
    netlink_end(b);
}

/* What goes to the box's own loopback. */
static void put_own(struct netlink_batch *b, const char *chain, uint32_t verdict)
{
    static const uint8_t first = 127;
    size_t rule = begin_rule(b, chain);
    if_meta(b, NFT_META_NFPROTO, NFPROTO_IPV4);
    if_bytes(b, NFT_PAYLOAD_NETWORK_HEADER, 16, &first, 1);
    then(b, verdict);
    end_rule(b, rule);
    rule = begin_rule(b, chain);
    if_meta(b, NFT_META_NFPROTO, NFPROTO_IPV6);
    if_bytes(b, NFT_PAYLOAD_NETWORK_HEADER, 24, &in6addr_loopback, sizeof(in6addr_loopback));
    then(b, verdict);
    end_rule(b, rule);
}

static void put_redirect(struct netlink_batch *b, uint8_t protocol, uint16_t from, uint16_t to)
{
    uint16_t wire = htons(from);
    size_t rule = begin_rule(b, "lead");
    if_meta(b, NFT_META_L4PROTO, protocol);
    if (from)
        if_bytes(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, &wire, sizeof(wire));
    then_redirect(b, to);
    end_rule(b, rule);
}

static int lay_rules(bool logs, struct pale_err *e)
{
    struct netlink_batch b = {0};
    put_mark(&b, NFNL_MSG_BATCH_BEGIN);
    put_table(&b);
    put_chain(&b, "lead", "nat", -100); /* where destinations are changed */
    put_chain(&b, "refuse", "filter", 0);
    put_own(&b, "lead", (uint32_t)NFT_RETURN);
    put_redirect(&b, IPPROTO_UDP, 53, DETOUR_NAME_PORT);
    put_redirect(&b, IPPROTO_TCP, 53, DETOUR_NAME_PORT);
    put_redirect(&b, IPPROTO_TCP, 0, DETOUR_PORT);
    put_own(&b, "refuse", NF_ACCEPT);
    size_t rule = begin_rule(&b, "refuse");
    if_known(&b);
    then(&b, NF_ACCEPT);
    end_rule(&b, rule);
    if (logs) {
        rule = begin_rule(&b, "refuse");
        then_log(&b);
        end_rule(&b, rule);
    }
    rule = begin_rule(&b, "refuse");
    then_reject(&b);
    end_rule(&b, rule);
    put_mark(&b, NFNL_MSG_BATCH_END);
    return netlink_do(&b, NETLINK_NETFILTER, "lay the box's network rules (nftables with nat: nft_redir, nft_reject_inet)", e);
}

/* --- sockets --- */

/* Bound to the group that rules log to. -1: the kernel has none. */
static int open_log(void)
{
    struct netlink_batch b = {0};
    const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
    const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(LOG_SNAP_BYTES), .copy_mode = NFULNL_COPY_PACKET};
    own_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
    if (fd < 0)
        return -1;
    netlink_begin(&b, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK);
    put_head(&b, AF_UNSPEC, LOG_GROUP);
    netlink_attr(&b, NFULA_CFG_CMD, &bind, sizeof(bind));
    netlink_attr(&b, NFULA_CFG_MODE, &mode, sizeof(mode));
    netlink_attr_be32(&b, NFULA_CFG_QTHRESH, 1); /* told at once */
    netlink_end(&b);
    /* The kernel answers before sendto returns. */
    return netlink_do_on(fd, &b, "", NULL) < 0 ? -1 : take_fd(&fd);
}

static int open_socket(int family, int kind, uint16_t port, struct pale_err *e)
{
    static const int on = 1;
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};
    own_fd fd = socket(family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd;
    if (r >= 0 && family == AF_INET6)
        r = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (r >= 0)
        r = family == AF_INET ? bind(fd, (const struct sockaddr *)&four, sizeof(four))
                              : bind(fd, (const struct sockaddr *)&six, sizeof(six));
    if (r >= 0 && kind == SOCK_STREAM)
        r = listen(fd, LISTEN_BACKLOG);
    return r < 0 ? err_os(e, "make a socket in the box's network namespace") : take_fd(&fd);
}

void detour_close(int sockets[DETOUR_SOCKETS])
{
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        own_close(&sockets[i]);
}

static int open_sockets(int ret[DETOUR_SOCKETS], bool *ret_six, struct pale_err *e)
{
    static const struct {
        int family, kind;
        uint16_t port;
    } rows[DETOUR_REFUSED] = {
        [DETOUR_TCP4] = {AF_INET, SOCK_STREAM, DETOUR_PORT},         [DETOUR_TCP6] = {AF_INET6, SOCK_STREAM, DETOUR_PORT},
        [DETOUR_NAMES4] = {AF_INET, SOCK_DGRAM, DETOUR_NAME_PORT},   [DETOUR_NAMES6] = {AF_INET6, SOCK_DGRAM, DETOUR_NAME_PORT},
        [DETOUR_STREAM4] = {AF_INET, SOCK_STREAM, DETOUR_NAME_PORT}, [DETOUR_STREAM6] = {AF_INET6, SOCK_STREAM, DETOUR_NAME_PORT},
    };
    own_fd six = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *ret_six = six >= 0;
    for (int i = 0; i < DETOUR_REFUSED; i++) {
        if (rows[i].family == AF_INET6 && six < 0)
            continue;
        ret[i] = open_socket(rows[i].family, rows[i].kind, rows[i].port, e);
        if (ret[i] < 0)
            return ret[i];
    }
    ret[DETOUR_REFUSED] = open_log();
    return 0;
}

int detour_make(int ret[DETOUR_SOCKETS], struct pale_err *e)
{
    bool six = false;
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        ret[i] = -1;
    int r = open_sockets(ret, &six, e);
    if (r == 0)
        r = lay_routes(six, e);
    if (r == 0 && ret[DETOUR_REFUSED] >= 0 && lay_rules(true, e) < 0)
        own_close(&ret[DETOUR_REFUSED]);
    else if (r == 0 && ret[DETOUR_REFUSED] >= 0)
        return 0;
    if (r == 0)
        r = lay_rules(false, e);
    if (r < 0)
        detour_close(ret);
    return r;
}

/* --- handing over --- */

int detour_hand_over(int to_fd, const int sockets[DETOUR_SOCKETS], struct pale_err *e)
{
    for (uint8_t i = 0; i < DETOUR_SOCKETS; i++)
        if (handing_send(to_fd, &i, 1, sockets[i], 0) != 1)
            return err_os(e, "hand the box's sockets to its gateway");
    return 0;
}

int detour_receive(int from_fd, int ret[DETOUR_SOCKETS], struct pale_err *e)
{
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        ret[i] = -1;
    for (int i = 0; i < DETOUR_SOCKETS; i++) {
        uint8_t which = 255;
        if (handing_receive(from_fd, &which, 1, &ret[i], 0) != 1 || which != i) {
            detour_close(ret);
            return err_set(e, PALE_GONE, "the box's sockets did not come");
        }
    }
    return 0;
}

int detour_hand_over_inward(int to_fd, uint8_t count, struct pale_err *e)
{
    bool good = handing_send(to_fd, &count, 1, -1, 0) == 1;
    for (uint8_t i = 0; good && i < count; i++) {
        own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        good = fd >= 0 && handing_send(to_fd, &i, 1, fd, 0) == 1;
    }
    return good ? 0 : err_os(e, "hand sockets of the box's namespace to its gateway");
}

int detour_receive_inward(int from_fd, int ret[DETOUR_INWARD], uint32_t *ret_count, struct pale_err *e)
{
    uint8_t count = 255, which;
    int none = -1;
    bool good = handing_receive(from_fd, &count, 1, &none, 0) == 1 && none < 0 && count <= DETOUR_INWARD;
    own_close(&none);
    *ret_count = 0;
    for (uint8_t i = 0; good && i < count; i++) {
        ret[i] = -1;
        good = handing_receive(from_fd, &which, 1, &ret[i], 0) == 1 && which == i && ret[i] >= 0;
        *ret_count = good ? i + 1u : i;
    }
    return good ? 0 : err_set(e, PALE_GONE, "the box's sockets did not come");
}

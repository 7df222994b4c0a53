/* SPDX-License-Identifier: Apache-2.0 */
/* Owns netlink messages: how they are put together, sent and answered. */
#include "confine/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"

static void *room(struct netlink_batch *b, size_t n)
{
    size_t padded = NLMSG_ALIGN(n);
    if (b->full || padded > sizeof(b->byte) - b->len) {
        b->full = true;
        return NULL;
    }
    void *at = b->byte + b->len;
    memset(at, 0, padded);
    b->len += padded;
    return at;
}

void netlink_begin(struct netlink_batch *b, uint16_t type, uint16_t flags)
{
    b->message = b->len;
    struct nlmsghdr *h = room(b, sizeof(*h));
    if (!h)
        return;
    *h = (struct nlmsghdr){.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = ++b->seq};
    b->answers += (flags & NLM_F_ACK) != 0;
}

void netlink_end(struct netlink_batch *b)
{
    if (!b->full)
        ((struct nlmsghdr *)(void *)(b->byte + b->message))->nlmsg_len = (uint32_t)(b->len - b->message);
}

void netlink_put(struct netlink_batch *b, const void *p, size_t n)
{
    void *at = room(b, n);
    if (at)
        memcpy(at, p, n);
}

void netlink_attr(struct netlink_batch *b, uint16_t type, const void *p, size_t n)
{
    struct nlattr *a = room(b, NLA_HDRLEN + n);
    if (!a)
        return;
    *a = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type};
    if (n)
        memcpy((uint8_t *)a + NLA_HDRLEN, p, n);
}

void netlink_attr_u32(struct netlink_batch *b, uint16_t type, uint32_t host_order)
{
    netlink_attr(b, type, &host_order, sizeof(host_order));
}

void netlink_attr_be32(struct netlink_batch *b, uint16_t type, uint32_t host_order)
{
    uint32_t v = __builtin_bswap32(host_order);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = host_order;
#endif
    netlink_attr(b, type, &v, sizeof(v));
}

void netlink_attr_text(struct netlink_batch *b, uint16_t type, const char *text)
{
    netlink_attr(b, type, text, strlen(text) + 1);
}

size_t netlink_nest(struct netlink_batch *b, uint16_t type)
{
    size_t began = b->len;
    netlink_attr(b, type | NLA_F_NESTED, NULL, 0);
    return began;
}

void netlink_unnest(struct netlink_batch *b, size_t began)
{
    if (!b->full)
        ((struct nlattr *)(void *)(b->byte + began))->nla_len = (uint16_t)(b->len - began);
}

/* How many answers a datagram of the kernel holds, or the first error in it. */
static int count_answers(const uint8_t *p, size_t n, const char *what, struct pale_err *e)
{
    int count = 0;
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= n;) {
        const struct nlmsghdr *h = (const void *)(p + at);
        if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > n - at)
            break;
        if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
            const struct nlmsgerr *m = NLMSG_DATA(h);
            if (m->error) {
                errno = -m->error;
                return err_os(e, "%s", what);
            }
            count++;
        }
        at += NLMSG_ALIGN(h->nlmsg_len);
    }
    return count;
}

int netlink_do_on(int fd, const struct netlink_batch *b, const char *what, struct pale_err *e)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    _Alignas(8) uint8_t answer[8192];
    if (b->full)
        return err_set(e, PALE_INTERNAL, "%s: the request is too long", what);
    if (sendto(fd, b->byte, b->len, 0, (const struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)b->len)
        return err_os(e, "%s", what);
    for (unsigned left = b->answers; left > 0;) {
        ssize_t n = recv(fd, answer, sizeof(answer), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_os(e, "%s", what);
        int got = count_answers(answer, (size_t)n, what, e);
        if (got < 0)
            return got;
        left -= (unsigned)got < left ? (unsigned)got : left;
    }
    return 0;
}

int netlink_do(const struct netlink_batch *b, int protocol, const char *what, struct pale_err *e)
{
    own_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    return fd < 0 ? err_os(e, "%s", what) : netlink_do_on(fd, b, what, e);
}

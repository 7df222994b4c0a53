/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the passing of descriptors. */
#include "base/handing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Aligned as the kernel wants it, with room for one. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t handing_send(int socket, const void *p, size_t n, int fd, int flags)
{
    union control control = {0};
    struct iovec part = {.iov_base = (void *)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    ssize_t w;
    while ((w = sendmsg(socket, &m, flags | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return w;
}

ssize_t handing_receive(int socket, void *p, size_t n, int *ret_fd, int flags)
{
    union control control = {0};
    struct iovec part = {.iov_base = p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    *ret_fd = -1;
    while ((got = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return got;
    /* The padding has room for a second one, which nobody asked for. */
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
        int fd;
        memcpy(&fd, (const char *)c + at, sizeof(fd));
        if (*ret_fd < 0)
            *ret_fd = fd;
        else
            close(fd);
    }
    return got;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the descriptors of claimed folders from a living keeper to one that starts. */
#include "box/claimplaces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"

#define PREFIX "place-"
#define ANSWER_SECONDS 2
#define PLACES_MAX 200 /* of one message: the kernel takes 253 descriptors */

/* A socket's name has room for 107 bytes: the folder is named by its descriptor. */
static bool make_address(int dir, const char *id, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" PREFIX "%s", dir, id);
    return n > 0 && (size_t)n < sizeof(ret->sun_path);
}

int claimplaces_listen(int dir, const char *id, int *ret_fd, struct pale_err *e)
{
    struct sockaddr_un at;
    claimplaces_sweep(dir, id);
    own_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || !make_address(dir, id, &at) || bind(fd, (const void *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0)
        return err_os(e, "make the socket that tells where claimed folders are");
    *ret_fd = take_fd(&fd);
    return 0;
}

void claimplaces_sweep(int dir, const char *id)
{
    char name[BOX_ID_LEN + 16];
    snprintf(name, sizeof(name), PREFIX "%s", id);
    unlinkat(dir, name, 0);
}

static void send_places(int to, const struct ancestors *s)
{
    int fds[PLACES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < s->count && n < PLACES_MAX; i++)
        if ((s->at[i].roles & ROLE_SHARED) && s->at[i].is_dir)
            fds[n++] = s->at[i].fd;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    char byte = 'p';
    struct iovec v = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = n ? &control : NULL, .msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0};
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
    memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
    (void)!sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void claimplaces_answer(int fd, const struct ancestors *s)
{
    for (;;) {
        own_fd to = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (to < 0)
            return;
        send_places(to, s);
    }
}

/* The descriptors in an answer; how many, or a negative code. */
static int receive_places(int from, int fds[PLACES_MAX], struct pale_err *e)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * PLACES_MAX)];
    } control = {0};
    char byte;
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;
    while ((n = recvmsg(from, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return err_os(e, "hear from its keeper");
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (n == 0 || (m.msg_flags & MSG_CTRUNC) || (c && (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)))
        return err_set(e, PALE_PROTOCOL, "its keeper did not answer as one of this version does");
    size_t count = c ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    if (c)
        memcpy(fds, CMSG_DATA(c), count * sizeof(int));
    return (int)count;
}

/* A deleted folder is nowhere. */
static int add_place(struct ancestors *s, int fd, struct pale_err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_os(e, "look at a folder");
    return st.st_nlink == 0 ? 0 : ancestors_add_folder(s, fd, ANCESTORS_ALL, e);
}

int claimplaces_ask(int dir, const char *id, struct ancestors *ret, struct pale_err *e)
{
    struct sockaddr_un at;
    const struct timeval most = {.tv_sec = ANSWER_SECONDS};
    int fds[PLACES_MAX];
    own_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || !make_address(dir, id, &at) || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0 ||
        connect(fd, (const void *)&at, sizeof(at)) < 0)
        return err_os(e, "ask its keeper");
    int n = receive_places(fd, fds, e), r = n;
    for (int i = 0; i < n; i++) {
        own_fd place = fds[i];
        if (r >= 0)
            r = add_place(ret, place, e);
    }
    return r < 0 ? r : 0;
}

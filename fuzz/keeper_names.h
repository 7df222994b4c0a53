/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file of the keeper: its sockets and signals are the rig's (keeper_rig.c). */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t rig_send(int fd, const void *p, size_t n, int flags);
ssize_t rig_recv(int fd, void *p, size_t n, int flags);
int rig_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int rig_getsockopt(int fd, int level, int name, void *p, socklen_t *len);
int rig_socket(int domain, int type, int protocol);
int rig_bind(int fd, const struct sockaddr *sa, socklen_t len);
int rig_listen(int fd, int backlog);
int rig_unlink(const char *path);
int rig_close(int fd);
int rig_kill(pid_t pid, int sig);
int rig_open(const char *path, int flags, ...);

#define send rig_send
#define recv rig_recv
#define accept4 rig_accept
#define getsockopt rig_getsockopt
#define socket rig_socket
#define bind rig_bind
#define listen rig_listen
#define unlink rig_unlink
#define close rig_close
#define kill rig_kill
#define open rig_open

/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file of fleet/, ops/ and rest/: their sockets, clock, chance and disk are the rig's (rest_rig.c), and some
 * limits are so small that a short input reaches them. Calls alone are renamed: members of the same name stay what they are. */
#pragma once

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

ssize_t rig_send(int fd, const void *p, size_t n, int flags);
ssize_t rig_recv(int fd, void *p, size_t n, int flags);
ssize_t rig_sendmsg(int fd, const struct msghdr *m, int flags);
int rig_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int rig_getsockopt(int fd, int level, int name, void *p, socklen_t *len);
int rig_setsockopt(int fd, int level, int name, const void *p, socklen_t len);
int rig_socket(int domain, int type, int protocol);
int rig_socketpair(int domain, int type, int protocol, int *pair);
int rig_connect(int fd, const struct sockaddr *sa, socklen_t len);
int rig_shutdown(int fd, int how);
int rig_close(int fd);
int rig_open(const char *path, int flags, ...);
ssize_t rig_read(int fd, void *p, size_t n);
int rig_mkdir(const char *path, mode_t mode);
int rig_access(const char *path, int mode);
int rig_inotify_init(int flags);
int rig_inotify_watch(int fd, const char *path, uint32_t mask);
int rig_clock_gettime(clockid_t id, struct timespec *ret);
ssize_t rig_getrandom(void *p, size_t n, unsigned flags);

#define send(...) rig_send(__VA_ARGS__)
#define recv(...) rig_recv(__VA_ARGS__)
#define sendmsg(...) rig_sendmsg(__VA_ARGS__)
#define accept4(...) rig_accept(__VA_ARGS__)
#define getsockopt(...) rig_getsockopt(__VA_ARGS__)
#define setsockopt(...) rig_setsockopt(__VA_ARGS__)
#define socket(...) rig_socket(__VA_ARGS__)
#define socketpair(...) rig_socketpair(__VA_ARGS__)
#define connect(...) rig_connect(__VA_ARGS__)
#define shutdown(...) rig_shutdown(__VA_ARGS__)
#define close(...) rig_close(__VA_ARGS__)
#define open(...) rig_open(__VA_ARGS__)
#define read(...) rig_read(__VA_ARGS__)
#define mkdir(...) rig_mkdir(__VA_ARGS__)
#define access(...) rig_access(__VA_ARGS__)
#define inotify_init1(...) rig_inotify_init(__VA_ARGS__)
#define inotify_add_watch(...) rig_inotify_watch(__VA_ARGS__)
#define clock_gettime(...) rig_clock_gettime(__VA_ARGS__)
#define getrandom(...) rig_getrandom(__VA_ARGS__)
#define place_by_id(...) rig_place_by_id(__VA_ARGS__)
#define place_owned(...) rig_place_owned(__VA_ARGS__)
#define place_each_made(...) rig_place_each(__VA_ARGS__)
#define place_state_dir(...) rig_place_dir(__VA_ARGS__)
#define place_runtime_dir(...) rig_place_dir(__VA_ARGS__)
#define daemon_state(...) rig_daemon_state(__VA_ARGS__)
#define life_born(...) rig_born(__VA_ARGS__)
#define life_policy(...) rig_policy(__VA_ARGS__)
#define stack_load(...) rig_stack(__VA_ARGS__)

#include "box/life.h"
#include "fleet/events.h"
#include "ops/talk.h"
#include "rest/conn.h"

#undef REST_BODY_MAX
#define REST_BODY_MAX 98304u
#undef REST_OUT_HIGH
#define REST_OUT_HIGH 4096u
#undef REST_OUT_MAX
#define REST_OUT_MAX 131072u
#undef TALKS_PER_BOX
#define TALKS_PER_BOX 6u
#undef EVENTS_KEPT
#define EVENTS_KEPT 24u

/* SPDX-License-Identifier: Apache-2.0 */
/* System calls and constants that the C library or the distribution's kernel headers do not have yet. Wrappers only: each
 * returns -1 with errno like the call it stands for. */
#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 0x00000004
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* A call that does not touch errno, which a child that shares our memory has in common with us: the answer is what the kernel said. */
static inline long k_raw(long nr, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return answer;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
#error "how does this architecture call its kernel?"
#endif
}

static inline int k_open_tree(int dirfd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int k_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int k_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, 1u /* FSOPEN_CLOEXEC */);
}

static inline int k_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int k_fsmount(int fd, unsigned attrs)
{
    return (int)syscall(SYS_fsmount, fd, 1u /* FSMOUNT_CLOEXEC */, attrs);
}

static inline int k_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *a)
{
    return (int)syscall(SYS_mount_setattr, dirfd, path, flags, a, sizeof(*a));
}

static inline int k_pivot_root(const char *to, const char *old)
{
    return (int)syscall(SYS_pivot_root, to, old);
}

static inline int k_quotactl_fd(int fd, unsigned cmd, uint32_t id, void *arg)
{
    return (int)syscall(SYS_quotactl_fd, fd, cmd, id, arg);
}

static inline int k_clone3(struct clone_args *a)
{
    return (int)syscall(SYS_clone3, a, sizeof(*a));
}

static inline int k_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int k_pidfd_signal(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

static inline int k_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int k_execveat(int fd, char *const argv[], char *const envp[])
{
    return (int)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the attempts of the probe: a table of small functions, one per line of probe.def. */
#include "init/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "confine/caps.h"
#include "confine/kernel.h"
#include "confine/landlock.h"

/* What an attempt may need to know. */
struct attempt {
    const struct msg_probe *ask;
    enum policy_seccomp profile;
    int first_foreign;
    struct landlock_count *count;
};

static uint32_t got(long result)
{
    return result >= 0 ? 0 : (uint32_t)errno;
}

static uint32_t try_socket(int family, int type, int proto)
{
    own_fd s = socket(family, type | SOCK_CLOEXEC, proto);
    return got(s);
}

static uint32_t try_open(const char *path, int flags)
{
    own_fd fd = open(path, flags | O_CLOEXEC);
    return got(fd);
}

static uint32_t try_create(const char *path)
{
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(path);
    return got(fd);
}

static uint32_t namespace_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint32_t)st.st_ino : 0;
}

/* Whether the mount itself is read-only: an attempt to write meets the file's permissions first. */
static uint32_t is_mounted_read_only(const char *path)
{
    struct statvfs st;
    return statvfs(path, &st) == 0 && (st.f_flag & ST_RDONLY);
}

static uint32_t limit_of(int what)
{
    struct rlimit lim;
    if (getrlimit(what, &lim) < 0 || lim.rlim_cur != lim.rlim_max)
        return UINT32_MAX - 1;
    return lim.rlim_max >= UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)lim.rlim_max;
}

#define ATTEMPT(id) static uint32_t try_##id(const struct attempt *a __attribute__((unused)))
#define ONE(id, answer)                                                                                                                    \
    ATTEMPT(id)                                                                                                                            \
    {                                                                                                                                      \
        return (answer);                                                                                                                   \
    }

ONE(SECCOMP_MODE, (uint32_t)prctl(PR_GET_SECCOMP, 0, 0, 0, 0))
ONE(NO_NEW_PRIVS, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
ONE(CAPABILITIES, caps_has(-1))
ONE(USER_SPACE, namespace_of("/proc/self/ns/user"))
ONE(MOUNT_SPACE, namespace_of("/proc/self/ns/mnt"))
ONE(PID_SPACE, namespace_of("/proc/self/ns/pid"))
ONE(NET_SPACE, namespace_of("/proc/self/ns/net"))
ONE(IPC_SPACE, namespace_of("/proc/self/ns/ipc"))
ONE(UTS_SPACE, namespace_of("/proc/self/ns/uts"))
ONE(CGROUP_SPACE, namespace_of("/proc/self/ns/cgroup"))
ONE(USER_ID, getuid())
ONE(PLANTED, a->ask->planted[0] ? try_open(a->ask->planted, O_RDONLY | O_NONBLOCK) : PROBE_NOT_TRIED)
ONE(ENTER_SPACE, got(setns(-1, 0)))
ONE(MOUNT, got(mount("none", "/tmp", "tmpfs", 0, NULL)))
ONE(REMOUNT_USR, got(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL)))
ONE(UNMOUNT_PROC, got(umount2("/proc", MNT_DETACH)))
ONE(NEW_USER_SPACE, got(unshare(CLONE_NEWUSER)))
ONE(IO_URING, got(syscall(SYS_io_uring_setup, 1, NULL)))
ONE(KEYRING, got(syscall(SYS_keyctl, 0, -4, 0)))
ONE(BPF, got(syscall(SYS_bpf, 0, NULL, 0)))
ONE(PACKET_SOCKET, try_socket(AF_PACKET, SOCK_RAW, 0))
ONE(NETFILTER_SOCKET, try_socket(AF_NETLINK, SOCK_RAW, 12))
ONE(VSOCK, try_socket(AF_VSOCK, SOCK_STREAM, 0))
ONE(INIT_ENVIRONMENT, try_open("/proc/1/environ", O_RDONLY))
ONE(ROOT_READ_ONLY, is_mounted_read_only("/"))
ONE(USR_READ_ONLY, is_mounted_read_only("/usr"))
ONE(ETC_READ_ONLY, is_mounted_read_only("/etc"))
ONE(SYSCTL_READ_ONLY, is_mounted_read_only("/proc/sys"))
ONE(PROC_KEYS, try_open("/proc/keys", O_RDONLY))
ONE(PROCESS_LIMIT, limit_of(RLIMIT_NPROC))
ONE(CORE_LIMIT, limit_of(RLIMIT_CORE))
ONE(CALLS, sweep_calls(a->profile))
ONE(SOCKETS, sweep_sockets(a->profile))
ONE(INIT_MEMORY, try_open("/proc/1/mem", O_RDONLY))
ONE(INIT_SPACE, try_open("/proc/1/ns/user", O_RDONLY))
ONE(CHROOT, got(chroot("/tmp")))
ONE(SETUID_ROOT, got(setuid(0)))
ONE(SYSCTL, try_open("/proc/sys/kernel/core_pattern", O_WRONLY))
ONE(PROC_INTERRUPTS, try_open("/proc/interrupts", O_RDONLY))
ONE(WRITE_USR, try_create("/usr/bin/.pale-probe"))
ONE(WRITE_ETC, try_create("/etc/.pale-probe"))
ONE(WRITE_ROOT, try_create("/.pale-probe"))

ATTEMPT(DESCRIPTORS)
{
    uint32_t found = 0;
    for (int fd = a->first_foreign; fd < a->first_foreign + 32; fd++)
        found += fcntl(fd, F_GETFD) >= 0;
    return found;
}

/* Should it succeed, init must not stay stopped: the keeper waits for our report. */
ATTEMPT(PTRACE_INIT)
{
    uint32_t answer = got(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
    if (answer == 0 && waitpid(1, NULL, __WALL) >= 0)
        ptrace(PTRACE_DETACH, 1, NULL, NULL);
    return answer;
}

static int dial(int type, const unsigned char address[4], uint32_t port)
{
    static const struct timeval wait = {.tv_sec = 1}; /* on the host's network nobody may answer */
    own_fd s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    struct sockaddr sa = {.sa_family = AF_INET};
    if (s >= 0)
        (void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    const unsigned char to[] = {(unsigned char)(port >> 8), (unsigned char)port, address[0], address[1], address[2], address[3]};
    memcpy(sa.sa_data, to, sizeof(to));
    return s < 0 || connect(s, &sa, sizeof(sa)) < 0 ? -1 : take_fd(&s);
}

/* A documentation address: nobody is there, and in a box without network nobody is even asked. With one, no datagram leaves it. */
static const unsigned char nobody[4] = PROBE_NOBODY;

ATTEMPT(NETWORK)
{
    own_fd s = dial(SOCK_DGRAM, nobody, PROBE_NOBODY_PORT);
    return s < 0 ? got(s) : got(send(s, "", 1, MSG_NOSIGNAL) < 0 ? -1 : 0);
}

/* No rule names it: the gateway takes the connection, and ends it when it has seen that no name comes. */
ATTEMPT(UNNAMED)
{
    static const struct timeval wait = {.tv_sec = 5};
    char byte;
    own_fd s = dial(SOCK_STREAM, nobody, PROBE_NOBODY_PORT);
    if (s < 0)
        return got(s);
    if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 || send(s, "?\n\n", 3, MSG_NOSIGNAL) < 0)
        return got(-1);
    return got(recv(s, &byte, 1, 0) < 0 ? -1 : 0);
}

ATTEMPT(HOST_PORT)
{
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    if (!a->ask->port)
        return PROBE_NOT_TRIED;
    own_fd s = dial(SOCK_STREAM, loopback, a->ask->port);
    return got(s < 0 ? -1 : 0);
}

ATTEMPT(HOST_ABSTRACT)
{
    if (a->ask->port == 0)
        return PROBE_NOT_TRIED;
    own_fd s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strnlen(a->ask->abstract, sizeof(sa.sun_path) - 1);
    memcpy(sa.sun_path + 1, a->ask->abstract, n);
    return s < 0 ? got(s) : got(connect(s, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)));
}

ATTEMPT(INIT_LIMITS)
{
    struct rlimit lim;
    return got(prlimit(1, RLIMIT_NOFILE, NULL, &lim));
}

ATTEMPT(SETUID_FILE)
{
    own_fd fd = memfd_create("probe", MFD_CLOEXEC);
    return fd < 0 ? got(fd) : got(fchmod(fd, S_ISUID | 0700));
}

/* With its own limit at what it has already, the kernel must refuse one process more: that it counts in this user namespace at
 * all is what is tried here; how high the limit is stands in its own line. */
ATTEMPT(TOO_MANY)
{
    struct rlimit old, least;
    if (getrlimit(RLIMIT_NPROC, &old) < 0)
        return 0;
    least = (struct rlimit){1, old.rlim_max};
    if (setrlimit(RLIMIT_NPROC, &least) < 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    uint32_t answer = got(pid);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return setrlimit(RLIMIT_NPROC, &old) < 0 ? 0 : answer;
}

ATTEMPT(SCRATCH_SIZE)
{
    struct statvfs st;
    uint64_t kib = statvfs("/run", &st) == 0 ? (uint64_t)st.f_blocks * st.f_frsize / 1024 : 0;
    return kib < PROBE_NOT_TRIED ? (uint32_t)kib : 0;
}

ATTEMPT(TOO_LARGE)
{
    struct statvfs st;
    own_fd fd = open("/run", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || fstatvfs(fd, &st) < 0)
        return 0;
    return got(fallocate(fd, 0, 0, (off_t)(st.f_blocks * st.f_frsize + st.f_frsize)));
}

ATTEMPT(TOUCHED)
{
    char *p = mmap(NULL, PROBE_TOUCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 0;
    memset(p, 1, PROBE_TOUCH_BYTES);
    munmap(p, PROBE_TOUCH_BYTES);
    return PROBE_TOUCH_BYTES;
}

void probe_early(struct landlock_count *c, struct probe_report *r)
{
    int64_t begin = clock_us();
    landlock_count_start(c);
    r->took_us = (uint32_t)(clock_us() - begin);
}

/* Begun before the process was confined. */
ONE(LANDLOCK, (uint32_t)landlock_count_end(a->count))

#define SHORT false
#define FULL true

static const struct {
    uint32_t (*attempt)(const struct attempt *a);
    bool only_full;
} rows[PROBE_COUNT] = {
#define PROBE(id, name, when, answer, right, defence) [PROBE_##id] = {try_##id, when},
#include "init/probe.def"
#undef PROBE
};

void probe_run(const struct msg_probe *m, enum policy_seccomp profile, int first_foreign, struct landlock_count *c, struct probe_report *r)
{
    const struct attempt a = {m, profile, first_foreign, c};
    int64_t begin = clock_us();
    for (int i = 0; i < PROBE_COUNT; i++) {
        errno = 0;
        r->answer[i] = i == PROBE_LANDLOCK || (rows[i].only_full && !m->full) ? PROBE_NOT_TRIED : rows[i].attempt(&a);
    }
    /* Last: it has had the time of all others. */
    r->answer[PROBE_LANDLOCK] = rows[PROBE_LANDLOCK].attempt(&a);
    r->took_us += (uint32_t)(clock_us() - begin);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Live cases for confine/seccomp: a child under the strict filter really makes each call, and must get the table's
 * answer; a twin without the filter makes the same call and must get another, or the case has proved nothing. Where the
 * kernel itself already gives the filter's answer, the twin is a skip that says so. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "confine/seccomp.h"
#include "confine/sysnr.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HIGH (1ul << 32)
/* A result is 0, an errno, or this plus the signal that ended the child. */
#define SIGNAL 1000

/* ---- the calls: each returns what its system call did, -1 and errno on failure ---- */

static long try_aio(void)
{
    unsigned long context = 0;
    return syscall(__NR_io_setup, 1, &context);
}

static long try_io_uring(void)
{
    struct io_uring_params p = {0};
    return syscall(__NR_io_uring_setup, 4, &p);
}

static long try_userfaultfd(void)
{
    return syscall(__NR_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}

static long try_perf(void)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .exclude_kernel = 1, .exclude_hv = 1};
    return syscall(__NR_perf_event_open, &a, 0, -1, -1, 0ul);
}

static long try_bpf(void)
{
    union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return syscall(__NR_bpf, BPF_MAP_CREATE, &a, sizeof(a));
}

static long try_keyctl(void)
{
    return syscall(__NR_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -4 /* the user's */, 0);
}

static long try_add_key(void)
{
    return syscall(__NR_add_key, "user", "pale-test", "x", 1ul, -1 /* the thread's */);
}

static long try_fanotify(void)
{
    return syscall(__NR_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, 0u);
}

static long try_splice(void)
{
    int a[2], b[2];
    if (pipe(a) != 0 || pipe(b) != 0 || write(a[1], "x", 1) != 1)
        return 0;
    return syscall(__NR_splice, a[0], NULL, b[1], NULL, 1ul, 0u);
}

static long try_vmsplice(void)
{
    int a[2];
    struct iovec v = {.iov_base = a, .iov_len = 1};
    return pipe(a) == 0 ? syscall(__NR_vmsplice, a[1], &v, 1ul, 0u) : 0;
}

static long try_tee(void)
{
    return syscall(__NR_tee, -1, -1, 1ul, 0u);
}

static long try_unshare(void)
{
    return syscall(__NR_unshare, CLONE_FILES);
}

static long try_setns(void)
{
    return syscall(__NR_setns, -1, 0);
}

static long clone_with(unsigned long flags)
{
#ifdef __x86_64__
    long pid = syscall(__NR_clone, flags | SIGCHLD, NULL, NULL, NULL, 0ul);
#else
    long pid = syscall(__NR_clone, flags | SIGCHLD, NULL, NULL, 0ul, NULL);
#endif
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long try_clone_newuser(void)
{
    return clone_with(CLONE_NEWUSER);
}

static long try_clone_newuser_mixed(void)
{
    return clone_with(CLONE_NEWUSER | CLONE_NEWNET | HIGH);
}

static long try_clone_plain(void)
{
    return clone_with(0);
}

static long try_clone3(void)
{
    return syscall(__NR_clone3, NULL, 0ul);
}

static long try_mount(void)
{
    return syscall(__NR_mount, "none", "/nonexistent/pale", "tmpfs", 0ul, NULL);
}

static long try_open_tree(void)
{
    return syscall(__NR_open_tree, -1, "pale", 0u);
}

static long try_fsopen(void)
{
    return syscall(__NR_fsopen, "tmpfs", 1u);
}

static long try_listmount(void)
{
    return syscall(__NR_listmount, NULL, NULL, 0ul, 0u);
}

static long try_chroot(void)
{
    return chroot("/nonexistent/pale");
}

static long try_personality(void)
{
    return personality(READ_IMPLIES_EXEC);
}

static long try_personality_aslr(void)
{
    return personality(ADDR_NO_RANDOMIZE);
}

static long try_personality_ask(void)
{
    return personality(0xffffffff);
}

static long try_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long try_process_vm(void)
{
    char from = 'x', to;
    struct iovec l = {&to, 1}, r = {&from, 1};
    return syscall(__NR_process_vm_readv, getpid(), &l, 1ul, &r, 1ul, 0ul);
}

static long try_kcmp(void)
{
    return syscall(__NR_kcmp, getpid(), getpid(), 1 /* KCMP_VM */, 0ul, 0ul);
}

static long try_pidfd_getfd(void)
{
    int fd = (int)syscall(__NR_pidfd_open, getpid(), 0u);
    return fd < 0 ? 0 : syscall(__NR_pidfd_getfd, fd, 0, 0u);
}

static long try_name_to_handle(void)
{
    struct {
        unsigned bytes;
        int type;
        unsigned char room[128];
    } h = {.bytes = sizeof(h.room)};
    int mount;
    return syscall(__NR_name_to_handle_at, AT_FDCWD, "/", &h, &mount, 0);
}

static long try_futex_requeue_pi(void)
{
    uint32_t a = 0, b = 0;
    return syscall(__NR_futex, &a, FUTEX_CMP_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 1, 0ul, &b, 0);
}

static long ask_limit(pid_t pid)
{
    struct rlimit lim;
    return syscall(__NR_prlimit64, pid, RLIMIT_NOFILE, NULL, &lim);
}

static long try_limit_of_another(void)
{
    return ask_limit(getpid());
}

static long try_own_limit(void)
{
    return ask_limit(0);
}

static long try_futex_wake(void)
{
    uint32_t a = 0;
    return syscall(__NR_futex, &a, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static long make_node(mode_t mode)
{
    char dir[] = "/tmp/pale-seccomp-XXXXXX", path[64];
    if (!mkdtemp(dir))
        return 0;
    snprintf(path, sizeof(path), "%s/node", dir);
    long r = mknod(path, mode, 0);
    int err = errno;
    unlink(path);
    rmdir(dir);
    errno = err;
    return r;
}

static long try_mknod_whiteout(void)
{
    return make_node(S_IFCHR | 0600);
}

static long try_mknod_fifo(void)
{
    return make_node(S_IFIFO | 0600);
}

static long try_mknod_setuid(void)
{
    return make_node(S_IFREG | 04755);
}

/* In memory, so that nothing is left. */
static long mode_of_memory(mode_t mode)
{
    int fd = memfd_create("mode", 0);
    return fd < 0 ? 0 : fchmod(fd, mode);
}

static long try_fchmod_setuid(void)
{
    return mode_of_memory(04755);
}

static long try_fchmod_setgid(void)
{
    return mode_of_memory(02755);
}

static long try_fchmod_plain(void)
{
    return mode_of_memory(01755);
}

static long try_tmpfile_setuid(void)
{
    return open("/tmp", O_TMPFILE | O_RDWR, 04700);
}

static long try_tmpfile_plain(void)
{
    return open("/tmp", O_TMPFILE | O_RDWR, 0700);
}

/* Only O_CREAT and O_TMPFILE make the kernel look at the mode. */
static long try_open_with_a_mode_nobody_reads(void)
{
    return syscall(__NR_openat, AT_FDCWD, "/dev/null", O_RDONLY, 06777);
}

static long try_openat2(void)
{
    uint64_t how[3] = {O_RDONLY};
    return syscall(__NR_openat2, AT_FDCWD, "/dev/null", how, sizeof(how));
}

/* A terminal of the child's own, so that nothing is typed into ours. */
static int own_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 || setsid() < 0)
        return -1;
    return open(ptsname(master), O_RDWR);
}

static long try_tiocsti(void)
{
    int fd = own_terminal();
    return fd < 0 ? 0 : syscall(__NR_ioctl, fd, (unsigned long)TIOCSTI, "x");
}

static long try_tiocsti_high(void)
{
    int fd = own_terminal();
    return fd < 0 ? 0 : syscall(__NR_ioctl, fd, TIOCSTI | HIGH, "x");
}

static long try_tiocsetd(void)
{
    int fd = own_terminal(), n = 0;
    return fd < 0 ? 0 : syscall(__NR_ioctl, fd, (unsigned long)TIOCSETD, &n);
}

static long try_terminal_size(void)
{
    int fd = own_terminal();
    struct winsize w;
    return fd < 0 ? 0 : ioctl(fd, TIOCGWINSZ, &w);
}

static long try_set_mm(void)
{
    return prctl(PR_SET_MM, 999, 0, 0, 0);
}

static long try_ulp(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? 0 : setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3);
}

static long try_attach_filter(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
    struct sock_fprog prog = {.len = 1, .filter = &all};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    return fd < 0 ? 0 : setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static long try_fastopen(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? 0 : sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof(a));
}

static long try_out_of_band(void)
{
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ? 0 : send(pair[0], "x", 1, MSG_OOB | MSG_NOSIGNAL);
}

static long try_notification_pipe(void)
{
    int pipe[2];
    return syscall(__NR_pipe2, pipe, O_EXCL); /* O_NOTIFICATION_PIPE */
}

static void *thread_body(void *arg)
{
    return arg;
}

static long try_thread(void)
{
    pthread_t t;
    int r = pthread_create(&t, NULL, thread_body, NULL);
    if (r == 0)
        r = pthread_join(t, NULL);
    errno = r;
    return r == 0 ? 0 : -1;
}

static long try_unknown(void)
{
    return syscall(1000);
}

static long try_no_call(void)
{
    return syscall(-1);
}

#ifdef __x86_64__
static long try_i386(void)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20l) : "memory", "r8", "r9", "r10", "r11");
    errno = r < 0 ? (int)-r : 0;
    return r < 0 ? -1 : r;
}

static long try_x32(void)
{
    return syscall(0x40000000 + __NR_getpid);
}
#endif

/* ---- the table ---- */

/* How sure the twin is: ALWAYS that the bare kernel answers otherwise; MAYBE depending on its settings and on who runs
 * the test; SAME for what is allowed, where both must agree. */
enum twin { ALWAYS, MAYBE, SAME };

struct attempt {
    const char *name;
    long (*call)(void);
    int want;
    enum twin twin;
    struct {
        int family, type, protocol;
    } socket; /* where call is NULL */
    bool pair;
};

#define SOCKET(f, t, p, want, twin)                                                                                                        \
    {                                                                                                                                      \
        "socket " #f " " #t " " #p, NULL, want, twin, {f, t, p}, false                                                                     \
    }
static struct attempt attempts[] = {
    {"io_setup", try_aio, ENOSYS, MAYBE},
    {"io_uring_setup", try_io_uring, ENOSYS, MAYBE},
    {"userfaultfd, user mode only", try_userfaultfd, EPERM, MAYBE},
    {"perf_event_open, software", try_perf, EPERM, MAYBE},
    {"bpf, make a map", try_bpf, EPERM, MAYBE},
    {"keyctl, the user's keyring", try_keyctl, EPERM, MAYBE},
    {"add_key", try_add_key, EPERM, MAYBE},
    {"fanotify_init by file id", try_fanotify, EPERM, MAYBE},
    {"splice", try_splice, ENOSYS, ALWAYS},
    {"vmsplice", try_vmsplice, ENOSYS, ALWAYS},
    {"tee", try_tee, ENOSYS, ALWAYS},
    {"unshare", try_unshare, EPERM, ALWAYS},
    {"setns", try_setns, EPERM, ALWAYS},
    {"clone with a user namespace", try_clone_newuser, EPERM, MAYBE},
    {"clone with two namespaces and a high bit", try_clone_newuser_mixed, EPERM, MAYBE},
    {"clone3", try_clone3, ENOSYS, ALWAYS},
    {"mount", try_mount, EPERM, MAYBE},
    {"open_tree", try_open_tree, ENOSYS, ALWAYS},
    {"fsopen", try_fsopen, ENOSYS, MAYBE},
    {"listmount", try_listmount, ENOSYS, MAYBE},
    {"chroot", try_chroot, EPERM, MAYBE},
    {"personality READ_IMPLIES_EXEC", try_personality, EPERM, ALWAYS},
    {"personality ADDR_NO_RANDOMIZE", try_personality_aslr, EPERM, ALWAYS},
    {"ptrace", try_ptrace, EPERM, MAYBE},
    {"process_vm_readv of itself", try_process_vm, EPERM, MAYBE},
    {"kcmp of itself", try_kcmp, EPERM, MAYBE},
    {"pidfd_getfd of itself", try_pidfd_getfd, EPERM, MAYBE},
    {"name_to_handle_at", try_name_to_handle, EPERM, MAYBE},
    {"futex requeue to PI", try_futex_requeue_pi, ENOSYS, MAYBE},
    {"mknod of a whiteout", try_mknod_whiteout, EPERM, MAYBE},
    {"mknod of a setuid file", try_mknod_setuid, EPERM, ALWAYS},
    {"fchmod setuid", try_fchmod_setuid, EPERM, ALWAYS},
    {"fchmod setgid", try_fchmod_setgid, EPERM, ALWAYS},
    {"open of a new setuid file", try_tmpfile_setuid, EPERM, MAYBE},
    {"openat2", try_openat2, ENOSYS, ALWAYS},
    {"prlimit64 by number", try_limit_of_another, EPERM, ALWAYS},
    {"ioctl TIOCSTI", try_tiocsti, EPERM, MAYBE},
    {"ioctl TIOCSTI with a high bit", try_tiocsti_high, EPERM, MAYBE},
    {"ioctl TIOCSETD", try_tiocsetd, EPERM, MAYBE},
    {"prctl PR_SET_MM", try_set_mm, EPERM, MAYBE},
    {"setsockopt TCP_ULP", try_ulp, ENOPROTOOPT, MAYBE},
    {"setsockopt SO_ATTACH_FILTER", try_attach_filter, ENOPROTOOPT, ALWAYS},
    {"sendto MSG_FASTOPEN", try_fastopen, EOPNOTSUPP, MAYBE},
    {"send MSG_OOB on a local socket", try_out_of_band, EOPNOTSUPP, MAYBE},
    {"pipe2 O_NOTIFICATION_PIPE", try_notification_pipe, ENOPKG, MAYBE},
#ifdef __x86_64__
    {"int 0x80 getpid", try_i386, SIGNAL + SIGSYS, MAYBE},
    {"x32 getpid", try_x32, SIGNAL + SIGSYS, ALWAYS},
#endif
    SOCKET(AF_INET, SOCK_RAW, IPPROTO_ICMP, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET, 10 /* SOCK_PACKET */, 0, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET, SOCK_STREAM, 262 /* MPTCP */, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET, SOCK_STREAM, 132 /* SCTP */, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET, SOCK_STREAM, 256 /* SMC */, EAFNOSUPPORT, ALWAYS),
    SOCKET(AF_INET6, SOCK_DGRAM, 136 /* UDP-Lite */, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_PACKET, SOCK_RAW, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_KEY, SOCK_RAW, 2, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_TIPC, SOCK_STREAM, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_BLUETOOTH, SOCK_RAW, 1, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_ALG, SOCK_SEQPACKET, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_RXRPC, SOCK_DGRAM, AF_INET, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_VSOCK, SOCK_STREAM, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_KCM, SOCK_SEQPACKET, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_QIPCRTR, SOCK_DGRAM, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_XDP, SOCK_RAW, 0, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_XFRM, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC, EAFNOSUPPORT, MAYBE),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, EAFNOSUPPORT, MAYBE),
    {"socketpair AF_INET", NULL, EAFNOSUPPORT, ALWAYS, {AF_INET, SOCK_STREAM, 0}, true},
    SOCKET(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, SAME),
    SOCKET(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, 0, SAME),
    SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0, SAME),
    SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0, SAME),
    {"socketpair AF_UNIX", NULL, 0, SAME, {AF_UNIX, SOCK_SEQPACKET, 0}, true},
    {"clone without namespaces", try_clone_plain, 0, SAME},
    {"a thread", try_thread, 0, SAME},
    {"futex wake", try_futex_wake, 0, SAME},
    {"mknod of a fifo", try_mknod_fifo, 0, SAME},
    {"fchmod", try_fchmod_plain, 0, SAME},
    {"prlimit64 of oneself", try_own_limit, 0, SAME},
    {"open of a new file", try_tmpfile_plain, 0, SAME},
    {"open with a mode nobody reads", try_open_with_a_mode_nobody_reads, 0, SAME},
    {"the size of a terminal", try_terminal_size, 0, SAME},
    {"personality, the question", try_personality_ask, 0, SAME},
    {"a number that nobody knows", try_unknown, ENOSYS, SAME},
    {"the number -1", try_no_call, ENOSYS, SAME},
};

/* ---- running them ---- */

static long attempt_call(const struct attempt *a)
{
    int pair[2];
    if (a->call)
        return a->call();
    if (a->pair)
        return socketpair(a->socket.family, a->socket.type, a->socket.protocol, pair);
    return socket(a->socket.family, a->socket.type, a->socket.protocol);
}

static int lock_up(const struct seccomp_program *p)
{
    struct pale_err e = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return seccomp_load(p, &e);
}

static int result_of(pid_t pid)
{
    int status = 0;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

#define NOT_LOCKED 255

static int run(const struct attempt *a, const struct seccomp_program *filter)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (filter && lock_up(filter) != 0)
            _exit(NOT_LOCKED);
        errno = 0;
        _exit(attempt_call(a) >= 0 ? 0 : errno);
    }
    return result_of(pid);
}

static void strict_gives_the_answer_of_the_table(void **state)
{
    const struct attempt *a = *state;
    int got = run(a, seccomp_for(SECCOMP_STRICT));
    if (got != a->want)
        fail_msg("%s: got %d (%s), want %d", a->name, got, got < SIGNAL ? strerror(got) : "signal", a->want);
}

static void without_a_filter_the_answer_is_another(void **state)
{
    const struct attempt *a = *state;
    int got = run(a, NULL);
    if (a->twin == SAME ? got == a->want : got != a->want)
        return;
    if (a->twin == MAYBE) {
        print_message("%s: the kernel here says so itself (%s)\n", a->name, got < SIGNAL ? strerror(got) : "signal");
        skip();
    }
    fail_msg("%s: without a filter got %d as well, so this case proves nothing", a->name, got);
}

/* ---- profiles and our own lists ---- */

static void debug_lets_debuggers_work(void **state)
{
    (void)state;
    static const struct attempt open[] = {{"ptrace", try_ptrace}, {"process_vm", try_process_vm}, {"personality", try_personality_aslr}};
    for (size_t i = 0; i < COUNT(open); i++)
        assert_int_equal(run(&open[i], seccomp_for(SECCOMP_DEBUG)), run(&open[i], NULL));
    assert_int_equal(run(&(struct attempt){"personality", try_personality}, seccomp_for(SECCOMP_DEBUG)), EPERM);
    assert_int_equal(run(&(struct attempt){"perf", try_perf}, seccomp_for(SECCOMP_DEBUG)), EPERM);
}

static void image_build_lets_chroot_through(void **state)
{
    (void)state;
    struct attempt a = {"chroot", try_chroot};
    assert_int_equal(run(&a, seccomp_for(SECCOMP_IMAGE_BUILD)), run(&a, NULL));
    assert_int_equal(run(&(struct attempt){"mount", try_mount}, seccomp_for(SECCOMP_IMAGE_BUILD)), EPERM);
}

/* A reader's work: read, allocate, write, end. */
static long read_and_answer(void)
{
    int p[2] = {0, 1};
    char c;
    char *m = malloc(1 << 20);
    if (!m)
        return -1;
    memset(m, 1, 1 << 20);
    m = realloc(m, 4 << 20);
    if (!m)
        return -1;
    free(m);
    return read(p[0], &c, 0) == 0 && write(p[1], "", 0) == 0 ? 0 : -1;
}

static long open_a_file(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static long map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static long run_a_program(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}

static long make_inet_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static void reader_may_read_and_nothing_else(void **state)
{
    (void)state;
    const struct seccomp_program *p = seccomp_for_program(OWN_READER);
    static const struct attempt fatal[] = {{"open", open_a_file}, {"map", map_code}, {"exec", run_a_program}, {"net", make_inet_socket}};
    assert_int_equal(run(&(struct attempt){"work", read_and_answer}, p), 0);
    for (size_t i = 0; i < COUNT(fatal); i++)
        assert_int_equal(run(&fatal[i], p), SIGNAL + SIGSYS);
}

static void keeper_may_not_exec_or_reach_the_network(void **state)
{
    (void)state;
    const struct seccomp_program *p = seccomp_for_program(OWN_KEEPER);
    assert_int_equal(run(&(struct attempt){"work", read_and_answer}, p), 0);
    assert_int_equal(run(&(struct attempt){"open", open_a_file}, p), 0);
    static const struct attempt fatal[] = {
        {"map", map_code}, {"exec", run_a_program}, {"net", make_inet_socket}, {"fork", try_clone_plain}};
    for (size_t i = 0; i < COUNT(fatal); i++)
        assert_int_equal(run(&fatal[i], p), SIGNAL + SIGSYS);
}

static void dial_may_use_what_it_has_and_nothing_else(void **state)
{
    (void)state;
    const struct seccomp_program *p = seccomp_for_program(OWN_DIAL);
    assert_int_equal(run(&(struct attempt){"work", read_and_answer}, p), 0);
    static const struct attempt fatal[] = {
        {"map", map_code}, {"exec", run_a_program}, {"net", make_inet_socket}, {"fork", try_clone_plain}};
    for (size_t i = 0; i < COUNT(fatal); i++)
        assert_int_equal(run(&fatal[i], p), SIGNAL + SIGSYS);
}

/* The kernel's own answer to a mount of nothing is not the filter's. */
static void warden_may_look_and_move_and_its_mantle_may_mount(void **state)
{
    (void)state;
    const struct seccomp_program *warden = seccomp_for_program(OWN_WARDEN), *mantle = seccomp_for_program(OWN_MANTLE);
    static const struct attempt fatal[] = {
        {"map", map_code}, {"exec", run_a_program}, {"net", make_inet_socket}, {"fork", try_clone_plain}, {"setns", try_setns}};
    assert_int_equal(run(&(struct attempt){"open", open_a_file}, warden), 0);
    assert_int_equal(run(&(struct attempt){"mount", try_mount}, warden), SIGNAL + SIGSYS);
    assert_int_equal(run(&(struct attempt){"open", open_a_file}, mantle), SIGNAL + SIGSYS);
    assert_int_not_equal(run(&(struct attempt){"mount", try_mount}, mantle), SIGNAL + SIGSYS);
    for (size_t i = 0; i < COUNT(fatal); i++) {
        assert_int_equal(run(&fatal[i], warden), SIGNAL + SIGSYS);
        assert_int_equal(run(&fatal[i], mantle), SIGNAL + SIGSYS);
    }
}

static void daemon_may_not_exec_or_reach_the_network(void **state)
{
    (void)state;
    const struct seccomp_program *p = seccomp_for_program(OWN_DAEMON);
    assert_int_equal(run(&(struct attempt){"work", read_and_answer}, p), 0);
    static const struct attempt fatal[] = {
        {"map", map_code}, {"exec", run_a_program}, {"net", make_inet_socket}, {"fork", try_clone_plain}};
    for (size_t i = 0; i < COUNT(fatal); i++)
        assert_int_equal(run(&fatal[i], p), SIGNAL + SIGSYS);
}

/* setns of no descriptor: the kernel's own answer is that it is none. */
static void init_may_setns_but_not_mount(void **state)
{
    (void)state;
    const struct seccomp_program *p = seccomp_for_program(OWN_INIT);
    assert_int_equal(run(&(struct attempt){"setns", try_setns}, p), EBADF);
    assert_int_equal(run(&(struct attempt){"mount", try_mount}, p), EPERM);
    assert_int_equal(run(&(struct attempt){"clone", try_clone_newuser}, p), EPERM);
}

/* A command's filter above init's: each refused call still fails with the command's answer and kills nobody. */
static void stacked_filters_answer_as_the_younger_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(attempts); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (lock_up(seccomp_for_program(OWN_INIT)) != 0)
                _exit(NOT_LOCKED);
            _exit(run(&attempts[i], seccomp_for(SECCOMP_STRICT)) == attempts[i].want ? 0 : 1);
        }
        if (result_of(pid) != 0)
            fail_msg("%s: another answer above init's list", attempts[i].name);
    }
}

static void load_needs_no_new_privileges(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct pale_err e = {0};
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(NOT_LOCKED);
        int r = seccomp_load(seccomp_for(SECCOMP_STRICT), &e);
        _exit(r == -PALE_DENIED && e.os == EACCES && e.text[0] ? 0 : 1);
    }
    assert_int_equal(result_of(pid), 0);
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(debug_lets_debuggers_work),
        cmocka_unit_test(image_build_lets_chroot_through),
        cmocka_unit_test(reader_may_read_and_nothing_else),
        cmocka_unit_test(keeper_may_not_exec_or_reach_the_network),
        cmocka_unit_test(daemon_may_not_exec_or_reach_the_network),
        cmocka_unit_test(dial_may_use_what_it_has_and_nothing_else),
        cmocka_unit_test(warden_may_look_and_move_and_its_mantle_may_mount),
        cmocka_unit_test(init_may_setns_but_not_mount),
        cmocka_unit_test(stacked_filters_answer_as_the_younger_one),
        cmocka_unit_test(load_needs_no_new_privileges),
    };
    static struct CMUnitTest tests[2 * COUNT(attempts) + COUNT(plain)];
    static char names[2 * COUNT(attempts)][128];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(attempts); i++) {
        snprintf(names[n], sizeof(names[n]), "strict_gives_the_answer_of_the_table: %s", attempts[i].name);
        tests[n] = (struct CMUnitTest){names[n], strict_gives_the_answer_of_the_table, NULL, NULL, &attempts[i]};
        n++;
        snprintf(names[n], sizeof(names[n]), "without_a_filter_the_answer_is_another: %s", attempts[i].name);
        tests[n] = (struct CMUnitTest){names[n], without_a_filter_the_answer_is_another, NULL, NULL, &attempts[i]};
        n++;
    }
    memcpy(&tests[n], plain, sizeof(plain));
    return _cmocka_run_group_tests("seccomp_live", tests, COUNT(tests), NULL, NULL);
}

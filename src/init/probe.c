/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the probe: a table of attempts, each answering with one word. */
#include "init/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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
#include <unistd.h>

#include "base/own.h"
#include "confine/caps.h"
#include "confine/kernel.h"

/* What a failed attempt is called; "open" means that nothing stopped it. */
static const char *answer(long result)
{
    if (result >= 0)
        return "open";
    switch (errno) {
    case EPERM:
        return "EPERM";
    case EACCES:
        return "EACCES";
    case ENOSYS:
        return "ENOSYS";
    case EROFS:
        return "EROFS";
    case ENOENT:
        return "ENOENT";
    case EAFNOSUPPORT:
        return "EAFNOSUPPORT";
    case ENETUNREACH:
        return "ENETUNREACH";
    case ESRCH:
        return "ESRCH";
    default:
        return "refused";
    }
}

static const char *try_socket(int family, int type, int proto)
{
    own_fd s = socket(family, type | SOCK_CLOEXEC, proto);
    return answer(s);
}

static const char *try_connect_out(void)
{
    /* A documentation address: nobody is there, and in a box without network nobody is even asked. */
    own_fd s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr sa = {.sa_family = AF_INET};
    static const unsigned char to[14] = {0, 9, 192, 0, 2, 1};
    memcpy(sa.sa_data, to, sizeof(to));
    return s < 0 ? answer(s) : answer(connect(s, &sa, sizeof(sa)));
}

static const char *try_write(const char *path)
{
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    return answer(fd);
}

static const char *try_create(const char *path)
{
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(path);
    return answer(fd);
}

static const char *try_read(const char *path)
{
    char c;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? answer(fd) : answer(read(fd, &c, 1) > 0 ? 0 : (errno = errno ? errno : EACCES, -1));
}

static const char *probe_planted(const char *path)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    return answer(fd);
}

static const char *yes_no(bool yes);

/* Whether the mount itself is read-only: an attempt to write meets the file's permissions first. */
static const char *is_mounted_read_only(const char *path)
{
    struct statvfs st;
    return yes_no(statvfs(path, &st) == 0 && (st.f_flag & ST_RDONLY));
}

static const char *yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

static const char *probe_mount(const char *planted)
{
    (void)planted;
    return answer(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static const char *probe_remount_usr(const char *planted)
{
    (void)planted;
    return answer(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static const char *probe_unmount_proc(const char *planted)
{
    (void)planted;
    return answer(umount2("/proc", MNT_DETACH));
}

static const char *probe_new_user_namespace(const char *planted)
{
    (void)planted;
    return answer(unshare(CLONE_NEWUSER));
}

static const char *probe_io_uring(const char *planted)
{
    (void)planted;
    return answer(syscall(SYS_io_uring_setup, 1, NULL));
}

static const char *probe_keyring(const char *planted)
{
    (void)planted;
    return answer(syscall(SYS_keyctl, 0, -4, 0));
}

static const char *probe_bpf(const char *planted)
{
    (void)planted;
    return answer(syscall(SYS_bpf, 0, NULL, 0));
}

static const char *probe_packet_socket(const char *planted)
{
    (void)planted;
    return try_socket(AF_PACKET, SOCK_RAW, 0);
}

static const char *probe_nftables_socket(const char *planted)
{
    (void)planted;
    return try_socket(AF_NETLINK, SOCK_RAW, 12);
}

static const char *probe_vsock(const char *planted)
{
    (void)planted;
    return try_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static const char *probe_network(const char *planted)
{
    (void)planted;
    return try_connect_out();
}

static const char *probe_ptrace_init(const char *planted)
{
    (void)planted;
    return answer(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
}

static const char *probe_init_environment(const char *planted)
{
    (void)planted;
    return try_read("/proc/1/environ");
}

static const char *probe_proc_keys(const char *planted)
{
    (void)planted;
    return try_read("/proc/keys");
}

static const char *probe_sysctl(const char *planted)
{
    (void)planted;
    return try_write("/proc/sys/kernel/core_pattern");
}

static const char *probe_write_usr(const char *planted)
{
    (void)planted;
    return try_create("/usr/bin/.pale-probe");
}

static const char *probe_write_etc(const char *planted)
{
    (void)planted;
    return try_create("/etc/.pale-probe");
}

static const char *probe_write_root(const char *planted)
{
    (void)planted;
    return try_create("/.pale-probe");
}

static const char *probe_chroot(const char *planted)
{
    (void)planted;
    return answer(chroot("/tmp"));
}

static const char *probe_setuid_file(const char *planted)
{
    (void)planted;
    own_fd fd = memfd_create("probe", MFD_CLOEXEC);
    return fd < 0 ? answer(fd) : answer(fchmod(fd, S_ISUID | 0700));
}

static const char *probe_limits_of_init(const char *planted)
{
    (void)planted;
    struct rlimit lim;
    return answer(prlimit(1, RLIMIT_NOFILE, NULL, &lim));
}

static const char *probe_setuid_root(const char *planted)
{
    (void)planted;
    return answer(setuid(0));
}

static const char *probe_has_capabilities(const char *planted)
{
    (void)planted;
    return yes_no(caps_has(-1));
}

static const char *probe_no_new_privileges(const char *planted)
{
    (void)planted;
    return yes_no(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static const char *probe_has_seccomp(const char *planted)
{
    (void)planted;
    return yes_no(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

/* A builtin has the standard three and, at 3, the pipe it would report a failure on, which a program never sees. */
static const char *probe_has_host_descriptors(const char *planted)
{
    (void)planted;
    for (int fd = 4; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return yes_no(true);
    return yes_no(false);
}

static const char *probe_usr_read_only(const char *planted)
{
    (void)planted;
    return is_mounted_read_only("/usr");
}

static const char *probe_etc_read_only(const char *planted)
{
    (void)planted;
    return is_mounted_read_only("/etc");
}

static const char *probe_root_read_only(const char *planted)
{
    (void)planted;
    return is_mounted_read_only("/");
}

static const char *probe_sysctl_read_only(const char *planted)
{
    (void)planted;
    return is_mounted_read_only("/proc/sys");
}

static const char *probe_proc_interrupts(const char *planted)
{
    (void)planted;
    return try_read("/proc/interrupts");
}

static const struct {
    const char *name;
    const char *(*attempt)(const char *planted);
} rows[] = {
    {"planted-secret", probe_planted},
    {"mount", probe_mount},
    {"remount-usr", probe_remount_usr},
    {"unmount-proc", probe_unmount_proc},
    {"new-user-namespace", probe_new_user_namespace},
    {"io_uring", probe_io_uring},
    {"keyring", probe_keyring},
    {"bpf", probe_bpf},
    {"packet-socket", probe_packet_socket},
    {"nftables-socket", probe_nftables_socket},
    {"vsock", probe_vsock},
    {"network", probe_network},
    {"ptrace-init", probe_ptrace_init},
    {"init-environment", probe_init_environment},
    {"proc-keys", probe_proc_keys},
    {"sysctl", probe_sysctl},
    {"write-usr", probe_write_usr},
    {"write-etc", probe_write_etc},
    {"write-root", probe_write_root},
    {"usr-read-only", probe_usr_read_only},
    {"etc-read-only", probe_etc_read_only},
    {"root-read-only", probe_root_read_only},
    {"sysctl-read-only", probe_sysctl_read_only},
    {"proc-interrupts", probe_proc_interrupts},
    {"chroot", probe_chroot},
    {"setuid-root", probe_setuid_root},
    {"setuid-file", probe_setuid_file},
    {"limits-of-init", probe_limits_of_init},
    {"has-capabilities", probe_has_capabilities},
    {"no-new-privileges", probe_no_new_privileges},
    {"has-seccomp", probe_has_seccomp},
    {"has-host-descriptors", probe_has_host_descriptors},
};

int probe_run(const struct msg_exec *m)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        printf("%s\t%s\n", rows[i].name, rows[i].attempt(m->argv[1]));
    }
    return fflush(stdout) ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Doors: does a system call reach the kernel's code at all? Arguments are chosen so that the kernel, where it is reached, answers
 * with success or with an error that the filter never gives, before it looks at anybody's rights. */
#include "attack.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char zero[4096] __attribute__((aligned(16)));
#define Z ((long)(unsigned long)zero)
#define BAD 1L /* no address */

static const struct door {
    const char *name;
    long nr, arg[6];
} doors[] = {
    {"io-uring-setup", __NR_io_uring_setup, {1, Z}},
    {"io-uring-enter", __NR_io_uring_enter, {-1, 0, 0, 0, 0, 0}},
    {"io-uring-register", __NR_io_uring_register, {-1, 0, 0, 0}},
    {"fsopen", __NR_fsopen, {BAD, ~0L}},
    {"fsconfig", __NR_fsconfig, {-1, 99, 0, 0, 0}},
    {"fsmount", __NR_fsmount, {-1, ~0L, 0}},
    {"fspick", __NR_fspick, {-1, BAD, ~0L}},
    {"open-tree", __NR_open_tree, {-1, BAD, ~0L}},
    {"open-tree-attr", __NR_open_tree_attr, {-1, BAD, ~0L, 0, 0}},
    {"move-mount", __NR_move_mount, {-1, BAD, -1, BAD, ~0L}},
    {"mount-setattr", __NR_mount_setattr, {-1, BAD, ~0L, 0, 0}},
    {"statmount", __NR_statmount, {BAD, 0, 0, ~0L}},
    {"listmount", __NR_listmount, {BAD, 0, 0, ~0L}},
    {"mount", __NR_mount, {BAD, BAD, BAD, 0, BAD}},
    {"umount2", __NR_umount2, {BAD, 0xff00}},
    {"chroot", __NR_chroot, {BAD}},
    {"unshare-door", __NR_unshare, {1}},
    {"setns", __NR_setns, {-1, 0}},
    {"clone3", __NR_clone3, {0, 0}},
    {"bpf-map-create", __NR_bpf, {0, Z, 1 << 20}},
    {"bpf-prog-load", __NR_bpf, {5, Z, 1 << 20}},
    {"splice", __NR_splice, {-1, 0, -1, 0, 1, 0}},
    {"tee", __NR_tee, {-1, -1, 1, 0}},
    {"vmsplice", __NR_vmsplice, {-1, Z, 1, 0}},
    {"userfaultfd", __NR_userfaultfd, {1}},
    {"perf-event-open", __NR_perf_event_open, {Z, 0, -1, -1, 1L << 20}},
    {"keyctl", __NR_keyctl, {9999, 0, 0, 0, 0}},
    {"add-key", __NR_add_key, {BAD, BAD, 0, 0, 0}},
    {"request-key", __NR_request_key, {BAD, BAD, 0, 0}},
    {"ptrace-door", __NR_ptrace, {999, 0x7ffffff0, 0, 0}},
    {"process-vm-readv", __NR_process_vm_readv, {1, 0, 0, 0, 0, 1}},
    {"process-vm-writev", __NR_process_vm_writev, {1, 0, 0, 0, 0, 1}},
    {"process-madvise", __NR_process_madvise, {-1, 0, 0, 0, 1}},
    {"pidfd-getfd", __NR_pidfd_getfd, {-1, 0, 1}},
    {"kcmp", __NR_kcmp, {0x7ffffff0, 0x7ffffff0, 99, 0, 0}},
    {"name-to-handle-at", __NR_name_to_handle_at, {-1, BAD, 0, 0, ~0L}},
    {"open-by-handle-at", __NR_open_by_handle_at, {-1, BAD, 0}},
    {"fanotify-init", __NR_fanotify_init, {0x200, 0}},
    {"fanotify-mark", __NR_fanotify_mark, {-1, ~0L, 0, 0, 0}},
#ifdef __NR_modify_ldt
    {"modify-ldt", __NR_modify_ldt, {0, Z, 16}},
#endif
    {"memfd-secret", __NR_memfd_secret, {0x40}},
    {"remap-file-pages", __NR_remap_file_pages, {Z, 4096, 1, 0, 0}},
    {"mbind", __NR_mbind, {Z, 4096, 99, 0, 0, 0}},
    {"set-mempolicy", __NR_set_mempolicy, {99, 0, 0}},
    {"set-mempolicy-home-node", __NR_set_mempolicy_home_node, {Z, 4096, 0, 1}},
    {"migrate-pages", __NR_migrate_pages, {0x7ffffff0, 0, 0, 0}},
    {"move-pages", __NR_move_pages, {0, 0, 0, 0, 0, 1 << 20}},
    {"io-setup", __NR_io_setup, {0, BAD}},
    {"io-destroy", __NR_io_destroy, {BAD}},
    {"io-submit", __NR_io_submit, {BAD, -1, 0}},
    {"io-getevents", __NR_io_getevents, {BAD, 1, 1, 0, 0}},
    {"io-pgetevents", __NR_io_pgetevents, {BAD, 1, 1, 0, 0, BAD}},
    {"io-cancel", __NR_io_cancel, {BAD, BAD, 0}},
    {"openat2", __NR_openat2, {-1, BAD, BAD, 1 << 20}},
    {"adjtimex", __NR_adjtimex, {Z}},
    {"clock-adjtime", __NR_clock_adjtime, {0, Z}},
    {"clock-settime", __NR_clock_settime, {9999, Z}},
    {"settimeofday", __NR_settimeofday, {BAD, 0}},
    {"quotactl", __NR_quotactl, {0xff, 0, 0, 0}},
    {"quotactl-fd", __NR_quotactl_fd, {-1, 0, 0, 0}},
#ifdef __NR_ioperm
    {"ioperm", __NR_ioperm, {1L << 20, 1, 1}},
    {"iopl", __NR_iopl, {9}},
    {"sysfs", __NR_sysfs, {99, 0, 0}},
    {"ustat", __NR_ustat, {0xffff, BAD}},
#endif
    {"lsm-list-modules", __NR_lsm_list_modules, {BAD, BAD, 1}},
    {"lsm-get-self-attr", __NR_lsm_get_self_attr, {0, BAD, BAD, 99}},
    {"lsm-set-self-attr", __NR_lsm_set_self_attr, {0, BAD, 1, 99}},
    {"file-getattr", __NR_file_getattr, {-1, BAD, BAD, 1, ~0L}},
    {"file-setattr", __NR_file_setattr, {-1, BAD, BAD, 1, ~0L}},
    {"listns", __NR_listns, {BAD, BAD, 1, 99}},
    {"futex-wait-requeue-pi", __NR_futex, {BAD, FUTEX_WAIT_REQUEUE_PI, 0, 0, BAD, 0}},
    {"futex-cmp-requeue-pi", __NR_futex, {BAD, FUTEX_CMP_REQUEUE_PI, 1, 1, BAD, 0}},
    {"futex-cmp-requeue-pi-private", __NR_futex, {BAD, FUTEX_CMP_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 1, 1, BAD, 0}},
    {"futex-wait-requeue-pi-realtime", __NR_futex, {BAD, FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME, 0, 0, BAD, 0}},
    {"futex-requeue-pi-high-bits", __NR_futex, {BAD, FUTEX_CMP_REQUEUE_PI | 1L << 40, 1, 1, BAD, 0}},
    {"personality-read-implies-exec", __NR_personality, {0x0400000}},
    {"personality-no-randomize", __NR_personality, {0x0040000}},
    {"personality-high-bits", __NR_personality, {0x0400000 | 1L << 32}},
    {"prctl-set-mm", __NR_prctl, {PR_SET_MM, 99, 0, 0, 0}},
    {"prctl-sched-core", __NR_prctl, {62, 99, 0, 0, 0}},
    {"prctl-set-mm-high-bits", __NR_prctl, {PR_SET_MM | 1L << 32, 99, 0, 0, 0}},
    {"prlimit-other", __NR_prlimit64, {0x7ffffff0, 7, 0, 0}},
    {"mknod-char", __NR_mknodat, {-1, BAD, S_IFCHR | 0666, 0x103}},
    {"mknod-block", __NR_mknodat, {-1, BAD, S_IFBLK | 0666, 0x700}},
    {"mknod-high-bits", __NR_mknodat, {-1, BAD, S_IFCHR | 1L << 32, 0}},
};

static const int filter_says[] = {EPERM, ENOSYS, 0};

/* door NAME */
static void door(int argc, char **argv)
{
    const char *name = word(argc, argv, 1);
    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
        if (strcmp(doors[i].name, name) == 0) {
            const long *a = doors[i].arg;
            judge(name, CALL(doors[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]), filter_says);
        }
    broken("there is no door %s", name);
}

/* What every command may ask, from the table itself. */
static const bool listed[1024] = {
#define DEFAULT(answer)
#define ALLOW(call, reason) [__NR_##call] = true,
#define DENY(call, os, reason)
#define ALLOW_IN(call, profile, os, reason)
#define CHECK(call, answer, reason) [__NR_##call] = true,
#define RULE(call, profile, answer, when, reason)
#include "confine/syscalls.def"
#ifdef __x86_64__
    [336] = true, /* uprobe, as uretprobe: the kernel itself keeps filters from seeing it, and ends whoever is no probe */
#endif
};

static bool is_there(long nr)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        /* No signal, address or descriptor is called so; what the kernel says to it, it says after it has looked. */
        long r = CALL(nr, -1L, -1L, -1L, -1L, -1L, -1L);
        _exit(r == -1 && (errno == ENOSYS || errno == EPERM) ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return status != 0;
}

/* new-syscalls: calls every number from 0 to 1023 that the list does not hold; any that is there is a leak. */
static void new_syscalls(int argc, char **argv)
{
    int there = 0, last = 0;
    (void)argc, (void)argv;
    for (int nr = 0; nr < 1024; nr++)
        if (!listed[nr] && is_there(nr)) {
            there++;
            last = nr;
        }
    if (there)
        leak("%d calls are there, the last is %d", there, last);
    held("no number off the list is there");
}

#ifdef __x86_64__
static void by_child(void (*body)(void), const char *what)
{
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(77);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        leak("%s: it runs", what);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        held("%s: ended by SIGSYS", what);
    held("%s: status %#x", what, status);
}

static void do_int80(void)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    if (r <= 0)
        _exit(1);
}

static void do_x32(void)
{
    /* Without x32 in the kernel the answer is ENOSYS: to be asked at all is the door. */
    if (CALL(0x40000000L + __NR_getpid, 0L) < 0 && errno != ENOSYS)
        _exit(1);
}

static void int80(int argc, char **argv)
{
    (void)argc;
    by_child(do_int80, argv[0]);
}

static void x32(int argc, char **argv)
{
    (void)argc;
    by_child(do_x32, argv[0]);
}
#endif

const struct attack door_attacks[] = {
    {"door", door},
    {"new-syscalls", new_syscalls},
#ifdef __x86_64__
    {"int80", int80},
    {"x32", x32},
#endif
    {0},
};

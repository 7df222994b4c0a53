/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the looks at what else the host is like: ids, control groups, settings, programs, processor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "confine/cgroup.h"
#include "confine/kernel.h"
#include "confine/quota.h"
#include "confine/survey.h"

/* --- ids --- */

/* Groups that are named; whoever has more has many. */
#define GROUPS_SHOWN 32

/* Writes the maps that a named box would get to a namespace that is thrown away. */
static void look_ids(const struct survey_row *row, struct answer *ret)
{
    struct ids ids;
    struct pale_err e = {0};
    (void)row;
    if (ids_choose(&ids, 0, IDS_WANT_MANY, &e) < 0) {
        attempt_err(ret, FINDING_MISSING, &e);
        return;
    }
    if (ids.kind == IDS_ONE) {
        attempt_say(ret, FINDING_DEGRADED, "boxes have one id, %u: no range of 65536 in /etc/subuid and /etc/subgid, or no newuidmap",
                    ids.uid);
        return;
    }
    struct clone_args c = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t pid = k_clone3(&c);
    if (pid == 0)
        for (;;)
            pause();
    if (pid < 0) {
        attempt_os(ret, FINDING_MISSING, "make a user namespace");
        return;
    }
    if (ids_write_maps(&ids, pid, &e) < 0)
        attempt_err(ret, FINDING_MISSING, &e);
    else if (ids.by_helper)
        attempt_say(ret, FINDING_OK, "%u to %u by newuidmap", ids.uids[0].outside, ids.uids[0].outside + 65535);
    else
        attempt_say(ret, FINDING_OK, "root's boxes take ids from %u up, never root's own", ids.uids[0].outside);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- control groups --- */

/* A group with that one limit and a process in it. systemd moves whoever asks into a scope, so a child asks, as a keeper would. */
static void try_controller(enum cgroup_controller which, const struct cgroup_limits *lim, const char *without, struct answer *ret)
{
    struct cgroup_host host;
    struct cgroup cg;
    struct pale_err e = {0};
    own_scope scope;
    char id[32];
    scope_init(&scope);
    if (scope_is_needed())
        scope_ask(&scope, "doctor", "pale doctor");
    cgroup_find(&scope, &host);
    if (!host.has[which]) {
        attempt_say(ret, FINDING_DEGRADED, "%.160s; %s", host.reason[0] ? host.reason : "the controller is not there", without);
        return;
    }
    snprintf(id, sizeof(id), "doctor-%d", (int)getpid());
    if (cgroup_create(&host, id, lim, &cg, &e) < 0) {
        attempt_err(ret, FINDING_DEGRADED, &e);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    if (pid > 0 && cgroup_admit(&cg, pid, &e) == 0)
        attempt_say(ret, FINDING_OK, scope.via[0] ? "cgroup v%d, in a scope that systemd makes, asked over %.100s" : "cgroup v%d, %.200s",
                    host.version, scope.via[0] ? scope.via : host.base[which]);
    else
        attempt_err(ret, FINDING_DEGRADED, &e);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    cgroup_destroy(&cg);
}

static void try_memory(struct attempt *a)
{
    static const struct cgroup_limits lim = {.memory_bytes = 16 << 20};
    try_controller(CGROUP_MEMORY, &lim, "--memory is refused, the default is watched", &a->answer);
}

static void try_pids(struct attempt *a)
{
    static const struct cgroup_limits lim = {.processes = 16};
    try_controller(CGROUP_PIDS, &lim, "the user namespace alone counts processes", &a->answer);
}

static void try_cpu(struct attempt *a)
{
    static const struct cgroup_limits lim = {.cpu_milli = 500};
    try_controller(CGROUP_CPU, &lim, "--cpus is refused", &a->answer);
}

static void try_disk(struct attempt *a)
{
    const struct survey_target *t = a->arg;
    struct pale_err e = {0};
    own_fd fd = open(t->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        attempt_os(&a->answer, FINDING_DEGRADED, "open the folder of boxes");
    else if (quota_can_hold(fd, &e) < 0)
        attempt_say(&a->answer, FINDING_DEGRADED, "--disk is refused, but with --scratch memory: %.150s", e.text);
    else
        attempt_say(&a->answer, FINDING_OK, "project quotas on the file system of %.150s", t->data_dir);
}

/* --- settings --- */

/* False if there is no such setting ("fs.protected_fifos"). */
static bool setting(const char *name, uint64_t *ret)
{
    char text[32] = "", path[128];
    int len = snprintf(path, sizeof(path), "/proc/sys/%s", name);
    for (int i = 10; i < len; i++)
        if (path[i] == '.')
            path[i] = '/';
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    return number_u64(text, UINT64_MAX, ret);
}

/* Settings of the host that matter, with the values that are good. */
static const struct knob {
    const char *name;
    uint64_t low, high; /* good from … to */
    const char *bad;    /* what it means where it is not */
} knobs[] = {
    {"kernel.unprivileged_userns_clone", 1, 1, "ordinary users can make no boxes"},
    {"kernel.apparmor_restrict_unprivileged_userns", 0, 0, "ordinary users need an AppArmor profile to make boxes"},
    {"user.max_user_namespaces", 2, UINT64_MAX, "each box needs two"},
    {"fs.protected_symlinks", 1, 1, "programs of the host follow symlinks others put into /tmp"},
    {"fs.protected_hardlinks", 1, 1, "users can link to files of others"},
    {"fs.protected_fifos", 1, 2, "programs of the host write into FIFOs others put into /tmp"},
    {"fs.protected_regular", 1, 2, "programs of the host write into files others put into /tmp"},
    {"dev.tty.legacy_tiocsti", 0, 0, "programs outside boxes can type into a terminal they were given"},
    {"kernel.io_uring_disabled", 1, 2, "boxes cannot use io_uring, everybody else can"},
    {"kernel.unprivileged_bpf_disabled", 1, 2, "boxes cannot use bpf, everybody else can"},
    {"kernel.yama.ptrace_scope", 1, 3, "your programs outside boxes can trace each other"},
};

static void look_knob(const struct survey_row *row, struct answer *ret)
{
    const struct knob *k = knobs;
    uint64_t v = 0;
    while (strcmp(k->name, row->name) != 0)
        k++; /* every row that comes here has one */
    if (!setting(k->name, &v))
        attempt_say(ret, FINDING_OK, "this kernel does not have it");
    else if (v >= k->low && v <= k->high)
        attempt_say(ret, FINDING_OK, "%llu", (unsigned long long)v);
    else
        attempt_say(ret, FINDING_DEGRADED, "%llu: %s", (unsigned long long)v, k->bad);
}

/* --- programs --- */

static bool find_program(const char *name, char *ret, size_t cap)
{
    static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        int n = snprintf(ret, cap, "%s/%s", dirs[i], name);
        if (n > 0 && (size_t)n < cap && access(ret, X_OK) == 0)
            return true;
    }
    return false;
}

static void tell_program(const char *name, const char *what, struct answer *ret)
{
    char path[128];
    if (find_program(name, path, sizeof(path)))
        attempt_say(ret, FINDING_OK, "%s%s", path, what);
    else
        attempt_say(ret, FINDING_OK, "not installed%s", what);
}

static void look_auto(const struct survey_row *row, struct answer *ret)
{
    (void)row;
    attempt_say(ret, FINDING_OK, "native: gvisor and microvm are not in this build");
}

static void look_runsc(const struct survey_row *row, struct answer *ret)
{
    (void)row;
    tell_program("runsc", "; tier gvisor is not in this build", ret);
}

static void look_microvm(const struct survey_row *row, struct answer *ret)
{
    char path[128];
    (void)row;
    bool machine = find_program("qemu-system-x86_64", path, sizeof(path)) || find_program("firecracker", path, sizeof(path));
    attempt_say(ret, FINDING_OK, "%s, /dev/kvm %s; tier microvm is not in this build", machine ? path : "no QEMU or Firecracker",
                access("/dev/kvm", R_OK | W_OK) == 0 ? "usable" : "not usable");
}

static void look_bwrap(const struct survey_row *row, struct answer *ret)
{
    (void)row;
    tell_program("bwrap", "; for comparison in benchmarks only", ret);
}

static void look_newuidmap(const struct survey_row *row, struct answer *ret)
{
    char path[128];
    (void)row;
    if (geteuid() == 0)
        attempt_say(ret, FINDING_OK, "not needed by root");
    else if (find_program("newuidmap", path, sizeof(path)) && find_program("newgidmap", path, sizeof(path)))
        attempt_say(ret, FINDING_OK, "installed");
    else
        attempt_say(ret, FINDING_DEGRADED, "not installed: boxes have one id");
}

/* The groups beside the user's own, as text; their number. */
static int show_groups(char *ret, size_t cap)
{
    gid_t list[GROUPS_SHOWN];
    int n = getgroups(GROUPS_SHOWN, list), others = 0;
    size_t at = 0;
    if (n < 0)
        return snprintf(ret, cap, "more than %d", GROUPS_SHOWN);
    for (int i = 0; i < n && at < cap; i++)
        if (list[i] != getegid())
            at += (size_t)snprintf(ret + at, cap - at, "%s%u", others++ ? ", " : "", list[i]);
    return others;
}

/* In a user namespace that we map ourselves nobody may drop groups, since a group can also take rights away. */
static void look_groups(const struct survey_row *row, struct answer *ret)
{
    struct ids ids;
    char text[160] = "";
    (void)row;
    bool range = ids_choose(&ids, 0, IDS_WANT_MANY, NULL) == 0 && ids.kind == IDS_RANGE;
    if (range && geteuid() == 0)
        attempt_say(ret, FINDING_OK, "dropped in every box");
    else if (show_groups(text, sizeof(text)) == 0)
        attempt_say(ret, FINDING_OK, "you have none that a box could keep");
    else if (range)
        attempt_say(ret, FINDING_OK, "dropped in boxes with a name; one-shot boxes keep yours (%s) on the files they are given", text);
    else
        attempt_say(ret, FINDING_DEGRADED, "every box keeps yours (%s) on the files it is given", text);
}

/* --- what cannot be helped from here --- */

static void look_page_cache(const struct survey_row *row, struct answer *ret)
{
    (void)row;
    attempt_say(ret, FINDING_OK, "boxes share the page cache of /usr with the host; a box with an image of its own does not");
}

/* Counts what the kernel says about the processor and names what it calls vulnerable. */
static void look_processor(const struct survey_row *row, struct answer *ret)
{
    static const char dir_path[] = "/sys/devices/system/cpu/vulnerabilities";
    char bad[160] = "";
    int good = 0, n = 0;
    (void)row;
    DIR *d = opendir(dir_path);
    if (!d) {
        attempt_say(ret, FINDING_OK, "the kernel says nothing");
        return;
    }
    for (const struct dirent *en; (en = readdir(d));) {
        char text[16] = "";
        own_fd fd = openat(dirfd(d), en->d_name, O_RDONLY | O_CLOEXEC);
        if (en->d_name[0] == '.' || fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0)
            continue;
        if (strncmp(text, "Vulnerable", 10) != 0)
            good++;
        else if ((size_t)n < sizeof(bad))
            n += snprintf(bad + n, sizeof(bad) - (size_t)n, "%s%s", n ? ", " : "", en->d_name);
    }
    closedir(d);
    if (bad[0])
        attempt_say(ret, FINDING_OK, "vulnerable: %s; %d others are not or are mitigated", bad, good);
    else
        attempt_say(ret, FINDING_OK, "%d known weaknesses, none of them open", good);
}

#define FIX "sudo pale doctor --fix USER"
#define GROUPS FIX "; with systemd, log in as the user or run loginctl enable-linger USER"
#define SYSCTL "set it with sysctl and in /etc/sysctl.d"

const struct survey_row survey_host[] = {
    {"Ids", "range of ids", false, "", FIX " gives one; without it every process of a box has your own id", NULL, 0, look_ids},
    {"Ids", "newuidmap, newgidmap", false, "", "install uidmap", NULL, 0, look_newuidmap},
    {"Ids", "supplementary groups", false, "", FIX " gives a range of ids, with which boxes that have a name drop them", NULL, 0,
     look_groups},
    {"Limits", "memory", false, "C16", GROUPS, try_memory, 0, NULL},
    {"Limits", "processes", false, "C16", GROUPS, try_pids, 0, NULL},
    {"Limits", "CPU share", false, "C16", GROUPS, try_cpu, 0, NULL},
    {"Limits", "disk", false, "",
     "as root: `tune2fs -O project,quota -Q prjquota DEVICE` on an ext4 that is not mounted, then `mount -o prjquota`; XFS needs the "
     "latter alone",
     try_disk, 0, NULL},
    {"Settings", "kernel.unprivileged_userns_clone", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "kernel.apparmor_restrict_unprivileged_userns", false, "", SYSCTL ", or give pale-keeper a profile with userns", NULL, 0,
     look_knob},
    {"Settings", "user.max_user_namespaces", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "fs.protected_symlinks", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "fs.protected_hardlinks", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "fs.protected_fifos", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "fs.protected_regular", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "dev.tty.legacy_tiocsti", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "kernel.io_uring_disabled", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "kernel.unprivileged_bpf_disabled", false, "", SYSCTL, NULL, 0, look_knob},
    {"Settings", "kernel.yama.ptrace_scope", false, "", SYSCTL, NULL, 0, look_knob},
    {"Walls", "tier auto", false, "", "", NULL, 0, look_auto},
    {"Walls", "runsc", false, "", "", NULL, 0, look_runsc},
    {"Walls", "QEMU, Firecracker", false, "", "", NULL, 0, look_microvm},
    {"Walls", "bwrap", false, "", "", NULL, 0, look_bwrap},
    {"Information", "page cache of /usr", false, "", "", NULL, 0, look_page_cache},
    {"Information", "processor", false, "", "", NULL, 0, look_processor},
    {0},
};

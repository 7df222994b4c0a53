/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, identities and capabilities. */
#include "attack.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* unshare FLAG */
static void unshare_one(int argc, char **argv)
{
    judge_any("unshare", CALL(__NR_unshare, number(argc, argv, 1)));
}

/* clone FLAG: the raw call, so that no library changes the flags. */
static void clone_one(int argc, char **argv)
{
    long pid = CALL(__NR_clone, number(argc, argv, 1) | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    judge_any("clone", pid);
}

/* clone3 FLAG */
static void clone3_one(int argc, char **argv)
{
    struct clone_args a = {.flags = (unsigned long)number(argc, argv, 1), .exit_signal = SIGCHLD};
    long pid = CALL(__NR_clone3, &a, sizeof(a));
    if (pid == 0)
        _exit(0);
    judge_any("clone3", pid);
}

/* enter PATH: setns on a file of /proc. */
static void enter(int argc, char **argv)
{
    int fd = open(word(argc, argv, 1), O_RDONLY);
    if (fd < 0)
        held("open: %s", strerror(errno));
    judge_any("setns", CALL(__NR_setns, fd, 0));
}

/* enter-pidfd PID: setns by process. */
static void enter_pidfd(int argc, char **argv)
{
    long fd = CALL(__NR_pidfd_open, number(argc, argv, 1), 0);
    if (fd < 0)
        held("pidfd_open: %s", strerror(errno));
    judge_any("setns", CALL(__NR_setns, fd, CLONE_NEWUSER));
}

static unsigned long status_number(const char *key, int base)
{
    char line[256];
    size_t n = strlen(key);
    FILE *f = fopen("/proc/self/status", "re");
    if (!f)
        broken("status: %s", strerror(errno));
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            fclose(f);
            return strtoul(line + n + 1, NULL, base);
        }
    broken("no %s in status", key);
}

/* caps SET: is anything in it? */
static void caps(int argc, char **argv)
{
    const char *set = word(argc, argv, 1);
    unsigned long have = status_number(set, 16);
    if (have)
        leak("%s %#lx", set, have);
    held("%s is empty", set);
}

static void raise_caps(int argc, char **argv)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{1u << CAP_SYS_CHROOT, 1u << CAP_SYS_CHROOT, 1u << CAP_SYS_CHROOT}};
    (void)argc;
    judge_any(argv[0], CALL(__NR_capset, &h, d));
}

static void ambient(int argc, char **argv)
{
    (void)argc;
    judge_any(argv[0], prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_CHROOT, 0, 0));
}

/* status KEY WANTED: a number of /proc/self/status that must be as it is. */
static void status(int argc, char **argv)
{
    const char *key = word(argc, argv, 1);
    unsigned long have = status_number(key, 10), want = (unsigned long)number(argc, argv, 2);
    if (have != want)
        leak("%s is %lu", key, have);
    held("%s is %lu", key, have);
}

/* become ID HOW */
static void become(int argc, char **argv)
{
    unsigned id = (unsigned)number(argc, argv, 1);
    const char *how = word(argc, argv, 2);
    gid_t group = id;
    if (strcmp(how, "setuid") == 0)
        judge_any(how, CALL(__NR_setuid, id));
    if (strcmp(how, "setresuid") == 0)
        judge_any(how, CALL(__NR_setresuid, id, id, id));
    if (strcmp(how, "setgid") == 0)
        judge_any(how, CALL(__NR_setgid, id));
    if (strcmp(how, "setgroups") == 0)
        judge_any(how, CALL(__NR_setgroups, 1, &group));
    if (strcmp(how, "setfsuid") == 0) {
        CALL(__NR_setfsuid, id);
        if ((unsigned)CALL(__NR_setfsuid, -1) == id)
            leak("setfsuid");
        held("setfsuid");
    }
    broken("become %s", how);
}

/* chroot: the classic way out, with a folder below for the climb. */
static void chroot_out(int argc, char **argv)
{
    (void)argc;
    mkdir("/tmp/m", 0755);
    judge_any(argv[0], CALL(__NR_chroot, "/tmp/m"));
}

static void host_name(int argc, char **argv)
{
    (void)argc;
    judge_any(argv[0], CALL(__NR_sethostname, "evil", 4));
}

static void domain_name(int argc, char **argv)
{
    (void)argc;
    judge_any(argv[0], CALL(__NR_setdomainname, "evil", 4));
}

/* A wrong magic number: in a pid namespace the right one ends its init. */
static void reboot_door(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, 0};
    (void)argc;
    judge(argv[0], CALL(__NR_reboot, 1, 2, 3, 0), refusals);
}

/* cgroup: do paths begin at the box? */
static void cgroup_paths(int argc, char **argv)
{
    char line[1024];
    FILE *f = fopen("/proc/self/cgroup", "re");
    (void)argc;
    if (!f)
        broken("cgroup: %s", strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        const char *path = strchr(line, ':') ? strchr(strchr(line, ':') + 1, ':') : NULL;
        line[strcspn(line, "\n")] = 0;
        if (path && strcmp(path + 1, "/") != 0)
            leak("%s %s", argv[0], line);
    }
    held("every path is /");
}

const struct attack ns_attacks[] = {
    {"unshare", unshare_one},     {"clone", clone_one},    {"clone3", clone3_one},         {"enter", enter},
    {"enter-pidfd", enter_pidfd}, {"caps", caps},          {"raise-caps", raise_caps},     {"ambient", ambient},
    {"status", status},           {"become", become},      {"chroot", chroot_out},         {"hostname", host_name},
    {"domainname", domain_name},  {"reboot", reboot_door}, {"cgroup-paths", cgroup_paths}, {0},
};

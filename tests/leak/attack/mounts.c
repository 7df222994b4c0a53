/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts: new ones, old ones changed or taken away. */
#include "attack.h"

#include <linux/mount.h>
#include <sys/mount.h>

/* mount TYPE [DATA]: a new file system on /tmp. */
static void new_mount(int argc, char **argv)
{
    const char *type = word(argc, argv, 1);
    mkdir("/tmp/m", 0755);
    mkdir("/tmp/lower", 0755);
    mkdir("/tmp/upper", 0755);
    mkdir("/tmp/work", 0755);
    judge_any(type, CALL(__NR_mount, "none", "/tmp/m", type, 0, argc > 2 ? argv[2] : NULL));
}

/* bind FROM TO */
static void bind_mount(int argc, char **argv)
{
    mkdir("/tmp/m", 0755);
    judge_any("bind", CALL(__NR_mount, word(argc, argv, 1), word(argc, argv, 2), "", MS_BIND, NULL));
}

/* remount PATH: makes a read-only mount writable, keeping its other flags. */
static void remount(int argc, char **argv)
{
    judge_any("remount",
              CALL(__NR_mount, "", word(argc, argv, 1), "", MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | number(argc, argv, 2), NULL));
}

/* propagate PATH: ties the mount to its peers. */
static void propagate(int argc, char **argv)
{
    judge_any("shared", CALL(__NR_mount, "", word(argc, argv, 1), "", MS_SHARED, NULL));
}

static void move(int argc, char **argv)
{
    mkdir("/tmp/m", 0755);
    judge_any("move", CALL(__NR_mount, word(argc, argv, 1), "/tmp/m", "", MS_MOVE, NULL));
}

/* umount PATH */
static void take_off(int argc, char **argv)
{
    judge_any("umount", CALL(__NR_umount2, word(argc, argv, 1), MNT_DETACH));
}

static void pivot(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, 0};
    (void)argc;
    mkdir("/tmp/m", 0755);
    judge(argv[0], CALL(__NR_pivot_root, "/tmp/m", "/tmp/m"), refusals);
}

/* The way of the new calls: a context, a mount without a place. */
static void by_context(int argc, char **argv)
{
    long fs = CALL(__NR_fsopen, word(argc, argv, 1), 0);
    if (fs < 0)
        held("fsopen: %s", strerror(errno));
    if (CALL(__NR_fsconfig, fs, 6, NULL, NULL, 0) < 0)
        held("fsconfig: %s", strerror(errno));
    judge_any("fsmount", CALL(__NR_fsmount, fs, 0, 0));
}

static void clone_tree(int argc, char **argv)
{
    judge_any("open_tree", CALL(__NR_open_tree, AT_FDCWD, word(argc, argv, 1), 1));
}

/* setattr PATH: takes the read-only flag off. */
static void set_attributes(int argc, char **argv)
{
    struct mount_attr a = {.attr_clr = 1};
    judge_any("mount_setattr", CALL(__NR_mount_setattr, AT_FDCWD, word(argc, argv, 1), 0, &a, sizeof(a)));
}

/* flags nosuid|nodev: is every mount so? Devices are meant to be where /dev is. */
static void flags(int argc, char **argv)
{
    const char *want = word(argc, argv, 1);
    char line[2048];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        broken("mountinfo: %s", strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        char *place = line, *options;
        for (int i = 0; i < 4; i++)
            place = strchr(place, ' ') + 1;
        options = strchr(place, ' ') + 1;
        *(options - 1) = 0;
        options[strcspn(options, " ")] = 0;
        if (!strstr(options, want) && (strcmp(want, "nosuid") == 0 || strncmp(place, "/dev", 4) != 0))
            leak("%s is %s", place, options);
    }
    held("every mount is %s", want);
}

const struct attack mount_attacks[] = {
    {"mount", new_mount},
    {"bind", bind_mount},
    {"remount", remount},
    {"propagate", propagate},
    {"move", move},
    {"umount", take_off},
    {"pivot", pivot},
    {"by-context", by_context},
    {"clone-tree", clone_tree},
    {"setattr", set_attributes},
    {"mount-flags", flags},
    {0},
};

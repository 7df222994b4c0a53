/* SPDX-License-Identifier: Apache-2.0 */
/* Setuid and setgid bits and file capabilities: every call that can give them. The host looks at the folder afterwards. */
#include "attack.h"

#include <linux/openat2.h>
#include <sys/xattr.h>

static int fresh(const char *name)
{
    return open(name, O_RDWR | O_CREAT | O_EXCL, 0755);
}

/* setid HOW BITS NAME: in the working folder. */
static void setid(int argc, char **argv)
{
    const char *how = word(argc, argv, 1), *name = word(argc, argv, 3);
    long bits = number(argc, argv, 2), make = O_CREAT | O_EXCL | O_WRONLY;
    struct open_how h = {.flags = (unsigned long)make, .mode = (unsigned long)bits & 07777};
    char path[64];
    umask(0);
    if (strncmp(how, "new-", 4) != 0 && fresh(name) < 0)
        broken("%s: %s", name, strerror(errno));
#ifdef __NR_chmod
    if (strcmp(how, "chmod") == 0)
        CALL(__NR_chmod, name, bits);
    if (strcmp(how, "new-creat") == 0)
        CALL(__NR_creat, name, bits);
    if (strcmp(how, "new-open") == 0)
        CALL(__NR_open, name, make, bits);
    if (strcmp(how, "new-mknod") == 0)
        CALL(__NR_mknod, name, S_IFREG | bits, 0);
#endif
    if (strcmp(how, "fchmod") == 0)
        CALL(__NR_fchmod, open(name, O_RDONLY), bits);
    if (strcmp(how, "fchmodat") == 0)
        CALL(__NR_fchmodat, AT_FDCWD, name, bits);
    if (strcmp(how, "fchmodat2") == 0)
        CALL(__NR_fchmodat2, AT_FDCWD, name, bits, 0);
    if (strcmp(how, "fchmodat2-empty") == 0)
        CALL(__NR_fchmodat2, open(name, O_RDONLY), "", bits, 0x1000);
    if (strcmp(how, "new-openat") == 0)
        CALL(__NR_openat, AT_FDCWD, name, make, bits);
    if (strcmp(how, "new-openat2") == 0)
        CALL(__NR_openat2, AT_FDCWD, name, &h, sizeof(h));
    if (strcmp(how, "new-mknodat") == 0)
        CALL(__NR_mknodat, AT_FDCWD, name, S_IFREG | bits, 0);
    if (strcmp(how, "new-tmpfile") == 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%ld", CALL(__NR_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, bits));
        CALL(__NR_linkat, AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    }
    tried();
}

/* file-capability NAME */
static void capability(int argc, char **argv)
{
    static const unsigned value[5] = {0x02000001, 0xffffffff, 0, 0xffffffff, 0};
    const char *name = word(argc, argv, 1);
    fresh(name);
    judge_any("setxattr", setxattr(name, "security.capability", value, sizeof(value), 0));
}

const struct attack setid_attacks[] = {{"setid", setid}, {"file-capability", capability}, {0}};

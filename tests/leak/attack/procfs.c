/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own files: what they say, and whether they can be written. */
#include "attack.h"

#include <dirent.h>
#include <ftw.h>

/* shows FILE: does it say anything? */
static void shows(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char block[256];
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, block, sizeof(block));
    if (n > 0)
        leak("%s says %zd bytes", path, n);
    held("%s: %s", path, n < 0 ? strerror(errno) : "empty");
}

/* opens FILE: some files say nothing to us today and something tomorrow. */
static void opens(int argc, char **argv)
{
    judge_any("open", open(word(argc, argv, 1), O_RDONLY | O_NONBLOCK));
}

/* lists FOLDER: is anything in it? */
static void lists(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    DIR *d = opendir(path);
    const struct dirent *en;
    while (d && (en = readdir(d)))
        if (en->d_name[0] != '.')
            leak("%s holds %s", path, en->d_name);
    held("%s: %s", path, d ? "empty" : strerror(errno));
}

/* writable PATH …: can one of them be opened for writing? A device in its place is no leak. */
static void writable(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat st;
        int fd = open(argv[i], O_WRONLY | O_NONBLOCK);
        if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode))
            leak("%s can be written", argv[i]);
    }
    held("%s: %s", word(argc, argv, 1), strerror(errno));
}

static int look(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)at;
    int fd = kind == FTW_F ? open(path, O_WRONLY | O_NONBLOCK) : -1;
    if (fd >= 0)
        leak("%s can be written", path);
    return 0;
}

/* writable-below FOLDER */
static void writable_below(int argc, char **argv)
{
    nftw(word(argc, argv, 1), look, 16, FTW_PHYS);
    held("no file below %s can be written", argv[1]);
}

/* mount-is-ro PATH: is there a mount at the path, and is it read-only? */
static void mount_is_ro(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char line[2048], want[256];
    bool found = false, ro = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    snprintf(want, sizeof(want), "%s ", path);
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = line;
        for (int i = 0; i < 4; i++)
            at = strchr(at, ' ') + 1;
        if (strncmp(at, want, strlen(want)) == 0) {
            found = true;
            ro = strncmp(at + strlen(want), "ro", 2) == 0;
        }
    }
    if (found && ro)
        held("%s is a read-only mount", path);
    leak("%s is %s", path, found ? "writable" : "no mount of its own");
}

/* print FILE …: for the judge outside. */
static void print(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char block[4096];
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK);
        ssize_t n;
        while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
            (void)!write(1, block, (size_t)n);
        if (fd >= 0)
            close(fd);
    }
    dprintf(1, "\n");
    tried();
}

const struct attack proc_attacks[] = {
    {"shows", shows},
    {"opens", opens},
    {"lists", lists},
    {"writable", writable},
    {"writable-below", writable_below},
    {"mount-is-ro", mount_is_ro},
    {"print", print},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the runtime folders of living keepers by the words they were started with. */
#include "box/runtimes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define SEEN_MAX 256
#define WORDS_BYTES_MAX 16384
#define SOCKET_WORD 6 /* pale-keeper box NAME ID DATA STATE SOCKET CALLER */

struct search {
    const char *own;
    char seen[SEEN_MAX][RUNTIMES_PATH_MAX];
    size_t count;
    int (*fn)(void *arg, int dir, const char *path);
    void *arg;
};

/* The folder of a keeper's socket, if that process is a keeper. */
static bool runtime_of(int proc, const char *pid, char ret[RUNTIMES_PATH_MAX])
{
    char file[64], words[WORDS_BYTES_MAX + 1];
    snprintf(file, sizeof(file), "%.20s/cmdline", pid);
    own_fd fd = openat(proc, file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, words, WORDS_BYTES_MAX);
    if (n <= 0)
        return false;
    words[n] = 0;
    const char *word[SOCKET_WORD + 1];
    size_t count = 0;
    for (const char *at = words; at < words + n && count <= SOCKET_WORD; at += strlen(at) + 1)
        word[count++] = at;
    if (count <= SOCKET_WORD)
        return false;
    const char *base = strrchr(word[0], '/'), *socket = word[SOCKET_WORD], *slash = strrchr(socket, '/');
    if (strcmp(base ? base + 1 : word[0], "pale-keeper") != 0 || socket[0] != '/' || slash - socket >= RUNTIMES_PATH_MAX)
        return false;
    snprintf(ret, RUNTIMES_PATH_MAX, "%.*s", (int)(slash - socket), socket);
    return true;
}

static bool is_new(struct search *s, const char *path)
{
    struct stat a, b;
    if (strcmp(path, s->own) == 0 || (stat(path, &a) == 0 && stat(s->own, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino))
        return false;
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->seen[i], path) == 0)
            return false;
    if (s->count == SEEN_MAX)
        return false;
    memcpy(s->seen[s->count++], path, strlen(path) + 1);
    return true;
}

static int visit(struct search *s, const char *path)
{
    struct stat st;
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0 || (st.st_uid != geteuid() && geteuid() != 0) || (st.st_mode & 022))
        return 0;
    return s->fn(s->arg, dir, path);
}

int runtimes_each_other(const char *own, int (*fn)(void *arg, int dir, const char *path), void *arg)
{
    struct search s = {.own = own, .fn = fn, .arg = arg};
    int r = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *en; d && r >= 0 && (en = readdir(d));) {
        char path[RUNTIMES_PATH_MAX];
        if (en->d_name[0] >= '1' && en->d_name[0] <= '9' && runtime_of(dirfd(d), en->d_name, path) && is_new(&s, path))
            r = visit(&s, path);
    }
    if (d)
        closedir(d);
    return r < 0 ? r : 0;
}

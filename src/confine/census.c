/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the adding up of memory over a tree of processes. */
#include "confine/census.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"

/* The number that begins at text, up to a space or the line's end; false if there is none. */
static bool leading_number(const char *text, uint64_t max, uint64_t *ret)
{
    char word[24];
    size_t n = strcspn(text, " \n");
    if (n == 0 || n >= sizeof(word))
        return false;
    memcpy(word, text, n);
    word[n] = 0;
    return number_u64(word, max, ret);
}

/* The sum of the wanted lines of /proc/PID/status. The name of a process, which is its own choice, has its newlines escaped there. */
static uint64_t process_memory(pid_t pid)
{
    static const char *const lines[] = {"\nRssAnon:", "\nRssShmem:", "\nVmSwap:"};
    char path[64];
    own_buf b = {0};
    uint64_t sum = 0, kib;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    buf_init(&b, 1 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return 0;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *at = strstr(buf_text(&b), lines[i]);
        if (!at)
            continue;
        at += strlen(lines[i]);
        if (leading_number(at + strspn(at, " \t"), UINT64_MAX / 4096, &kib))
            sum += kib * 1024;
    }
    return sum;
}

/* Appends the children that one thread has forked. */
static size_t add_children(int task_fd, const char *tid, struct census *c, size_t count)
{
    char path[64];
    own_buf b = {0};
    uint64_t pid;
    snprintf(path, sizeof(path), "%s/children", tid);
    own_fd fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
    buf_init(&b, 1 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return count;
    for (const char *at = buf_text(&b); *at && count < CENSUS_PROCESSES_MAX; at += strspn(at, " \n")) {
        if (leading_number(at, 1 << 30, &pid))
            c->pids[count++] = (pid_t)pid;
        at += strcspn(at, " \n");
    }
    return count;
}

/* Appends the children of every thread: the kernel lists a child with the thread that forked it. */
static size_t add_descendants(pid_t pid, struct census *c, size_t count)
{
    _Alignas(8) char block[4096];
    char path[64];
    long n;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0 && (n = fd_entries(dir, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (d->d_name[0] != '.')
                count = add_children(dir, d->d_name, c, count);
        }
    return count;
}

uint64_t census_memory(struct census *c, pid_t top)
{
    uint64_t sum = 0;
    size_t count = 1;
    c->pids[0] = top;
    for (size_t i = 0; i < count; i++) {
        sum += process_memory(c->pids[i]);
        count = add_descendants(c->pids[i], c, count);
    }
    return sum;
}

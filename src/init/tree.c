/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of the process tree. No allocation: getdents into a static block, one read per process. */
#include "init/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"

/* Field n (1-based, counted from after the command's name, whose text is the process's own and may hold anything). */
static bool stat_field(const char *after_name, int n, uint64_t *ret)
{
    const char *p = after_name;
    for (int i = 1; i < n; i++) {
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    char word[24];
    size_t len = strcspn(p, " \n");
    if (len == 0 || len >= sizeof(word))
        return false;
    memcpy(word, p, len);
    word[len] = 0;
    return number_u64(word, UINT64_MAX, ret);
}

static bool read_process(int proc_fd, const char *name, struct tree_process *ret)
{
    char path[32], text[1024];
    uint64_t pid, parent, t[4];
    size_t len = strlen(name);
    if (!number_u64(name, 1 << 30, &pid) || len > 16)
        return false;
    memcpy(path, name, len);
    memcpy(path + len, "/stat", 6);
    own_fd fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    /* "pid (name) state ppid …": the last ')' ends the name whatever the name holds. */
    const char *end = strrchr(text, ')');
    if (!end || end[1] != ' ')
        return false;
    const char *rest = end + 2;
    if (!stat_field(rest, 2, &parent))
        return false;
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        if (!stat_field(rest, 12 + i, &t[i]))
            return false;
        sum += t[i];
    }
    *ret = (struct tree_process){.pid = (pid_t)pid, .parent = (pid_t)parent, .ticks = sum};
    return true;
}

bool tree_read(struct tree *t, int proc_fd)
{
    static _Alignas(8) char block[16384];
    own_fd dir = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;
    t->count = 0;
    t->overflow = false;
    if (dir < 0)
        return false;
    while ((n = fd_entries(dir, block, sizeof(block))) > 0)
        for (long at = 0; at < n;) {
            const struct dirent *d = (const void *)(block + at);
            at += d->d_reclen;
            if (d->d_name[0] < '1' || d->d_name[0] > '9')
                continue;
            if (t->count == TREE_MAX) {
                t->overflow = true;
                return true;
            }
            if (read_process(proc_fd, d->d_name, &t->process[t->count]))
                t->count++;
        }
    return n == 0;
}

/* Where each pid stands in the table: open addressing, filled anew by every tree_mark. */
#define INDEX_SIZE 16384u
static int16_t index_of[INDEX_SIZE];

static unsigned hash(pid_t pid)
{
    return ((unsigned)pid * 2654435761u) >> 18;
}

static void build_index(const struct tree *t)
{
    memset(index_of, 0xff, sizeof(index_of));
    for (int i = 0; i < t->count; i++) {
        unsigned h = hash(t->process[i].pid);
        while (index_of[h] >= 0)
            h = (h + 1) % INDEX_SIZE;
        index_of[h] = (int16_t)i;
    }
}

static struct tree_process *find(struct tree *t, pid_t pid)
{
    for (unsigned h = hash(pid); index_of[h] >= 0; h = (h + 1) % INDEX_SIZE)
        if (t->process[index_of[h]].pid == pid)
            return &t->process[index_of[h]];
    return NULL;
}

/* Walks up from p until the answer is known, then writes it down for the whole way, so that each process is walked once. */
static bool descends(struct tree *t, struct tree_process *p, pid_t from)
{
    struct tree_process *at = p;
    int steps = 0;
    while (at && at->kin == KIN_UNKNOWN && at->parent != from && steps++ < TREE_MAX)
        at = find(t, at->parent);
    bool yes = at && (at->kin == KIN_YES || (at->kin == KIN_UNKNOWN && at->parent == from && at->pid != from));
    for (struct tree_process *q = p; q && q->kin == KIN_UNKNOWN; q = find(t, q->parent)) {
        q->kin = yes && q->pid != from ? KIN_YES : KIN_NO;
        if (q == at)
            break;
    }
    return p->kin == KIN_YES;
}

int tree_mark(struct tree *t, pid_t pid)
{
    int total = 0;
    build_index(t);
    for (int i = 0; i < t->count; i++)
        t->process[i].kin = t->process[i].pid == pid ? KIN_NO : KIN_UNKNOWN;
    for (int i = 0; i < t->count; i++)
        total += descends(t, &t->process[i], pid);
    return total;
}

int tree_depths(struct tree *t)
{
    int most = 0;
    build_index(t);
    for (int i = 0; i < t->count; i++) {
        int depth = 0;
        for (const struct tree_process *at = &t->process[i]; (at = find(t, at->parent)) && depth < t->count;)
            depth++;
        t->process[i].depth = depth;
        most = depth > most ? depth : most;
    }
    return most;
}

uint64_t tree_cpu_ms(const struct tree *t, pid_t pid)
{
    uint64_t ticks = 0;
    for (int i = 0; i < t->count; i++)
        if (t->process[i].kin == KIN_YES || t->process[i].pid == pid)
            ticks += t->process[i].ticks;
    long hz = sysconf(_SC_CLK_TCK);
    return ticks * 1000 / (uint64_t)(hz > 0 ? hz : 100);
}

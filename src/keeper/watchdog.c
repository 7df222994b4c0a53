/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the watching of a box's memory from outside. */
#include "keeper/watchdog.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"

#define LOOK_EVERY_MS 200
#define PROCESSES_MAX 4096

static struct loop_timer timer;
static struct keeper *keeper;

/* Anonymous memory of one process in bytes. */
static uint64_t anonymous(pid_t pid)
{
    char path[64], text[128] = "", word[24];
    uint64_t v[3] = {0};
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        size_t n = strcspn(at, " \n");
        if (n == 0 || n >= sizeof(word))
            return 0;
        memcpy(word, at, n);
        word[n] = 0;
        if (!number_u64(word, UINT64_MAX / 65536, &v[i]))
            return 0;
        at += n;
        at += strspn(at, " ");
    }
    return (v[1] > v[2] ? v[1] - v[2] : 0) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Appends the children of pid to list. */
static size_t children(pid_t pid, pid_t *list, size_t count)
{
    char path[64];
    own_buf b = {0};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    buf_init(&b, 1 << 20);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return count;
    for (const char *at = buf_text(&b); *at && count < PROCESSES_MAX;) {
        char word[24];
        uint64_t v;
        size_t n = strcspn(at, " \n");
        if (n > 0 && n < sizeof(word)) {
            memcpy(word, at, n);
            word[n] = 0;
            if (number_u64(word, 1 << 30, &v))
                list[count++] = (pid_t)v;
        }
        at += n;
        at += strspn(at, " \n");
    }
    return count;
}

static uint64_t box_memory(const struct keeper *k)
{
    static pid_t list[PROCESSES_MAX];
    uint64_t sum = 0;
    size_t count = 1;
    list[0] = k->wall.pid;
    for (size_t i = 0; i < count; i++) {
        sum += anonymous(list[i]);
        count = children(list[i], list, count);
    }
    return sum;
}

static void look(struct loop_timer *t)
{
    struct keeper *k = keeper;
    uint64_t most = k->policy.limits[LIMIT_MEMORY].value;
    if (k->died || k->stopping)
        return;
    if (k->running > 0 && box_memory(k) > most)
        for (struct kjob *j = k->jobs; j; j = j->next)
            if (j->state == JOB_RUNNING) {
                j->out_of_memory = true;
                work_kill(j);
            }
    loop_arm(&k->loop, t, clock_ms() + LOOK_EVERY_MS);
}

void watchdog_start(struct keeper *k)
{
    keeper = k;
    timer.fire = look;
    loop_arm(&k->loop, &timer, clock_ms() + LOOK_EVERY_MS);
}

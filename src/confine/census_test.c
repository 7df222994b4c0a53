/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for confine/census: processes of our own with a known amount of memory each. */
#include "base/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/census.h"

#define AMOUNT ((size_t)32 << 20)

static void *touched(void *p)
{
    if (p != MAP_FAILED)
        memset(p, 1, AMOUNT);
    return p;
}

static void take_private(void)
{
    touched(mmap(NULL, AMOUNT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void take_shared(void)
{
    touched(mmap(NULL, AMOUNT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static void take_memfd(void)
{
    int fd = memfd_create("census", 0);
    if (fd >= 0 && ftruncate(fd, (off_t)AMOUNT) == 0)
        touched(mmap(NULL, AMOUNT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static void take_system_v(void)
{
    int id = shmget(IPC_PRIVATE, AMOUNT, 0600);
    void *p = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    touched(p == (void *)-1 ? MAP_FAILED : p);
}

struct holder {
    void (*take)(void);
    int ready_fd;
};

static void *fork_and_take(void *arg)
{
    const struct holder *h = arg;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        h->take();
        (void)!write(h->ready_fd, "", 1);
        for (;;)
            pause();
    }
    for (;;)
        pause();
    return NULL;
}

/* What a process that takes memory by itself, or lets a second thread fork one that does, adds to its sum. */
static uint64_t added(void (*take)(void), bool by_thread)
{
    static struct census c;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    struct holder h = {take, ready[1]};
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t;
        if (by_thread && pthread_create(&t, NULL, fork_and_take, &h) != 0)
            _exit(1);
        if (!by_thread) {
            take();
            (void)!write(ready[1], "", 1);
        }
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    uint64_t sum = census_memory(&c, pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    return sum;
}

static void (*const kinds[])(void) = {take_private, take_shared, take_memfd, take_system_v};

static void every_kind_of_memory_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        uint64_t sum = added(kinds[i], false);
        assert_in_range(sum, AMOUNT, 2 * AMOUNT);
    }
}

static void what_a_second_thread_forks_counts(void **state)
{
    (void)state;
    assert_in_range(added(take_private, true), AMOUNT, 2 * AMOUNT);
    assert_in_range(added(take_shared, true), AMOUNT, 2 * AMOUNT);
}

static void process_that_is_gone_counts_nothing(void **state)
{
    (void)state;
    static struct census c;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(census_memory(&c, pid), 0);
}

TESTS(cmocka_unit_test(every_kind_of_memory_counts), cmocka_unit_test(what_a_second_thread_forks_counts),
      cmocka_unit_test(process_that_is_gone_counts_nothing))

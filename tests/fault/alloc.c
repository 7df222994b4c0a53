/* SPDX-License-Identifier: Apache-2.0 */
/* Fails one allocation of one program, in programs linked for that (product/meson.build).
 *
 * PALE_FAIL_ALLOC=NAME:K:FILE lets the K-th allocation of the program NAME return NULL. FILE, 16 bytes, is told how many allocations
 * there were and whether that one was among them; it is opened before main, for later the program has locked itself up. Forks count on from
 * where they were born. pale-policy is started without an environment and reads that of its parent. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEY "PALE_FAIL_ALLOC="

#ifdef FAULT_INTERPOSE
/* Linked dynamically: ours stand before the library's for every library in the program. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
#define REAL(name) __libc_##name
#define OURS(name) name
#else
void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
#define REAL(name) __real_##name
#define OURS(name) __wrap_##name
#endif

struct told {
    uint64_t count, failed;
};

static struct {
    bool mine;
    uint64_t at, count;
    struct told *told;
} state;

static char environment[65536];

/* The value of the variable in a block of strings, or NULL. */
static const char *find(const char *block, size_t n)
{
    for (size_t at = 0; at < n; at += strlen(block + at) + 1)
        if (strncmp(block + at, KEY, sizeof(KEY) - 1) == 0)
            return block + at + sizeof(KEY) - 1;
    return NULL;
}

static const char *read_environment(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0, got;
    while (fd >= 0 && (size_t)n < sizeof(environment) - 1 && (got = read(fd, environment + n, sizeof(environment) - 1 - (size_t)n)) > 0)
        n += got;
    if (fd >= 0)
        close(fd);
    return n > 0 ? find(environment, (size_t)n) : NULL;
}

static void __attribute__((constructor)) ask(void)
{
    char path[64], self[256] = "";
    int saved = errno;
    snprintf(path, sizeof(path), "/proc/self/exe");
    ssize_t n = readlink(path, self, sizeof(self) - 1);
    const char *name = n > 0 ? strrchr(self, '/') : NULL;
    const char *value = read_environment(getpid());
    if (!value)
        value = read_environment(getppid());
    size_t len = name ? strlen(name + 1) : 0;
    if (value && len && strncmp(value, name + 1, len) == 0 && value[len] == ':') {
        char *end;
        state.at = strtoull(value + len + 1, &end, 10);
        int fd = *end == ':' ? open(end + 1, O_RDWR | O_CLOEXEC) : -1;
        void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fd >= 0)
            close(fd);
        state.told = p == MAP_FAILED ? NULL : p;
        state.mine = state.told != NULL;
    }
    errno = saved;
}

static bool fails(void)
{
    if (!state.mine)
        return false;
    state.count++;
    if (state.count > state.told->count)
        state.told->count = state.count;
    if (state.count != state.at)
        return false;
    state.told->failed++;
    errno = ENOMEM;
    return true;
}

void *OURS(malloc)(size_t n)
{
    return fails() ? NULL : REAL(malloc)(n);
}

void *OURS(calloc)(size_t count, size_t n)
{
    return fails() ? NULL : REAL(calloc)(count, n);
}

void *OURS(realloc)(void *p, size_t n)
{
    return fails() ? NULL : REAL(realloc)(p, n);
}

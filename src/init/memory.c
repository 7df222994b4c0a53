/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of a file request.
 *
 * How the heap works: pieces are powers of two, each with its class before it; one that is freed waits in the list of its class for the
 * next of that size. Nothing is ever split, joined or given back: the process ends soon. */
#include "init/memory.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *memory_map(size_t bytes, struct pale_err *e)
{
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED)
        return p;
    err_set(e, PALE_LIMIT, "the box has no memory left for this");
    return NULL;
}

/* --- the heap --- */

#define HEAD alignof(max_align_t)
#define LEAST 5 /* the smallest piece is 32 bytes, its head among them */
#define CLASSES 26

static struct heap {
    char *at;
    size_t used;
    void *free[CLASSES]; /* the first of each class; each has the next in its first bytes */
} heap;

int memory_open_heap(struct pale_err *e)
{
    heap.at = memory_map(MEMORY_HEAP, e);
    return heap.at ? 0 : -(int)e->code;
}

static uint32_t *class_of(void *p)
{
    return (uint32_t *)(void *)((char *)p - HEAD);
}

void *memory_alloc(size_t n)
{
    uint32_t k = LEAST;
    void *p = NULL;
    if (!heap.at || n > MEMORY_HEAP / 2)
        return NULL;
    while (((size_t)1 << k) < n + HEAD)
        k++;
    if (heap.free[k]) {
        p = heap.free[k];
        memcpy(&heap.free[k], p, sizeof(void *));
        return p;
    }
    if (((size_t)1 << k) > MEMORY_HEAP - heap.used)
        return NULL;
    p = heap.at + heap.used + HEAD;
    heap.used += (size_t)1 << k;
    *class_of(p) = k;
    return p;
}

void memory_free(void *p)
{
    if (!p)
        return;
    uint32_t k = *class_of(p);
    memcpy(p, &heap.free[k], sizeof(void *));
    heap.free[k] = p;
}

void *memory_change(void *p, size_t n)
{
    void *bigger = memory_alloc(n);
    if (!p || !bigger)
        return bigger;
    size_t had = ((size_t)1 << *class_of(p)) - HEAD;
    memcpy(bigger, p, had < n ? had : n);
    memory_free(p);
    return bigger;
}

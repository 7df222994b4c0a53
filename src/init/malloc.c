/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the names by which the C library asks for memory. In pale-init they stand for the heap of a file request (init/memory.h): init
 * itself and every command before its program runs get none, so whatever asks for memory there by mistake fails in the first test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "init/memory.h"

void *malloc(size_t n)
{
    void *p = memory_alloc(n);
    if (!p)
        errno = ENOMEM;
    return p;
}

void *calloc(size_t count, size_t size)
{
    size_t n;
    void *p = __builtin_mul_overflow(count, size, &n) ? NULL : malloc(n);
    return p ? memset(p, 0, n) : NULL;
}

void *realloc(void *old, size_t n)
{
    void *p = memory_change(old, n);
    if (!p)
        errno = ENOMEM;
    return p;
}

void free(void *p)
{
    memory_free(p);
}

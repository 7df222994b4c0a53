/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of locals: an owning local carries a cleanup attribute and a null value; giving away is take_…(&x). */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void own_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline void own_release(void *p)
{
    free(*(void **)p);
    *(void **)p = NULL;
}

#define own_fd CLEANUP(own_close) int
#define own_mem CLEANUP(own_release)

static inline int take_fd(int *fd)
{
    int r = *fd;
    *fd = -1;
    return r;
}

static inline void *take_mem(void *p)
{
    void *r = *(void **)p;
    *(void **)p = NULL;
    return r;
}

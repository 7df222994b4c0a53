/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a file request, which is a process of its own and ends soon. pale-init itself never asks for any. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Zeroed memory that costs what is used of it, and is given back when the process ends. NULL with PALE_LIMIT. */
void *memory_map(size_t bytes, struct pale_err *e);

/* For the C library's regular expressions, which ask for memory by malloc (init/malloc.c): from one map of MEMORY_HEAP bytes, and only
 * once it has been opened. Before that, and when it is used up, there is none. */
#define MEMORY_HEAP (32u << 20)
int memory_open_heap(struct pale_err *e) MUST_CHECK;
void *memory_alloc(size_t n);
void *memory_change(void *p, size_t n);
void memory_free(void *p);

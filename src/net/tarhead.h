/* SPDX-License-Identifier: Apache-2.0 */
/* The header block of a tar archive, read strictly and written: ustar, and what GNU tar makes of it.
 *
 * Pure. Who owns an entry is not read: whoever unpacks owns it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TAR_BLOCK 512u
#define TAR_NAME_FIELD 100u
#define TAR_PREFIX_FIELD 155u
#define TAR_NAME_MAX (TAR_PREFIX_FIELD + 1 + TAR_NAME_FIELD)
#define TAR_FILE_MAX (1ull << 40)   /* a sparse file can be as long as it likes; nobody carries more than this */
#define TAR_EXTRA_MAX (1ull << 20)  /* of a header's records; each attribute of a file can have 64 KB */
#define TAR_END_BLOCKS 2            /* of zeros, after the last entry */
#define TAR_NUMBER_MAX 077777777777 /* in eleven digits, of a size or a time */

enum tar_type {
    TAR_FILE = '0',
    TAR_HARD_LINK = '1',
    TAR_LINK = '2',
    TAR_CHAR_DEVICE = '3',
    TAR_BLOCK_DEVICE = '4',
    TAR_FOLDER = '5',
    TAR_FIFO = '6',
    TAR_SPARSE = 'S',
    TAR_PAX = 'x',        /* more about the next entry */
    TAR_PAX_GLOBAL = 'g', /* about all that follow */
    TAR_LONG_NAME = 'L',  /* GNU's: the name of the next entry */
    TAR_LONG_LINK = 'K',  /* and its target */
};

struct tar_head {
    uint8_t type;      /* mostly an enum tar_type */
    unsigned mode;     /* permissions alone */
    unsigned set_bits; /* setuid, setgid, sticky: to be told of, not to be set */
    int64_t size, mtime;
    char name[TAR_NAME_MAX + 1];
    char link[TAR_NAME_FIELD + 1];
};

/* Reads a block. 1: a header; 0: a block of zeros; else an error whose text says what is wrong with the entry. ret->name is set
 * whatever comes back. */
int tar_head_parse(const uint8_t p[TAR_BLOCK], struct tar_head *ret, struct pale_err *e) MUST_CHECK;

/* Writes a header. Of a path that does not fit the beginning goes in; numbers that do not fit become 0. */
void tar_head_put(uint8_t ret[TAR_BLOCK], const struct tar_head *h);

/* How many bytes fill content of that size up to whole blocks. */
unsigned tar_padding(uint64_t size);

/* How long a path is without its last step. */
size_t tar_parent(const char *path, size_t n);

/* How much of a path goes into the prefix field: 0 if it needs none, SIZE_MAX if the two fields cannot hold it. */
size_t tar_split(const char *path, size_t n);

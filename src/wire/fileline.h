/* SPDX-License-Identifier: Apache-2.0 */
/* How file requests (init/builtin.h) answer: an exit status by meaning, entries, happenings. The one writer and the one parser of
 * each, for pale-init and for the host.
 *
 * How it works: pale-init writes in the box, so whoever reads takes every byte as hostile. An entry is
 *     TYPE MODE SIZE SECONDS NANOSECONDS INODE NAME\0TARGET\0
 * and a happening
 *     KIND TYPE NAME\0
 * each with single spaces and numbers in their only form (decimal, the mode octal). Parsers are pure and answer 1 (one is there),
 * 0 (more bytes are needed) or -1 (nothing of ours); what needs more than the maximum is nothing of ours, so a reader needs no more
 * memory than that. Parsed structs point into the bytes they came from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

/* --- the exit status --- */

/* 0; or this and an enum pale_code. Below lies what shells and programs use, above what we and signals do. */
#define FILE_STATUS_BASE 64

/* What a request that failed so ends with. An errno decides where there is one: for files more of them have a meaning than err_os
 * knows. */
int file_status(const struct pale_err *e);

/* PALE_OK for 0; PALE_OS for a status that is none of ours. */
enum pale_code file_status_code(uint64_t status);

/* --- entries --- */

#define FILE_ENTRY_MAX (96 + FILE_NAME_MAX + 1 + PATH_BYTES_MAX)

struct file_entry {
    char type;     /* f file, d folder, l symlink, p FIFO, s socket, c and b devices, ? else */
    uint32_t mode; /* permissions, up to 07777 */
    uint64_t size, inode;
    int64_t mtime;
    uint32_t mtime_ns;
    const char *name;   /* one plain name of a folder's entry; "" for what the request itself named */
    const char *target; /* of a symlink; else "" */
};

/* Into FILE_ENTRY_MAX bytes. Returns the length. */
size_t file_entry_write(const struct file_entry *en, char *ret);
int file_entry_parse(const void *p, size_t n, struct file_entry *ret, size_t *ret_used) MUST_CHECK;

/* --- happenings --- */

enum file_happening {
    FILE_READY,   /* what happens from now on is told */
    FILE_CREATED, /* may be told twice for what is in a folder that was created just then */
    FILE_CHANGED, /* content, permissions or times */
    FILE_REMOVED,
    FILE_MOVED_FROM,
    FILE_MOVED_TO,  /* with a folder comes all that is in it, untold */
    FILE_UNWATCHED, /* a folder that may not be read: what happens in it is not told */
    FILE_OVERFLOW,  /* some happenings were lost: look again */
    FILE_LIMIT,     /* one folder too many: the watch ends */
    FILE_HAPPENING_COUNT,
};

#define FILE_EVENT_MAX (16 + 2 + PATH_BYTES_MAX)

struct file_event {
    enum file_happening kind;
    bool folder;
    const char *name; /* relative to what is watched, with no step that is "." or ".."; "" for that itself */
};

const char *file_happening_name(enum file_happening kind);

/* Into FILE_EVENT_MAX bytes; the name is shorter than PATH_BYTES_MAX. Returns the length. */
size_t file_event_write(const struct file_event *ev, char *ret);
int file_event_parse(const void *p, size_t n, struct file_event *ret, size_t *ret_used) MUST_CHECK;

/* --- what goes in --- */

/* Permissions as requests give them: one to four octal digits, at most 7777. */
bool file_mode_parse(const char *s, uint32_t *ret);

/* Content for the request `write` goes in pieces, each after its length; one of length 0 is the end. So an input that merely stops,
 * because whoever sent it is gone, is not taken for a whole one. */
#define FILE_PIECE_HEAD 4
void file_piece_head(uint32_t n, uint8_t ret[FILE_PIECE_HEAD]);
uint32_t file_piece_length(const uint8_t head[FILE_PIECE_HEAD]);

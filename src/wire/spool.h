/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a command, kept for who asks for it later: its newest frames, up to so many bytes.
 *
 * How it works: the first bytes stay in memory, and most commands print no more. Then a file takes over, written round and round;
 * what is overwritten was the oldest, whole frames of it, and readers who had not seen it are told how much they missed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_MEMORY 4096u

struct spool {
    const char *dir; /* the file is DIR/job-NUMBER.log, made when it is needed */
    uint64_t number;
    uint64_t cap; /* bytes kept, heads of frames included; more than SPOOL_MEMORY */
    int fd;       /* -1 while memory suffices */
    uint8_t *mem;
    uint64_t begin, end; /* of what is kept; positions count every byte ever put in */
    uint64_t base;       /* where the file was begun, or begun anew: nothing before lies in it */
    uint64_t lost;       /* output bytes before begin */
    bool broken;         /* the disk refused: what was kept by then stays readable */
};

/* A reader's place: the beginning of a frame. */
struct spool_mark {
    uint64_t at;
    uint64_t bytes; /* of output before it */
};

void spool_init(struct spool *s, const char *dir, uint64_t number, uint64_t cap);
void spool_done(struct spool *s); /* the file stays */
void spool_forget(struct spool *s);

/* Lets go of what it has; readers are told what they missed. It may go on. */
void spool_drop(struct spool *s);

/* Bytes on the disk. */
uint64_t spool_stored(const struct spool *s);

/* Keeps a piece of output; false if it could not. */
bool spool_add(struct spool *s, uint8_t type, const void *p, size_t n);

/* Copies whole frames from the mark on and moves it behind them; 0 at the end, and when there is no room for the next.
 * *ret_missed: output bytes between the mark and what was there still. room is at least the longest frame. */
size_t spool_read(const struct spool *s, struct spool_mark *m, void *p, size_t room, uint64_t *ret_missed);

/* The mark of the frame that holds the output byte number offset, or the nearest there is. */
void spool_seek(const struct spool *s, uint64_t offset, struct spool_mark *ret);

/* What another spool over the same folder needs to go on with this one, whose file stays. What is in memory is copied to p (room: at
 * least SPOOL_MEMORY bytes); *ret: its length. */
struct spool_kept {
    uint64_t begin, end, lost;
    bool in_file;
};
struct spool_kept spool_keep(const struct spool *s, void *p, size_t *ret);
/* Takes it up. False, and the spool is empty, if it cannot be. */
bool spool_resume(struct spool *s, const struct spool_kept *k, const void *p, size_t n);

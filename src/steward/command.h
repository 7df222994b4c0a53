/* SPDX-License-Identifier: Apache-2.0 */
/* A command of ours, `pale …`, that does a deed in a process of its own.
 *
 * How it works: parts that paled sends go to the command's standard input; what comes by its standard output and standard error is handed
 * out as it comes. A client that leaves, or a paled that ends, ends the command, which is told to take back what it has begun. An input
 * that was cut off is not one that ended: the command is told to stop before its input is closed. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "wire/message.h"

typedef int command_ear(void *arg, const char *p, size_t n, struct pale_err *e);

struct command {
    const struct msg_deed *order;                /* the command finds it on DEED_ORDER_FD */
    int fd;                                      /* to paled */
    bool takes;                                  /* parts are still to come, the last of them empty */
    command_ear *answered, *said;                /* what it writes to its standard output, and to its standard error */
    int (*waits)(void *arg, struct pale_err *e); /* called from time to time; or NULL */
    void *arg;
    /* Its own. */
    pid_t pid;
    int in, out, err; /* its standard descriptors; -1: done with */
    struct buf frame;
    size_t at, left; /* of the part that it takes */
};

/* Runs it to its end: *ret is its status as waitpid has it. On failure it has ended, too. argv[0] is "pale". */
int command_run(struct command *c, char *const argv[], int *ret, struct pale_err *e) MUST_CHECK;

/* What a command with --json has answered. A failure that it tells of becomes the error. */
int command_judge(const char *text, size_t n, int status, struct jsonread *ret, struct pale_err *e) MUST_CHECK;

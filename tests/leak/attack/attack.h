/* SPDX-License-Identifier: Apache-2.0 */
/* What attack programs share. An attack is one attempt: it prints one line, "LEAK detail" if it got through or "HELD detail" if it
 * was refused, and ends with status 0. Where only the host can tell, it prints what it got hold of and then "TRIED". */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "confine/sysnr.h"

struct attack {
    const char *name;
    void (*run)(int argc, char **argv); /* argv[0] is the attack's name */
};

/* One table per theme, each ended by a row without a name. */
extern const struct attack door_attacks[], socket_attacks[], mount_attacks[], proc_attacks[], process_attacks[], file_attacks[],
    setid_attacks[], ipc_attacks[], exhaust_attacks[], tty_attacks[], ns_attacks[];

void leak(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void held(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Ends the attack with status 2: the case itself is broken. */
void broken(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Done; what was printed before is judged outside. */
void tried(void) __attribute__((noreturn));

/* Any result is a leak but a failure with one of these errnos; the list ends with 0. */
void judge(const char *what, long result, const int *refusals) __attribute__((noreturn));

/* A failure of any kind is a refusal. */
void judge_any(const char *what, long result) __attribute__((noreturn));

/* A word of the command line, or the end of the attack. */
char *word(int argc, char **argv, int n);
long number(int argc, char **argv, int n);

/* The raw call: no library stands between the attempt and the wall. */
#define CALL(nr, ...) syscall(nr, __VA_ARGS__)

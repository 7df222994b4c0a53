/* SPDX-License-Identifier: Apache-2.0 */
/* File requests: small functions of pale-init that run in place of a program, as the command's user, behind the command's own
 * confinement, with bytes over its standard descriptors. So a path of the box is resolved in the box, by nobody who could do
 * more than the box can.
 *
 *     read PATH [OFFSET LENGTH]        the bytes of a file; LENGTH may be - for all
 *     open PATH OFFSET LENGTH          the open file's entry, then those bytes: never more than the entry's size says, but of a
 *                                      file of size 0 (as in /proc) all there are; fewer only with a failure
 *     write PATH MODE over|new         the content on standard input (wire/fileline.h) becomes the file; MODE octal, or - for that
 *                                      of the file that is there, else 644; new: only if nothing is there
 *     list PATH                        a folder's entries, or the one entry of what is no folder
 *     stat PATH [follow]               one entry: of a symlink itself, or of what it leads to
 *     mkdir PATH [parents]             with parents, those above too, and no failure if it is there
 *     move FROM TO [new]               within one mount
 *     remove PATH [tree]               a file, a symlink, an empty folder; with tree a folder with all that is in it
 *     watch PATH [tree]                happenings, until standard input ends (init/watch.h)
 *     pack PATH, unpack PATH           trees (init/pack.h)
 *     lines PATH from|tail N COUNT BYTES   COUNT lines from the Nth on, or the last N; whole ones in BYTES, but for a single one
 *     edit PATH once|all               the first text on standard input, which is there once, becomes the second; or each does
 *     glob PATH PATTERN LIMIT plain|hidden   the newest of what matches below a folder (init/walk.h)
 *     grep PATH PATTERN GLOB FLAGS BEFORE AFTER MODE LIMIT   lines that match in a file or below a folder (init/grep.h)
 *     patch FOLDER write|check         the patch on standard input, on files below a folder, or whether it would fit (init/changes.h)
 *     layer FOLDER whole|hide|lay      a layer of an image on standard input, laid onto a folder (init/layer.h)
 *
 * Entries, happenings and the exit status are those of wire/fileline.h, what the requests from lines on answer that of wire/answer.h;
 * a request that fails says why in a line on standard error, for people. Paths that do not begin with a slash are relative to the
 * folder that commands begin in. */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "wire/message.h"

/* Runs the builtin that argv[0] names and returns its exit status. */
int builtin_run(const struct msg_exec *m);

/* A failed request: the line on standard error. Returns the exit status. */
int builtin_fail(const struct pale_err *e);

/* The same for a failed system call: "what path: why". */
int builtin_fail_os(const char *what, const char *path);

/* The same for a request whose words are not those above. */
int builtin_bad_words(const struct msg_exec *m);

/* Opens a file for reading without being caught by a FIFO or a device that a box may have put there. -1 with errno. */
int builtin_open_plain(const char *path, struct stat *ret);

/* The letter of a type in an entry (wire/fileline.h). */
char builtin_type_letter(mode_t mode);

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
 *
 * Entries, happenings and the exit status are those of wire/fileline.h; a request that fails says why in a line on standard
 * error, for people. */
#pragma once

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

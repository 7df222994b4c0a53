/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a box on standard output, here or as a daemon sends them. On a terminal every byte is made harmless and coloured; in a pipe a
 * patch is as git writes it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "box/rendition.h"
#include "cli/cli.h"

struct shown_change {
    enum rendition_form form;
    bool terminal;
    bool within; /* the beginning of this line has been printed; on a terminal the rest is not */
    unsigned count, troubles;
    struct buf line; /* that has not ended yet */
};

/* What --stat, --name-only, --patch and --json ask for. */
enum rendition_form shown_change_form(const struct args *a);

void shown_change_begin(struct shown_change *s, enum rendition_form form);
void shown_change_done(struct shown_change *s);
#define own_shown_change CLEANUP(shown_change_done) struct shown_change

/* Prints what a rendition has written, in pieces as they come; arg is a struct shown_change. JSON becomes one list, and what could not be
 * read is told on standard error. PALE_GONE if nobody reads it. */
int shown_change_take(void *arg, const void *p, size_t n, struct pale_err *e) MUST_CHECK;

/* The rest. */
int shown_change_end(struct shown_change *s, struct pale_err *e) MUST_CHECK;

/* Prints the first lines of a file that a box wrote, made harmless. */
void shown_change_content(int fd);

/* SPDX-License-Identifier: Apache-2.0 */
/* What a box has changed, written out for people and machines, one difference after another, so that no tree is too large.
 *
 * Names are quoted, or escaped as JSON has it. What a patch holds of a file is as the box wrote it: whoever shows it on a terminal makes it
 * harmless first. In the forms for people a line that begins with "// " tells of a path that could not be read, and why: no name begins so,
 * nor any other line of a patch. */
#pragma once

#include "base/err.h"
#include "box/review.h"

enum rendition_form {
    RENDITION_PATCH, /* as git writes it; `git apply` takes it */
    RENDITION_STAT,  /* a line for each file: what, how many lines */
    RENDITION_NAMES, /* names alone */
    RENDITION_JSON,  /* an object a line; what could not be read is of the change "trouble" */
    RENDITION_FORM_COUNT,
};

#define RENDITION_TROUBLE "// "

/* A form by its name: patch, stat, names, json. */
bool rendition_form(const char *name, enum rendition_form *ret);

typedef int rendition_out(void *arg, const void *p, size_t n, struct pale_err *e);

struct rendition {
    enum rendition_form form;
    const char *under;  /* what lies there and below; "": everything */
    rendition_out *out; /* other than 0 ends it and is its result */
    void *arg;
    int out_fd; /* the descriptor that out writes to stays open; -1: standard output, which does in any case */
};

/* Writes every difference. The process goes into seclusion for it, and stays there: it can print what it has, and end. */
int rendition_write(const struct review *v, const struct rendition *r, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* What a project says to agents (CLAUDE.md, AGENTS.md …), read so that nothing but a file of the project is ever passed on. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define INSTRUCTIONS_FILE_MAX 262144u /* a person writes it; more is a mistake, or not meant for a model */
#define INSTRUCTIONS_MAX (1u << 20)

/* Appends each file of names that there is below the folder, with its name before it. A link, a device or what is too long is not
 * passed on, and told of. */
int instructions_read(const char *folder, const char *const *names, struct buf *out, void (*note)(const char *fmt, ...) PRINTF_LIKE(1, 2),
                      struct pale_err *e) MUST_CHECK;

/* The first words to the model: where it is and which tools reach there. */
void instructions_preface(const char *project, const char *box, const char *hint, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0 */
/* Trees in and out of a box: a stream of entries over a builtin's standard descriptors (format in base/bundle.h). */
#pragma once

#include "wire/message.h"

/* pack PATH: writes the file or tree at PATH to standard output. */
int pack_out(const struct msg_exec *m);

/* unpack PATH: makes the stream on standard input appear at PATH. */
int pack_in(const struct msg_exec *m);

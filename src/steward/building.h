/* SPDX-License-Identifier: Apache-2.0 */
/* The deed that builds an image: `pale image build`, in a process of its own, which is told what to take by name alone, or gets an archive
 * from paled part by part. No path and no address of a client's ever reaches it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "wire/message.h"

/* Tells in parts; told gets the answer if an image was built, and stays empty if the parts have told why not. */
int building_run(const struct msg_deed *m, int fd, struct buf *told, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on boxes as archives: `pale export` and `pale import`, each in a process of its own. The archive goes through as opaque bytes, to
 * paled or from it, no faster than the other side takes them. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "box/place.h"
#include "wire/message.h"

/* Tells the archive, in parts. Nobody to take it ends the deed. */
int parcel_export(const struct msg_deed *m, int fd, struct pale_err *e) MUST_CHECK;

/* Takes the archive in parts, and tells what came of it: told gets the answer if a box was made, which *ret is then, and stays empty if the
 * parts have told why not. */
int parcel_import(const struct msg_deed *m, int fd, struct buf *told, struct place *ret, struct pale_err *e) MUST_CHECK;

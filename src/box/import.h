/* SPDX-License-Identifier: Apache-2.0 */
/* A box made from an export. Blocks.
 *
 * How it works: the archive has been unpacked in a box of its own into a folder of ours, where nobody writes any more (cli/verb_import.c).
 * Everything there is hostile: the waybill is read strictly, marks of the overlay are made from a list, each part must have the digest that
 * the waybill says and hold nothing that no box can make. Then the parts become the closed layer of a new box by renames, and the box is
 * one from the instant it has a policy, as every box is. Who is killed before leaves what `gc` takes away. */
#pragma once

#include <signal.h>

#include "base/buf.h"
#include "base/err.h"
#include "box/place.h"
#include "box/waybill.h"
#include "policy/policy.h"

/* Looks through what was unpacked below root_fd. stop: set once somebody interrupts; or NULL. text: empty, and holds what *ret points to.
 * PALE_CORRUPT if something is not what the waybill says. */
int import_verify(int root_fd, const volatile sig_atomic_t *stop, struct buf *text, struct waybill *ret, struct pale_err *e) MUST_CHECK;

/* The policy that the waybill wishes, read as one of a file is, without what belongs to another host. A live project becomes one for
 * review. complaints: what pale-policy says of one that is none. */
int import_wish(const struct waybill *w, struct policy *ret, struct buf *complaints, struct pale_err *e) MUST_CHECK;

struct import_order {
    const char *name, *tenant;   /* tenant NULL: the user's own */
    const struct policy *policy; /* checked */
    const struct waybill *bill;
    const char *digest; /* of the file it came in */
    int root_fd;        /* whose parts are taken */
    bool without_project;
    const char *caller;
};

/* Name, id, host name, machine id, tokens and audit log are its own; the first record of the log tells where it comes from. */
int import_make(const struct import_order *o, struct place *ret, struct pale_err *e) MUST_CHECK;

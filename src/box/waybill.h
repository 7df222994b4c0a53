/* SPDX-License-Identifier: Apache-2.0 */
/* The waybill of an export: its first member, which says where it comes from, what the box was allowed, and what is in each part.
 *
 * How it works: one JSON object. Written by us, but what comes in was carried by strangers: read strictly, every member once, none besides,
 * within WAYBILL_BYTES_MAX. Its policy is only a wish, and is read by nobody but pale-policy (box/import.h). */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "base/sha256.h"
#include "box/stack.h"
#include "policy/policy.h"
#include "tier/wall.h"

#define WAYBILL_VERSION 2
#define WAYBILL_BASES_MAX (1u << 20) /* bytes of them; with more, none are carried */

struct waybill_part {
    bool there;
    uint64_t entries, bytes;
    char digest[SHA256_HEX]; /* of tree/layerdigest.h, of what is carried */
};

struct waybill {
    char box[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1]; /* the source */
    char snapshot[SNAPSHOT_NAME_MAX + 1];           /* "": as the box was then */
    uint64_t created_ms;
    uint64_t left; /* pipes and sockets, which stayed behind */
    struct waybill_part part[PART_COUNT];
    /* Once it was read; they point into the text. */
    struct jsonread policy;
    struct jsonread left_out; /* a list of texts: what of the policy stayed behind */
    struct jsonread bases;    /* a list of texts, as landed_import takes them: what the box's versions in its project began with */
    const char *bases_text;   /* when it is written: the same, each with a newline; NULL: none */
};

/* What there is in a part; *ret_left grows by what is not carried. stop: set once somebody interrupts; or NULL. PALE_CORRUPT if it holds
 * what no box can make. */
int waybill_measure(int part_fd, enum wall_part part, const volatile sig_atomic_t *stop, struct waybill_part *ret, uint64_t *ret_left,
                    struct pale_err *e) MUST_CHECK;

/* Takes out of a policy what belongs to one host, or may be a secret: folders of the host, values of variables, variables that pass,
 * addresses and ports of the host that rules open, ports that are published, and a guard list of its own. An image is known by its digest
 * alone. Each thing that was taken out is told in a line, if tell is not NULL. */
int waybill_strip(struct policy *p, void (*tell)(void *arg, const char *what), void *arg, struct pale_err *e) MUST_CHECK;

/* The text, with what is left of the policy, which is changed for it. */
int waybill_write(const struct waybill *w, struct policy *p, struct buf *out, struct pale_err *e) MUST_CHECK;

int waybill_parse(const char *text, size_t len, struct waybill *ret, struct pale_err *e) MUST_CHECK;

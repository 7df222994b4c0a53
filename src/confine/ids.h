/* SPDX-License-Identifier: Apache-2.0 */
/* Who a box's processes are on the host: the id maps of its user namespaces.
 *
 * How it works: an ordinary user with a subordinate range (/etc/subuid and newuidmap) gets a range map in which their own id
 * keeps its number; one without gets a map of that single id. Root is never mapped into a box: its boxes live in a high range
 * of their own, and host folders reach them through idmapped mounts. Inside a user namespace of someone else only the ids that
 * exist there are used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum ids_kind { IDS_ONE, IDS_RANGE };

struct ids_extent {
    uint32_t inside, outside, count;
};

struct ids {
    enum ids_kind kind;
    bool by_helper;              /* newuidmap and newgidmap must write the map, unless it is in a home */
    bool idmap_mounts;           /* host folders need an idmapped mount */
    uint32_t uid, gid;           /* of the box's user, inside */
    uint32_t host_uid, host_gid; /* the owner of host folders that the box's user stands for */
    struct ids_extent uids[3], gids[3];
    int uid_extents, gid_extents;
};

/* IDS_WANT_ROOT: the single id that looks like root inside, for boxes that have their own root to install in. It has no more rights than
 * any other, and what it makes belongs to the user. */
enum ids_want { IDS_WANT_MANY, IDS_WANT_ONE, IDS_WANT_ROOT };

/* Decides the maps for the calling user. seed spreads root's boxes over the high range. */
int ids_choose(struct ids *ret, uint64_t seed, enum ids_want want, struct pale_err *e) MUST_CHECK;

/* Writes the maps of the process pid (in its own /proc), by hand or by the helpers. In a home it is always by hand. */
int ids_write_maps(const struct ids *ids, pid_t pid, struct pale_err *e) MUST_CHECK;

/* A home for the user namespaces of many boxes: one that has the same ids as its parent, all that ids maps to, made with the
 * helpers. Who enters it may write maps by hand, so that the two helpers, slow as programs go, run once and not for every box.
 * Returns a descriptor, which keeps it. Only for maps by_helper. */
int ids_make_home(const struct ids *ids, struct pale_err *e) MUST_CHECK;

/* The map of the inner user namespace: the same ids again, seen from the outer one. proc_fd is a private procfs. */
int ids_write_inner(const struct ids *ids, int proc_fd, pid_t pid, struct pale_err *e) MUST_CHECK;

/* A user namespace that shows the owner of host folders as the box's user, for mounts_idmap. Returns a descriptor. */
int ids_mount_userns(const struct ids *ids, struct pale_err *e) MUST_CHECK;

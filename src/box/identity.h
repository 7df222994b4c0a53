/* SPDX-License-Identifier: Apache-2.0 */
/* Who a box is: the id that it got at birth, and what its folders say of it.
 *
 * How it works: an id is 128 random bits, minted when a box is made, and never derived from anything. It stands in the data folder, as the
 * target of a symlink `id`; it names the state folder and stands in it too, as the target of `born`; and a keeper is told it first on
 * every connection. The state folder says where the data folder is (`data`). Only where both say the same is there a box. What a path says
 * by itself is nothing: a folder that was moved, copied, came with a repository, or has lost its state is told as what it is, and
 * never taken over.
 *
 * Between the folders stands one link, which has one of three names, and each change of a box's place is one rename of something:
 *   `data`     the box is there, at this path
 *   `moving`   it is on its way to this path: being made (no `data` yet) or being renamed (beside `data`); it is there if its folder is
 *   `removing` it is being removed, and is no box any more; whoever comes across it finishes that */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "box/place.h"

#define IDENTITY_ID "id"
#define IDENTITY_BORN "born"
#define IDENTITY_DATA "data"
#define IDENTITY_MOVING "moving"
#define IDENTITY_REMOVING "removing"

/* Ids of boxes that were made before ids were random. Such boxes are told as what they are. */
#define IDENTITY_OLD_LEN 16

int identity_mint(char ret[BOX_ID_LEN + 1], struct pale_err *e) MUST_CHECK;
bool identity_is_id(const char *text);

/* What a folder, or the lack of one, turns out to be. */
enum identity_kind {
    IDENTITY_WHOLE,     /* a box of this user's */
    IDENTITY_NO_FOLDER, /* there is nothing at this path */
    IDENTITY_UNMARKED,  /* a folder that says of no box */
    IDENTITY_OLD,       /* of an earlier version of pale */
    IDENTITY_STATELESS, /* of a box that this state folder does not know, or not any more */
    IDENTITY_MOVED,     /* of a box whose folder was elsewhere, and is not there any more */
    IDENTITY_COPIED,    /* of a box whose folder is elsewhere, and still there */
    IDENTITY_REMOVED,   /* of a box that somebody was killed over while he removed it */
};

/* What is at p->data, a real path? Fills id, and for what has a state folder of ours state and socket too; *ret_other (PATH_BYTES_MAX):
 * where the box is, or was, if that is elsewhere. */
int identity_look(struct place *p, enum identity_kind *ret, char *ret_other, struct pale_err *e) MUST_CHECK;

/* The error for what is none: p as identity_look has left it. Returns its negative code. */
int identity_refuse(const struct place *p, enum identity_kind kind, const char *other, struct pale_err *e);

/* The id in a folder, or that a link of a state folder names: false if there is none. */
bool identity_read(int dir_fd, const char *link, char ret[BOX_ID_LEN + 1]);

/* Is the folder at this path of the box with this id? */
bool identity_is_at(const char *data, const char *id);

/* Where the state folder says that its box is: false if it says nothing. */
bool identity_recorded(const char *state, const char *link, char ret[PATH_BYTES_MAX]);

/* What a name, or an id, stands for, whatever that is. IDENTITY_NO_FOLDER: a box whose folder is gone. */
int place_look(const char *name, enum place_scope scope, struct place *ret, enum identity_kind *ret_kind, char *ret_other,
               struct pale_err *e) MUST_CHECK;

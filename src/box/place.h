/* SPDX-License-Identifier: Apache-2.0 */
/* Where a box is: its name, its id, its folders.
 *
 * How it works: the data folder holds what the box writes; it is found by name, first in a .pale folder above the working
 * folder (a project's box), then among the user's own. Everything we trust about a box (its policy, its audit log, its jobs'
 * logs) stands in the user's state folder under the box's id, so that a .pale that came with a cloned repository is an
 * unknown box and not a policy somebody else wrote for us. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/own.h"

struct place {
    char name[BOX_NAME_MAX + 1];
    char id[BOX_ID_LEN + 1];
    bool project;                  /* a project's box, not the user's */
    char tenant[BOX_NAME_MAX + 1]; /* whose it is; "": the user's own */
    char data[PATH_BYTES_MAX];     /* real path */
    char state[PATH_BYTES_MAX];    /* the folder of what we trust */
    char socket[108];              /* the keeper's */
};

enum place_scope { SCOPE_ANY, SCOPE_PROJECT, SCOPE_USER };

/* Finds a box that was made here, by its name, or, if there is none of that name, by its id. Whatever looks for boxes first finishes a
 * rename that somebody was killed over (box/rename.h). */
int place_find(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e) MUST_CHECK;

/* A box by its id, wherever it is. */
int place_by_id(const char *id, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The same as it stands, for who must not wait: a rename that somebody was killed over is not finished first. */
int place_peek(const char *id, struct place *ret, struct pale_err *e) MUST_CHECK;

/* A tenant's box by its name, as it stands, or with the tenant "" the user's own. */
int place_owned(const char *tenant, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* A name that no box can have is told so. */
int place_check_name(const char *name, struct pale_err *e) MUST_CHECK;

/* What the place of a box with this data folder would be. data: a real path that ends in a box's name. */
int place_of(const char *data, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Calls fn for each box that this user has made, in whatever project; stops at a negative answer. */
int place_each_made(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e) MUST_CHECK;

/* Decides where a new box of that name goes and makes its folders: in .pale of the working folder's project, among a tenant's boxes
 * (tenant NULL: none), or the user's own. PALE_EXISTS if there is one. */
int place_create(const char *name, enum place_scope scope, const char *tenant, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The same, in the folder where another box is, and whose it is. */
int place_create_beside(const struct place *other, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Takes back what place_create has made: folders, empty yet. What holds anything stays. */
void place_undo(const struct place *p);

/* Forgets a box: its state, and with data also its data folder. */
int place_remove(const struct place *p, bool data, struct pale_err *e) MUST_CHECK;

/* A .pale that holds nothing but the .gitignore we put there goes with its last box. */
void place_tidy(const struct place *p);

/* Calls fn for each box of the user and of the project above the working folder; stops at a negative answer. */
int place_each(bool all, int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e) MUST_CHECK;

/* True if a project's box hides a user's box of the same name. */
bool place_shadows(const struct place *p);

/* A socket's path has room for 107 bytes, and names in the runtime folder take 22. */
#define RUNTIME_BYTES_MAX 85

/* The user's folders; made (0700) where missing. The runtime folder must belong to the user and to nobody else. */
int place_state_dir(char *ret, size_t cap, struct pale_err *e) MUST_CHECK;
int place_runtime_dir(char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* Where the user's boxes and images are; not made. */
int place_data_dir(char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* Where answers stand that are not one box's (box/standing.h). It must belong to the user and be writable by nobody else; make: it is made
 * (0700) where missing, else PALE_NOT_FOUND. */
int place_approvals_dir(bool make, char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* The user's configuration; not made. */
int place_config_dir(char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* The path of something in the user's configuration ($XDG_CONFIG_HOME/pale, else ~/.config/pale). False if he has none, or it is too long.
 */
bool place_config(const char *name, char *ret, size_t cap);

/* A program of ours: beside the calling one (a build folder), or in libexec/pale next to its bin folder. */
int place_program(const char *name, char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* The command itself, for a program that may stand in libexec/pale. */
int place_command(char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* Where a box is: its name, its id, its folders.
 *
 * How it works: a box is looked for by its name, first in a .pale folder above the working folder (a project's box), then among the
 * user's own. What is found there has an id (box/identity.h); everything we trust about the box (its policy, its audit log, its jobs'
 * logs) stands in the user's state folder under that id. The files of a user's box are in its data folder; those of a project's box are
 * in the state folder, so that nobody who may write in the project comes near them, and .pale/NAME holds nothing but the id. */
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
    bool lost;                     /* its data folder is not where it was, or it is half made or half removed (place_any) */
};

/* What the name of a folder that is being removed begins with; its id follows. */
#define PLACE_GONE ".gone-"

enum place_scope { SCOPE_ANY, SCOPE_PROJECT, SCOPE_USER };

/* Finds a box that was made here, by its name, or, if there is none of that name, by its id. PALE_CONFLICT: there is something of that
 * name, but it is not a box of this user's; what it is, is told with the remedy. */
int place_find(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The same, and also one whose folder is gone or elsewhere: for whatever ends or forgets it. */
int place_find_any(const char *name, enum place_scope scope, struct place *ret, struct pale_err *e) MUST_CHECK;

/* A box by its id, wherever it is. */
int place_by_id(const char *id, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Whatever has a state folder under this id; lost says if it is a box. data: where it was; "" if nobody knows. */
int place_any(const char *id, struct place *ret, struct pale_err *e) MUST_CHECK;

/* Fills state and socket from the id. */
int place_complete(struct place *p, struct pale_err *e) MUST_CHECK;

/* Fills project and tenant from data. */
void place_set_owner(struct place *p);

/* A tenant's box by its name, as it stands, or with the tenant "" the user's own. */
int place_owned(const char *tenant, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* A name that no box can have is told so. */
int place_check_name(const char *name, struct pale_err *e) MUST_CHECK;
/* … of a box that is to be made or renamed: one that has the form of an id would be taken for that of another box. */
int place_check_new_name(const char *name, struct pale_err *e) MUST_CHECK;

/* Calls fn for each box that this user has made, in whatever project; stops at a negative answer. */
int place_each_made(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e) MUST_CHECK;

/* The same for everything that has a state folder, lost ones too. A state folder that cannot be read is an error. */
int place_each_state(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e) MUST_CHECK;

/* Decides where a new box of that name goes (in .pale of the working folder's project, among a tenant's boxes, tenant NULL: none, or among
 * the user's own), with a new id, and makes the folder around it. PALE_EXISTS if there is one, PALE_CONFLICT if there is something else. */
int place_plan(const char *name, enum place_scope scope, const char *tenant, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The same, in the folder where another box is, and whose it is. */
int place_plan_beside(const struct place *other, const char *name, struct place *ret, struct pale_err *e) MUST_CHECK;

/* The folder around a folder. */
void place_above(const char *path, char ret[PATH_BYTES_MAX]);

/* Opens the one around the box's data folder, by a way without a symlink: it had none when the box was found. */
int place_open_above(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Removes a box: its state and its data folder. Without data its files and the list of its layers stay, for `pale adopt`. What has its path
 * by now and is another's is left alone. */
int place_remove(const struct place *p, bool data, struct pale_err *e) MUST_CHECK;

/* Gives up what is known of a box; its folder, wherever it is, stays. */
int place_forget(const struct place *p, struct pale_err *e) MUST_CHECK;

/* Makes the folder of a project's box again, under the name of one that is being made: where it was if its project is there, else in the
 * working folder's project. Fills data. */
int place_remake(struct place *p, bool there, struct pale_err *e) MUST_CHECK;

/* A .pale that holds nothing but the .gitignore we put there goes with its last box. */
void place_tidy(const struct place *p);

/* Calls fn for each box of the user and of the project above the working folder; stops at a negative answer. */
int place_each(bool all, int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e) MUST_CHECK;

/* True if a project's box hides a user's box of the same name. */
bool place_shadows(const struct place *p);

/* A socket's path has room for 107 bytes, and names in the runtime folder take 38. */
#define RUNTIME_BYTES_MAX 69

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

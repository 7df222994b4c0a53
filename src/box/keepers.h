/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the keepers that run by their processes, whatever has become of the folders of their boxes.
 *
 * How it works: a keeper's command line says whose it is. A process of a box may write there what it likes, but it is in a pid namespace
 * of its own, which /proc tells; other processes of this user are the user. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/place.h"

struct keepers_one {
    struct place place; /* as its command line says; lost if its state folder or its data folder is not there any more */
    bool is_once;       /* of a one-shot box: nothing of place but name and id */
    pid_t pid;
};

/* Calls fn for each keeper of this user that goes by this user's state folder, or is of a one-shot box; stops at a negative answer. */
int keepers_each(int (*fn)(void *arg, const struct keepers_one *k), void *arg, struct pale_err *e) MUST_CHECK;

/* The keeper of the box with this id: 1, or 0 if none runs. */
int keepers_find(const char *id, struct keepers_one *ret, struct pale_err *e) MUST_CHECK;

/* A signal for the keeper, and for no process that has got its number since. */
bool keepers_signal(const struct keepers_one *k, int signal);

/* SPDX-License-Identifier: Apache-2.0 */
/* The box that an agent works in: found, or made with the flags. */
#pragma once

#include "box/place.h"
#include "cli/cli.h"

#define ENSURE_NAME "agent" /* unless --box says otherwise */

extern const struct option ensure_options[];

struct ensured {
    struct place place;
    bool is_made; /* it was not there before; with only_look it is not there yet and place has but a name */
};

/* The box of --box, else the project's own. One that is there must show the folder, and be as the flags say if there are any. One that
 * is not is made in the project, shows the working folder live unless a flag says otherwise, and is started. only_look: nothing is made. */
int ensure_box(const struct args *a, const char *project, bool only_look, struct ensured *ret, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* Pale's own folders, which no box may be given: whoever writes there writes policies, and whoever reads there reads other boxes. */
#pragma once

#include "base/err.h"
#include "policy/policy.h"

/* Who builds an image names its staging in this variable of the environment, which no policy can set: boxes that it starts may be given
 * what lies in there. */
#define OWNPLACES_STAGING "PALE_STAGING"

/* Refuses a policy that shows a host folder which is, holds or lies in one of pale's own (state, sockets, boxes, images, configuration,
 * cache; of root also other users'), or which is or lies in a project's .pale. By device and inode, through every mount. */
int ownplaces_refuse(const struct policy *p, struct pale_err *e) MUST_CHECK;

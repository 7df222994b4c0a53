/* SPDX-License-Identifier: Apache-2.0 */
/* The verb image, done by a daemon elsewhere. */
#pragma once

#include "cli/cli.h"

int far_image_ls(struct args *a);
int far_image_inspect(struct args *a);
int far_image_verify(struct args *a);
int far_image_rm(struct args *a);

/* An archive goes there as the body of the request; what else an image is built of is that host's. */
int far_image_build(struct args *a);

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: from the bytes of a connection to the call of an operation. Both take what they can of c->in, and are false if there is
 * nothing to do before more comes. */
#pragma once

#include "rest/conn.h"

bool asking_head(struct conn *c);
bool asking_body(struct conn *c);

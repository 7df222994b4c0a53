/* SPDX-License-Identifier: Apache-2.0 */
/* The host's key: an Ed25519 pair in the user's state folder, made at first need. */
#pragma once

#include "base/err.h"

#define HOSTKEY_PUBLIC 32
#define HOSTKEY_SECRET 64
#define HOSTKEY_SIGNATURE 64

/* Reads the pair from host.key in the folder, or makes it; host.pub beside it holds the public half in hex for who verifies
 * elsewhere. Two makers at once end with the same key. */
int hostkey_open(const char *dir, unsigned char ret_public[HOSTKEY_PUBLIC], unsigned char ret_secret[HOSTKEY_SECRET],
                 struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* A running pale-seal: a text goes in, key and signature come out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct sealer {
    int fd;
    pid_t pid;
};

#define SEALER_KEY_HEX 65
#define SEALER_SIGNATURE_HEX 129

struct sealed {
    char key[SEALER_KEY_HEX], signature[SEALER_SIGNATURE_HEX];
};

void sealer_init(struct sealer *s);

/* Starts one that signs with the key in the user's state folder; it makes itself ready meanwhile. */
int sealer_start(struct sealer *s, struct pale_err *e) MUST_CHECK;

int sealer_sign(struct sealer *s, const void *text, size_t n, struct sealed *ret, struct pale_err *e) MUST_CHECK;

/* Is this the signature of the text by the holder of this key? */
int sealer_verify(const struct sealed *sealed, const void *text, size_t n, bool *ret_good, struct pale_err *e) MUST_CHECK;

/* Ends it, whatever it is doing. */
void sealer_done(struct sealer *s);

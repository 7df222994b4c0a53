/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed texts: what a client is given to keep and to bring back, unchanged, for the same request, in time.
 *
 * A ticket is "EXPIRY.TEXT.MAC" with the text in base64 and the HMAC-SHA256 over expiry, text and what it is bound to. The text is no
 * secret; that it is ours is what the seal says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TICKET_KEY 32

void ticket_seal(const uint8_t key[TICKET_KEY], const char *bound_to, const char *text, uint64_t expires_ms, struct buf *ret);

/* False: it is none of ours, of something else, or too old. */
bool ticket_open(const uint8_t key[TICKET_KEY], const char *bound_to, const char *ticket, uint64_t now_ms, struct buf *ret_text);

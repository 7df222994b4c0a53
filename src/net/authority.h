/* SPDX-License-Identifier: Apache-2.0 */
/* The authority of a URI, as Host, CONNECT and a target with http:// have it: NAME[:PORT] or [ADDRESS][:PORT].
 *
 * Pure; the name points into the text and is handed out as it was sent. Whoever decides by it brings it into its one form first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/httphead.h"

#define AUTHORITY_NAME_MAX 255u /* of a name with its last dot; DNS allows less, and who knows names says so */

struct authority {
    struct http_text name; /* without brackets */
    bool is_six;           /* it stood in brackets */
    uint16_t port;         /* 0: none is named */
};

/* Letters, digits, '-', '.' and '_' for a name; no user, no escapes, no empty port, no zero before it. False: it is none. */
bool authority_parse(const struct http_text *t, struct authority *ret);

/* Has the text only bytes that a name, or an address of IPv6, has? */
bool authority_is_name(const struct http_text *t, bool is_six);

/* Do both name the same place, whatever the case of their letters, if a port that is not named is that one? */
bool authority_is_same(const struct authority *a, const struct authority *b, uint16_t usual_port);

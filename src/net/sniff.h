/* SPDX-License-Identifier: Apache-2.0 */
/* What a flow speaks, by its first bytes.
 *
 * Pure; decided with the fewest bytes that leave no doubt, at most SNIFF_BYTES_MAX. Nothing is guessed: a flow is called HTTP where its
 * first bytes can only be a method and the beginning of a target, whatever the method. That is no promise that the rest is well formed;
 * the parsers of each protocol decide that. What is unknown is not harmless: the server may well understand it, so no rule that speaks of
 * names, methods or paths can hold for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum sniff {
    SNIFF_MORE, /* nothing is certain yet */
    SNIFF_TLS,
    SNIFF_HTTP,  /* HTTP/1 */
    SNIFF_HTTP2, /* the preface of HTTP/2 without TLS */
    SNIFF_SSH,
    SNIFF_UNKNOWN,
};

#define SNIFF_BYTES_MAX 24u /* the longest method, a space and http:// */

enum sniff sniff(const uint8_t *p, size_t n);

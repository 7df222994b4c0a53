/* SPDX-License-Identifier: Apache-2.0 */
/* Where a daemon is, as a person writes it: unix:///run/user/1000/pale/paled.sock, http://127.0.0.1:8839, https://name[:port].
 *
 * Strict: no user, no path, no query; a name is a host name or an address. Plain http reaches this host alone, because a token goes
 * over it. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "net/address.h"

#define HOSTURL_NAME_MAX 253
#define HOSTURL_PORT 8839 /* of http, if none is written */

enum hosturl_kind { HOSTURL_UNIX, HOSTURL_HTTP, HOSTURL_HTTPS };

struct hosturl {
    enum hosturl_kind kind;
    char path[108];                   /* HOSTURL_UNIX */
    char name[HOSTURL_NAME_MAX + 1];  /* the others; an address of version 6 without its brackets */
    struct address address;           /* if the name is one; else its family is 0 */
    char host[HOSTURL_NAME_MAX + 16]; /* … as a Host header has it */
    uint16_t port;
};

int hosturl_parse(const char *text, struct hosturl *ret, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the audit log that is about the network, read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* What a box and the network put into texts was quoted when it was written down, and is quoted again where it is shown. */
struct netline {
    char event[32]; /* net.allow, net.deny, net.ask, net.end, net.flood, net.cut, net.lift, net.lost, net.restarted */
    char time[32], kind[16];
    char host[4 * DOMAIN_NAME_MAX], address[64], rule[320], reason[320], by[32];
    uint16_t port;
    uint64_t job, flow, in, out, refused; /* 0: there is none */
};

/* False: it is a record of something else, or none. */
bool netline_parse(const char *line, size_t n, struct netline *ret);

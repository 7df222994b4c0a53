/* SPDX-License-Identifier: Apache-2.0 */
/* The eras of the protocol: which one a request is of, what that one asks of it, and how its results are dressed. */
#pragma once

#include "mcp/mcp.h"

/* Finds r->era, and checks versions, _meta and the headers that every request has. False: it has been answered. */
bool era_check(struct mcp_request *r, const struct mcp_heads *heads);

/* The header that repeats a parameter of the method. */
bool era_check_name(struct mcp_request *r, const struct mcp_heads *heads);

/* What a modern result has besides. Takes over result and gives it back. */
json_t *era_dress(const struct mcp_request *r, json_t *result);

void era_initialize(struct mcp_request *r);
void era_discover(struct mcp_request *r);

/* The answer with a status of HTTP. Takes over data. */
void mcp_fail(struct mcp_request *r, unsigned status, int code, json_t *data, const char *text);

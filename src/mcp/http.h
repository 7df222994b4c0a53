/* SPDX-License-Identifier: Apache-2.0 */
/* MCP over HTTP: the operation `mcp`, one message in each request. */
#pragma once

#include "mcp/mcp.h"

#define MCP_ALIVE_MS 15000 /* a client that waits longer hears that it is not forgotten */

void mcp_http_post(struct call *c, const struct mcp_offer *offer);

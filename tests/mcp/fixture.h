/* SPDX-License-Identifier: Apache-2.0 */
/* What the fixture offers over MCP, as a file says: tools, prompts and resources that answer, speak and ask in the ways the conformance
 * suite wants to see. The file is ours and is trusted. */
#pragma once

#include "mcp/mcp.h"

extern const struct mcp_offer fixture_offer;

/* Reads the file. False: it is none of ours. */
bool fixture_load(const char *path);

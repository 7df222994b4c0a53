/* SPDX-License-Identifier: Apache-2.0 */
/* MCP over a connection, one message a line, as over standard input and output: the operation `mcp.lines`. */
#pragma once

#include "mcp/mcp.h"

#define MCP_LINE_MAX (1u << 20)

void mcp_lines_open(struct call *c, const struct mcp_offer *offer);

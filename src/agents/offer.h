/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools a request to a model offers it, in whatever dialect: Anthropic messages, OpenAI chat and responses, Gemini.
 *
 * Pure and bounded. What it cannot name is told as "?", which nobody expects: doubt is a tool too many. */
#pragma once

#include <stddef.h>

#define OFFER_BODY_MAX (16u << 20) /* instructions and schemas take some hundred kilobytes */
#define OFFER_NAME_MAX 200
#define OFFER_OUTPUT_MAX 65536

/* Before each name, a line each, in the output of a program that lists tools which no request shows (agents/codex.c). */
#define OFFER_MARK "pale-offers:"

/* Calls tell for every tool, also those that a search of the model's has found and its input tells of, and those after OFFER_MARK in its
 * outputs; one of a namespace is NAMESPACE/NAME. Returns how many, -1 if the body is no JSON object. */
int offer_read(const char *body, size_t n, void (*tell)(void *arg, const char *name), void *arg);

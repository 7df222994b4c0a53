/* SPDX-License-Identifier: Apache-2.0 */
/* A list of words that it owns: arguments or variables of a program to be started. Failure sticks; who starts it checks once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/own.h"

#define WORDS_MAX 2048 /* a large environment has some hundred */

struct words {
    char *item[WORDS_MAX + 1]; /* ended by NULL, as exec wants it */
    size_t count;
    bool failed;
};

void words_done(struct words *w);
#define own_words CLEANUP(words_done) struct words

void words_add(struct words *w, const char *s);
void words_addf(struct words *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* NAME=VALUE, in place of a value that is there. */
void words_set_env(struct words *w, const char *name, const char *value);

/* The value of a variable in a list of NAME=VALUE, or NULL. */
const char *words_env(const struct words *w, const char *name);

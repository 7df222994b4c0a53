/* SPDX-License-Identifier: Apache-2.0 */
/* A search through text in memory, line by line. */
#pragma once

#include <locale.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "init/pattern.h"

struct search {
    struct pattern pattern;
    regex_t of_characters, of_bytes; /* for text that is UTF-8, and for what is not */
    locale_t characters, bytes;
};

struct search_text {
    char *at; /* ends in a NUL, and has no other */
    size_t len;
    bool is_utf8;
};

/* After memory_open_heap. What it holds is the process's for as long as that lives. */
int search_init(struct search *s, const char *pattern, bool fixed, bool ignore_case, struct pale_err *e) MUST_CHECK;

/* Looks for the next line that matches, from a line's beginning on. The text is changed and restored meanwhile. */
bool search_next(struct search *s, struct search_text *t, size_t from, size_t *ret_begin, size_t *ret_end);

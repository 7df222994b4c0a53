/* SPDX-License-Identifier: Apache-2.0 */
/* The question below confine/weaken.h: has a test build been told to leave this defence out? In a release the answer is
 * constantly no, and the environment is not even read. confine/weaken.c holds the list of words. */
#pragma once

#include <stdbool.h>
#ifdef PALE_WEAKEN
#include <stdlib.h>
#include <string.h>
#endif

static inline bool weak_word(const char *word)
{
#ifdef PALE_WEAKEN
    const char *at = getenv("PALE_WEAKEN");
    size_t len = strlen(word);
    while (at && *at) {
        size_t n = strcspn(at, ",");
        if (n == len && memcmp(at, word, n) == 0)
            return true;
        at += n;
        at += *at == ',';
    }
#else
    (void)word;
#endif
    return false;
}

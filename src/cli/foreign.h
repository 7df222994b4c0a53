/* SPDX-License-Identifier: Apache-2.0 */
/* Options by the words of other tools: those whose meaning is plain stand for an option of ours, others are told what to say here. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct foreign {
    const char *word, *verbs; /* verbs: the only ones it is about, with blanks around each; NULL: all */
    const char *means;        /* the name of an option of ours; NULL: none, told is what to say instead */
    const char *value;        /* the value that it stands for; NULL: it takes what ours takes */
    const char *told;
};

/* NULL if nobody uses this word for anything we know. word is n bytes, without dashes. */
const struct foreign *foreign_find(const char *verb, const char *word, size_t n);

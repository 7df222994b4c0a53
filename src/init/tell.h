/* SPDX-License-Identifier: Apache-2.0 */
/* Telling: answers of a file request on their way to its standard output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/answer.h"

/* Keeps an answer until there are enough of them; false: nobody takes them. */
bool tell_answer(const struct answer *a);

/* Sends what is kept. */
bool tell_flush(void);

/* Bytes told so far. */
size_t tell_bytes(void);

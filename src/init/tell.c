/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the buffer of answers. One per process: a builtin does one thing and ends. */
#include "init/tell.h"

#include <string.h>

#include "base/fd.h"

static char out[65536];
static size_t out_len, sent;

bool tell_flush(void)
{
    size_t n = out_len;
    out_len = 0;
    sent += n;
    return fd_write_full(1, out, n);
}

bool tell_answer(const struct answer *a)
{
    if (sizeof(out) - out_len < ANSWER_HEAD_MAX && !tell_flush())
        return false;
    out_len += answer_head_write(a, out + out_len);
    if (a->text_len > sizeof(out) - out_len) {
        sent += a->text_len;
        return tell_flush() && fd_write_full(1, a->text, a->text_len);
    }
    if (a->text_len > 0)
        memcpy(out + out_len, a->text, a->text_len);
    out_len += a->text_len;
    return true;
}

size_t tell_bytes(void)
{
    return sent + out_len;
}

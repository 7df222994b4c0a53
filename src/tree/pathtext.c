/* SPDX-License-Identifier: Apache-2.0 */
/* Writes paths into lists of ours, and reads them again. */
#include "tree/pathtext.h"

#include "tree/view.h"

void pathtext_write(struct buf *out, const char *path)
{
    for (const unsigned char *s = (const unsigned char *)path; *s; s++)
        if (*s > ' ' && *s < 0x7f && *s != '%')
            buf_add(out, s, 1);
        else
            buf_addf(out, "%%%02x", *s);
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool pathtext_read(char *word)
{
    char *to = word;
    for (const char *s = word; *s; s++) {
        if (*s != '%') {
            *to++ = *s;
            continue;
        }
        int high = hex_value(s[1]), low = high < 0 ? -1 : hex_value(s[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        s += 2;
    }
    *to = 0;
    return *word && view_is_path(word);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the quoting of foreign text. Pure. */
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/weak.h"

size_t quote_utf8(const unsigned char *p, size_t n, unsigned *ret_point)
{
    if (n == 0)
        return 0;
    unsigned c = p[0], point, least;
    size_t len;
    if (c < 0x80) {
        *ret_point = c;
        return 1;
    } else if (c >= 0xc2 && c < 0xe0) {
        len = 2, point = c & 0x1f, least = 0x80;
    } else if (c >= 0xe0 && c < 0xf0) {
        len = 3, point = c & 0x0f, least = 0x800;
    } else if (c >= 0xf0 && c < 0xf5) {
        len = 4, point = c & 0x07, least = 0x10000;
    } else {
        return 0;
    }
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3f);
    }
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *ret_point = point;
    return len;
}

/* Code points that change how their neighbours are shown, or show nothing. */
bool quote_is_deceptive(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

size_t quote_plain(const void *p, size_t n)
{
    const unsigned char *s = p;
    size_t i = 0;
    while (i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
        i++;
    return i;
}

static void quote(struct buf *b, const void *p, size_t n, size_t most, bool double_backslash)
{
    const unsigned char *s = p;
    size_t shown = 0;
    if (weak_word("quote")) {
        buf_add(b, p, n < most ? n : most);
        return;
    }
    for (size_t i = 0; i < n;) {
        unsigned point = 0;
        char out[16];
        size_t run = quote_plain(s + i, n - i);
        if (run > 0 && shown + run <= most) {
            buf_add(b, s + i, run);
            shown += run;
            i += run;
            continue;
        }
        size_t len = quote_utf8(s + i, n - i, &point), w;
        if (len == 0) {
            w = (size_t)snprintf(out, sizeof(out), "\\x%02x", s[i]);
            len = 1;
        } else if (point == '\n' || point == '\t' || point == '\r' || (point == '\\' && double_backslash)) {
            w = (size_t)snprintf(out, sizeof(out), "\\%c", point == '\n' ? 'n' : point == '\t' ? 't' : point == '\r' ? 'r' : '\\');
        } else if (quote_is_deceptive(point)) {
            w = (size_t)snprintf(out, sizeof(out), point < 0x100 ? "\\x%02x" : "\\u{%x}", point);
        } else {
            memcpy(out, s + i, len);
            w = len;
        }
        if (shown + w > most) {
            buf_add_text(b, "…");
            return;
        }
        buf_add(b, out, w);
        shown += w;
        i += len;
    }
}

void quote_text(struct buf *b, const void *p, size_t n, size_t most)
{
    quote(b, p, n, most, true);
}

void quote_again(struct buf *b, const void *p, size_t n, size_t most)
{
    quote(b, p, n, most, false);
}

const char *quote_into(char *ret, size_t cap, const void *p, size_t n)
{
    struct buf b; /* in ret, and never larger: pale-init, which does not allocate, complains with this too */
    buf_init_lent(&b, cap, ret, cap);
    quote_text(&b, p, n, cap > 4 ? cap - 4 : 0);
    if (buf_text(&b) != ret)
        ret[0] = 0;
    return ret;
}

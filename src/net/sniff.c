/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the telling of protocols by their first bytes. */
#include "net/sniff.h"

#include <stdbool.h>
#include <string.h>

#define METHOD_MAX 16u

/* Does p begin as the word does, as far as there are bytes? Letters of the word are in lower case and match both. */
static bool begins(const uint8_t *p, size_t n, const char *word)
{
    for (size_t i = 0; i < n && word[i]; i++)
        if (p[i] != (uint8_t)word[i] && !(p[i] >= 'A' && p[i] <= 'Z' && p[i] + 32 == word[i]))
            return false;
    return true;
}

static bool is_method(const uint8_t *p, size_t n, const char *method)
{
    return n == strlen(method) && memcmp(p, method, n) == 0;
}

/* What follows a method and its space. */
static enum sniff sniff_target(const uint8_t *method, size_t len, const uint8_t *p, size_t n)
{
    if (n == 0)
        return SNIFF_MORE;
    if (p[0] == '/')
        return SNIFF_HTTP;
    if (p[0] == '*' && is_method(method, len, "PRI"))
        return SNIFF_HTTP2;
    if ((p[0] == '*' && is_method(method, len, "OPTIONS")) || (p[0] > ' ' && p[0] < 0x7f && is_method(method, len, "CONNECT")))
        return SNIFF_HTTP;
    if (!begins(p, n, "http://"))
        return SNIFF_UNKNOWN;
    return n >= strlen("http://") ? SNIFF_HTTP : SNIFF_MORE;
}

enum sniff sniff(const uint8_t *p, size_t n)
{
    size_t len = 0;
    if (n == 0)
        return SNIFF_MORE;
    if (p[0] == 0x16) /* a record of TLS that holds a handshake, and the first half of its version */
        return n == 1 ? SNIFF_MORE : p[1] == 3 ? SNIFF_TLS : SNIFF_UNKNOWN;
    while (len < n && len <= METHOD_MAX && p[len] >= 'A' && p[len] <= 'Z')
        len++;
    if (len == 0 || len > METHOD_MAX)
        return SNIFF_UNKNOWN;
    if (len == n)
        return SNIFF_MORE;
    if (p[len] == '-' && is_method(p, len, "SSH"))
        return SNIFF_SSH;
    return p[len] == ' ' ? sniff_target(p, len, p + len + 1, n - len - 1) : SNIFF_UNKNOWN;
}

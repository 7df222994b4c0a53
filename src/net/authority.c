/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of authorities. */
#include "net/authority.h"

#include <string.h>
#include <strings.h>

#define PORT_DIGITS_MAX 5u

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

static bool is_six_byte(char c)
{
    return http_hex(c) >= 0 || c == ':' || c == '.';
}

static bool take_port(const char *p, size_t n, uint16_t *ret)
{
    uint32_t v = 0;
    if (n == 0 || n > PORT_DIGITS_MAX || p[0] == '0')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(p[i]))
            return false;
        v = v * 10 + (uint32_t)(p[i] - '0');
    }
    *ret = (uint16_t)v;
    return v <= UINT16_MAX;
}

bool authority_is_name(const struct http_text *t, bool is_six)
{
    for (size_t i = 0; i < t->len; i++)
        if (!(is_six ? is_six_byte(t->at[i]) : is_name_byte(t->at[i])))
            return false;
    return t->len > 0 && t->len <= AUTHORITY_NAME_MAX;
}

bool authority_parse(const struct http_text *t, struct authority *ret)
{
    struct authority a = {.is_six = t->len > 0 && t->at[0] == '['};
    const char *p = t->at + a.is_six, *end = t->at + t->len;
    a.name.at = p;
    while (p < end && (a.is_six ? is_six_byte(*p) : is_name_byte(*p)))
        p++;
    a.name.len = (size_t)(p - a.name.at);
    if (!authority_is_name(&a.name, a.is_six))
        return false;
    if (a.is_six && (p == end || *p++ != ']'))
        return false;
    if (p < end && (*p != ':' || !take_port(p + 1, (size_t)(end - p - 1), &a.port)))
        return false;
    *ret = a;
    return true;
}

bool authority_is_same(const struct authority *a, const struct authority *b, uint16_t usual_port)
{
    return a->is_six == b->is_six && a->name.len == b->name.len && strncasecmp(a->name.at, b->name.at, a->name.len) == 0 &&
           (a->port ? a->port : usual_port) == (b->port ? b->port : usual_port);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading and showing of numbers. Pure. */
#include "base/number.h"

#include <stdio.h>
#include <string.h>

/* Reads digits with up to `places` decimals; *ret is value * 10^places. Moves *s past what it read. */
static bool decimal(const char **s, int places, uint64_t *ret)
{
    uint64_t v = 0;
    const char *p = *s;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    int left = places;
    if (*p == '.' && places > 0) {
        p++;
        if (*p < '0' || *p > '9')
            return false;
        for (; *p >= '0' && *p <= '9'; p++, left--)
            if (left == 0 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
                return false;
    }
    for (; left > 0; left--)
        if (__builtin_mul_overflow(v, 10, &v))
            return false;
    *s = p;
    *ret = v;
    return true;
}

bool number_u64(const char *s, uint64_t max, uint64_t *ret)
{
    uint64_t v;
    if (!decimal(&s, 0, &v) || *s || v > max)
        return false;
    *ret = v;
    return true;
}

bool number_i64(const char *s, int64_t *ret)
{
    uint64_t v;
    bool negative = *s == '-';
    if (!number_u64(s + negative, (uint64_t)INT64_MAX + negative, &v) || (negative && v == 0))
        return false;
    *ret = negative ? -(int64_t)(v - 1) - 1 : (int64_t)v;
    return true;
}

bool number_size(const char *s, uint64_t *ret_bytes)
{
    static const char letters[] = "KMGT";
    uint64_t v;
    if (!decimal(&s, 0, &v))
        return false;
    int shift = 0;
    if (*s && *s != 'B') {
        char up = *s == 'k' ? 'K' : *s;
        const char *l = strchr(letters, up);
        if (!l)
            return false;
        shift = 10 * (int)(l - letters + 1);
        s++;
        if (*s == 'i') {
            s++;
            if (*s != 'B')
                return false;
        }
    }
    if (*s == 'B')
        s++;
    if (*s || v > (UINT64_MAX >> shift))
        return false;
    *ret_bytes = v << shift;
    return true;
}

bool number_duration(const char *s, uint64_t *ret_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t v;
    if (!decimal(&s, 3, &v))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(s, units[i].unit) == 0) {
            if (__builtin_mul_overflow(v, units[i].ms, &v))
                return false;
            *ret_ms = v / 1000;
            return true;
        }
    return false;
}

static bool fixed(const char *s, int places, uint64_t *ret)
{
    uint64_t v;
    if (!decimal(&s, places, &v) || *s)
        return false;
    *ret = v;
    return true;
}

bool number_milli(const char *s, uint64_t *ret_milli)
{
    return fixed(s, 3, ret_milli);
}

bool number_micro(const char *s, uint64_t *ret_micro)
{
    return fixed(s, 6, ret_micro);
}

const char *number_show_bytes(uint64_t bytes, char *ret, size_t cap)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t u = 0;
    uint64_t tenths = bytes < UINT64_MAX / 10 ? bytes * 10 : UINT64_MAX;
    while (tenths >= 10240 && u + 1 < sizeof(units) / sizeof(units[0])) {
        tenths /= 1024;
        u++;
    }
    if (tenths % 10 == 0)
        snprintf(ret, cap, "%llu%s", (unsigned long long)(tenths / 10), units[u]);
    else
        snprintf(ret, cap, "%llu.%llu%s", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10), units[u]);
    return ret;
}

const char *number_show_ms(uint64_t ms, char *ret, size_t cap)
{
    unsigned long long v = ms;
    if (v < 1000)
        snprintf(ret, cap, "%llums", v);
    else if (v < 60000)
        snprintf(ret, cap, "%llu.%02llus", v / 1000, v % 1000 / 10);
    else if (v < 3600000)
        snprintf(ret, cap, "%llum%02llus", v / 60000, v / 1000 % 60);
    else
        snprintf(ret, cap, "%lluh%02llum", v / 3600000, v / 60000 % 60);
    return ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the text rules of paths and names. Pure. */
#include "base/path.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/weak.h"

bool path_is_normal(const char *p)
{
    size_t len = strnlen(p, PATH_BYTES_MAX);
    if (p[0] != '/' || len >= PATH_BYTES_MAX)
        return false;
    if (len == 1)
        return true;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            return false;
    const char *at = p;
    while (*at) {
        const char *name = at + 1;
        size_t n = strcspn(name, "/");
        if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        at = name + n;
    }
    return true;
}

bool path_is_within(const char *p, const char *base)
{
    size_t n = strlen(base);
    if (n == 1)
        return true;
    return strncmp(p, base, n) == 0 && (p[n] == 0 || p[n] == '/');
}

bool path_is_box_name(const char *s)
{
    size_t n = strnlen(s, BOX_NAME_MAX + 1);
    if (weak_word("names"))
        return n > 0 && n <= BOX_NAME_MAX;
    if (n == 0 || n > BOX_NAME_MAX || s[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-'))
            return false;
    return true;
}

bool path_join(char *ret, size_t cap, const char *dir, const char *name)
{
    size_t d = strlen(dir);
    int n = snprintf(ret, cap, "%s%s%s", dir, d && dir[d - 1] == '/' ? "" : "/", name);
    return n >= 0 && (size_t)n < cap;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns routes. */
#include "rest/route.h"

#include <stdio.h>
#include <string.h>

static bool path_fits(const char *pattern, const struct target *t)
{
    const char *at = pattern + 1;
    for (size_t i = 0; i < t->segments; i++) {
        size_t n = strcspn(at, "/");
        if (n == 0)
            return false;
        if (at[0] != '{' && (strlen(t->segment[i]) != n || memcmp(at, t->segment[i], n) != 0))
            return false;
        if (at[0] == '{' && t->segment[i][0] == 0)
            return false;
        at += n;
        if (*at == '/')
            at++;
    }
    return *at == 0 && t->segments > 0;
}

const struct op *route_find(const struct http_text *method, const struct target *t, unsigned *ret_status, char *allow, size_t cap)
{
    *ret_status = 404;
    allow[0] = 0;
    for (const struct op *o = op_table; o->name; o++) {
        if (!path_fits(o->path, t))
            continue;
        if (strlen(o->method) == method->len && memcmp(o->method, method->at, method->len) == 0)
            return o;
        size_t n = strlen(allow);
        snprintf(allow + n, cap - n, "%s%s", n ? ", " : "", o->method);
        *ret_status = 405;
    }
    return NULL;
}

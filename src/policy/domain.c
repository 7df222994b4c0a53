/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the form of host names in a policy. Pure.
 *
 * How it works: the bytes may be hostile. There is one canonical form, made of letters, digits and hyphens, and everything
 * after this point compares that form and nothing else; whatever does not fit it is an error and never repaired. */
#include "policy/domain.h"

#include <string.h>

#include "base/quote.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *s, size_t n)
{
    if (n == 0 || n > DOMAIN_LABEL_MAX || s[0] == '-' || s[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(s[i]) && s[i] != '-')
            return false;
    return true;
}

/* A last label of digits, or one that starts like a hexadecimal number, is how addresses look to resolvers. */
static bool is_numeric(const char *s, size_t n)
{
    if (n >= 2 && s[0] == '0' && s[1] == 'x')
        return true;
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return true;
}

/* What keeps the lower-case name from being one, or NULL. */
static const char *trouble_with(const char *name)
{
    for (const char *s = name;; s++) {
        size_t n = strcspn(s, ".");
        if (!is_label(s, n))
            return "is no host name; labels are letters, digits and inner hyphens (write other scripts as xn--…)";
        if (!s[n])
            return is_numeric(s, n) ? "is an address; rules are for names" : NULL;
        s += n;
    }
}

int domain_parse(const char *s, size_t len, bool pattern, char ret[DOMAIN_NAME_MAX + 1], struct pale_err *e)
{
    char low[DOMAIN_NAME_MAX + 1] = {0}, shown[200];
    quote_into(shown, sizeof(shown), s, len);
    if (len == 0 || len > DOMAIN_NAME_MAX)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no host name of 1 to %d bytes", shown, DOMAIN_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        low[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
    const char *name = low;
    if (pattern && strncmp(low, "*.", 2) == 0)
        name += 2;
    bool any = pattern && len == 1 && low[0] == '*';
    /* A NUL in the middle would end the name early here and not elsewhere. */
    const char *why = strlen(low) != len    ? "holds a NUL byte"
                      : low[len - 1] == '.' ? "ends with a dot; write it without"
                      : any                 ? NULL
                                            : trouble_with(name);
    if (why)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" %s", shown, why);
    memcpy(ret, low, len + 1);
    return 0;
}

bool domain_covers(const char *outer, const char *inner)
{
    if (strcmp(outer, inner) == 0 || strcmp(outer, "*") == 0)
        return true;
    if (outer[0] != '*')
        return false;
    /* "*.x.org" covers what ends with ".x.org" and has something before it; "*.a.x.org" does. */
    size_t suffix = strlen(outer) - 1, n = strlen(inner);
    return n > suffix && strcmp(inner + n - suffix, outer + 1) == 0;
}

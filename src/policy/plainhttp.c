/* SPDX-License-Identifier: Apache-2.0 */
/* Owns methods and paths of egress rules. Pure; rules and requests may be hostile. */
#include "policy/plainhttp.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "policy/strlist.h"

static const char *const method_names[] = {
    [METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD",   [METHOD_OPTIONS] = "OPTIONS", [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT", [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE"};
static_assert(sizeof(method_names) / sizeof(method_names[0]) == METHOD_COUNT, "a name for every method");

const char *plainhttp_method_name(enum policy_method m)
{
    return method_names[m];
}

/* The bit of a method; 0 if it is none of ours. */
static unsigned method_bit(const char *s, size_t len)
{
    for (unsigned i = 0; i < METHOD_COUNT; i++)
        if (strlen(method_names[i]) == len && memcmp(method_names[i], s, len) == 0)
            return 1u << i;
    return 0;
}

int plainhttp_methods(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    const char *end = s + len;
    char shown[40];
    for (;; s++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
        unsigned bit = method_bit(s, (size_t)(stop - s));
        if (!bit)
            return err_set(e, PALE_BAD_INPUT, "\"%s\" is no method; use GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE",
                           quote_into(shown, sizeof(shown), s, (size_t)(stop - s)));
        r->methods |= bit;
        s = stop;
        if (!comma)
            return 0;
    }
}

void plainhttp_methods_text(unsigned methods, struct buf *out)
{
    const char *before = "";
    for (unsigned i = 0; i < METHOD_COUNT; i++)
        if (methods >> i & 1) {
            buf_addf(out, "%s%s", before, method_names[i]);
            before = ",";
        }
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

/* "/", "/a/b", "/a/", "/a/" and a star: no empty part but the last, none of dots alone. */
static bool is_path(const char *s, size_t len)
{
    if (len == 0 || len > EGRESS_PATH_MAX || s[0] != '/')
        return false;
    if (s[len - 1] == '*' && s[len - 2] == '/')
        len--;
    for (size_t i = 1; i < len; i++) {
        size_t dots = 0, from = i;
        for (; i < len && s[i] != '/'; i++) {
            if (!is_unreserved(s[i]))
                return false;
            dots += s[i] == '.';
        }
        if (dots == i - from)
            return false;
    }
    return true;
}

int plainhttp_paths(struct policy_egress *r, const char *s, size_t len, struct pale_err *e)
{
    const char *end = s + len;
    char one[EGRESS_PATH_MAX + 1], shown[80];
    for (;; s++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
        size_t n = (size_t)(stop - s);
        if (!is_path(s, n))
            return err_set(e, PALE_BAD_INPUT, "\"%s\" is no path; write /a or /a/* with letters, digits and -._~ only",
                           quote_into(shown, sizeof(shown), s, n));
        memcpy(one, s, n);
        one[n] = 0;
        int ret = strlist_add(&r->paths, one, e);
        if (ret < 0)
            return ret;
        if (r->paths.count > EGRESS_PATHS_MAX)
            return err_set(e, PALE_LIMIT, "a rule has more than %d paths; use one such as /a/*", EGRESS_PATHS_MAX);
        s = stop;
        if (!comma)
            return 0;
    }
}

/* Is a path, or if it ends with a star all that it means, meant by this one? */
static bool path_covers(const char *outer, const char *inner, size_t len)
{
    size_t n = strlen(outer);
    if (outer[n - 1] == '*')
        return len >= n - 1 && memcmp(outer, inner, n - 1) == 0;
    return len == n && memcmp(outer, inner, n) == 0;
}

bool plainhttp_matches(const struct policy_egress *r, const struct http_text *method, const struct http_text *path, bool unknown)
{
    unsigned bit = method->at ? method_bit(method->at, method->len) : 0;
    bool good = !r->methods || (bit ? (r->methods & bit) != 0 : unknown), found = r->paths.count == 0 || (!path->at && unknown);
    for (size_t i = 0; path->at && i < r->paths.count; i++)
        found |= path_covers(r->paths.item[i], path->at, path->len);
    return good && found;
}

static bool list_has(const struct policy_strings *l, const char *inner)
{
    for (size_t i = 0; i < l->count; i++)
        if (path_covers(l->item[i], inner, strlen(inner)))
            return true;
    return false;
}

bool plainhttp_covers(const struct policy_egress *outer, const struct policy_egress *inner)
{
    if (outer->methods && (!inner->methods || (inner->methods & ~outer->methods)))
        return false;
    for (size_t i = 0; outer->paths.count && i < inner->paths.count; i++)
        if (!list_has(&outer->paths, inner->paths.item[i]))
            return false;
    return !outer->paths.count || inner->paths.count;
}

bool plainhttp_meets(const struct policy_egress *a, const struct policy_egress *b)
{
    bool common = !a->paths.count || !b->paths.count;
    for (size_t i = 0; i < a->paths.count; i++)
        common |= list_has(&b->paths, a->paths.item[i]);
    for (size_t i = 0; i < b->paths.count; i++)
        common |= list_has(&a->paths, b->paths.item[i]);
    return common && (!a->methods || !b->methods || (a->methods & b->methods));
}

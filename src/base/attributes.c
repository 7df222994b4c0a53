/* SPDX-License-Identifier: Apache-2.0 */
/* Owns extended attributes as bytes. */
#include "base/attributes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/limits.h"
#include "base/own.h"

bool attributes_is_own(const char *name)
{
    return strncmp(name, "user.", 5) == 0 && name[5] && strncmp(name, "user.overlay.", 13) != 0;
}

static void put_length(uint8_t ret[ATTRIBUTE_LENGTH_BYTES], uint64_t v)
{
    for (unsigned i = 0; i < ATTRIBUTE_LENGTH_BYTES; i++)
        ret[i] = (uint8_t)(v >> (8 * i));
}

/* The least name in the list that comes after the last one; NULL if there is none. A list is a few names. */
static const char *next_name(const char *list, ssize_t n, const char *last)
{
    const char *best = NULL;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1)
        if (attributes_is_own(list + i) && strcmp(list + i, last) > 0 && (!best || strcmp(list + i, best) < 0))
            best = list + i;
    return best;
}

int attributes_read(int fd, struct buf *out, struct pale_err *e)
{
    char at[32];
    uint8_t length[ATTRIBUTE_LENGTH_BYTES];
    size_t began = out->len;
    own_mem char *list = NULL, *value = NULL;
    snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
    ssize_t n = listxattr(at, NULL, 0);
    if (n <= 0)
        return n == 0 || errno == ENOTSUP ? 0 : err_os(e, "read the attributes");
    list = malloc(XATTR_LIST_BYTES_MAX);
    value = malloc(XATTR_LIST_BYTES_MAX);
    if (!list || !value)
        return err_nomem(e);
    n = listxattr(at, list, XATTR_LIST_BYTES_MAX);
    for (const char *name = ""; n > 0 && (name = next_name(list, n, name));) {
        ssize_t len = getxattr(at, name, value, XATTR_LIST_BYTES_MAX);
        if (len < 0)
            return err_os(e, "read an attribute");
        put_length(length, (uint64_t)len);
        buf_add(out, name, strlen(name) + 1);
        buf_add(out, length, sizeof(length));
        buf_add(out, value, (size_t)len);
        if (out->len - began > ATTRIBUTES_BYTES_MAX)
            return err_set(e, PALE_UNSUPPORTED, "it has more than %u bytes of extended attributes", ATTRIBUTES_BYTES_MAX);
    }
    return n < 0 ? err_os(e, "read the attributes") : out->failed ? err_nomem(e) : 0;
}

bool attributes_next(const uint8_t *p, size_t n, size_t *at, const char **ret_name, const uint8_t **ret_value, size_t *ret_len)
{
    const uint8_t *end = *at < n ? memchr(p + *at, 0, n - *at) : NULL;
    uint64_t len = 0;
    if (!end || (size_t)(p + n - end - 1) < ATTRIBUTE_LENGTH_BYTES)
        return false;
    for (unsigned i = 0; i < ATTRIBUTE_LENGTH_BYTES; i++)
        len |= (uint64_t)end[1 + i] << (8 * i);
    const uint8_t *value = end + 1 + ATTRIBUTE_LENGTH_BYTES;
    if (len > (size_t)(p + n - value))
        return false;
    *ret_name = (const char *)p + *at;
    *ret_value = value;
    *ret_len = (size_t)len;
    *at = (size_t)(value - p) + (size_t)len;
    return true;
}

int attributes_set(int fd, const uint8_t *p, size_t n, struct pale_err *e)
{
    const char *name;
    const uint8_t *value;
    size_t at = 0, len;
    while (attributes_next(p, n, &at, &name, &value, &len)) {
        if (!attributes_is_own(name))
            return err_set(e, PALE_BAD_INPUT, "the attribute %.100s is not to be set", name);
        if (fsetxattr(fd, name, value, len, 0) < 0)
            return err_os(e, "set the attribute %.100s", name);
    }
    return at == n ? 0 : err_set(e, PALE_BAD_INPUT, "its attributes are damaged");
}

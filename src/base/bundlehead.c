/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the heads of a bundle. Pure. */
#include "base/bundlehead.h"

#include <string.h>

#include "base/limits.h"

static void put_number(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_number(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

size_t bundle_head_put(uint8_t ret[BUNDLE_HEAD_MAX], const struct bundle_head *h, const char *name)
{
    ret[0] = (uint8_t)h->type;
    ret[1] = h->name_len;
    put_number(ret + 2, h->mode, 2);
    put_number(ret + 4, (uint64_t)h->mtime, 8);
    put_number(ret + 12, h->size, 8);
    memcpy(ret + BUNDLE_HEAD_BYTES, name, h->name_len);
    return BUNDLE_HEAD_BYTES + h->name_len;
}

bool bundle_head_parse(const uint8_t p[BUNDLE_HEAD_BYTES], struct bundle_head *ret)
{
    if (p[0] < BUNDLE_FILE || p[0] > BUNDLE_ERROR)
        return false;
    *ret = (struct bundle_head){.type = (enum bundle_type)p[0],
                                .mode = (unsigned)get_number(p + 2, 2),
                                .mtime = (int64_t)get_number(p + 4, 8),
                                .size = get_number(p + 12, 8),
                                .name_len = p[1]};
    switch (ret->type) {
    case BUNDLE_FILE:
        return ret->mode <= 0777 && ret->name_len && ret->size <= INT64_MAX;
    case BUNDLE_FOLDER:
        return ret->mode <= 0777 && ret->name_len && ret->size == 0;
    case BUNDLE_LINK:
        return ret->mode <= 0777 && ret->name_len && ret->size > 0 && ret->size < PATH_BYTES_MAX;
    default:
        return ret->mode == 0 && ret->mtime == 0 && ret->size == 0 && ret->name_len == 0;
    }
}

bool bundle_is_name(const char *name, size_t n)
{
    if (n == 0 || n > BUNDLE_NAME_MAX || memchr(name, 0, n) || memchr(name, '/', n))
        return false;
    return name[0] != '.' || (n != 1 && (n != 2 || name[1] != '.'));
}

bool bundle_is_inner_link(const char *target, int depth)
{
    bool named = false;
    if (target[0] == '/')
        return false;
    depth--; /* the bundle's own folder is the last one inside */
    while (*target) {
        size_t n = strcspn(target, "/");
        bool up = n == 2 && target[0] == '.' && target[1] == '.';
        /* A ".." after a name climbs from wherever that name leads, which another link may decide. */
        if (up && (named || --depth < 0))
            return false;
        named = named || (n > 0 && !up);
        target += n;
        target += strspn(target, "/");
    }
    return true;
}

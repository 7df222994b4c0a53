/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a policy to its image. */
#include "box/imageref.h"

#include <stdio.h>

#include "base/own.h"
#include "box/place.h"

int imageref_store(struct store *ret, struct pale_err *e)
{
    char data[PATH_BYTES_MAX];
    int r = place_data_dir(data, sizeof(data), e);
    return r < 0 ? r : store_open(ret, data, e);
}

int imageref_find(const char *ref, struct image *ret, struct pale_err *e)
{
    own_store s = STORE_NONE;
    int r = imageref_store(&s, e);
    if (r == 0)
        r = store_find(&s, ref, ret, e);
    return r < 0 ? err_prefix(e, "image") : 0;
}

int imageref_root(const char *ref, char *ret, size_t cap, struct pale_err *e)
{
    own_image i = {.lock_fd = -1};
    int r = imageref_find(ref, &i, e);
    if (r == 0)
        snprintf(ret, cap, "%s", i.root);
    return r;
}

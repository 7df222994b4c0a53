/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of users' settings. */
#include "agents/usersettings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-"

bool usersettings_get(const char *file, const char *const *path, struct buf *text, struct jsonread *ret)
{
    char name[PATH_BYTES_MAX];
    const char *home = getenv("HOME");
    struct jsonread v, inner;
    if (!home || snprintf(name, sizeof(name), "%s/%s", home, file) >= (int)sizeof(name))
        return false;
    own_fd fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fd_read_all(fd, text, NULL) < 0 || !jsonread_parse((const char *)text->data, text->len, &v))
        return false;
    for (; *path; path++, v = inner)
        if (v.kind != JSONREAD_OBJECT || !jsonread_get(&v, *path, &inner))
            return false;
    *ret = v;
    return true;
}

void usersettings_text(const char *file, const char *const *path, char *ret, size_t cap)
{
    own_buf b = {0};
    struct jsonread v;
    ret[0] = 0;
    buf_init(&b, USERSETTINGS_MAX);
    if (!usersettings_get(file, path, &b, &v) || v.kind != JSONREAD_TEXT)
        return;
    jsonread_text(&v, ret, cap);
    if (ret[strspn(ret, WORD)])
        ret[0] = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the table of mounts of this process. */
#include "box/mounttable.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/number.h"

/* The kernel writes a space, tab, line feed or backslash in a path as \ooo. */
static void unescape(char *s)
{
    char *to = s;
    for (const char *at = s; *at; to++)
        if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' && at[3] <= '7') {
            *to = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
            at += 4;
        } else {
            *to = *at++;
        }
    *to = 0;
}

/* "36 35 98:0 /root /point options …": the fields up to the mount point. */
static bool parse_row(char *line, struct mount_row *ret)
{
    char *field[5], *rest = line;
    for (size_t i = 0; i < 5; i++)
        if (!(field[i] = strsep(&rest, " ")) || !rest)
            return false;
    uint64_t id;
    if (!number_u64(field[0], UINT64_MAX, &id) || strlen(field[2]) >= sizeof(ret->device))
        return false;
    *ret = (struct mount_row){.id = id, .root = field[3], .point = field[4]};
    memcpy(ret->device, field[2], strlen(field[2]) + 1);
    unescape(field[3]);
    unescape(field[4]);
    return true;
}

int mount_table_parse(struct mount_table *t, char *text, struct pale_err *e)
{
    size_t lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    t->count = 0;
    t->row = calloc(lines + 1, sizeof(*t->row));
    if (!t->row)
        return err_nomem(e);
    for (char *rest = text; rest && *rest;) {
        char *line = strsep(&rest, "\n");
        if (*line && t->count <= lines && !parse_row(line, &t->row[t->count++]))
            return err_set(e, PALE_UNSUPPORTED, "/proc/self/mountinfo has a line that is not understood");
    }
    return 0;
}

int mount_table_read(struct mount_table *t, struct pale_err *e)
{
    own_buf b = {0};
    own_fd fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    buf_init(&b, MOUNT_TABLE_BYTES_MAX);
    if (fd < 0)
        return err_os(e, "open /proc/self/mountinfo");
    int r = fd_read_all(fd, &b, e);
    if (r < 0)
        return err_prefix(e, "/proc/self/mountinfo");
    mount_table_done(t);
    if (!(t->text = strdup(buf_text(&b))))
        return err_nomem(e);
    return mount_table_parse(t, t->text, e);
}

void mount_table_done(struct mount_table *t)
{
    free(t->text);
    free(t->row);
    *t = (struct mount_table){0};
}

struct mount_row *mount_table_find(struct mount_table *t, unsigned long long id)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->row[i].id == id)
            return &t->row[i];
    return NULL;
}

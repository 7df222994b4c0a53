/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the text of a claim. */
#include "box/claimrecord.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"

static void add_path(struct buf *to, const char *path)
{
    struct stat st;
    if (path && stat(path, &st) == 0)
        buf_addf(to, "= %llx:%llx %s\n", ancestor_device(st.st_dev), (unsigned long long)st.st_ino, path);
}

int claim_record_write(struct buf *to, const struct claim *c, const struct ancestors *s, struct pale_err *e)
{
    buf_addf(to, "%s\n", c->name);
    add_path(to, c->data);
    for (size_t i = 0; i < c->count; i++)
        add_path(to, c->paths[i]);
    for (size_t i = 0; i < s->count; i++)
        buf_addf(to, "%c %llx:%llx\n", (s->at[i].roles & ROLE_SHARED) ? '+' : '^', s->at[i].dev, s->at[i].ino);
    return to->failed ? err_nomem(e) : 0;
}

void claim_record_read(struct claim_record *r, char *text)
{
    char *end = text + strcspn(text, "\n");
    r->lines = *end ? end + 1 : end;
    *end = 0;
    r->name = text;
    for (const char *at = r->lines; *at; at += strcspn(at, "\n"), at += *at == '\n')
        r->marked += *at == '+';
}

/* Up to the byte stop, which is passed over. */
static bool read_hex(const char **at, char stop, unsigned long long *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strspn(*at, digits);
    if (n == 0 || n > 16 || (*at)[n] != stop)
        return false;
    *ret = 0;
    for (size_t i = 0; i < n; i++)
        *ret = *ret << 4 | (unsigned long long)(strchr(digits, (*at)[i]) - digits);
    *at += n + 1;
    return true;
}

bool claim_line_read(const char **at, struct claim_line *ret)
{
    const char *s = *at;
    char kind = s[0];
    *ret = (struct claim_line){.is_shared = kind != '^'};
    if ((kind != '=' && kind != '+' && kind != '^') || s[1] != ' ')
        return false;
    s += 2;
    if (!read_hex(&s, ':', &ret->dev) || !read_hex(&s, kind == '=' ? ' ' : '\n', &ret->ino))
        return false;
    if (kind == '=') {
        size_t n = strcspn(s, "\n");
        if (s[0] != '/' || s[n] != '\n' || n >= sizeof(ret->path))
            return false;
        memcpy(ret->path, s, n);
        ret->path[n] = 0;
        s += n + 1;
    }
    *at = s;
    return true;
}

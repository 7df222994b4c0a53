/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the account of what an image does without. */
#include "image/left.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "base/quote.h"

static const char *const names[] = {"device", "fifo", "socket", "set-bits", "attributes", "mode", "unreadable"};
static_assert(sizeof(names) / sizeof(names[0]) == LEFT_KINDS, "a name for each kind");

const char *left_kind_name(enum left_kind k)
{
    return names[k];
}

/* The next free place for a name, or NULL. */
static char *free_name(struct left *l, enum left_kind k)
{
    for (size_t i = 0; i < LEFT_SHOWN; i++)
        if (!l->name[k][i][0])
            return l->name[k][i];
    return NULL;
}

void left_add(struct left *l, enum left_kind k, const char *path)
{
    char *free = free_name(l, k);
    l->count[k]++;
    if (free)
        quote_into(free, LEFT_NAME_BYTES, path, strlen(path));
}

bool left_any(const struct left *l)
{
    for (size_t k = 0; k < LEFT_KINDS; k++)
        if (l->count[k])
            return true;
    return false;
}

bool left_tell(const struct left *l, int fd)
{
    bool good = true;
    for (size_t k = 0; k < LEFT_KINDS; k++) {
        if (l->count[k])
            good &= dprintf(fd, "%s %llu\n", names[k], (unsigned long long)l->count[k]) > 0;
        for (size_t i = 0; i < LEFT_SHOWN && l->name[k][i][0]; i++)
            good &= dprintf(fd, "%s = %s\n", names[k], l->name[k][i]) > 0;
    }
    return good;
}

/* Quoted by whoever told it, who may have lied. */
static void set_name(char *ret, const char *told)
{
    own_buf b = {0};
    buf_init(&b, 4096);
    quote_again(&b, told, strlen(told), LEFT_NAME_BYTES - 4);
    snprintf(ret, LEFT_NAME_BYTES, "%s", buf_text(&b));
}

static int hear_line(struct left *l, const char *line, size_t n, struct pale_err *e)
{
    char text[32 + LEFT_NAME_BYTES];
    uint64_t count;
    if (n >= sizeof(text) || memchr(line, 0, n))
        return err_set(e, PALE_CORRUPT, "the box told something that makes no sense");
    memcpy(text, line, n);
    text[n] = 0;
    for (size_t k = 0; k < LEFT_KINDS; k++) {
        size_t len = strlen(names[k]);
        if (strncmp(text, names[k], len) != 0 || text[len] != ' ')
            continue;
        const char *rest = text + len + 1;
        char *free = free_name(l, k);
        if (strncmp(rest, "= ", 2) == 0 && free)
            set_name(free, rest + 2);
        else if (number_u64(rest, INT64_MAX, &count))
            l->count[k] += count;
        return 0;
    }
    return err_set(e, PALE_CORRUPT, "the box told something that makes no sense");
}

int left_hear(struct left *l, const char *text, size_t n, struct pale_err *e)
{
    int r = 0;
    while (r == 0 && n > 0) {
        const char *end = memchr(text, '\n', n);
        if (!end)
            return err_set(e, PALE_CORRUPT, "the box told half a line");
        r = hear_line(l, text, (size_t)(end - text), e);
        n -= (size_t)(end - text) + 1;
        text = end + 1;
    }
    return r;
}

void left_json(const struct left *l, struct json *j, const char *key)
{
    json_begin_object(j, key);
    for (size_t k = 0; k < LEFT_KINDS; k++) {
        if (!l->count[k])
            continue;
        json_begin_object(j, names[k]);
        json_u64(j, "count", l->count[k]);
        json_begin_list(j, "names");
        for (size_t i = 0; i < LEFT_SHOWN && l->name[k][i][0]; i++)
            json_text(j, NULL, l->name[k][i]);
        json_end_list(j);
        json_end_object(j);
    }
    json_end_object(j);
}

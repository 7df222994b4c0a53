/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sorted lists of texts in a policy. */
#include "policy/strlist.h"

#include <string.h>

#include "base/limits.h"

/* The first index whose item is not before value. */
static size_t place_of(const struct policy_strings *l, const char *value)
{
    size_t at = 0;
    while (at < l->count && strcmp(l->item[at], value) < 0)
        at++;
    return at;
}

size_t strlist_find(const struct policy_strings *l, const char *value)
{
    size_t at = place_of(l, value);
    return at < l->count && strcmp(l->item[at], value) == 0 ? at : l->count;
}

int strlist_add(struct policy_strings *l, const char *value, struct pale_err *e)
{
    if (strlist_find(l, value) < l->count)
        return 0;
    if (l->count >= POLICY_LIST_MAX)
        return err_set(e, PALE_LIMIT, "the list is longer than %d items; name a folder or a pattern that covers several", POLICY_LIST_MAX);
    own_mem char *copy = strdup(value);
    char **grown = realloc(l->item, (l->count + 1) * sizeof(*grown));
    if (grown)
        l->item = grown;
    if (!copy || !grown)
        return err_nomem(e);
    size_t at = place_of(l, value);
    memmove(l->item + at + 1, l->item + at, (l->count - at) * sizeof(*l->item));
    l->item[at] = take_mem(&copy);
    l->count++;
    return 0;
}

void strlist_drop(struct policy_strings *l, size_t at)
{
    free(l->item[at]);
    l->count--;
    memmove(l->item + at, l->item + at + 1, (l->count - at) * sizeof(*l->item));
}

void strlist_done(struct policy_strings *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->item[i]);
    free(l->item);
    *l = (struct policy_strings){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the looking for attributes where none may be. */
#include "tree/bare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/attributes.h"
#include "base/own.h"
#include "base/quote.h"
#include "tree/descent.h"

/* Labels and access lists are the host's own doing, and a user's own attributes steer nothing. */
static bool is_steering(const char *name)
{
    return (strncmp(name, "user.", 5) == 0 && !attributes_is_own(name)) || strncmp(name, "trusted.", 8) == 0 ||
           strcmp(name, "security.capability") == 0;
}

static int check_step(const struct descent_step *s, char *list, struct pale_err *e)
{
    char at[32], shown[100];
    if (s->trouble) {
        *e = *s->trouble;
        return -(int)e->code;
    }
    if (s->leaving || (s->leaf.kind != LEAF_FILE && s->leaf.kind != LEAF_FOLDER))
        return 0;
    snprintf(at, sizeof(at), "/proc/self/fd/%d", s->fd);
    ssize_t n = listxattr(at, list, XATTR_LIST_BYTES_MAX);
    if (n < 0)
        return errno == ENOTSUP ? 0 : err_os(e, "read its attributes");
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1)
        if (is_steering(list + i))
            return err_set(e, PALE_CORRUPT, "it has the attribute %s, and nothing here may have any",
                           quote_into(shown, sizeof(shown), list + i, strlen(list + i)));
    return 0;
}

int bare_check(int root_fd, const volatile sig_atomic_t *stop, struct pale_err *e)
{
    own_mem char *list = malloc(XATTR_LIST_BYTES_MAX);
    own_descent d;
    struct descent_step s;
    char shown[240];
    int r;
    descent_init(&d, root_fd, false);
    if (!list)
        return err_nomem(e);
    while ((r = descent_next(&d, &s, e)) > 0) {
        r = stop && *stop ? err_set(e, PALE_GONE, "interrupted") : check_step(&s, list, e);
        if (r < 0)
            return err_prefix(e, "%s", quote_into(shown, sizeof(shown), s.path, strlen(s.path)));
    }
    return r;
}

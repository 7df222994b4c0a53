/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question who may call. */
#include "rest/access.h"

#include "ops/tokens.h"
#include "ops/world.h"
#include "rest/server.h"

int access_caller(struct server *s, bool local, const struct http_head *h, struct caller *ret, unsigned *ret_status, struct pale_err *e)
{
    static const char scheme[] = "bearer ";
    const struct http_text *given = http_find(h, "authorization");
    size_t n = sizeof(scheme) - 1;
    *ret = (struct caller){.scope = CALLER_OPERATOR, .rights = ~0ull};
    *ret_status = 401;
    if (!given && local)
        return 0;
    if (!given)
        return err_set(e, PALE_DENIED, "this needs a token: Authorization: Bearer TOKEN; `pale token create` makes one");
    struct http_text word = {given->at, n};
    if (given->len <= n || !http_is(&word, scheme))
        return err_set(e, PALE_DENIED, "the Authorization header is not of the form Bearer TOKEN");
    return token_caller(s->world->registry, given->at + n, given->len - n, ret, e);
}

bool access_may(const struct caller *who, const struct op *o)
{
    return call_may(who, o);
}

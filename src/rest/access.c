/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question who may call. */
#include "rest/access.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ops/world.h"
#include "rest/conn.h"
#include "ops/tokens.h"

static bool is_ours(const struct http_text *host, unsigned port)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    char want[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(want, sizeof(want), "%s:%u", names[i], port);
        if (http_is(host, want))
            return true;
    }
    return false;
}

int access_check_host(const struct server *s, bool local, const struct http_head *h, struct pale_err *e)
{
    static const char scheme[] = "http://";
    if (local)
        return 0;
    const struct http_text *host = http_find(h, "host"), *origin = http_find(h, "origin");
    if (!host || !is_ours(host, s->port))
        return err_set(e, PALE_DENIED, "the Host header does not name this daemon; it is reached as 127.0.0.1:%u or localhost:%u", s->port,
                       s->port);
    if (!origin)
        return 0;
    struct http_text rest = {origin->at + sizeof(scheme) - 1, origin->len - (sizeof(scheme) - 1)};
    if (origin->len < sizeof(scheme) || memcmp(origin->at, scheme, sizeof(scheme) - 1) != 0 || rest.len != host->len ||
        memcmp(rest.at, host->at, host->len) != 0)
        return err_set(e, PALE_DENIED, "a page of another origin may not call this daemon");
    return 0;
}

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
    if (o->operators_only && who->scope != CALLER_OPERATOR)
        return false;
    return o->right == RIGHT_NONE || (who->rights >> o->right & 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question whether a page of somebody else's asks. */
#include "rest/origin.h"

#include <stdio.h>
#include <string.h>

#include "base/weak.h"

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

int origin_check(unsigned port, bool local, const struct http_head *h, struct pale_err *e)
{
    static const char scheme[] = "http://";
    if (local || weak_word("origin"))
        return 0;
    const struct http_text *host = http_find(h, "host"), *origin = http_find(h, "origin");
    if (!host || !is_ours(host, port))
        return err_set(e, PALE_DENIED, "the Host header does not name this daemon; it is reached as 127.0.0.1:%u or localhost:%u", port,
                       port);
    if (!origin)
        return 0;
    struct http_text rest = {origin->at + sizeof(scheme) - 1, origin->len - (sizeof(scheme) - 1)};
    if (origin->len < sizeof(scheme) || memcmp(origin->at, scheme, sizeof(scheme) - 1) != 0 || rest.len != host->len ||
        memcmp(rest.at, host->at, host->len) != 0)
        return err_set(e, PALE_DENIED, "a page of another origin may not call this daemon");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of records about the network. Pure. */
#include "cli/netline.h"

#include <string.h>

#include "base/jsonread.h"

static void text(const struct jsonread *v, const char *key, char *ret, size_t cap)
{
    struct jsonread m;
    ret[0] = 0;
    if (jsonread_get(v, key, &m) && m.kind == JSONREAD_TEXT)
        jsonread_text(&m, ret, cap);
}

static uint64_t number(const struct jsonread *v, const char *key)
{
    struct jsonread m;
    uint64_t n = 0;
    return jsonread_get(v, key, &m) && jsonread_u64(&m, &n) ? n : 0;
}

bool netline_parse(const char *line, size_t n, struct netline *ret)
{
    struct jsonread v;
    if (!memmem(line, n, "\"event\":\"net.", 13) || !jsonread_parse(line, n, &v) || v.kind != JSONREAD_OBJECT)
        return false;
    *ret = (struct netline){0};
    text(&v, "event", ret->event, sizeof(ret->event));
    text(&v, "time", ret->time, sizeof(ret->time));
    text(&v, "kind", ret->kind, sizeof(ret->kind));
    text(&v, "host", ret->host, sizeof(ret->host));
    text(&v, "address", ret->address, sizeof(ret->address));
    text(&v, "rule", ret->rule, sizeof(ret->rule));
    text(&v, "reason", ret->reason, sizeof(ret->reason));
    text(&v, "by", ret->by, sizeof(ret->by));
    uint64_t port = number(&v, "port");
    ret->port = port <= UINT16_MAX ? (uint16_t)port : 0;
    ret->job = number(&v, "job");
    ret->flow = number(&v, "flow");
    ret->in = number(&v, "in");
    ret->out = number(&v, "out");
    ret->refused = number(&v, "refused");
    return strncmp(ret->event, "net.", 4) == 0;
}

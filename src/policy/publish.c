/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the key network.publish: ports of the host's loopback that lead to ports of the box, "8080:80". */
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/quote.h"
#include "policy/field.h"

static bool read_port(const char *s, size_t len, uint16_t *ret)
{
    char one[8] = {0};
    uint64_t v = 0;
    memcpy(one, s, len < sizeof(one) ? len : 0);
    if (!number_u64(one, 65535, &v) || v == 0)
        return false;
    *ret = (uint16_t)v;
    return true;
}

static int publish_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    struct policy_publish made = {0};
    const char *colon = strchr(value, ':'), *box = colon ? colon + 1 : value;
    size_t at = 0;
    char shown[60];
    (void)f;
    if (!read_port(value, colon ? (size_t)(colon - value) : strlen(value), &made.host) || !read_port(box, strlen(box), &made.box))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not [HOSTPORT:]BOXPORT; ports go from 1 to 65535, and are those of loopback",
                       quote_into(shown, sizeof(shown), value, strlen(value)));
    while (at < p->publish_count && p->publish[at].host < made.host)
        at++;
    if (at < p->publish_count && p->publish[at].host == made.host) {
        if (p->publish[at].box == made.box)
            return 0;
        return err_set(e, PALE_BAD_INPUT, "port %u of the host leads to port %u of the box already; choose another for %u", made.host,
                       p->publish[at].box, made.box);
    }
    if (p->publish_count >= EGRESS_PORTS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d ports are published", EGRESS_PORTS_MAX);
    struct policy_publish *grown = realloc(p->publish, (p->publish_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    p->publish = grown;
    memmove(grown + at + 1, grown + at, (p->publish_count - at) * sizeof(*grown));
    grown[at] = made;
    p->publish_count++;
    return 0;
}

static size_t publish_count(const struct field *f, const struct policy *p)
{
    (void)f;
    return p->publish_count;
}

static void publish_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    (void)f;
    buf_addf(out, "%u:%u", p->publish[i].host, p->publish[i].box);
}

static bool publish_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    (void)f;
    for (size_t i = 0; i < child->publish_count; i++) {
        bool found = false;
        for (size_t k = 0; !found && k < parent->publish_count; k++)
            found = parent->publish[k].host == child->publish[i].host && parent->publish[k].box == child->publish[i].box;
        if (!found)
            return false;
    }
    return true;
}

static void publish_done(const struct field *f, struct policy *p)
{
    (void)f;
    free(p->publish);
}

const struct field_kind publish_kind = {.shape = SHAPE_LIST,
                                        .count = publish_count,
                                        .text = publish_text,
                                        .set = publish_set,
                                        .within = publish_within,
                                        .weight = field_weight_wider,
                                        .done = publish_done};

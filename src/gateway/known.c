/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of names: the addresses that they led to, made-up ones for names that the operator was not asked about yet, and how
 * many different names of a zone were looked up. */
#include <string.h>

#include "base/clock.h"
#include "gateway/gateway.h"

/* 198.18.0.0/15 is for measuring networks: nobody is there, and nobody is dialled there. */
#define MADE_UP_FIRST 0xc6120001u
#define MADE_UP_LAST 0xc613fffeu

/* What can be told to the servers of a zone by the names it is asked for: so many names in an hour. */
#define ZONE_NAMES_MAX 200u
#define ZONE_MS 3600000

static bool is_same(const struct hostname *a, const struct hostname *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

struct known *known_find(struct gateway *g, const struct hostname *name)
{
    for (uint32_t i = 0; i < g->known_count; i++)
        if (is_same(&g->known[i].name, name))
            return &g->known[i];
    return NULL;
}

struct known *known_add(struct gateway *g, const struct hostname *name)
{
    struct known *k = known_find(g, name);
    int64_t now = clock_ms();
    if (!k && g->known_count < KNOWN_MAX) {
        k = &g->known[g->known_count++];
    } else if (!k) {
        k = g->known;
        for (uint32_t i = 1; i < KNOWN_MAX; i++)
            if (g->known[i].used_ms < k->used_ms)
                k = &g->known[i];
    }
    if (!is_same(&k->name, name)) {
        memset(k, 0, sizeof(*k));
        k->name = *name;
    }
    k->used_ms = now;
    return k;
}

static bool is_address(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->byte, b->byte, sizeof(a->byte)) == 0;
}

bool known_has(const struct known *k, const struct address *a)
{
    for (uint8_t i = 0; i < k->count; i++)
        if (is_address(&k->address[i], a))
            return true;
    return false;
}

const struct known *known_next(const struct gateway *g, const struct address *a, uint32_t *at)
{
    while (*at < g->known_count) {
        const struct known *k = &g->known[(*at)++];
        if (known_has(k, a))
            return k;
    }
    return NULL;
}

static uint32_t number_of(const struct address *a)
{
    return a->family != ADDRESS_V4 ? 0 : (uint32_t)a->byte[0] << 24 | (uint32_t)a->byte[1] << 16 | (uint32_t)a->byte[2] << 8 | a->byte[3];
}

const struct known *known_made_up(const struct gateway *g, const struct address *a)
{
    uint32_t n = number_of(a);
    for (uint32_t i = 0; n && i < g->known_count; i++)
        if (g->known[i].made_up == n)
            return &g->known[i];
    return NULL;
}

struct address known_make_up(struct gateway *g, struct known *k)
{
    if (!k->made_up) {
        k->made_up = MADE_UP_FIRST + g->made_up_next;
        g->made_up_next = k->made_up == MADE_UP_LAST ? 0 : g->made_up_next + 1;
    }
    struct address a = {
        .family = ADDRESS_V4,
        .byte = {(uint8_t)(k->made_up >> 24), (uint8_t)(k->made_up >> 16), (uint8_t)(k->made_up >> 8), (uint8_t)k->made_up}};
    return a;
}

/* The last two labels: most zones that somebody can register are no shorter. */
static uint64_t zone_of(const struct hostname *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    int dots = 0;
    for (size_t i = name->len; i-- > 0;) {
        dots += name->text[i] == '.';
        if (dots == 2)
            break;
        hash = (hash ^ (uint8_t)name->text[i]) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

bool known_spend(struct gateway *g, const struct hostname *name)
{
    uint64_t hash = zone_of(name);
    int64_t now = clock_ms();
    struct zone *z = NULL, *oldest = g->zones;
    for (struct zone *at = g->zones; at < g->zones + ZONES_MAX; at++) {
        if (at->hash == hash)
            z = at;
        if (at->since_ms < oldest->since_ms)
            oldest = at;
    }
    if (!z) {
        /* A table full of zones of this hour: a box that asks for so many is looking for a way to count beyond them. */
        if (oldest->hash && now - oldest->since_ms < ZONE_MS)
            return false;
        z = oldest;
        *z = (struct zone){.hash = hash, .since_ms = now};
    }
    if (now - z->since_ms >= ZONE_MS)
        *z = (struct zone){.hash = hash, .since_ms = now};
    return z->names < ZONE_NAMES_MAX && ++z->names;
}

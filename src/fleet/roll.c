/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the indexes over all boxes. */
#include "fleet/roll.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
    const char *tenant, *name, *id, *key;
    bool project;
    uint64_t deed;
};

static int by_name(const struct box *b, const struct probe *p)
{
    int d = strcmp(b->pub.tenant, p->tenant);
    if (d == 0)
        d = strcmp(b->pub.name, p->name);
    if (d == 0)
        d = (int)b->pub.project - (int)p->project;
    return d == 0 && p->project ? strcmp(b->pub.id, p->id) : d;
}

static int by_id(const struct box *b, const struct probe *p)
{
    return strcmp(b->pub.id, p->id);
}

/* Of one key, by name, so that each has its place. */
static int by_key(const struct box *b, const struct probe *p)
{
    int d = strcmp(b->pub.tenant, p->tenant);
    if (d == 0)
        d = strcmp(b->pub.terms.key, p->key);
    return d == 0 ? strcmp(b->pub.name, p->name) : d;
}

static int by_deed(const struct box *b, const struct probe *p)
{
    return b->deed < p->deed ? -1 : b->deed > p->deed;
}

static int (*const ORDER[])(const struct box *, const struct probe *) = {by_name, by_id, by_key, by_deed};
static_assert(sizeof(ORDER) / sizeof(ORDER[0]) == ROLL_INDEXES, "each index has its order");

/* The place of the first that is not before p. */
static size_t seek(const struct roll *r, enum roll_index i, const struct probe *p)
{
    size_t low = 0, high = r->count[i];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ORDER[i](r->index[i][mid], p) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct box *find(const struct roll *r, enum roll_index i, const struct probe *p)
{
    size_t at = seek(r, i, p);
    return at < r->count[i] && ORDER[i](r->index[i][at], p) == 0 ? r->index[i][at] : NULL;
}

static struct probe probe_of(const struct box *b)
{
    return (struct probe){b->pub.tenant, b->pub.name, b->pub.id, b->pub.terms.key, b->pub.project, b->deed};
}

static void enter(struct roll *r, enum roll_index i, struct box *b)
{
    struct probe p = probe_of(b);
    size_t at = seek(r, i, &p);
    assert(r->count[i] < r->room);
    memmove(&r->index[i][at + 1], &r->index[i][at], (r->count[i] - at) * sizeof(b));
    r->index[i][at] = b;
    r->count[i]++;
}

static void leave(struct roll *r, enum roll_index i, struct box *b)
{
    struct probe p = probe_of(b);
    size_t at = seek(r, i, &p);
    assert(at < r->count[i] && r->index[i][at] == b);
    r->count[i]--;
    memmove(&r->index[i][at], &r->index[i][at + 1], (r->count[i] - at) * sizeof(b));
}

static bool make_room(struct roll *r, const struct core_io *io)
{
    if (r->count[ROLL_NAME] < r->room)
        return true;
    size_t room = r->room ? r->room * 2 : 64;
    for (int i = 0; i < ROLL_INDEXES + ROLL_CLOCKS; i++) {
        struct box ***at = i < ROLL_INDEXES ? &r->index[i] : &r->heap[i - ROLL_INDEXES];
        struct box **more = io->grow(io->arg, *at, (room + 1) * sizeof(**at));
        if (!more)
            return false; /* those that have grown already stay so */
        *at = more;
    }
    r->room = room;
    return true;
}

struct box *roll_add(struct roll *r, const struct core_io *io, const char *tenant, const char *name, const char *project_id)
{
    if (r->count[ROLL_NAME] >= ROLL_MAX || !make_room(r, io))
        return NULL;
    struct box *b = io->grow(io->arg, NULL, sizeof(*b));
    if (!b)
        return NULL;
    memset(b, 0, sizeof(*b));
    snprintf(b->pub.tenant, sizeof(b->pub.tenant), "%s", tenant);
    snprintf(b->pub.name, sizeof(b->pub.name), "%s", name);
    b->due[ROLL_MONOTONIC] = b->due[ROLL_UNIX] = -1;
    if (project_id) {
        b->pub.project = true;
        snprintf(b->pub.id, sizeof(b->pub.id), "%s", project_id);
        enter(r, ROLL_ID, b);
    }
    enter(r, ROLL_NAME, b);
    return b;
}

void roll_drop(struct roll *r, struct box *b)
{
    assert(!b->head && !b->partner);
    for (int i = 0; i < ROLL_CLOCKS; i++)
        roll_set_due(r, b, i, -1);
    leave(r, ROLL_NAME, b);
    if (b->pub.project)
        leave(r, ROLL_ID, b);
    else
        roll_set_id(r, b, "");
    roll_set_terms(r, b, NULL);
    roll_set_deed(r, b, 0);
    free(b);
}

void roll_done(struct roll *r)
{
    for (size_t i = 0; i < r->count[ROLL_NAME]; i++)
        free(r->index[ROLL_NAME][i]);
    for (int i = 0; i < ROLL_INDEXES; i++)
        free(r->index[i]);
    for (int i = 0; i < ROLL_CLOCKS; i++)
        free(r->heap[i]);
    memset(r, 0, sizeof(*r));
}

struct box *roll_by_name(const struct roll *r, const char *tenant, const char *name)
{
    return find(r, ROLL_NAME, &(struct probe){.tenant = tenant, .name = name});
}

struct box *roll_by_id(const struct roll *r, const char *id)
{
    return *id ? find(r, ROLL_ID, &(struct probe){.id = id}) : NULL;
}

struct box *roll_by_key(const struct roll *r, const char *tenant, const char *key)
{
    struct box *first = NULL;
    for (size_t at = seek(r, ROLL_KEY, &(struct probe){.tenant = tenant, .key = key, .name = ""}); at < r->count[ROLL_KEY]; at++) {
        struct box *b = r->index[ROLL_KEY][at];
        if (strcmp(b->pub.tenant, tenant) != 0 || strcmp(b->pub.terms.key, key) != 0)
            break;
        if (b->deed || (b->there && b->pub.terms.born == b->pub.born))
            return b;
        first = first ? first : b;
    }
    return first;
}

struct box *roll_by_deed(const struct roll *r, uint64_t number)
{
    return number ? find(r, ROLL_DEED, &(struct probe){.deed = number}) : NULL;
}

size_t roll_from(const struct roll *r, const char *tenant, const char *name, bool project, const char *id)
{
    return seek(r, ROLL_NAME, &(struct probe){.tenant = tenant, .name = name, .project = project, .id = id});
}

void roll_set_id(struct roll *r, struct box *b, const char *id)
{
    assert(!b->pub.project);
    if (*b->pub.id)
        leave(r, ROLL_ID, b);
    snprintf(b->pub.id, sizeof(b->pub.id), "%s", id);
    if (*b->pub.id)
        enter(r, ROLL_ID, b);
}

void roll_set_terms(struct roll *r, struct box *b, const struct core_terms *t)
{
    struct core_terms now = {0};
    if (t)
        now = *t; /* which may be b's own */
    if (*b->pub.terms.key)
        leave(r, ROLL_KEY, b);
    b->pub.has_terms = t != NULL;
    b->pub.terms = now;
    if (*b->pub.terms.key)
        enter(r, ROLL_KEY, b);
}

void roll_set_deed(struct roll *r, struct box *b, uint64_t number)
{
    if (b->deed)
        leave(r, ROLL_DEED, b);
    b->deed = number;
    if (b->deed)
        enter(r, ROLL_DEED, b);
}

static void put_at(struct roll *r, enum roll_clock c, size_t at, struct box *b)
{
    r->heap[c][at] = b;
    b->place[c] = at;
}

/* Moves b from the place it has to the one it belongs to. */
static void sift(struct roll *r, enum roll_clock c, struct box *b)
{
    size_t at = b->place[c], n = r->heaped[c];
    for (; at > 1 && r->heap[c][at / 2]->due[c] > b->due[c]; at /= 2)
        put_at(r, c, at, r->heap[c][at / 2]);
    for (size_t child; (child = at * 2) <= n; at = child) {
        if (child < n && r->heap[c][child + 1]->due[c] < r->heap[c][child]->due[c])
            child++;
        if (r->heap[c][child]->due[c] >= b->due[c])
            break;
        put_at(r, c, at, r->heap[c][child]);
    }
    put_at(r, c, at, b);
}

void roll_set_due(struct roll *r, struct box *b, enum roll_clock clock, int64_t due)
{
    if (b->due[clock] == due)
        return;
    b->due[clock] = due;
    if (due >= 0) {
        if (!b->place[clock])
            put_at(r, clock, ++r->heaped[clock], b);
        sift(r, clock, b);
    } else if (b->place[clock]) {
        struct box *last = r->heap[clock][r->heaped[clock]--];
        if (last != b) {
            put_at(r, clock, b->place[clock], last);
            sift(r, clock, last);
        }
        b->place[clock] = 0;
    }
}

struct box *roll_soonest(const struct roll *r, enum roll_clock clock)
{
    return r->heaped[clock] ? r->heap[clock][1] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rows of boxes. */
#include "fleet/terms.h"

#include <string.h>

static bool is_doubtful_time(const struct core *c, const struct box *b)
{
    int64_t now = course_now(c);
    return !c->settled || now < c->doubt_ms || now < b->doubt_ms;
}

static int write_row(struct core *c, struct box *b, const struct core_terms *t, struct pale_err *e)
{
    return t ? c->io.put_terms(c->io.arg, b->pub.tenant, b->pub.name, t, e) : c->io.drop_terms(c->io.arg, b->pub.tenant, b->pub.name, e);
}

int terms_put(struct core *c, struct box *b, const struct core_terms *t, struct pale_err *e)
{
    int r = write_row(c, b, t, e);
    if (r < 0)
        return r;
    roll_set_terms(&c->roll, b, t);
    b->dirty = false;
    return 0;
}

void terms_sync(struct core *c, struct box *b)
{
    if (!b->dirty)
        return;
    b->dirty = write_row(c, b, b->pub.has_terms ? &b->pub.terms : NULL, NULL) < 0;
    if (b->dirty)
        terms_pause(c, &b->row_pause);
    else
        b->row_pause = (struct pause){0};
}

static void change(struct core *c, struct box *b, const struct core_terms *t)
{
    roll_set_terms(&c->roll, b, t);
    b->dirty = true;
    terms_sync(c, b);
}

void terms_forget(struct core *c, struct box *b)
{
    if (b->pub.has_terms)
        change(c, b, NULL);
}

void terms_restore(struct core *c, struct box *b)
{
    if (b->had_terms || b->pub.has_terms)
        change(c, b, b->had_terms ? &b->before : NULL);
}

/* Until when a key is remembered though its box is not there. */
static int64_t kept_until(const struct core_terms *t)
{
    return *t->key ? t->made_unix_ms + CORE_KEY_KEEP_MS : 0;
}

void terms_bury(struct core *c, struct box *b)
{
    struct core_terms t = b->pub.terms;
    if (!b->pub.has_terms)
        return;
    if (kept_until(&t) <= course_unix(c)) {
        terms_forget(c, b);
        return;
    }
    t.born = CORE_BORN_GONE;
    t.expires_unix_ms = t.idle_ms = 0;
    change(c, b, &t);
}

/* A row that says nothing: left by a rename, as its trace. */
static bool is_blank(const struct core_terms *t)
{
    static const struct core_terms none;
    return !*t->key && !t->expires_unix_ms && !t->idle_ms && memcmp(t->asked, none.asked, sizeof(t->asked)) == 0;
}

void terms_bind(struct core *c, struct box *b, bool made)
{
    struct core_terms t = b->pub.terms;
    if (!b->pub.has_terms || !b->pub.born)
        return;
    if (t.born == b->pub.born && (!is_blank(&t) || is_doubtful_time(c, b)))
        return;
    if (t.born != 0 || (!made && !is_doubtful_time(c, b))) {
        terms_forget(c, b);
        return;
    }
    t.born = b->pub.born;
    change(c, b, &t);
}

void terms_follow(struct core *c, struct box *b, uint64_t born)
{
    if (!born || born == CORE_BORN_GONE || b->partner || b->deed || (b->pub.has_terms && b->pub.terms.born == born))
        return;
    for (size_t at = roll_from(&c->roll, b->pub.tenant, "", false, ""); at < c->roll.count[ROLL_NAME]; at++) {
        struct box *o = c->roll.index[ROLL_NAME][at];
        if (strcmp(o->pub.tenant, b->pub.tenant) != 0)
            return;
        if (o == b || !o->pub.has_terms || o->pub.terms.born != born)
            continue;
        if (o->partner || o->deed)
            return; /* a rename of ours, which ends by itself */
        struct core_terms t = o->pub.terms;
        change(c, o, NULL); /* a key is in one row */
        change(c, b, &t);
        return;
    }
}

void terms_weed(struct core *c, struct box *b)
{
    const struct core_terms *t = &b->pub.terms;
    if (!b->pub.has_terms || terms_in_doubt(c, b))
        return;
    struct box *holder = *t->key ? roll_by_key(&c->roll, b->pub.tenant, t->key) : NULL;
    if (kept_until(t) <= course_unix(c) || (holder && holder != b && holder->there))
        terms_forget(c, b);
}

void terms_thin(struct core *c, const char *tenant)
{
    struct box *oldest = NULL;
    size_t n = 0;
    bool is_full = c->roll.count[ROLL_NAME] >= ROLL_MAX / 4 * 3; /* then anybody's */
    for (size_t at = is_full ? 0 : roll_from(&c->roll, tenant, "", false, ""); at < c->roll.count[ROLL_NAME]; at++) {
        struct box *b = c->roll.index[ROLL_NAME][at];
        if (!is_full && strcmp(b->pub.tenant, tenant) != 0)
            break;
        if (b->there || !b->pub.has_terms || b->head || b->held || course_is_busy(b) || terms_in_doubt(c, b))
            continue;
        n++;
        if (!oldest || b->pub.terms.made_unix_ms < oldest->pub.terms.made_unix_ms)
            oldest = b;
    }
    if (oldest && (is_full || n >= CORE_MEMORIES_MAX)) {
        terms_forget(c, oldest);
        course_run(c, oldest);
    }
}

bool terms_in_doubt(const struct core *c, const struct box *b)
{
    return b->pub.has_terms && b->pub.terms.born != CORE_BORN_GONE && is_doubtful_time(c, b);
}

bool terms_has_twin(const struct core *c, const struct box *b, uint64_t born)
{
    if (!born)
        return false;
    for (size_t at = roll_from(&c->roll, b->pub.tenant, "", false, ""); at < c->roll.count[ROLL_NAME]; at++) {
        const struct box *o = c->roll.index[ROLL_NAME][at];
        if (strcmp(o->pub.tenant, b->pub.tenant) != 0)
            break;
        bool may_be = o->pub.has_terms && o->pub.terms.born == born && is_doubtful_time(c, o);
        if (o != b && (o->pub.born == born || may_be))
            return true;
    }
    return false;
}

bool terms_are_of(const struct core_terms *t, const struct wait *w)
{
    return strcmp(t->key, w->terms.key) == 0 && memcmp(t->asked, w->terms.asked, sizeof(t->asked)) == 0;
}

void terms_pause(struct core *c, struct pause *p)
{
    int64_t ms = CORE_RETRY_MS;
    for (unsigned i = 0; i < p->tries && ms < CORE_RETRY_MAX_MS; i++)
        ms *= 2;
    ms = ms < CORE_RETRY_MAX_MS ? ms : CORE_RETRY_MAX_MS;
    p->tries += p->tries < 64;
    /* Those that failed together do not come again together. */
    ms -= (int64_t)(c->io.chance(c->io.arg) % (uint64_t)(ms / 4 + 1));
    p->until_ms = course_now(c) + ms;
}

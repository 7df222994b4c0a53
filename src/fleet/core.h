/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of boxes as a state machine: what is asked, what is seen and what falls due goes in; deeds, rows and answers come
 * out.
 *
 * How it works: the core knows what it was told. Time, chance, memory, the disk and the database come through struct core_io, so
 * that the same calls give the same course, and a simulation can try many thousand of them. Truth about a box is on the disk and
 * in its keeper; the core holds a view of it, one deed at a time per box, and a queue of who waits. A deed is ordered and goes on
 * whatever becomes of us; after it the core looks at the disk instead of believing, because somebody else may have been there.
 *
 * Rows: what a request asked for beyond the disk (key, digest, times) is a row of the database, put before the deed. A row whose
 * box is not there is one of: an intention (born is 0), a memory of a key (CORE_BORN_GONE), or in doubt, because a deed that
 * nobody listens to any more may still be at work: for CORE_DOUBT_MS after a start and after a deed that ended doubtfully. In that
 * time such a row is kept, and another request for its name gets PALE_BUSY. So no deed may last longer than that.
 *
 * Functions of core_io must not call the core, but for answer, which may ask for more. Everything is bounded; a request for which
 * there is no memory fails alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/sha256.h"

#define CORE_BOXES_MAX 16384u           /* ten times what a host was seen to carry */
#define CORE_TENANT_BOXES_MAX 4096u     /* of one tenant, unless core_io says less */
#define CORE_WAITERS_MAX 64u            /* on one box: a client that asks faster than boxes start is told so */
#define CORE_REQUESTS_MAX 8192u         /* waiters in all, about 2 KB each */
#define CORE_MEMORIES_MAX 1024u         /* keys of boxes that are gone, per tenant: the oldest is forgotten first */
#define CORE_KEY_MAX 128                /* a key is a UUID, or something like it */
#define CORE_TENANT_MAX BOX_NAME_MAX    /* a tenant's name is a path component */
#define CORE_KEY_KEEP_MS 86400000       /* how long a key of a box that is not there is remembered */
#define CORE_DOUBT_MS 60000             /* longer than any deed lasts */
#define CORE_RETRY_MS 1000              /* the first pause after a failure nobody waits for; it doubles … */
#define CORE_RETRY_MAX_MS 300000        /* … up to this */
#define CORE_IDLE_MAX_MS 315360000000LL /* ten years: sums of times stay far from their limits */
#define CORE_SAVES_MAX 4u               /* checkpoints of idle boxes at once: those that fell idle together shall not load the host */
#define CORE_BORN_GONE UINT64_MAX       /* the box of this row was removed, for certain */

enum core_state { CORE_MAKING, CORE_DOWN, CORE_STARTING, CORE_UP, CORE_STOPPING, CORE_REMOVING, CORE_STATE_COUNT };

/* A row of the database. */
struct core_terms {
    char key[CORE_KEY_MAX + 1];  /* "": none */
    uint8_t asked[SHA256_BYTES]; /* digest of the whole request; zeros: nobody asked us */
    int64_t made_unix_ms;        /* when it was asked for */
    int64_t expires_unix_ms;     /* 0: never */
    int64_t idle_ms;             /* 0: never stopped for being idle */
    uint64_t born;               /* whose row it is: of the box that was born so; 0: of one that is not known to be made yet */
};

struct core_box {
    char tenant[CORE_TENANT_MAX + 1]; /* "": the operator's own */
    char name[BOX_NAME_MAX + 1];
    char id[BOX_ID_LEN + 1]; /* "" until its first deed has answered */
    bool project;            /* known by its id alone: its name is not unique */
    bool frozen;             /* while it is up */
    bool changing;           /* its layers are: its keeper ends and another takes its place, which is no end of the box */
    bool was_up;             /* … and it was up before, or has come up since */
    bool has_terms;
    enum core_state state;
    unsigned jobs;
    int64_t quiet_since_ms; /* monotonic: it last had a job or was used */
    uint64_t born;
    struct core_terms terms;
};

/* What is on the disk. born is a number that stays with a box, also when it is renamed, and is another for each box ever made, also
 * of the same name: nobody's box must be removed for what was said of the one before it. Never 0 or CORE_BORN_GONE. */
struct core_sight {
    char tenant[CORE_TENANT_MAX + 1], name[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1];
    bool project;
    uint64_t born;
};

enum core_deed_kind { CORE_MAKE, CORE_START, CORE_STOP, CORE_REMOVE, CORE_RENAME, CORE_CHANGE, CORE_DEED_KINDS };

struct core_deed {
    uint64_t number;
    enum core_deed_kind kind;
    const char *tenant, *name, *id;
    const char *new_name; /* CORE_RENAME */
    bool project;
    bool only_idle; /* CORE_STOP: PALE_BUSY if a job runs by now */
    uint64_t born;  /* not CORE_MAKE: PALE_NOT_FOUND if there is another box by now */
    void *payload;  /* CORE_MAKE and CORE_CHANGE: of the request; valid during the call. NULL: a checkpoint of an idle box */
    void *waiter;   /* whose request it serves; NULL: it falls due by itself */
};

struct core_answer {
    enum pale_code code;
    const char *text;           /* "" if it went well */
    const struct core_box *box; /* as it was then; NULL on failure and for a removal */
    const char *told;           /* what a change has told; "" */
};

struct core_io {
    void *arg;
    size_t boxes_max, tenant_boxes_max; /* 0: the most there may be */
    int64_t save_after_ms;              /* a box gets a checkpoint when it has been idle for so long; 0: never */
    int64_t (*now_ms)(void *arg);       /* monotonic */
    int64_t (*unix_ms)(void *arg);
    uint64_t (*chance)(void *arg);
    void *(*grow)(void *arg, void *p, size_t n); /* as realloc; what it gives is given to free */

    /* Rows, by tenant and name. A put replaces. Done when they return 0; else nothing has changed. */
    int (*put_terms)(void *arg, const char *tenant, const char *name, const struct core_terms *t, struct pale_err *e);
    int (*drop_terms)(void *arg, const char *tenant, const char *name, struct pale_err *e);
    int (*each_terms)(void *arg, int (*fn)(void *fn_arg, const char *tenant, const char *name, const struct core_terms *t), void *fn_arg,
                      struct pale_err *e);

    /* Is it on the disk now? By id for a project's box, else by tenant and name. 1 and *ret, 0, or negative: not known. */
    int (*look)(void *arg, const struct core_sight *which, struct core_sight *ret);

    /* Begins a deed; core_deed_done follows, once, and not before this has returned. Negative: it was not begun. */
    int (*order)(void *arg, const struct core_deed *d, struct pale_err *e);

    /* Let go of the box's keeper, connect to the one there is now; core_up or core_down follows. A second call before that replaces
     * the first. Keepers that come later are to be noticed without being asked. */
    void (*link)(void *arg, const char *id);

    void (*answer)(void *arg, void *waiter, const struct core_answer *a);
};

struct core;

/* NULL: no memory. core_free answers who still waits with PALE_GONE. */
struct core *core_new(const struct core_io *io);
void core_free(struct core *c);

/* A life begins: core_start reads the rows, core_seen is called for each box on the disk, core_settle ends the beginning. Requests
 * before that get PALE_BUSY. */
int core_start(struct core *c, struct pale_err *e) MUST_CHECK;
void core_settle(struct core *c);

/* No deed of a former life is under way any more, and all that such did has been told: there is no need to wait CORE_DOUBT_MS. */
void core_alone(struct core *c);

/* Requests. Each is answered exactly once, maybe before the call returns. */
struct core_order {
    const char *tenant, *name, *key; /* key "": none */
    const uint8_t *asked;            /* SHA256_BYTES; never all zeros */
    int64_t expires_unix_ms, idle_ms;
    bool ensure;   /* one that the same request has made will do */
    void *payload; /* for the deed; must live until the answer */
};
void core_create(struct core *c, const struct core_order *o, void *waiter);
void core_use(struct core *c, const char *id, void *waiter); /* it is to be up */
void core_stop(struct core *c, const char *id, void *waiter);
void core_remove(struct core *c, const char *id, void *waiter);
void core_rename(struct core *c, const char *id, const char *name, void *waiter); /* must be down; its id may change */
void core_set_terms(struct core *c, const char *id, int64_t expires_unix_ms, int64_t idle_ms, void *waiter);

/* A change of its layers by the deed that the payload says, which must live until the answer; more: boxes it will make. Nobody is told
 * that the box is down for it, and who wants to use it meanwhile waits. */
void core_change(struct core *c, const char *id, void *payload, unsigned more, void *waiter);
void core_await(struct core *c, const char *id, void *waiter); /* nothing is under way with it */

/* What happened outside. A deed's id: of the box it has made or renamed; its text: why it failed, or what a change tells. */
void core_deed_done(struct core *c, uint64_t number, enum pale_code code, const char *text, const char *id);
/* The disk as it is at this moment. PALE_LIMIT or PALE_NO_MEMORY: the box stays unknown until it is seen again. */
int core_seen(struct core *c, const struct core_sight *s, struct pale_err *e) MUST_CHECK;
void core_unseen(struct core *c, const char *id);
/* The link to its keeper came, or broke. A box comes up with so many jobs and not frozen. */
void core_up(struct core *c, const char *id, unsigned running);
void core_down(struct core *c, const char *id);
void core_jobs(struct core *c, const char *id, unsigned running);
void core_frozen(struct core *c, const char *id, bool frozen);
void core_used(struct core *c, const char *id);

/* Does what is due. The next instant (monotonic) at which something will be, or -1: to be asked anew after every other call and when
 * the wall clock was set. */
void core_tick(struct core *c);
int64_t core_next_due(struct core *c);

/* Looking up. What they return is valid until the next call of another kind. core_find: a tenant's box by name, or if there is none
 * of that name, by id. core_after: in the order of tenant, name and id, the first after these ("", "", "": the first of all). */
const struct core_box *core_find(struct core *c, const char *tenant, const char *name_or_id);
const struct core_box *core_by_id(struct core *c, const char *id);
const struct core_box *core_after(struct core *c, const char *tenant, const char *name, const char *id);

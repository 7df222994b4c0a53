/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up world in which core_sim_test tries the core: a disk, keepers, jobs, deeds, a database, memory, clocks and chance. */
#pragma once

#include "fleet/core.h"

#define ACTIONS 150 /* of a run */
#define PLAIN 6     /* slots of two tenants with three names each; then the projects' boxes */
#define SLOTS 8
#define DEEDS 64
#define REQUESTS (2 * ACTIONS)
#define KEYS 10
#define JOBS 3        /* at once in a box */
#define LAG_MS 4000   /* longer than the world takes to be seen */
#define DEED_MS 40000 /* a deed lasts no longer; less than CORE_DOUBT_MS */
#define HOUR_MS 3600000LL
#define SAVE_MS 600000 /* idle for so long, a box gets a checkpoint */

/* What is at one place of the disk. */
struct site {
    uint64_t born; /* 0: nothing */
    uint64_t keeper;
    int64_t job_ends[JOBS]; /* 0: none */
    int64_t made_at;
    uint8_t asked[SHA256_BYTES]; /* of the request that made it; zeros: the command line did */
    int key;                     /* of that request */
    int64_t expires;             /* what was last promised; 0: nothing, or nothing that is certain */
    bool in_row;                 /* the command line made it where an intention was on record */
    /* of the place, not of the box */
    int64_t removed_at, keeper_from, keeper_to;
    int64_t begun_at;   /* the last time that a box was made here */
    int64_t changed_at; /* … and that its layers were changed */
};

/* What the daemon has told the core about it, and when it will look again. */
struct eye {
    uint64_t keeper;
    unsigned jobs;
    int64_t quiet, look_at, link_at;
};

struct failure {
    int64_t at;
    uint64_t born;
};

struct row {
    bool there, failed;
    bool doubted; /* somebody may yet make what it intends */
    struct core_terms t;
};

enum request_kind { CREATE, USE, STOP, REMOVE, RENAME, TERMS, CHANGE, AWAIT };

struct request {
    enum request_kind kind;
    int life, slot, to, key;
    bool answered, ensure;
    uint8_t asked[SHA256_BYTES];
    int64_t sent, expires, idle;
    uint64_t born, real; /* which box: as the core knew, and as it was */
    int deeds;           /* that were begun for it, of a change */
};

struct deed {
    bool used, affected, reported;
    int life, slot, to, key;
    uint64_t number, born;
    enum core_deed_kind kind;
    bool only_idle, without_effect;
    bool is_save; /* CORE_CHANGE that nobody asked for */
    int64_t ordered_at, effect_at, report_at, expires;
    enum pale_code says, result; /* says: instead of its result, if not 0 */
    uint8_t asked[SHA256_BYTES];
};

struct world {
    uint64_t seed, state;
    int64_t now, offset;
    bool chaos, deaf, trace;
    struct core *core; /* NULL: the daemon is dead */
    int life;
    int64_t wake_at; /* of the daemon */
    bool alone;      /* it has been told that no deed of another life is under way */
    struct site sites[SLOTS];
    struct eye eyes[SLOTS];
    struct row rows[SLOTS];
    struct deed deeds[DEEDS];
    struct request requests[REQUESTS];
    size_t asked;
    uint64_t births, keepers;
    bool strict[KEYS + 1]; /* nothing has happened that makes the core forget this key */
    struct failure remove_failed[SLOTS], stop_failed[SLOTS], save_failed[SLOTS];
    int64_t saved[SLOTS];    /* the idle time that began then has had its checkpoint; 0: none */
    int64_t saves_full_at;   /* as many were under way as may be */
    int64_t taken_at[SLOTS]; /* a deed to make a box was told, for certain, that there is one already */
    int64_t made[KEYS + 1];
    char bad[200];
};

/* A number below n. */
int64_t world_below(struct world *w, int64_t n);

/* What must hold; the first that does not is kept. */
void world_claim(struct world *w, bool holds, const char *what, int slot);

/* Says what happens, if somebody wants to know. */
void world_tell(const struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

const char *world_tenant_of(int s);
const char *world_name_of(int s);
const char *world_id_of(int s);
int world_slot_named(const char *tenant, const char *name);
int world_slot_with_id(const char *id);
struct core_sight world_sight_of(const struct world *w, int s);
unsigned world_jobs_of(const struct site *p);

/* The daemon will look there before long. */
void world_soon(struct world *w, int s);

void world_keeper_begins(struct world *w, int s);
void world_keeper_ends(struct world *w, int s);
void world_box_begins(struct world *w, int s);
void world_box_ends(struct world *w, int s);
void world_begin_job(struct world *w, int s);
void world_end_jobs(struct world *w, int s);

/* The deed does what it does. */
void world_affect(struct world *w, struct deed *d);

/* Is there a deed of this life at the place that has not been reported? */
bool world_has_deed(const struct world *w, int s);

/* A deed has failed that the core may try again. */
void world_failed(struct world *w, enum core_deed_kind kind, int s, uint64_t born);

/* All of core_io but the answers. What the core orders is checked. */
struct core_io world_io(struct world *w);

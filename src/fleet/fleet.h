/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: every box of the user, as the daemon sees it and acts on it.
 *
 * How it works: fleet/core decides; this gives it what it decides by. Boxes on the disk are found by a scan at the start and by inotify
 * afterwards; each live keeper is watched over a link of its own, which is also how a daemon that begins adopts what runs already.
 * Deeds are ordered from pale-steward, each over a connection of its own. */
#pragma once

#include "base/loop.h"
#include "box/place.h"
#include "fleet/core.h"
#include "fleet/events.h"
#include "fleet/tether.h"
#include "store/registry.h"
#include "wire/message.h"

/* What is known of a box that is up, besides what the core knows. */
struct lookout {
    char id[BOX_ID_LEN + 1];
    struct fleet *fleet;
    struct lookout *next;
    struct tether *link;
    bool up, wanted, frozen;
    bool adopted;    /* it was up before we were: nothing has happened */
    bool busy, dead; /* a frame of its keeper is being taken; it was forgotten meanwhile */
    unsigned tries;  /* to connect */
    unsigned round;  /* in which it was last tried */
    uint64_t keeper_pid, init_pid, started_unix_ms, jobs, ended;
    uint64_t out_bytes, cpu_us; /* of commands that ended since we watch */
    uint64_t calls;             /* requests of ours to its keeper that are under way */
    char memory_by[64], policy_digest[SHA256_HEX];
};

#define FLEET_BUCKETS 1024u
#define DOUBTS_MAX 1024u

struct fleet {
    struct loop *loop;
    struct core *core;
    struct registry *registry;
    struct events events;
    int steward_fd;
    char state_dir[PATH_BYTES_MAX], runtime_dir[RUNTIME_BYTES_MAX + 1];
    struct loop_source notify;
    int boxes_wd, runtime_wd;
    struct loop_timer timer, wanted;
    unsigned round; /* of those that are wanted */
    size_t doubts;  /* folders that may yet become boxes */
    bool open;
    struct lookout *watch[FLEET_BUCKETS];
    uint64_t live;
    struct {
        uint64_t execs, creates, removes, deeds, deed_failures;
    } counts;
};

/* Finds and adopts what there is. */
int fleet_open(struct fleet *f, struct loop *loop, struct registry *r, int steward_fd, struct pale_err *e) MUST_CHECK;
void fleet_close(struct fleet *f);

/* Requests. done is called exactly once, maybe before the call returns. */
typedef void fleet_done(void *arg, const struct core_answer *a);
struct fleet_order {
    const char *tenant, *name, *key, *policy, *sets;
    uint8_t asked[SHA256_BYTES];
    int64_t expires_unix_ms, idle_ms;
    bool ensure, start;
};
void fleet_create(struct fleet *f, const struct fleet_order *o, fleet_done *done, void *arg);
void fleet_use(struct fleet *f, const char *id, fleet_done *done, void *arg);
void fleet_stop(struct fleet *f, const char *id, fleet_done *done, void *arg);
void fleet_remove(struct fleet *f, const char *id, fleet_done *done, void *arg);
void fleet_rename(struct fleet *f, const char *id, const char *name, fleet_done *done, void *arg);
void fleet_set_terms(struct fleet *f, const char *id, int64_t expires_unix_ms, int64_t idle_ms, fleet_done *done, void *arg);

/* A deed that is nobody's business but the caller's. */
typedef void fleet_told(void *arg, const struct msg_deed_done *d);
void fleet_deed(struct fleet *f, const struct msg_deed *m, fleet_told *told, void *arg);

/* A connection to the keeper of a box that is up. */
int fleet_link(struct fleet *f, const char *id, const struct tether_use *use, void *owner, struct tether **ret,
               struct pale_err *e) MUST_CHECK;

/* After whatever may have changed when the core wants to be called next. */
void fleet_settle(struct fleet *f);

/* Its keeper was found to be ending, or gone, before the watch on it broke. */
void fleet_lost(struct fleet *f, const char *id);

/* NULL if it is not up. */
struct lookout *lookout_of(struct fleet *f, const char *id);
const char *fleet_state_name(const struct core_box *b);

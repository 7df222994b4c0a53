/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: every box of the user, as the daemon sees it and acts on it.
 *
 * How it works: fleet/core decides; this gives it what it decides by. Boxes on the disk are found by a scan at the start and by inotify
 * afterwards; each live keeper is watched over a link of its own, which is also how a daemon that begins adopts what runs already.
 * Deeds are ordered from pale-steward, each over a connection of its own. */
#pragma once

#include "base/loop.h"
#include "box/daemon.h"
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
    uint64_t cut; /* bits of enum msg_cut */
    bool has_network;
    uint64_t net_open, net_connections, net_refused, net_in, net_out;
    struct pending *pending; /* fleet/pending.h */
};

#define FLEET_BUCKETS 1024u
#define DOUBTS_MAX 1024u
#define FLEET_STREAMS_MAX 64u /* deeds that wait for slow clients, of the steward's 256 */

struct fleet {
    struct loop *loop;
    struct core *core;
    struct registry *registry;
    struct events events;
    int steward_fd;
    char state[DAEMON_STATE_MAX]; /* the folder that follows, as clients of this host name it */
    char state_dir[PATH_BYTES_MAX], runtime_dir[RUNTIME_BYTES_MAX + 1];
    struct loop_source notify;
    int boxes_wd, runtime_wd;
    struct loop_timer timer, wanted;
    unsigned round; /* of those that are wanted */
    size_t doubts;  /* folders that may yet become boxes */
    size_t streams; /* deeds that tell much, under way */
    bool open;
    struct lookout *watch[FLEET_BUCKETS];
    uint64_t live;
    struct {
        uint64_t execs, creates, removes, deeds, deed_failures;
    } counts;
};

/* Finds and adopts what there is. save_after_ms: as core_io's. */
int fleet_open(struct fleet *f, struct loop *loop, struct registry *r, int steward_fd, int64_t save_after_ms,
               struct pale_err *e) MUST_CHECK;
void fleet_close(struct fleet *f);

/* Requests. done is called exactly once, maybe before the call returns. caller: for whom, as the box's audit shall have it. */
typedef void fleet_done(void *arg, const struct core_answer *a);
struct fleet_order {
    const char *tenant, *name, *key, *policy, *sets, *caller;
    uint8_t asked[SHA256_BYTES];
    int64_t expires_unix_ms, idle_ms;
    bool ensure, start, by_hand; /* by_hand: no snapshots but those that are asked for */
};
void fleet_create(struct fleet *f, const struct fleet_order *o, fleet_done *done, void *arg);
void fleet_use(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg);
void fleet_stop(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg);
void fleet_remove(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg);
void fleet_rename(struct fleet *f, const char *id, const char *name, const char *caller, fleet_done *done, void *arg);
void fleet_set_terms(struct fleet *f, const char *id, int64_t expires_unix_ms, int64_t idle_ms, fleet_done *done, void *arg);

/* A change of its layers: order_change of fleet/order.h. The answer tells what the deed told. */
struct order_change;
void fleet_change(struct fleet *f, const char *id, const struct order_change *x, const char *caller, fleet_done *done, void *arg);

/* Answered when nothing is under way with the box, up or down. */
void fleet_await(struct fleet *f, const char *id, const char *caller, fleet_done *done, void *arg);

/* A deed that is nobody's business but the caller's. */
typedef void fleet_told(void *arg, const struct msg_deed_done *d);
void fleet_deed(struct fleet *f, const struct msg_deed *m, fleet_told *told, void *arg);

/* One that tells much: part is called with bytes as they come, told at the end, when the stream is gone. Both after the call has returned.
 * NULL: it could not be begun. A paused one waits; closing ends a deed that has something to tell still, and told is not called. */
struct order;
struct fleet_ears {
    void (*part)(void *arg, const void *p, size_t n);
    fleet_told *told;
    void (*taken)(void *arg); /* all that was given has been taken; NULL: it is given nothing */
    void *arg;
};
struct order *fleet_stream(struct fleet *f, const struct msg_deed *m, const struct fleet_ears *ears, struct pale_err *e) MUST_CHECK;
void fleet_stream_pause(struct order *o, bool on);
void fleet_stream_close(struct order *o);

/* Gives it bytes; last: there will be no more. False if it has more than it can hold. It waits while not all of them have been taken. */
bool fleet_stream_give(struct order *o, const void *p, size_t n, bool last);
bool fleet_stream_waits(const struct order *o);

/* A connection to the keeper of a box that is up. */
int fleet_link(struct fleet *f, const char *id, const struct tether_use *use, void *owner, struct tether **ret,
               struct pale_err *e) MUST_CHECK;

/* A box that may be new is looked at now. */
void fleet_look(struct fleet *f, const char *id);

/* After whatever may have changed when the core wants to be called next. */
void fleet_settle(struct fleet *f);

/* Its keeper was found to be ending, or gone, before the watch on it broke. */
void fleet_lost(struct fleet *f, const char *id);

/* NULL if it is not up. */
struct lookout *lookout_of(struct fleet *f, const char *id);
const char *fleet_state_name(const struct core_box *b);

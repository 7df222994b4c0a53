/* SPDX-License-Identifier: Apache-2.0 */
/* The state of pale-keeper: one box, the wire to its init, the clients on its socket, the jobs between them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/loop.h"
#include "box/audit.h"
#include "box/claims.h"
#include "box/gatemsg.h"
#include "box/place.h"
#include "box/proved.h"
#include "box/receipt.h"
#include "box/sealer.h"
#include "box/wardmsg.h"
#include "confine/cgroup.h"
#include "policy/policy.h"
#include "tier/wall.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/spool.h"

/* What a client's output buffer may hold: two windows of data that may come byte by byte, each with its frame's head, and the
 * last words. */
#define CLIENT_OUT_MAX (2u * 9u * STREAM_WINDOW + 65536u)
/* Ended jobs that are still remembered for wait and logs. */
#define JOBS_REMEMBERED 256
/* Output that is kept of a job that lasts, with the heads of its pieces. */
#define JOB_LOG_MAX (64ull << 20)
/* … and of all commands of a box together, beside what limits.disk holds. */
#define JOB_LOGS_MAX (256ull << 20)
#define JOB_KEY_MAX 128
/* How long init may take to end a command before the whole box is ended instead. */
#define KILL_GRACE_MS 5000

struct keeper;

struct client {
    struct loop_source source;
    struct keeper *k;
    struct client *next;
    struct buf in, out;
    struct kjob *job;            /* the command this connection started, or is attached to: its input and output */
    struct kjob *waiting;        /* the job whose end it waits for */
    bool following;              /* … and whose log it reads meanwhile */
    bool feeding;                /* … and to which it gives input */
    bool log_lasts;              /* … until it ends */
    bool log_more;               /* there is more of the log than fitted the buffer */
    bool watching;               /* is told of every job that begins or ends */
    bool greeted;                /* it has said which box it means */
    bool bound;                  /* it is passed on by somebody else, and no operator */
    bool freezing;               /* waits until the box stands still */
    bool pausing;                /* … and stays, for the box is to stand still no longer than that */
    bool prefaced;               /* it has said what follows: */
    char caller[CALLER_MAX + 1]; /* for whom, … */
    char input[SHA256_HEX];      /* … and the digest of its input, or "" */
    struct spool_mark log_at;
    bool finished; /* close once out is empty */
    bool stalled;  /* a frame waits for credit of init */
    /* Where in and out begin: most requests and answers are no longer. */
    uint8_t first_in[2048], first_out[512];
};

struct kjob {
    struct keeper *k;
    struct kjob *next; /* in order of birth */
    uint64_t id;
    uint16_t chan;
    enum job_state state;
    bool detached; /* nobody listened when it was started */
    bool once;     /* it lasts, but its output does not, once its client has it; … */
    bool brief;    /* … and of more than EXEC_BRIEF_BYTES it has not all */
    bool lasts;    /* … or whoever did may leave: its output is in the log, its end is remembered */
    bool takes_input, tty, killed, timed_out, out_of_memory, out_of_cpu;
    struct client *client;
    struct client *feeder;        /* who gives it input besides */
    struct buf request;           /* only while queued */
    struct loop_timer timer;      /* its time is up */
    struct loop_timer kill_timer; /* init has not ended it in time */
    uint64_t timeout_ms;
    int64_t started_us;
    uint64_t started_unix_ms, pid;
    uint64_t window_used; /* output received and not yet paid back with credit */
    uint64_t in_credit;   /* input bytes init is ready for */
    bool in_ended;
    uint64_t out_bytes, dropped_bytes, in_bytes;
    uint64_t err_bytes, err_beside; /* of out_bytes: of standard error; and what of that came beside the bound */
    struct spool log;
    uint8_t asked[SHA256_BYTES]; /* the request, if it had a key */
    char key[JOB_KEY_MAX + 1];
    uint64_t oom_before, cpu_before_us; /* the group's counts when it began */
    uint64_t cpu_sharers;               /* commands that ran at some time while it did, itself among them */
    struct msg_result result;
    char ender[CALLER_MAX + 1]; /* who sent it the signal, or ended it; "": nobody */
    char message[256];
    char command[512];
};

/* The proof that is under way, and what the last full one was. */
struct proof {
    bool surveyed;           /* what there is to know of ourselves is known */
    bool asked;              /* init has the question */
    bool at_start, reported; /* the one that decides whether the box is handed over; its report is here */
    bool full;
    struct client *client;       /* who asked for it later, … */
    char caller[CALLER_MAX + 1]; /* … and for whom: he may have left */
    struct proved proved;
    char kernel[65];
    uint32_t host_space[SPACE_COUNT];
    int landlock_left;       /* domains we could still enter ourselves, before we lock up */
    unsigned stale;          /* reports that are still to come and that nobody waits for */
    struct loop_timer timer; /* one on demand must come in time */
    char abstract[64];
    int tcp_fd, unix_fd;
    struct sealer sealer;
    uint32_t port;
    size_t report_len;
    uint8_t report[sizeof(struct probe_report)];
};

/* Whether the box stands still. */
enum freeze_state { FREEZE_NOT, FREEZE_UNDER_WAY, FREEZE_DONE };

struct freeze {
    enum freeze_state state;
    bool lifted;                 /* frozen, but let go on for as long as it takes to kill a command */
    uint64_t number;             /* of the freezes that init was asked for */
    const struct client *pauser; /* for whom alone it stands still; NULL: until somebody thaws it */
    int64_t until_ms;
    struct loop_timer timer; /* looks whether it is done; by init: it must be in time */
};

/* pale-warden, where the box has a live project. */
struct warding {
    struct loop_source source; /* the talk with it; -1: there is none */
    pid_t pid;
    struct ward_shared *shared;
    uint64_t asked, caught_up; /* requests to catch up, and the last that was answered */
    char dir[PATH_BYTES_MAX];  /* the quarantine */
    int held;                  /* of a one-shot box: a lock on it, so that nobody takes it for one that was left; else -1 */
};

/* What was counted in all. */
struct tally {
    uint64_t open, connections, refused, in, out;
};

/* pale-gateway, where the box has a network. */
struct wayout {
    struct loop_source source; /* the talk with it; -1: there is none */
    pid_t pid;
    const struct gate_meters *meters; /* which it writes; NULL: none */
    uint32_t gone, owed;              /* of go: told, and in all */
    uint64_t go[GATE_FLOWS_MAX];
    int published[EGRESS_PORTS_MAX]; /* that listen on the host, in the policy's order; the first published_count */
    size_t published_count;
    unsigned cut;              /* bits of enum msg_cut */
    uint64_t probes;           /* connections that our own prober has been told to try, and … */
    uint64_t probes_seen;      /* … how many of them the gateway has told of as refused */
    struct loop_timer telling; /* watchers hear of what was counted */
    struct tally told;
};

/* What connections of the box wait to hear from the operator. A box can ask for more than a person can read. */
#define QUESTIONS_MAX 64u         /* open at once */
#define QUESTIONS_PER_MINUTE 120u /* asked */
struct question {
    char id[QUESTION_ID_LEN + 1]; /* "": free */
    uint64_t number;              /* as the gateway has it */
    char host[DOMAIN_NAME_MAX + 1], name[DOMAIN_NAME_MAX + 1], rule[GATE_TEXT_MAX];
    uint16_t port;
    uint64_t job, asked_unix_ms;
};
struct questions {
    struct question item[QUESTIONS_MAX];
    int64_t minute;
    unsigned in_minute;
    char tenant[BOX_NAME_MAX + 1]; /* whose box it is; "": the user's own */
    char standing[SHA256_HEX];     /* digest of the answers that stand; "": none do */
    struct loop_timer expiry;      /* of the first of them */
};

struct keeper {
    struct loop loop;
    /* identity */
    char name[BOX_NAME_MAX + 1], id[BOX_ID_LEN + 1], policy_digest[SHA256_HEX];
    const char *data_dir, *state_dir, *socket_path; /* NULL for a one-shot box */
    bool once;
    bool next;                    /* it was started while its predecessor ended, … */
    bool ahead;                   /* … and has begun to build by … */
    char list_digest[SHA256_HEX]; /* … this list of layers */
    const char *starter;          /* for whom it was started */
    uint64_t weaken;
    uint64_t started_unix_ms;
    struct policy policy;
    struct ids ids;
    char runtime_dir[RUNTIME_BYTES_MAX + 1], etc_dir[RUNTIME_BYTES_MAX + 64];
    char user_dir[PATH_BYTES_MAX];                   /* the user's state folder */
    int box_lock, folder_lock, etc_lock, image_lock; /* held while the box lives */
    struct claims claims;                            /* the same */
    struct loop_source claim_places;                 /* who starts another box asks where our claimed folders are */
    int ids_home;                                    /* where the box's user namespace was made, for our successor too; -1: in ours */
    int policy_fd;                                   /* until what was read is sure to be on the disk */
    /* the wall */
    struct wall wall;
    uint64_t scratch_bytes;
    bool stands;        /* it was waited for already */
    int disk_fd;        /* a folder of the open layer, where the policy limits what the box has on the disk; else -1 */
    struct scope scope; /* where systemd hands out cgroups */
    struct cgroup cgroup;
    struct cgroup_host host; /* where the box's groups are made, and removed from */
    bool host_found;
    bool limits_by_watchdog, watchdog_on, watchdog_looks;
    const char *memory_by; /* what holds the memory limit */
    uint64_t cpus;         /* of the host */
    long page_bytes;
    uint64_t group_processes; /* what the pids controller was told; 0: not used */
    struct loop_source init_watch, wire, listener;
    struct buf wire_in, wire_out;
    unsigned wire_failures; /* in a row */
    bool hello, stopping, died, winding_up;
    bool yields; /* it is stopped by somebody who starts the next */
    char death[256];
    struct loop_timer stop_timer, cpu_timer;
    /* work */
    struct audit audit;
    char audit_path[PATH_BYTES_MAX + 16];
    struct proof proof;
    struct freeze freeze;
    struct warding warding;
    struct wayout wayout;
    struct questions questions;
    struct client *clients;
    size_t client_count;
    struct kjob *jobs, *last_job;
    /* The last that were done with, for the next to come: most boxes serve one command after another. */
    struct client *idle_client;
    struct kjob *idle_job;
    struct kjob *by_chan[JOBS_MAX];
    size_t job_count, running;
    uint64_t next_job, ended;
    uint64_t log_growth; /* of all logs of commands since their sum was looked at */
};

/* --- wire.c: the side of init --- */
int wire_open(struct keeper *k, struct pale_err *e) MUST_CHECK;
void wire_send(struct keeper *k, uint8_t type, uint16_t chan, const void *p, size_t n);
void wire_send_u64(struct keeper *k, uint8_t type, uint16_t chan, uint64_t v);

/* Ends the box because of its init; every client learns why. */
void keeper_box_died(struct keeper *k, const char *why);
/* A record with nothing but a reason, which may be NULL. */
void keeper_note(struct keeper *k, const char *event, const char *reason);
void keeper_stop(struct keeper *k);
/* While winding up: ends the loop once every client has its last words. */
void keeper_check_done(struct keeper *k);

/* --- proof.c: the receipt --- */
void proof_init(struct proof *p);
/* What the report is compared with and no box has a part in; proof_plan does it unless it was done before. */
void proof_survey(struct keeper *k);
/* Decides which probe this box gets and makes ready what it needs on the host. Before the keeper locks itself up. */
int proof_plan(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* Sends the question to init. */
void proof_start(struct keeper *k);
/* Waits for the report of a start; fails if the box does not hold what it promises. */
int proof_await(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* A report from init; false if nobody asked. */
bool proof_take(struct keeper *k, const void *report, size_t n);
void proof_ask(struct client *c, bool full);
void proof_client_left(struct client *c);
void proof_done(struct keeper *k);

/* --- client.c: the side of clients --- */
bool client_is_caller(const char *text);
int client_listen(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* Takes over a connected socket. */
struct client *client_add(struct keeper *k, int fd);
/* Takes what it has sent already. The client may be gone afterwards. */
void client_take(struct client *c);
void client_send(struct client *c, uint8_t type, const void *p, size_t n);
void client_error(struct client *c, enum pale_code code, const char *text);
void client_finish(struct client *c);
void client_tell_u64(struct client *c, uint8_t type, uint64_t v);
void client_tell_job(struct client *c, const struct kjob *j);
/* Whoever watches hears of it. */
void client_announce(struct keeper *k, const struct kjob *j);
void client_announce_state(struct keeper *k);
/* The last words to who asked about a job: how it stands. */
void client_tell_end(struct client *c, const struct kjob *j);
void client_flush(struct client *c);
void client_drop(struct client *c);
/* Tells whoever still waits to be let in that this keeper ends, and takes the socket away: they go to the next one. */
void client_turn_away(struct keeper *k);
/* Credit of init has come: frames that waited may go. */
void client_resume(struct client *c);

/* --- work.c: jobs --- */
void work_exec(struct client *c, const void *p, size_t n);
void work_stdin(struct kjob *j, const void *p, size_t n);
void work_output(struct kjob *j, bool is_err, const uint8_t *p, size_t n);
/* A client takes over the input and output of a job that lasts, from this byte of output on. */
void work_attach(struct client *c, struct kjob *j, uint64_t offset);
/* What a client attached to it has received of its log, and its end: the last words. */
void work_tell_result(struct client *c, struct kjob *j);
void work_exit(struct kjob *j, const struct msg_exit *x);
void work_gone(struct kjob *j);
void work_kill(struct kjob *j);
void work_signal(struct kjob *j, uint64_t signal);
void work_client_left(struct kjob *j);
void work_pay_credit(struct kjob *j);
void work_box_died(struct keeper *k, const char *why);
struct kjob *work_find(struct keeper *k, uint64_t id);
/* Those that wait for a channel get one, if there are any and the box is not frozen. */
void work_start_queued(struct keeper *k);
void work_tell(const struct kjob *j, struct msg_job *ret);
/* Is there no command, and nothing that one has left behind? */
bool work_is_empty(const struct keeper *k);
/* Does the counter of output keep as much as the policy says, and no byte more? */
bool work_holds_output(const struct keeper *k);

/* --- handover.c: from one keeper of a box to the next --- */
/* Writes down what is known of commands that have ended. Without it the box still starts, and knows nothing of them. */
void handover_write(struct keeper *k);
/* Takes it up, and removes the logs of all other commands: they belong to the keeper that ran them. */
void handover_read(struct keeper *k);
/* Clients can come to this one now. */
void handover_done(const struct keeper *k);

/* --- freeze.c: a box that stands still --- */
void freeze_ask(struct client *c, bool pause);
void freeze_ask_thaw(struct client *c);
/* It is gone: a box that stands still for it alone goes on. */
void freeze_client_left(const struct client *c);
/* Init says that all stands still; false if nobody asked. */
bool freeze_take(struct keeper *k, const void *p, size_t n);
/* A command is about to be killed: init must run for that. */
void freeze_lift(struct keeper *k);
/* A command is gone: if it was the last that was being killed, all stands still again. */
void freeze_resume(struct keeper *k);
/* The box is about to end: what is frozen could not even die. Its init is killed before anything runs again. */
void freeze_end(struct keeper *k);
/* "frozen" or "running" */
const char *freeze_name(const struct keeper *k);

/* --- claiming.c: claims on host folders --- */
/* Claims the box's own folder and these. Before the keeper locks itself up. */
int claiming_take(struct keeper *k, const char *const *paths, size_t count, struct pale_err *e) MUST_CHECK;
void claiming_drop(struct keeper *k);

/* --- warding.c: the guard of a live project --- */
bool warding_is_needed(const struct keeper *k);
/* Starts pale-warden, once the box's namespaces are there. Before the keeper locks itself up. */
int warding_start(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* The wall stands: the guard may be laid. */
void warding_stand(struct keeper *k);
/* Waits until it is. */
int warding_await(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* A command is about to start; none runs any more. */
void warding_started(struct keeper *k);
void warding_idle(struct keeper *k);
/* Waits a moment until what a command has planted is gone, before anybody is told of its end. */
void warding_catch_up(struct keeper *k);
/* The box is dead. */
void warding_end(struct keeper *k);

/* --- wayout.c: the gateway --- */
bool wayout_is_needed(const struct keeper *k);
/* Starts pale-gateway. *ret_hand: where the sockets of the box's network are to be sent. */
int wayout_start(struct keeper *k, int *ret_hand, struct pale_err *e) MUST_CHECK;
/* Waits until it holds the policy. */
int wayout_await(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* Nothing goes out any more, or the policy holds again, by k->wayout.cut; the rules are those of k->policy now. */
int wayout_cut(struct keeper *k, struct pale_err *e) MUST_CHECK;
int wayout_judge(struct keeper *k, struct pale_err *e) MUST_CHECK;
void wayout_end(struct keeper *k);
void wayout_verdict(struct keeper *k, uint64_t number, enum gate_verdict v);
/* All the answers that stand. */
int wayout_answers(struct keeper *k, const struct gate_answer *a, size_t n, struct pale_err *e) MUST_CHECK;
/* The command that dialled, which is known where only one runs; 0: not known. */
uint64_t wayout_job(const struct keeper *k);

/* --- question.c: the operator is asked --- */
/* Before the keeper locks itself up: finds out whose box it is. */
int question_begin(struct keeper *k, struct pale_err *e) MUST_CHECK;
void question_ask(struct keeper *k, const struct gate_message *m);
void question_take_back(struct keeper *k, uint64_t number);
/* The gateway begins anew, or is gone: nobody waits any more. */
void question_forget(struct keeper *k);
void question_tell_all(struct client *c);
/* A request about questions; false if it is none. */
bool question_frame(struct client *c, const struct frame *f);
/* Reads the answers that stand and has the gateway hold them. */
int question_reread(struct keeper *k, struct pale_err *e) MUST_CHECK;

/* --- reload.c: what changes under a box that runs --- */
/* How it stands when the box starts. Fails if it is cut off and cannot be held to that. */
int reload_init(struct keeper *k, struct pale_err *e) MUST_CHECK;
/* Is it still as it was read then? */
bool reload_is_now(const struct keeper *k);
/* Looks at the state folder again: a change there is written to the audit, and holds. */
int reload_now(struct keeper *k, struct pale_err *e) MUST_CHECK;

/* --- tally.c: what the gateway has counted --- */
void tally_fill(const struct keeper *k, struct msg_info *m);
void tally_hosts(struct client *c);
/* Something was counted: watchers hear of it a moment later. */
void tally_touch(struct keeper *k);

/* --- cputime.c: CPU time by the box's cgroup --- */
/* Holds a job that has just got its channel to the policy's CPU time, where the group counts it. */
void cputime_started(struct kjob *j);

/* --- request.c: what is asked for --- */
/* Checks it against the box and its policy and fills in what was left open. m->env points into the policy afterwards. */
int request_prepare(struct keeper *k, struct msg_exec *m, struct pale_err *e) MUST_CHECK;
/* Before the deed: who, what, where. Values of variables are not the audit's business. reason: why it is refused, or NULL. */
int request_audit(struct kjob *j, const struct msg_exec *m, const char *event, const char *reason, struct pale_err *e) MUST_CHECK;
/* The command in one line for people. */
void request_show(const struct msg_exec *m, char *ret, size_t cap);

/* --- result.c: how a job ended --- */
void result_set(struct kjob *j, const struct msg_exit *x);
void result_audit(struct kjob *j);

/* --- joblog.c: output of jobs that last --- */
/* Lets go of what a job has printed. */
void joblog_release(struct kjob *j);
int joblog_open(struct kjob *j, struct pale_err *e) MUST_CHECK;
void joblog_add(struct kjob *j, bool is_err, const uint8_t *p, size_t n);
/* The client reads from there on; it is told where that is. */
void joblog_begin(struct client *c, const struct kjob *j, uint64_t offset);
/* Copies what of the log the client has not seen, as much as its buffer takes; at the end of the log of a job that has ended, or
 * that is not waited for, the client is told so. Called again once the buffer is empty. */
void joblog_send(struct client *c);

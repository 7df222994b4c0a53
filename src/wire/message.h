/* SPDX-License-Identifier: Apache-2.0 */
/* The messages: what a keeper says to pale-init (To), what init answers (From), and what clients and keepers say to each
 * other on the keeper's socket (Ask, Tell).
 *
 * How it works: a message is a frame type and a record. Each record has one struct here with one writer and one strict
 * parser: unknown tags, doubled fields, wrong widths and strings with a NUL inside are refused. On the wire to init the
 * frame's channel is the job's slot; flow control is by credit (bytes the receiver is ready for), per job and direction.
 * Parsed structs point into the frame they came from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/record.h"

#define WIRE_VERSION 2u
#define WIRE_VERSION_TEXT "2" /* as heads of HTTP say it */

enum wire_type {
    /* keeper to init */
    TO_CONFIG = 1,
    TO_EXEC,
    TO_STDIN,
    TO_STDIN_END,
    TO_CREDIT, /* u64: more output bytes may come */
    TO_SIGNAL, /* u64: to the command's process group */
    TO_KILL,   /* end the command and every descendant */
    TO_RESIZE, /* u64: rows << 16 | columns */
    TO_CLOSE,  /* nobody reads any more: throw output away */
    TO_PROBE,  /* struct msg_probe: make a spare that tries the wall first */
    TO_FREEZE, /* u64, the number of this freeze: stop every process, where no cgroup can */
    TO_THAW,   /* let those that were stopped go on */
    /* init to keeper */
    FROM_HELLO = 64, /* u64: version */
    FROM_STARTED,    /* u64: pid in the box */
    FROM_STDOUT,
    FROM_STDERR,
    FROM_STDIN_CREDIT, /* u64 */
    FROM_EXIT,         /* struct msg_exit: the command itself has ended */
    FROM_GONE,         /* its last descendant has ended: the slot is free */
    FROM_PROBE,        /* struct probe_report of init/probe.h; empty: there is no prober to be had */
    FROM_FROZEN,       /* u64: every process stands still, of the freeze with this number */
    /* client to keeper */
    ASK_EXEC = 128,
    ASK_STDIN,
    ASK_STDIN_END,
    ASK_SIGNAL, /* u64 */
    ASK_RESIZE, /* u64: rows << 16 | columns */
    ASK_INFO,
    ASK_JOBS,
    ASK_JOB_WAIT, /* struct msg_job_ref */
    ASK_JOB_LOGS,
    ASK_JOB_KILL,
    ASK_STOP,      /* empty, or one byte of enum stop_word */
    ASK_POLICY,    /* canonical text: the first words to the keeper of a one-shot box */
    ASK_PROVE,     /* one byte: 1 for the full probe */
    ASK_ATTACH,    /* struct msg_attach: to a command that lasts, for its input and output */
    ASK_JOB_INPUT, /* struct msg_job_ref: ASK_STDIN follows, then ASK_INPUT_END; its output goes elsewhere */
    ASK_INPUT_END, /* one byte, 1: the command's input ends with it. Answered when all that came before has been taken: with TELL_JOB, and
                    * after ASK_JOB_INPUT with TELL_DONE */
    ASK_WATCH,     /* TELL_INFO and TELL_QUESTION for each that is open, then TELL_JOB whenever one begins or ends, TELL_INFO when the
                    * box's state changes, and TELL_QUESTION when one is asked or is open no longer */
    ASK_FREEZE,    /* TELL_DONE once every process of the box stands still. One byte, 1: until the client asks for ASK_THAW or is gone */
    ASK_THAW,      /* TELL_DONE once they go on */
    ASK_PREFACE,   /* struct msg_preface: what there is to know of the request that follows it. Once, and first */
    ASK_NOTE,      /* struct msg_note: a deed on the box that its log is to hold. Answered with TELL_DONE before it is done */
    ASK_GO,        /* to a keeper that was started before its box could be (box/reach.h, reach_start_next): it can, and the box's lock comes
                    * along */
    ASK_RELOAD,    /* the state folder has changed: a policy that waits there, or whether the box is cut off. TELL_DONE once it holds */
    ASK_NETWORK,   /* TELL_HOST for every host that is known of, then TELL_INFO */
    ASK_QUESTIONS, /* TELL_QUESTION for each that is open, TELL_DONE */
    ASK_VERDICT,   /* struct msg_verdict: to a question. TELL_DONE once it is in the log and the connections that wait were told */
    ASK_REREAD,    /* answers that stand have changed. TELL_DONE when they hold */
    ASK_BOUND,     /* said of a client by whoever passes him on: what follows is no operator's, who alone answers questions */
    ASK_LIST,      /* before ASK_GO: the list of layers as it will be, so that the wall can be built ahead */
    ASK_SAVED,     /* after it: the list of layers is the one to go by, … */
    ASK_KEPT,      /* … and on the disk */
    ASK_HELLO,     /* the id of the box that the client means. First on every connection to a keeper's socket, and not answered */
    /* keeper to client */
    TELL_STARTED = 192, /* u64: job number */
    TELL_STDOUT,
    TELL_STDERR,
    TELL_RESULT, /* struct msg_result */
    TELL_ERROR,  /* struct msg_error: ends the request */
    TELL_INFO,   /* struct msg_info */
    TELL_JOB,    /* struct msg_job, one per job */
    TELL_DONE,
    TELL_RECEIPT,  /* lines for people (name, expected, observed, ok), an empty one, the receipt as JSON */
    TELL_MISSED,   /* u64: so many bytes of output came before what follows and are no longer kept */
    TELL_OFFSET,   /* u64: the number of the first output byte that follows */
    TELL_HOST,     /* struct msg_host */
    TELL_QUESTION, /* struct msg_question */
};

enum stop_word {
    STOP_WORD_IDLE = 1, /* only if no command runs */
    STOP_WORD_EMPTY,    /* only if nothing runs at all; who starts the box next takes over what is known of commands that have ended */
};

/* What paled asks pale-steward for, each on a connection of its own: one frame there, one back; of a deed that tells much, its parts before
 * that. */
enum deed_kind {
    DEED_MAKE = 1,
    DEED_START,
    DEED_STOP,
    DEED_REMOVE,
    DEED_RENAME,
    DEED_POLICY,
    DEED_DOCTOR,
    DEED_SWEEP,
    DEED_CHECKPOINT,
    DEED_SNAPSHOT,
    DEED_RESTORE,
    DEED_FORGET, /* a snapshot */
    DEED_FORK,
    DEED_GC,
    DEED_DIFF,
    DEED_APPLY,
    DEED_DISCARD,
    DEED_IMAGE_LIST,
    DEED_IMAGE_SHOW,
    DEED_IMAGE_VERIFY,
    DEED_IMAGE_REMOVE,
    DEED_GUARD_LIST,
    DEED_GUARD_RELEASE,
    DEED_GUARD_DROP,
    DEED_IMAGE_BUILD, /* of a tar or an OCI archive parts follow, the last of them empty */
    DEED_EXPORT,
    DEED_IMPORT,   /* parts follow, the last of them empty */
    DEED_CUT,      /* count 1: cut it off from every network; 0: take that back */
    DEED_PANIC,    /* the same of every box */
    DEED_VERDICT,  /* to question `name` about the host in `sets`, port `count`: yes if `force`; `form`: the scope, for_ms: how long it
                      stands */
    DEED_COMPARE,  /* is the box `name` what DEED_MAKE would make of the same order? Else PALE_EXISTS */
    DEED_UNLANDED, /* has a project for review work that has not landed? Then PALE_CONFLICT */
    DEED_KIND_END
};

/* A command that does a deed finds the order on this descriptor, as a record, if the variable says so. */
#define DEED_ORDER_VARIABLE "PALE_ORDER"
#define DEED_ORDER_FD 3
enum deed_type { DEED_ASK = 1, DEED_DONE, DEED_PART /* bytes, opaque to paled, at most FRAME_DATA_MAX */ };

struct msg_deed {
    uint64_t kind;
    const char *id;       /* which box; "" of a new one */
    const char *name;     /* of a new one, or the new name; DEED_FORK: of the forks; of an image */
    const char *tenant;   /* "": the user's own */
    const char *policy;   /* JSON as a policy file has it; "": the defaults, DEED_IMPORT: what the archive wishes */
    const char *sets;     /* lines KEY TAB VALUE on top of it; DEED_IMAGE_BUILD: what its source takes */
    bool start;           /* a new box is started at once */
    bool only_idle;       /* DEED_STOP: only if no command runs */
    uint64_t born;        /* which box of that id; 0: whichever there is */
    bool narrower;        /* DEED_POLICY: only what is within the policy there is */
    const char *caller;   /* for whom it is, as in msg_preface */
    const char *snapshot; /* of that name; DEED_SNAPSHOT: "" for one of ours, DEED_FORK, DEED_EXPORT: "" for the box as it is now */
    uint64_t count;       /* DEED_FORK: how many; DEED_GUARD_RELEASE, DEED_GUARD_DROP: which */
    bool force;           /* DEED_RESTORE, DEED_DISCARD: whatever runs is ended */
    bool again;           /* DEED_SNAPSHOT: one of that name that is there will do */
    bool automatic;       /* DEED_SNAPSHOT: only if it keeps such and something has changed */
    bool by_hand;         /* DEED_MAKE: it keeps no automatic snapshots */
    const char *paths;    /* DEED_DIFF, DEED_APPLY, DEED_DISCARD: a list in JSON of those it is about; "": all */
    const char *until;    /* DEED_DIFF: a second snapshot; "": the box as it is now. The first is `snapshot`; "": what it began with.
                           * DEED_IMAGE_BUILD, DEED_IMPORT: how to tell how far it is, "lines" or "events"; "": not at all */
    const char *form;     /* DEED_DIFF: a name of enum rendition_form; DEED_IMAGE_BUILD: the source; DEED_EXPORT: zstd or plain */
    bool guarded;         /* DEED_APPLY: also what the host would run or obey */
    bool dry;             /* DEED_APPLY, DEED_GC: tell what would become of each, change nothing */
    bool images;          /* DEED_GC: also images that nobody needs */
    uint64_t for_ms;      /* DEED_VERDICT */
};
void msg_deed_write(const struct msg_deed *m, struct record_writer *w);
bool msg_deed_parse(const void *p, size_t n, struct msg_deed *ret);

struct msg_deed_done {
    uint64_t code;    /* enum pale_code; 0: done */
    const char *text; /* why not, or what the deed printed */
    const char *id, *name;
};
void msg_deed_done_write(const struct msg_deed_done *m, struct record_writer *w);
bool msg_deed_done_parse(const void *p, size_t n, struct msg_deed_done *ret);

#define EXEC_BRIEF_BYTES (1u << 20)

enum exec_flag {
    EXEC_TTY = 1,
    EXEC_STDIN = 2,
    EXEC_DETACH = 4,  /* client to keeper only */
    EXEC_BUILTIN = 8, /* argv[0] names a function of pale-init, run under the command's own confinement */
    EXEC_SHARE = 16,  /* stderr goes where stdout goes */
    EXEC_LAST = 32,   /* client to keeper only: it outlives this connection, and its output is kept for who attaches */
    EXEC_ONCE = 64,   /* with EXEC_LAST: nobody comes back for its output, which is let go once this client has it */
    EXEC_BRIEF = 128, /* … if it is no more than EXEC_BRIEF_BYTES: of more this client has the beginning */
    EXEC_FLAGS_ALL = 255,
};

struct msg_exec {
    uint64_t flags;
    uint16_t rows, cols;
    const char *user;    /* to a keeper: "", a name or a number; the keeper decides */
    uint32_t uid, gid;   /* to init */
    uint64_t timeout_ms; /* 0: none */
    uint64_t cpu_ms;     /* to init; 0: none */
    const char *cwd;     /* "" : the default */
    const char *label;   /* to a keeper: what the audit shows for a builtin */
    const char *key;     /* to a keeper, with EXEC_LAST: the same request with the same key is the same command; "": none */
    size_t heldc;        /* to a keeper: variables of the host that were held back, for its log */
    const char *held[ENV_HELD_MAX];
    size_t argc, envc; /* before the long lists, of which mostly the first page alone is used */
    const char *argv[EXEC_STRINGS_MAX + 1];
    const char *env[EXEC_STRINGS_MAX + 1]; /* "NAME=value" */
};
void msg_exec_write(const struct msg_exec *m, struct record_writer *w);
bool msg_exec_parse(const void *p, size_t n, struct msg_exec *ret);

/* Only what comes before the lists, for who hands the message on to somebody who parses all of it. */
bool msg_exec_parse_head(const void *p, size_t n, struct msg_exec *ret);

/* What a keeper must know of a request and its init need not. */
#define CALLER_MAX 32
struct msg_preface {
    const char *caller; /* for whom it is: a name as boxes have them, at most CALLER_MAX bytes. Who says nothing is "local" */
    const char *input;  /* SHA-256 of the input that a command with a key will be given; "": it is not known yet */
};
void msg_preface_write(const struct msg_preface *m, struct record_writer *w);
bool msg_preface_parse(const void *p, size_t n, struct msg_preface *ret);

struct msg_config {
    uint64_t version;
    uint32_t uid, gid; /* who commands run as unless the request says otherwise */
    bool one_id;       /* only that one id exists in the box */
    bool pretence;     /* … and looks like root (confine/pretence.h) */
    uint32_t seccomp;  /* enum policy_seccomp */
    uint64_t nofile;
    uint64_t processes; /* 0: none */
    bool spare;         /* keep one command's process ready ahead of time */
    bool solo;          /* one command is all this box will ever run: it needs no runner */
    uint64_t weaken;    /* test builds only: defences that are off */
};
void msg_config_write(const struct msg_config *m, struct record_writer *w);
bool msg_config_parse(const void *p, size_t n, struct msg_config *ret);

struct msg_probe {
    bool full;
    uint32_t port;        /* of the host's loopback, where somebody listens */
    const char *planted;  /* a file of the host that must not be there */
    const char *abstract; /* a socket of the host */
};
void msg_probe_write(const struct msg_probe *m, struct record_writer *w);
bool msg_probe_parse(const void *p, size_t n, struct msg_probe *ret);

enum exit_flag {
    EXIT_NOT_STARTED = 1, /* value is an errno; the stage says what failed */
    EXIT_CPU_LIMIT = 2,
    EXIT_KILLED = 4, /* ended because it was told to, with all its descendants */
    EXIT_GONE = 8,   /* no descendant is left: no FROM_GONE will follow */
    /* It failed, and at its end there was no room for more bytes, or for more files, … */
    EXIT_NO_ROOM = 16,
    EXIT_NO_FILES = 32,
    EXIT_IN_MEMORY = 64, /* … not in the box's layers, but in what it has in memory beside them */
};

struct msg_exit {
    uint64_t flags;
    uint64_t value; /* wait status, or errno with EXIT_NOT_STARTED */
    uint64_t stage; /* enum exec_stage with EXIT_NOT_STARTED */
    uint64_t cpu_us, peak_kib;
};
void msg_exit_write(const struct msg_exit *m, struct record_writer *w);
bool msg_exit_parse(const void *p, size_t n, struct msg_exit *ret);

enum exec_stage { STAGE_FORK, STAGE_CONFINE, STAGE_TERMINAL, STAGE_USER, STAGE_CWD, STAGE_EXEC, STAGE_COUNT };

enum result_flag {
    RESULT_TIMEOUT = 1,
    RESULT_CPU_LIMIT = 2,
    RESULT_OOM = 4,
    RESULT_TRUNCATED = 8,
    RESULT_NOT_STARTED = 16,
    RESULT_KILLED = 32,    /* by stop, kill or a lost client */
    RESULT_DISK_FULL = 64, /* it failed, and what it may write was full */
};

/* Their names for programs, ended by one without. */
struct msg_result_name {
    uint64_t flag;
    const char *name;
};
extern const struct msg_result_name msg_result_names[];

struct msg_result {
    uint64_t flags;
    uint64_t status; /* what a shell would show: 0-255 */
    uint64_t signal; /* 0, or what ended it */
    uint64_t time_us, cpu_us, peak_kib;
    uint64_t out_bytes, dropped_bytes;
    const char *message; /* "" or one sentence: why it did not start, which limit ended it */
};
void msg_result_write(const struct msg_result *m, struct record_writer *w);
bool msg_result_parse(const void *p, size_t n, struct msg_result *ret);

struct msg_error {
    uint64_t code; /* enum pale_code */
    const char *text;
};
void msg_error_write(const struct msg_error *m, struct record_writer *w);
bool msg_error_parse(const void *p, size_t n, struct msg_error *ret);

struct msg_job {
    uint64_t id, pid, state; /* enum job_state */
    uint64_t started_unix_ms, time_us;
    uint64_t status, signal, flags; /* as in msg_result, once ended */
    uint64_t cpu_us, peak_kib, out_bytes, dropped_bytes;
    bool detached, lasts, tty;
    uint64_t in_bytes;   /* of input it was given */
    const char *key;     /* what its request had; "" */
    const char *command; /* quoted for people */
    const char *message;
};
enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_ENDED, JOB_STATE_COUNT };
const char *msg_job_state(const struct msg_job *m);
/* How it ended, of one that has. Points to the job's message. */
struct msg_result msg_job_result(const struct msg_job *m);
void msg_job_write(const struct msg_job *m, struct record_writer *w);
bool msg_job_parse(const void *p, size_t n, struct msg_job *ret);

struct msg_job_ref {
    uint64_t id;
    uint64_t signal; /* kill: 0 means the whole tree at once */
    bool follow;     /* logs */
    uint64_t offset; /* logs: the first output byte wanted */
};
void msg_job_ref_write(const struct msg_job_ref *m, struct record_writer *w);
bool msg_job_ref_parse(const void *p, size_t n, struct msg_job_ref *ret);

/* A deed that is not the keeper's own: which, and on what. */
struct msg_note {
    const char *event;
    const char *what;
};
void msg_note_write(const struct msg_note *m, struct record_writer *w);
bool msg_note_parse(const void *p, size_t n, struct msg_note *ret);

/* A question that connections of a box wait for. */
#define QUESTION_ID_LEN 8
enum question_state { QUESTION_OPEN, QUESTION_ALLOWED, QUESTION_DENIED, QUESTION_WITHDRAWN, QUESTION_STATE_COUNT };
struct msg_question {
    const char *id;           /* hexadecimal digits that no other has */
    uint64_t state;           /* enum question_state */
    const char *host;         /* the name or the address that it is about */
    const char *name;         /* by which the box came to the address; "" */
    uint64_t port;            /* of TCP */
    const char *rule;         /* of the policy, that asks */
    uint64_t job;             /* the command that wants it; 0: not known */
    uint64_t asked_unix_ms;   /* when */
    uint64_t expires_unix_ms; /* when nobody will wait any more */
    const char *by;           /* who answered; "" */
    const char *scope;        /* for what; "" */
};
const char *msg_question_state(const struct msg_question *m);
void msg_question_write(const struct msg_question *m, struct record_writer *w);
bool msg_question_parse(const void *p, size_t n, struct msg_question *ret);

/* An answer cites its question whole: one that has changed its meaning under way is refused. */
enum verdict_scope { APPLIES_ONCE, APPLIES_BOX, APPLIES_PROJECT, APPLIES_ALWAYS, APPLIES_COUNT };
extern const char *const msg_verdict_scopes[APPLIES_COUNT];
struct msg_verdict {
    const char *question; /* its id */
    const char *box;      /* the id of the box that asks */
    const char *host;
    uint64_t port;
    bool allow;
    uint64_t scope;      /* enum verdict_scope */
    uint64_t until_unix; /* in seconds: when it stands no more; 0: never. Not of APPLIES_ONCE */
};
void msg_verdict_write(const struct msg_verdict *m, struct record_writer *w);
bool msg_verdict_parse(const void *p, size_t n, struct msg_verdict *ret);

struct msg_attach {
    uint64_t id;
    uint64_t offset; /* the first output byte wanted */
};
void msg_attach_write(const struct msg_attach *m, struct record_writer *w);
bool msg_attach_parse(const void *p, size_t n, struct msg_attach *ret);

struct msg_info {
    uint64_t version, keeper_pid, init_pid, started_unix_ms, jobs, clients, ended;
    const char *name, *id, *state;                                    /* "running" or "frozen" */
    const char *policy_digest, *memory_by;                            /* of what holds now; what holds the memory limit */
    uint64_t cut;                                                     /* bits of enum msg_cut: nothing goes out, by whose word */
    bool has_network;                                                 /* what follows is counted */
    uint64_t net_open, net_connections, net_refused, net_in, net_out; /* connections now and in all, refusals, bytes */
};
enum msg_cut { MSG_CUT_BOX = 1, MSG_CUT_ALL = 2, MSG_CUT_BITS = 3 };
void msg_info_write(const struct msg_info *m, struct record_writer *w);
bool msg_info_parse(const void *p, size_t n, struct msg_info *ret);

/* What was counted for one name, or address, and port. */
struct msg_host {
    const char *name; /* quoted */
    uint16_t port;    /* 0: of several, or of none */
    uint64_t connections, refused, in, out;
};
void msg_host_write(const struct msg_host *m, struct record_writer *w);
bool msg_host_parse(const void *p, size_t n, struct msg_host *ret);

/* Messages that are one number. */
bool msg_u64_parse(const void *p, size_t n, uint64_t *ret);

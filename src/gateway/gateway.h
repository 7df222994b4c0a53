/* SPDX-License-Identifier: Apache-2.0 */
/* The state of pale-gateway: one box's way out.
 *
 * Everything is in tables of fixed size: whoever asks for more than they hold is refused, and nothing is allocated for a connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "box/gatemsg.h"
#include "confine/detour.h"
#include "net/address.h"
#include "net/dnslookup.h"
#include "net/dnsmsg.h"
#include "net/hello.h"
#include "net/hostname.h"
#include "net/httpflow.h"
#include "policy/egress.h"
#include "policy/policy.h"

#define FLOWS_MAX GATE_FLOWS_MAX
#define HTTP_FLOWS_MAX 1024u /* … of them plain HTTP */
#define PIPES_MAX 1024u      /* … with bytes under way */
#define KNOWN_MAX 512u       /* names whose addresses are known */
#define KNOWN_ADDRESSES_MAX 16u
#define LOOKUPS_MAX 64u /* at once */
#define ASKERS_MAX 256u /* questions of the box that wait for one */
#define SERVERS_MAX 3u  /* as resolv.conf has it */
#define ZONES_MAX 256u  /* whose names are counted */
#define STREAMS_MAX 64u /* questions over connections, at once */

#define FIRST_BYTES_MS 15000 /* a connection that neither speaks nor is spoken to for so long is over */
#define SILENT_MS 250        /* after which a dialler is taken for one that waits for the server to speak first */
#define DIAL_MS 15000
#define HELLO_MS 60000 /* between the messages in which TLS is agreed on */
#define ASK_MS 120000
#define LINGER_MS 2000
#define TICK_MS 100
#define IDLE_TICK_MS 60000 /* when nobody waits */

struct gateway;

/* --- what is known of names --- */

struct known {
    struct hostname name;
    uint32_t made_up; /* the address of IPv4 that stands for a name which the operator was not asked about yet; 0: none */
    uint8_t current;  /* addresses that the last answer had; older ones follow, for whoever still dials them */
    uint8_t count;
    struct address address[KNOWN_ADDRESSES_MAX];
    int64_t fresh_ms; /* so long the current ones are told without asking again; 0: never asked */
    int64_t used_ms;
};

/* --- connections --- */

enum flow_state {
    FLOW_FREE,
    FLOW_FIRST,  /* the client's first bytes are awaited */
    FLOW_NAME,   /* the addresses of its name are looked up */
    FLOW_ASK,    /* the operator is asked */
    FLOW_DIAL,   /* the server is dialled, and the audit written */
    FLOW_GREET,  /* the server may speak; the client has not */
    FLOW_HELLO,  /* TLS: the server's first bytes decide whether there is a second hello */
    FLOW_AGAIN,  /* TLS: the second hello is awaited */
    FLOW_HTTP,   /* plain HTTP, request by request */
    FLOW_OPEN,   /* bytes pass both ways */
    FLOW_LINGER, /* refused: the client reads why */
};

struct pipe {
    int ends[2];
    bool is_open, is_lent;
};

/* One direction: bytes on their way from one socket to the other. */
struct half {
    int pipe;          /* index of the pipe they are in; -1: none are */
    uint32_t held;     /* bytes in it */
    bool ended;        /* nothing comes any more */
    bool told;         /* … and the other side knows */
    bool starved;      /* there was no pipe */
    uint64_t may_pass; /* bytes that may still be taken; UINT64_MAX: all */
    uint64_t passed;
};

struct http_slot {
    struct httpflow flow;
    bool used;
    uint64_t granted; /* bytes of a response that were read and may pass */
    size_t len, at;   /* of out, to the server */
    uint8_t out[HTTPREQUEST_BYTES_MAX + 1024];
};

/* A yes is for the name or for the address that was asked about, and for no other. */
enum grant { GRANT_NAME = 1, GRANT_ADDRESS = 2 };

struct flow {
    struct gateway *g;
    enum flow_state state;
    bool dialled, audited; /* both: bytes may pass */
    bool asks_address;     /* its question is about the address, not the name */
    uint8_t granted;       /* what the operator said yes to: bits of enum grant */
    bool silent;           /* the server may speak before the client does */
    bool waited;           /* its silence was noticed */
    bool looked_up;        /* … its name, for this connection */
    bool is_tls, is_http, is_other;
    bool is_counted;    /* by some rule */
    uint16_t host_port; /* of the host itself, which the name stands for; 0: none */
    uint64_t counts[EGRESS_WORDS];
    uint16_t port;
    uint16_t http;       /* its slot + 1; 0: none */
    int16_t host;        /* its row of the meters; -1: none yet */
    uint32_t generation; /* so that a late word about another is noticed */
    uint32_t question;   /* that waits for the operator; 0: none */
    int64_t due_ms;
    struct address to; /* as the client dialled */
    struct address at; /* as we do */
    struct loop_source client, server;
    struct half up, down;
    uint64_t counted_in, counted_out;
    size_t seen;          /* bytes of the client's hello */
    struct hostname name; /* that it was allowed for; len 0: none */
    uint32_t next;        /* of the free ones, + 1 */
};

/* --- questions about names --- */

/* Who waits for a lookup. */
enum asker_kind { ASKER_FREE, ASKER_DATAGRAM, ASKER_STREAM, ASKER_FLOW };
struct asker {
    enum asker_kind kind;
    uint32_t lookup; /* index */
    int socket;      /* DATAGRAM: which of the detour's; STREAM: which stream */
    uint32_t flow, generation;
    struct sockaddr_storage from;
    socklen_t from_len;
    struct dns_query query;
};

struct lookup {
    bool used;
    struct gateway *g;
    struct loop_source source;
    struct hostname name;
    struct dns_question question[2];
    bool answered[2];
    struct dns_found found[2];
    uint8_t tries, stream; /* stream: over a connection, 1 + which question */
    int64_t due_ms;
    size_t got; /* of a stream's answer */
    uint8_t answer[4096];
};

struct stream {
    struct loop_source source;
    struct gateway *g;
    uint32_t generation;
    bool used, waits;
    int64_t due_ms;
    size_t got;
    uint8_t query[1024];
};

/* Names that were looked up beneath one zone: what can be told to its server that way has a limit. */
struct zone {
    uint64_t hash;
    uint32_t names;
    int64_t since_ms;
};

/* Connections to one row of the meters, in a minute. */
struct rate {
    int64_t minute;
    uint64_t count;
};

/* A port of the host that leads to one of the box. */
struct inlet {
    struct loop_source source;
    struct gateway *g;
    uint16_t port, host_port;
};

/* A connection that came by one. */
enum passage_state {
    PASSAGE_FREE,
    PASSAGE_ASKED, /* the audit is written */
    PASSAGE_DIAL,
    PASSAGE_OPEN,
    PASSAGE_LAST, /* the client is gone; the box takes the end of it */
};
struct passage {
    struct gateway *g;
    enum passage_state state;
    uint32_t generation;
    uint16_t port, host_port;
    int16_t row;                    /* of the meters */
    struct loop_source client, box; /* box: one of g->inward, which stays open */
    struct half up, down;           /* up: into the box */
    uint64_t counted_in, counted_out;
    int64_t due_ms;
};

struct listener {
    struct loop_source source;
    struct gateway *g;
    int which; /* enum detour_socket */
};

struct gateway {
    struct loop loop;
    struct loop_timer tick;
    struct loop_source talk;
    uint64_t weaken;
    uint64_t begun; /* how often serving has begun */
    int sockets[DETOUR_SOCKETS];
    struct listener listeners[DETOUR_SOCKETS];
    int inward[DETOUR_INWARD]; /* of the box's namespace, not connected */
    uint32_t inward_count, inlet_count;
    bool inlets_wait; /* for a passage that is free */
    struct inlet inlets[EGRESS_PORTS_MAX];
    struct passage passages[DETOUR_INWARD];
    bool has_policy, is_cut;
    struct policy policy;
    struct gate_meters *meters;
    struct rate rates[GATE_HOSTS_MAX];
    uint64_t rule_hash[POLICY_LIST_MAX]; /* of the policy's rules; 0: not known yet */
    int resolv_fd, hosts_fd;
    int64_t files_ms; /* when they were asked for */
    uint32_t flow_max;
    uint32_t free_flow, flow_top, generation; /* the first free one + 1; all from flow_top on were never used */
    struct pipe pipes[PIPES_MAX];
    uint32_t known_count, made_up_next, question_next;
    int64_t told_ms; /* refusals that were told one by one since then */
    uint32_t told;
    uint64_t untold;
    uint32_t answer_count;
    struct gate_answer answers[GATE_ANSWERS_MAX];
    struct known known[KNOWN_MAX];
    struct zone zones[ZONES_MAX];
    struct lookup lookups[LOOKUPS_MAX];
    struct asker askers[ASKERS_MAX];
    struct stream streams[STREAMS_MAX];
    struct http_slot http[HTTP_FLOWS_MAX];
    struct flow flows[FLOWS_MAX];
};

/* --- main.c --- */
/* Somebody waits for time or for a pipe. Each …_tick does what is due and tells whether anybody still waits. */
void gateway_wake(struct gateway *g);

/* --- liaison.c: the keeper --- */
void liaison_hello(struct gateway *g);
void liaison_error(const struct pale_err *e);
int liaison_watch(struct gateway *g, struct pale_err *e) MUST_CHECK;
/* Something was refused; told one by one until there is too much of it. */
struct refusal {
    enum gate_kind kind;
    const char *name; /* NULL: none */
    const struct address *address;
    uint16_t port;
    const char *rule, *why; /* rule may be NULL */
};
void liaison_deny(struct gateway *g, const struct refusal *r);
void liaison_flood(struct gateway *g);
void liaison_allow(struct gateway *g, const struct flow *f, const char *rule);
void liaison_end(struct gateway *g, const struct flow *f);
void liaison_ask(struct gateway *g, const struct flow *f, const char *rule);
void liaison_take_back(struct gateway *g, const struct flow *f, uint32_t question);
void liaison_want_files(struct gateway *g);

/* Of a connection into the box; type: GATE_ALLOW or GATE_END. */
void liaison_inward(struct gateway *g, enum gate_type type, uint64_t number, const struct passage *p);

/* --- inward.c: connections into the box --- */
void inward_start(struct gateway *g);
/* Takes the listening socket. */
void inward_publish(struct gateway *g, int *fd, uint16_t port, uint16_t host_port);
void inward_go(struct gateway *g, uint64_t number);
/* None if nothing may pass any more. */
void inward_judge(struct gateway *g);
bool inward_tick(struct gateway *g, int64_t now);

/* --- verdict.c: may it --- */
struct judgement {
    enum policy_verdict verdict;
    bool is_port_listed; /* somebody meant whatever is spoken at this port */
    bool is_exact;       /* a rule is for this name alone */
    bool asks_address;   /* a question is about the address, not the name */
    struct egress_verdict egress;
    char rule[GATE_TEXT_MAX];
    char why[GATE_TEXT_MAX];
};
/* What a rule asks about and the operator has said yes to is allowed: granted, bits of enum grant, or by an answer that stands. */
void verdict_judge(const struct gateway *g, const struct egress_question *q, unsigned granted, struct judgement *ret);
/* A connection as far as it is known; final: its address is. */
void verdict_flow(const struct flow *f, bool final, struct judgement *ret);
/* May the name be looked up for the box at all? */
void verdict_name(const struct gateway *g, const struct hostname *name, struct judgement *ret);
/* Does any rule, or the mode, depend on whom a connection is for? Then nobody may hide it. */
bool verdict_minds_names(const struct gateway *g);
/* A connection counts in its rules from now on; false, and j says why, if one of them is full. */
bool verdict_take(struct flow *f, struct judgement *j);
void verdict_give_back(struct flow *f);
/* It counts in these rules, whatever they allow: it is open already. */
void verdict_count(struct flow *f, const struct judgement *j);
void verdict_spend(struct flow *f, uint64_t in, uint64_t out);
/* How many bytes its rules still allow in one direction. */
uint64_t verdict_left(struct flow *f, enum policy_quota which);

/* --- meter.c --- */
/* The row of a name or an address. */
int16_t meter_row(struct gateway *g, const struct flow *f);
int16_t meter_published(struct gateway *g, uint16_t port);
void meter_refused(struct gateway *g, const char *name, uint16_t port);

/* --- known.c: names and their addresses --- */
struct known *known_find(struct gateway *g, const struct hostname *name);
/* Finds it or makes room for it by forgetting another. */
struct known *known_add(struct gateway *g, const struct hostname *name);
bool known_has(const struct known *k, const struct address *a);
/* The next name that led to this address, from *at on; NULL: none. *at begins with 0. */
const struct known *known_next(const struct gateway *g, const struct address *a, uint32_t *at);
/* The name that a made-up address stands for. */
const struct known *known_made_up(const struct gateway *g, const struct address *a);
struct address known_make_up(struct gateway *g, struct known *k);
/* May one more name beneath its zone be looked up? */
bool known_spend(struct gateway *g, const struct hostname *name);

/* --- resolve.c: our own questions --- */
/* Finds the addresses of a name; the asker, which is copied, hears of it, perhaps before this returns. false: there is no room. */
bool resolve_start(struct gateway *g, const struct hostname *name, const struct asker *who);
bool resolve_tick(struct gateway *g, int64_t now);
/* In a test build: a question goes on as it came. */
void resolve_forward(const struct gateway *g, const uint8_t *p, size_t n);

/* --- oracle.c: questions of the box --- */
void oracle_datagram(struct loop_source *s, uint32_t events);
void oracle_stream(struct loop_source *s, uint32_t events);
bool oracle_tick(struct gateway *g, int64_t now);
/* What came of a lookup. k has no current address: there is none; failed: nobody could be asked. */
void oracle_found(struct gateway *g, struct asker *who, struct known *k, bool failed);

/* --- flow.c: connections --- */
void flow_accept(struct loop_source *s, uint32_t events);
void flow_on_server(struct loop_source *s, uint32_t events);
/* Every connection is judged again: what may not be any more is cut. */
void flow_judge_all(struct gateway *g);
/* Rules are about to become others: what is open counts in none of them until it is judged again. */
void flow_uncount_all(struct gateway *g);
bool flow_tick(struct gateway *g, int64_t now);
/* Counts what has passed; false: a rule has no bytes left for it, and it was cut. */
bool flow_count(struct flow *f);
/* Its end. After any of these the slot may be another's. */
void flow_drop(struct flow *f);
void flow_reset(struct flow *f); /* … so that the client's next call says that it was reset */
/* The client is told why, in what it speaks, and so is the audit. */
void flow_refuse(struct flow *f, const char *rule, const char *why);
/* It was allowed, but the server cannot be had. */
void flow_fail(struct flow *f, const char *why);
/* Its last words to the client, who has a while to read them. */
void flow_say(struct flow *f, const void *p, size_t n);
/* Asks for the events that matter now. */
void flow_watch(struct flow *f);
socklen_t flow_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);
/* Looks at what a side has sent without taking it. 0: it has ended; -1: nothing is there. */
ssize_t flow_peek(struct flow *f, struct loop_source *from, uint8_t *to, size_t cap);
/* Wakes us when there are more bytes than that. */
void flow_wait_for(const struct loop_source *s, size_t n);
static inline uint32_t flow_index(const struct flow *f)
{
    return (uint32_t)(f - f->g->flows);
}

/* --- opening.c: the first bytes --- */
/* Something has come; ended: nothing more will. */
void opening_first(struct flow *f, bool ended);
void opening_again(struct flow *f, bool ended);
/* The first bytes of a TLS server. */
void opening_greeting(struct flow *f);
/* Nothing has come so far. */
void opening_silence(struct flow *f);
/* The name that the client gave, in its one form; false: it was refused. */
bool opening_name(struct flow *f, const char *p, size_t n);
void opening_other(struct flow *f);

/* --- crossing.c: from a name to a server --- */
/* The client has said whom it wants, by a name that it gave or that its address was told for: judges it, and dials if it may. */
void crossing_decide(struct flow *f);
void crossing_dialled(struct flow *f);
/* The server is there and the audit is written: what the client said may go. */
void crossing_begin(struct flow *f);
/* What the others have to say: a lookup, the keeper, the operator. */
void crossing_found(struct gateway *g, uint32_t index, uint32_t generation, struct known *k, bool failed);
void crossing_go(struct gateway *g, uint64_t number);
void crossing_verdict(struct gateway *g, uint64_t question, enum gate_verdict v);
/* It waits for its question no longer. */
void crossing_withdraw(struct flow *f);

/* --- plain.c: plain HTTP on a connection --- */
void plain_end(struct flow *f);
/* The first bytes of a client who speaks HTTP. */
void plain_first(struct flow *f, const uint8_t *p, size_t n, bool ended);
/* Goes on as far as it can with what both sides have sent. The flow may be gone afterwards. */
void plain_step(struct flow *f);
/* What it waits for. */
void plain_want(const struct flow *f, uint32_t *client, uint32_t *server);

/* --- packet.c: what the kernel refused --- */
void packet_refused(struct loop_source *s, uint32_t events);

/* --- relay.c: bytes from one socket to the other --- */
enum relay { RELAY_WAITS, RELAY_ENDED, RELAY_BROKEN };
enum relay relay_move(struct gateway *g, struct half *h, int from, int to);
void relay_release(struct gateway *g, struct half *h);

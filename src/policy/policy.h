/* SPDX-License-Identifier: Apache-2.0 */
/* What a box may do: one struct, whatever it was written as (YAML, JSON, a capability file, flags).
 *
 * How it works: pale-policy turns text files into the canonical text (policy_write), which is one `key value` line per
 * field in a fixed order; the CLI, the keeper and the digest know only that. A field table in policy/field.c drives
 * defaults, canonical text, flags, JSON, diff and narrowing, so that a key cannot be known in one place and forgotten in
 * another. A struct policy owns all it points to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "net/address.h"

enum policy_tier { TIER_AUTO, TIER_NATIVE, TIER_GVISOR, TIER_MICROVM, TIER_COUNT };
enum policy_project { PROJECT_NONE, PROJECT_RO, PROJECT_REVIEW, PROJECT_LIVE, PROJECT_COUNT }; /* rising: wider */
enum policy_network { NETWORK_NONE, NETWORK_FILTERED, NETWORK_OPEN, NETWORK_HOST, NETWORK_COUNT };
enum policy_scratch { SCRATCH_DISK, SCRATCH_MEMORY, SCRATCH_COUNT };
enum policy_seccomp { SECCOMP_STRICT, SECCOMP_DEBUG, SECCOMP_IMAGE_BUILD, SECCOMP_COUNT };
enum policy_verdict { VERDICT_ALLOW, VERDICT_ASK, VERDICT_DENY, VERDICT_COUNT };

enum policy_limit_kind {
    LIMIT_MEMORY,    /* bytes, the whole box */
    LIMIT_PROCESSES, /* processes and threads at once, the whole box but for pale-init */
    LIMIT_CPU_TIME,  /* milliseconds of CPU one command and its descendants may use */
    LIMIT_CPU_SHARE, /* thousandths of one CPU, the whole box */
    LIMIT_DISK,      /* bytes of the box's own writable layers */
    LIMIT_WALL,      /* milliseconds one command may take */
    LIMIT_OUTPUT,    /* bytes of output one command may hand back */
    LIMIT_TOKENS,    /* model tokens */
    LIMIT_COST,      /* millionths of a dollar */
    LIMIT_COUNT,
};

struct policy_limit {
    uint64_t value; /* 0: none */
    bool asked;     /* somebody wrote it down: it holds, or the box does not start */
};

struct policy_strings {
    char **item;
    size_t count;
};

struct policy_volume {
    char *host, *target; /* absolute, normal */
    bool writable;
};

/* When a rule is in force, by the clock of UTC. */
struct policy_window {
    uint8_t days;      /* a bit for each, Monday is 1; 0: always */
    uint16_t from, to; /* minutes of the day; to is not in it any more */
};

enum policy_method { METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_COUNT };

/* What a rule holds flows to. 0: nothing. */
enum policy_quota {
    QUOTA_RATE,        /* connections a minute to each name (or address, if there is no name) */
    QUOTA_BYTES_OUT,   /* in all, for the whole box and everything that the rule matches */
    QUOTA_BYTES_IN,    /* likewise */
    QUOTA_CONNECTIONS, /* at once, likewise */
    QUOTA_COUNT,
};

struct policy_egress {
    char *domain;               /* "x.org", "*.x.org" or "*", canonical; NULL: the rule is about addresses */
    struct address_range range; /* … about these */
    uint16_t *ports;            /* rising */
    size_t port_count;          /* 0: every port */
    uint16_t host_port;         /* not 0: this port of the host's loopback under the name `domain`; it is the only one in ports */
    enum policy_verdict verdict;
    uint64_t quota[QUOTA_COUNT];
    struct policy_window window;
    unsigned methods;            /* a bit for each policy_method; 0: every method. With paths: for plain HTTP alone */
    struct policy_strings paths; /* "/a", or "/a/" and a star for all beneath; none: every path */
};

/* A port of the host's loopback that leads to one of the box. */
struct policy_publish {
    uint16_t host, box;
};

struct policy {
    enum policy_tier tier;
    char *image; /* NULL: the host base */
    enum policy_project project;
    char *project_path;                /* absolute; NULL: the folder the box is made in */
    struct policy_strings read, write; /* host paths that appear at the same place in the box */
    struct policy_volume *volumes;
    size_t volume_count;
    char *volume_root; /* NULL, or the folder every volume's host side must lie beneath */
    enum policy_network network;
    struct policy_strings presets; /* "NAME@VERSION": where rules came from; "NAME": still to be applied (policy/preset.h) */
    struct policy_egress *egress;
    size_t egress_count;
    struct policy_publish *publish;
    size_t publish_count;
    struct policy_limit limits[LIMIT_COUNT];
    struct policy_strings env_set;   /* "NAME=value" */
    struct policy_strings env_pass;  /* "NAME", or "PREFIX*", which never matches a name that looks like a secret */
    struct policy_strings env_allow; /* the same, but nothing that looks like a secret comes in by it, written out or not */
    enum policy_scratch scratch;
    enum policy_seccomp seccomp;
    struct policy_strings guard; /* names the host would run or obey: not writable in a live project */
};

/* The defaults (deny all, the stated default limits, the default guard list). */
int policy_init(struct policy *p, struct pale_err *e) MUST_CHECK;
void policy_done(struct policy *p);
#define own_policy CLEANUP(policy_done) struct policy

/* Canonical text: deterministic, complete, and the only form the keeper reads. policy_parse is strict: every scalar key
 * exactly once, in order, nothing else, in the very bytes policy_write gives; a cut-off text never parses. It checks each
 * value but not the whole (policy_check does). ret is left alone on failure. The digest is that of the text, or empty if
 * memory ran out: no policy has an empty one. */
void policy_write(const struct policy *p, struct buf *out);
int policy_parse(const char *text, size_t len, struct policy *ret, struct pale_err *e) MUST_CHECK;
void policy_digest(const struct policy *p, char ret[SHA256_HEX]);

/* Sets one key from text as a flag gives it ("limits.memory", "512M"); a list key appends, and a value that is there already
 * stays. Values: volumes HOST:TARGET[:ro|rw]; network.egress a rule (policy/rule.h); network.publish [HOSTPORT:]BOXPORT; env.set NAME=value
 * (replaces); guard NAME, or -NAME to take one out; limits none for no limit; image, project.path and volume_root - for none. "project" and
 * "network" are short for their modes. The error names the key, the value, what would be right, and the nearest key. On
 * failure the policy is as before. */
int policy_set(struct policy *p, const char *key, const char *value, struct pale_err *e) MUST_CHECK;

/* Whole-policy rules that no single key shows: two folders for one place in the box, volumes outside volume_root, egress rules
 * with network none, a writable second name for files of the project … Rules about the project hold once project_path is
 * filled in, so whoever fills it in checks again. */
int policy_check(const struct policy *p, struct pale_err *e) MUST_CHECK;

/* Is child within parent in every field? If not (PALE_DENIED) the error says which field widens, from what to what. Both have
 * passed policy_check. What cannot be compared is wider. */
int policy_narrow(const struct policy *parent, const struct policy *child, struct pale_err *e) MUST_CHECK;

/* Is this a limit that nothing holds in this build? One that was asked for is refused (policy_held); a default is only told. */
bool policy_limit_is_unheld(const struct policy *p, enum policy_limit_kind which);

/* Says no to whatever this build cannot hold yet (egress rules, review projects, images …), with the reason. */
int policy_held(const struct policy *p, struct pale_err *e) MUST_CHECK;

/* "may this box …": kind is "read" or "write" (the host's file that stands at this path of the box; what the box makes for
 * itself elsewhere is not the host's), "reach" (NAME[:PORT], 443 if left out) or "env" (the host's variable). rule is the
 * policy line that decides, reason one sentence for people. allowed is true only for VERDICT_ALLOW. */
struct policy_answer {
    bool allowed;
    enum policy_verdict verdict;
    char rule[256];
    char reason[512];
};
int policy_ask(const struct policy *p, const char *kind, const char *what, struct policy_answer *ret, struct pale_err *e) MUST_CHECK;

/* What becomes of a variable of the host. */
enum policy_env {
    ENV_STAYS_OUT, /* no line names it, or the policy sets it itself */
    ENV_COMES_IN,
    ENV_HELD_BACK, /* a line names it, but it looks like a secret and the line is not the operator's word for it */
};

/* value: NULL if it is not known; then only the name is judged. */
enum policy_env policy_env_verdict(const struct policy *p, const char *name, const char *value);

/* May a host variable of this name come in? Whether its value looks like a secret is not asked. */
bool policy_passes_env(const struct policy *p, const char *name);
bool policy_is_secret_name(const char *name);

/* Does this text look like a secret: a key or token of a known form, a URL with a password, a long random text? */
bool policy_is_secret_value(const char *value);

/* For people and for machines. */
void policy_show(const struct policy *p, struct buf *out);
void policy_json(const struct policy *p, struct json *j, const char *key);

/* As a policy file has it, in JSON: what differs from the defaults. Read again it gives the same policy. */
int policy_source(const struct policy *p, struct json *j, const char *key, struct pale_err *e) MUST_CHECK;

/* One line per difference ("limits.memory: 512MiB -> 1GiB (wider)") or, with j, a list of objects. Returns how many. */
size_t policy_diff(const struct policy *a, const struct policy *b, struct buf *out, struct json *j);

/* The first key by which a box that runs by `old` cannot have `new` without another start; NULL if there is none: with a gateway, what is
 * about its network holds at once. */
const char *policy_needs_start(const struct policy *old, const struct policy *new, bool has_gateway);

/* Names of the enum values, for reading and showing. */
const char *policy_network_name(enum policy_network n);

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the names of the defences that a test build can switch off. */
#include "confine/weaken.h"

#ifdef PALE_WEAKEN
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[WEAKEN_COUNT] = {
    [WEAKEN_SECCOMP] = "seccomp",
    [WEAKEN_LANDLOCK] = "landlock",
    [WEAKEN_INNER_USERNS] = "inner-userns",
    [WEAKEN_CAPS] = "caps",
    [WEAKEN_NNP] = "nnp",
    [WEAKEN_NETNS] = "netns",
    [WEAKEN_IPCNS] = "ipcns",
    [WEAKEN_PIDNS] = "pidns",
    [WEAKEN_ROOT] = "root",
    [WEAKEN_READONLY] = "readonly",
    [WEAKEN_PROC_MASK] = "proc-mask",
    [WEAKEN_FDS] = "fds",
    [WEAKEN_ENV] = "env",
    [WEAKEN_LIMITS] = "limits",
    [WEAKEN_USER_MAX] = "user-max",
    [WEAKEN_TREE_KILL] = "tree-kill",
    [WEAKEN_OUTPUT] = "output",
    [WEAKEN_DUMPABLE] = "dumpable",
    [WEAKEN_RECEIPT] = "receipt",
    [WEAKEN_GUARD] = "guard",
    [WEAKEN_CORE] = "core",
    [WEAKEN_CGROUPNS] = "cgroupns",
    [WEAKEN_MOUNT_FLAGS] = "mount-flags",
    [WEAKEN_NOFOLLOW] = "nofollow",
    [WEAKEN_IDS] = "ids",
    [WEAKEN_CLAIMS] = "claims",
    [WEAKEN_CLAIM_MARKS] = "claim-marks",
    [WEAKEN_CLAIM_MOVED] = "claim-moved",
    [WEAKEN_PROJECTS] = "projects",
    [WEAKEN_DEATH] = "death",
    [WEAKEN_PLAIN_OPEN] = "plain-open",
    [WEAKEN_QUOTE] = "quote",
    [WEAKEN_AUDIT_CHAIN] = "audit-chain",
    [WEAKEN_NAMES] = "names",
    [WEAKEN_USERS] = "users",
    [WEAKEN_PRIVATE_DIR] = "private-dir",
    [WEAKEN_OWN_PLACES] = "own-places",
    [WEAKEN_POLICY_CHECK] = "policy-check",
    [WEAKEN_READER_LOCK] = "reader-lock",
    [WEAKEN_DAEMON_LOCK] = "daemon-lock",
    [WEAKEN_TOKENS] = "tokens",
    [WEAKEN_WIDEN] = "widen",
    [WEAKEN_ORIGIN] = "origin",
    [WEAKEN_PROFILE] = "profile",
    [WEAKEN_BENEATH] = "beneath",
    [WEAKEN_LAYERS] = "layers",
    [WEAKEN_HAZARD] = "hazard",
    [WEAKEN_POISON] = "poison",
    [WEAKEN_EXCHANGE] = "exchange",
    [WEAKEN_BITS] = "bits",
    [WEAKEN_HOLES] = "holes",
    [WEAKEN_TREE_LOCK] = "tree-lock",
    [WEAKEN_GATE_RULES] = "gate-rules",
    [WEAKEN_GATE_NAMES] = "gate-names",
    [WEAKEN_GATE_ADDRESS] = "gate-address",
    [WEAKEN_GATE_MATCH] = "gate-match",
    [WEAKEN_GATE_ECH] = "gate-ech",
    [WEAKEN_GATE_HTTP] = "gate-http",
    [WEAKEN_GATE_STRICT] = "gate-strict",
    [WEAKEN_GATE_FORWARD] = "gate-forward",
    [WEAKEN_GATE_CUT] = "gate-cut",
};

/* Those that weak_word alone asks for, and no bit stands for. */
static const char *const more_names[] = {
    "identity",        /* a folder that was moved or copied is taken for the box */
    "hello",           /* a keeper serves whoever means another box */
    "layer-makers",    /* layers are joined whoever has made them */
    "layer-names",     /* every box's first layer has one name, and a name that is taken is taken for the layer itself */
    "minted-ids",      /* a box's id is made of its path */
    "lost-list",       /* a lost list of layers is taken for that of a new box */
    "strangers",       /* layers that boxes of another state folder may stand on are removed */
    "review-start",    /* every layer is as old as the box that has it */
    "review-moved",    /* a file in a folder that was moved counts as one that stood there */
    "review-guess",    /* what is not known to be what the box began with is taken for it */
    "review-landed",   /* nothing is known of what was landed */
    "review-dirty",    /* every file is what git's index says when the box begins */
    "review-tick",     /* times are compared with a margin of some milliseconds */
    "review-type",     /* a folder in the place of a file is not shown */
    "review-link",     /* what lies behind a link cannot be looked at, and so may be a repository */
    "review-ignored",  /* what git ignores lands */
    "review-index",    /* git in a box writes the index when it looks at it */
    "review-filter",   /* a blob of the size of a file is what the file held, whatever filter made it */
    "half-made",       /* a box whose maker was killed at the last step is none */
    "real-paths",      /* symlinks in paths of the state folder, or of a box's old place, stay */
    "claim-strangers", /* what another user claims is believed */
};

static bool is_more(const char *at, size_t n)
{
    for (size_t i = 0; i < sizeof(more_names) / sizeof(more_names[0]); i++)
        if (strlen(more_names[i]) == n && memcmp(more_names[i], at, n) == 0)
            return true;
    return false;
}

uint64_t weaken_from_env(void)
{
    const char *at = getenv("PALE_WEAKEN");
    uint64_t set = 0;
    while (at && *at) {
        size_t n = strcspn(at, ",");
        int found = -1;
        for (int i = 0; i < WEAKEN_COUNT; i++)
            if (strlen(names[i]) == n && memcmp(names[i], at, n) == 0)
                found = i;
        if (found < 0 && !is_more(at, n)) {
            fprintf(stderr, "PALE_WEAKEN: no defence is called %.*s\n", (int)n, at);
            exit(125);
        }
        set |= found < 0 ? 0 : 1ULL << found;
        at += n;
        at += *at == ',';
    }
    return set;
}
char *const *weaken_envp(void)
{
    static char word[512];
    static char *envp[2];
    const char *v = getenv("PALE_WEAKEN");
    snprintf(word, sizeof(word), "PALE_WEAKEN=%s", v ? v : "");
    envp[0] = v ? word : NULL;
    return envp;
}
#else
uint64_t weaken_from_env(void)
{
    return 0;
}

char *const *weaken_envp(void)
{
    static char *envp[1];
    return envp;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Defences that a test build can switch off one at a time, so that every test of a defence can be seen to fail. In a release
 * is_weak() is constantly false and the words are not even read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum weaken {
    WEAKEN_SECCOMP,
    WEAKEN_LANDLOCK,
    WEAKEN_INNER_USERNS, /* the payload keeps the outer user namespace and its capabilities' owner */
    WEAKEN_CAPS,
    WEAKEN_NNP,
    WEAKEN_NETNS,
    WEAKEN_IPCNS,
    WEAKEN_PIDNS,
    WEAKEN_ROOT,         /* the host's root is left in place below the box's */
    WEAKEN_READONLY,     /* host folders are mounted writable */
    WEAKEN_PROC_MASK,    /* /proc is whole and /proc/sys writable */
    WEAKEN_FDS,          /* descriptors are not closed before a command starts */
    WEAKEN_ENV,          /* the host's environment comes in */
    WEAKEN_LIMITS,       /* no cgroup, no process limit */
    WEAKEN_USER_MAX,     /* the per-namespace limits of user.max_* stay open */
    WEAKEN_TREE_KILL,    /* only the command itself is killed, not its descendants */
    WEAKEN_OUTPUT,       /* output is not capped */
    WEAKEN_DUMPABLE,     /* pale-init can be looked into */
    WEAKEN_RECEIPT,      /* a box is handed over without a probe */
    WEAKEN_GUARD,        /* guarded names of a live project are left writable, .pale is shown */
    WEAKEN_CORE,         /* a crash may leave a core file */
    WEAKEN_CGROUPNS,     /* the host's cgroup paths are seen */
    WEAKEN_MOUNT_FLAGS,  /* mounts are neither nosuid nor nodev */
    WEAKEN_NOFOLLOW,     /* host paths and mount points are followed through symlinks */
    WEAKEN_IDS,          /* root's boxes have the host's own ids */
    WEAKEN_CLAIMS,       /* two boxes may write one folder */
    WEAKEN_CLAIM_MARKS,  /* … where they are of two runtime folders or users */
    WEAKEN_CLAIM_MOVED,  /* … that was moved after the first had it */
    WEAKEN_PROJECTS,     /* the .pale of other projects is shown */
    WEAKEN_DEATH,        /* a box does not end with its keeper */
    WEAKEN_PLAIN_OPEN,   /* file requests open whatever stands there */
    WEAKEN_QUOTE,        /* foreign text is printed as it is */
    WEAKEN_AUDIT_CHAIN,  /* a verification looks at nothing */
    WEAKEN_NAMES,        /* any text is a box name */
    WEAKEN_USERS,        /* a user that cannot be read is taken for root, or for the only one */
    WEAKEN_PRIVATE_DIR,  /* a folder of somebody else's serves for sockets */
    WEAKEN_OWN_PLACES,   /* pale's own folders may be given to a box */
    WEAKEN_POLICY_CHECK, /* every path may be given, and what cannot be held is accepted */
    WEAKEN_READER_LOCK,  /* pale-policy reads without locking itself up */
    WEAKEN_DAEMON_LOCK,  /* paled serves without locking itself up */
    WEAKEN_TOKENS,       /* every token sees every box and has every right */
    WEAKEN_WIDEN,        /* operators' acts are everybody's */
    WEAKEN_ORIGIN,       /* requests that a browser was lured into are served */
    WEAKEN_PROFILE,      /* commands have the filter of pale-init alone */
    WEAKEN_BENEATH,      /* the host follows links in trees that boxes wrote */
    WEAKEN_LAYERS,       /* what lies highest below the open layer is shown itself, without an overlay */
    WEAKEN_HAZARD,       /* whatever a box wrote lands without a question */
    WEAKEN_POISON,       /* layers are used whatever they hold */
    WEAKEN_EXCHANGE,     /* a landing writes into the files that stand in the tree */
    WEAKEN_BITS,         /* a landing gives files the set-id bits that they have in the box */
    WEAKEN_HOLES,        /* holes of files are read byte by byte */
    WEAKEN_TREE_LOCK,    /* trees that boxes wrote are read with every right that whoever asked has */
    WEAKEN_GATE_RULES,   /* the gateway lets every connection through */
    WEAKEN_GATE_NAMES,   /* … and answers for every name */
    WEAKEN_GATE_ADDRESS, /* a name may lead to any address */
    WEAKEN_GATE_MATCH,   /* … and is not compared with the address that was dialled, nor with a second name */
    WEAKEN_GATE_ECH,     /* an encrypted name passes */
    WEAKEN_GATE_HTTP,    /* only the first request of a connection is judged; what comes after it passes unread */
    WEAKEN_GATE_STRICT,  /* what cannot be read passes as if it named nobody */
    WEAKEN_GATE_FORWARD, /* questions about names go on to the host's server as they came */
    WEAKEN_GATE_CUT,     /* a box that is cut off goes on */
    WEAKEN_COUNT,
};

/* Reads "seccomp,landlock" from the environment of a test build; 0 in a release. */
uint64_t weaken_from_env(void);

/* The environment for pale-init: nothing, or in a test build that one variable. */
char *const *weaken_envp(void);

static inline bool is_weak(uint64_t set, enum weaken w)
{
#ifdef PALE_WEAKEN
    return set >> w & 1;
#else
    (void)set;
    (void)w;
    return false;
#endif
}

/* Who is to become the box's user without entering the namespace that would give the right to keeps it until then. */
static inline bool keeps_caps(uint64_t set)
{
    return is_weak(set, WEAKEN_CAPS) || is_weak(set, WEAKEN_INNER_USERNS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of pale-warden: one live project, the folders it watches, the names that are guarded in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "box/wardmsg.h"
#include "policy/guard.h"
#include "warden/folders.h"
#include "warden/mantle.h"
#include "warden/taking.h"

/* A name with a read-only mount of its own in the box. As long as it has that, only the host can have put something else there. */
struct laid {
    int wd; /* of the folder it is in */
    char *name;
};

/* Folders that are to be listed, the last one first. */
struct walk {
    struct todo {
        unsigned folder, serial;
        int fd; /* the folder, if it is still open from when it was seen */
    } * todo;
    size_t count, cap, held; /* held: how many are open */
};

struct warden {
    const char *project, *quarantine; /* paths, for Landlock alone */
    int talk_fd, project_fd, init_fd, inotify_fd;
    const struct ward_shared *shared;
    uint64_t settled; /* commands that are known to have ended, with all they did to the project seen */
    struct policy_strings names;
    struct guard_set guard;
    struct folders folders;
    int unwatched; /* the last number below 0 that a folder has instead of a watch */
    struct walk walk;
    struct laid *laid;
    unsigned laid_count, laid_cap;
    struct mantle mantle;
    struct taking taking;
    bool stands;                        /* the guard is laid: what appears now is dealt with, before it was only noted */
    bool stand, catch_up, finish, gone; /* what the keeper asked for; it is gone itself */
    uint64_t catch_number;              /* which of its requests to catch up */
    bool idle_told;
    uint64_t idle_number;
    bool failed;           /* the keeper was told that the box must end */
    bool lost;             /* events were lost, or folders cannot be watched: everything must be looked through */
    bool slow;             /* … and that is so from now on */
    bool looking;          /* it is being done */
    bool wary;             /* … or was just, and may have missed what was moved meanwhile, until the events of then are seen */
    int64_t look_began_us; /* … since then */
    int64_t look_again_us; /* when it may be done again */
    int64_t swept_us;      /* when folders that have left the project were last let go */
    int64_t flood_us;      /* when the counting of what is told one by one began */
    unsigned told, untold;
};

/* --- account.c: the talk with the keeper --- */
void account_send(struct warden *w, enum ward_type type, unsigned code, uint64_t number, const char *text);
void account_error(struct warden *w, const struct pale_err *e);
/* Takes what the keeper has sent, without waiting. */
void account_take(struct warden *w);
/* Says what is about to be taken, and waits until the audit has it, but not for ever; or counts it in a flood. */
void account_taking(struct warden *w, const char *path, unsigned kind);
/* The rest of a flood that is over. */
void account_flood(struct warden *w, bool now);

/* --- patrol.c: looking --- */
/* Watches the project and all below it, and notes guarded names that are there. */
int patrol_start(struct warden *w, struct pale_err *e) MUST_CHECK;
/* Begins to look through everything. */
int patrol_look_through(struct warden *w, struct pale_err *e) MUST_CHECK;
/* Takes a block of the kernel's events, or lists one folder; *ret_any: there was something to do. */
int patrol_events(struct warden *w, bool *ret_any, struct pale_err *e) MUST_CHECK;
int patrol_step(struct warden *w, bool *ret_any, struct pale_err *e) MUST_CHECK;

/* --- judge.c: what becomes of a guarded name --- */
/* name in folder n, which is open as dirfd, is guarded: it is laid, taken, or left because the host may have it so. */
int judge_name(struct warden *w, unsigned n, int dirfd, const char *name, struct pale_err *e) MUST_CHECK;
/* It is not there any more, or not under that name. */
void judge_gone(struct warden *w, int wd, const char *name);
/* Lays all that was noted. */
int judge_lay_noted(struct warden *w, struct pale_err *e) MUST_CHECK;
/* The path of name in folder n; false if that is too long, or not known any more. */
bool judge_path(const struct warden *w, unsigned n, const char *name, char ret[PATH_BYTES_MAX]);
/* The box has closed folder n, open as dirfd, so that names in it cannot be looked at: opens it again. False if that cannot be. */
bool judge_open_up(struct warden *w, unsigned n, int dirfd);
/* Is anything in that folder guarded by a mount? */
bool judge_has_laid(const struct warden *w, int wd);
/* Can the box have done what was just seen? */
bool judge_is_suspect(const struct warden *w);

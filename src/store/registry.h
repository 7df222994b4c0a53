/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon remembers: tokens, and on which terms boxes were asked for. The truth about boxes is on the file system: without
 * the registry tokens and terms are lost, never a box.
 *
 * Beside its own, every function has the errors of the file: PALE_LIMIT (disk full), PALE_OS, PALE_BUSY, PALE_NO_MEMORY, and
 * PALE_CORRUPT for a row that we would not have written. What failed has changed nothing. What succeeded outlives the process being
 * killed, and unless it says more, a loss of power may take the newest changes. What is found is one piece of memory, the
 * caller's, to be freed with free() (own_mem). Times are milliseconds since 1970. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/sha256.h"

struct registry;

/* Opens the registry at an absolute path, or makes it; see database_open for what is refused. */
int registry_open(const char *path, struct registry **ret, struct pale_err *e) MUST_CHECK;
void registry_close(struct registry *r);

struct registry_box {
    const char *tenant;          /* "" is the operator */
    const char *name;            /* tenant and name are the key */
    const char *key;             /* makes asking twice harmless; "" is none */
    uint8_t asked[SHA256_BYTES]; /* digest of the request that made it */
    int64_t made_unix_ms;
    int64_t expires_unix_ms; /* 0 is never */
    int64_t idle_ms;         /* how long it may be idle; 0 is for ever */
    uint64_t born;           /* which box of that name the terms are of; 0 is one that is not made yet */
};

/* Adds the terms of a box or replaces them. PALE_BAD_INPUT for text or times out of bounds, PALE_LIMIT if there are REGISTRY_BOXES_MAX. */
int registry_box_put(struct registry *r, const struct registry_box *b, struct pale_err *e) MUST_CHECK;

/* PALE_NOT_FOUND if there is none; so do the finders. */
int registry_box_drop(struct registry *r, const char *tenant, const char *name, struct pale_err *e) MUST_CHECK;
int registry_box_find(struct registry *r, const char *tenant, const char *name, struct registry_box **ret, struct pale_err *e) MUST_CHECK;
int registry_box_find_key(struct registry *r, const char *tenant, const char *key, struct registry_box **ret,
                          struct pale_err *e) MUST_CHECK;

/* Calls fn for every box by tenant and name until it returns other than 0, which is then the result. fn may change the registry. */
int registry_box_each(struct registry *r, int (*fn)(const struct registry_box *b, void *arg, struct pale_err *e), void *arg,
                      struct pale_err *e) MUST_CHECK;

/* 0 is none of them: a struct nobody filled in is no operator's. */
enum registry_scope { REGISTRY_SCOPE_BOX = 1, REGISTRY_SCOPE_TENANT, REGISTRY_SCOPE_OPERATOR };

struct registry_token {
    char id[TOKEN_ID_LEN + 1]; /* lower-case hex; the handle that may be shown */
    const char *name;          /* for people; may be "" */
    enum registry_scope scope;
    const char *tenant;       /* of a tenant's token never "", of an operator's always */
    char box[BOX_ID_LEN + 1]; /* of a box's token the box's id, else "" */
    uint64_t born;            /* … and which box of that id, else 0 */
    uint64_t rights;          /* bits, the caller's */
    int64_t made_unix_ms;
    int64_t expires_unix_ms, revoked_unix_ms, last_used_unix_ms; /* 0 is never */
};

/* Is it neither revoked nor expired? The finders do not ask. */
bool registry_token_is_good(const struct registry_token *t, int64_t now_unix_ms);

/* Adds a token by the SHA-256 of its text; the text itself is never here. PALE_BAD_INPUT for what breaks the rules above, PALE_EXISTS
 * for an id or a hash that is there, PALE_LIMIT if there are REGISTRY_TOKENS_MAX. */
int registry_token_add(struct registry *r, const struct registry_token *t, const uint8_t hash[SHA256_BYTES], struct pale_err *e) MUST_CHECK;

/* The hash is looked up in an index, whose time tells how far it agrees with a stored one. That helps nobody: a token is 256 random
 * bits, so who sends guesses cannot steer their hashes, and who knew a whole hash could not go back from it to the token. */
int registry_token_find_hash(struct registry *r, const uint8_t hash[SHA256_BYTES], struct registry_token **ret,
                             struct pale_err *e) MUST_CHECK;
int registry_token_find(struct registry *r, const char *id, struct registry_token **ret, struct pale_err *e) MUST_CHECK;

/* As registry_box_each, by id. */
int registry_token_each(struct registry *r, int (*fn)(const struct registry_token *t, void *arg, struct pale_err *e), void *arg,
                        struct pale_err *e) MUST_CHECK;

/* Revokes; a second time changes nothing and succeeds. It is on the disk before this returns: a loss of power brings no token back. */
int registry_token_revoke(struct registry *r, const char *id, int64_t now_unix_ms, struct pale_err *e) MUST_CHECK;

/* Notes a use, unless a later one is noted. The caller does so at most once a minute for a token. */
int registry_token_touch(struct registry *r, const char *id, int64_t now_unix_ms, struct pale_err *e) MUST_CHECK;

/* Forgets tokens that expired or were revoked more than so many days ago; *ret_gone (may be NULL) is how many. */
int registry_token_purge(struct registry *r, int64_t now_unix_ms, unsigned days, uint64_t *ret_gone, struct pale_err *e) MUST_CHECK;

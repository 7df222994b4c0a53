/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that stand: what the operator said to a question of a box, and wants to be held to when it is asked again.
 *
 * How it works: they are the operator's layer over policies, in lists that no policy file and no repository can hold: of one box in its
 * state folder, of a project and of all the user's boxes under the user's configuration. An answer counts only where the policy of a box
 * asks, so that none opens what a policy denies, whatever list it stands in. A list is text, one answer a line:
 *
 *     allow|deny HOST PORT UNTIL
 *
 * with a name in its canonical form or an address, and UNTIL in seconds since 1970, or 0. Whoever reads lists takes the lines that hold
 * now; a list that cannot be read answers nothing, and the operator is asked again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "policy/policy.h"
#include "wire/message.h"

#define STANDING_MAX 256u /* in a list */

struct standing {
    bool allow;
    char host[DOMAIN_NAME_MAX + 1];
    uint16_t port;
    uint64_t until_unix; /* 0: for ever */
};

struct standing_list {
    size_t count;
    struct standing item[STANDING_MAX];
};

/* Is it a name in canonical form, or an address as address_text writes it? */
bool standing_is_host(const char *host);

/* A list as it is written. False: a line makes no sense, or there are too many. */
bool standing_parse(const char *text, size_t n, struct standing_list *ret);
void standing_write(const struct standing_list *l, struct buf *out);

/* What stands for a box. */
struct standing_of {
    const char *data, *state, *tenant; /* of its place */
    const struct policy *policy;
};

/* Where the list for a scope is. PALE_BAD_INPUT where the box has none: it is in no project, or a tenant's. make: so is its folder. */
struct standing_path {
    char dir[PATH_BYTES_MAX], name[32];
};
int standing_find(const struct standing_of *of, enum verdict_scope scope, bool make, struct standing_path *ret,
                  struct pale_err *e) MUST_CHECK;

/* One list; what is not there is empty. */
int standing_read(const struct standing_path *p, struct standing_list *ret, struct pale_err *e) MUST_CHECK;

/* Adds to a list, in place of what it says about the same host and port; what has expired goes. */
int standing_add(const struct standing_path *p, const struct standing *s, uint64_t now_unix, struct pale_err *e) MUST_CHECK;

/* Takes out what it says about this host and port. PALE_NOT_FOUND if it says nothing that still holds. */
int standing_remove(const struct standing_path *p, const char *host, uint16_t port, uint64_t now_unix, struct pale_err *e) MUST_CHECK;

/* Is its time over? */
bool standing_is_over(const struct standing *s, uint64_t now_unix);

/* All that stands for a box now, into ret, which has room for cap: of a yes and a no to the same the no counts. *ret_next: when the first
 * of them expires, 0: never. Returns how many. trouble (may be NULL) is called for each list that cannot be read. */
size_t standing_gather(const struct standing_of *of, uint64_t now_unix, struct standing *ret, size_t cap, uint64_t *ret_next,
                       void (*trouble)(void *arg, const struct pale_err *e), void *arg);

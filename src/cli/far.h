/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon tells of boxes, read and shown: a stranger's texts, each bounded and quoted. */
#pragma once

#include "base/json.h"
#include "base/jsonread.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "policy/policy.h"

#define FAR_TEXT 512
#define FAR_ANSWER_MAX (8u << 20)

/* A member's text, made harmless; "" if there is none. Returns ret. */
const char *far_text(const struct jsonread *v, const char *key, char *ret, size_t cap);
uint64_t far_number(const struct jsonread *v, const char *key);

/* A text as a part of a path or a query, with whatever is no plain character escaped. */
void far_escape(struct buf *b, const char *text);

/* A value written anew, whatever it is. */
void far_copy(struct json *j, const char *key, const struct jsonread *v);
/* A member, if it is there. */
void far_copy_member(struct json *j, const struct jsonread *v, const char *key);

/* Prints those of its members that are there, as an object. The exit status. */
int far_print_members(const struct jsonread *v, const char *const *keys, size_t count);

/* A box's policy, and if digest is not NULL what the daemon calls it by. */
int far_policy(struct remote *r, const char *box, struct policy *ret, char digest[SHA256_HEX], struct pale_err *e) MUST_CHECK;

/* The request that makes a box by the verb's flags. ttl: NULL for none. */
int far_order(const struct args *a, const char *name, const char *ttl, bool start, struct buf *ret, struct pale_err *e) MUST_CHECK;
int far_make(struct remote *r, const char *order, struct buf *text, struct jsonread *ret, struct pale_err *e) MUST_CHECK;
int far_remove(struct remote *r, const char *box, struct pale_err *e) MUST_CHECK;
/* … also with work in a project for review that has not landed. */
int far_remove_anyway(struct remote *r, const char *box, struct pale_err *e) MUST_CHECK;

/* The verbs. */
int far_create(struct args *a);
int far_ls(struct args *a);
int far_inspect(struct args *a);
int far_stop(struct args *a);
int far_rm(struct args *a);
int far_freeze(struct args *a, bool on);
int far_rename(struct args *a);
int far_audit(struct args *a, int (*verdict)(struct args *a, const char *text, size_t n, const char *head), void (*show)(const char *line));
int far_doctor(struct args *a);
int far_quarantine(struct args *a, bool on);
int far_panic(struct args *a, bool on);

/* What a panic has reached, told by verb_control.c. */
struct control_counts {
    unsigned long long live, stopped, once, failed;
};
void control_tell(const struct args *a, bool on, const struct control_counts *n);

/* The verbs that do one thing to each box that is named. missing_ok: one that is not there is no error, and does not count. */
int far_each(struct args *a, int (*deed)(struct remote *r, const char *box, struct pale_err *e), const char *done, bool missing_ok);
/* A request on a box, of which only success matters. deed: what follows its name in the path. */
int far_act(struct remote *r, const char *method, const char *box, const char *deed, struct pale_err *e) MUST_CHECK;

/* The next piece of a box's log, and where it goes on. An empty one: that is all there is now. */
struct door;
int far_log(struct door *d, uint64_t *offset, struct buf *ret, struct pale_err *e) MUST_CHECK;

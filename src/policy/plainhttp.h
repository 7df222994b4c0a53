/* SPDX-License-Identifier: Apache-2.0 */
/* What an egress rule says about requests of plain HTTP: methods, and paths ("/a", or "/a/" and a star for everything beneath /a/).
 *
 * A path in a rule has letters, digits and -._~ alone, because these have one spelling in a request that httprequest calls plain. */
#pragma once

#include "net/httphead.h"
#include "policy/policy.h"

/* Does the rule look into requests at all? */
static inline bool plainhttp_is_asked(const struct policy_egress *r)
{
    return r->methods || r->paths.count;
}

/* Lists with commas. Each adds to the rule. */
int plainhttp_methods(struct policy_egress *r, const char *s, size_t len, struct pale_err *e) MUST_CHECK;
int plainhttp_paths(struct policy_egress *r, const char *s, size_t len, struct pale_err *e) MUST_CHECK;

const char *plainhttp_method_name(enum policy_method m);
void plainhttp_methods_text(unsigned methods, struct buf *out);

/* Is a request such as the rule means? A part whose `at` is NULL, and a method that is none of ours, is not known: what is not known is
 * told by `unknown`, which is true where the rule refuses. */
bool plainhttp_matches(const struct policy_egress *r, const struct http_text *method, const struct http_text *path, bool unknown);

/* Are all requests that inner means meant by outer; is there one that both mean? */
bool plainhttp_covers(const struct policy_egress *outer, const struct policy_egress *inner);
bool plainhttp_meets(const struct policy_egress *a, const struct policy_egress *b);

/* SPDX-License-Identifier: Apache-2.0 */
/* Names the host would run or obey, which a box must not plant in a live project. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/policy.h"

/* The default list; ends with NULL. */
extern const char *const guard_defaults[];

/* A guard name is one component or a few, relative, normal ("x", ".git/hooks"). */
int guard_check(const char *name, struct pale_err *e) MUST_CHECK;

/* Do the components of name stand next to each other, at any depth, in this relative path? Then the path is the guarded
 * thing or lies beneath it. Letters match in either case: some file systems do not tell them apart. */
bool guard_matches(const char *name, const char *path);

/* The name of the list that matches, or NULL. */
const char *guard_hit(const struct policy_strings *guard, const char *path);

/* What a name is in the folder that stands at dir (a path relative to the project, "" for the project itself). */
enum guard_kin {
    GUARD_NO,
    GUARD_ABOVE, /* a folder of this name would hold guarded names: .git, or info in .git */
    GUARD_NAME,  /* the guarded thing itself */
};

/* The list made ready for many questions: most names are answered without a look at it. */
struct guard_set {
    const struct policy_strings *names;
    size_t depth;      /* components of the longest name */
    uint32_t seen[32]; /* length, first and last letter of every component there is, as a set */
};
void guard_set_init(struct guard_set *s, const struct policy_strings *names);

/* The last component alone decides: what lies beneath a guarded thing is GUARD_NO in its own folder. */
enum guard_kin guard_look(const struct guard_set *s, const char *dir, const char *name);

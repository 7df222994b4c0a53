/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the policy of a box that is there with the one that somebody wants it to have. */
#include "box/policy_compare.h"

#include <string.h>

#include "base/limits.h"
#include "box/life.h"
#include "box/stack.h"

#define SHOWN_MOST 300 /* bytes of differences in an error */

/* One line for each becomes one text; what does not fit is counted. */
static void join(const char *lines, struct buf *out)
{
    size_t left = 0;
    for (const char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        if (out->len + n > SHOWN_MOST && out->len > 0)
            left++;
        else
            buf_addf(out, "%s%.*s", out->len ? "; " : "", (int)(n < SHOWN_MOST ? n : SHOWN_MOST), at);
        at += n + (at[n] == '\n');
    }
    if (left)
        buf_addf(out, "; and %zu more", left);
}

int policy_compare(const struct place *p, const struct policy *wanted, bool no_autosave, struct pale_err *e)
{
    own_policy there = {0};
    own_stack stack = {0};
    own_buf lines = {0}, text = {0};
    int r = life_policy(p, &there, e);
    if (r == 0)
        r = stack_load(p, &stack, e);
    if (r < 0)
        return r;
    buf_init(&lines, POLICY_TEXT_MAX);
    buf_init(&text, 2 * POLICY_TEXT_MAX);
    size_t count = policy_diff(&there, wanted, &lines, NULL);
    join(buf_text(&lines), &text);
    if (stack.no_autosave != no_autosave)
        buf_addf(&text, "%sautomatic snapshots: %s", count++ ? "; " : "", no_autosave ? "kept -> not kept" : "not kept -> kept");
    if (count == 0)
        return 0;
    return err_set(e, PALE_EXISTS,
                   "box %s is there, but not as it is wanted: %s; change it with `pale policy set %s`, or `pale rm %s` and make it again",
                   p->name, buf_text(&text), p->name, p->name);
}

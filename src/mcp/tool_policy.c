/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tool that shows what a box may do, and asks for more.
 *
 * Who is inside can only narrow; so asking for more ends at a person. The question goes to the client's user, where the client is the
 * operator's own (over the unix socket, or with an operator's token that has the right); a token of a box alone cannot widen, whatever
 * its client says, and the answer names the command by which the operator can. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "mcp/toolbox.h"
#include "ops/world.h"

#define WISHES_SHOWN 600u /* to a model, of what it asked for */
#define QUESTION_MAX 4096u

static void answer_show(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const char *text = json_string_value(json_object_get(answer, "canonical"));
    size_t guarded = 0;
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    /* The guarded names are many and always the same: their number will do. */
    for (size_t n; text && *text; text += n) {
        n = strcspn(text, "\n");
        n += text[n] == '\n';
        bool is_guard = strncmp(text, "guard ", 6) == 0;
        guarded += is_guard;
        if (!is_guard && strncmp(text, "end\n", 4) != 0)
            buf_add(&b, text, n);
    }
    if (guarded)
        buf_addf(&b,
                 "guard: %zu names in the project that the host would obey cannot be changed (.git/hooks, .claude, .vscode, .envrc …)\n",
                 guarded);
    use_answer(u, &b, false);
}

/* A wish on a line of its own, with nothing in it that could pass for another line. */
static void put_wish(struct buf *b, const char *key, const char *value)
{
    quote_text(b, key, strlen(key), SIZE_MAX);
    buf_add_text(b, "=");
    quote_text(b, value, strlen(value), SIZE_MAX);
    buf_add_text(b, "\n");
}

/* All of them, as they are going to be set; where the buffer has no room for all, it has failed. */
static void put_wishes(struct buf *b, const json_t *set)
{
    const char *key;
    json_t *v, *item;
    size_t i;
    json_object_foreach((json_t *)set, key, v)
    {
        if (json_is_string(v))
            put_wish(b, key, json_string_value(v));
        json_array_foreach(v, i, item) put_wish(b, key, json_string_value(item));
    }
}

/* --- after a yes --- */

static void restarted(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    (void)answer;
    if (e)
        return use_fail(u, e);
    use_say(u, false, "The operator said yes. The box has been restarted with its new policy; commands that ran have ended.");
}

static void started_as_before(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    const char *why = u->own;
    (void)e, (void)answer;
    use_say(u, true, "the operator said yes, but it cannot be had: %s. The box has been restarted as it was; commands that ran have ended.",
            why);
}

static void free_reason(struct use *u)
{
    free(u->own);
}

static void changed(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    (void)answer;
    if (e && (u->own = strdup(e->text))) {
        u->done = free_reason;
        return use_run(u, "box.start", 0, NULL, started_as_before);
    }
    if (e)
        return use_fail(u, e);
    use_run(u, "box.start", 0, NULL, restarted);
}

static void stopped(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    (void)answer;
    if (e)
        return use_fail(u, e);
    use_run(u, "policy.change", 0, NULL, changed);
}

/* --- asking --- */

static void ask(struct use *u)
{
    own_buf text = {0};
    const char *reason = use_text(u, "reason", "");
    const struct core_box *box = core_by_id(u->r->world->fleet.core, u->r->box);
    buf_init(&text, QUESTION_MAX);
    buf_addf(&text, "The agent asks for more in the box %s:\n", box ? box->name : u->r->box);
    size_t before = text.len;
    put_wishes(&text, use_value(u, "set")->json);
    if (text.len == before && !text.failed)
        return use_say(u, true, "bad-input: set: it names nothing");
    buf_add_text(&text, "Its reason: ");
    quote_text(&text, reason, strlen(reason), SIZE_MAX);
    buf_add_text(&text, "\nThe box is restarted for it, which ends its commands.");
    /* Nobody is asked for what he does not see. */
    if (text.failed || text.len == QUESTION_MAX)
        return use_say(u, true, "limit: that is more than a person can be asked at once; ask for less, or in fewer words");
    use_ask(u, buf_text(&text), "yes changes the box's policy", "asked");
}

static void ask_or_obey(struct use *u)
{
    /* Without the state that went out with the question, an answer answers nothing. */
    if (!u->r->answers || !u->r->state || strcmp(u->r->state, "asked") != 0)
        return ask(u);
    if (!use_is_allowed(u))
        return use_say(u, true, "denied: the operator did not allow it. Go on without, or say what you would need and why");
    use_run(u, "box.stop", 0, NULL, stopped);
}

void tool_policy(struct use *u)
{
    own_buf wishes = {0}, shown = {0};
    if (!use_value(u, "set")->given)
        return use_run(u, "policy.show", 0, NULL, answer_show);
    if (!use_text(u, "reason", "")[0])
        return use_say(u, true, "bad-input: a wish needs a reason, which the operator reads");
    if (use_can_ask(u))
        return ask_or_obey(u);
    if (!use_may_widen(u->r))
        use_refuse(u->r, u->tool);
    buf_init(&wishes, QUESTION_MAX);
    buf_init(&shown, 2 * WISHES_SHOWN);
    put_wishes(&wishes, use_value(u, "set")->json);
    quote_again(&shown, buf_text(&wishes), wishes.len, WISHES_SHOWN);
    use_say(u, true,
            "denied: only the operator can widen a policy, and he cannot be asked from here. Tell your user what you need (%s) and why; "
            "he can do it with: pale policy BOX --set KEY=VALUE",
            buf_text(&shown));
}

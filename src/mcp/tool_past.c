/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tools by which a model sees what it has changed, keeps its box as it is and goes back. Their answers name the way on: a model
 * that can undo dares to try. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mcp/clip.h"
#include "mcp/toolbox.h"

#define HEAD_BYTES 20000u /* of a difference that a model is shown, … */
#define TAIL_BYTES 12000u /* … with its end, which has the sum */

/* What runs in the box stands in the way; the model has a tool for that. */
static void fail(struct use *u, const struct pale_err *e)
{
    if (e->code == PALE_BUSY)
        use_say(u, true, "%s: %s; wait for its end, or end it with job", err_name(e->code), e->text);
    else
        use_fail(u, e);
}

static const char *text_of(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

/* --- snapshot --- */

static void taken(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    const char *name = text_of(answer, "snapshot");
    if (e)
        return fail(u, e);
    use_say(u, false, "Kept as %s%s. Go back to it with restore {\"snapshot\": \"%s\"}.", name,
            json_is_true(json_object_get(answer, "changed")) ? "" : " (nothing has changed since the last snapshot)", name);
}

static void put_line(struct buf *b, const json_t *item)
{
    char made[24] = "";
    struct tm tm;
    time_t t = (time_t)(json_integer_value(json_object_get(item, "made_unix_ms")) / 1000);
    if (gmtime_r(&t, &tm))
        strftime(made, sizeof(made), "%Y-%m-%d %H:%M:%S", &tm);
    buf_addf(b, "%s  %s  %s%s\n", text_of(item, "name"), made, text_of(item, "kind"),
             json_is_true(json_object_get(item, "current")) ? "  the box stands on it" : "");
}

static void listed(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    const json_t *items = json_object_get(answer, "items");
    if (e)
        return use_fail(u, e);
    buf_init(&b, TOOL_TEXT_MAX);
    for (size_t i = 0; i < json_array_size(items); i++)
        put_line(&b, json_array_get(items, i));
    if (b.len == 0)
        buf_add_text(&b, "[no snapshots]");
    use_answer(u, &b, false);
}

void tool_snapshot(struct use *u)
{
    if (!use_number(u, "list", 0))
        return use_run(u, "snapshot.take", 0, NULL, taken);
    if (use_value(u, "name")->given)
        return use_say(u, true, "bad-input: name or list, not both");
    use_run(u, "snapshot.list", 0, NULL, listed);
}

/* --- restore --- */

static void restored(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    const char *kept = text_of(answer, "kept");
    if (e)
        return fail(u, e);
    if (kept[0])
        use_say(u, false, "The box is as it was at %s. What it was until now is kept as %s; undo with restore {\"snapshot\": \"%s\"}.",
                text_of(answer, "restored"), kept, kept);
    else
        use_say(u, false, "The box is as it was at %s. What it was until now had a snapshot already.", text_of(answer, "restored"));
}

void tool_restore(struct use *u)
{
    use_run(u, "box.restore", 0, NULL, restored);
}

/* --- diff --- */

static void told(struct duty *k, const struct pale_err *e, const json_t *answer)
{
    struct use *u = (struct use *)k;
    own_buf b = {0};
    char gap[200];
    struct clip clip;
    (void)answer; /* it is no JSON */
    if (e)
        return use_fail(u, e);
    /* What was not taken has no end that could be shown. */
    if (!clip_init(&clip, HEAD_BYTES, k->enough ? 0 : TAIL_BYTES))
        return use_say(u, true, "out of memory");
    clip_add(&clip, k->text.data, k->text.len);
    snprintf(gap, sizeof(gap), "\n[… %llu bytes left out; see a part of them with diff {\"path\": …, \"patch\": true} …]\n",
             (unsigned long long)clip.lost);
    buf_init(&b, TOOL_TEXT_MAX);
    clip_write(&clip, k->enough ? "" : gap, &b);
    clip_done(&clip);
    if (k->enough)
        buf_addf(&b, "\n[… there are more than %u MiB; name a path]", TOOL_ANSWER_MAX >> 20);
    if (b.len == 0)
        buf_add_text(&b, "[nothing has changed]");
    use_answer(u, &b, false);
}

void tool_diff(struct use *u)
{
    u->duty.stops = true;
    use_run(u, "box.diff", 0, json_pack("{s:s}", "form", use_number(u, "patch", 0) ? "patch" : "stat"), told);
}

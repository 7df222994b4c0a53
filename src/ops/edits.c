/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations that change files of a box in place. What they change comes from the caller and goes in as input; what they have
 * done is read by wire/answer, as hostile. */
#include <stdio.h>

#include "ops/filework.h"
#include "ops/ops.h"
#include "wire/message.h"

static bool show_edited(struct filework *k, const struct answer *a)
{
    struct json *j = &k->json;
    if (a->kind != ANSWER_EDITED)
        return false;
    json_begin_object(j, NULL);
    json_text(j, "path", call_text(k->talk.call, "path", ""));
    json_u64(j, "replaced", a->count);
    json_u64(j, "line", a->line);
    json_end_object(j);
    return k->over = true;
}

void op_file_edit(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    filework_feed(k, (const char *[]){call_text(c, "old", ""), call_text(c, "new", "")}, 2);
    filework_answers(k, show_edited);
    filework_send(k, (const char *[]){"edit", call_text(c, "path", ""), call_number(c, "all", 0) ? "all" : "once", NULL}, EXEC_STDIN,
                  FILEWORK_MS);
}

/* --- patches --- */

static const char *action(char letter)
{
    return letter == 'a' ? "added" : letter == 'r' ? "removed" : letter == 'm' ? "moved" : "changed";
}

static bool show_change(struct filework *k, const struct answer *a)
{
    struct json *j = &k->json;
    if (a->kind == ANSWER_END) {
        json_end_list(j);
        json_end_object(j);
        return k->over = true;
    }
    if (a->kind != ANSWER_CHANGE)
        return false;
    json_begin_object(j, NULL);
    filework_show_path(k, "path", a->path);
    json_text(j, "action", action(a->type));
    if (a->other[0])
        filework_show_path(k, "to", a->other);
    json_end_object(j);
    return true;
}

void op_file_patch(struct call *c)
{
    struct filework *k = filework_new(c);
    if (!k)
        return;
    snprintf(k->folder, sizeof(k->folder), "%s", call_text(c, "path", ""));
    filework_feed(k, (const char *[]){call_text(c, "patch", "")}, 1);
    filework_answers(k, show_change);
    json_begin_object(&k->json, NULL);
    json_begin_list(&k->json, "files");
    filework_send(k, (const char *[]){"patch", k->folder, call_number(c, "check", 0) ? "check" : "write", NULL}, EXEC_STDIN, FILEWORK_MS);
}

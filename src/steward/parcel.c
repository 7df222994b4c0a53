/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds on boxes as archives. */
#include "steward/parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/path.h"
#include "box/stack.h"
#include "steward/command.h"
#include "steward/making.h"
#include "steward/outlet.h"

#define WORDS_MAX 8192u

/* This host, whatever PALE_HOST says: else it might ask us. */
#define HERE (char *)"--host", (char *)""

/* --- export --- */

struct sending {
    struct outlet *out;
    struct buf words; /* the last of what the command said */
};

static void sending_done(struct sending *s)
{
    free(s->out);
    buf_done(&s->words);
}

static int pass_on(void *arg, const char *p, size_t n, struct pale_err *e)
{
    struct sending *s = arg;
    return outlet_add(s->out, p, n, e);
}

/* Notes, and at the end, if it fails, why. */
static int keep_words(void *arg, const char *p, size_t n, struct pale_err *e)
{
    struct sending *s = arg;
    size_t kept = n < WORDS_MAX ? n : WORDS_MAX;
    (void)e;
    if (s->words.len + kept > WORDS_MAX)
        buf_consume(&s->words, s->words.len + kept - WORDS_MAX);
    buf_add(&s->words, p + (n - kept), kept);
    return 0;
}

/* The last line of the words is the command's error in JSON. */
static int judge_words(const struct sending *s, int status, struct pale_err *e)
{
    const char *text = (const char *)s->words.data;
    size_t end = s->words.len, begin;
    struct jsonread ignored;
    while (end > 0 && text[end - 1] == '\n')
        end--;
    for (begin = end; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    return command_judge(text ? text + begin : "", end - begin, status, &ignored, e);
}

int parcel_export(const struct msg_deed *m, int fd, struct pale_err *e)
{
    CLEANUP(sending_done) struct sending s = {.out = outlet_new(fd)};
    struct command c = {.order = m, .fd = fd, .answered = pass_on, .said = keep_words, .arg = &s};
    char at[SNAPSHOT_NAME_MAX + 8];
    char *argv[12] = {(char *)"pale", (char *)"export", (char *)"--json", HERE, (char *)"--output", (char *)"-"};
    size_t n = 7;
    int status = 0;
    snprintf(at, sizeof(at), "--at=%s", m->snapshot);
    if (m->snapshot[0])
        argv[n++] = at;
    if (strcmp(m->form, "plain") == 0)
        argv[n++] = (char *)"--plain";
    argv[n++] = (char *)m->id;
    if (!s.out)
        return err_nomem(e);
    buf_init(&s.words, WORDS_MAX);
    int r = command_run(&c, argv, &status, e);
    if (r == 0 && status != 0)
        r = judge_words(&s, status, e);
    return r < 0 ? r : outlet_flush(s.out, e);
}

/* --- import --- */

/* The box that the command says it has made. */
static int find_made(const struct buf *told, struct place *ret, struct pale_err *e)
{
    struct jsonread v, m;
    char id[BOX_ID_LEN + 1] = "";
    if (told->len == 0)
        return 0;
    if (jsonread_parse((const char *)told->data, told->len, &v) && jsonread_get(&v, "id", &m))
        jsonread_text(&m, id, sizeof(id));
    return place_by_id(id, ret, e);
}

int parcel_import(const struct msg_deed *m, int fd, struct buf *told, struct place *ret, struct pale_err *e)
{
    char *const argv[] = {(char *)"pale", (char *)"import", (char *)"--json", HERE, (char *)"-", (char *)m->name, NULL};
    const struct making making = {.order = m, .fd = fd, .during = "importing", .after = "imported", .takes = true};
    if (!path_is_box_name(m->name)) /* it becomes a word of a command */
        return err_set(e, PALE_BAD_INPUT, "name: 1 to %d of a-z, 0-9 and '-', and not beginning with '-'", BOX_NAME_MAX);
    int r = making_run(&making, argv, told, e);
    return r < 0 ? r : find_made(told, ret, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb watch. What a box tells is hostile: it is parsed strictly as it comes, and quoted. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "cli/chore.h"
#include "cli/cli.h"
#include "cli/lookup.h"
#include "cli/verbs.h"
#include "wire/fileline.h"

static struct chore chore;

struct watcher {
    const struct args *args;
    struct buf rest; /* the beginning of a happening whose end has not come yet */
};

static bool show(const struct watcher *w, const struct file_event *ev)
{
    own_buf b = {0};
    buf_init(&b, 8 * PATH_BYTES_MAX);
    if (w->args->json) {
        struct json j;
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_text(&j, "event", file_happening_name(ev->kind));
        json_bool(&j, "folder", ev->folder);
        json_text(&j, "name", ev->name);
        json_end_object(&j);
        return cli_json(&b) == 0;
    }
    quote_text(&b, ev->name, strlen(ev->name), 4 * PATH_BYTES_MAX);
    if (ev->name[0])
        printf("%-10s %s%s\n", file_happening_name(ev->kind), buf_text(&b), ev->folder ? "/" : "");
    else
        printf("%s\n", file_happening_name(ev->kind));
    return !b.failed;
}

static int take(void *to, const void *p, size_t n, struct pale_err *e)
{
    struct watcher *w = to;
    size_t at = 0, used;
    int r = 0;
    buf_add(&w->rest, p, n);
    for (struct file_event ev; !w->rest.failed && (r = file_event_parse(w->rest.data + at, w->rest.len - at, &ev, &used)) == 1; at += used)
        if (!show(w, &ev))
            return err_os(e, "write what happened");
    if (r < 0 || w->rest.failed)
        return err_set(e, PALE_PROTOCOL, "what the box tells cannot be read");
    buf_consume(&w->rest, at);
    return fflush(stdout) ? err_os(e, "write what happened") : 0;
}

static int run_watch(struct args *a)
{
    struct pale_err e;
    struct watcher w = {.args = a};
    buf_init(&w.rest, FILE_EVENT_MAX + FRAME_PAYLOAD_MAX);
    if (chore_open(&chore, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, (const char *const[]){"watch", a->count > 1 ? a->word[1] : ".", args_has(a, "tree") ? "tree" : NULL, NULL});
    chore.exec.flags |= EXEC_STDIN; /* held open, so that it goes on until we end */
    chore.session.sink = take;
    chore.session.sink_to = &w;
    int r = chore_run(&chore, &e);
    buf_done(&w.rest);
    if (r < 0 && (chore.signal == SIGINT || chore.signal == SIGTERM || chore.signal == SIGHUP))
        return 128 + chore.signal; /* our own, passed on */
    return r < 0 ? cli_fail(a, &e) : 0;
}

static const struct option watch_options[] = {{"tree", 'r', NULL, "what happens in the folders below too", NULL}, {0}};
static const struct option *const watch_tables[] = {watch_options, scope_options, common_options, NULL};

const struct verb verb_watch = {
    "watch",
    "Files",
    "tell what happens to files of a box",
    "[--tree] BOX [PATH]",
    "A line for each thing that is created, changed, removed or moved, by the box or by the host, in a folder or to\n"
    "a file; first \"ready\". With --json, one object per line. Ends when it is interrupted, or with what it watches.",
    watch_tables,
    1,
    2,
    -1,
    run_watch};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds on what a box has changed.
 *
 * The box is hostile and may go on writing: its layers are looked at by the functions that serve the command line. What is told goes to
 * paled as bytes that it hands on unread, no faster than its client takes them. */
#include "steward/scrutiny.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonread.h"
#include "base/own.h"
#include "box/discard.h"
#include "box/harvest.h"
#include "box/life.h"
#include "box/rendition.h"
#include "box/review.h"
#include "box/stack.h"
#include "steward/outlet.h"

#define REPORT_BYTES_MAX (64u << 20) /* of what became of each file */

/* --- paths --- */

struct paths {
    char (*text)[PATH_BYTES_MAX];
    const char **at;
    size_t count;
};

static void paths_done(struct paths *p)
{
    free(p->text);
    free(p->at);
}

static int read_paths(const struct msg_deed *m, struct paths *ret, struct pale_err *e)
{
    struct jsonread list, item;
    size_t n = 0;
    if (!m->paths[0])
        return 0;
    if (!jsonread_parse(m->paths, strlen(m->paths), &list) || list.kind != JSONREAD_LIST)
        return err_set(e, PALE_PROTOCOL, "an order has no such form");
    for (size_t pos = 0; jsonread_next(&list, &pos, NULL, &item);)
        n++;
    ret->text = calloc(n + 1, sizeof(*ret->text));
    ret->at = calloc(n + 1, sizeof(*ret->at));
    if (!ret->text || !ret->at)
        return err_nomem(e);
    for (size_t pos = 0; jsonread_next(&list, &pos, NULL, &item); ret->count++)
        ret->at[ret->count] = jsonread_text(&item, ret->text[ret->count], PATH_BYTES_MAX);
    return 0;
}

/* --- diff --- */

int scrutiny_diff(const struct msg_deed *m, const struct place *p, int fd, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *rest = "";
    CLEANUP(paths_done) struct paths paths = {0};
    enum wall_part part;
    enum rendition_form form;
    own_policy policy = {0};
    own_review v = {.base_fd = -1};
    if (!rendition_form(m->form, &form))
        return err_set(e, PALE_BAD_INPUT, "form: patch, stat, names or json");
    int r = life_policy(p, &policy, e);
    if (r == 0)
        r = read_paths(m, &paths, e);
    if (r == 0 && paths.count > 0)
        r = review_path(&policy, NULL, paths.at[0], path, e);
    if (r == 0)
        r = review_part(&policy, paths.count > 0 ? path : NULL, &part, &rest, e);
    if (r == 0)
        r = review_open(p, part, m->snapshot[0] ? m->snapshot : NULL, m->until[0] ? m->until : NULL, &v, e);
    if (r < 0)
        return r;
    own_mem struct outlet *out = outlet_new(fd);
    if (!out)
        return err_nomem(e);
    r = rendition_write(&v, &(struct rendition){.form = form, .under = rest, .out = outlet_add, .arg = out, .out_fd = fd}, e);
    return r < 0 ? r : outlet_flush(out, e);
}

/* --- apply --- */

static void tell_landed(void *arg, const struct landing_report *r)
{
    harvest_write(arg, r);
}

int scrutiny_apply(const struct msg_deed *m, const struct place *p, int fd, struct buf *told, struct pale_err *e)
{
    CLEANUP(paths_done) struct paths paths = {0};
    own_buf report = {0};
    struct json j, numbers;
    struct harvest h = {.include_guarded = m->guarded,
                        .dry_run = m->dry,
                        .asks_git = !m->tenant[0],
                        .kept_fd = fd,
                        .caller = m->caller,
                        .tell = tell_landed,
                        .arg = &j};
    int r = read_paths(m, &paths, e);
    if (r < 0)
        return r;
    h.paths = paths.at;
    h.path_count = paths.count;
    buf_init(&report, REPORT_BYTES_MAX);
    json_start(&j, &report);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    r = harvest_run(p, &h, e);
    uint64_t landed = h.count[LANDING_LANDED] + h.count[LANDING_MERGED];
    if (r < 0)
        return landed && !m->dry ? err_prefix(e, "%llu files have landed, then", (unsigned long long)landed) : r;
    json_end_list(&j);
    harvest_write_counts(&j, &h);
    json_end_object(&j);
    buf_add_text(&report, "\n");
    json_start(&numbers, told);
    json_begin_object(&numbers, NULL);
    harvest_write_counts(&numbers, &h);
    json_end_object(&numbers);
    if (report.failed)
        return err_set(e, PALE_LIMIT, "it is done, but what became of each file is too long to be told; look at the difference");
    own_mem struct outlet *out = outlet_new(fd);
    if (!out)
        return err_nomem(e);
    r = outlet_add(out, report.data, report.len, e);
    return r < 0 ? r : outlet_flush(out, e);
}

/* --- discard --- */

int scrutiny_discard(const struct msg_deed *m, const struct place *p, struct buf *told, struct pale_err *e)
{
    CLEANUP(paths_done) struct paths paths = {0};
    struct json j;
    int r = read_paths(m, &paths, e);
    struct discard d = {.paths = paths.at, .path_count = paths.count, .force = m->force, .caller = m->caller};
    if (r == 0)
        r = discard_run(p, &d, e);
    if (r < 0)
        return r;
    json_start(&j, told);
    json_begin_object(&j, NULL);
    json_text(&j, "kept", d.kept);
    json_end_object(&j);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the landing of a box's project. */
#include "box/harvest.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "box/gitbase.h"
#include "box/life.h"
#include "box/review.h"

/* --- conflicts --- */

struct gathering {
    struct harvest *harvest;
    bool again;       /* conflicts are told */
    char **conflicts; /* those that are tried once more */
    size_t count;
};

static void gathering_done(struct gathering *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->conflicts[i]);
    free(g->conflicts);
}

/* False: it is told now. */
static bool put_off(struct gathering *g, const char *path)
{
    if (!g->harvest->asks_git || g->again || g->count == CONFLICTS_MAX)
        return false;
    if (!g->conflicts && !(g->conflicts = calloc(CONFLICTS_MAX, sizeof(*g->conflicts))))
        return false;
    char *copy = strdup(path);
    if (!copy)
        return false;
    g->conflicts[g->count++] = copy;
    return true;
}

static void tell(void *arg, const struct landing_report *r)
{
    struct gathering *g = arg;
    if (r->result != LANDING_CONFLICT || !put_off(g, r->path))
        g->harvest->tell(g->harvest->arg, r);
}

static bool ask(void *arg, const struct landing_report *r, int content_fd)
{
    const struct gathering *g = arg;
    return !g->harvest->ask || g->harvest->ask(g->harvest->arg, r, content_fd);
}

/* Those that were put off, with the last commit as what both came from. */
static int land_again(struct landing *l, struct gathering *g, struct gitbase *git, struct pale_err *e)
{
    size_t found = 0;
    if (g->count == 0)
        return 0;
    int r = g->harvest->stopped ? 0 : gitbase_ask(git, g->conflicts, g->count, &found, e);
    if (r < 0)
        return r;
    g->again = true;
    l->origin_fd = found ? git->dir_fd : -1;
    l->paths = (const char *const *)g->conflicts;
    l->path_count = g->count;
    l->count[LANDING_CONFLICT] -= g->count;
    return landing_run(l, e);
}

/* Whatever must be done with all rights is begun before they are given up: after that only the tree can be written. */
static int go_into_seclusion(const struct place *p, const struct harvest *h, const struct review *v, struct gitbase *git,
                             struct pale_err *e)
{
    int r = h->asks_git ? gitbase_start(git, v->policy.project_path, p->state, e) : 0;
    const int kept[] = {h->kept_fd, git->fd};
    const struct review_seclusion s = {.lands = !h->dry_run, .beside_fd = git->dir_fd, .kept = kept, .kept_count = 2};
    return r < 0 ? r : review_seclude(v, &s, e);
}

int harvest_run(const struct place *p, struct harvest *h, struct pale_err *e)
{
    own_review v = {.base_fd = -1};
    own_review_paths chosen = {0};
    CLEANUP(gathering_done) struct gathering g = {.harvest = h};
    own_policy policy = {0};
    own_gitbase git = {.fd = -1, .dir_fd = -1};
    int r = life_policy(p, &policy, e);
    if (r == 0 && (policy.project != PROJECT_REVIEW || !policy.project_path))
        r = err_set(e, PALE_BAD_INPUT, "the project of box %s is not for review: what it writes there is in your files already", p->name);
    if (r == 0)
        r = review_choose(&policy, h->cwd, h->paths, h->path_count, &chosen, e);
    if (r == 0)
        r = review_open(p, PART_PROJECT, NULL, NULL, &v, e);
    if (r == 0 && !h->dry_run)
        r = review_tell(p, "review.apply", v.policy.project_path, h->caller, e);
    if (r == 0)
        r = go_into_seclusion(p, h, &v, &git, e);
    if (r < 0)
        return r;
    struct landing l = {
        .target_fd = v.base_fd,
        .was_view = &v.was,
        .is_view = &v.is,
        .origin_fd = -1,
        .since = v.since,
        .paths = chosen.at,
        .path_count = chosen.count,
        .guard = &v.policy.guard,
        .include_guarded = h->include_guarded,
        .dry_run = h->dry_run,
        .durable = true,
        .ask = ask,
        .tell = tell,
        .arg = &g,
    };
    r = landing_run(&l, e);
    if (r == 0)
        r = land_again(&l, &g, &git, e);
    memcpy(h->count, l.count, sizeof(h->count));
    return r;
}

uint64_t harvest_left(const struct harvest *h)
{
    return h->count[LANDING_CONFLICT] + h->count[LANDING_HELD] + h->count[LANDING_REFUSED] + h->count[LANDING_FAILED];
}

void harvest_write(struct json *j, const struct landing_report *r)
{
    json_begin_object(j, NULL);
    json_bytes(j, "path", r->path, strlen(r->path));
    json_text(j, "change", compare_word(r->what));
    json_text(j, "result", landing_word(r->result));
    if (r->hazard.class != HAZARD_NONE)
        json_text(j, "guarded", hazard_word(r->hazard.class));
    if (r->reason[0])
        json_text(j, "reason", r->reason);
    json_end_object(j);
}

void harvest_write_counts(struct json *j, const struct harvest *h)
{
    for (int i = 0; i < LANDING_RESULT_COUNT; i++)
        json_u64(j, landing_word((enum landing_result)i), h->count[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the landing of a box's project. */
#include "box/harvest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/weak.h"
#include "box/gitbase.h"
#include "box/landed.h"
#include "box/life.h"
#include "box/review.h"
#include "box/start.h"
#include "box/waybill.h"
#include "confine/seclusion.h"

/* --- what the box began with --- */

struct origin {
    struct harvest *harvest;
    struct landed landed;
    struct start start;
    struct gitbase git;
    uint64_t now_ms; /* when the box was looked at */
};

static void origin_done(struct origin *o)
{
    landed_done(&o->landed);
    start_done(&o->start);
    gitbase_end(&o->git);
}

static int find_landed(void *arg, const char *path, uint64_t born_ns, bool *ret_known, struct threeway_thing *ret, struct pale_err *e)
{
    const struct origin *o = arg;
    const struct landed_line *line = weak_word("review-landed") ? NULL : landed_find(&o->landed, path);
    /* What was landed before the box's version came to be is not what this one began with. */
    if (!line || line->at_ms < born_ns / 1000000)
        return 0;
    *ret_known = true;
    return landed_thing(&o->landed, line, ret, e);
}

/* The blob, if it is what the file held: a filter of git's may have made something else of it. */
static int open_blob(struct origin *o, const struct start_file *f, int *ret, struct pale_err *e)
{
    char digest[SHA256_HEX];
    uint64_t size = 0;
    own_fd fd = -1;
    int r = gitbase_ask(&o->git, f->oid, &fd, &size, e);
    if (r < 0 || fd < 0 || size != f->size)
        return r;
    if (f->digest[0] && (r = threeway_digest(&(struct threeway_thing){.kind = LEAF_FILE, .fd = fd}, digest, e)) < 0)
        return r;
    /* Of one that was not read then the size alone is known: what a filter made of it may have the same. */
    if (f->digest[0] ? strcmp(digest, f->digest) == 0 : weak_word("review-filter") || !gitbase_is_filtered(&o->git, f->path))
        *ret = take_fd(&fd);
    return 0;
}

static int find_start(void *arg, const char *path, bool *ret_known, struct threeway_thing *ret, struct pale_err *e)
{
    struct origin *o = arg;
    own_fd fd = -1;
    const struct start_file *f = start_find(&o->start, path);
    int r = f ? open_blob(o, f, &fd, e) : 0;
    if (r < 0 || !f || (fd < 0 && !f->digest[0]))
        return r;
    *ret = (struct threeway_thing){.kind = S_ISLNK(f->mode) ? LEAF_LINK : LEAF_FILE, .mode = f->mode & 0777, .fd = -1};
    buf_init(&ret->target, PATH_BYTES_MAX);
    memcpy(ret->digest, f->digest, sizeof(ret->digest));
    *ret_known = true;
    if (ret->kind == LEAF_FILE)
        ret->fd = take_fd(&fd);
    else if (!f->digest[0])
        r = leaf_read(fd, &ret->target, e);
    return r;
}

static char *note(void *arg, const char *path, const struct threeway_thing *theirs)
{
    const struct origin *o = arg;
    return landed_write(&o->landed, o->now_ms, path, theirs);
}

static int noted(void *arg, const char *line, struct pale_err *e)
{
    const struct origin *o = arg;
    return landed_add(&o->landed, line, e);
}

static bool is_ignored(void *arg, const char *path, bool folder)
{
    struct origin *o = arg;
    return gitbase_is_ignored(&o->git, path, folder);
}

static void tell(void *arg, const struct landing_report *r)
{
    const struct origin *o = arg;
    o->harvest->tell(o->harvest->arg, r);
}

static bool ask(void *arg, const struct landing_report *r, int content_fd)
{
    const struct origin *o = arg;
    return !o->harvest->ask || o->harvest->ask(o->harvest->arg, r, content_fd);
}

static int open_origin(const struct place *p, const struct stack *s, bool asks_git, bool makes, const char *project, struct origin *o,
                       struct pale_err *e)
{
    o->now_ms = clock_unix_ms();
    int r = landed_open(p, s, makes, &o->landed, e);
    if (r == 0)
        r = start_load(p, stack_project_start(s), &o->start, e);
    return r < 0 || !asks_git ? r : gitbase_start(&o->git, project, p->state, e);
}

/* Whatever must be done with all rights is begun before they are given up: after that only the tree and the list of what was landed can be
 * written. */
static int go_into_seclusion(const struct harvest *h, const struct review *v, const struct origin *o, struct pale_err *e)
{
    const int kept[] = {h->kept_fd, o->git.fd, o->landed.list_fd};
    const struct review_seclusion s = {
        .lands = !h->dry_run, .beside_fd = o->git.dir_fd, .written_fd = o->landed.dir_fd, .kept = kept, .kept_count = 3};
    return review_seclude(v, &s, e);
}

int harvest_run(const struct place *p, struct harvest *h, struct pale_err *e)
{
    own_review v = {.base_fd = -1};
    own_review_paths chosen = {0};
    own_policy policy = {0};
    own_stack s = {0};
    CLEANUP(origin_done) struct origin o = {.harvest = h, .landed = LANDED_NONE, .git = {.fd = -1, .dir_fd = -1}};
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
        r = stack_load(p, &s, e);
    if (r == 0)
        r = open_origin(p, &s, h->asks_git, !h->dry_run, v.policy.project_path, &o, e);
    if (r == 0)
        r = go_into_seclusion(h, &v, &o, e);
    if (r < 0)
        return r;
    struct landing l = {
        .target_fd = v.base_fd,
        .was_view = &v.was,
        .is_view = &v.is,
        .origin_fd = -1,
        .born_ns = v.is_born_ns,
        .origin = {.find_landed = find_landed, .find_start = find_start, .note = note, .noted = noted, .arg = &o},
        .prefer = h->prefer,
        .paths = chosen.at,
        .path_count = chosen.count,
        .guard = &v.policy.guard,
        .include_guarded = h->include_guarded,
        .dry_run = h->dry_run,
        .durable = true,
        .ask = ask,
        .tell = tell,
        .arg = &o,
    };
    if (!h->ignored && h->asks_git && !weak_word("review-ignored"))
        l.origin.is_ignored = is_ignored;
    r = landing_run(&l, e);
    memcpy(h->count, l.count, sizeof(h->count));
    return r;
}

/* --- for an export --- */

struct describing {
    struct origin origin;
    struct review *review;
    struct buf text;
    int out_fd;
};

static int describe(void *arg, const char *path, bool known, const struct threeway_thing *base, struct pale_err *e)
{
    struct origin *o = arg;
    struct describing *d = (struct describing *)o; /* its first member */
    (void)e;
    struct landed_line *line = (struct landed_line *)(uintptr_t)landed_find(&o->landed, path);
    if (line)
        line->described = true;
    size_t before = d->text.len;
    if (known && landed_describe(&d->text, path, base))
        buf_add_text(&d->text, "\n");
    else if (!d->text.failed)
        d->text.len = before;
    return 0;
}

static int describe_all(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    struct describing *d = arg;
    struct landing l = {
        .target_fd = d->review->base_fd,
        .was_view = &d->review->was,
        .is_view = &d->review->is,
        .origin_fd = -1,
        .born_ns = d->review->is_born_ns,
        .origin = {.find_landed = find_landed, .find_start = find_start, .tell_base = describe, .arg = &d->origin},
        .guard = &d->review->policy.guard,
        .include_guarded = true,
        .dry_run = true,
    };
    (void)step;
    (void)ret;
    buf_init(&d->text, WAYBILL_BASES_MAX);
    int r = landing_run(&l, e);
    /* What both have the same is no difference. What was landed there both have agreed on. */
    for (size_t i = 0; i < d->origin.landed.count; i++)
        if (!d->origin.landed.lines[i].described && d->origin.landed.lines[i].kind != LANDED_FORGOTTEN) {
            landed_describe_line(&d->text, &d->origin.landed.lines[i]);
            buf_add_text(&d->text, "\n");
        }
    /* Too many to be carried: whoever imports it is told of conflicts. */
    if (r == 0 && !d->text.failed && !fd_write_full(d->out_fd, d->text.data, d->text.len))
        r = err_os(e, "tell what the box began with");
    buf_done(&d->text);
    return r;
}

static int find_bases(struct describing *d, const struct place *p, const struct stack *s, int layer, struct buf *out, struct pale_err *e)
{
    own_review v = {.base_fd = -1};
    struct origin *o = &d->origin;
    d->review = &v;
    struct stack then = *s; /* as if the layer were what the open one lies on, and nothing written since */
    then.below_open = layer;
    then.open_anew = false;
    then.open_born_ns = INT64_MAX;
    int r = review_open_at(p, s, layer, &v, e);
    if (r == 0 && v.base_fd >= 0)
        r = open_origin(p, &then, true, false, v.policy.project_path, o, e);
    if (r < 0 || v.base_fd < 0)
        return r;
    own_fd told = d->out_fd = memfd_create("bases", MFD_CLOEXEC);
    own_mem struct landlock_place *places = calloc(v.was.layer_count + v.is.layer_count + 3, sizeof(*places));
    const int kept[] = {o->git.fd, told};
    const struct review_seclusion rs = {.beside_fd = o->git.dir_fd, .written_fd = o->landed.dir_fd};
    if (told < 0 || !places)
        return err_os(e, "make room for what the box began with");
    const struct seclusion all = {.places = places, .place_count = review_places(&v, &rs, places), .kept = kept, .kept_count = 2};
    r = seclusion_run(&all, describe_all, d, NULL, 0, e);
    if (r == 0 && lseek(told, 0, SEEK_SET) < 0)
        r = err_os(e, "read what the box began with");
    return r < 0 ? r : fd_read_all(told, out, e);
}

int harvest_bases(const struct place *p, const struct stack *s, int layer, struct buf *out, struct pale_err *e)
{
    struct describing d = {.origin = {.landed = LANDED_NONE, .git = {.fd = -1, .dir_fd = -1}}};
    int r = find_bases(&d, p, s, layer, out, e);
    origin_done(&d.origin);
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

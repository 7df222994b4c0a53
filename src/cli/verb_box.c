/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about boxes as a whole: create, ls, inspect, stop, rm. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "base/path.h"
#include "box/audit.h"
#include "box/cutoff.h"
#include "box/identity.h"
#include "box/keepers.h"
#include "box/kept_log.h"
#include "box/life.h"
#include "box/policy_compare.h"
#include "box/reach.h"
#include "box/start.h"
#include "box/snapshot.h"
#include "box/stack.h"
#include "box/unlanded.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "cli/shown_net.h"
#include "cli/shown_receipt.h"
#include "cli/verbs.h"
#include "wire/message.h"

#define BIRTHS_PER_CPU 4
#define BIRTHS_MAX 64
#define TERMS_TRIES 200
#define TERMS_PAUSE_US 10000
#define HOME_FROM 2 /* boxes: making a home for their ids costs about as much as it saves one of them */

static const struct option create_options[] = {
    {"in-project", 0, NULL, "in .pale of the working folder's project", NULL},
    {"no-start", 0, NULL, "do not start it yet", NULL},
    {"ensure", 0, NULL, "a box of that name with the same policy will do", NULL},
    {"no-autosave", 0, NULL, "keep no snapshot of it when it is stopped", NULL},
    {"ttl", 0, "TIME", "the daemon removes it after so long (2h)", NULL},
    {"idle", 0, "TIME", "the daemon stops it after so long without a command (30m)", NULL},
    {0},
};

/* A box whose keeper is under way. */
struct birth {
    struct place place;
    struct reach reach;
    bool was_there; /* with --ensure */
    struct start_look look;
};

#define ENSURE_TRIES 100
#define ENSURE_PAUSE_US 20000

/* Makes the box, or with --ensure finds the one that is there. Of two who ensure the same box at once one makes it; should that one not
 * start and be taken back, the other makes it after all. */
static int make_or_find(const struct args *a, const struct life_order *order, struct birth *b, struct pale_err *e)
{
    int r = life_make(order, &b->place, e);
    for (int tries = 0; r == -PALE_EXISTS && args_has(a, "ensure") && tries < ENSURE_TRIES; tries++) {
        struct pale_err why;
        int found = place_find(order->name, order->scope, &b->place, &why);
        if (found == 0 && (found = policy_compare(&b->place, order->policy, args_has(a, "no-autosave"), &why)) == 0) {
            b->was_there = true;
            return 0;
        }
        if (found == -PALE_EXISTS) {
            *e = why;
            return found;
        }
        usleep(ENSURE_PAUSE_US); /* it goes just now, or is not whole yet */
        r = life_make(order, &b->place, e);
    }
    return r;
}

static int begin_birth(const struct args *a, const char *name, const struct policy *policy, int home, struct birth *b, struct pale_err *e)
{
    reach_init(&b->reach);
    b->look = (struct start_look)START_LOOK_NONE;
    bool start = !args_has(a, "no-start");
    own_stack by_hand = {0};
    stack_init(&by_hand);
    by_hand.no_autosave = true;
    struct life_order order = {.name = name,
                               .scope = args_has(a, "in-project") ? SCOPE_PROJECT : SCOPE_USER,
                               .policy = policy,
                               .stack = args_has(a, "no-autosave") ? &by_hand : NULL,
                               .durable = !start};
    b->was_there = false;
    int r = make_or_find(a, &order, b, e);
    if (r == 0 && !b->was_there)
        start_look_begin(&b->look, &b->place, policy);
    if (r == 0 && start && !b->was_there && (r = reach_start(&b->reach, &b->place, home, e)) < 0) {
        start_look_done(&b->look);
        life_take_back(&b->place);
    }
    return r;
}

/* A keeper that found another in its place has lost a race against somebody who uses the box already: it is up, or soon will be. */
static int await_birth(struct birth *b, struct pale_err *e)
{
    int r = b->was_there ? -PALE_BUSY : reach_started(&b->reach, &b->place, e);
    if (r != -PALE_BUSY)
        return r;
    reach_close(&b->reach);
    reach_init(&b->reach);
    return reach_box(&b->reach, &b->place, true, e);
}

static int tell_birth(const struct args *a, const struct place *p, struct pale_err *e)
{
    if (!a->json) {
        printf("box %s [%s] id=%s\n", p->name, p->project ? "project" : "user", p->id);
    } else {
        own_buf b = {0};
        struct json j;
        buf_init(&b, 65536);
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_text(&j, "name", p->name);
        json_text(&j, "id", p->id);
        json_text(&j, "scope", p->project ? "project" : "user");
        json_text(&j, "data", p->data);
        json_text(&j, "state", args_has(a, "no-start") ? "stopped" : "ready");
        json_end_object(&j);
        printf("%s\n", buf_text(&b));
    }
    return fflush(stdout) ? err_os(e, "tell of box %s, which is made", p->name) : 0;
}

static bool has_terms(const struct args *a)
{
    return args_has(a, "ttl") || args_has(a, "idle");
}

/* How long it may live is the daemon's to keep, which hears of a new box a moment after it is there. */
static int set_terms(const struct args *a, const struct place *p, struct pale_err *e)
{
    own_remote r = {.fd = -1};
    own_buf body = {0}, text = {0};
    struct json j;
    char path[64];
    remote_init(&r);
    buf_init(&body, 4096);
    buf_init(&text, 65536);
    json_start(&j, &body);
    json_begin_object(&j, NULL);
    if (args_has(a, "ttl"))
        json_text(&j, "ttl", args_get(a, "ttl"));
    if (args_has(a, "idle"))
        json_text(&j, "idle", args_get(a, "idle"));
    json_end_object(&j);
    snprintf(path, sizeof(path), "/v1/boxes/%s", p->id);
    int res = remote_open(&r, NULL, true, e);
    for (int tries = 0; res == 0; tries++) {
        buf_clear(&text);
        if (remote_call(&r, "PATCH", path, buf_text(&body), &text, e) == 0)
            return 0;
        if (e->code != PALE_NOT_FOUND || tries == TERMS_TRIES)
            break;
        usleep(TERMS_PAUSE_US);
    }
    return err_prefix(e, "its time");
}

static int end_birth(const struct args *a, struct birth *b, struct pale_err *e)
{
    int r = args_has(a, "no-start") ? 0 : await_birth(b, e);
    if (r == 0)
        start_look_end(&b->look, &b->place);
    start_look_done(&b->look);
    reach_close(&b->reach);
    if (r == 0 && has_terms(a))
        r = set_terms(a, &b->place, e);
    if (r < 0 && r != -PALE_BUSY && !b->was_there)
        life_take_back(&b->place);
    return r < 0 ? r : tell_birth(a, &b->place, e);
}

/* Signals that would end us wait until every box that was begun is there or gone, and told of; no more are begun meanwhile. */
static void put_off_signals(sigset_t *ret_old)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGPIPE);
    sigprocmask(SIG_BLOCK, &mask, ret_old);
}

static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) || sigismember(&pending, SIGHUP));
}

/* How many to have under way at once: a wall is built by turns of its keeper, its builder and the kernel. */
static int births_at_once(int count)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int most = cpus < 1 ? 1 : cpus > BIRTHS_MAX / BIRTHS_PER_CPU ? BIRTHS_MAX : (int)cpus * BIRTHS_PER_CPU;
    return most < count ? most : count;
}

/* After a failure no more are begun, and those under way are seen through. */
static int create_all(const struct args *a, const struct policy *policy, struct pale_err *e)
{
    static const char *const fallback[] = {"default"};
    const char *const *names = a->count > 0 ? (const char *const *)a->word : fallback;
    int count = a->count > 0 ? a->count : 1, most = births_at_once(count), begun = 0;
    own_fd home = -1;
    int r = count < HOME_FROM || args_has(a, "no-start") ? 0 : reach_home(&home, e);
    struct birth *births = calloc((size_t)most, sizeof(*births));
    if (!births)
        return err_nomem(e);
    for (int ended = 0; ended < begun || (r == 0 && begun < count);) {
        struct pale_err own;
        int one;
        if (r == 0 && begun < count && begun - ended < most) {
            one = is_interrupted() ? err_set(&own, PALE_GONE, "interrupted before box %s", names[begun])
                                   : begin_birth(a, names[begun], policy, home, &births[begun % most], &own);
            begun += one == 0;
        } else {
            one = end_birth(a, &births[ended % most], &own);
            ended++;
        }
        if (one < 0 && r == 0) {
            r = one;
            *e = own;
        }
    }
    free(births);
    return r;
}

static int run_create(struct args *a)
{
    struct pale_err e;
    sigset_t old;
    own_policy policy = {0};
    static const char *const times[] = {"ttl", "idle"};
    for (size_t i = 0; i < 2; i++) {
        uint64_t ms = 0;
        if (args_has(a, times[i]) && (!number_duration(args_get(a, times[i]), &ms) || ms == 0)) {
            err_set(&e, PALE_BAD_INPUT, "--%s: a time such as 30s, 5m, 2h, 1d", times[i]);
            return cli_fail(a, &e);
        }
    }
    if (a->host)
        return far_create(a);
    if (boxflags_policy(a, &policy, &e) < 0)
        return cli_fail(a, &e);
    put_off_signals(&old);
    int r = create_all(a, &policy, &e), status = r < 0 ? cli_fail(a, &e) : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}

/* Asks a running keeper about itself; false if there is none. One that was killed has left its socket, and perhaps more. */
static bool ask_info(const struct place *p, struct reach *r, struct msg_info *ret)
{
    struct frame f;
    struct pale_err e;
    if (reach_box(r, p, false, &e) == 0 && reach_send(r, ASK_INFO, NULL, 0, &e) == 0 && reach_receive(r, &f, &e) == 0 &&
        f.type == TELL_INFO && msg_info_parse(f.data, f.len, ret))
        return true;
    if (access(p->socket, F_OK) == 0)
        (void)!life_sweep(p, NULL);
    return false;
}

static const char *state_of(bool up, const struct msg_info *info)
{
    return !up ? "stopped" : strcmp(info->state, "frozen") == 0 ? "frozen" : info->jobs ? "running" : "ready";
}

/* The boxes that are listed, each once. */
struct boxes {
    struct listing listing;
    char (*ids)[BOX_ID_LEN + 1];
    size_t count;
    bool only_up;  /* or lost */
    bool is_stray; /* its keeper was found by its process */
    struct pale_err *e;
};

static void boxes_done(struct boxes *b)
{
    free(b->ids);
    listing_done(&b->listing);
}

static bool remember(struct boxes *b, const char *id)
{
    void *more = realloc(b->ids, (b->count + 1) * sizeof(*b->ids));
    if (!more)
        return false;
    b->ids = more;
    memcpy(b->ids[b->count++], id, sizeof(*b->ids));
    return true;
}

static bool is_listed(const struct boxes *b, const char *id)
{
    for (size_t i = 0; i < b->count; i++)
        if (memcmp(b->ids[i], id, BOX_ID_LEN) == 0)
            return true;
    return false;
}

/* By whose word it is cut off. */
static const char *cut_of(const struct place *p)
{
    return cutoff_name(cutoff_of_place(p));
}

/* Its folder is gone or elsewhere, or there, but nothing else of it (`pale rm --keep-data`). */
static const char *lost_state(const struct place *p)
{
    return identity_is_at(p->data, p->id) ? "kept" : "lost";
}

/* What there is to say of it beside its state. */
static const char *remark_of(const struct place *p, const char *cut)
{
    return !p->lost ? cut : cut[0] ? "lost, cut off" : lost_state(p);
}

static int list_one(void *arg, const struct place *p)
{
    struct boxes *b = arg;
    struct listing *l = &b->listing;
    struct msg_info info = {0};
    char number[32] = "", shown[64];
    own_reach r = {.fd = -1};
    reach_init(&r);
    bool up = ask_info(p, &r, &info);
    if (b->only_up && !up && !p->lost)
        return 0;
    if (!remember(b, p->id))
        return err_nomem(b->e);
    const char *cut = cut_of(p), *remark = remark_of(p, cut);
    const char *state = b->is_stray && !up ? "running" : p->lost && !up ? lost_state(p) : state_of(up, &info);
    if (up)
        snprintf(number, sizeof(number), "%llu", (unsigned long long)info.jobs);
    if (l->is_json) {
        json_begin_object(&l->json, NULL);
        json_text(&l->json, "name", p->name);
        json_text(&l->json, "id", p->id);
        json_text(&l->json, "scope", p->project ? "project" : "user");
        json_text(&l->json, "state", state);
        json_u64(&l->json, "jobs", info.jobs);
        if (p->lost)
            json_bool(&l->json, "lost", true);
        if (cut[0])
            json_text(&l->json, "cut", cut);
        json_text(&l->json, "data", p->data);
        json_end_object(&l->json);
        return 0;
    }
    table_cell(&l->table, p->name);
    table_cell(&l->table, p->project ? "project" : "user");
    if (strcmp(state, remark) == 0)
        remark = "";
    snprintf(shown, sizeof(shown), "%s%s%s%s", state, remark[0] ? " (" : "", remark, remark[0] ? ")" : "");
    table_cell(&l->table, shown);
    table_cell(&l->table, number);
    table_cell(&l->table, p->id);
    return 0;
}

/* Boxes whose folder is gone or elsewhere, and whatever runs in other projects. */
static int list_more(void *arg, const struct place *p)
{
    const struct boxes *b = arg;
    char ignored[PATH_BYTES_MAX];
    if (is_listed(b, p->id) || (p->lost && !identity_recorded(p->state, IDENTITY_DATA, ignored)))
        return 0; /* or somebody is making or removing it just now */
    return list_one(arg, p);
}

/* One whose state folder is gone too still runs. */
static int list_stray(void *arg, const struct keepers_one *k)
{
    struct boxes *b = arg;
    b->is_stray = true;
    return k->is_once || is_listed(arg, k->place.id) || access(k->place.state, F_OK) == 0 ? 0 : list_one(arg, &k->place);
}

/* The boxes that are found, to be listed in order. */
struct found_boxes {
    struct place **item;
    size_t count, room;
    bool only_global;
};

static void found_done(struct found_boxes *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->item[i]);
    free(f->item);
}

static int add_found(void *arg, const struct place *p)
{
    struct found_boxes *f = arg;
    if (p->project && f->only_global)
        return 0;
    if (f->count == f->room) {
        struct place **grown = realloc(f->item, (f->room * 2 + 16) * sizeof(*grown));
        if (!grown)
            return -PALE_NO_MEMORY;
        f->item = grown;
        f->room = f->room * 2 + 16;
    }
    struct place *copy = malloc(sizeof(*copy));
    if (!copy)
        return -PALE_NO_MEMORY;
    *copy = *p;
    f->item[f->count++] = copy;
    return 0;
}

/* The project's boxes first, each kind by name. */
static int order_of_boxes(const void *x, const void *y)
{
    const struct place *a = *(struct place *const *)x, *b = *(struct place *const *)y;
    int by_name = strcmp(a->name, b->name);
    return a->project != b->project ? (a->project ? -1 : 1) : by_name ? by_name : strcmp(a->id, b->id);
}

static int list_found(struct found_boxes *f, int (*list)(void *arg, const struct place *p), struct boxes *b)
{
    int r = 0;
    if (f->count > 0)
        qsort(f->item, f->count, sizeof(*f->item), order_of_boxes);
    for (size_t i = 0; r >= 0 && i < f->count; i++)
        r = list(b, f->item[i]);
    return r;
}

static int run_ls(struct args *a)
{
    struct pale_err e;
    static const char *const heads[] = {"NAME", "SCOPE", "STATE", "JOBS", "ID"};
    CLEANUP(boxes_done) struct boxes b = {.e = &e};
    CLEANUP(found_done) struct found_boxes near = {.only_global = args_has(a, "global")}, rest = {.only_global = near.only_global};
    if (a->host)
        return far_ls(a);
    listing_init(&b.listing, a, heads, 5);
    err_nomem(&e); /* all that add_found can say */
    int r = place_each(true, add_found, &near, &e);
    if (r >= 0)
        r = list_found(&near, list_one, &b);
    b.only_up = true;
    if (r >= 0)
        r = place_each_state(add_found, &rest, &e);
    if (r >= 0)
        r = list_found(&rest, list_more, &b);
    if (r >= 0 && !near.only_global)
        r = keepers_each(list_stray, &b, &e);
    return r < 0 ? cli_fail(a, &e) : listing_print(&b.listing);
}

/* What its keeper has counted, if it runs and has a network. */
static bool ask_network(const struct place *p, struct shown_net *ret)
{
    struct pale_err e;
    own_reach r = {.fd = -1};
    reach_init(&r);
    return reach_box(&r, p, false, &e) == 0 && shown_net_ask(&r, ret, &e) == 0 && ret->has_network;
}

/* Records of gaps that its log has; the head file tells, the log itself is not read. */
static uint64_t gaps_of(const struct place *p)
{
    char path[PATH_BYTES_MAX];
    return path_join(path, sizeof(path), p->state, "audit") ? audit_gaps(path) : 0;
}

static int run_inspect(struct args *a)
{
    static struct shown_net net;
    struct pale_err e;
    struct place p;
    own_policy policy = {0};
    own_reach r = {.fd = -1};
    own_buf b = {0};
    struct msg_info info = {0};
    char digest[SHA256_HEX];
    if (a->host)
        return far_inspect(a);
    reach_init(&r);
    if (lookup_box(a, a->word[0], &p, &e) < 0 || life_policy(&p, &policy, &e) < 0)
        return cli_fail(a, &e);
    bool up = ask_info(&p, &r, &info), counted = up && info.has_network && ask_network(&p, &net);
    const char *cut = cut_of(&p);
    own_buf receipt = {0};
    shown_receipt_read(&p, &receipt);
    policy_digest(&policy, digest);
    buf_init(&b, 4 << 20);
    if (a->json) {
        struct json j;
        json_start(&j, &b);
        json_begin_object(&j, NULL);
        json_text(&j, "name", p.name);
        json_text(&j, "id", p.id);
        json_text(&j, "scope", p.project ? "project" : "user");
        json_text(&j, "state", state_of(up, &info));
        json_text(&j, "data", p.data);
        json_text(&j, "state_dir", p.state);
        if (up) {
            json_u64(&j, "keeper_pid", info.keeper_pid);
            json_u64(&j, "init_pid", info.init_pid);
            json_u64(&j, "jobs", info.jobs);
            json_u64(&j, "ended", info.ended);
            json_text(&j, "memory_limit_held_by", info.memory_by);
        }
        if (cut[0])
            json_text(&j, "cut", cut);
        if (gaps_of(&p))
            json_u64(&j, "audit_gaps", gaps_of(&p));
        if (counted)
            shown_net_json(&net, &j, "network");
        json_text(&j, "policy_digest", digest);
        if (receipt.len > 0)
            json_raw(&j, "receipt", receipt.data, receipt.len);
        policy_json(&policy, &j, "policy");
        json_end_object(&j);
        return cli_json(&b);
    }
    printf("name      %s\nid        %s\nscope     %s\nstate     %s\ndata      %s\naudit     %s/audit\n", p.name, p.id,
           p.project ? "project" : "user", state_of(up, &info), p.data, p.state);
    if (gaps_of(&p))
        printf("          records of it are missing: `pale audit --verify %s` says which\n", p.name);
    if (up)
        printf("keeper    pid %llu, init %llu, %llu running, %llu ended\nmemory    held by %s\n", (unsigned long long)info.keeper_pid,
               (unsigned long long)info.init_pid, (unsigned long long)info.jobs, (unsigned long long)info.ended, info.memory_by);
    if (cut[0])
        printf("cut off   from every network, by %s\n", cut);
    if (counted)
        shown_net_print(&net);
    shown_receipt_line(&receipt);
    policy_show(&policy, &b);
    printf("policy    sha256 %s\n%s", digest, buf_text(&b));
    return 0;
}

static int run_stop(struct args *a)
{
    struct pale_err e;
    struct place p;
    if (a->host)
        return far_stop(a);
    for (int i = 0; i < a->count; i++)
        if (lookup_any(a, a->word[i], &p, &e) < 0 || life_stop(&p, STOP_ANY, "local", &e) < 0 ||
            (!p.lost && snapshot_autosave(&p, "local", &e) < 0))
            return cli_fail(a, &e);
    if (a->json)
        printf("{\"stopped\":%d}\n", a->count);
    return 0;
}

static const struct option rm_options[] = {
    {"keep-data", 0, NULL, "leave the box's data folder", NULL},
    {"force", 'f', NULL, "also with work that has not landed; no error if there is no such box", NULL},
    {0},
};

/* 0: it may be removed; 1: the user has said that it stays. Work that exists nowhere else goes only if somebody says so. */
static int may_go(const struct args *a, const struct place *p, struct pale_err *e)
{
    char line[16];
    if (args_has(a, "force") || args_has(a, "keep-data"))
        return 0;
    int r = unlanded_refuse(p, e);
    if (r == 0 || a->json || !isatty(0) || !isatty(2))
        return r;
    cli_complain(e->text);
    fprintf(stderr, "Remove it anyway, with that work? [y,n] ");
    fflush(stderr);
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y') ? 0 : 1;
}

static int remove_one(const struct args *a, const struct place *p, struct pale_err *e)
{
    char note[PALE_ERR_TEXT_MAX] = "";
    int r = life_stop(p, STOP_ANY, "local", e);
    if (r == 0)
        r = kept_log_remove(p, !args_has(a, "keep-data"), "local", args_has(a, "force"), note, e);
    if (note[0])
        cli_note("note: the log of %s is gone with it: %s", p->name, note);
    return r;
}

static int run_rm(struct args *a)
{
    struct pale_err e;
    struct place p;
    int removed = 0, kept = 0;
    if (a->host)
        return far_rm(a);
    for (int i = 0; i < a->count; i++) {
        int r = lookup_box(a, a->word[i], &p, &e);
        if (r == -PALE_NOT_FOUND && args_has(a, "force"))
            continue;
        if (r < 0 || (r = may_go(a, &p, &e)) < 0 || (r == 0 && remove_one(a, &p, &e) < 0))
            return cli_fail(a, &e);
        removed += r == 0;
        kept += r == 1;
    }
    if (a->json)
        printf("{\"removed\":%d}\n", removed);
    return kept ? 125 : 0;
}

static const struct option create_scope[] = {
    {"global", 'g', NULL, "among your own boxes, as without it", NULL},
    {0},
};
static const struct option ls_options[] = {
    {"global", 'g', NULL, "your own boxes alone", NULL},
    {"all", 'a', NULL, "the project's too, as without it", NULL},
    {0},
};
static const struct option *const create_tables[] = {create_options, create_scope, box_options, common_options, NULL};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const ls_tables[] = {ls_options, common_options, NULL};
static const struct option *const rm_tables[] = {rm_options, scope_options, common_options, NULL};

const struct verb verb_create = {
    "create",
    "Boxes",
    "make a named box",
    "[FLAGS] [NAME …]",
    "Makes a box and starts it. Its home and /tmp are kept on disk until `pale rm`. NAME is a-z, 0-9 and '-'\n"
    "(default: default). The flags below become its policy; `pale policy show NAME` prints it. Several names\n"
    "make several boxes, some at a time; at the first that fails no more are begun. With --json each is a line.",
    create_tables,
    0,
    -1,
    -1,
    run_create};
const struct verb verb_ls = {"ls", "Boxes", "list boxes", "",    "The project's boxes and your own, with what runs in them.", ls_tables,
                             0,    0,       -1,           run_ls};
const struct verb verb_inspect = {
    "inspect", "Boxes",    "show all about a box", "BOX", "Folders, processes, policy and how its limits are held.", plain_tables, 1, 1,
    -1,        run_inspect};
const struct verb verb_stop = {"stop",
                               "Boxes",
                               "end a box's processes",
                               "BOX …",
                               "Ends everything in the box at once. Its files stay; the next exec starts it again.",
                               plain_tables,
                               1,
                               -1,
                               -1,
                               run_stop};
const struct verb verb_rm = {
    "rm",
    "Boxes",
    "remove a box",
    "[--keep-data] [-f] BOX …",
    "Stops the box and removes its policy and files. With work in a project for review that has not landed it asks,\n"
    "or without a terminal refuses, unless -f. Its log stays for 30 days: `pale audit ID`, `pale audit --removed`.",
    rm_tables,
    1,
    -1,
    -1,
    run_rm};

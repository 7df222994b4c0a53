/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb import: a box made from an export.
 *
 * How it works: the archive is a stranger's, and no byte of it is looked at by this process but the waybill, once it stands in a file: it
 * is unpacked by pale-init's `layer` in a box that has one folder in staging to write to. What came of that is looked through
 * (box/import.h) and becomes a box; whatever fails leaves nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quote.h"
#include "box/ceiling.h"
#include "box/import.h"
#include "box/ownplaces.h"
#include "box/intake.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/commission.h"
#include "cli/far.h"
#include "cli/far_parcel.h"
#include "cli/infile.h"
#include "cli/interrupt.h"
#include "cli/shown_past.h"
#include "cli/spout.h"
#include "cli/unpack.h"
#include "cli/verbs.h"
#include "image/staging.h"

struct arriving {
    struct args *args;
    struct commission commission;
    const char *file, *name;
    struct store store;
    struct staging staging;
    int root_fd;
    char root[PATH_BYTES_MAX]; /* what the box that unpacks writes to */
    char digest[SHA256_HEX];   /* of the file */
    struct buf text;
    struct waybill bill;
    struct policy policy;
};

static void arriving_done(struct arriving *i)
{
    own_close(&i->root_fd);
    staging_close(&i->staging);
    store_close(&i->store);
    buf_done(&i->text);
    policy_done(&i->policy);
    commission_done(&i->commission);
}

/* --- unpacking --- */

static int open_places(struct arriving *i, struct pale_err *e)
{
    char data[PATH_BYTES_MAX];
    int r = place_data_dir(data, sizeof(data), e);
    if (r == 0)
        r = store_open(&i->store, data, e);
    if (r == 0)
        r = staging_open(&i->staging, &i->store, e);
    /* The box that unpacks is given a folder of it, and no other box is (box/ownplaces.c). */
    if (r == 0 && setenv(OWNPLACES_STAGING, i->staging.path, 1) < 0)
        r = err_os(e, "prepare to import");
    return r < 0 ? r : staging_root(&i->staging, i->root, sizeof(i->root), &i->root_fd, e);
}

static int unpack(struct arriving *i, struct pale_err *e)
{
    own_spout s = SPOUT_NONE;
    own_fd fd = -1;
    struct left none = {0};
    uint64_t bytes;
    int r = infile_open(i->file, &fd, e);
    if (r == 0)
        r = spout_file(&s, fd, e);
    if (r < 0)
        return r;
    const struct unpack u = {
        .folder = i->root, .pass = "cargo", .in_fd = s.fd, .shows_progress = !i->args->json && isatty(2), .label = "unpack an export"};
    r = unpack_run(&u, &none, e);
    interrupt_catch();
    if (r == 0)
        r = spout_end(&s, i->digest, &bytes, e);
    if (r == 0 && left_any(&none))
        r = err_set(e, PALE_CORRUPT, "something of the export was left out, which may not be");
    return r;
}

/* --- the policy --- */

static void tell_wider(const struct policy *p)
{
    own_policy usual = {0};
    own_buf lines = {0};
    buf_init(&lines, POLICY_TEXT_MAX);
    if (policy_init(&usual, NULL) < 0 || policy_diff(&usual, p, &lines, NULL) == 0)
        return;
    for (const char *at = buf_text(&lines); *at;) {
        size_t n = strcspn(at, "\n");
        char shown[400];
        cli_note("by the export's policy, %s", quote_into(shown, sizeof(shown), at, n));
        at += n + (at[n] == '\n');
    }
}

static int begin_policy(const struct arriving *i, struct policy *ret, struct pale_err *e)
{
    own_buf complaints = {0};
    if (i->commission.is_given && i->commission.order.policy[0])
        return intake_text(i->commission.order.policy, ret, e);
    if (args_has(i->args, "policy"))
        return boxflags_file(i->args, ret, e);
    buf_init(&complaints, 65536);
    int r = import_wish(&i->bill, ret, &complaints, e);
    if (r < 0 && complaints.len > 0)
        cli_complain(buf_text(&complaints));
    if (r == 0 && !i->args->json) {
        shown_past_left_out(&i->bill.left_out);
        tell_wider(ret);
    }
    return r;
}

static int change_policy(const struct arriving *i, enum intake_paths paths, struct policy *ret, struct pale_err *e)
{
    int r = begin_policy(i, ret, e);
    if (r < 0)
        return r;
    return i->commission.is_given ? intake_sets(ret, i->commission.order.sets, paths, e) : boxflags_set(i->args, ret, e);
}

/* Has somebody here said what is to become of the project? */
static bool says_project(const struct arriving *i)
{
    static const char *const keys[] = {"project\t", "project.mode\t"};
    const char *at = i->commission.is_given ? i->commission.order.sets : "";
    bool says = args_has(i->args, "project");
    while (!says && *at) {
        size_t n = strcspn(at, "\n");
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            says = says || strncmp(at, keys[k], strlen(keys[k])) == 0;
        at += n + (at[n] == '\n');
    }
    return says;
}

/* A folder of this host is shown because somebody here said so, and for no other reason. */
static int check_project(const struct arriving *i, struct pale_err *e)
{
    bool has = i->bill.part[PART_PROJECT].entries > 0;
    const struct policy *p = &i->policy;
    if (p->project != PROJECT_NONE && !p->project_path)
        return err_set(e, PALE_BAD_INPUT,
                       "the box had a project; say which folder of this host it is now with --project-path DIR (project.path), or leave it "
                       "out with --project none (project.mode)");
    if (has && p->project != PROJECT_REVIEW && !says_project(i))
        return err_set(e, PALE_BAD_INPUT,
                       "the export has changes to a project, and the policy has none for review; add --project review --project-path DIR "
                       "(project.mode, project.path), or leave them out with --project none");
    if (!p->image && i->bill.part[PART_ROOT].entries > 0)
        return err_set(e, PALE_BAD_INPUT, "the export has changes to an image, and the policy names none; add --image NAME (image)");
    if (p->scratch != SCRATCH_DISK)
        return err_set(e, PALE_BAD_INPUT, "a box that keeps its writes in memory cannot hold an export's; use --scratch disk (scratch)");
    return 0;
}

static int make_policy(struct arriving *i, struct pale_err *e)
{
    const char *tenant = commission_tenant(&i->commission);
    own_policy written = {0};
    int r = tenant[0] ? change_policy(i, PATHS_WRITTEN, &written, e) : 0;
    if (r == 0 && tenant[0])
        r = ceiling_check(tenant, &written, e);
    if (r == 0)
        r = change_policy(i, PATHS_REAL, &i->policy, e);
    if (r == 0)
        r = check_project(i, e);
    if (r == 0)
        r = intake_check(&i->policy, NULL, e);
    if (r == 0 && i->commission.is_given)
        r = ceiling_refuse_host(&i->policy, e);
    return r < 0 ? r : ceiling_check(tenant, &i->policy, e);
}

/* --- all of it --- */

static int check_interrupt(struct pale_err *e)
{
    return *interrupt_seen() ? err_set(e, PALE_GONE, "interrupted") : 0;
}

static bool is_full(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    while (d && n < 3 && readdir(d))
        n++; /* two of them are dots */
    if (d)
        closedir(d);
    return n > 2;
}

/* Before all the work; whoever makes one meanwhile is seen at the end. Data that somebody has kept of another is not mixed with an
 * export's. */
static int check_name(const char *tenant, const char *name, struct pale_err *e)
{
    char data[PATH_BYTES_MAX], path[2 * PATH_BYTES_MAX];
    struct place there;
    int r = place_check_name(name, e);
    if (r == 0)
        r = place_data_dir(data, sizeof(data), e);
    if (r < 0)
        return r;
    if (place_owned(tenant, name, &there, NULL) == 0)
        return tenant[0] ? err_set(e, PALE_EXISTS, "there is already a box %s", name)
                         : err_set(e, PALE_EXISTS, "there is already a box %s (%s)", name, there.data);
    snprintf(path, sizeof(path), "%s/%s%s/%s", data, tenant[0] ? "tenants/" : "boxes", tenant, name);
    if (is_full(path))
        return err_set(e, PALE_EXISTS, "there is a folder %s of no box; `pale gc` removes what was never finished, else move it away",
                       tenant[0] ? name : path);
    return 0;
}

static int import_box(struct arriving *i, struct place *ret, struct pale_err *e)
{
    const char *tenant = commission_tenant(&i->commission);
    int r = check_name(tenant, i->name, e);
    if (r == 0)
        r = open_places(i, e);
    if (r == 0)
        r = check_interrupt(e);
    if (r == 0)
        r = unpack(i, e);
    if (r == 0)
        r = import_verify(i->root_fd, interrupt_seen(), &i->text, &i->bill, e);
    if (r == 0)
        r = make_policy(i, e);
    if (r == 0)
        r = check_interrupt(e);
    const struct import_order o = {.name = i->name,
                                   .tenant = tenant[0] ? tenant : NULL,
                                   .policy = &i->policy,
                                   .bill = &i->bill,
                                   .digest = i->digest,
                                   .root_fd = i->root_fd,
                                   .without_project = i->policy.project != PROJECT_REVIEW,
                                   .caller = commission_caller(&i->commission)};
    return r < 0 ? r : import_make(&o, ret, e);
}

static int tell(const struct arriving *i, const struct place *p)
{
    if (!i->args->json) {
        if (i->bill.part[PART_PROJECT].entries > 0 && i->policy.project != PROJECT_REVIEW)
            cli_note("left out, as you said: the box's changes to its project");
        printf("box %s [user] id=%s, from box %s, sha256:%.12s\n", p->name, p->id, i->bill.box, i->digest);
        return fflush(stdout) ? 125 : 0;
    }
    own_buf b = {0};
    struct json j;
    buf_init(&b, 4 * WAYBILL_BYTES_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "name", p->name);
    json_text(&j, "id", p->id);
    json_text(&j, "scope", p->tenant[0] ? "tenant" : "user");
    if (!p->tenant[0]) /* whose is told where it is */
        json_text(&j, "data", p->data);
    json_text(&j, "from", i->bill.box);
    json_text(&j, "from_id", i->bill.id);
    json_text(&j, "digest", i->digest);
    far_copy(&j, "left_out", &i->bill.left_out);
    json_end_object(&j);
    return cli_json(&b);
}

static int run_import(struct args *a)
{
    struct pale_err e;
    struct place made;
    static struct arriving i;
    i = (struct arriving){.args = a, .file = a->word[0], .name = a->word[1], .root_fd = -1};
    i.store = (struct store){.fd = -1, .staging_fd = -1, .digests_fd = -1, .names_fd = -1};
    i.staging = (struct staging){.store = &i.store, .fd = -1, .made_fd = -1};
    if (a->host)
        return far_import(a);
    interrupt_catch();
    int r = commission_read(&i.commission, &e);
    if (r == 0)
        r = import_box(&i, &made, &e);
    int status = r < 0 ? cli_fail(a, &e) : tell(&i, &made);
    arriving_done(&i);
    return status;
}

static const struct option *const import_tables[] = {box_options, common_options, NULL};

const struct verb verb_import = {
    "import",
    "Snapshots",
    "make a box of an export",
    "[FLAGS] FILE NEW",
    "FILE is what `pale export` wrote; - is standard input. It is unpacked in a box of its own, and whatever no export has\n"
    "(devices, set-id bits, overlay attributes, paths that lead out, names that come twice) is refused with the whole file;\n"
    "so is one whose digests do not fit. The export's policy is only a wish, which the flags change and --policy replaces:\n"
    "folders of the other host and variables are not taken over and must be given again. The box is new: it has its own\n"
    "id, tokens and audit log, and is not started yet.",
    import_tables,
    2,
    2,
    -1,
    run_import};

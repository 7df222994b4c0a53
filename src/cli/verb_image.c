/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb image: building, listing, looking at, checking and removing roots for boxes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box/imageref.h"
#include "box/imageuse.h"
#include "cli/build.h"
#include "cli/cli.h"
#include "cli/far_image.h"
#include "cli/shown_image.h"
#include "cli/verbs.h"
#include "image/imageline.h"
#include "image/staging.h"
#include "image/store.h"

static const struct option image_options[] = {
    {"from", 0, "SOURCE", "build: mmdebstrap (default), minimal, host-copy, tar, oci", NULL},
    {"suite", 0, "SUITE", "mmdebstrap: a release of the distribution (this host's)", NULL},
    {"variant", 0, "VARIANT", "mmdebstrap: how much of it (apt)", NULL},
    {"include", 0, "A,B", "mmdebstrap: packages besides", NULL},
    {"file", 'f', "PATH", "tar, oci: an archive, - for standard input, or the folder of an OCI layout", NULL},
    {"url", 0, "URL", "tar, oci: an archive to fetch with curl", NULL},
    {"force-copy", 0, NULL, "host-copy: even if it takes more than 1 GiB", NULL},
    {"progress", 0, NULL, "tell on standard error how far it is, a line at a time", NULL},
    {0},
};

static int build_image(struct args *a)
{
    return build_run(a, a->word[1]);
}

/* --- ls --- */

static int add_row(void *arg, const struct image *i)
{
    struct listing *l = arg;
    if (l->is_json)
        imageline_json(i, true, &l->json);
    else
        shown_image_row(l, i->name, i->digest, &i->facts);
    return 0;
}

static int list_images(struct args *a)
{
    struct pale_err e;
    own_store s = STORE_NONE;
    own_listing l = {0};
    if (imageref_store(&s, &e) < 0)
        return cli_fail(a, &e);
    (void)staging_sweep(&s, false);
    shown_image_list(&l, a);
    if (store_each(&s, add_row, &l, &e) < 0)
        return cli_fail(a, &e);
    return listing_print(&l);
}

/* --- rm --- */

static int remove_images(struct args *a)
{
    struct pale_err e;
    own_store s = STORE_NONE;
    if (imageref_store(&s, &e) < 0)
        return cli_fail(a, &e);
    (void)staging_sweep(&s, false);
    for (int i = 1; i < a->count; i++) {
        if (imageuse_remove(&s, a->word[i], "local", &e) < 0)
            return cli_fail(a, &e);
        if (!a->json)
            printf("removed image %s\n", a->word[i]);
    }
    if (a->json)
        printf("{\"removed\":%d}\n", a->count - 1);
    return fflush(stdout) ? 125 : 0;
}

/* --- inspect, verify --- */

static int inspect_image(struct args *a)
{
    struct pale_err e;
    struct jsonread key, value;
    own_store s = STORE_NONE;
    own_image i = {.lock_fd = -1};
    if (imageref_store(&s, &e) < 0 || store_find(&s, a->word[1], &i, &e) < 0)
        return cli_fail(a, &e);
    if (a->json) {
        own_buf out = {0};
        struct json j;
        buf_init(&out, 2 * IMAGE_JSON_MAX);
        json_start(&j, &out);
        imageline_all_json(&i, true, &j);
        return cli_json(&out);
    }
    printf("%-14s %s\n%-14s %s\n", "name", i.name[0] ? i.name : "-", "root", i.root);
    for (size_t pos = 0; jsonread_next(&i.facts, &pos, &key, &value);)
        shown_image_member(&key, &value);
    return fflush(stdout) ? 125 : 0;
}

static int verify_images(struct args *a)
{
    struct pale_err e;
    struct progress shown = {.shows = !a->json && isatty(2)};
    own_store s = STORE_NONE;
    const struct store_check check = {.progress = progress_show, .progress_arg = &shown};
    if (imageref_store(&s, &e) < 0)
        return cli_fail(a, &e);
    for (int k = 1; k < a->count; k++) {
        own_image i = {.lock_fd = -1};
        if (store_find(&s, a->word[k], &i, &e) < 0)
            return cli_fail(a, &e);
        if (store_verify(&s, &i, &check, &e) < 0)
            return err_prefix(&e, "image %s", a->word[k]), cli_fail(a, &e);
        if (!a->json)
            printf("good: %s, sha256:%s\n", a->word[k], i.digest);
    }
    if (a->json)
        printf("{\"good\":true,\"images\":%d}\n", a->count - 1);
    return fflush(stdout) ? 125 : 0;
}

static int run_image(struct args *a)
{
    struct pale_err e;
    static const struct {
        const char *name;
        int min, max;
        int (*run)(struct args *a), (*far)(struct args *a);
        bool builds;
    } acts[] = {{"build", 2, 2, build_image, far_image_build, true},
                {"ls", 1, 1, list_images, far_image_ls, false},
                {"rm", 2, 64, remove_images, far_image_rm, false},
                {"inspect", 2, 2, inspect_image, far_image_inspect, false},
                {"verify", 2, 64, verify_images, far_image_verify, false}};
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(a->word[0], acts[i].name) != 0 || a->count < acts[i].min || a->count > acts[i].max)
            continue;
        for (const struct option *o = image_options; o->name && !acts[i].builds; o++)
            if (args_has(a, o->name)) {
                err_set(&e, PALE_BAD_INPUT, "--%s is a flag of image build", o->name);
                return cli_fail(a, &e);
            }
        return a->host ? acts[i].far(a) : acts[i].run(a);
    }
    err_set(&e, PALE_BAD_INPUT, "image: build NAME, ls, rm NAME …, inspect NAME or verify NAME …");
    return cli_fail(a, &e);
}

static const struct option *const image_tables[] = {image_options, common_options, NULL};

const struct verb verb_image = {
    "image",
    "Boxes",
    "build, list, check and remove roots for boxes",
    "build [FLAGS] NAME | ls | inspect NAME | verify NAME … | rm NAME …",
    "An image is a root of its own for boxes (--image NAME): a tree that boxes see read-only and write over in a layer.\n"
    "It is kept by the digest of what is in it, has no setuid bits, devices or file capabilities, and belongs to you. What\n"
    "others packed is unpacked in a box. verify reads all of it again and names the first thing that is not as it was. An\n"
    "image that a box is made on is not removed. NAME may be sha256:DIGEST too.",
    image_tables,
    1,
    -1,
    -1,
    run_image};

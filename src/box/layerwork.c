/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the work on closed layers. */
#include "box/layerwork.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "box/layerdir.h"
#include "confine/seclusion.h"
#include "tree/layerdigest.h"
#include "tree/weld.h"

/* The parts of the layers that a piece of work is about, open. Where a part is in none, there is none of it in what is made. */
struct bench {
    int *in[PART_COUNT]; /* the highest first */
    size_t in_count[PART_COUNT], most;
    int out[PART_COUNT];
};

/* For so many layers. */
static int bench_init(struct bench *b, size_t most, struct pale_err *e)
{
    int r = 0;
    *b = (struct bench){.most = most};
    for (int i = 0; i < PART_COUNT; i++) {
        b->out[i] = -1;
        if (!(b->in[i] = calloc(most + 1, sizeof(*b->in[i]))))
            r = err_nomem(e);
    }
    return r;
}

static void bench_done(struct bench *b)
{
    for (int i = 0; i < PART_COUNT; i++) {
        while (b->in_count[i] > 0)
            own_close(&b->in[i][--b->in_count[i]]);
        own_release(&b->in[i]);
        own_close(&b->out[i]);
    }
}

static int take_part(const struct place *p, const char *id, enum wall_part part, struct bench *b, struct pale_err *e)
{
    int fd = -1, res = layerdir_open_part(p, id, part, O_RDONLY, &fd, e);
    if (res == 0 && fd >= 0)
        b->in[part][b->in_count[part]++] = fd;
    return res;
}

/* Layers are linked from, and the new one is filled: nobody can write what is in them. */
static int work_secluded(struct bench *b, seclusion_fn *fn, void *ret, size_t n, struct pale_err *e)
{
    own_mem struct landlock_place *places = calloc(PART_COUNT * (b->most + 1), sizeof(*places));
    struct seclusion s = {.places = places};
    if (!places)
        return err_nomem(e);
    for (int part = 0; part < PART_COUNT; part++) {
        for (size_t i = 0; i < b->in_count[part]; i++)
            places[s.place_count++] = (struct landlock_place){b->in[part][i], b->out[part] >= 0 ? LANDLOCK_LINK : LANDLOCK_READ};
        if (b->out[part] >= 0)
            places[s.place_count++] = (struct landlock_place){b->out[part], LANDLOCK_FILL};
    }
    return seclusion_run(&s, fn, b, ret, n, e);
}

/* What comes back of a layer that was read: to be taken for what a box might have written. */
struct finding {
    uint8_t digest[SHA256_BYTES];
    uint8_t poisoned; /* any but 0 */
};
static_assert(sizeof(struct finding) <= SECLUSION_ANSWER_MAX, "it fits into an answer");

static int digest_parts(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct bench *b = arg;
    struct sha256 all;
    struct finding f = {0};
    (void)step;
    sha256_init(&all);
    for (int i = 0; i < PART_COUNT; i++) {
        struct layerdigest d = {0};
        int res = b->in_count[i] ? layerdigest_run(&d, b->in[i][0], e) : 0;
        f.poisoned = f.poisoned || d.poisoned || res == -PALE_CORRUPT;
        if (res < 0 && res != -PALE_CORRUPT)
            return res;
        if (b->in_count[i]) {
            sha256_add(&all, wall_part_names[i], strlen(wall_part_names[i]) + 1);
            sha256_add(&all, d.digest, sizeof(d.digest));
        }
    }
    sha256_final(&all, f.digest);
    memcpy(ret, &f, sizeof(f));
    return 0;
}

/* What has a digest is on the disk: until then the power may take what was written last. */
static int sync_first(const struct bench *b, struct pale_err *e)
{
    for (int i = 0; i < PART_COUNT; i++)
        if (b->in_count[i])
            return syncfs(b->in[i][0]) < 0 ? err_os(e, "write a layer to the disk") : 0;
    return 0;
}

int layerwork_digest(const struct place *p, const char *id, struct layerwork_finding *ret, struct pale_err *e)
{
    CLEANUP(bench_done) struct bench b;
    struct finding f;
    int r = bench_init(&b, 1, e);
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        r = take_part(p, id, i, &b, e);
    if (r == 0)
        r = sync_first(&b, e);
    if (r == 0)
        r = work_secluded(&b, digest_parts, &f, sizeof(f), e);
    if (r < 0)
        return r;
    sha256_to_hex(f.digest, ret->digest);
    ret->poisoned = f.poisoned != 0;
    return 0;
}

static int weld_parts(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct bench *b = arg;
    int res = 0;
    (void)step;
    (void)ret;
    for (int i = 0; res == 0 && i < PART_COUNT; i++) {
        if (b->in_count[i])
            res = weld_run(b->in[i], b->in_count[i], b->out[i], e);
        /* What the list of layers names must be on the disk before it does. */
        if (res == 0 && b->in_count[i] && syncfs(b->out[i]) < 0)
            res = err_os(e, "write a layer to the disk");
    }
    return res;
}

int layerwork_weld(const struct place *p, const struct layerwork_part *parts, size_t count, const char *made, struct pale_err *e)
{
    CLEANUP(bench_done) struct bench b;
    int r = bench_init(&b, count, e);
    for (int i = 0; r == 0 && i < PART_COUNT; i++) {
        for (size_t at = count; r == 0 && at-- > 0;) {
            r = take_part(p, parts[at].id, i, &b, e);
            if (i == PART_PROJECT && parts[at].anew)
                break; /* what lies below does not count */
        }
        if (r == 0)
            r = layerdir_open_part(p, made, i, O_RDONLY, &b.out[i], e);
        if (r == 0 && b.out[i] < 0)
            r = err_set(e, PALE_INTERNAL, "a new layer has no %s", wall_part_names[i]);
    }
    return r < 0 ? r : work_secluded(&b, weld_parts, NULL, 0, e);
}

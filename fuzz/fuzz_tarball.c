/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: archives made bundles, and bundles made archives. The first byte chooses the way and how the input is cut.
 * In pieces it means what it means whole. What is made of an archive is a bundle that stays below its top, and becomes an archive
 * that gives the same bundle again; what is made of a bundle is an archive that is taken. Headers of an input have their checksums set
 * right, as no mutator would. */
#include <assert.h>
#include <stdlib.h>

#include "archive.h"
#include "input.h"
#include "net/tarball.h"
#include "net/untar.h"

#define OUT_MAX (1u << 20) /* a record of twenty bytes can become three blocks */

struct flow {
    size_t n;
    int result;
    struct pale_err e;
    struct bundle_count count;
    uint8_t at[OUT_MAX];
};

static struct untar untar;
static struct tarball tarball;

/* Long ones not in too many pieces: that is most of the time, and shows nothing new. */
static size_t piece_of(size_t wish, size_t n)
{
    return wish > n / 128 ? wish : n / 128;
}

/* Carries all of the input, in pieces of that size into room of that size. */
UNSEEN static void carry(bool to_tar, bool inner, const uint8_t *p, size_t n, size_t piece, size_t room, struct flow *ret)
{
    size_t at = 0;
    ret->n = 0;
    memset(&ret->e, 0, sizeof(ret->e));
    if (!to_tar)
        untar_init(&untar, "top");
    assert(!to_tar || tarball_init(&tarball, inner ? "x" : ".", inner, NULL) == 0);
    do {
        size_t give = n - at < piece ? n - at : piece, space = OUT_MAX - ret->n < room ? OUT_MAX - ret->n : room;
        struct pieces io = {.in = p + at, .in_len = give, .last = at + give == n, .out = ret->at + ret->n, .room = space};
        ret->result = to_tar ? tarball_step(&tarball, &io, &ret->e) : untar_step(&untar, &io, &ret->e);
        assert(io.used <= give && io.made <= space);
        assert(ret->result != 0 || io.made == space || io.used == give);
        assert(ret->result != 0 || io.made || io.used);
        at += io.used;
        ret->n += io.made;
        assert(ret->n < OUT_MAX);
    } while (ret->result == 0);
    assert(ret->result < 0 ? ret->e.text[0] && ret->result == -(int)ret->e.code : at == n);
    ret->count = to_tar ? tarball.count : untar.count;
}

/* A bundle is whole: every head is one, and what is entered is left. */
UNSEEN static void check_bundle(const struct flow *f)
{
    int depth = 0;
    for (size_t at = 0; at < f->n;) {
        struct bundle_head h;
        assert(f->n - at >= BUNDLE_HEAD_BYTES && bundle_head_parse(f->at + at, &h));
        assert(depth > 0 || at == 0 || h.type == BUNDLE_END);
        const char *name = (const char *)f->at + at + BUNDLE_HEAD_BYTES;
        at += BUNDLE_HEAD_BYTES + h.name_len;
        assert(at <= f->n && h.size <= f->n - at);
        assert(h.name_len ? bundle_is_name(name, h.name_len) : h.type >= BUNDLE_LEAVE);
        assert(h.type != BUNDLE_LINK || !memchr(f->at + at, 0, (size_t)h.size));
        at += (size_t)h.size;
        depth += h.type == BUNDLE_FOLDER;
        depth -= h.type == BUNDLE_LEAVE;
        assert(depth >= 0 && depth <= BUNDLE_DEPTH_MAX && h.type != BUNDLE_ERROR && (h.type != BUNDLE_END || at == f->n));
    }
    assert(depth == 0);
}

UNSEEN static bool same(const struct flow *a, const struct flow *b)
{
    return a->result == b->result && a->n == b->n && memcmp(a->at, b->at, a->n) == 0 && strcmp(a->e.text, b->e.text) == 0;
}

/* A path or a depth that one can have may be too much for the other, where the top is one more step. */
UNSEEN static bool is_limit(const struct flow *f)
{
    return f->result == -PALE_LIMIT;
}

static void try_archive(const uint8_t *p, size_t n, size_t piece, size_t room)
{
    static struct flow whole, pieces, tar, again;
    carry(false, false, p, n, n, OUT_MAX, &whole);
    carry(false, false, p, n, piece_of(piece, n), piece_of(room, whole.n), &pieces);
    assert(same(&whole, &pieces));
    if (whole.result < 0)
        return;
    check_bundle(&whole);
    carry(true, false, whole.at, whole.n, whole.n, OUT_MAX, &tar);
    assert(tar.result == 1 || is_limit(&tar));
    if (tar.result < 0)
        return;
    carry(false, false, tar.at, tar.n, tar.n, OUT_MAX, &again);
    assert(same(&whole, &again));
}

static void try_bundle(const uint8_t *p, size_t n, size_t piece, size_t room, bool inner)
{
    static struct flow whole, pieces, back;
    carry(true, inner, p, n, n, OUT_MAX, &whole);
    carry(true, inner, p, n, piece_of(piece, n), piece_of(room, whole.n), &pieces);
    assert(same(&whole, &pieces));
    if (whole.result < 0)
        return;
    assert(whole.n % TAR_BLOCK == 0);
    carry(false, false, whole.at, whole.n, whole.n, OUT_MAX, &back);
    assert(back.result == 1 || is_limit(&back));
    if (back.result < 0)
        return;
    check_bundle(&back);
    assert(back.count.files == whole.count.files && back.count.links == whole.count.links && back.count.bytes == whole.count.bytes);
    assert(back.count.folders == whole.count.folders);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t archive[1u << 17];
    struct input in = {data, size};
    uint8_t way = input_byte(&in);
    size_t piece = 1 + input_byte(&in) * 5u, room = 1 + input_byte(&in) * 5u, n = in.left;
    if (way % 4 == 0)
        n = archive_make(&in, archive, sizeof(archive));
    const uint8_t *from = way % 4 == 0 ? archive : in.at;
    /* A copy of its own, so that one byte too many is seen. */
    uint8_t *p = malloc(n ? n : 1);
    assert(p);
    if (n)
        memcpy(p, from, n);
    for (size_t i = 0; way % 4 == 1 && i + TAR_BLOCK <= n; i += TAR_BLOCK)
        if (p[i])
            archive_set_sum(p + i);
    if (way % 4 <= 1)
        try_archive(p, n, piece, room);
    else
        try_bundle(p, n, piece, room, way % 4 == 3);
    free(p);
    return 0;
}

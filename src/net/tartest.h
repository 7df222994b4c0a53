/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of net/untar and net/tarball share: archives and bundles made by hand, carried in pieces, and told as text. */
#pragma once

#include "base/test.h"

#include <stdio.h>

#include "net/tarball.h"
#include "net/tarsamples.h"
#include "net/untar.h"

struct bytes {
    size_t n;
    uint8_t at[1 << 18];
};

static inline void add(struct bytes *b, const void *p, size_t n)
{
    assert_true(b->n + n <= sizeof(b->at));
    if (n)
        memcpy(b->at + b->n, p, n);
    b->n += n;
}

/* --- archives --- */

static inline void add_zeros(struct bytes *b, size_t n)
{
    assert_true(b->n + n <= sizeof(b->at));
    memset(b->at + b->n, 0, n);
    b->n += n;
}

static inline void add_padded(struct bytes *b, const void *p, size_t n)
{
    add(b, p, n);
    add_zeros(b, tar_padding(n));
}

static inline void add_head(struct bytes *b, char type, const char *name, const char *link, size_t size)
{
    struct tar_head h = {.type = (uint8_t)type, .mode = 0644, .size = (int64_t)size, .mtime = 1};
    uint8_t block[TAR_BLOCK];
    snprintf(h.name, sizeof(h.name), "%s", name);
    snprintf(h.link, sizeof(h.link), "%s", link);
    tar_head_put(block, &h);
    add(b, block, TAR_BLOCK);
}

/* Any entry, with content of its own. */
static inline void add_entry(struct bytes *b, char type, const char *name, const char *content)
{
    add_head(b, type, name, "", strlen(content));
    add_padded(b, content, strlen(content));
}

static inline void add_record(struct bytes *b, const char *key, const char *value)
{
    char record[8192];
    size_t n = tarpax_put(record, key, value);
    add_head(b, TAR_PAX, "pax", "", n);
    add_padded(b, record, n);
}

/* Changes a field of the last block and sets its sum right again. */
static inline void poke(struct bytes *b, size_t at, const void *p, size_t n)
{
    uint8_t *block = b->at + b->n - TAR_BLOCK;
    unsigned sum = 0;
    char text[8];
    memcpy(block + at, p, n);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(block + 148, text, 7);
}

static inline void add_end(struct bytes *b)
{
    add_zeros(b, TAR_END_BLOCKS * TAR_BLOCK);
}

static inline void load_sample(struct bytes *b, size_t which)
{
    memset(b, 0, sizeof(*b));
    b->n = SAMPLE_BYTES;
    for (size_t i = 0; i < samples[which].count; i++)
        memcpy(b->at + samples[which].runs[i].at, samples[which].runs[i].bytes, samples[which].runs[i].n);
}

/* --- bundles --- */

static inline void add_bundle(struct bytes *b, enum bundle_type type, const char *name, const char *content)
{
    uint8_t head[BUNDLE_HEAD_MAX];
    struct bundle_head h = {.type = type, .size = strlen(content), .name_len = (uint8_t)strlen(name)};
    if (type <= BUNDLE_LINK) {
        h.mode = type == BUNDLE_FOLDER ? 0755 : 0644;
        h.mtime = 1;
    }
    add(b, head, bundle_head_put(head, &h, name));
    add(b, content, strlen(content));
}

/* A bundle as text: top 755{a 644=content;b>target;}. with a full stop for its end. */
static inline const char *tell(const struct bytes *b)
{
    static char text[sizeof(b->at)];
    size_t at = 0, n = 0;
    while (at < b->n) {
        struct bundle_head h;
        assert_true(b->n - at >= BUNDLE_HEAD_BYTES && bundle_head_parse(b->at + at, &h));
        const char *name = (const char *)b->at + at + BUNDLE_HEAD_BYTES, *content = name + h.name_len;
        at += BUNDLE_HEAD_BYTES + h.name_len + (size_t)h.size;
        assert_true(at <= b->n);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", h.name_len, name);
        if (h.type == BUNDLE_FOLDER || h.type == BUNDLE_FILE)
            n += (size_t)snprintf(text + n, sizeof(text) - n, " %o", h.mode);
        static const char marks[][2] = {"", "=", "{", ">", "}", ".", "!"};
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s%s", marks[h.type], (int)h.size, content,
                              h.type == BUNDLE_FILE || h.type == BUNDLE_LINK ? ";" : "");
    }
    return text;
}

/* --- carrying --- */

enum way { UNTAR, TARBALL_DOT, TARBALL_NAMED, TARBALL_INNER };

struct carried {
    int result; /* as of the last step */
    struct pale_err e;
    struct bytes out;
};

/* Carries the input in two pieces, cut there, or only the first if that is not the end; into room of that size at a time. */
static inline struct carried *carry(enum way way, const struct bytes *in, size_t cut, size_t room, bool ends)
{
    static struct carried c;
    static struct untar u;
    static struct tarball t;
    size_t at = 0;
    c.out.n = 0;
    c.result = 0;
    untar_init(&u, "top");
    assert_int_equal(tarball_init(&t, way == TARBALL_NAMED ? "named" : ".", way == TARBALL_INNER, NULL), 0);
    for (;;) {
        size_t to = at < cut || !ends ? cut : in->n;
        uint8_t now[4096];
        struct pieces p = {.in = in->at + at, .in_len = to - at, .last = ends && to == in->n, .out = now, .room = room};
        c.result = way == UNTAR ? untar_step(&u, &p, &c.e) : tarball_step(&t, &p, &c.e);
        assert_true(p.used <= p.in_len && p.made <= room);
        at += p.used;
        add(&c.out, now, p.made);
        if (c.result != 0)
            break;
        assert_true(p.made == room || p.used == p.in_len);
        if (p.made < room && at == to && (!ends || to == in->n))
            break;
    }
    if (c.result < 0) {
        /* What is refused stays refused. */
        struct pale_err again;
        struct pieces p = {.in = in->at, .in_len = in->n, .last = true};
        assert_int_equal(way == UNTAR ? untar_step(&u, &p, &again) : tarball_step(&t, &p, &again), c.result);
        assert_string_equal(again.text, c.e.text);
        assert_int_equal(p.used + p.made, 0);
    }
    assert_true(c.result != 1 || at == in->n);
    return &c;
}

static inline struct carried *carry_whole(enum way way, const struct bytes *in)
{
    return carry(way, in, in->n, 4096, true);
}

/* Cut anywhere and in any room it comes to the same. */
static inline void check_pieces(enum way way, const struct bytes *in)
{
    static struct bytes want;
    struct carried *c = carry_whole(way, in);
    assert_int_equal(c->result, 1);
    want = c->out;
    for (size_t cut = 0; cut <= in->n; cut++) {
        c = carry(way, in, cut, cut % 7 ? 4096 : 1 + cut % 600, true);
        assert_int_equal(c->result, 1);
        assert_int_equal(c->out.n, want.n);
        assert_memory_equal(c->out.at, want.at, want.n);
    }
}

/* What is cut off needs more, and if nothing comes it is an error, up to this length. */
static inline void check_prefixes(enum way way, const struct bytes *in, size_t least)
{
    static struct bytes part;
    for (size_t n = 0; n <= in->n; n++) {
        part.n = 0;
        add(&part, in->at, n);
        assert_int_equal(carry(way, &part, n, 4096, false)->result, 0);
        int r = carry_whole(way, &part)->result;
        if ((r < 0) != (n < least))
            fail_msg("%zu bytes of %zu: %d", n, in->n, r);
    }
}

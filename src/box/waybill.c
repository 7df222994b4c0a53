/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the text of waybills. */
#include "box/waybill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "net/cargo.h"
#include "policy/rule.h"
#include "tree/layerdigest.h"

#define FORMAT "pale-export"
#define DIGEST_PREFIX "sha256:"

int waybill_measure(int part_fd, enum wall_part part, const volatile sig_atomic_t *stop, struct waybill_part *ret, uint64_t *ret_left,
                    struct pale_err *e)
{
    struct carriage carry = {.lowest = !cargo_lies_on(wall_part_names[part])};
    struct layerdigest d = {.carry = &carry, .stop = stop};
    int r = layerdigest_run(&d, part_fd, e);
    if (r < 0)
        return err_prefix(e, "%s", wall_part_names[part]);
    if (d.poisoned)
        return err_set(e, PALE_CORRUPT, "%s holds what no box can make: %s", wall_part_names[part], d.first);
    *ret = (struct waybill_part){.there = true, .entries = d.entries, .bytes = d.bytes};
    sha256_to_hex(d.digest, ret->digest);
    *ret_left += carry.left;
    return 0;
}

/* --- what stays behind --- */

struct teller {
    void (*fn)(void *arg, const char *what);
    void *arg;
};

static void tell(const struct teller *t, const char *key, const char *what)
{
    own_buf line = {0};
    buf_init(&line, 2 * PATH_BYTES_MAX + 64);
    buf_addf(&line, "%s %s", key, what);
    if (t->fn)
        t->fn(t->arg, buf_text(&line));
}

/* cut: where what may be told ends, or 0. */
static void drop_list(struct policy_strings *l, const char *key, char cut, const struct teller *t)
{
    for (size_t i = 0; i < l->count; i++) {
        char *end = cut ? strchr(l->item[i], cut) : NULL;
        if (end)
            *end = 0;
        tell(t, key, l->item[i]);
        free(l->item[i]);
    }
    l->count = 0;
}

static void drop_one(char **at, const char *key, const struct teller *t)
{
    if (*at)
        tell(t, key, *at);
    free(*at);
    *at = NULL;
}

static void drop_volumes(struct policy *p, const struct teller *t)
{
    for (size_t i = 0; i < p->volume_count; i++) {
        char both[2 * PATH_BYTES_MAX + 8];
        snprintf(both, sizeof(both), "%s:%s:%s", p->volumes[i].host, p->volumes[i].target, p->volumes[i].writable ? "rw" : "ro");
        tell(t, "volumes", both);
        free(p->volumes[i].host);
        free(p->volumes[i].target);
    }
    p->volume_count = 0;
}

static bool is_same_list(const struct policy_strings *a, const struct policy_strings *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->item[i], b->item[i]) == 0;
    return same;
}

/* What the host would obey is for the host to say: the usual list takes its place. */
static int drop_guard(struct policy *p, const struct teller *t, struct pale_err *e)
{
    own_policy usual = {0};
    int r = policy_init(&usual, e);
    if (r < 0 || is_same_list(&p->guard, &usual.guard))
        return r;
    const struct policy_strings own = p->guard;
    tell(t, "guard", "(a list of its own)");
    p->guard = usual.guard;
    usual.guard = own;
    return 0;
}

/* Addresses and ports of the host mean another thing on another one. */
static void drop_network(struct policy *p, const struct teller *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->egress_count; i++) {
        struct policy_egress *r = &p->egress[i];
        if (r->verdict == VERDICT_DENY || (r->domain && !r->host_port)) {
            p->egress[kept++] = *r;
            continue;
        }
        own_buf text = {0};
        buf_init(&text, POLICY_TEXT_MAX);
        rule_text(r, &text);
        tell(t, "network.egress", buf_text(&text));
        rule_free(r);
    }
    p->egress_count = kept;
    for (size_t i = 0; i < p->publish_count; i++) {
        char text[24];
        snprintf(text, sizeof(text), "%u:%u", p->publish[i].host, p->publish[i].box);
        tell(t, "network.publish", text);
    }
    p->publish_count = 0;
}

int waybill_strip(struct policy *p, void (*fn)(void *arg, const char *what), void *arg, struct pale_err *e)
{
    const struct teller t = {fn, arg};
    drop_one(&p->project_path, "project.path", &t);
    drop_list(&p->read, "read", 0, &t);
    drop_list(&p->write, "write", 0, &t);
    drop_volumes(p, &t);
    drop_one(&p->volume_root, "volume_root", &t);
    drop_list(&p->env_set, "env.set", '=', &t);
    drop_list(&p->env_pass, "env.pass", 0, &t);
    drop_list(&p->env_allow, "env.allow", 0, &t);
    drop_network(p, &t);
    int r = drop_guard(p, &t, e);
    const char *at = p->image ? strstr(p->image, "@" DIGEST_PREFIX) : NULL;
    if (r < 0 || !at)
        return r;
    char digest[SHA256_HEX + sizeof(DIGEST_PREFIX)];
    snprintf(digest, sizeof(digest), "%s", at + 1);
    return policy_set(p, "image", digest, e);
}

/* --- writing --- */

static void add_line(void *arg, const char *what)
{
    json_text(arg, NULL, what);
}

static void write_bases(struct json *j, const char *at)
{
    json_begin_list(j, "bases");
    for (const char *end; at && (end = strchr(at, '\n')); at = end + 1)
        json_bytes(j, NULL, at, (size_t)(end - at));
    json_end_list(j);
}

int waybill_write(const struct waybill *w, struct policy *p, struct buf *out, struct pale_err *e)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_text(&j, "format", FORMAT);
    json_u64(&j, "version", WAYBILL_VERSION);
    json_text(&j, "box", w->box);
    json_text(&j, "id", w->id);
    json_text(&j, "snapshot", w->snapshot);
    json_u64(&j, "created_unix_ms", w->created_ms);
    json_text(&j, "image", p->image ? p->image : "");
    json_begin_list(&j, "left_out");
    int r = waybill_strip(p, add_line, &j, e);
    json_end_list(&j);
    json_u64(&j, "pipes_and_sockets_left_out", w->left);
    write_bases(&j, w->bases_text);
    if (r == 0)
        r = policy_source(p, &j, "policy", e);
    json_begin_object(&j, "parts");
    for (int i = 0; i < PART_COUNT; i++) {
        char digest[SHA256_HEX + sizeof(DIGEST_PREFIX)];
        if (!w->part[i].there)
            continue;
        snprintf(digest, sizeof(digest), DIGEST_PREFIX "%s", w->part[i].digest);
        json_begin_object(&j, wall_part_names[i]);
        json_u64(&j, "entries", w->part[i].entries);
        json_u64(&j, "bytes", w->part[i].bytes);
        json_text(&j, "digest", digest);
        json_end_object(&j);
    }
    json_end_object(&j);
    json_end_object(&j);
    buf_add_text(out, "\n");
    return r == 0 && out->failed ? err_set(e, PALE_LIMIT, "what is to be said of the export is longer than %u bytes", WAYBILL_BYTES_MAX)
                                 : r;
}

/* --- reading --- */

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* A text that fits whole. */
static bool take_text(const struct jsonread *v, char *ret, size_t cap)
{
    return v->kind == JSONREAD_TEXT && v->len < cap && !memchr(v->at, '\\', v->len) && jsonread_text(v, ret, cap);
}

static bool take_digest(const struct jsonread *v, char ret[SHA256_HEX])
{
    char text[SHA256_HEX + sizeof(DIGEST_PREFIX)];
    size_t n = strlen(DIGEST_PREFIX);
    if (!take_text(v, text, sizeof(text)) || strncmp(text, DIGEST_PREFIX, n) != 0 || !is_hex(text + n, SHA256_HEX - 1))
        return false;
    memcpy(ret, text + n, SHA256_HEX);
    return true;
}

/* Members are read in the order in which they are written, and no others: so none is there twice, and none is missing. */
struct reader {
    const struct jsonread *object;
    size_t pos;
    bool good;
};

static bool is_named(const struct jsonread *key, const char *name)
{
    return key->len == strlen(name) && memcmp(key->at, name, key->len) == 0;
}

static struct jsonread next(struct reader *r, const char *name)
{
    struct jsonread key, v = {0};
    r->good = r->good && jsonread_next(r->object, &r->pos, &key, &v) && is_named(&key, name);
    return v;
}

static void need(struct reader *r, bool good)
{
    r->good = r->good && good;
}

static bool has_more(const struct reader *r)
{
    struct jsonread key, v;
    size_t pos = r->pos;
    return jsonread_next(r->object, &pos, &key, &v);
}

static bool read_part(const struct jsonread *v, struct waybill_part *ret)
{
    struct reader r = {.object = v, .good = v->kind == JSONREAD_OBJECT};
    struct jsonread m = next(&r, "entries");
    need(&r, r.good && jsonread_u64(&m, &ret->entries));
    m = next(&r, "bytes");
    need(&r, r.good && jsonread_u64(&m, &ret->bytes));
    m = next(&r, "digest");
    need(&r, r.good && take_digest(&m, ret->digest));
    ret->there = true;
    return r.good && !has_more(&r);
}

static bool read_parts(const struct jsonread *v, struct waybill *ret)
{
    struct jsonread key, part;
    int i = 0;
    bool good = v->kind == JSONREAD_OBJECT;
    for (size_t pos = 0; good && jsonread_next(v, &pos, &key, &part);) {
        while (i < PART_COUNT && !is_named(&key, wall_part_names[i]))
            i++;
        good = i < PART_COUNT && read_part(&part, &ret->part[i]);
        i++;
    }
    return good;
}

static bool read_texts(const struct jsonread *v)
{
    struct jsonread item;
    bool good = v->kind == JSONREAD_LIST;
    for (size_t pos = 0; good && jsonread_next(v, &pos, NULL, &item);)
        good = item.kind == JSONREAD_TEXT;
    return good;
}

/* Whose it is. */
static void read_source(struct reader *r, struct waybill *w)
{
    struct jsonread m = next(r, "box");
    need(r, r->good && take_text(&m, w->box, sizeof(w->box)) && place_check_name(w->box, NULL) == 0);
    m = next(r, "id");
    need(r, r->good && take_text(&m, w->id, sizeof(w->id)) && is_hex(w->id, BOX_ID_LEN));
    m = next(r, "snapshot");
    need(r, r->good && take_text(&m, w->snapshot, sizeof(w->snapshot)));
    m = next(r, "created_unix_ms");
    need(r, r->good && jsonread_u64(&m, &w->created_ms));
    m = next(r, "image");
    need(r, m.kind == JSONREAD_TEXT);
}

int waybill_parse(const char *text, size_t len, struct waybill *ret, struct pale_err *e)
{
    struct waybill w = {0};
    struct jsonread all, m;
    char format[sizeof(FORMAT) + 1];
    uint64_t version = 0;
    if (len > WAYBILL_BYTES_MAX || !jsonread_parse(text, len, &all) || all.kind != JSONREAD_OBJECT)
        return err_set(e, PALE_BAD_INPUT, "this is no export, or a damaged one: what it says of itself is no JSON object");
    struct reader r = {.object = &all, .good = true};
    m = next(&r, "format");
    need(&r, r.good && take_text(&m, format, sizeof(format)) && strcmp(format, FORMAT) == 0);
    m = next(&r, "version");
    need(&r, r.good && jsonread_u64(&m, &version));
    if (r.good && version != WAYBILL_VERSION)
        return err_set(e, PALE_UNSUPPORTED,
                       "the export is of version %llu, and this build reads %d; use the pale that made it, or a newer one",
                       (unsigned long long)version, WAYBILL_VERSION);
    read_source(&r, &w);
    w.left_out = next(&r, "left_out");
    need(&r, r.good && read_texts(&w.left_out));
    m = next(&r, "pipes_and_sockets_left_out");
    need(&r, r.good && jsonread_u64(&m, &w.left));
    w.bases = next(&r, "bases");
    need(&r, r.good && read_texts(&w.bases) && w.bases.len <= 2 * WAYBILL_BASES_MAX);
    w.policy = next(&r, "policy");
    need(&r, w.policy.kind == JSONREAD_OBJECT);
    m = next(&r, "parts");
    need(&r, r.good && read_parts(&m, &w));
    if (!r.good || has_more(&r))
        return err_set(e, PALE_BAD_INPUT, "what the export says of itself is not what an export says; it is damaged, or was changed");
    *ret = w;
    return 0;
}

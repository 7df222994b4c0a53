/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the small readers and writers of text in base/ and policy/. The first byte chooses. Each has a property that the
 * reader could not keep by luck: what is shown is inert, what is set reads back, what covers covers its own parts. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/path.h"
#include "base/quote.h"
#include "fresh.h"
#include "input.h"
#include "net/hostname.h"
#include "policy/domain.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "policy/field.h"
#include "policy/hostpath.h"
#include "policy/policy.h"
#include "policy/preset.h"

#define TEXT_MAX 2048
static char text[TEXT_MAX], second[TEXT_MAX];

static void try_number(struct input *in)
{
    uint64_t max = input_number(in, 8), v = 0;
    int64_t i = 0;
    char shown[64], again[24];
    size_t n = input_text(in, text, sizeof(text));
    if (number_u64(text, max, &v)) {
        snprintf(again, sizeof(again), "%llu", (unsigned long long)v);
        assert(v <= max && strcmp(again, text + (n - strlen(again))) == 0 && strspn(text, "0") >= n - strlen(again));
    }
    if (number_i64(text, &i) && text[0] == '-')
        assert(i < 0);
    if (number_size(text, &v))
        number_show_bytes(v, shown, sizeof(shown));
    if (number_duration(text, &v))
        number_show_ms(v, shown, sizeof(shown));
    if (number_milli(text, &v) && number_micro(text, &max))
        assert(max / 1000 == v && max % 1000 == 0);
}

/* Every code point of the text is one that shows itself. */
UNSEEN static void check_inert(const struct buf *b)
{
    unsigned point = 0;
    for (size_t i = 0, len; i < b->len; i += len) {
        len = quote_utf8(b->data + i, b->len - i, &point);
        assert(len > 0 && !quote_is_deceptive(point));
    }
}

static int hex(char c)
{
    assert((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

UNSEEN static size_t put_point(unsigned p, uint8_t *out)
{
    if (p < 0x80)
        return out[0] = (uint8_t)p, 1;
    size_t len = p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; p >>= 6)
        out[i] = (uint8_t)(0x80 | (p & 0x3f));
    out[0] = (uint8_t)((len == 2 ? 0xc0 : len == 3 ? 0xe0 : 0xf0) | p);
    return len;
}

/* Reads an escape at s into out; returns how much of s it took. Control characters and bytes that are no UTF-8 both come as \x. */
UNSEEN static size_t unescape(const char *s, const uint8_t *original, uint8_t *out, size_t *ret_n)
{
    static const char from[] = "ntr\\", to[] = "\n\t\r\\";
    const char *hit = strchr(from, s[1]);
    unsigned p = 0;
    if (s[1] && hit)
        return out[0] = (uint8_t)to[hit - from], *ret_n = 1, 2;
    if (s[1] == 'x') {
        p = (unsigned)(hex(s[2]) << 4 | hex(s[3]));
        *ret_n = p < 0x80 || original[0] == p ? (out[0] = (uint8_t)p, 1) : put_point(p, out);
        return 4;
    }
    assert(s[1] == 'u' && s[2] == '{');
    size_t i = 3;
    for (; s[i] != '}'; i++)
        p = p << 4 | (unsigned)hex(s[i]);
    *ret_n = put_point(p, out);
    return i + 1;
}

static void try_quote(struct input *in)
{
    size_t most = input_number(in, 2) % 4096, n;
    const uint8_t *p = input_bytes(in, TEXT_MAX, &n);
    char small[40];
    own_buf b = {0}, twice = {0};
    buf_init(&b, 16 * TEXT_MAX);
    buf_init(&twice, 16 * TEXT_MAX);
    quote_text(&b, p, n, most);
    check_inert(&b);
    assert(!b.failed && b.len <= most + 3);
    assert(strlen(quote_into(small, sizeof(small), p, n)) < sizeof(small));
    quote_again(&twice, b.data, b.len, SIZE_MAX / 2);
    assert(twice.len == b.len && (b.len == 0 || memcmp(twice.data, b.data, b.len) == 0));
    if (most < 4 * n * 3)
        return;
    const char *s = buf_text(&b);
    size_t at = 0;
    for (size_t i = 0; i < b.len;) {
        uint8_t out[4];
        size_t len = 1;
        out[0] = (uint8_t)s[i];
        i += s[i] == '\\' ? unescape(s + i, p + at, out, &len) : 1;
        assert(at + len <= n && memcmp(out, p + at, len) == 0);
        at += len;
    }
    assert(at == n);
}

/* A JSON text by a reader of its own: one value, strings without raw control bytes. */
UNSEEN static const char *skip_value(const char *s, int depth)
{
    assert(depth < JSON_DEPTH + 1);
    if (*s == '{' || *s == '[') {
        char shut = *s == '{' ? '}' : ']';
        for (s++; *s != shut;) {
            if (shut == '}') {
                assert(*s == '"');
                s = skip_value(s, depth + 1);
                assert(*s++ == ':');
            }
            s = skip_value(s, depth + 1);
            assert(*s == shut || (*s == ',' && s[1] != shut));
            s += *s == ',';
        }
        return s + 1;
    }
    if (*s != '"') {
        size_t n = strspn(s, "-.0123456789truefalsn");
        assert(n > 0);
        return s + n;
    }
    for (s++; *s != '"'; s++) {
        assert((unsigned char)*s >= 0x20);
        if (*s == '\\')
            assert(strchr("\"\\ntru", *++s) && *s);
    }
    return s + 1;
}

static void write_item(struct json *j, struct input *in, const char *key, unsigned op)
{
    size_t n;
    const uint8_t *p;
    switch (op % 6) {
    case 0:
        p = input_bytes(in, input_byte(in), &n);
        json_bytes(j, key, p, n);
        break;
    case 1:
        json_u64(j, key, input_number(in, 8));
        break;
    case 2:
        json_i64(j, key, (int64_t)input_number(in, 8));
        break;
    case 3:
        json_fixed(j, key, input_number(in, 8), op & 8 ? 3 : 6);
        break;
    case 4:
        json_bool(j, key, op & 8);
        break;
    default:
        json_put_null(j, key);
    }
}

static void try_json(struct input *in)
{
    own_buf b = {0};
    struct json j;
    bool list[JSON_DEPTH] = {false};
    char key[8];
    buf_init(&b, 64 * TEXT_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    while (in->left) {
        unsigned op = input_byte(in);
        const char *k = list[j.depth] ? NULL : key;
        if (k)
            input_text(in, key, sizeof(key));
        if ((op & 0x60) == 0x60 && j.depth > 1) {
            (list[j.depth] ? json_end_list : json_end_object)(&j);
        } else if ((op & 0x60) == 0x40 && j.depth + 1 < JSON_DEPTH) {
            (op & 1 ? json_begin_list : json_begin_object)(&j, k);
            list[j.depth] = op & 1;
        } else {
            write_item(&j, in, k, op);
        }
    }
    while (j.depth > 0)
        (list[j.depth] ? json_end_list : json_end_object)(&j);
    if (b.failed)
        return;
    check_inert(&b);
    const char *s = buf_text(&b);
    assert(*skip_value(s, 0) == 0);
}

static void try_path(struct input *in)
{
    struct pale_err e = {0};
    char joined[PATH_BYTES_MAX];
    size_t n = input_text(in, text, sizeof(text));
    input_text(in, second, sizeof(second));
    if (path_is_normal(text)) {
        assert(text[0] == '/' && !strstr(text, "//") && !strstr(text, "/../") && !strstr(text, "/./") && (n == 1 || text[n - 1] != '/'));
        assert(path_is_within(text, text) && path_is_within(text, "/"));
        if (path_is_normal(second) && path_is_within(text, second) && path_is_within(second, text))
            assert(strcmp(text, second) == 0);
        if (second[0] && second[0] != '/' && path_join(joined, sizeof(joined), text, second) && path_is_normal(joined))
            assert(path_is_within(joined, text));
    }
    if (path_is_box_name(text))
        assert(n <= BOX_NAME_MAX && !strchr(text, '/') && text[0] != '.' && text[0] != '-');
    for (unsigned use = HOSTPATH_READ; use <= HOSTPATH_ROOT; use <<= 1) {
        if (hostpath_check(text, (enum hostpath_use)use, &e) < 0)
            assert(e.text[0]);
        else
            assert(path_is_normal(text) && hostpath_covers(text, text));
    }
}

static void try_domain(struct input *in)
{
    char a[DOMAIN_NAME_MAX + 1], b[DOMAIN_NAME_MAX + 1], again[DOMAIN_NAME_MAX + 1];
    struct pale_err e = {0};
    bool pattern = input_byte(in) & 1;
    size_t n = input_text(in, text, sizeof(text)), m = input_text(in, second, sizeof(second));
    if (domain_parse(text, n, pattern, a, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    assert(strlen(a) == n && (pattern || !strchr(a, '*')) && !strstr(a, "..") && strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789-.*") == n);
    assert(domain_parse(a, n, pattern, again, &e) == 0 && strcmp(a, again) == 0 && hostname_covers(a, a) && hostname_covers("*", a));
    if (domain_parse(second, m, true, b, &e) == 0 && hostname_covers(a, b) && hostname_covers(b, a))
        assert(strcmp(a, b) == 0);
}

/* Whatever a key takes from a flag stands in the policy, and the policy reads back. */
static void try_set(struct input *in)
{
    own_policy p = {0}, q = {0};
    own_buf b = {0}, before = {0};
    struct pale_err e = {0};
    fresh_policy(&p);
    buf_init(&b, 4 * POLICY_TEXT_MAX);
    buf_init(&before, 4 * POLICY_TEXT_MAX);
    for (int i = 0; i < 4 && in->left; i++) {
        size_t count = 0, at = input_byte(in);
        while (field_at(count))
            count++;
        const struct field *f = field_at(at % (count + 1));
        if (!f)
            input_text(in, second, sizeof(second));
        input_text(in, text, sizeof(text));
        bool look = at & 0x80;
        buf_clear(&before);
        buf_clear(&b);
        if (look)
            policy_write(&p, &before);
        int r = policy_set(&p, f ? f->key : second, text, &e);
        assert(r == 0 || e.text[0]);
        if (r < 0 && look) {
            policy_write(&p, &b);
            assert(b.len == before.len && memcmp(b.data, before.data, b.len) == 0);
        }
    }
    buf_clear(&b);
    policy_write(&p, &b);
    assert(!b.failed && policy_parse(buf_text(&b), b.len, &q, &e) == 0);
    buf_clear(&before);
    policy_write(&q, &before);
    assert(b.len == before.len && memcmp(b.data, before.data, b.len) == 0);
}

static void try_ask(struct input *in)
{
    static const char *const kinds[] = {"read", "write", "reach", "env"};
    own_policy p = {0};
    struct pale_err e = {0};
    struct policy_answer a;
    unsigned kind = input_byte(in);
    fresh_policy(&p);
    for (int i = 0; i < 3; i++) {
        static const char *const keys[][3] = {{"read", "volumes", "project.path"},
                                              {"write", "volumes", "project.mode"},
                                              {"network", "network.egress", "network.egress"},
                                              {"env.pass", "env.set", "env.pass"}};
        input_text(in, text, sizeof(text));
        (void)!policy_set(&p, keys[kind % 4][i], text, &e);
    }
    input_text(in, text, sizeof(text));
    if (policy_ask(&p, kinds[kind % 4], text, &a, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    assert(a.reason[0] && a.allowed == (a.verdict == VERDICT_ALLOW));
    if (kind % 4 == 3 && policy_passes_env(&p, text))
        assert(a.allowed);
}

static void try_nearest(struct input *in)
{
    struct nearest n;
    char word[32];
    input_text(in, text, 200);
    input_text(in, word, sizeof(word));
    nearest_init(&n, text);
    nearest_offer(&n, word);
    size_t there = nearest_distance(text, word);
    assert(there == nearest_distance(word, text) && (there == 0) == (strncmp(text, word, 64) == 0));
    if (n.best)
        assert(n.best == word && n.distance == there);
}

/* Whatever a preset adds stands in the policy, which reads back; applied again it changes nothing. */
static void try_preset(struct input *in)
{
    own_policy p = {0}, q = {0};
    own_buf once = {0}, twice = {0};
    struct pale_err e = {0};
    fresh_policy(&p);
    input_text(in, text, sizeof(text));
    if (preset_apply(&p, "mine", text, strlen(text), &e) < 0) {
        assert(e.text[0]);
        return;
    }
    buf_init(&once, 4 * POLICY_TEXT_MAX);
    buf_init(&twice, 4 * POLICY_TEXT_MAX);
    policy_write(&p, &once);
    assert(!preset_pending(&p) && preset_apply(&p, "mine", text, strlen(text), &e) == 0);
    policy_write(&p, &twice);
    assert(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    assert(policy_parse(buf_text(&once), once.len, &q, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(struct input *) = {try_number, try_quote, try_json,    try_path,  try_domain,
                                                    try_set,    try_ask,   try_nearest, try_preset};
    struct input in = {data, size};
    tries[input_byte(&in) % (sizeof(tries) / sizeof(tries[0]))](&in);
    return 0;
}

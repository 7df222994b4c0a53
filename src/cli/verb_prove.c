/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb prove: a proof on demand, and the checking of a signed receipt. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/sealer.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/lookup.h"
#include "box/reach.h"
#include "cli/verbs.h"
#include "wire/message.h"

#define RECEIPT_HEAD "{\"receipt\":"
#define RECEIPT_TAIL ",\"key\":\""
#define SIGNATURE_KEY "\",\"signature\":\""
#define RECEIPT_MAX (1u << 20)

static const struct option prove_options[] = {
    {"full", 0, NULL, "try everything, not only the short list of every start", NULL},
    {"verify", 0, "FILE", "check the signature of a receipt that --json printed", NULL},
    {"key", 0, "HEX", "whose signature counts (this host's: host.pub in the state folder)", NULL},
    {0},
};

/* A receipt of another host's box: our key says nothing about it, and that host's is there. */
static int print_unsigned(const char *text, size_t n, struct pale_err *e)
{
    own_buf b = {0};
    struct json j;
    struct jsonread v;
    if (!jsonread_parse(text, n, &v))
        return err_set(e, PALE_PROTOCOL, "the receipt cannot be read");
    buf_init(&b, RECEIPT_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    far_copy(&j, "receipt", &v);
    json_put_null(&j, "key");
    json_put_null(&j, "signature");
    json_end_object(&j);
    cli_note("note: not signed, since the key is on the box's own host; `pale prove --json` there signs");
    return cli_json(&b) ? err_os(e, "print the receipt") : 0;
}

/* The receipt's own text is signed; around it stand key and signature. */
static int print_sealed(const char *text, size_t n, struct pale_err *e)
{
    struct sealer s;
    struct sealed sealed;
    own_buf b = {0};
    struct json j;
    sealer_init(&s);
    int r = sealer_start(&s, e);
    if (r == 0)
        r = sealer_sign(&s, text, n, &sealed, e);
    sealer_done(&s);
    if (r < 0)
        return r;
    buf_init(&b, RECEIPT_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_raw(&j, "receipt", text, n);
    json_text(&j, "key", sealed.key);
    json_text(&j, "signature", sealed.signature);
    json_end_object(&j);
    return cli_json(&b) ? err_os(e, "print the receipt") : 0;
}

static void print_lines(const char *text)
{
    struct table t;
    static const char *const heads[] = {"ATTEMPT", "EXPECTED", "OBSERVED", ""};
    size_t count = 0, bad = 0;
    table_init(&t, heads, 4);
    for (const char *at = text; *at && *at != '\n'; count++) {
        for (int i = 0; i < 4; i++) {
            char cell[80];
            size_t n = strcspn(at, "\t\n");
            snprintf(cell, sizeof(cell), "%.*s", (int)n, at);
            table_cell(&t, cell);
            bad += i == 3 && strcmp(cell, "ok") != 0;
            at += n;
            at += *at != 0;
        }
    }
    table_print(&t);
    printf("%zu attempts, %zu as they must be, %zu not\n", count, count - bad, bad);
}

static int prove(struct args *a)
{
    struct pale_err e;
    static struct door d;
    struct frame f;
    own_reach r = {.fd = -1};
    const uint8_t full = args_has(a, "full");
    reach_init(&r);
    if (door_find(&d, a, a->word[0], &e) < 0 || door_reach(&d, &r, true, &e) < 0 || reach_send(&r, ASK_PROVE, &full, 1, &e) < 0 ||
        reach_receive(&r, &f, &e) < 0)
        return cli_fail(a, &e);
    own_buf copy = {0};
    buf_init(&copy, RECEIPT_MAX);
    buf_add(&copy, f.data, f.len);
    const char *text = buf_text(&copy), *json = strstr(text, "\n\n");
    if (f.type != TELL_RECEIPT || !json) {
        err_set(&e, PALE_PROTOCOL, "the keeper does not speak our language; was pale upgraded? `pale stop %s` and try again", a->word[0]);
        return cli_fail(a, &e);
    }
    json += 2;
    if (!a->json)
        print_lines(text);
    else if ((d.is_far ? print_unsigned : print_sealed)(json, strlen(json), &e) < 0)
        return cli_fail(a, &e);
    return strstr(json, "\"good\":true,\"attempts\"") ? 0 : 1;
}

/* Finds the three parts of what print_sealed wrote, and nothing else: what a reader of JSON would take from the file is what was
 * signed, or the file is refused. */
static bool take_apart(const char *text, size_t len, size_t *ret_at, size_t *ret_len, struct sealed *ret)
{
    const char *last = NULL;
    if (strlen(text) != len || strncmp(text, RECEIPT_HEAD, strlen(RECEIPT_HEAD)) != 0)
        return false;
    for (const char *at = text; (at = strstr(at, RECEIPT_TAIL)); at++)
        last = at;
    if (!last)
        return false;
    *ret_at = strlen(RECEIPT_HEAD);
    *ret_len = (size_t)(last - text) - *ret_at;
    const char *key = last + strlen(RECEIPT_TAIL), *middle = key + SEALER_KEY_HEX - 1;
    size_t rest = SEALER_KEY_HEX - 1 + strlen(SIGNATURE_KEY) + SEALER_SIGNATURE_HEX - 1;
    if (strlen(key) < rest || strncmp(middle, SIGNATURE_KEY, strlen(SIGNATURE_KEY)) != 0 ||
        (strcmp(key + rest, "\"}") != 0 && strcmp(key + rest, "\"}\n") != 0))
        return false;
    snprintf(ret->key, sizeof(ret->key), "%s", key);
    snprintf(ret->signature, sizeof(ret->signature), "%s", middle + strlen(SIGNATURE_KEY));
    return true;
}

/* Whose signature counts: the key that was named, or this host's. Anybody can make a key. */
static int known_key(const struct args *a, char ret[SEALER_KEY_HEX], struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *given = args_get(a, "key");
    if (given) {
        snprintf(ret, SEALER_KEY_HEX, "%s", given);
        return strlen(given) == SEALER_KEY_HEX - 1 ? 0 : err_set(e, PALE_BAD_INPUT, "--key %s: a key is 64 hex digits", given);
    }
    int r = place_state_dir(path, sizeof(path) - 16, e);
    if (r < 0)
        return r;
    memcpy(path + strlen(path), "/host.pub", 10);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret, SEALER_KEY_HEX - 1);
    if (n != SEALER_KEY_HEX - 1)
        return err_set(e, PALE_NOT_FOUND, "this host has no key yet; --key HEX names the one to trust");
    ret[n] = 0;
    return 0;
}

static int verify(struct args *a, const char *path)
{
    struct pale_err e = {0};
    own_buf b = {0};
    struct sealed sealed;
    size_t at = 0, n = 0;
    bool good = false;
    char wanted[SEALER_KEY_HEX] = "";
    buf_init(&b, RECEIPT_MAX);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err_os(&e, "open %s", path);
    else if (fd_read_all(fd, &b, &e) == 0) {
        if (!take_apart(buf_text(&b), b.len, &at, &n, &sealed))
            err_set(&e, PALE_BAD_INPUT, "%s is no receipt of `pale prove --json`", path);
        else if (known_key(a, wanted, &e) == 0 && sealer_verify(&sealed, b.data + at, n, &good, &e) == 0) {
            bool known = strcmp(wanted, sealed.key) == 0;
            if (a->json)
                printf("{\"good\":%s,\"key\":\"%s\",\"known\":%s}\n", good && known ? "true" : "false", sealed.key,
                       known ? "true" : "false");
            else
                printf("%s: signature by key %s%s\n", good && known ? "good" : "BAD", sealed.key,
                       known ? "" : ", which is not this host's; --key HEX names the one to trust");
            return good && known ? 0 : 1;
        }
    }
    return cli_fail(a, &e);
}

static int run_prove(struct args *a)
{
    struct pale_err e;
    const char *path = args_get(a, "verify");
    if (path && a->count == 0)
        return verify(a, path);
    if (a->count == 1 && !path)
        return prove(a);
    err_set(&e, PALE_BAD_INPUT, "name a box to prove, or a receipt with --verify: pale prove %s", a->verb->usage);
    return cli_fail(a, &e);
}

static const struct option *const tables[] = {prove_options, scope_options, common_options, NULL};

const struct verb verb_prove = {
    "prove",
    "Trust",
    "try from inside what the box must refuse",
    "BOX [--full] | --verify FILE [--key HEX]",
    "Has a prober, confined as every command is, try from inside what the policy forbids, and compares. Every box\n"
    "is proved so before its first command; this does it again. A box that does not hold what it promises is\n"
    "destroyed, and the exit status is 1. --json prints the receipt, signed with this host's key.",
    tables,
    0,
    1,
    -1,
    run_prove};

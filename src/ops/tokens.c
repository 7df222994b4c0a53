/* SPDX-License-Identifier: Apache-2.0 */
/* Owns tokens: making, listing and revoking them, and who comes with one. */
#include "ops/tokens.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/path.h"
#include "ops/ops.h"
#include "ops/talk.h"

#define LIST_BYTES_MAX (8u << 20)
#define TOUCH_MS 60000
#define TTL_DEFAULT_MS (7ull * 86400000)
#define TTL_MAX_MS (365ull * 86400000)

static const char *const scope_names[] = {
    [REGISTRY_SCOPE_BOX] = "box", [REGISTRY_SCOPE_TENANT] = "tenant", [REGISTRY_SCOPE_OPERATOR] = "operator"};

const char *const op_right_names[RIGHT_COUNT] = {
    [RIGHT_NONE] = "none",
    [RIGHT_BOX_READ] = "box.read",
    [RIGHT_BOX_MAKE] = "box.make",
    [RIGHT_BOX_END] = "box.end",
    [RIGHT_BOX_REMOVE] = "box.remove",
    [RIGHT_EXEC] = "exec",
    [RIGHT_JOB_READ] = "job.read",
    [RIGHT_FILE_READ] = "file.read",
    [RIGHT_FILE_WRITE] = "file.write",
    [RIGHT_POLICY_READ] = "policy.read",
    [RIGHT_POLICY_NARROW] = "policy.narrow",
    [RIGHT_POLICY_WIDEN] = "policy.widen",
    [RIGHT_AUDIT] = "audit",
    [RIGHT_PROVE] = "prove",
    [RIGHT_EVENTS] = "events",
    [RIGHT_METRICS] = "metrics",
    [RIGHT_DOCTOR] = "doctor",
    [RIGHT_TOKENS] = "tokens",
    [RIGHT_WIRE] = "wire",
    [RIGHT_SNAPSHOT] = "snapshot",
    [RIGHT_GC] = "gc",
    [RIGHT_REVIEW] = "review",
    [RIGHT_IMAGE_READ] = "image.read",
    [RIGHT_IMAGES] = "images",
};

static void hash_of(const char *text, size_t n, uint8_t ret[SHA256_BYTES])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, text, n);
    sha256_final(&h, ret);
}

int token_caller(struct registry *r, const char *text, size_t n, struct caller *ret, struct pale_err *e)
{
    uint8_t hash[SHA256_BYTES];
    own_mem struct registry_token *t = NULL;
    int64_t now = (int64_t)clock_unix_ms();
    hash_of(text, n, hash);
    int res = registry_token_find_hash(r, hash, &t, e);
    if (res < 0 && res != -PALE_NOT_FOUND)
        return res;
    if (res == 0)
        snprintf(ret->token, sizeof(ret->token), "%s", t->id);
    if (res < 0 || !registry_token_is_good(t, now))
        return err_set(e, PALE_DENIED, "this token is unknown, expired or revoked; `pale token create` makes one");
    *ret = (struct caller){.scope = t->scope == REGISTRY_SCOPE_OPERATOR ? CALLER_OPERATOR
                                    : t->scope == REGISTRY_SCOPE_TENANT ? CALLER_TENANT
                                                                        : CALLER_BOX,
                           .rights = t->rights};
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", t->tenant);
    snprintf(ret->box, sizeof(ret->box), "%s", t->box);
    ret->born = t->born;
    ret->expires_unix_ms = t->expires_unix_ms;
    snprintf(ret->token, sizeof(ret->token), "%s", t->id);
    if (now - t->last_used_unix_ms > TOUCH_MS)
        (void)!registry_token_touch(r, t->id, now, NULL); /* a matter of record, not of right */
    return 0;
}

/* --- making --- */

static void hex(const uint8_t *p, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", p[i]);
}

static int read_rights(const struct call *c, enum registry_scope scope, uint64_t *ret, struct pale_err *e)
{
    const struct value *v = call_value(c, "rights");
    size_t i;
    json_t *item;
    uint64_t most = 0;
    for (const struct op *o = op_table; o->name; o++)
        if (scope == REGISTRY_SCOPE_OPERATOR || !o->operators_only)
            most |= 1ull << o->right;
    if (scope == REGISTRY_SCOPE_BOX)
        most &= ~(1ull << RIGHT_BOX_MAKE | 1ull << RIGHT_BOX_REMOVE | 1ull << RIGHT_WIRE | 1ull << RIGHT_REVIEW | 1ull << RIGHT_IMAGE_READ);
    most &= c->who.rights | 1ull << RIGHT_NONE; /* nobody gives what he does not have */
    *ret = most;
    if (!v->given)
        return 0;
    *ret = 0;
    json_array_foreach(v->json, i, item)
    {
        unsigned right = 1;
        while (right < RIGHT_COUNT && strcmp(op_right_names[right], json_string_value(item)) != 0)
            right++;
        if (right == RIGHT_COUNT)
            return err_set(e, PALE_BAD_INPUT, "rights: there is no right of that name; GET /openapi.json lists them");
        if (!(most >> right & 1))
            return err_set(e, PALE_BAD_INPUT, "rights: a token of this scope, or one that you make, cannot have %s", op_right_names[right]);
        *ret |= 1ull << right;
    }
    return 0;
}

static int read_scope(struct call *c, struct registry_token *t, struct pale_err *e)
{
    const char *scope = call_text(c, "scope", "operator"), *tenant = call_text(c, "tenant", ""), *box = call_text(c, "box", "");
    for (t->scope = REGISTRY_SCOPE_BOX; t->scope <= REGISTRY_SCOPE_OPERATOR; t->scope++)
        if (strcmp(scope, scope_names[t->scope]) == 0)
            break;
    t->tenant = tenant;
    if (t->scope > REGISTRY_SCOPE_OPERATOR)
        return err_set(e, PALE_BAD_INPUT, "scope: operator, tenant or box");
    if (t->scope == REGISTRY_SCOPE_TENANT && (!path_is_box_name(tenant) || box[0]))
        return err_set(e, PALE_BAD_INPUT, "a tenant's token needs tenant (a-z, 0-9 and '-'), and no box");
    if (t->scope == REGISTRY_SCOPE_OPERATOR && (tenant[0] || box[0]))
        return err_set(e, PALE_BAD_INPUT, "an operator's token has neither tenant nor box");
    if (t->scope != REGISTRY_SCOPE_BOX)
        return 0;
    const struct core_box *b = core_find(c->world->fleet.core, tenant, box);
    if (!b)
        b = core_by_id(c->world->fleet.core, box);
    if (!b || !b->id[0])
        return err_set(e, PALE_NOT_FOUND, "box: there is no such box");
    snprintf(t->box, sizeof(t->box), "%s", b->id);
    t->born = b->born;
    t->tenant = b->tenant;
    return 0;
}

static void show_token(struct json *j, const struct registry_token *t, const char *text)
{
    json_begin_object(j, NULL);
    json_text(j, "id", t->id);
    json_text(j, "name", t->name);
    json_text(j, "scope", scope_names[t->scope]);
    if (t->tenant[0])
        json_text(j, "tenant", t->tenant);
    if (t->box[0])
        json_text(j, "box", t->box);
    json_begin_list(j, "rights");
    for (unsigned i = 1; i < RIGHT_COUNT; i++)
        if (t->rights >> i & 1)
            json_text(j, NULL, op_right_names[i]);
    json_end_list(j);
    json_i64(j, "made", t->made_unix_ms / 1000);
    if (t->expires_unix_ms)
        json_i64(j, "expires", t->expires_unix_ms / 1000);
    if (t->revoked_unix_ms)
        json_i64(j, "revoked", t->revoked_unix_ms / 1000);
    if (t->last_used_unix_ms)
        json_i64(j, "last_used", t->last_used_unix_ms / 1000);
    if (text)
        json_text(j, "token", text);
    json_end_object(j);
}

void op_token_create(struct call *c)
{
    struct pale_err e;
    struct registry_token t = {.name = call_text(c, "name", ""), .made_unix_ms = (int64_t)clock_unix_ms()};
    uint8_t random[40], hash[SHA256_BYTES];
    char text[TOKEN_TEXT_LEN + 1] = TOKEN_PREFIX;
    own_buf b = {0};
    struct json j;
    uint64_t ttl = call_number(c, "ttl", TTL_DEFAULT_MS);
    if (ttl == 0 || ttl > TTL_MAX_MS)
        return call_refuse(c, PALE_BAD_INPUT, "ttl: a token is good for up to 365d, and for some time");
    if (read_scope(c, &t, &e) < 0 || read_rights(c, t.scope, &t.rights, &e) < 0)
        return call_fail(c, &e);
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return call_refuse(c, PALE_OS, "the kernel gives no random bytes");
    hex(random, 32, text + sizeof(TOKEN_PREFIX) - 1);
    hex(random + 32, 8, t.id);
    t.expires_unix_ms = t.made_unix_ms + (int64_t)ttl;
    /* Nor does anybody give for longer than he has himself. */
    if (c->who.expires_unix_ms && t.expires_unix_ms > c->who.expires_unix_ms)
        t.expires_unix_ms = c->who.expires_unix_ms;
    hash_of(text, strlen(text), hash);
    if (registry_token_add(c->world->registry, &t, hash, &e) < 0)
        return call_fail(c, &e);
    buf_init(&b, 8192);
    json_start(&j, &b);
    show_token(&j, &t, text);
    call_json(c, &b);
}

/* --- the others --- */

static int list_one(const struct registry_token *t, void *arg, struct pale_err *e)
{
    (void)e;
    show_token(arg, t, NULL);
    return 0;
}

void op_token_list(struct call *c)
{
    struct pale_err e;
    own_buf b = {0};
    struct json j;
    buf_init(&b, LIST_BYTES_MAX);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_begin_list(&j, "items");
    if (registry_token_each(c->world->registry, list_one, &j, &e) < 0)
        return call_fail(c, &e);
    json_end_list(&j);
    json_end_object(&j);
    call_json(c, &b);
}

void op_token_revoke(struct call *c)
{
    struct pale_err e;
    if (registry_token_revoke(c->world->registry, call_param(c, "token"), (int64_t)clock_unix_ms(), &e) < 0)
        return call_fail(c, &e);
    /* What it has open ends with it. */
    c->world->cut_token(c->world, call_param(c, "token"), c);
    call_nothing(c);
}

void op_token_self(struct call *c)
{
    struct pale_err e;
    own_mem struct registry_token *t = NULL;
    own_buf b = {0};
    struct json j;
    struct registry_token none = {
        .id = "", .name = "the user of the socket", .scope = REGISTRY_SCOPE_OPERATOR, .tenant = "", .rights = ~0ull};
    if (c->who.token[0] && registry_token_find(c->world->registry, c->who.token, &t, &e) < 0)
        return call_fail(c, &e);
    buf_init(&b, 8192);
    json_start(&j, &b);
    show_token(&j, t ? t : &none, NULL);
    call_json(c, &b);
}

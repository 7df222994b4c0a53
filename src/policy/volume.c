/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the volumes of a policy: HOST:TARGET[:ro|rw], kept in order of their targets. */
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "policy/field.h"
#include "policy/hostpath.h"

static size_t volume_count(const struct field *f, const struct policy *p)
{
    (void)f;
    return p->volume_count;
}

static void volume_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_volume *v = &p->volumes[i];
    (void)f;
    buf_add_text(out, v->host);
    buf_add_text(out, ":");
    buf_add_text(out, v->target);
    buf_add_text(out, v->writable ? ":rw" : ":ro");
}

static void volume_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_volume *v = &p->volumes[i];
    (void)f;
    quote_text(out, v->host, strlen(v->host), 200);
    buf_add_text(out, ":");
    quote_text(out, v->target, strlen(v->target), 200);
    buf_add_text(out, v->writable ? ":rw" : ":ro");
}

static int order(const struct policy_volume *a, const struct policy_volume *b)
{
    int r = strcmp(a->target, b->target);
    if (r == 0)
        r = strcmp(a->host, b->host);
    return r ? r : a->writable - b->writable;
}

static void volume_free(struct policy_volume *v)
{
    free(v->host);
    free(v->target);
    *v = (struct policy_volume){0};
}

static int parse(const char *value, struct policy_volume *ret, struct pale_err *e)
{
    CLEANUP(volume_free) struct policy_volume v = {.writable = true};
    char shown[200];
    size_t host = strcspn(value, ":");
    const char *rest = value + host + (value[host] == ':');
    size_t target = strcspn(rest, ":");
    const char *mode = rest[target] ? rest + target : ":rw";
    quote_into(shown, sizeof(shown), value, strlen(value));
    if (host == 0 || target == 0 || (strcmp(mode, ":rw") != 0 && strcmp(mode, ":ro") != 0))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is not HOST:TARGET, HOST:TARGET:ro or HOST:TARGET:rw", shown);
    v.writable = strcmp(mode, ":rw") == 0;
    v.host = strndup(value, host);
    v.target = strndup(rest, target);
    if (!v.host || !v.target)
        return err_nomem(e);
    int r = hostpath_check(v.host, v.writable ? HOSTPATH_SOURCE_RW : HOSTPATH_SOURCE_RO, e);
    if (r == 0)
        r = hostpath_check(v.target, HOSTPATH_TARGET, e);
    if (r < 0)
        return r;
    *ret = v;
    v = (struct policy_volume){0};
    return 0;
}

static int volume_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    CLEANUP(volume_free) struct policy_volume v = {0};
    (void)f;
    int r = parse(value, &v, e);
    if (r < 0)
        return r;
    size_t at = 0;
    while (at < p->volume_count && order(&p->volumes[at], &v) < 0)
        at++;
    if (at < p->volume_count && order(&p->volumes[at], &v) == 0)
        return 0;
    if (p->volume_count >= POLICY_LIST_MAX)
        return err_set(e, PALE_LIMIT, "there are more than %d; name a folder that holds several", POLICY_LIST_MAX);
    struct policy_volume *grown = realloc(p->volumes, (p->volume_count + 1) * sizeof(*grown));
    if (!grown)
        return err_nomem(e);
    p->volumes = grown;
    memmove(grown + at + 1, grown + at, (p->volume_count - at) * sizeof(*grown));
    grown[at] = v;
    p->volume_count++;
    v = (struct policy_volume){0};
    return 0;
}

static void volume_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const struct policy_volume *v = &p->volumes[i];
    (void)f;
    json_begin_object(j, key);
    json_text(j, "host", v->host);
    json_text(j, "target", v->target);
    json_text(j, "mode", v->writable ? "rw" : "ro");
    json_end_object(j);
}

static void volume_done(const struct field *f, struct policy *p)
{
    (void)f;
    for (size_t i = 0; i < p->volume_count; i++)
        volume_free(&p->volumes[i]);
    free(p->volumes);
}

const struct field_kind volume_kind = {.shape = SHAPE_LIST,
                                       .count = volume_count,
                                       .text = volume_text,
                                       .show = volume_show,
                                       .set = volume_set,
                                       .weight = field_weight_wider,
                                       .json = volume_json,
                                       .done = volume_done};

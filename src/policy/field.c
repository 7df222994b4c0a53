/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of policy keys, and what is the same for all of them: making, freeing and setting. */
#include "policy/field.h"

#include <assert.h>
#include <string.h>

#include "base/nearest.h"
#include "base/quote.h"
#include "policy/guard.h"
#include "policy/hostpath.h"
#include "policy/strlist.h"

#define BIT(v) (1u << (v))

static const char *const tier_names[] = {
    [TIER_AUTO] = "auto", [TIER_NATIVE] = "native", [TIER_GVISOR] = "gvisor", [TIER_MICROVM] = "microvm"};
static_assert(sizeof(tier_names) / sizeof(tier_names[0]) == TIER_COUNT, "a name for every tier");

/* A stronger wall is narrower. auto is never weaker than native, and may be gvisor. */
static const unsigned tier_within[TIER_COUNT] = {
    [TIER_AUTO] = BIT(TIER_AUTO) | BIT(TIER_GVISOR) | BIT(TIER_MICROVM),
    [TIER_NATIVE] = BIT(TIER_AUTO) | BIT(TIER_NATIVE) | BIT(TIER_GVISOR) | BIT(TIER_MICROVM),
    [TIER_GVISOR] = BIT(TIER_GVISOR) | BIT(TIER_MICROVM),
    [TIER_MICROVM] = BIT(TIER_MICROVM),
};
static const struct choice_row tier_row = {tier_names, TIER_COUNT, tier_within, {{"seccomp", TIER_NATIVE}, {"firecracker", TIER_MICROVM}}};

static const char *const project_names[] = {
    [PROJECT_NONE] = "none", [PROJECT_RO] = "ro", [PROJECT_REVIEW] = "review", [PROJECT_LIVE] = "live"};
static_assert(sizeof(project_names) / sizeof(project_names[0]) == PROJECT_COUNT, "a name for every project mode");
static const struct choice_row project_row = {project_names, PROJECT_COUNT, NULL, {{NULL, 0}}};

static const char *const network_names[] = {
    [NETWORK_NONE] = "none", [NETWORK_FILTERED] = "filtered", [NETWORK_OPEN] = "open", [NETWORK_HOST] = "host"};
static_assert(sizeof(network_names) / sizeof(network_names[0]) == NETWORK_COUNT, "a name for every network mode");
static const unsigned network_within[NETWORK_COUNT] = {
    [NETWORK_NONE] = BIT(NETWORK_NONE),
    [NETWORK_FILTERED] = BIT(NETWORK_NONE) | BIT(NETWORK_FILTERED),
    [NETWORK_OPEN] = BIT(NETWORK_NONE) | BIT(NETWORK_FILTERED) | BIT(NETWORK_OPEN),
    [NETWORK_HOST] = BIT(NETWORK_NONE) | BIT(NETWORK_FILTERED) | BIT(NETWORK_OPEN) | BIT(NETWORK_HOST),
};
static const struct choice_row network_row = {network_names, NETWORK_COUNT, network_within, {{NULL, 0}}};

static const char *const scratch_names[] = {[SCRATCH_DISK] = "disk", [SCRATCH_MEMORY] = "memory"};
static_assert(sizeof(scratch_names) / sizeof(scratch_names[0]) == SCRATCH_COUNT, "a name for every scratch");

/* Memory leaves nothing behind and counts against limits.memory. */
static const unsigned scratch_within[SCRATCH_COUNT] = {
    [SCRATCH_DISK] = BIT(SCRATCH_DISK) | BIT(SCRATCH_MEMORY), [SCRATCH_MEMORY] = BIT(SCRATCH_MEMORY)};
static const struct choice_row scratch_row = {scratch_names, SCRATCH_COUNT, scratch_within, {{NULL, 0}}};

static const char *const seccomp_names[] = {[SECCOMP_STRICT] = "strict", [SECCOMP_DEBUG] = "debug", [SECCOMP_IMAGE_BUILD] = "image-build"};
static_assert(sizeof(seccomp_names) / sizeof(seccomp_names[0]) == SECCOMP_COUNT, "a name for every seccomp profile");

/* debug and image-build each allow calls that the other does not. */
static const unsigned seccomp_within[SECCOMP_COUNT] = {
    [SECCOMP_STRICT] = BIT(SECCOMP_STRICT),
    [SECCOMP_DEBUG] = BIT(SECCOMP_STRICT) | BIT(SECCOMP_DEBUG),
    [SECCOMP_IMAGE_BUILD] = BIT(SECCOMP_STRICT) | BIT(SECCOMP_IMAGE_BUILD),
};
static const struct choice_row seccomp_row = {seccomp_names, SECCOMP_COUNT, seccomp_within, {{NULL, 0}}};

static const struct path_row project_path_row = {HOSTPATH_PROJECT, NULL};
static const struct path_row volume_root_row = {HOSTPATH_ROOT, hostpath_covers};
static const struct path_row read_row = {HOSTPATH_READ, NULL};
static const struct path_row write_row = {HOSTPATH_WRITE, NULL};

#define AT(member) offsetof(struct policy, member)
#define LIMIT(name, which)                                                                                                                 \
    {                                                                                                                                      \
        "limits." name, NULL, &limit_kind, AT(limits[which]), &limit_rows[which]                                                           \
    }

static const struct field fields[] = {
    {"tier", NULL, &choice_kind, AT(tier), &tier_row},
    {"image", NULL, &name_kind, AT(image), NULL},
    {"project.mode", "project", &choice_kind, AT(project), &project_row},
    {"project.path", NULL, &path_kind, AT(project_path), &project_path_row},
    {"read", NULL, &paths_kind, AT(read), &read_row},
    {"write", NULL, &paths_kind, AT(write), &write_row},
    {"volumes", NULL, &volume_kind, AT(volumes), NULL},
    {"volume_root", NULL, &path_kind, AT(volume_root), &volume_root_row},
    {"network.mode", "network", &choice_kind, AT(network), &network_row},
    {"network.presets", NULL, &presets_kind, AT(presets), NULL},
    {"network.egress", NULL, &egress_kind, AT(egress), NULL},
    {"network.publish", NULL, &publish_kind, AT(publish), NULL},
    LIMIT("memory", LIMIT_MEMORY),
    LIMIT("processes", LIMIT_PROCESSES),
    LIMIT("cpu_seconds", LIMIT_CPU_TIME),
    LIMIT("cpu_share", LIMIT_CPU_SHARE),
    LIMIT("disk", LIMIT_DISK),
    LIMIT("wall", LIMIT_WALL),
    LIMIT("output", LIMIT_OUTPUT),
    LIMIT("tokens", LIMIT_TOKENS),
    LIMIT("cost_usd", LIMIT_COST),
    {"env.set", NULL, &env_set_kind, AT(env_set), NULL},
    {"env.pass", NULL, &env_pass_kind, AT(env_pass), NULL},
    {"env.allow", NULL, &env_allow_kind, AT(env_allow), NULL},
    {"scratch", NULL, &choice_kind, AT(scratch), &scratch_row},
    {"seccomp", NULL, &choice_kind, AT(seccomp), &seccomp_row},
    {"guard", NULL, &guards_kind, AT(guard), NULL},
};

const struct field *field_at(size_t i)
{
    return i < sizeof(fields) / sizeof(fields[0]) ? &fields[i] : NULL;
}

const struct field *field_find(const char *key)
{
    const struct field *f;
    for (size_t i = 0; (f = field_at(i)); i++)
        if (strcmp(f->key, key) == 0 || (f->alias && strcmp(f->alias, key) == 0))
            return f;
    return NULL;
}

void field_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    (f->kind->show ? f->kind->show : f->kind->text)(f, p, i, out);
}

size_t field_count_one(const struct field *f, const struct policy *p)
{
    (void)f, (void)p;
    return 1;
}

int field_weight_wider(const struct field *f, const struct policy *p, size_t i)
{
    (void)f, (void)p, (void)i;
    return 1;
}

int policy_init(struct policy *p, struct pale_err *e)
{
    own_policy made = {0};
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        made.limits[i].value = limit_rows[i].initial;
    for (const char *const *name = guard_defaults; *name; name++) {
        int r = strlist_add(&made.guard, *name, e);
        if (r < 0)
            return r;
    }
    *p = made;
    made = (struct policy){0};
    return 0;
}

void policy_done(struct policy *p)
{
    const struct field *f;
    for (size_t i = 0; (f = field_at(i)); i++)
        if (f->kind->done)
            f->kind->done(f, p);
    *p = (struct policy){0};
}

/* An unknown key is mistyped more often than it is meant. */
static int unknown_key(const char *key, struct pale_err *e)
{
    struct nearest near;
    const struct field *f;
    char shown[100];
    quote_into(shown, sizeof(shown), key, strlen(key));
    nearest_init(&near, key);
    for (size_t i = 0; (f = field_at(i)); i++) {
        nearest_offer(&near, f->key);
        if (f->alias)
            nearest_offer(&near, f->alias);
    }
    if (near.best)
        return err_set(e, PALE_BAD_INPUT, "%s: unknown key; did you mean \"%s\"?", shown, near.best);
    return err_set(e, PALE_BAD_INPUT, "%s: unknown key; pale policy show lists them all", shown);
}

int policy_set(struct policy *p, const char *key, const char *value, struct pale_err *e)
{
    const struct field *f = field_find(key);
    if (!f)
        return unknown_key(key, e);
    if (f->kind->set(f, p, value, e) < 0)
        return err_prefix(e, "%s", f->key);
    return 0;
}

static const char *name_in(const struct choice_row *row, unsigned value)
{
    return value < row->count ? row->names[value] : "unknown";
}

const char *policy_network_name(enum policy_network n)
{
    return name_in(&network_row, n);
}

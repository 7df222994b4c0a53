/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the capability format (sandbox_tier, resource_limits, network_egress_rules, filesystem_config, permissions,
 * env_allowlist) and what each of its keys means here; docs/decisions/0003-capability-files.md gives the reasons. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/quote.h"
#include "policy/field.h"
#include "reader/filemap.h"

#define DEFAULT_RATE 60

/* What is decided only when the whole file has been seen. */
struct capability {
    const struct node *permissions, *env, *writable;
    bool read_env, spawn, read_write;
};

static const char *nearest_of(const char *word, const char *const *names, size_t count)
{
    struct nearest near;
    nearest_init(&near, word);
    for (size_t i = 0; i < count; i++)
        nearest_offer(&near, names[i]);
    return near.best;
}

/* The index of the text in a closed set, or -1 and a note. */
static int one_of(struct job *j, const struct node *n, const char *shown, const char *const *names, size_t count)
{
    char all[160] = "", text[60];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        if (n->kind == NODE_TEXT && strcmp(n->text, names[i]) == 0)
            return (int)i;
        len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
        assert(len < sizeof(all));
    }
    if (!job_expects(j, n, NODE_TEXT, shown, all))
        return -1;
    const char *best = nearest_of(n->text, names, count);
    quote_into(text, sizeof(text), n->text, strlen(n->text));
    if (best)
        complain(j->c, n->place, shown, "\"%s\" is not %s; did you mean \"%s\"?", text, all, best);
    else
        complain(j->c, n->place, shown, "\"%s\" is not %s", text, all);
    return -1;
}

static void on_tier(struct job *j, const struct node *n, const char *shown, void *data)
{
    static const char *const tiers[] = {"seccomp", "gvisor", "firecracker"};
    (void)data;
    int i = one_of(j, n, shown, tiers, sizeof(tiers) / sizeof(tiers[0]));
    if (i >= 0)
        job_set(j, n, "tier", shown, tiers[i]);
}

static void on_rules(struct job *j, const struct node *n, const char *shown, void *data)
{
    (void)data;
    if (!job_expects(j, n, NODE_LIST, shown, "a list of rules"))
        return;
    if (n->count)
        job_set(j, n, "network.mode", shown, "filtered");
    for (size_t i = 0; i < n->count; i++)
        if (job_expects(j, n->child[i], NODE_MAP, shown, "a rule such as {domain: example.org}"))
            job_rule(j, n->child[i], shown, DEFAULT_RATE, true);
}

static void on_mode(struct job *j, const struct node *n, const char *shown, void *data)
{
    static const char *const modes[] = {"read_only", "read_write", "none"};
    struct capability *cap = data;
    int i = one_of(j, n, shown, modes, sizeof(modes) / sizeof(modes[0]));
    cap->read_write = i == 1;
    if (i >= 0)
        job_set(j, n, "project.mode", shown, i == 2 ? "none" : "ro");
}

static void on_writable(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct capability *cap = data;
    if (!job_expects(j, n, NODE_LIST, shown, "a list of paths"))
        return;
    cap->writable = n->count ? n : NULL;
    for (size_t i = 0; i < n->count; i++)
        if (job_expects(j, n->child[i], NODE_TEXT, shown, "absolute paths"))
            job_set(j, n->child[i], "write", shown, n->child[i]->text);
}

static const struct key_row file_rows[] = {{"mode", on_mode}, {"writable_paths", on_writable}};

static void on_files(struct job *j, const struct node *n, const char *shown, void *data)
{
    if (job_expects(j, n, NODE_MAP, shown, "a map with mode and writable_paths"))
        job_walk(j, n, "filesystem_config.", file_rows, sizeof(file_rows) / sizeof(file_rows[0]), data);
}

/* The four limits, with the values they have when nobody writes them. */
static const struct cap_limit {
    const char *name, *key, *unit, *initial, *digits;
    enum policy_limit_kind kind;
} cap_limits[] = {
    {"max_memory_mb", "limits.memory", "M", "512", "0123456789", LIMIT_MEMORY},
    {"max_cpu_seconds", "limits.cpu_seconds", "s", "30.0", "0123456789.", LIMIT_CPU_TIME},
    {"max_cost_usd", "limits.cost_usd", "", "0.10", "0123456789.", LIMIT_COST},
    {"max_tokens", "limits.tokens", "", "100000", "0123456789", LIMIT_TOKENS},
};

static void on_limit(struct job *j, const struct node *n, const char *shown, void *data)
{
    const struct cap_limit *l = cap_limits;
    char text[64], quoted[60];
    (void)data;
    while (strcmp(l->name, n->key) != 0)
        l++;
    if (!job_expects(j, n, NODE_TEXT, shown, "a number"))
        return;
    size_t len = strlen(n->text);
    if (!n->plain || len > 30 || strspn(n->text, l->digits) != len) {
        quote_into(quoted, sizeof(quoted), n->text, len);
        complain(j->c, n->place, shown, "\"%s\" is no number above zero, without quotes and unit; write for example %s", quoted,
                 l->initial);
        return;
    }
    snprintf(text, sizeof(text), "%s%s", n->text, l->unit);
    job_set(j, n, l->key, shown, text);
}

static const struct key_row limit_rows_of_file[] = {
    {"max_memory_mb", on_limit}, {"max_cpu_seconds", on_limit}, {"max_cost_usd", on_limit}, {"max_tokens", on_limit}};
static_assert(sizeof(limit_rows_of_file) / sizeof(limit_rows_of_file[0]) == sizeof(cap_limits) / sizeof(cap_limits[0]), "one row each");

static void on_limits(struct job *j, const struct node *n, const char *shown, void *data)
{
    if (job_expects(j, n, NODE_MAP, shown, "a map of limits"))
        job_walk(j, n, "resource_limits.", limit_rows_of_file, sizeof(limit_rows_of_file) / sizeof(limit_rows_of_file[0]), data);
}

static void on_permissions(struct job *j, const struct node *n, const char *shown, void *data)
{
    static const char *const names[] = {"read_env", "spawn_subprocess"};
    struct capability *cap = data;
    if (!job_expects(j, n, NODE_LIST, shown, "a list of permissions"))
        return;
    cap->permissions = n;
    for (size_t i = 0; i < n->count; i++) {
        int k = one_of(j, n->child[i], shown, names, sizeof(names) / sizeof(names[0]));
        cap->read_env |= k == 0;
        cap->spawn |= k == 1;
    }
}

static void on_env(struct job *j, const struct node *n, const char *shown, void *data)
{
    struct capability *cap = data;
    if (node_is_null(n) || !job_expects(j, n, NODE_LIST, shown, "a list of variable names"))
        return;
    cap->env = n;
    for (size_t i = 0; i < n->count; i++)
        if (job_expects(j, n->child[i], NODE_TEXT, shown, "variable names"))
            job_set(j, n->child[i], "env.allow", shown, n->child[i]->text);
}

static const struct key_row cap_rows[] = {
    {"sandbox_tier", on_tier},      {"network_egress_rules", on_rules}, {"filesystem_config", on_files},
    {"resource_limits", on_limits}, {"permissions", on_permissions},    {"env_allowlist", on_env},
};
#define CAP_COUNT (sizeof(cap_rows) / sizeof(cap_rows[0]))

bool filemap_is_capability(const struct node *root)
{
    for (size_t i = 0; i < root->count; i++)
        for (size_t k = 0; k < CAP_COUNT; k++)
            if (nearest_distance(root->child[i]->key, cap_rows[k].name) <= 2)
                return true;
    return false;
}

/* What is in force when the file does not say: values, which nobody asked for. */
static void set_defaults(struct job *j, const struct node *root)
{
    for (size_t i = 0; i < sizeof(cap_limits) / sizeof(cap_limits[0]); i++) {
        const struct cap_limit *l = &cap_limits[i];
        char text[64];
        if (j->p->limits[l->kind].asked)
            continue;
        snprintf(text, sizeof(text), "%s%s", l->initial, l->unit);
        job_set(j, root, l->key, l->name, text);
        j->p->limits[l->kind].asked = false;
    }
    job_set(j, root, "tier", "sandbox_tier", "seccomp");
    job_set(j, root, "project.mode", "filesystem_config.mode", "ro");
}

/* A permission that is given is a permission; one that is not is held, or the file is refused. */
static void judge(struct job *j, const struct capability *cap)
{
    if (cap->writable && !cap->read_write)
        complain(j->c, cap->writable->place, "filesystem_config.writable_paths",
                 "only mode read_write has writable paths; write mode: read_write");
    if (cap->read_env && !cap->env)
        complain(j->c, cap->permissions->place, "permissions",
                 "read_env would pass the whole environment; list the names in env_allowlist");
    if (cap->permissions && !cap->read_env && cap->env && cap->env->count)
        complain(j->c, cap->env->place, "env_allowlist", "the permissions do not list read_env; add it, or empty env_allowlist");
    if (cap->permissions && !cap->spawn)
        job_set(j, cap->permissions, "limits.processes", "permissions", "1");
}

void filemap_capability(struct job *j, const struct node *root)
{
    struct capability cap = {0};
    set_defaults(j, root);
    job_walk(j, root, "", cap_rows, CAP_COUNT, &cap);
    judge(j, &cap);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pale format: the keys of the field table, nested at their dots. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "policy/field.h"
#include "reader/filemap.h"

/* Does some key lie within this section ("limits")? */
static bool is_section(const char *name)
{
    const struct field *f;
    size_t n = strlen(name);
    for (size_t i = 0; (f = field_at(i)); i++)
        if (strncmp(f->key, name, n) == 0 && f->key[n] == '.')
            return true;
    return false;
}

/* The part of a key that stands at this level: "limits" of "limits.memory" at the top, "memory" in the section. */
static bool name_at(const struct field *f, const char *section, char *ret, size_t cap)
{
    size_t n = strlen(section);
    const char *name = f->key;
    if (n && (strncmp(f->key, section, n) != 0 || f->key[n] != '.'))
        return false;
    if (n)
        name += n + 1;
    snprintf(ret, cap, "%.*s", (int)strcspn(name, "."), name);
    return true;
}

static void unknown(struct job *j, const struct node *n, const char *section, const char *shown)
{
    struct nearest near;
    const struct field *f;
    char best[64] = "", name[64];
    nearest_init(&near, n->key);
    for (size_t i = 0; (f = field_at(i)); i++) {
        if (!name_at(f, section, name, sizeof(name)))
            continue;
        const char *old = near.best;
        nearest_offer(&near, name);
        if (near.best != old)
            snprintf(best, sizeof(best), "%s", name);
        near.best = best[0] ? best : NULL;
    }
    /* A right name at the wrong depth. */
    for (size_t i = 0; !best[0] && (f = field_at(i)); i++) {
        const char *dot = strrchr(f->key, '.');
        if (strcmp(n->key, f->key) == 0 || (dot && strcmp(n->key, dot + 1) == 0))
            snprintf(best, sizeof(best), "%s", f->key);
    }
    if (strchr(best, '.'))
        complain(j->c, n->key_place, shown, "unknown key here; did you mean \"%.*s: {%s: …}\"?", (int)strcspn(best, "."), best,
                 strchr(best, '.') + 1);
    else
        job_unknown(j, n, shown, best[0] ? best : NULL);
}

static void apply_pair(struct job *j, const struct field *f, const struct node *n)
{
    own_buf text = {0};
    char shown[128];
    snprintf(shown, sizeof(shown), "%s.%s", f->key, n->key);
    if (!job_expects(j, n, NODE_TEXT, shown, "a value (\"\" for an empty one)"))
        return;
    buf_init(&text, POLICY_TEXT_MAX);
    buf_add_text(&text, n->key);
    buf_add_text(&text, "=");
    buf_add_text(&text, n->text);
    if (strchr(n->key, '='))
        complain(j->c, n->key_place, shown, "a variable name has no = in it");
    else if (text.failed)
        j->out_of_memory = true;
    else
        job_set(j, n, f->key, shown, buf_text(&text));
}

static void apply_item(struct job *j, const struct field *f, const struct node *n)
{
    if (f->kind->shape == SHAPE_PAIRS)
        apply_pair(j, f, n);
    else if (f->kind->shape == SHAPE_RULES && n->kind == NODE_MAP)
        job_rule(j, n, f->key, 0, false);
    else if (job_expects(j, n, NODE_TEXT, f->key, f->kind->shape == SHAPE_RULES ? "a rule such as {domain: example.org}" : "plain texts"))
        job_set(j, n, f->key, f->key, n->text);
}

static void apply(struct job *j, const struct field *f, const struct node *n)
{
    static const struct {
        enum node_kind kind;
        const char *what;
    } wants[] = {
        [SHAPE_ONE] = {NODE_TEXT, "a single value"},
        [SHAPE_LIST] = {NODE_LIST, "a list"},
        [SHAPE_PAIRS] = {NODE_MAP, "a map of NAME: value"},
        [SHAPE_RULES] = {NODE_LIST, "a list of rules"},
    };
    if (!job_expects(j, n, wants[f->kind->shape].kind, f->key, wants[f->kind->shape].what))
        return;
    if (f->kind->shape == SHAPE_ONE)
        job_set(j, n, f->key, f->key, n->text);
    for (size_t i = 0; i < n->count; i++)
        apply_item(j, f, n->child[i]);
}

static void walk(struct job *j, const struct node *map, const char *section)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct node *n = map->child[i];
        char key[128];
        snprintf(key, sizeof(key), "%s%s%s", section, section[0] ? "." : "", n->key);
        const struct field *f = strchr(n->key, '.') ? NULL : field_find(key);
        bool deeper = !section[0] && is_section(key);
        if (deeper && (n->kind == NODE_MAP || !f)) {
            if (job_expects(j, n, NODE_MAP, key, "a map of keys"))
                walk(j, n, key);
        } else if (f) {
            apply(j, f, n);
        } else {
            unknown(j, n, section, key);
        }
    }
}

void filemap_pale(struct job *j, const struct node *root)
{
    walk(j, root, "");
}

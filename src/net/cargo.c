/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules for an export's members. */
#include "net/cargo.h"

#include <string.h>

#include "base/quote.h"
#include "net/tarpath.h"

static const struct part {
    const char *name;
    bool lies_on;
} parts[] = {{"home", false}, {"project", true}, {"root", true}, {"tmp", false}};

static const struct part *part_of(const char *path)
{
    size_t n = strcspn(path, "/");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strlen(parts[i].name) == n && memcmp(parts[i].name, path, n) == 0)
            return &parts[i];
    return NULL;
}

bool cargo_lies_on(const char *part)
{
    const struct part *p = part_of(part);
    return p && p->lies_on;
}

/* What is said of a member beside its name. */
static int check_head(const struct cargo_member *m, struct pale_err *e)
{
    static const char types[] = {TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_HARD_LINK};
    if (!memchr(types, m->head->type, sizeof(types)))
        return err_set(e, PALE_BAD_INPUT, "it is no file, folder or link (a device, perhaps: type 0x%02x), and an export has no others",
                       m->head->type);
    if (m->head->set_bits & (m->head->type == TAR_FOLDER ? 06000u : 07000u))
        return err_set(e, PALE_BAD_INPUT, "it has setuid, setgid or sticky set, and nothing in an export has");
    if (m->pax->has_other || (m->pax->has_attributes && !m->pax->attributes))
        return err_set(e, PALE_BAD_INPUT, "it has additions that no export has");
    if (m->pax->trouble)
        return err_set(e, PALE_BAD_INPUT, "%s", m->pax->trouble);
    if (m->pax->has_attributes && m->head->type != TAR_FILE && m->head->type != TAR_FOLDER)
        return err_set(e, PALE_BAD_INPUT, "it has extended attributes, and is no file or folder of its own");
    if (m->size > 0 && m->head->type != TAR_FILE)
        return err_set(e, PALE_BAD_INPUT, "it has content and is no file");
    return 0;
}

static int judge_bill(struct cargo *c, const struct cargo_member *m, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    if (strcmp(m->name, CARGO_BILL) != 0 || m->head->type != TAR_FILE)
        return err_set(e, PALE_BAD_INPUT, "an export begins with " CARGO_BILL "; this is none");
    if (m->size > WAYBILL_BYTES_MAX)
        return err_set(e, PALE_LIMIT, "it is longer than %u bytes", WAYBILL_BYTES_MAX);
    if (m->pax->has_attributes)
        return err_set(e, PALE_BAD_INPUT, "it has extended attributes");
    c->begun = true;
    memcpy(ret, CARGO_BILL, sizeof(CARGO_BILL));
    return 0;
}

/* The name without the mark in its last step, which may have made the step longer than a name can be. */
static int take_mark(const struct cargo_member *m, enum cargo_kind *ret_kind, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    const char *slash = strrchr(m->name, '/'), *last = slash ? slash + 1 : m->name;
    size_t before = (size_t)(last - m->name);
    *ret_kind = CARGO_IS_ENTRY;
    memcpy(ret, m->name, strlen(m->name) + 1);
    if (strncmp(last, CARGO_GONE, strlen(CARGO_GONE)) != 0)
        return 0;
    if (m->head->type != TAR_FILE || m->size > 0)
        return err_set(e, PALE_BAD_INPUT, "it is named as a deletion and is no empty file");
    if (strcmp(last, CARGO_OPAQUE) == 0 && before > 0) {
        *ret_kind = CARGO_IS_OPAQUE;
        ret[before - 1] = 0;
        return 0;
    }
    const char *name = last + strlen(CARGO_GONE);
    if (strncmp(name, CARGO_GONE, strlen(CARGO_GONE)) == 0)
        return err_set(e, PALE_BAD_INPUT, "its name is that of a mark which no export has");
    *ret_kind = CARGO_IS_GONE;
    memcpy(ret + before, name, strlen(name) + 1);
    return 0;
}

/* Does any step look like a mark? Those that are marks have been taken off. */
static bool has_mark(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, CARGO_GONE, strlen(CARGO_GONE)) == 0)
            return true;
    }
    return false;
}

/* Is the first step of b after that of a, by bytes? */
static bool is_after(const char *a, const char *b)
{
    size_t n = strcspn(a, "/"), m = strcspn(b, "/");
    int order = memcmp(a, b, n < m ? n : m);
    return order != 0 ? order < 0 : n < m;
}

/* After an entry comes its folder, or what is in that folder under a later name. */
static bool is_in_order(const char *last, const char *next, bool is_folder)
{
    size_t folder = tar_parent(last, strlen(last));
    if (!*last)
        return true;
    if (folder > 0 && strlen(next) == folder && memcmp(next, last, folder) == 0)
        return is_folder;
    if (folder > 0 && (strncmp(next, last, folder) != 0 || next[folder] != '/'))
        return false;
    size_t from = folder ? folder + 1 : 0;
    return is_after(last + from, next + from);
}

static int check_place(const struct cargo *c, const struct cargo_member *m, enum cargo_kind kind, const char *path, struct pale_err *e)
{
    char shown[160];
    const struct part *part = part_of(path);
    bool is_folder = m->head->type == TAR_FOLDER || kind == CARGO_IS_OPAQUE;
    if (!part)
        return err_set(e, PALE_BAD_INPUT, "an export has nothing but " CARGO_BILL ", home, project, root and tmp");
    if (!strchr(path, '/') && (!is_folder || kind == CARGO_IS_OPAQUE))
        return err_set(e, PALE_BAD_INPUT, "it stands where a part of the box must stand, which is a folder");
    if (m->pax->has_attributes && (kind != CARGO_IS_ENTRY || !strchr(path, '/')))
        return err_set(e, PALE_BAD_INPUT, "it has extended attributes, and stands for no file or folder that a box can have made");
    if (kind != CARGO_IS_ENTRY && !part->lies_on)
        return err_set(e, PALE_BAD_INPUT, "it marks a deletion where there is nothing to delete");
    if (has_mark(path))
        return err_set(e, PALE_BAD_INPUT, "a step of its path is named as a deletion, and is none");
    if (c->hides && (strcmp(c->last, path) != 0 || kind != CARGO_IS_ENTRY || !is_folder))
        return err_set(e, PALE_BAD_INPUT, "it stands where the folder %s must come, which was told to hide what lies below it",
                       quote_into(shown, sizeof(shown), c->last, strlen(c->last)));
    if (!c->hides && !is_in_order(c->last, path, is_folder))
        return err_set(e, PALE_BAD_INPUT, "it is out of order after %s, or there twice",
                       quote_into(shown, sizeof(shown), c->last, strlen(c->last)));
    return 0;
}

/* A hard link leads to something of the same part that has come before. */
static int check_target(struct cargo *c, const struct cargo_member *m, const char *path, struct pale_err *e)
{
    if ((m->head->type == TAR_LINK || m->head->type == TAR_HARD_LINK) && !*m->link)
        return err_set(e, PALE_BAD_INPUT, "it is a link to nothing");
    if (m->head->type != TAR_HARD_LINK)
        return 0;
    int r = tarpath_clean(m->link, false, c->target, e);
    if (r < 0)
        return err_prefix(e, "the target of a hard link");
    if (part_of(c->target) != part_of(path) || !strchr(c->target, '/'))
        return err_set(e, PALE_BAD_INPUT, "it is a hard link to another part of the box");
    return 0;
}

int cargo_judge(struct cargo *c, const struct cargo_member *m, enum cargo_kind *ret_kind, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    char raw[PATH_BYTES_MAX];
    int r = check_head(m, e);
    *ret_kind = CARGO_IS_BILL;
    if (r < 0 || !c->begun)
        return r < 0 ? r : judge_bill(c, m, ret, e);
    if ((r = take_mark(m, ret_kind, raw, e)) < 0)
        return r;
    r = tarpath_clean(raw, m->head->type == TAR_FOLDER || *ret_kind == CARGO_IS_OPAQUE, ret, e);
    if (r == 0)
        r = check_place(c, m, *ret_kind, ret, e);
    if (r == 0)
        r = check_target(c, m, ret, e);
    if (r < 0)
        return r;
    c->hides = *ret_kind == CARGO_IS_OPAQUE;
    memcpy(c->last, ret, strlen(ret) + 1);
    return 0;
}

int cargo_end(const struct cargo *c, struct pale_err *e)
{
    if (!c->begun || c->hides || strchr(c->last, '/'))
        return err_set(e, PALE_BAD_INPUT, "the export ended early: it was cut, or is none");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that read and write files of a box: cat, write, files. What comes out of a box is hostile: a listing is parsed
 * strictly and quoted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/chore.h"
#include "cli/lookup.h"
#include "cli/verbs.h"
#include "wire/fileline.h"

static struct chore chore;

/* A number of bytes as the request wants it. */
static int take_bytes(const struct args *a, const char *option, const char *otherwise, char ret[24], struct pale_err *e)
{
    const char *given = args_get(a, option);
    uint64_t v = 0;
    if (given && (!number_size(given, &v) || v > INT64_MAX))
        return err_set(e, PALE_BAD_INPUT, "--%s %s: write it like 4096, 64K or 2M", option, given);
    snprintf(ret, 24, given ? "%.0s%llu" : "%s", otherwise, (unsigned long long)v);
    return 0;
}

static int run_cat(struct args *a)
{
    struct pale_err e;
    char offset[24], length[24];
    if (take_bytes(a, "offset", "0", offset, &e) < 0 || take_bytes(a, "length", "-", length, &e) < 0)
        return cli_fail(a, &e);
    for (int i = 1; i < a->count; i++)
        if (chore_do(&chore, a, a->word[0], (const char *const[]){"read", a->word[i], offset, length, NULL}, &e) < 0)
            return cli_fail(a, &e);
    return 0;
}

static int run_write(struct args *a)
{
    struct pale_err e;
    const char *mode = args_get(a, "mode");
    uint32_t v;
    if (mode && (!file_mode_parse(mode, &v) || v > 0777)) {
        err_set(&e, PALE_BAD_INPUT, "--mode %s: write it in octal, 000 to 777", mode);
        return cli_fail(a, &e);
    }
    if (chore_open(&chore, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, (const char *const[]){"write", a->word[1], mode ? mode : "-", args_has(a, "new") ? "new" : "over", NULL});
    chore.exec.flags |= EXEC_STDIN;
    chore.session.forward_input = chore.session.in_pieces = true;
    return chore_run(&chore, &e) < 0 ? cli_fail(a, &e) : 0;
}

/* --- files --- */

/* The path that was asked for names what has no name of its own in the listing. */
static void list_entry(struct listing *l, const struct file_entry *en, const char *path)
{
    char size[32], mode[16], shown[PATH_BYTES_MAX + FILE_NAME_MAX + 8], type[2] = {en->type, 0};
    const char *name = en->name[0] ? en->name : path;
    snprintf(mode, sizeof(mode), "%04o", en->mode);
    if (l->is_json) {
        json_begin_object(&l->json, NULL);
        json_text(&l->json, "name", name);
        json_text(&l->json, "type", type);
        json_u64(&l->json, "size", en->size);
        json_text(&l->json, "mode", mode);
        json_i64(&l->json, "mtime", en->mtime);
        json_u64(&l->json, "mtime_ns", en->mtime_ns);
        json_u64(&l->json, "inode", en->inode);
        if (en->type == 'l')
            json_text(&l->json, "target", en->target);
        json_end_object(&l->json);
        return;
    }
    snprintf(shown, sizeof(shown), "%s%s%s%s", name, en->type == 'd' ? "/" : "", en->type == 'l' ? " -> " : "", en->target);
    table_cell(&l->table, type);
    table_cell(&l->table, mode);
    table_cell(&l->table, en->type == 'f' ? number_show_bytes(en->size, size, sizeof(size)) : "-");
    table_cell(&l->table, shown);
}

/* Where the entries of a listing begin, to be shown by name. */
struct entry_order {
    struct entry_at {
        size_t at;
        char *name;
    } * item;
    size_t count, room;
};

static void entry_order_done(struct entry_order *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->item[i].name);
    free(o->item);
}

static int add_entry(struct entry_order *o, size_t at, const char *name, struct pale_err *e)
{
    if (o->count == o->room) {
        struct entry_at *grown = realloc(o->item, (o->room * 2 + 64) * sizeof(*grown));
        if (!grown)
            return err_nomem(e);
        o->item = grown;
        o->room = o->room * 2 + 64;
    }
    o->item[o->count] = (struct entry_at){at, strdup(name)};
    return o->item[o->count].name ? (o->count++, 0) : err_nomem(e);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct entry_at *)x)->name, ((const struct entry_at *)y)->name);
}

/* Nothing is shown of a listing that cannot be read to its end. A folder has no order of its own. */
static int show_entries(struct args *a, const char *path, const struct buf *out, struct pale_err *e)
{
    own_listing l = {0};
    CLEANUP(entry_order_done) struct entry_order order = {0};
    struct file_entry en;
    for (size_t at = 0, used = 0; at < out->len; at += used) {
        if (file_entry_parse(out->data + at, out->len - at, &en, &used) != 1)
            return err_set(e, PALE_PROTOCOL, "the listing cannot be read");
        int r = add_entry(&order, at, en.name, e);
        if (r < 0)
            return r;
    }
    if (order.count > 0)
        qsort(order.item, order.count, sizeof(*order.item), by_name);
    listing_init(&l, a, NULL, 4);
    for (size_t i = 0, used = 0; i < order.count; i++)
        if (file_entry_parse(out->data + order.item[i].at, out->len - order.item[i].at, &en, &used) == 1)
            list_entry(&l, &en, path);
    return listing_print(&l) ? err_os(e, "write the listing") : 0;
}

static int run_files(struct args *a)
{
    struct pale_err e;
    const char *path = a->count > 1 ? a->word[1] : ".";
    own_buf out = {0};
    buf_init(&out, 64 << 20);
    if (chore_open(&chore, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, (const char *const[]){"list", path, NULL});
    chore.session.out = &out;
    if (chore_run(&chore, &e) < 0)
        return cli_fail(a, &e);
    if (out.failed)
        return err_set(&e, PALE_LIMIT, "the listing is longer than 64 MiB"), cli_fail(a, &e);
    return show_entries(a, path, &out, &e) < 0 ? cli_fail(a, &e) : 0;
}

static const struct option cat_options[] = {
    {"offset", 0, "SIZE", "begin after this many bytes", NULL},
    {"length", 0, "SIZE", "print at most this many bytes of each", NULL},
    {0},
};
static const struct option write_options[] = {
    {"mode", 0, "MODE", "permissions in octal (those of the file that is there, else 644)", NULL},
    {"new", 0, NULL, "only if there is nothing of that name", NULL},
    {0},
};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const cat_tables[] = {cat_options, scope_options, common_options, NULL};
static const struct option *const write_tables[] = {write_options, scope_options, common_options, NULL};

const struct verb verb_cat = {"cat",
                              "Files",
                              "print files of a box",
                              "[--offset SIZE] [--length SIZE] BOX PATH …",
                              "Byte for byte on standard output.",
                              cat_tables,
                              2,
                              -1,
                              -1,
                              run_cat};
const struct verb verb_write = {"write",
                                "Files",
                                "write a file of a box",
                                "[--mode MODE] [--new] BOX PATH",
                                "Standard input becomes the file; readers see the old content or the new, never a part. A symlink of that\n"
                                "name is replaced, not followed.",
                                write_tables,
                                2,
                                2,
                                -1,
                                run_write};
const struct verb verb_files = {
    "files", "Files",  "list a folder of a box", "BOX [PATH]", "Type, mode, size and name; names are shown quoted.", plain_tables, 1, 2,
    -1,      run_files};

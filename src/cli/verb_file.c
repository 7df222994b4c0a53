/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about single files of a box: cat, write, files. What comes out of a box is hostile: a listing is parsed strictly
 * and quoted. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/chore.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static struct chore chore;

static int run_cat(struct args *a)
{
    struct pale_err e;
    for (int i = 1; i < a->count; i++) {
        if (chore_open(&chore, a, a->word[0], &e) < 0)
            return cli_fail(a, &e);
        chore_set(&chore, "read", a->word[i], NULL);
        if (chore_run(&chore, &e) < 0)
            return cli_fail(a, &e);
    }
    return 0;
}

static int run_write(struct args *a)
{
    struct pale_err e;
    char mode[16] = "420"; /* 0644 */
    const char *m = args_get(a, "mode");
    if (m) {
        unsigned v = 0;
        for (const char *c = m; *c; c++)
            v = *c >= '0' && *c <= '7' && v < 01000 ? v * 8 + (unsigned)(*c - '0') : 07777777;
        if (!*m || v > 0777) {
            err_set(&e, PALE_BAD_INPUT, "--mode %s: write it in octal, 000 to 777", m);
            return cli_fail(a, &e);
        }
        snprintf(mode, sizeof(mode), "%u", v);
    }
    if (chore_open(&chore, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, "write", a->word[1], mode);
    chore.exec.flags |= EXEC_STDIN;
    chore.session.forward_input = true;
    return chore_run(&chore, &e) < 0 ? cli_fail(a, &e) : 0;
}

/* --- files --- */

struct entry {
    char type;
    uint64_t mode, size;
    int64_t mtime;
    const char *name, *target;
};

/* "t mode size mtime name\0target\0" */
static bool take_entry(const char **at, const char *end, struct entry *ret)
{
    const char *p = *at;
    char word[3][24];
    if (end - p < 8 || p[1] != ' ')
        return false;
    ret->type = p[0];
    p += 2;
    for (int i = 0; i < 3; i++) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        if (!space || (size_t)(space - p) >= sizeof(word[0]))
            return false;
        snprintf(word[i], sizeof(word[i]), "%.*s", (int)(space - p), p);
        if (strlen(word[i]) != (size_t)(space - p))
            return false; /* a NUL in it */
        p = space + 1;
    }
    const char *nul = memchr(p, 0, (size_t)(end - p));
    const char *second = nul ? memchr(nul + 1, 0, (size_t)(end - nul - 1)) : NULL;
    if (!second || !ret->type || !strchr("fdlpscb?", ret->type) || !number_u64(word[0], 7777, &ret->mode) ||
        !number_u64(word[1], UINT64_MAX, &ret->size) || !number_i64(word[2], &ret->mtime))
        return false;
    ret->name = p;
    ret->target = nul + 1;
    *at = second + 1;
    return true;
}

static void list_entry(struct listing *l, const struct entry *en)
{
    char size[32], mode[16], name[2 * PATH_BYTES_MAX], type[2] = {en->type, 0};
    snprintf(mode, sizeof(mode), "%04llu", (unsigned long long)en->mode);
    if (l->is_json) {
        json_object(&l->json, NULL);
        json_text(&l->json, "name", en->name);
        json_text(&l->json, "type", type);
        json_u64(&l->json, "size", en->size);
        json_text(&l->json, "mode", mode);
        json_i64(&l->json, "mtime", en->mtime);
        if (en->type == 'l')
            json_text(&l->json, "target", en->target);
        json_end_object(&l->json);
        return;
    }
    snprintf(name, sizeof(name), "%s%s%s%s", en->name, en->type == 'd' ? "/" : "", en->type == 'l' ? " -> " : "", en->target);
    table_cell(&l->table, type);
    table_cell(&l->table, mode);
    table_cell(&l->table, en->type == 'f' ? number_show_bytes(en->size, size, sizeof(size)) : "-");
    table_cell(&l->table, name);
}

/* Nothing is shown of a listing that cannot be read to its end. */
static int show_entries(struct args *a, const struct buf *out, struct pale_err *e)
{
    const char *at = (const char *)out->data, *end = at + out->len;
    own_listing l = {0};
    listing_init(&l, a, NULL, 4);
    while (out->len > 0 && at < end) {
        struct entry en;
        if (!take_entry(&at, end, &en))
            return err_set(e, PALE_PROTOCOL, "the listing cannot be read");
        list_entry(&l, &en);
    }
    return listing_print(&l) ? err_os(e, "write the listing") : 0;
}

static int run_files(struct args *a)
{
    struct pale_err e;
    own_buf out = {0};
    buf_init(&out, 64 << 20);
    if (chore_open(&chore, a, a->word[0], &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, "list", a->count > 1 ? a->word[1] : ".", NULL);
    chore.session.out = &out;
    if (chore_run(&chore, &e) < 0)
        return cli_fail(a, &e);
    if (out.failed)
        return err_set(&e, PALE_LIMIT, "the listing is longer than 64 MiB"), cli_fail(a, &e);
    return show_entries(a, &out, &e) < 0 ? cli_fail(a, &e) : 0;
}

static const struct option write_options[] = {{"mode", 0, "MODE", "permissions in octal (644)", NULL}, {0}};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const write_tables[] = {write_options, scope_options, common_options, NULL};

const struct verb verb_cat = {
    "cat", "Files", "print files of a box", "BOX PATH …", "Byte for byte on standard output.", plain_tables, 2, -1, -1, run_cat};
const struct verb verb_write = {"write",
                                "Files",
                                "write a file of a box",
                                "[--mode MODE] BOX PATH",
                                "Standard input becomes the file; readers see the old content or the new, never a part.",
                                write_tables,
                                2,
                                2,
                                -1,
                                run_write};
const struct verb verb_files = {
    "files", "Files",  "list a folder of a box", "BOX [PATH]", "Type, mode, size and name; names are shown quoted.", plain_tables, 1, 2,
    -1,      run_files};

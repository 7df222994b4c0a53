/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs export and import through a daemon elsewhere. */
#include "cli/far_parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "cli/door.h"
#include "cli/far.h"
#include "cli/following.h"
#include "cli/infile.h"
#include "cli/interrupt.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/shown_past.h"

#define FIRST_WAIT_MS (3600u * 1000) /* for all that a box has written to be digested, before the first byte is sent */

/* --- export --- */

struct receiving {
    int fd;
    uint64_t bytes;
    struct progress progress;
};

static int take(void *arg, const void *p, size_t n, struct pale_err *e)
{
    struct receiving *r = arg;
    if (*interrupt_seen())
        return err_set(e, PALE_GONE, "interrupted");
    if (!fd_write_full(r->fd, p, n))
        return err_os(e, "write the archive");
    r->bytes += n;
    progress_bytes(&r->progress, r->bytes);
    return 0;
}

static int tell(const struct args *a, const char *file, uint64_t bytes)
{
    char size[32];
    if (strcmp(file, "-") == 0)
        return 0;
    if (a->json) {
        own_buf out = {0};
        struct json j;
        buf_init(&out, 65536);
        json_start(&j, &out);
        json_begin_object(&j, NULL);
        json_text(&j, "box", a->word[0]);
        json_text(&j, "snapshot", args_get(a, "at") ? args_get(a, "at") : "");
        json_text(&j, "file", file);
        json_u64(&j, "archive_bytes", bytes);
        json_end_object(&j);
        return cli_json(&out);
    }
    printf("exported box %s to %s: an archive of %s\n", a->word[0], file, number_show_bytes(bytes, size, sizeof(size)));
    return fflush(stdout) ? 125 : 0;
}

static int receive(const struct args *a, const char *file, uint64_t *ret_bytes, struct pale_err *e)
{
    own_door d = {.remote = {.fd = -1}};
    own_outfile out = OUTFILE_NONE;
    own_buf path = {0};
    struct receiving r = {.progress = {.shows = !a->json && isatty(2)}};
    buf_init(&path, 4096);
    int res = door_find(&d, a, a->word[0], e);
    if (res == 0)
        res = outfile_open(&out, file, args_has(a, "force"), e);
    if (res < 0)
        return res;
    buf_addf(&path, "/v1/boxes/%s/export?plain=%s", d.name, args_has(a, "plain") ? "true" : "false");
    if (args_has(a, "at")) {
        buf_add_text(&path, "&at=");
        far_escape(&path, args_get(a, "at"));
    }
    if (path.failed)
        return err_set(e, PALE_BAD_INPUT, "--at: the name is too long");
    interrupt_catch();
    d.remote.stop = interrupt_seen();
    if (!getenv("PALE_HOST_WAIT"))
        d.remote.wait_ms = FIRST_WAIT_MS;
    r.fd = out.fd;
    res = remote_stream(&d.remote, buf_text(&path), take, &r, e);
    progress_end(&r.progress);
    *ret_bytes = r.bytes;
    return res < 0 ? err_prefix(e, "export box %s", d.name) : outfile_keep(&out, e);
}

int far_export(struct args *a, const char *file)
{
    struct pale_err e;
    uint64_t bytes = 0;
    if (receive(a, file, &bytes, &e) < 0)
        return strcmp(file, "-") == 0 ? cli_fail_aside(a, &e) : cli_fail(a, &e);
    return tell(a, file, bytes);
}

/* --- import --- */

static int show_imported(const struct args *a, const struct jsonread *v)
{
    static const char *const members[] = {"name", "id", "scope", "data", "from", "from_id", "digest", "left_out"};
    char name[FAR_TEXT], scope[FAR_TEXT], id[FAR_TEXT], from[FAR_TEXT], digest[FAR_TEXT];
    struct jsonread left;
    if (a->json)
        return far_print_members(v, members, sizeof(members) / sizeof(members[0]));
    if (!args_has(a, "policy") && jsonread_get(v, "left_out", &left) && left.kind == JSONREAD_LIST)
        shown_past_left_out(&left);
    printf("box %s [%s] id=%s, from box %s, sha256:%.12s\n", far_text(v, "name", name, sizeof(name)),
           far_text(v, "scope", scope, sizeof(scope)), far_text(v, "id", id, sizeof(id)), far_text(v, "from", from, sizeof(from)),
           far_text(v, "digest", digest, sizeof(digest)));
    return fflush(stdout) ? 125 : 0;
}

/* A member of the order, as JSON, in the query. */
static void add_wish(struct buf *path, const struct jsonread *order, const char *key)
{
    struct jsonread v;
    own_buf text = {0};
    if (!jsonread_get(order, key, &v))
        return;
    buf_init(&text, v.len + 1);
    buf_add(&text, v.at, v.len);
    buf_addf(path, "%c%s=", strchr(buf_text(path), '?') ? '&' : '?', key);
    far_escape(path, buf_text(&text));
}

static int write_path(const struct args *a, struct buf *ret, struct pale_err *e)
{
    own_buf order = {0};
    struct jsonread v;
    buf_init(&order, 1u << 20);
    int r = far_order(a, a->word[1], NULL, false, &order, e);
    if (r == 0 && !jsonread_parse(buf_text(&order), order.len, &v))
        r = err_set(e, PALE_INTERNAL, "what we ask for cannot be read");
    if (r < 0)
        return r;
    buf_addf(ret, "/v1/boxes/%s/import", a->word[1]);
    add_wish(ret, &v, "policy");
    add_wish(ret, &v, "set");
    return ret->failed
               ? err_set(e, PALE_LIMIT, "the policy is too long to be sent beside an archive; import without it, and change it then")
               : 0;
}

int far_import(struct args *a)
{
    struct pale_err e;
    struct progress progress = {.shows = !a->json && isatty(2)};
    struct following f = {.args = a, .last = "imported", .show = show_imported, .missing = "the daemon ended before the box was made"};
    own_remote r = {.fd = -1};
    own_buf path = {0};
    own_fd body = -1;
    remote_init(&r);
    r.sent = progress_bytes;
    r.sent_arg = &progress;
    buf_init(&path, HTTP_TARGET_MAX);
    int res = write_path(a, &path, &e);
    if (res == 0)
        res = infile_open(a->word[0], &body, &e);
    if (res == 0)
        res = remote_open(&r, a->host, false, &e);
    const struct remote_order o = {"POST", buf_text(&path), NULL, body};
    if (res == 0)
        res = following_run(&f, &r, &o, &e);
    progress_end(&progress);
    return res < 0 ? cli_fail(a, &e) : f.status;
}

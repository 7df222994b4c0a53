/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb image through a daemon elsewhere. */
#include "cli/far_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sha256.h"
#include "cli/build.h"
#include "cli/far.h"
#include "cli/following.h"
#include "cli/remote.h"
#include "cli/infile.h"
#include "cli/shown_image.h"

#define VERIFY_WAIT_MS (3600u * 1000) /* for all of an image to be read again */

/* One question about an image, "" for all, and its answer. */
static int ask(struct args *a, const char *method, const char *image, const char *more, struct buf *text, struct jsonread *ret,
               struct pale_err *e)
{
    own_remote r = {.fd = -1};
    own_buf path = {0};
    remote_init(&r);
    buf_init(&path, 4096);
    buf_init(text, FAR_ANSWER_MAX);
    buf_addf(&path, "/v1/images%s", image[0] ? "/" : "");
    far_escape(&path, image);
    buf_add_text(&path, more);
    if (path.failed)
        return err_set(e, PALE_BAD_INPUT, "the name of the image is too long");
    if (more[0] && !getenv("PALE_HOST_WAIT"))
        r.wait_ms = VERIFY_WAIT_MS;
    int res = remote_open(&r, a->host, false, e);
    if (res < 0)
        return res;
    return ret ? remote_ask(&r, method, buf_text(&path), NULL, text, ret, e) : remote_call(&r, method, buf_text(&path), NULL, text, e);
}

int far_image_ls(struct args *a)
{
    struct pale_err e;
    own_buf text = {0};
    own_listing l = {0};
    struct jsonread answer, items, item;
    char name[FAR_TEXT], digest[FAR_TEXT];
    int r = ask(a, "GET", "", "", &text, &answer, &e);
    if (r == 0 && (!jsonread_get(&answer, "items", &items) || items.kind != JSONREAD_LIST))
        r = err_set(&e, PALE_PROTOCOL, "the daemon's answer has no items");
    if (r < 0)
        return cli_fail(a, &e);
    shown_image_list(&l, a);
    for (size_t pos = 0; jsonread_next(&items, &pos, NULL, &item);)
        if (l.is_json)
            far_copy(&l.json, NULL, &item);
        else
            shown_image_row(&l, far_text(&item, "name", name, sizeof(name)), far_text(&item, "digest", digest, sizeof(digest)), &item);
    return listing_print(&l);
}

int far_image_inspect(struct args *a)
{
    struct pale_err e;
    own_buf text = {0}, out = {0};
    struct json j;
    struct jsonread answer, key, value;
    if (ask(a, "GET", a->word[1], "", &text, &answer, &e) < 0)
        return cli_fail(a, &e);
    if (a->json) {
        buf_init(&out, FAR_ANSWER_MAX);
        json_start(&j, &out);
        far_copy(&j, NULL, &answer);
        return cli_json(&out);
    }
    for (size_t pos = 0; jsonread_next(&answer, &pos, &key, &value);)
        shown_image_member(&key, &value);
    return fflush(stdout) ? 125 : 0;
}

int far_image_verify(struct args *a)
{
    struct pale_err e;
    for (int k = 1; k < a->count; k++) {
        own_buf text = {0};
        struct jsonread answer;
        char digest[FAR_TEXT];
        if (ask(a, "POST", a->word[k], "/verify", &text, &answer, &e) < 0)
            return cli_fail(a, &e);
        if (!a->json)
            printf("good: %s, sha256:%s\n", a->word[k], far_text(&answer, "digest", digest, sizeof(digest)));
    }
    if (a->json)
        printf("{\"good\":true,\"images\":%d}\n", a->count - 1);
    return fflush(stdout) ? 125 : 0;
}

int far_image_rm(struct args *a)
{
    struct pale_err e;
    for (int k = 1; k < a->count; k++) {
        own_buf text = {0};
        if (ask(a, "DELETE", a->word[k], "", &text, NULL, &e) < 0)
            return cli_fail(a, &e);
        if (!a->json)
            printf("removed image %s\n", a->word[k]);
    }
    if (a->json)
        printf("{\"removed\":%d}\n", a->count - 1);
    return fflush(stdout) ? 125 : 0;
}

/* --- building --- */

static int show_built(const struct args *a, const struct jsonread *v)
{
    static const char *const members[] = {"name", "digest", "from", "bytes", "files", "left_out"};
    char name[FAR_TEXT], from[FAR_TEXT], digest[FAR_TEXT], kind[64];
    struct jsonread left, key, value;
    if (a->json)
        return far_print_members(v, members, sizeof(members) / sizeof(members[0]));
    for (size_t pos = 0; jsonread_get(v, "left_out", &left) && jsonread_next(&left, &pos, &key, &value);)
        cli_note("left out or changed: %llu %s", (unsigned long long)far_number(&value, "count"), jsonread_text(&key, kind, sizeof(kind)));
    build_tell(far_text(v, "name", name, sizeof(name)), far_text(v, "from", from, sizeof(from)),
               far_text(v, "digest", digest, sizeof(digest)), far_number(v, "bytes"), far_number(v, "files"));
    return fflush(stdout) ? 125 : 0;
}

static void write_packages(struct json *j, const char *list)
{
    json_begin_list(j, "include");
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        if (n)
            json_bytes(j, NULL, at, n);
        at += n + (at[n] == ',');
    }
    json_end_list(j);
}

static void write_order(const struct args *a, const char *from, struct buf *ret)
{
    static const char *const texts[] = {"suite", "variant"};
    struct json j;
    json_start(&j, ret);
    json_begin_object(&j, NULL);
    json_text(&j, "name", a->word[1]);
    json_text(&j, "from", from);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (args_has(a, texts[i]))
            json_text(&j, texts[i], args_get(a, texts[i]));
    if (args_has(a, "include"))
        write_packages(&j, args_get(a, "include"));
    if (args_has(a, "force-copy"))
        json_bool(&j, "force_copy", true);
    json_end_object(&j);
}

/* The archive that is sent. */
static int open_archive(const char *path, int *ret, struct pale_err *e)
{
    struct stat st;
    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(e, PALE_UNSUPPORTED,
                       "--file %s: with --host an archive is sent, not a folder; `tar -C %s -c . | pale image build … --file -`", path,
                       path);
    int r = infile_open(path, ret, e);
    return r < 0 ? err_prefix(e, "--file") : 0;
}

/* What the flags say of the source. */
static int choose(const struct args *a, const char *from, int *ret_fd, struct pale_err *e)
{
    bool is_archive = strcmp(from, "tar") == 0 || strcmp(from, "oci") == 0;
    if (args_has(a, "url") || strcmp(from, "download") == 0)
        return err_set(e, PALE_UNSUPPORTED,
                       "with --host nothing is fetched there; `curl URL | pale image build … --from tar --file -` sends it");
    if (is_archive != args_has(a, "file"))
        return err_set(e, PALE_BAD_INPUT, is_archive ? "--from %s needs --file FILE" : "--file has no meaning with --from %s", from);
    return is_archive ? open_archive(args_get(a, "file"), ret_fd, e) : 0;
}

int far_image_build(struct args *a)
{
    const char *from = args_get(a, "from") ? args_get(a, "from") : "mmdebstrap";
    struct pale_err e;
    struct following f = {.args = a, .last = "built", .show = show_built, .missing = "the daemon ended before the image was built"};
    own_remote r = {.fd = -1};
    own_buf path = {0}, order = {0};
    own_fd body = -1;
    remote_init(&r);
    buf_init(&path, 4096);
    buf_init(&order, 1u << 20);
    int res = choose(a, from, &body, &e);
    buf_add_text(&path, "/v1/images");
    if (body >= 0) {
        buf_add_text(&path, "/");
        far_escape(&path, a->word[1]);
        buf_addf(&path, "?from=%s", from);
    }
    write_order(a, from, &order);
    if (res == 0 && (path.failed || order.failed))
        res = err_set(&e, PALE_BAD_INPUT, "the request is too long");
    if (res == 0)
        res = remote_open(&r, a->host, false, &e);
    const struct remote_order o = {body >= 0 ? "PUT" : "POST", buf_text(&path), buf_text(&order), body};
    if (res == 0)
        res = following_run(&f, &r, &o, &e);
    return res < 0 ? cli_fail(a, &e) : f.status;
}

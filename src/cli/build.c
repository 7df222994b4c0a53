/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the building of an image, and the source tar. */
#include "cli/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/quote.h"
#include "box/imageref.h"
#include "box/imageuse.h"
#include "box/ownplaces.h"
#include "cli/interrupt.h"
#include "cli/unpack.h"
#include "image/inventory.h"

void build_say(const struct build *b, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    if (b->args->json && !b->progress.by_lines)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    cli_note("%s", text);
}

/* --- sources --- */

/* A file of the user's. What is none, or stands still, like a FIFO, is refused before it is waited for. */
static int open_file(struct build *b, const char *path, struct spout *s, struct pale_err *e)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    own_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "--file %s: it is no file", path);
    snprintf(b->file, sizeof(b->file), "%s", slash ? slash + 1 : path);
    b->manifest.file = b->file;
    return spout_file(s, fd, e);
}

int build_open_source(struct build *b, struct spout *s, struct pale_err *e)
{
    const char *file = args_get(b->args, "file"), *url = args_get(b->args, "url");
    if (!file == !url)
        return err_set(e, PALE_BAD_INPUT, "--from %s needs --file FILE or --url URL, one of them", b->manifest.from);
    if (file && strcmp(file, "-") == 0)
        return spout_file(s, 0, e);
    if (file)
        return open_file(b, file, s, e);
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return err_set(e, PALE_BAD_INPUT, "--url %.200s: it must begin with https:// or http://", url);
    char *argv[] = {(char *)"curl",         (char *)"--fail",  (char *)"--location",  (char *)"--silent",
                    (char *)"--show-error", (char *)"--proto", (char *)"=http,https", (char *)"--max-redirs",
                    (char *)"10",           (char *)"--",      (char *)url,           NULL};
    return spout_program(s, argv, NULL, e);
}

int build_unpack(struct build *b, struct spout *s, const char *folder, const char *pass, char ret_hex[SHA256_HEX], uint64_t *ret_bytes,
                 struct pale_err *e)
{
    struct unpack u = {.folder = folder, .pass = pass, .in_fd = s->fd, .shows_progress = b->progress.shows && !b->progress.by_lines};
    struct pale_err why;
    s->stop = b->stop;
    int unpacked = unpack_run(&u, &b->left, e);
    interrupt_catch();
    if (unpacked == -PALE_GONE)
        return unpacked;
    /* A program that failed is the reason for an archive that is cut; a box that refused one is the reason for a program that was. */
    int given = spout_end(s, ret_hex, ret_bytes, &why);
    if (given < 0 && (unpacked == 0 || why.code == PALE_UNSUPPORTED || (why.code == PALE_OS && s->name && e->code == PALE_BAD_INPUT)))
        *e = why;
    return unpacked < 0 ? -(int)e->code : given;
}

int build_tar(struct build *b, struct pale_err *e)
{
    own_spout s = SPOUT_NONE;
    int r = build_open_source(b, &s, e);
    if (r == 0)
        r = build_unpack(b, &s, b->root, "whole", b->source_hex, &b->manifest.source_bytes, e);
    b->manifest.source_digest = b->source_hex;
    return r;
}

/* --- the image --- */

/* What was filled becomes what an image may be; its inventory and its manifest are written. */
static int seal(struct build *b, struct imprint *i, struct pale_err *e)
{
    own_buf preface = {0}, text = {0};
    own_fd inventory = openat(b->staging.made_fd, "inventory", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (inventory < 0)
        return err_os(e, "make the image's inventory");
    buf_init(&preface, INVENTORY_PREFACE_MAX);
    buf_init(&text, IMAGE_JSON_MAX);
    int r = manifest_preface(b->manifest.config, &preface, e);
    if (r < 0)
        return r;
    imprint_init(i, b->root_fd);
    i->left = b->left;
    i->mend = true;
    i->inventory_fd = inventory;
    i->preface = buf_text(&preface);
    i->stop = b->stop;
    i->progress = progress_show;
    i->progress_arg = &b->progress;
    r = imprint_take(i, e);
    progress_end(&b->progress);
    if (r == 0)
        r = manifest_write(&b->manifest, i, &text, e);
    return r < 0 ? r : fd_write_new(b->staging.made_fd, "manifest.json", text.data, text.len, 0600, false, e);
}

static const struct {
    const char *name;
    build_source *fill;
    const char *takes; /* the flags that make sense with it */
} sources[] = {
    {"mmdebstrap", build_debian, "suite variant include"},
    {"minimal", build_minimal, ""},
    {"host-copy", build_copy, "force-copy"},
    {"tar", build_tar, "file url"},
    {"oci", build_oci, "file url"},
    {"download", build_tar, "url"}, /* what some have typed for years */
};
#define SOURCE_COUNT (sizeof(sources) / sizeof(sources[0]))

static int find_source(const struct args *a, size_t *ret, struct pale_err *e)
{
    static const char *const flags[] = {"suite", "variant", "include", "force-copy", "file", "url"};
    const char *from = args_get(a, "from") ? args_get(a, "from") : sources[0].name;
    for (*ret = 0; *ret < SOURCE_COUNT && strcmp(sources[*ret].name, from) != 0; ++*ret)
        ;
    if (*ret == SOURCE_COUNT)
        return err_set(e, PALE_BAD_INPUT, "--from %.100s: an image is built from mmdebstrap, minimal, host-copy, tar or oci", from);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (args_has(a, flags[i]) && !strstr(sources[*ret].takes, flags[i]))
            return err_set(e, PALE_BAD_INPUT, "--%s has no meaning with --from %s", flags[i], from);
    return 0;
}

void build_tell(const char *name, const char *from, const char *digest, uint64_t bytes, uint64_t files)
{
    char size[32];
    printf("built image %s from %s: sha256:%.12s, %s in %llu files\n", name, from, digest, number_show_bytes(bytes, size, sizeof(size)),
           (unsigned long long)files);
}

static void tell_left(const struct left *l)
{
    for (size_t k = 0; k < LEFT_KINDS; k++)
        if (l->count[k])
            cli_note("left out or changed: %llu %s (%s%s)", (unsigned long long)l->count[k], left_kind_name((enum left_kind)k),
                     l->name[k][0], l->count[k] > 1 ? " …" : "");
}

static int tell(const struct build *b, const char *name, const struct imprint *i)
{
    if (b->args->json) {
        own_buf out = {0};
        struct json j;
        buf_init(&out, 65536);
        json_start(&j, &out);
        json_begin_object(&j, NULL);
        json_text(&j, "name", name);
        json_text(&j, "digest", i->digest);
        json_text(&j, "from", b->manifest.from);
        json_u64(&j, "bytes", i->bytes);
        json_u64(&j, "files", i->files);
        left_json(&i->left, &j, "left_out");
        json_end_object(&j);
        return cli_json(&out);
    }
    tell_left(&i->left);
    build_tell(name, b->manifest.from, i->digest, i->bytes, i->files);
    return fflush(stdout) ? 125 : 0;
}

static int open_places(struct build *b, struct pale_err *e)
{
    int r = imageref_store(&b->store, e);
    if (r == 0)
        r = staging_open(&b->staging, &b->store, e);
    /* The box that unpacks is given a folder of it, and no other box is (box/ownplaces.c). */
    if (r == 0 && setenv(OWNPLACES_STAGING, b->staging.path, 1) < 0)
        r = err_os(e, "prepare to build");
    return r < 0 ? r : staging_root(&b->staging, b->root, sizeof(b->root), &b->root_fd, e);
}

static int make(struct build *b, size_t source, const char *name, struct imprint *i, struct pale_err *e)
{
    int r = open_places(b, e);
    if (r == 0)
        r = sources[source].fill(b, e);
    if (r == 0 && *interrupt_seen())
        r = err_set(e, PALE_GONE, "interrupted");
    if (r == 0)
        r = seal(b, i, e);
    if (r == 0)
        r = imageuse_tell("image.build", name, i->digest, commission_caller(&b->commission), e);
    if (r == 0)
        r = store_commit(&b->staging, i->digest, name, e);
    return r < 0 ? err_prefix(e, "build image %s", name) : 0;
}

int build_run(struct args *a, const char *name)
{
    static struct build b;
    static struct imprint i;
    struct pale_err e;
    size_t source = 0;
    bool by_lines = args_has(a, "progress");
    b = (struct build){.args = a,
                       .root_fd = -1,
                       .stop = interrupt_seen(),
                       .progress = {.shows = by_lines || (!a->json && isatty(2)), .by_lines = by_lines}};
    b.store = (struct store)STORE_NONE;
    b.staging = (struct staging){.store = &b.store, .fd = -1, .made_fd = -1};
    b.manifest = (struct manifest){.build = "pale " PALE_VERSION};
    if (!store_is_name(name)) {
        char shown[100];
        err_set(&e, PALE_BAD_INPUT, "%s is no name for an image: letters, digits and . _ : + -, beginning with a letter or digit",
                quote_into(shown, sizeof(shown), name, strlen(name)));
        return cli_fail(a, &e);
    }
    if (find_source(a, &source, &e) < 0)
        return cli_fail(a, &e);
    b.manifest.from = sources[source].fill == build_tar ? "tar" : sources[source].name;
    if (commission_read(&b.commission, &e) < 0)
        return cli_fail(a, &e);
    interrupt_catch();
    umask(022); /* what is made of the host's files is the same for everybody */
    int r = make(&b, source, name, &i, &e);
    own_close(&b.root_fd);
    staging_close(&b.staging);
    store_close(&b.store);
    buf_done(&b.config_text);
    commission_done(&b.commission);
    return r < 0 ? cli_fail(a, &e) : tell(&b, name, &i);
}

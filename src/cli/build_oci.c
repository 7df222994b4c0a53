/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the source oci: an OCI image layout, in a folder or an archive, or docker's archive.
 *
 * How it works: an archive is unpacked in a box like any other, into staging. From then on a layout is a folder that a stranger filled:
 * its files are reached beneath its descriptor alone. JSON is read by image/ocijson once its digest and size are right; layers are never
 * read here, only digested on their way into a box. A layer that was not the one its digest says ends the build. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/quote.h"
#include "cli/build.h"

#define INDEX_DEPTH_MAX 4 /* indexes in one another */

struct layout {
    struct build *build;
    int fd;
    const char *architecture;
    struct buf text;
};

/* A plain file of the layout. */
static int open_blob(const struct layout *l, const char *path, int *ret_fd, struct stat *ret_st, struct pale_err *e)
{
    char shown[160];
    quote_into(shown, sizeof(shown), path, strlen(path));
    *ret_fd = fd_open_beneath(l->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (*ret_fd < 0 && errno == ELOOP)
        return err_set(e, PALE_BAD_INPUT, "%s of the layout is or lies behind a symlink, which is not followed", shown);
    if (*ret_fd < 0 || fstat(*ret_fd, ret_st) < 0)
        return err_os(e, "open %s of the layout", shown);
    return S_ISREG(ret_st->st_mode) ? 0 : err_set(e, PALE_BAD_INPUT, "%s of the layout is no file", shown);
}

static void blob_path(const char *hex, char ret[96])
{
    snprintf(ret, 96, "blobs/sha256/%s", hex);
}

static int check_size(const char *hex, uint64_t promised, uint64_t found, struct pale_err *e)
{
    if (promised == found)
        return 0;
    return err_set(e, PALE_CORRUPT, "the blob sha256:%.12s… has %llu bytes and not the %llu that were promised", hex,
                   (unsigned long long)found, (unsigned long long)promised);
}

static int check_digest(const char *what, const char *promised, const char *found, struct pale_err *e)
{
    if (strcmp(promised, found) == 0)
        return 0;
    return err_set(e, PALE_CORRUPT, "%s is not what its digest says: sha256:%.12s… was promised, sha256:%.12s… is there", what, promised,
                   found);
}

/* A JSON file into l->text; with a blob only the one that it promises. */
static int read_json(struct layout *l, const char *path, const struct ocijson_blob *blob, struct pale_err *e)
{
    struct stat st;
    char hex[SHA256_HEX];
    own_fd fd = -1;
    int r = open_blob(l, path, &fd, &st, e);
    if (r < 0)
        return r;
    buf_done(&l->text);
    buf_init(&l->text, IMAGE_JSON_MAX);
    if ((r = fd_read_all(fd, &l->text, e)) < 0)
        return err_prefix(e, "%s of the layout", path);
    if (!blob)
        return 0;
    sha256_hex(l->text.data, l->text.len, hex);
    r = check_size(blob->hex, blob->size, l->text.len, e);
    return r < 0 ? r : check_digest(path, blob->hex, hex, e);
}

static int read_blob(struct layout *l, const struct ocijson_blob *blob, struct pale_err *e)
{
    char path[96];
    if (blob->size > IMAGE_JSON_MAX)
        return err_set(e, PALE_LIMIT, "the blob sha256:%.12s… is longer than %u bytes", blob->hex, IMAGE_JSON_MAX);
    blob_path(blob->hex, path);
    return read_json(l, path, blob, e);
}

/* --- layers --- */

/* Sends a file of the layout through one pass; its digest must be the promised one. */
static int pass_layer(struct layout *l, int fd, const char *pass, const char *promised, struct pale_err *e)
{
    own_spout s = SPOUT_NONE;
    char hex[SHA256_HEX];
    uint64_t bytes;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_os(e, "read a layer again");
    int r = spout_file(&s, fd, e);
    if (r == 0)
        r = build_unpack(l->build, &s, l->build->root, pass, hex, &bytes, e);
    return r < 0 ? r : check_digest("a layer", promised, hex, e);
}

struct layer_order {
    const char *path, *promised;
    uint64_t size; /* UINT64_MAX: nobody promised one */
    size_t which, count;
};

static int apply_layer(struct layout *l, const struct layer_order *o, struct pale_err *e)
{
    struct stat st;
    own_fd fd = -1;
    int r = open_blob(l, o->path, &fd, &st, e);
    if (r == 0 && o->size != UINT64_MAX)
        r = check_size(o->promised, o->size, (uint64_t)st.st_size, e);
    if (r == 0)
        build_say(l->build, "layer %zu of %zu", o->which + 1, o->count);
    /* Below the first there is nothing to hide. */
    if (r == 0 && o->which > 0)
        r = pass_layer(l, fd, "hide", o->promised, e);
    if (r == 0)
        r = pass_layer(l, fd, "lay", o->promised, e);
    return r < 0 ? err_prefix(e, "layer %zu", o->which + 1) : 0;
}

/* --- OCI --- */

static int take_config(struct layout *l, size_t layers, struct pale_err *e)
{
    struct build *b = l->build;
    b->config_text = l->text;
    l->text = (struct buf){0};
    int r = ocijson_config((const char *)b->config_text.data, b->config_text.len, l->architecture, &b->config, e);
    if (r == 0 && b->config.diff_count != layers)
        r = err_set(e, PALE_BAD_INPUT, "the configuration tells of %zu layers and the manifest of %zu", b->config.diff_count, layers);
    if (r == 0)
        b->manifest.config = &b->config;
    return r;
}

static int find_manifest(struct layout *l, struct ocijson_blob *ret, struct pale_err *e)
{
    bool is_index = true;
    int r = read_json(l, "index.json", NULL, e);
    for (int depth = 0; r == 0 && is_index; depth++) {
        if (depth == INDEX_DEPTH_MAX)
            return err_set(e, PALE_LIMIT, "indexes lie more than %d deep in one another", INDEX_DEPTH_MAX);
        r = ocijson_index((const char *)l->text.data, l->text.len, l->architecture, ret, &is_index, e);
        if (r == 0)
            r = read_blob(l, ret, e);
    }
    return r;
}

static int apply_oci(struct layout *l, struct pale_err *e)
{
    static struct ocijson_manifest m;
    struct build *b = l->build;
    struct ocijson_blob chosen;
    int r = find_manifest(l, &chosen, e);
    if (r == 0)
        r = ocijson_manifest((const char *)l->text.data, l->text.len, &m, e);
    if (r == 0)
        r = read_blob(l, &m.config, e);
    if (r == 0)
        r = take_config(l, m.layer_count, e);
    for (size_t i = 0; r == 0 && i < m.layer_count; i++) {
        char path[96];
        blob_path(m.layer[i].hex, path);
        const struct layer_order o = {path, m.layer[i].hex, m.layer[i].size, i, m.layer_count};
        r = apply_layer(l, &o, e);
    }
    memcpy(b->source_hex, chosen.hex, sizeof(b->source_hex));
    b->manifest.source_bytes = chosen.size;
    return r;
}

/* --- docker's archive --- */

/* The digest is the configuration's name: HEX.json, or blobs/sha256/HEX. */
static int config_digest(const char *path, char ret[SHA256_HEX], struct pale_err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strspn(name, "0123456789abcdef");
    if (n != SHA256_HEX - 1 || (name[n] && strcmp(name + n, ".json") != 0))
        return err_set(e, PALE_BAD_INPUT, "the configuration in manifest.json is not named by its digest");
    memcpy(ret, name, n);
    ret[n] = 0;
    return 0;
}

static int apply_docker(struct layout *l, struct pale_err *e)
{
    static struct ocijson_docker d;
    struct build *b = l->build;
    char promised[SHA256_HEX], hex[SHA256_HEX];
    int r = read_json(l, "manifest.json", NULL, e);
    if (r == 0)
        r = ocijson_docker((const char *)l->text.data, l->text.len, &d, e);
    if (r == 0)
        r = config_digest(d.config, promised, e);
    if (r == 0)
        r = read_json(l, d.config, NULL, e);
    if (r < 0)
        return r;
    sha256_hex(l->text.data, l->text.len, hex);
    b->manifest.source_bytes = l->text.len;
    r = check_digest("the configuration", promised, hex, e);
    if (r == 0)
        r = take_config(l, d.layer_count, e);
    for (size_t i = 0; r == 0 && i < d.layer_count; i++) {
        const struct layer_order o = {d.layer[i], b->config.diff[i], UINT64_MAX, i, d.layer_count};
        r = apply_layer(l, &o, e);
    }
    memcpy(b->source_hex, hex, sizeof(b->source_hex));
    return r;
}

/* --- the layout --- */

static bool has(const struct layout *l, const char *name)
{
    struct stat st;
    return fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A folder of the user's is used where it stands. */
static int open_folder(struct build *b, const char *path, int *ret_fd, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    const char *slash = realpath(path, real) ? strrchr(real, '/') : NULL;
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_os(e, "open %s", path);
    snprintf(b->file, sizeof(b->file), "%s", slash ? slash + 1 : "");
    b->manifest.file = b->file;
    return 0;
}

static int unpack_archive(struct build *b, int *ret_fd, struct pale_err *e)
{
    char folder[PATH_BYTES_MAX], hex[SHA256_HEX];
    uint64_t bytes;
    struct left of_layout = b->left;
    own_spout s = SPOUT_NONE;
    int r = build_open_source(b, &s, e);
    if (r == 0)
        r = staging_folder(&b->staging, "layout", ret_fd, e);
    if (r == 0 && !path_join(folder, sizeof(folder), b->staging.path, "layout"))
        r = err_set(e, PALE_BAD_INPUT, "%s: the path is too long", b->staging.path);
    if (r == 0)
        r = build_unpack(b, &s, folder, "whole", hex, &bytes, e);
    b->left = of_layout; /* what the archive around the layers held is nothing of the image */
    return r;
}

int build_oci(struct build *b, struct pale_err *e)
{
    struct utsname host;
    struct stat st;
    const char *file = args_get(b->args, "file");
    own_fd fd = -1;
    if (uname(&host) < 0)
        return err_os(e, "ask for this host's architecture");
    bool is_folder = file && strcmp(file, "-") != 0 && stat(file, &st) == 0 && S_ISDIR(st.st_mode) && !args_has(b->args, "url");
    int r = is_folder ? open_folder(b, file, &fd, e) : unpack_archive(b, &fd, e);
    if (r < 0)
        return r;
    struct layout l = {.build = b, .fd = fd, .architecture = ocijson_architecture(host.machine)};
    b->manifest.source_digest = b->source_hex;
    if (has(&l, "oci-layout") && has(&l, "index.json"))
        r = apply_oci(&l, e);
    else if (has(&l, "manifest.json"))
        r = apply_docker(&l, e);
    else
        r = err_set(e, PALE_BAD_INPUT,
                    "%s is no OCI image layout and no docker archive: it has neither oci-layout and index.json nor manifest.json",
                    is_folder ? file : "the archive");
    buf_done(&l.text);
    return r;
}

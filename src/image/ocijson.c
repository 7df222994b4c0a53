/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of an OCI image's JSON. */
#include "image/ocijson.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"

#define TYPE_MAX 128u
#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

const char *ocijson_architecture(const char *machine)
{
    static const struct {
        const char *machine, *name;
    } rows[] = {{"x86_64", "amd64"},    {"aarch64", "arm64"}, {"i686", "386"},        {"armv7l", "arm"},
                {"ppc64le", "ppc64le"}, {"s390x", "s390x"},   {"riscv64", "riscv64"}, {"loongarch64", "loong64"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].machine, machine) == 0)
            return rows[i].name;
    return machine;
}

/* --- members --- */

static int parse(const char *p, size_t n, enum jsonread_kind kind, const char *what, struct jsonread *ret, struct pale_err *e)
{
    if (n > IMAGE_JSON_MAX)
        return err_set(e, PALE_LIMIT, "%s is longer than %u bytes", what, IMAGE_JSON_MAX);
    if (!jsonread_parse(p, n, ret) || ret->kind != kind)
        return err_set(e, PALE_BAD_INPUT, "%s is not the JSON it should be", what);
    return 0;
}

static const struct jsonread none = {.kind = JSONREAD_NULL, .at = ""};

/* A member, of kind JSONREAD_NULL if it is not there. Two readers must not understand different things, so none may stand twice. */
static int member(const struct jsonread *v, const char *name, struct jsonread *ret, struct pale_err *e)
{
    struct jsonread key, value;
    char text[64];
    int found = 0;
    *ret = none;
    if (v->kind != JSONREAD_OBJECT)
        return 0;
    for (size_t pos = 0; jsonread_next(v, &pos, &key, &value);)
        if (key.len < sizeof(text) && strcmp(jsonread_text(&key, text, sizeof(text)), name) == 0) {
            *ret = value;
            found++;
        }
    return found > 1 ? err_set(e, PALE_BAD_INPUT, "%s stands there twice", name) : 0;
}

static int wanted(const struct jsonread *v, const char *name, enum jsonread_kind kind, struct jsonread *ret, struct pale_err *e)
{
    int r = member(v, name, ret, e);
    if (r == 0 && ret->kind != kind)
        r = err_set(e, PALE_BAD_INPUT, "%s is missing, or not what it should be", name);
    return r;
}

/* A text of known length, whole. */
static int short_text(const struct jsonread *v, const char *name, char *ret, size_t cap, struct pale_err *e)
{
    struct jsonread m;
    int r = member(v, name, &m, e);
    if (r == 0 && m.kind != JSONREAD_NULL && m.kind != JSONREAD_TEXT)
        r = err_set(e, PALE_BAD_INPUT, "%s is no text", name);
    if (r == 0 && m.len >= cap)
        r = err_set(e, PALE_LIMIT, "%s is longer than %zu bytes", name, cap - 1);
    if (r == 0)
        jsonread_text(&m, ret, cap);
    return r;
}

static int parse_digest(const char *text, char ret[SHA256_HEX], struct pale_err *e)
{
    char shown[80];
    size_t n = strlen(text);
    if (n < PREFIX_LEN || memcmp(text, PREFIX, PREFIX_LEN) != 0)
        return err_set(e, PALE_UNSUPPORTED, "the digest %s is not of sha256, the only kind that is taken",
                       quote_into(shown, sizeof(shown), text, n));
    if (n != PREFIX_LEN + SHA256_HEX - 1 || strspn(text + PREFIX_LEN, "0123456789abcdef") != SHA256_HEX - 1)
        return err_set(e, PALE_BAD_INPUT, "the digest %s is none", quote_into(shown, sizeof(shown), text, n));
    memcpy(ret, text + PREFIX_LEN, SHA256_HEX);
    return 0;
}

/* A descriptor: digest, size, and its media type. */
static int parse_blob(const struct jsonread *v, struct ocijson_blob *ret, char type[TYPE_MAX], struct pale_err *e)
{
    struct jsonread size;
    char digest[PREFIX_LEN + 160];
    if (v->kind != JSONREAD_OBJECT)
        return err_set(e, PALE_BAD_INPUT, "a descriptor is no object");
    int r = short_text(v, "digest", digest, sizeof(digest), e);
    if (r == 0)
        r = parse_digest(digest, ret->hex, e);
    if (r == 0)
        r = short_text(v, "mediaType", type, TYPE_MAX, e);
    if (r == 0)
        r = wanted(v, "size", JSONREAD_NUMBER, &size, e);
    if (r == 0 && (!jsonread_u64(&size, &ret->size) || ret->size > IMAGE_BYTES_MAX))
        r = err_set(e, PALE_LIMIT, "the size of the blob %.12s… is no number, or larger than %llu", ret->hex, IMAGE_BYTES_MAX);
    return r;
}

static bool is_one_of(const char *type, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(type, *list) == 0)
            return true;
    return false;
}

/* --- index --- */

static const char *const index_types[] = {"application/vnd.oci.image.index.v1+json",
                                          "application/vnd.docker.distribution.manifest.list.v2+json", NULL};
static const char *const manifest_types[] = {"application/vnd.oci.image.manifest.v1+json",
                                             "application/vnd.docker.distribution.manifest.v2+json", NULL};

/* 2: for this architecture; 1: it does not say for which; 0: for another. */
static int fits(const struct jsonread *descriptor, const char *architecture, struct pale_err *e)
{
    struct jsonread platform;
    char os[32], arch[32];
    int r = member(descriptor, "platform", &platform, e);
    if (r < 0 || platform.kind != JSONREAD_OBJECT)
        return r < 0 ? r : 1;
    r = short_text(&platform, "os", os, sizeof(os), e);
    if (r == 0)
        r = short_text(&platform, "architecture", arch, sizeof(arch), e);
    if (r < 0)
        return r;
    return strcmp(os, "linux") == 0 && strcmp(arch, architecture) == 0 ? 2 : 0;
}

int ocijson_index(const char *p, size_t n, const char *architecture, struct ocijson_blob *ret, bool *ret_is_index, struct pale_err *e)
{
    struct jsonread v, list, item;
    int best = 0, vague = 0, r = parse(p, n, JSONREAD_OBJECT, "the index", &v, e);
    if (r == 0)
        r = wanted(&v, "manifests", JSONREAD_LIST, &list, e);
    for (size_t pos = 0; r == 0 && jsonread_next(&list, &pos, NULL, &item);) {
        struct ocijson_blob blob;
        char type[TYPE_MAX];
        if ((r = parse_blob(&item, &blob, type, e)) < 0)
            break;
        bool is_index = is_one_of(type, index_types);
        if (!is_index && !is_one_of(type, manifest_types))
            continue;
        int fit = fits(&item, architecture, e);
        r = fit < 0 ? fit : 0;
        vague += fit == 1;
        if (fit > best) {
            best = fit;
            *ret = blob;
            *ret_is_index = is_index;
        }
    }
    if (r < 0)
        return err_prefix(e, "the index");
    if (best == 0)
        return err_set(e, PALE_NOT_FOUND, "the index holds no image for linux on %s", architecture);
    if (best == 1 && vague > 1)
        return err_set(e, PALE_BAD_INPUT, "the index holds %d images and does not say for which hosts; give a layout with one", vague);
    return 0;
}

/* --- manifest --- */

static const char *const layer_types[] = {"application/vnd.oci.image.layer.v1.tar",
                                          "application/vnd.oci.image.layer.v1.tar+gzip",
                                          "application/vnd.oci.image.layer.v1.tar+zstd",
                                          "application/vnd.oci.image.layer.nondistributable.v1.tar",
                                          "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
                                          "application/vnd.docker.image.rootfs.diff.tar",
                                          "application/vnd.docker.image.rootfs.diff.tar.gzip",
                                          "application/vnd.docker.image.rootfs.diff.tar.zstd",
                                          NULL};
static const char *const config_types[] = {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json",
                                           NULL};

static int refuse_type(const char *what, const char *type, struct pale_err *e)
{
    char shown[100];
    return err_set(e, PALE_UNSUPPORTED, "%s is of the type %s, which is not taken", what,
                   quote_into(shown, sizeof(shown), type, strlen(type)));
}

static int parse_layers(const struct jsonread *list, struct ocijson_manifest *ret, struct pale_err *e)
{
    struct jsonread item;
    char type[TYPE_MAX];
    int r = 0;
    for (size_t pos = 0; r == 0 && jsonread_next(list, &pos, NULL, &item);) {
        if (ret->layer_count == IMAGE_LAYERS_MAX)
            return err_set(e, PALE_LIMIT, "it has more than %d layers", IMAGE_LAYERS_MAX);
        r = parse_blob(&item, &ret->layer[ret->layer_count], type, e);
        if (r == 0 && !is_one_of(type, layer_types))
            r = refuse_type("a layer", type, e);
        ret->layer_count++;
    }
    return r;
}

int ocijson_manifest(const char *p, size_t n, struct ocijson_manifest *ret, struct pale_err *e)
{
    struct jsonread v, config, layers;
    char type[TYPE_MAX];
    ret->layer_count = 0;
    int r = parse(p, n, JSONREAD_OBJECT, "the manifest", &v, e);
    if (r == 0)
        r = short_text(&v, "mediaType", type, sizeof(type), e);
    if (r == 0 && *type && !is_one_of(type, manifest_types))
        r = refuse_type("it", type, e);
    if (r == 0)
        r = wanted(&v, "config", JSONREAD_OBJECT, &config, e);
    if (r == 0)
        r = parse_blob(&config, &ret->config, type, e);
    if (r == 0 && !is_one_of(type, config_types))
        r = refuse_type("the configuration", type, e);
    if (r == 0)
        r = wanted(&v, "layers", JSONREAD_LIST, &layers, e);
    if (r == 0)
        r = parse_layers(&layers, ret, e);
    if (r == 0 && ret->layer_count == 0)
        r = err_set(e, PALE_BAD_INPUT, "it has no layers");
    return r < 0 ? err_prefix(e, "the manifest") : 0;
}

/* --- configuration --- */

static int check_text(const struct jsonread *v, const char *name, struct pale_err *e)
{
    if (v->kind == JSONREAD_NULL || (v->kind == JSONREAD_TEXT && v->len < OCIJSON_TEXT_MAX))
        return 0;
    return err_set(e, PALE_BAD_INPUT, "%s is no text, or longer than %u bytes", name, OCIJSON_TEXT_MAX - 1);
}

static int take_text(const struct jsonread *v, const char *name, struct jsonread *ret, struct pale_err *e)
{
    int r = member(v, name, ret, e);
    return r < 0 ? r : check_text(ret, name, e);
}

static int take_list(const struct jsonread *v, const char *name, struct jsonread *ret, struct pale_err *e)
{
    struct jsonread item;
    size_t count = 0;
    int r = member(v, name, ret, e);
    if (r < 0 || ret->kind == JSONREAD_NULL)
        return r;
    if (ret->kind != JSONREAD_LIST)
        return err_set(e, PALE_BAD_INPUT, "%s is no list", name);
    for (size_t pos = 0; r == 0 && jsonread_next(ret, &pos, NULL, &item);) {
        r = item.kind == JSONREAD_TEXT ? check_text(&item, name, e)
                                       : err_set(e, PALE_BAD_INPUT, "%s holds something that is no text", name);
        if (r == 0 && ++count > OCIJSON_ITEMS_MAX)
            r = err_set(e, PALE_LIMIT, "%s holds more than %u texts", name, OCIJSON_ITEMS_MAX);
    }
    return r;
}

static int take_diffs(const struct jsonread *v, struct ocijson_config *ret, struct pale_err *e)
{
    struct jsonread rootfs, list, item;
    int r = wanted(v, "rootfs", JSONREAD_OBJECT, &rootfs, e);
    if (r == 0)
        r = wanted(&rootfs, "diff_ids", JSONREAD_LIST, &list, e);
    for (size_t pos = 0; r == 0 && jsonread_next(&list, &pos, NULL, &item);) {
        char text[PREFIX_LEN + 160];
        if (ret->diff_count == IMAGE_LAYERS_MAX || item.kind != JSONREAD_TEXT || item.len >= sizeof(text))
            return err_set(e, PALE_BAD_INPUT, "diff_ids holds no digest, or more than %d", IMAGE_LAYERS_MAX);
        r = parse_digest(jsonread_text(&item, text, sizeof(text)), ret->diff[ret->diff_count++], e);
    }
    return r;
}

static int check_platform(const struct jsonread *v, const char *architecture, struct pale_err *e)
{
    char os[32], arch[32], shown[80];
    int r = short_text(v, "os", os, sizeof(os), e);
    if (r == 0)
        r = short_text(v, "architecture", arch, sizeof(arch), e);
    if (r == 0 && ((*os && strcmp(os, "linux") != 0) || (*arch && strcmp(arch, architecture) != 0))) {
        snprintf(shown, sizeof(shown), "%s on %s", os, arch);
        r = err_set(e, PALE_UNSUPPORTED, "the image is for %s, and this host is linux on %s", shown, architecture);
    }
    return r;
}

int ocijson_config(const char *p, size_t n, const char *architecture, struct ocijson_config *ret, struct pale_err *e)
{
    struct jsonread v, config = none;
    *ret = (struct ocijson_config){.env = none, .entrypoint = none, .cmd = none, .cwd = none, .user = none};
    int r = parse(p, n, JSONREAD_OBJECT, "the configuration", &v, e);
    if (r == 0)
        r = check_platform(&v, architecture, e);
    if (r == 0)
        r = take_diffs(&v, ret, e);
    if (r == 0)
        r = member(&v, "config", &config, e);
    if (r == 0)
        r = take_list(&config, "Env", &ret->env, e);
    if (r == 0)
        r = take_list(&config, "Entrypoint", &ret->entrypoint, e);
    if (r == 0)
        r = take_list(&config, "Cmd", &ret->cmd, e);
    if (r == 0)
        r = take_text(&config, "WorkingDir", &ret->cwd, e);
    if (r == 0)
        r = take_text(&config, "User", &ret->user, e);
    return r < 0 ? err_prefix(e, "the configuration") : 0;
}

static int each_of(const struct jsonread *v, const char *key, int (*fn)(void *arg, const char *key, const char *text), void *arg)
{
    char text[OCIJSON_TEXT_MAX];
    struct jsonread item;
    int r = 0;
    if (v->kind == JSONREAD_TEXT)
        return v->len ? fn(arg, key, jsonread_text(v, text, sizeof(text))) : 0;
    for (size_t pos = 0; r == 0 && v->kind == JSONREAD_LIST && jsonread_next(v, &pos, NULL, &item);)
        r = fn(arg, key, jsonread_text(&item, text, sizeof(text)));
    return r;
}

int ocijson_each(const struct ocijson_config *c, int (*fn)(void *arg, const char *key, const char *text), void *arg)
{
    const struct {
        const struct jsonread *value;
        const char *key;
    } rows[] = {{&c->env, "env"}, {&c->entrypoint, "entrypoint"}, {&c->cmd, "cmd"}, {&c->cwd, "cwd"}, {&c->user, "user"}};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        r = each_of(rows[i].value, rows[i].key, fn, arg);
    return r;
}

/* --- docker's archive --- */

static int take_name(const struct jsonread *v, char ret[OCIJSON_NAME_MAX], struct pale_err *e)
{
    if (v->kind != JSONREAD_TEXT || v->len == 0 || v->len >= OCIJSON_NAME_MAX)
        return err_set(e, PALE_BAD_INPUT, "a name of a file is missing or too long");
    jsonread_text(v, ret, OCIJSON_NAME_MAX);
    return 0;
}

int ocijson_docker(const char *p, size_t n, struct ocijson_docker *ret, struct pale_err *e)
{
    struct jsonread v, first, more, config, layers, item;
    size_t pos = 0;
    ret->layer_count = 0;
    int r = parse(p, n, JSONREAD_LIST, "manifest.json", &v, e);
    if (r < 0)
        return r;
    if (!jsonread_next(&v, &pos, NULL, &first) || first.kind != JSONREAD_OBJECT || jsonread_next(&v, &pos, NULL, &more))
        return err_set(e, PALE_BAD_INPUT, "manifest.json must name one image; save one alone");
    r = wanted(&first, "Config", JSONREAD_TEXT, &config, e);
    if (r == 0)
        r = take_name(&config, ret->config, e);
    if (r == 0)
        r = wanted(&first, "Layers", JSONREAD_LIST, &layers, e);
    for (pos = 0; r == 0 && jsonread_next(&layers, &pos, NULL, &item);) {
        if (ret->layer_count == IMAGE_LAYERS_MAX)
            r = err_set(e, PALE_LIMIT, "it has more than %d layers", IMAGE_LAYERS_MAX);
        else
            r = take_name(&item, ret->layer[ret->layer_count++], e);
    }
    if (r == 0 && ret->layer_count == 0)
        r = err_set(e, PALE_BAD_INPUT, "it has no layers");
    return r < 0 ? err_prefix(e, "manifest.json") : 0;
}

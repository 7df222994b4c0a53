/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for image/ocijson. */
#include "base/test.h"

#include <stdio.h>

#include "image/ocijson.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "\"digest\":\"sha256:" HEX "\",\"size\":7"
#define MANIFEST_TYPE "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\""
#define CONFIG "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\"," DIGEST "}"
#define LAYER "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\"," DIGEST "}"
#define GOOD_MANIFEST "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER "," LAYER "]}"
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:" HEX "\"]}"
#define GOOD_CONFIG                                                                                                                        \
    "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=1\",\"B=2\"],\"Cmd\":[\"sh\"],\"WorkingDir\":\"/"               \
    "w\",\"User\":\"u\"}," ROOTFS "}"

static struct ocijson_manifest manifest;
static struct ocijson_config config;
static struct ocijson_docker docker;
static struct pale_err e;

static int read_index(const char *text, struct ocijson_blob *b, bool *is_index)
{
    return ocijson_index(text, strlen(text), "amd64", b, is_index, &e);
}

static void an_index_gives_the_image_for_the_architecture(void **state)
{
    (void)state;
    struct ocijson_blob b;
    bool is_index = true;
    assert_int_equal(read_index("{\"manifests\":[{" MANIFEST_TYPE "," DIGEST ",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},"
                                "{" MANIFEST_TYPE
                                ",\"digest\":\"sha256:f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":9,"
                                "\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
                                &b, &is_index),
                     0);
    assert_false(is_index);
    assert_int_equal(b.size, 9);
    assert_int_equal(b.hex[0], 'f');
}

static void an_index_with_one_image_need_not_say_for_which_host(void **state)
{
    (void)state;
    struct ocijson_blob b;
    bool is_index = true;
    assert_int_equal(read_index("{\"manifests\":[{" MANIFEST_TYPE "," DIGEST "}]}", &b, &is_index), 0);
    assert_int_equal(read_index("{\"manifests\":[{" MANIFEST_TYPE "," DIGEST "},{" MANIFEST_TYPE "," DIGEST "}]}", &b, &is_index),
                     -PALE_BAD_INPUT);
    assert_int_equal(read_index("{\"manifests\":[]}", &b, &is_index), -PALE_NOT_FOUND);
    assert_int_equal(read_index("{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.index.v1+json\"," DIGEST "}]}", &b, &is_index),
                     0);
    assert_true(is_index);
}

static void a_manifest_gives_configuration_and_layers(void **state)
{
    (void)state;
    assert_int_equal(ocijson_manifest(GOOD_MANIFEST, strlen(GOOD_MANIFEST), &manifest, &e), 0);
    assert_int_equal(manifest.layer_count, 2);
    assert_string_equal(manifest.layer[1].hex, HEX);
    assert_string_equal(manifest.config.hex, HEX);
    assert_int_equal(manifest.config.size, 7);
}

static void a_manifest_that_is_not_right_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"[]", "JSON"},
        {"{}", "config is missing"},
        {"{" CONFIG "}", "layers is missing"},
        {"{" CONFIG ",\"layers\":[]}", "no layers"},
        {"{" CONFIG ",\"layers\":[1]}", "no object"},
        {"{" CONFIG "," CONFIG ",\"layers\":[" LAYER "]}", "twice"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"application/x-sh\"," DIGEST "}]}", "not taken"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"x\",\"digest\":\"sha256:00\",\"size\":1}]}", "is none"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"x\",\"digest\":\"sha512:00\",\"size\":1}]}", "not of sha256"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"x\",\"digest\":\"sha256:" HEX "\",\"size\":-1}]}", "size"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"x\",\"digest\":\"sha256:" HEX "\",\"size\":99999999999999}]}", "size"},
        {"{" CONFIG ",\"layers\":[{\"mediaType\":\"x\",\"digest\":\"sha256:" HEX "\"}]}", "size"},
        {"{\"mediaType\":\"application/vnd.oci.image.index.v1+json\"," CONFIG ",\"layers\":[" LAYER "]}", "not taken"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(ocijson_manifest(rows[i].text, strlen(rows[i].text), &manifest, &e) < 0);
        if (!strstr(e.text, rows[i].said))
            fail_msg("%s: %s", rows[i].text, e.text);
    }
}

static void no_part_of_a_manifest_is_a_manifest(void **state)
{
    (void)state;
    for (size_t n = 0; n < strlen(GOOD_MANIFEST); n++)
        assert_true(ocijson_manifest(GOOD_MANIFEST, n, &manifest, &e) < 0);
}

static void layers_have_a_maximum(void **state)
{
    (void)state;
    static char text[(IMAGE_LAYERS_MAX + 2) * sizeof(LAYER) + 512];
    size_t at = (size_t)snprintf(text, sizeof(text), "{" CONFIG ",\"layers\":[" LAYER);
    for (int i = 0; i < IMAGE_LAYERS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "," LAYER);
    snprintf(text + at, sizeof(text) - at, "]}");
    assert_int_equal(ocijson_manifest(text, strlen(text), &manifest, &e), -PALE_LIMIT);
}

static int join(void *arg, const char *key, const char *text)
{
    size_t n = strlen(arg);
    snprintf((char *)arg + n, 256 - n, "%s %s;", key, text);
    return 0;
}

static void a_configuration_gives_its_texts_in_one_order(void **state)
{
    (void)state;
    char all[256] = "";
    assert_int_equal(ocijson_config(GOOD_CONFIG, strlen(GOOD_CONFIG), "amd64", &config, &e), 0);
    assert_int_equal(ocijson_each(&config, join, all), 0);
    assert_string_equal(all, "env A=1;env B=2;cmd sh;cwd /w;user u;");
    assert_int_equal(config.diff_count, 1);
    assert_string_equal(config.diff[0], HEX);
    for (size_t n = 0; n < strlen(GOOD_CONFIG); n++)
        assert_true(ocijson_config(GOOD_CONFIG, n, "amd64", &config, &e) < 0);
}

static void a_configuration_that_is_not_right_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"{}", "rootfs"},
        {"{\"os\":\"windows\"," ROOTFS "}", "windows"},
        {"{\"architecture\":\"mips\"," ROOTFS "}", "mips"},
        {"{\"config\":{\"Env\":{}}," ROOTFS "}", "no list"},
        {"{\"config\":{\"Env\":[1]}," ROOTFS "}", "no text"},
        {"{\"config\":{\"User\":[]}," ROOTFS "}", "no text"},
        {"{\"config\":{\"Env\":[],\"Env\":[]}," ROOTFS "}", "twice"},
        {"{\"rootfs\":{\"diff_ids\":[\"sha256:zz\"]}}", "is none"},
        {"{\"rootfs\":{\"diff_ids\":[7]}}", "no digest"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(ocijson_config(rows[i].text, strlen(rows[i].text), "amd64", &config, &e) < 0);
        if (!strstr(e.text, rows[i].said))
            fail_msg("%s: %s", rows[i].text, e.text);
    }
    assert_int_equal(ocijson_config("{\"config\":null," ROOTFS "}", strlen("{\"config\":null," ROOTFS "}"), "amd64", &config, &e), 0);
}

static void docker_names_one_image(void **state)
{
    (void)state;
    static const char good[] = "[{\"Config\":\"c.json\",\"RepoTags\":null,\"Layers\":[\"a/layer.tar\",\"b/layer.tar\"]}]";
    static const char *const bad[] = {"[]",
                                      "{}",
                                      "[1]",
                                      "[{\"Config\":\"c\",\"Layers\":[]}]",
                                      "[{\"Layers\":[\"a\"]}]",
                                      "[{\"Config\":\"c\",\"Layers\":[1]}]",
                                      "[{\"Config\":\"c\",\"Layers\":[\"a\"]},{\"Config\":\"c\",\"Layers\":[\"a\"]}]"};
    assert_int_equal(ocijson_docker(good, strlen(good), &docker, &e), 0);
    assert_int_equal(docker.layer_count, 2);
    assert_string_equal(docker.layer[1], "b/layer.tar");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_true(ocijson_docker(bad[i], strlen(bad[i]), &docker, &e) < 0);
}

TESTS(cmocka_unit_test(an_index_gives_the_image_for_the_architecture),
      cmocka_unit_test(an_index_with_one_image_need_not_say_for_which_host), cmocka_unit_test(a_manifest_gives_configuration_and_layers),
      cmocka_unit_test(a_manifest_that_is_not_right_is_refused), cmocka_unit_test(no_part_of_a_manifest_is_a_manifest),
      cmocka_unit_test(layers_have_a_maximum), cmocka_unit_test(a_configuration_gives_its_texts_in_one_order),
      cmocka_unit_test(a_configuration_that_is_not_right_is_refused), cmocka_unit_test(docker_names_one_image))

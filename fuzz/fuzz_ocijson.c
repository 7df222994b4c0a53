/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: image/ocijson, with the JSON of an image. The first byte says what it is said to be. */
#include <assert.h>
#include <string.h>

#include "image/ocijson.h"
#include "input.h"

static void check_blob(const struct ocijson_blob *b)
{
    assert(strlen(b->hex) == SHA256_HEX - 1 && strspn(b->hex, "0123456789abcdef") == SHA256_HEX - 1 && b->size <= IMAGE_BYTES_MAX);
}

static int count(void *arg, const char *key, const char *text)
{
    size_t *n = arg;
    assert(key[0] && strlen(text) < OCIJSON_TEXT_MAX);
    return ++*n > 3 * OCIJSON_ITEMS_MAX + 2 ? -1 : 0;
}

static void check_index(const char *p, size_t n)
{
    struct ocijson_blob b;
    struct pale_err e;
    bool is_index;
    if (ocijson_index(p, n, "amd64", &b, &is_index, &e) == 0)
        check_blob(&b);
    else
        assert(e.code && e.text[0]);
}

static void check_manifest(const char *p, size_t n)
{
    static struct ocijson_manifest m;
    struct pale_err e;
    if (ocijson_manifest(p, n, &m, &e) < 0)
        return;
    assert(m.layer_count > 0 && m.layer_count <= IMAGE_LAYERS_MAX);
    check_blob(&m.config);
    for (size_t i = 0; i < m.layer_count; i++)
        check_blob(&m.layer[i]);
}

static void check_config(const char *p, size_t n)
{
    static struct ocijson_config c;
    struct pale_err e;
    size_t texts = 0;
    if (ocijson_config(p, n, "amd64", &c, &e) < 0)
        return;
    assert(c.diff_count <= IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < c.diff_count; i++)
        assert(strlen(c.diff[i]) == SHA256_HEX - 1);
    assert(ocijson_each(&c, count, &texts) == 0);
}

static void check_docker(const char *p, size_t n)
{
    static struct ocijson_docker d;
    struct pale_err e;
    if (ocijson_docker(p, n, &d, &e) < 0)
        return;
    assert(d.layer_count > 0 && d.layer_count <= IMAGE_LAYERS_MAX && strlen(d.config) < OCIJSON_NAME_MAX);
    for (size_t i = 0; i < d.layer_count; i++)
        assert(strlen(d.layer[i]) < OCIJSON_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(const char *p, size_t n) = {check_index, check_manifest, check_config, check_docker};
    if (size == 0)
        return 0;
    checks[data[0] % 4]((const char *)data + 1, size - 1);
    return 0;
}

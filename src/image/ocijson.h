/* SPDX-License-Identifier: Apache-2.0 */
/* What the JSON of an OCI image layout, or of a docker archive, says: which manifest, which layers, what configuration.
 *
 * Pure: text in, struct out. The text comes from a stranger: it is at most IMAGE_JSON_MAX long, every digest is sha256 in lower-case hex,
 * what is counted has its maximum, a field that stands twice is an error. Fields that are not asked for are passed over, as the
 * specification says. Media types are those of OCI and of docker's version 2, schema 2. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/jsonread.h"
#include "base/limits.h"
#include "base/sha256.h"

#define OCIJSON_TEXT_MAX 32768u /* a variable or argument in a configuration */
#define OCIJSON_ITEMS_MAX 1024u /* of a list in a configuration */
#define OCIJSON_NAME_MAX 256u   /* of a file in a docker archive */

struct ocijson_blob {
    char hex[SHA256_HEX];
    uint64_t size;
};

struct ocijson_manifest {
    struct ocijson_blob config;
    size_t layer_count;
    struct ocijson_blob layer[IMAGE_LAYERS_MAX];
};

/* A docker archive's own list, in paths of the archive. */
struct ocijson_docker {
    char config[OCIJSON_NAME_MAX];
    size_t layer_count;
    char layer[IMAGE_LAYERS_MAX][OCIJSON_NAME_MAX];
};

/* Parts of the configuration's text, each checked. */
struct ocijson_config {
    struct jsonread env, entrypoint, cmd, cwd, user; /* of kind JSONREAD_NULL if it has none */
    size_t diff_count;
    char diff[IMAGE_LAYERS_MAX][SHA256_HEX]; /* digests of the layers as they are uncompressed */
};

/* This host's architecture as images name it, from the kernel's name of it. */
const char *ocijson_architecture(const char *machine);

/* The image for linux and an architecture in an index; *ret_is_index if what was chosen is an index again. */
int ocijson_index(const char *p, size_t n, const char *architecture, struct ocijson_blob *ret, bool *ret_is_index,
                  struct pale_err *e) MUST_CHECK;

int ocijson_manifest(const char *p, size_t n, struct ocijson_manifest *ret, struct pale_err *e) MUST_CHECK;

/* ret points into p. */
int ocijson_config(const char *p, size_t n, const char *architecture, struct ocijson_config *ret, struct pale_err *e) MUST_CHECK;

int ocijson_docker(const char *p, size_t n, struct ocijson_docker *ret, struct pale_err *e) MUST_CHECK;

/* Calls fn for each text of a configuration: first of env, then entrypoint, cmd, cwd, user. Stops at a negative answer. */
int ocijson_each(const struct ocijson_config *c, int (*fn)(void *arg, const char *key, const char *text), void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
/* The building of an image: from a source into staging, mended and digested there, then into the store.
 *
 * Each source is a function that fills the root folder of the staging and says in the manifest what it took. What strangers packed is
 * unpacked in a box (cli/unpack.h); what the host's own programs and folders give is not. */
#pragma once

#include <signal.h>

#include "cli/cli.h"
#include "cli/commission.h"
#include "cli/progress.h"
#include "cli/spout.h"
#include "image/manifest.h"
#include "image/ocijson.h"
#include "image/staging.h"
#include "image/store.h"

struct build {
    struct args *args;
    struct commission commission;
    struct store store;
    struct staging staging;
    char root[PATH_BYTES_MAX]; /* the folder to fill, real path */
    int root_fd;
    struct manifest manifest;
    struct left left;
    char source_hex[SHA256_HEX], suite[64], file[FILE_NAME_MAX + 1]; /* where the manifest's texts are kept */
    struct buf config_text;
    struct ocijson_config config;
    const volatile sig_atomic_t *stop; /* set once somebody interrupts */
    struct progress progress;
};

typedef int build_source(struct build *b, struct pale_err *e);

build_source build_tar;    /* --file or --url */
build_source build_oci;    /* build_oci.c */
build_source build_debian; /* build_debian.c: mmdebstrap */
build_source build_copy;   /* build_host.c: host-copy */
build_source build_minimal;

/* Does it all, and says what came of it. The exit status. */
int build_run(struct args *a, const char *name);

/* The bytes that --file or --url mean. */
int build_open_source(struct build *b, struct spout *s, struct pale_err *e) MUST_CHECK;

/* One archive into one folder, in a box; then its digest. */
int build_unpack(struct build *b, struct spout *s, const char *folder, const char *pass, char ret_hex[SHA256_HEX], uint64_t *ret_bytes,
                 struct pale_err *e) MUST_CHECK;

/* What came of it, for people. */
void build_tell(const char *name, const char *from, const char *digest, uint64_t bytes, uint64_t files);

/* One line about what goes on, unless --json without --progress. */
void build_say(const struct build *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

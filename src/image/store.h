/* SPDX-License-Identifier: Apache-2.0 */
/* The store of images: a root folder each, kept by the digest of what is in it, with names that lead to them.
 *
 *     images/by-digest/HEX/root        the tree
 *     images/by-digest/HEX/inventory   its listing (image/imprint.h), whose digest is HEX
 *     images/by-digest/HEX/manifest.json   where it came from, and what was left out (image/manifest.h)
 *     images/by-digest/HEX/lock        whoever uses the image has a shared lock on it
 *     images/names/NAME                HEX
 *
 * How it works: everything below images is ours alone and no box ever writes there. An image gets its place by one rename when all of it
 * is on the disk, and its name by another, both under the store's lock; so whoever is killed leaves the old state or the new. What is
 * removed leaves by one rename too, into staging. Images do not change: a name can be given to another one, and whoever must find
 * the same again remembers the digest. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"

#define STORE_NAME_MAX 128 /* so that a name with a digest is still a name of a policy */

struct store {
    char dir[PATH_BYTES_MAX], staging_dir[PATH_BYTES_MAX]; /* real */
    int fd, staging_fd, digests_fd, names_fd;
};

/* data_dir: pale's data folder; all that is missing is made. */
int store_open(struct store *s, const char *data_dir, struct pale_err *e) MUST_CHECK;
void store_close(struct store *s);
#define own_store CLEANUP(store_close) struct store
#define STORE_NONE                                                                                                                         \
    {                                                                                                                                      \
        .fd = -1, .staging_fd = -1, .digests_fd = -1, .names_fd = -1                                                                       \
    }

/* An image in use. While lock_fd is open nobody removes it; a process that has it need not know more of the store. */
struct image {
    char name[IMAGE_NAME_MAX + 1]; /* by which it was asked for, or its first; "": it has none */
    char digest[SHA256_HEX];       /* in hex, without "sha256:" */
    char root[PATH_BYTES_MAX];     /* real path of the root folder */
    int lock_fd;
    struct buf manifest;   /* its text … */
    struct jsonread facts; /* … read */
};

void store_release(struct image *i);
#define own_image CLEANUP(store_release) struct image

/* A name an image can have: of those that a policy takes, without '/' and '@', and not "sha256:…". */
bool store_is_name(const char *name);

/* Finds an image by NAME, sha256:HEX (of which the first 12 digits will do, if they tell it from others) or NAME@sha256:HEX, which is
 * found by its digest, and holds it. PALE_NOT_FOUND if there is none, PALE_BAD_INPUT if ref cannot be one. */
int store_find(const struct store *s, const char *ref, struct image *ret, struct pale_err *e) MUST_CHECK;

/* Every image by every name, sorted, then those without; stops at a negative answer. */
int store_each(const struct store *s, int (*fn)(void *arg, const struct image *i), void *arg, struct pale_err *e) MUST_CHECK;

/* What speaks against the removal of an image: the caller looks at its boxes' policies. name is "" if the image is to go whatever it is
 * called; is_last if the image itself goes with the name. An error that names the box, or 0. */
typedef int store_users_fn(void *arg, const char *name, const char *digest, bool is_last, struct pale_err *e);

/* Removes a name, and the image with its last one; with sha256:HEX the image and all its names. PALE_BUSY while somebody uses it. */
int store_remove(const struct store *s, const char *ref, store_users_fn *users, void *arg, struct pale_err *e) MUST_CHECK;

/* Reads all of an image again; PALE_CORRUPT names the first thing that is not as it was. */
struct store_check {
    const volatile sig_atomic_t *stop;
    void (*progress)(void *arg, uint64_t entries, uint64_t bytes);
    void *progress_arg;
};
int store_verify(const struct store *s, const struct image *i, const struct store_check *c, struct pale_err *e) MUST_CHECK;

/* Gives what was made in a staging folder (its "made", with root, inventory and manifest) its place and its name. If there is such an
 * image already, only the name. */
struct staging;
int store_commit(struct staging *from, const char *digest, const char *name, struct pale_err *e) MUST_CHECK;

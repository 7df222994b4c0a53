/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of a project that are watched: by the kernel's watch descriptor, each with its name and the one it is in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/guard.h"

struct folder {
    int wd;          /* below 0: it could not be watched */
    unsigned parent; /* its number; 0: this is the project itself, or nobody knows */
    unsigned serial, parent_serial;
    unsigned next;      /* in its bucket, or of those that are free */
    unsigned levels;    /* to look at below it, … */
    bool queued;        /* … as it is about to be */
    bool missed;        /* it was not where it should be when its turn came */
    bool is_repository; /* looks like a bare git repository: names in it count as if it were called .git */
    char *name;
};

struct folders {
    struct folder *item; /* 0 is never used */
    unsigned cap, count, free, serial;
    unsigned *bucket;
    unsigned buckets; /* a power of two */
};

#define FOLDER_ROOT 1u

void folders_done(struct folders *f);

/* The number of the folder with this watch, or 0. */
unsigned folders_find(const struct folders *f, int wd);

/* Puts a folder where it stands now; *ret_new if it was not known. 0 if there is no memory. */
unsigned folders_put(struct folders *f, int wd, unsigned parent, const char *name, bool *ret_new);

void folders_drop(struct folders *f, unsigned n);

/* Its path below the project ("" for the project). False if it is too long, or one above it is not known any more. */
bool folders_path(const struct folders *f, unsigned n, char *ret, size_t cap);

/* The end of its path as names in it are looked up: at most that many components, and none above a repository, which counts as .git. */
bool folders_look_path(const struct folders *f, unsigned n, size_t components, char *ret, size_t cap);

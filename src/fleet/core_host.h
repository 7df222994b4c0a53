/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests of fleet/core: a disk, a database, a clock that is set, and whoever waits. */
#pragma once

#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "fleet/core.h"

#define NOW 1000
#define WALL 1700000000000

struct answer {
    int count;
    enum pale_code code;
    char text[PALE_ERR_TEXT_MAX], told[40], id[BOX_ID_LEN + 1], name[BOX_NAME_MAX + 1];
    enum core_state state;
    const char *then_use; /* asks for this as soon as it is answered */
    struct answer *then;
};

struct order {
    struct core_deed d;
    char name[BOX_NAME_MAX + 1], new_name[BOX_NAME_MAX + 1];
};

/* A disk of boxes whose ids are sixteen times the first letter of their names, and a database. */
struct host {
    struct core *core;
    struct core_io io;
    int64_t now, wall;
    uint64_t born[256], births;
    bool row_there[256], no_rows;
    struct core_terms rows[256];
    struct order last;
    int orders, links, puts;
    char events[64]; /* p: a row put, d: dropped, o: a deed ordered */
};

const char *host_id(const char *name);
struct core_sight host_sight(const struct host *h, const char *name);

/* A life of the core begins on it. */
void host_begin(struct host *h);
struct host *host_new(void);
void host_free(struct host *h);

/* what: the digest of the request is full of it. */
void host_create(struct host *h, const char *name, const char *key, uint8_t what, bool ensure, struct answer *a);

/* The last deed ends, and did on the disk what it should if that is said. */
void host_done(struct host *h, enum pale_code code, bool effect);

/* A box that is there; and one that is up. */
void host_have(struct host *h, const char *name, const char *key);
void host_have_up(struct host *h, const char *name);
void host_expect(const struct answer *a, enum pale_code code);

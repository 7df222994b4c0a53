/* SPDX-License-Identifier: Apache-2.0 */
/* What gc prints, whoever has collected: this host, or a daemon elsewhere. */
#pragma once

#include "box/gc.h"
#include "cli/cli.h"

struct shown_gc {
    bool is_json, only_tells;
    struct buf text;
    struct json json;
};
void shown_gc_done(struct shown_gc *s);
#define own_shown_gc CLEANUP(shown_gc_done) struct shown_gc

/* Begun, then an image each, then all of it; that gives the exit status. */
void shown_gc_begin(struct shown_gc *s, const struct args *a);
void shown_gc_image(void *arg, const struct imageuse_idle *i);
int shown_gc_end(struct shown_gc *s, const struct gc_result *g);

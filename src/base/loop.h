/* SPDX-License-Identifier: Apache-2.0 */
/* One event loop per process: descriptors and timers, no threads, nothing that blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop_source {
    int fd;
    uint32_t events; /* EPOLL… bits asked for */
    void (*ready)(struct loop_source *s, uint32_t events);
};

struct loop_timer {
    int64_t due_ms; /* monotonic */
    bool armed;
    void (*fire)(struct loop_timer *t);
    struct loop_timer *next;
};

struct loop {
    int epoll_fd;
    bool stop;
    struct loop_timer *timers; /* soonest first */
};

int loop_open(struct loop *l, struct pale_err *e) MUST_CHECK;

/* The source must outlive its registration; loop_remove does not close the descriptor. */
int loop_add(struct loop *l, struct loop_source *s, uint32_t events, struct pale_err *e) MUST_CHECK;
void loop_want(struct loop *l, struct loop_source *s, uint32_t events);
void loop_remove(struct loop *l, struct loop_source *s);

/* (Re)arms a timer; a timer fires once. */
void loop_arm(struct loop *l, struct loop_timer *t, int64_t due_ms);
void loop_disarm(struct loop *l, struct loop_timer *t);

/* Runs until stop is set. */
int loop_run(struct loop *l, struct pale_err *e) MUST_CHECK;

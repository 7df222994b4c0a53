/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a box's network: its meters, and records about it. */
#pragma once

#include "cli/cli.h"
#include "cli/netline.h"
#include "wire/message.h"

/* A record for people, without its time and event; quoted. */
void shown_net_line(const struct netline *l, struct buf *out);

/* Hosts by what was counted for them. */
#define SHOWN_HOSTS_MAX 512u
struct shown_net {
    bool has_network;
    uint64_t cut; /* bits of enum msg_cut */
    uint64_t open, connections, refused, in, out;
    size_t count;
    struct {
        char name[4 * DOMAIN_NAME_MAX];
        uint16_t port;
        uint64_t connections, refused, in, out;
    } host[SHOWN_HOSTS_MAX];
};

/* From a keeper, on a connection of its own. */
struct reach;
int shown_net_ask(struct reach *r, struct shown_net *ret, struct pale_err *e) MUST_CHECK;
void shown_net_json(const struct shown_net *n, struct json *j, const char *key);
/* "2 open, 31 in all, 4 refused, 1.2MiB in, 30KiB out" */
void shown_net_sum(const struct shown_net *n, struct buf *out);
/* Both, as a part of inspect. */
void shown_net_print(const struct shown_net *n);
/* The first so many of them, as a table. */
void shown_net_table(const struct shown_net *n, size_t most);

/* SPDX-License-Identifier: Apache-2.0 */
/* The narrowest rules for what a box was seen to do, from its log.
 *
 * The names were chosen by whoever is in the box. A rule is proposed only for a name in canonical form, with the ports that were dialled;
 * for a pattern over names only where more than three of them stand beneath one that cannot be a registry's own. What is left out is told,
 * with the reason. Pure. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "cli/netline.h"

#define LESSON_HOSTS_MAX 1024u
#define LESSON_LEFT_MAX 128u
#define LESSON_PORTS_MAX 16u
#define LESSON_SIBLINGS 3u /* more than so many become one pattern */

struct lesson_host {
    char name[DOMAIN_NAME_MAX + 3]; /* "*." in front of a pattern */
    uint16_t port[LESSON_PORTS_MAX];
    size_t ports;
    uint64_t allowed, refused; /* times */
    bool by_name;              /* it was refused by its name */
    bool guessed;              /* … and never dialled: its port is a guess */
    unsigned stands_for;       /* so many names, of a pattern; 0: it is a name */
    bool is_gone;              /* a pattern stands for it */
};

struct lesson_left {
    char what[160]; /* quoted */
    char why[200];
    uint64_t times;
};

struct lesson {
    size_t hosts, lefts;
    uint64_t more; /* happenings that there was no room for */
    struct lesson_host host[LESSON_HOSTS_MAX];
    struct lesson_left left[LESSON_LEFT_MAX];
};

void lesson_take(struct lesson *l, const struct netline *line);

/* What the meters count and the log does not tell, for there was too much of it. */
void lesson_take_meter(struct lesson *l, const char *name, uint16_t port, uint64_t connections, uint64_t refused);

/* After all of it: ports are guessed, patterns made. */
void lesson_settle(struct lesson *l);

/* A part of a policy file, with what was left out as comments; and the same for programs. */
void lesson_yaml(const struct lesson *l, const char *box, struct buf *out);
void lesson_json(const struct lesson *l, struct json *j);

/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of this folder share: policies made from lines, and random ones. */
#pragma once

#include "base/test.h"

#include <stdlib.h>

#include "policy/field.h"
#include "policy/policy.h"

static inline void set(struct policy *p, const char *key, const char *value)
{
    struct pale_err e = {0};
    if (policy_set(p, key, value, &e) < 0)
        fail_msg("%s %s: %s", key, value, e.text);
}

/* The defaults with key, value, …, NULL set on top. The caller frees it. */
static inline struct policy made(const char *const *pairs)
{
    struct pale_err e = {0};
    struct policy p;
    assert_int_equal(policy_init(&p, &e), 0);
    for (; *pairs; pairs += 2)
        set(&p, pairs[0], pairs[1]);
    return p;
}
#define POLICY(...) made((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        print_error("\"%s\" does not say \"%s\"\n", text ? text : "", part);
        fail();
    }
}

/* A small repeatable source of numbers. */
static inline unsigned dice(uint64_t *seed, unsigned sides)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (unsigned)(*seed >> 20) % sides;
}

/* Values that meet one another: nested paths, patterns over names, limits below and above. */
static const struct sample {
    const char *key, *value;
} samples[] = {
    {"tier", "auto"},
    {"tier", "native"},
    {"tier", "gvisor"},
    {"tier", "microvm"},
    {"image", "-"},
    {"image", "debian:12"},
    {"project", "none"},
    {"project", "ro"},
    {"project", "review"},
    {"project", "live"},
    {"project.path", "-"},
    {"project.path", "/w/p"},
    {"project.path", "/w/p/q"},
    {"read", "/w"},
    {"read", "/w/p/q"},
    {"read", "/data"},
    {"read", "/data/a"},
    {"write", "/w"},
    {"write", "/w/p/q"},
    {"write", "/data"},
    {"write", "/data/a"},
    {"write", "/data/a b%\xc3\xa9"},
    {"volumes", "/data:/mnt/d"},
    {"volumes", "/data/a:/mnt/d/a:ro"},
    {"volumes", "/data/a:/mnt/d/a"},
    {"volumes", "/srv/x:/data/a"},
    {"volumes", "/srv/x:/w/p:ro"},
    {"volume_root", "-"},
    {"volume_root", "/data"},
    {"network", "none"},
    {"network", "filtered"},
    {"network", "filtered"},
    {"network", "open"},
    {"network", "host"},
    {"network.egress", "x.org"},
    {"network.egress", "*.x.org"},
    {"network.egress", "a.x.org:443"},
    {"network.egress", "*.a.x.org:80,443=ask"},
    {"network.egress", "a.x.org=deny"},
    {"network.egress", "*.x.org:80=deny"},
    {"network.egress", "*=ask"},
    {"network.egress", "x.org@60"},
    {"network.egress", "*.x.org@30"},
    {"network.egress", "*:25=deny"},
    {"network.egress", "10.0.0.0/8:80,443"},
    {"network.egress", "db.host.pale:5432=ask"},
    {"network.egress", "x.org:80=ask@5+out=1000+in=2000+conns=3+time=mon-fri,sun/08:00-18:30+methods=GET,PUT+paths=/a,/b/*"},
    {"network.presets", "dev@1"},
    {"network.publish", "8080:80"},
    {"network.publish", "9090"},
    {"limits.memory", "1G"},
    {"limits.memory", "8G"},
    {"limits.memory", "none"},
    {"limits.processes", "64"},
    {"limits.cpu_seconds", "30"},
    {"limits.cpu_share", "1.5"},
    {"limits.disk", "1G"},
    {"limits.wall", "5m"},
    {"limits.output", "1M"},
    {"limits.tokens", "100000"},
    {"limits.cost_usd", "0.10"},
    {"env.set", "A=1"},
    {"env.set", "LC_ALL=C x=\n"},
    {"env.pass", "A"},
    {"env.pass", "LC_*"},
    {"env.pass", "LC_ALL"},
    {"env.pass", "A*"},
    {"env.pass", "AWS_PROFILE"},
    {"env.pass", "API_KEY"},
    {"env.allow", "A"},
    {"env.allow", "LC_*"},
    {"env.allow", "API_KEY"},
    {"scratch", "disk"},
    {"scratch", "memory"},
    {"seccomp", "strict"},
    {"seccomp", "debug"},
    {"seccomp", "image-build"},
    {"guard", "x/y"},
    {"guard", ".git"},
    {"guard", "y"},
};
#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

/* Some samples on top of the defaults. */
static inline struct policy some_policy(uint64_t *seed, unsigned most)
{
    struct policy p = POLICY();
    for (unsigned n = dice(seed, most + 1); n > 0; n--) {
        const struct sample *s = &samples[dice(seed, SAMPLE_COUNT)];
        set(&p, s->key, s->value);
    }
    return p;
}

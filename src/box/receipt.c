/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the judging of probes. */
#include "box/receipt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum answer { GOT, FLAG, COUNT, SPACE };
#define SHORT false
#define FULL true

static const struct expectation {
    const char *name;
    bool only_full;
    enum answer answer;
    const char *right, *defence;
} expectations[PROBE_COUNT] = {
#define PROBE(id, name, when, answer, right, defence) [PROBE_##id] = {name, when, answer, right, defence},
#include "init/probe.def"
#undef PROBE
};

static const char *const space_names[SPACE_COUNT] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

/* Names for the errnos that attempts meet; the rest are numbers. */
static const struct {
    uint32_t value;
    const char *name;
} errnos[] = {
    {0, "open"},
    {EPERM, "EPERM"},
    {EACCES, "EACCES"},
    {ENOSYS, "ENOSYS"},
    {EROFS, "EROFS"},
    {ENOENT, "ENOENT"},
    {ESRCH, "ESRCH"},
    {EAGAIN, "EAGAIN"},
    {ENOSPC, "ENOSPC"},
    {EFBIG, "EFBIG"},
    {EINVAL, "EINVAL"},
    {EFAULT, "EFAULT"},
    {EBADF, "EBADF"},
    {EMFILE, "EMFILE"},
    {ENOMEM, "ENOMEM"},
    {EAFNOSUPPORT, "EAFNOSUPPORT"},
    {ENETUNREACH, "ENETUNREACH"},
    {ECONNREFUSED, "ECONNREFUSED"},
    {ECONNRESET, "ECONNRESET"},
};

void receipt_spaces(uint32_t ret[SPACE_COUNT])
{
    for (int i = 0; i < SPACE_COUNT; i++) {
        char path[40];
        struct stat st;
        snprintf(path, sizeof(path), "/proc/self/ns/%s", space_names[i]);
        ret[i] = stat(path, &st) == 0 ? (uint32_t)st.st_ino : 0;
    }
}

static bool is_one_of(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, "|");
        if (len == n && memcmp(at, word, n) == 0)
            return true;
        at += len;
        at += *at == '|';
    }
    return false;
}

static void show_number(char ret[40], uint64_t v)
{
    snprintf(ret, 40, "%llu", (unsigned long long)v);
}

static void show_got(char ret[40], uint32_t v)
{
    for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
        if (errnos[i].value == v) {
            snprintf(ret, 40, "%s", errnos[i].name);
            return;
        }
    snprintf(ret, 40, "errno %u", v);
}

/* Whose namespace the prober was in. */
static void show_space(const struct receipt_facts *f, int id, uint32_t v, char ret[40])
{
    int space = id - PROBE_USER_SPACE;
    uint32_t host = f->host_space[space];
    const char *whose = v == 0 || host == 0                                                           ? "unknown"
                        : v == host                                                                   ? "the host's"
                        : space == SPACE_USER && (f->init_user_space == 0 || v == f->init_user_space) ? "that of pale-init"
                                                                                                      : "own";
    snprintf(ret, 40, "%s", whose);
}

static void show_observed(const struct receipt_facts *f, int id, uint32_t v, char ret[40])
{
    switch (v == PROBE_NOT_TRIED ? COUNT : expectations[id].answer) {
    case GOT:
        show_got(ret, v);
        break;
    case FLAG:
        snprintf(ret, 40, "%s", v == 1 ? "yes" : v == 0 ? "no" : "neither");
        break;
    case COUNT:
        if (v == PROBE_NOT_TRIED)
            snprintf(ret, 40, "not tried");
        else
            show_number(ret, v);
        break;
    case SPACE:
        show_space(f, id, v, ret);
        break;
    }
}

/* What "@" stands for. False: whatever is there is right. */
static bool planned(const struct receipt_facts *f, int id, char ret[40])
{
    switch (id) {
    case PROBE_USER_ID:
        show_number(ret, f->uid);
        return true;
    case PROBE_LANDLOCK:
        show_number(ret, f->landlock_left > 0 ? (uint64_t)f->landlock_left - 1 : 99);
        return true;
    case PROBE_SCRATCH_SIZE:
        show_number(ret, (f->scratch_bytes + 4095) / 4096 * 4);
        return f->scratch_bytes != 0;
    case PROBE_NETWORK:
        snprintf(ret, 40, "%s", f->network == NETWORK_NONE ? "ENETUNREACH" : "EPERM");
        return true;
    case PROBE_UNNAMED:
        snprintf(ret, 40, "%s", f->network == NETWORK_NONE ? "ENETUNREACH" : "ECONNRESET");
        return true;
    case PROBE_PROCESS_LIMIT:
        show_number(ret, f->processes);
        return f->processes != 0;
    default:
        show_number(ret, PROBE_TOUCH_BYTES);
        return true;
    }
}

/* What is right in a box on an image, where it is something else. */
static const char *right_in_image(int id)
{
    switch (id) {
    case PROBE_ROOT_READ_ONLY:
    case PROBE_USR_READ_ONLY:
    case PROBE_ETC_READ_ONLY:
        return "no";
    case PROBE_WRITE_ROOT:
    case PROBE_WRITE_USR:
    case PROBE_WRITE_ETC:
    case PROBE_SETUID_ROOT:
        return "open";
    default:
        return NULL;
    }
}

/* … and on the host's network, where its promises about the network are none. */
static const char *right_on_host_network(int id)
{
    switch (id) {
    case PROBE_NET_SPACE:
        return "the host's";
    case PROBE_NETWORK:
    case PROBE_UNNAMED:
    case PROBE_HOST_PORT:
    case PROBE_HOST_ABSTRACT:
        return "any";
    default:
        return NULL;
    }
}

static void judge_row(const struct receipt_facts *f, int id, uint32_t v, struct receipt_row *row)
{
    const struct expectation *x = &expectations[id];
    const char *other = f->image ? right_in_image(id) : NULL;
    bool any = false;
    if (f->network == NETWORK_HOST && right_on_host_network(id))
        other = right_on_host_network(id);
    row->name = x->name;
    row->defence = x->defence;
    if (other)
        snprintf(row->expected, sizeof(row->expected), "%s", other);
    else if (strcmp(x->right, "@") == 0)
        any = !planned(f, id, row->expected);
    else
        snprintf(row->expected, sizeof(row->expected), "%s", x->right);
    if (any)
        snprintf(row->expected, sizeof(row->expected), "any");
    show_observed(f, id, v, row->observed);
    bool nothing = other && strcmp(other, "any") == 0;
    row->good = nothing || (v != PROBE_NOT_TRIED && (any || is_one_of(row->expected, row->observed)));
}

void receipt_outside(struct receipt_facts *f, const char *name, const char *defence, const char *expected, const char *observed)
{
    if (f->outside_count == RECEIPT_OUTSIDE_MAX)
        return;
    struct receipt_row *row = &f->outside[f->outside_count++];
    *row = (struct receipt_row){.name = name, .defence = defence, .good = strcmp(expected, observed) == 0};
    snprintf(row->expected, sizeof(row->expected), "%s", expected);
    snprintf(row->observed, sizeof(row->observed), "%s", observed);
}

int receipt_judge(const struct receipt_facts *f, const void *report, size_t n, struct receipt *ret, struct pale_err *e)
{
    struct probe_report r;
    if (n == 0)
        return err_set(e, PALE_LIMIT, "no prober could be started in the box; is it at its limit of processes?");
    if (n != sizeof(r))
        return err_set(e, PALE_PROTOCOL, "the prober's report cannot be read");
    memcpy(&r, report, sizeof(r));
    *ret = (struct receipt){.full = f->full, .took_us = r.took_us};
    for (int i = 0; i < PROBE_COUNT; i++) {
        bool skipped = (expectations[i].only_full && !f->full) || (i == PROBE_PLANTED && !f->has_planted) ||
                       ((i == PROBE_HOST_PORT || i == PROBE_HOST_ABSTRACT) && !f->has_listeners);
        if (skipped && r.answer[i] == PROBE_NOT_TRIED)
            continue;
        judge_row(f, i, r.answer[i], &ret->row[ret->count++]);
    }
    for (size_t i = 0; i < f->outside_count; i++)
        ret->row[ret->count++] = f->outside[i];
    for (size_t i = 0; i < ret->count; i++)
        ret->bad += !ret->row[i].good;
    return 0;
}

void receipt_complaint(const struct receipt *r, char *ret, size_t cap)
{
    size_t len = 0;
    ret[0] = 0;
    for (size_t i = 0; i < r->count && len < cap; i++) {
        const struct receipt_row *row = &r->row[i];
        if (row->good || strstr(ret, row->defence))
            continue;
        int n = snprintf(ret + len, cap - len, "%s%s (%s: expected %s, observed %s)", len ? "; " : "missing: ", row->defence, row->name,
                         row->expected, row->observed);
        len += n > 0 ? (size_t)n : 0;
    }
}

void receipt_json(const struct receipt *r, const struct receipt_head *h, struct json *j, const char *key)
{
    json_begin_object(j, key);
    json_text(j, "box", h->box);
    json_text(j, "id", h->id);
    json_text(j, "time", h->time);
    json_text(j, "tier", h->tier);
    json_text(j, "kernel", h->kernel);
    json_text(j, "boot", h->boot);
    json_text(j, "build", h->build);
    json_text(j, "policy_digest", h->policy_digest);
    json_text(j, "probe", r->full ? "full" : "short");
    if (h->proved)
        json_text(j, "proved_by", h->proved);
    json_u64(j, "took_us", r->took_us);
    json_bool(j, "good", r->bad == 0);
    json_begin_list(j, "attempts");
    for (size_t i = 0; i < r->count; i++) {
        json_begin_object(j, NULL);
        json_text(j, "name", r->row[i].name);
        json_text(j, "expected", r->row[i].expected);
        json_text(j, "observed", r->row[i].observed);
        json_bool(j, "good", r->row[i].good);
        json_end_object(j);
    }
    json_end_list(j);
    json_end_object(j);
}

void receipt_brief(const struct receipt *r, struct buf *out)
{
    for (size_t i = 0; i < r->count; i++)
        buf_addf(out, "%s%s=%s", i ? " " : "", r->row[i].name, r->row[i].observed);
}

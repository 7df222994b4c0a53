/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the judging of probes. */
#include "box/receipt.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* The answers that are right, separated by '|', and where a profile allows more, which. */
static const struct expectation {
    const char *name, *right;
    enum policy_seccomp unless; /* in this profile the attempt may also answer `also` */
    const char *also;
} expectations[] = {
    {"planted-secret", "ENOENT", SECCOMP_COUNT, NULL},
    {"mount", "EPERM", SECCOMP_COUNT, NULL},
    {"remount-usr", "EPERM", SECCOMP_COUNT, NULL},
    {"unmount-proc", "EPERM", SECCOMP_COUNT, NULL},
    {"new-user-namespace", "EPERM", SECCOMP_COUNT, NULL},
    {"io_uring", "ENOSYS", SECCOMP_COUNT, NULL},
    {"keyring", "EPERM|ENOSYS", SECCOMP_COUNT, NULL},
    {"bpf", "EPERM|ENOSYS", SECCOMP_COUNT, NULL},
    {"packet-socket", "EAFNOSUPPORT", SECCOMP_COUNT, NULL},
    {"nftables-socket", "EAFNOSUPPORT", SECCOMP_COUNT, NULL},
    {"vsock", "EAFNOSUPPORT", SECCOMP_COUNT, NULL},
    {"network", "ENETUNREACH", SECCOMP_COUNT, NULL},
    {"ptrace-init", "EPERM", SECCOMP_DEBUG, "EPERM|EACCES"},
    {"init-environment", "EACCES|EPERM", SECCOMP_COUNT, NULL},
    {"proc-keys", "EACCES|EPERM|ENOENT", SECCOMP_COUNT, NULL},
    {"sysctl", "EROFS|EACCES|EPERM", SECCOMP_COUNT, NULL},
    {"write-usr", "EROFS|EACCES", SECCOMP_COUNT, NULL},
    {"write-etc", "EROFS|EACCES", SECCOMP_COUNT, NULL},
    {"write-root", "EROFS|EACCES", SECCOMP_COUNT, NULL},
    {"usr-read-only", "yes", SECCOMP_COUNT, NULL},
    {"etc-read-only", "yes", SECCOMP_COUNT, NULL},
    {"root-read-only", "yes", SECCOMP_COUNT, NULL},
    {"sysctl-read-only", "yes", SECCOMP_COUNT, NULL},
    {"proc-interrupts", "EACCES|EPERM|ENOENT", SECCOMP_COUNT, NULL},
    {"chroot", "EPERM", SECCOMP_COUNT, NULL},
    {"setuid-root", "EPERM|refused", SECCOMP_COUNT, NULL},
    {"setuid-file", "EPERM", SECCOMP_COUNT, NULL},
    {"limits-of-init", "EPERM", SECCOMP_COUNT, NULL},
    {"has-capabilities", "no", SECCOMP_COUNT, NULL},
    {"no-new-privileges", "yes", SECCOMP_COUNT, NULL},
    {"has-seccomp", "yes", SECCOMP_COUNT, NULL},
    {"has-host-descriptors", "no", SECCOMP_COUNT, NULL},
};
#define EXPECTATIONS (sizeof(expectations) / sizeof(expectations[0]))

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

/* Finds "name<TAB>answer" exactly once; an answer is one short word. */
static bool answer_of(const char *lines, const char *name, char ret[24])
{
    size_t n = strlen(name);
    int found = 0;
    for (const char *at = lines; *at;) {
        size_t len = strcspn(at, "\n");
        if (len > n + 1 && memcmp(at, name, n) == 0 && at[n] == '\t') {
            size_t m = len - n - 1;
            if (m >= 24 || strspn(at + n + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < m)
                return false;
            memcpy(ret, at + n + 1, m);
            ret[m] = 0;
            found++;
        }
        at += len;
        at += *at == '\n';
    }
    return found == 1;
}

int receipt_judge(const struct policy *p, const char *lines, struct receipt *ret, struct pale_err *e)
{
    size_t count = 0;
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        count++;
    if (count != EXPECTATIONS)
        return err_set(e, PALE_PROTOCOL, "the prober answered %zu of %zu attempts", count, EXPECTATIONS);
    *ret = (struct receipt){0};
    for (size_t i = 0; i < EXPECTATIONS; i++) {
        const struct expectation *x = &expectations[i];
        struct receipt_row *row = &ret->row[ret->count++];
        const char *right = x->unless == p->seccomp && x->also ? x->also : x->right;
        snprintf(row->name, sizeof(row->name), "%s", x->name);
        snprintf(row->expected, sizeof(row->expected), "%s", right);
        if (!answer_of(lines, x->name, row->observed))
            return err_set(e, PALE_PROTOCOL, "the prober's answer for %s cannot be read", x->name);
        row->good = is_one_of(right, row->observed);
        ret->bad += !row->good;
    }
    return 0;
}

void receipt_json(const struct receipt *r, const struct policy *p, const char *box, struct json *j)
{
    struct utsname u;
    char digest[SHA256_HEX];
    uname(&u);
    policy_digest(p, digest);
    json_object(j, NULL);
    json_text(j, "box", box);
    json_text(j, "tier", "native");
    json_text(j, "kernel", u.release);
    json_text(j, "build", PALE_VERSION);
    json_text(j, "policy_digest", digest);
    json_bool(j, "good", r->bad == 0);
    json_list(j, "attempts");
    for (size_t i = 0; i < r->count; i++) {
        json_object(j, NULL);
        json_text(j, "name", r->row[i].name);
        json_text(j, "expected", r->row[i].expected);
        json_text(j, "observed", r->row[i].observed);
        json_bool(j, "good", r->row[i].good);
        json_end_object(j);
    }
    json_end_list(j);
    json_end_object(j);
}

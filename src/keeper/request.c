/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the check of a request for a command: who it runs as, where, with which variables, and its record in the audit log. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/weak.h"
#include "confine/weaken.h"
#include "init/runner.h"
#include "keeper/keeper.h"

extern char **environ;

/* Bytes of a command line in an audit record: every one may take six when written as JSON. */
#define AUDIT_ARGV_MAX (AUDIT_RECORD_MAX / 8)
#define HELD_SHOWN_MAX 512 /* bytes of names that were held back */

/* Why a box with one user has no other. */
static int refuse_user(const struct keeper *k, const char *user, struct pale_err *e)
{
    char shown[64];
    quote_into(shown, sizeof(shown), user, strlen(user));
    if (k->policy.image)
        return err_set(
            e, PALE_UNSUPPORTED,
            "there is no user %s in a box on an image: it has one, called root inside (uid 0) and without any right of the host's "
            "root; leave --user out",
            shown);
    if (k->once)
        return err_set(e, PALE_UNSUPPORTED,
                       "there is no user %s in a box for one command: it has one, " WALL_USER
                       " (%u), so that it starts fast; one that stays has others, if /etc/subuid gives you a range: pale create NAME, then "
                       "pale exec --user %s NAME",
                       shown, k->ids.uid, shown);
    return err_set(e, PALE_UNSUPPORTED,
                   "this box has one user, " WALL_USER " (%u): other ids need a range in /etc/subuid; `pale doctor` says how to get one",
                   k->ids.uid);
}

/* Who the command runs as: "" or the box's user, "root", or a number that exists in the box. */
static int parse_user(const struct keeper *k, const char *user, uint32_t *ret_uid, uint32_t *ret_gid, struct pale_err *e)
{
    uint64_t uid = 0, gid = 0;
    char text[32];
    if (k->policy.image && strcmp(user, WALL_USER) == 0)
        return refuse_user(k, user, e);
    if (user[0] == 0 || strcmp(user, WALL_USER) == 0) {
        *ret_uid = *ret_gid = RUNNER_DEFAULT_ID;
        return 0;
    }
    snprintf(text, sizeof(text), "%s", strcmp(user, "root") == 0 ? "0" : user);
    char *colon = strchr(text, ':');
    if (colon)
        *colon++ = 0;
    bool good =
        strlen(user) < sizeof(text) && number_u64(text, 65534, &uid) && (colon ? number_u64(colon, 65534, &gid) : (gid = uid, true));
    if (!good && is_weak(k->weaken, WEAKEN_USERS)) {
        *ret_uid = *ret_gid = k->ids.kind == IDS_ONE ? RUNNER_DEFAULT_ID : 0;
        return 0;
    }
    if (!good)
        return err_set(e, PALE_BAD_INPUT, "user must be " WALL_USER ", root, UID or UID:GID");
    if (k->ids.kind == IDS_ONE && (uid != k->ids.uid || gid != k->ids.gid))
        return refuse_user(k, user, e);
    *ret_uid = (uint32_t)uid;
    *ret_gid = (uint32_t)gid;
    return 0;
}

static bool env_has(const struct msg_exec *m, size_t count, const char *item)
{
    size_t n = strcspn(item, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(m->env[i], item, n) == 0)
            return true;
    return false;
}

static void env_add(struct msg_exec *m, const char *item)
{
    if (m->envc < EXEC_STRINGS_MAX && !env_has(m, m->envc, item))
        m->env[m->envc++] = item;
}

/* The request's own variables (those the policy lets pass from the host among them) win over the policy's, those over the base. */
static void complete_env(const struct keeper *k, struct msg_exec *m)
{
    static const char home[] = "HOME=" WALL_HOME;
    static const char *const base[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", home, "SHELL=/bin/bash",
                                       "LANG=C.UTF-8", "PALE_BOX=1"};
    for (size_t i = 0; i < k->policy.env_set.count; i++)
        env_add(m, k->policy.env_set.item[i]);
    if (is_weak(k->weaken, WEAKEN_ENV))
        for (char **at = environ; *at; at++)
            env_add(m, *at);
    for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++)
        env_add(m, base[i]);
    env_add(m, k->policy.image ? "USER=root" : "USER=" WALL_USER);
    env_add(m, k->policy.image ? "LOGNAME=root" : "LOGNAME=" WALL_USER);
    /* A look at the state of a project must not look like a change of it: git would write its index anew. */
    if (k->policy.project == PROJECT_REVIEW && !weak_word("review-index"))
        env_add(m, "GIT_OPTIONAL_LOCKS=0");
    m->env[m->envc] = NULL;
}

void request_show(const struct msg_exec *m, char *ret, size_t cap)
{
    uint8_t mem[1024];
    own_buf b = {0};
    buf_init_lent(&b, 4096, mem, sizeof(mem));
    if (m->label[0]) {
        quote_text(&b, m->label, strlen(m->label), 400);
    } else {
        for (size_t i = 0; i < m->argc && b.len < 400; i++) {
            if (i)
                buf_add_text(&b, " ");
            quote_text(&b, m->argv[i], strlen(m->argv[i]), 200);
        }
    }
    snprintf(ret, cap, "%s", buf_text(&b));
}

int request_audit(struct kjob *j, const struct msg_exec *m, const char *event, const char *reason, struct pale_err *e)
{
    struct keeper *k = j->k;
    struct json *w = audit_begin(&k->audit, event);
    json_u64(w, "job", j->id);
    if (m->label[0]) {
        json_text(w, "request", m->label);
    } else {
        json_begin_list(w, "argv");
        size_t shown = 0;
        for (size_t i = 0; i < m->argc && shown < AUDIT_ARGV_MAX; i++) {
            size_t n = strnlen(m->argv[i], AUDIT_ARGV_MAX - shown);
            json_bytes(w, NULL, m->argv[i], n);
            shown += n + 1;
        }
        json_end_list(w);
    }
    json_text(w, "cwd", m->cwd);
    if (m->user[0])
        json_text(w, "user", m->user);
    json_bool(w, "tty", m->flags & EXEC_TTY);
    if (j->detached)
        json_bool(w, "detached", true);
    if (m->heldc > 0) {
        json_begin_list(w, "env_held_back");
        for (size_t i = 0, shown = 0; i < m->heldc && shown < HELD_SHOWN_MAX; shown += strlen(m->held[i++]))
            json_text(w, NULL, m->held[i]);
        json_end_list(w);
    }
    if (reason)
        json_text(w, "reason", reason);
    return audit_commit(&k->audit, e);
}

/* The home folder is closed to everyone but its user, even to the box's root, which has no capability. */
static const char *default_cwd(const struct keeper *k, const struct msg_exec *m)
{
    if (k->policy.project != PROJECT_NONE && k->policy.project_path)
        return k->policy.project_path;
    return m->uid == RUNNER_DEFAULT_ID || m->uid == k->ids.uid ? WALL_HOME : "/";
}

int request_prepare(struct keeper *k, struct msg_exec *m, struct pale_err *e)
{
    /* Who comes during a pause waits for its end. */
    if (k->freeze.state != FREEZE_NOT && !k->freeze.pauser)
        return err_set(e, PALE_BUSY, "box %s is frozen; `pale thaw %s` lets it go on", k->name, k->name);
    int r = parse_user(k, m->user, &m->uid, &m->gid, e);
    if (r < 0)
        return r;
    if (m->cwd[0] && m->cwd[0] != '/')
        return err_set(e, PALE_BAD_INPUT, "the working folder must be an absolute path of the box");
    if (m->cwd[0] == 0)
        m->cwd = default_cwd(k, m);
    m->cpu_ms = k->policy.limits[LIMIT_CPU_TIME].value;
    if (is_weak(k->weaken, WEAKEN_LIMITS))
        m->cpu_ms = 0;
    complete_env(k, m);
    return 0;
}

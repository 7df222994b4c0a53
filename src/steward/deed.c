/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds: one function each, in a process that does nothing else and may block.
 *
 * The order comes from paled, which reads what strangers send: it is parsed strictly, and what it asks for is done by the same
 * functions that serve the command line, which check names, owners and links themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "box/approval.h"
#include "box/audit.h"
#include "box/ceiling.h"
#include "box/checkpoint.h"
#include "box/gc.h"
#include "box/intake.h"
#include "box/layerdir.h"
#include "box/life.h"
#include "box/place.h"
#include "box/reach.h"
#include "box/rename.h"
#include "box/stack.h"
#include "steward/building.h"
#include "steward/custody.h"
#include "steward/gallery.h"
#include "steward/inlet.h"
#include "steward/past.h"
#include "steward/scrutiny.h"
#include "steward/steward.h"
#include "wire/frame.h"
#include "wire/message.h"

#define PRINTED_MAX 131072u

struct deed {
    const struct msg_deed *order;
    int fd; /* to paled */
    int home_fd;
    struct place place;  /* the box, once it is known */
    struct buf *printed; /* what is told besides */
};

/* --- policies --- */

/* Text that is not in a file: pale-policy reads it from a descriptor. */
static int memory_file(const char *text)
{
    own_fd fd = memfd_create("policy", MFD_CLOEXEC);
    if (fd < 0 || !fd_write_full(fd, text, strlen(text)) || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return take_fd(&fd);
}

/* Paths as they are written, or as the host has them. Whoever may not have them must not learn which there are: he is judged by the first
 * before the second is asked for. */
enum paths { PATHS_WRITTEN, PATHS_REAL };

static int set_one(struct policy *p, const char *key, const char *value, enum paths paths, struct pale_err *e)
{
    static const char *const of_host[] = {"read", "write", "volumes", "volume_root", "project.path"};
    for (size_t i = 0; paths == PATHS_WRITTEN && i < sizeof(of_host) / sizeof(of_host[0]); i++)
        if (strcmp(key, of_host[i]) == 0)
            return policy_set(p, key, value, e);
    return intake_set(p, key, value, e);
}

/* KEY TAB VALUE, line by line. */
static int apply_sets(struct policy *p, const char *sets, enum paths paths, struct pale_err *e)
{
    own_mem char *copy = strdup(sets);
    if (!copy)
        return err_nomem(e);
    for (char *at = copy; *at;) {
        char *end = strchr(at, '\n'), *tab = strchr(at, '\t');
        if (!end || !tab || tab > end)
            return err_set(e, PALE_PROTOCOL, "an order has no such form");
        *end = *tab = 0;
        int r = set_one(p, at, tab + 1, paths, e);
        if (r < 0)
            return r;
        at = end + 1;
    }
    return 0;
}

static int make_policy(const struct msg_deed *m, enum paths paths, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    int r;
    if (m->policy[0]) {
        own_fd fd = memory_file(m->policy);
        r = fd < 0 ? err_os(e, "keep the policy") : intake_policy("-", fd, &p, e);
    } else
        r = policy_init(&p, e);
    if (r == 0)
        r = apply_sets(&p, m->sets, paths, e);
    if (r == 0 && paths == PATHS_REAL)
        r = intake_check(&p, NULL, e);
    if (r == 0) {
        *ret = p;
        p = (struct policy){0};
    }
    return r;
}

/* Whoever gives a box the host's network says so twice, on the host itself; what comes to the daemon is a request like any other. */
static int check_host_network(const struct policy *p, struct pale_err *e)
{
    return p->network != NETWORK_HOST ? 0
                                      : err_set(e, PALE_DENIED,
                                                "network: host is not given through the daemon; use open, or on the host itself "
                                                "`pale create --network host --yes-host-network`");
}

static int check_tenant(const char *tenant, const struct policy *p, struct pale_err *e)
{
    own_policy most = {0};
    if (!tenant[0])
        return 0;
    int r = ceiling_read(&most, e);
    if (r == 0)
        r = policy_narrow(&most, p, e);
    return r < 0 ? err_prefix(e, "a tenant's box may not have this") : 0;
}

/* --- deeds --- */

static int do_make(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy p = {0}, written = {0};
    own_reach reach = {.fd = -1};
    reach_init(&reach);
    reach.caller = m->caller;
    int r = m->tenant[0] ? make_policy(m, PATHS_WRITTEN, &written, e) : 0;
    if (r == 0 && m->tenant[0])
        r = check_tenant(m->tenant, &written, e);
    if (r == 0)
        r = make_policy(m, PATHS_REAL, &p, e);
    if (r == 0)
        r = check_tenant(m->tenant, &p, e);
    if (r == 0)
        r = check_host_network(&p, e);
    if (r < 0)
        return r;
    own_stack by_hand = {0};
    stack_init(&by_hand);
    by_hand.no_autosave = true;
    struct life_order order = {.name = m->name,
                               .scope = SCOPE_USER,
                               .tenant = m->tenant[0] ? m->tenant : NULL,
                               .policy = &p,
                               .stack = m->by_hand ? &by_hand : NULL,
                               .durable = !m->start};
    r = life_make(&order, &d->place, e);
    if (r < 0 || !m->start)
        return r;
    r = reach_start(&reach, &d->place, d->home_fd, e);
    if (r == 0)
        r = reach_started(&reach, &d->place, e);
    /* Another keeper in its place was started by somebody who found the box there and uses it. */
    if (r == -PALE_BUSY)
        return 0;
    if (r < 0)
        life_take_back(&d->place);
    return r;
}

static int do_start(struct deed *d, struct pale_err *e)
{
    own_reach reach = {.fd = -1};
    reach_init(&reach);
    reach.caller = d->order->caller;
    return reach_box(&reach, &d->place, true, e);
}

static int do_stop(struct deed *d, struct pale_err *e)
{
    int r = life_stop(&d->place, d->order->only_idle ? STOP_IDLE : STOP_ANY, d->order->caller, e);
    if (r < 0)
        return r;
    struct msg_deed m = *d->order;
    m.automatic = true;
    r = past_snapshot(&m, &d->place, d->printed, e);
    return r == -PALE_BUSY ? 0 : r; /* somebody has started it again, and there will be another stop */
}

static int do_snapshot(struct deed *d, struct pale_err *e)
{
    return past_snapshot(d->order, &d->place, d->printed, e);
}

static int do_restore(struct deed *d, struct pale_err *e)
{
    return past_restore(d->order, &d->place, d->printed, e);
}

static int do_forget(struct deed *d, struct pale_err *e)
{
    return past_forget(d->order, &d->place, e);
}

/* A tenant's fork is a new box of his: it must be within what his boxes may be now. */
static int do_fork(struct deed *d, struct pale_err *e)
{
    own_policy p = {0};
    int r = d->place.tenant[0] ? life_policy(&d->place, &p, e) : 0;
    if (r == 0)
        r = check_tenant(d->place.tenant, &p, e);
    return r < 0 ? r : past_fork(d->order, &d->place, d->printed, e);
}

static int do_gc(struct deed *d, struct pale_err *e)
{
    return past_gc(d->order, d->printed, e);
}

static int do_diff(struct deed *d, struct pale_err *e)
{
    return scrutiny_diff(d->order, &d->place, d->fd, e);
}

/* Landing is the operator's act, but where a tenant's box might have the project live: there he could write it from inside as well, and
 * what the host would obey no more than that. */
static int do_apply(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy p = {0};
    int r = m->tenant[0] ? life_policy(&d->place, &p, e) : 0;
    if (r == 0 && m->tenant[0] && m->guarded)
        r = err_set(e, PALE_DENIED, "what this host would run or obey is landed by its operator");
    p.project = PROJECT_LIVE;
    if (r == 0 && m->tenant[0] && (r = check_tenant(m->tenant, &p, e)) < 0)
        return err_prefix(e, "only the operator lands what this box has changed");
    return r < 0 ? r : scrutiny_apply(m, &d->place, d->fd, d->printed, e);
}

static int do_discard(struct deed *d, struct pale_err *e)
{
    return scrutiny_discard(d->order, &d->place, d->printed, e);
}

/* A tenant sees the one image that his boxes may be on, if they may be on any. */
static int visible_image(const struct deed *d, struct policy *most, const char **ret_only, struct pale_err *e)
{
    *ret_only = NULL;
    if (!d->order->tenant[0])
        return 0;
    int r = ceiling_read(most, e);
    *ret_only = r == 0 && most->image ? most->image : "";
    return r;
}

static int do_image_list(struct deed *d, struct pale_err *e)
{
    own_policy most = {0};
    const char *only;
    int r = visible_image(d, &most, &only, e);
    return r < 0 ? r : gallery_list(only, d->fd, e);
}

static int do_image_show(struct deed *d, struct pale_err *e)
{
    own_policy most = {0};
    const char *only;
    int r = visible_image(d, &most, &only, e);
    return r < 0 ? r : gallery_show(d->order->name, only, d->fd, e);
}

static int do_image_verify(struct deed *d, struct pale_err *e)
{
    return gallery_verify(d->order->name, d->fd, e);
}

static int do_image_remove(struct deed *d, struct pale_err *e)
{
    return gallery_remove(d->order->name, d->order->caller, e);
}

static int do_guard_list(struct deed *d, struct pale_err *e)
{
    return custody_list(&d->place, d->fd, e);
}

static int do_guard_release(struct deed *d, struct pale_err *e)
{
    return custody_release(d->order, &d->place, e);
}

static int do_guard_drop(struct deed *d, struct pale_err *e)
{
    return custody_drop(d->order, &d->place, e);
}

static int do_verdict(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *o = d->order;
    enum verdict_scope scope = APPLIES_ONCE;
    while (scope < APPLIES_COUNT && strcmp(o->form, msg_verdict_scopes[scope]) != 0)
        scope++;
    const struct msg_verdict m = {.question = o->name,
                                  .box = d->place.id,
                                  .host = o->sets,
                                  .port = o->count,
                                  .allow = o->force,
                                  .scope = scope,
                                  .until_unix = approval_until(o->for_ms)};
    if (scope == APPLIES_COUNT)
        return err_set(e, PALE_BAD_INPUT, "there is no such scope of an answer");
    return approval_answer(&d->place, &m, o->caller, e);
}

static int do_image_build(struct deed *d, struct pale_err *e)
{
    return building_run(d->order, d->fd, d->printed, e);
}

static int do_remove(struct deed *d, struct pale_err *e)
{
    int r = life_stop(&d->place, STOP_ANY, d->order->caller, e);
    if (r == 0)
        r = place_remove(&d->place, true, e);
    return r < 0 ? r : gc_shared(&d->place, e);
}

static int do_rename(struct deed *d, struct pale_err *e)
{
    struct place old = d->place;
    return rename_box(&old, d->order->name, d->order->caller, &d->place, e);
}

/* The record of who changed what stands in the log before the change. */
static int tell_audit(struct deed *d, const struct policy *old, const struct policy *new, struct pale_err *e)
{
    struct audit a;
    char path[PATH_BYTES_MAX], digest[SHA256_HEX];
    snprintf(path, sizeof(path), "%s/audit", d->place.state);
    int r = audit_open(&a, path, false, d->place.name, d->place.id, e);
    if (r < 0)
        return r;
    a.caller = d->order->caller;
    struct json *j = audit_begin(&a, d->order->narrower ? "policy.narrow" : "policy.change");
    policy_digest(new, digest);
    json_text(j, "policy_digest", digest);
    json_begin_list(j, "changes");
    own_buf lines = {0};
    buf_init(&lines, 1 << 20);
    policy_diff(old, new, &lines, j);
    json_end_list(j);
    r = audit_commit(&a, e);
    audit_close(&a);
    return r;
}

/* A whole one, or what there is with some of it changed. */
static int next_policy(const struct deed *d, enum paths paths, struct policy *ret, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    if (m->policy[0])
        return make_policy(m, paths, ret, e);
    int r = life_policy(&d->place, ret, e);
    if (r == 0)
        r = apply_sets(ret, m->sets, paths, e);
    return r == 0 && paths == PATHS_REAL ? intake_check(ret, NULL, e) : r;
}

/* Only of a box that does not run: what a wall was built with does not change under it. */
static int do_policy(struct deed *d, struct pale_err *e)
{
    const struct msg_deed *m = d->order;
    own_policy old = {0}, new = {0};
    own_buf text = {0};
    char path[PATH_BYTES_MAX];
    buf_init(&text, POLICY_TEXT_MAX);
    snprintf(path, sizeof(path), "%s/lock", d->place.state);
    own_fd lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return err_os(e, "open %s", path);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, PALE_BUSY, "box %s runs; stop it first: a policy changes between two starts", d->place.name);
    int r = life_policy(&d->place, &old, e);
    if (r == 0 && m->narrower) {
        own_policy written = {0};
        r = next_policy(d, PATHS_WRITTEN, &written, e);
        if (r == 0)
            r = policy_narrow(&old, &written, e);
    }
    if (r == 0)
        r = next_policy(d, PATHS_REAL, &new, e);
    if (r == 0 && m->narrower)
        r = policy_narrow(&old, &new, e);
    if (r == 0)
        r = check_tenant(d->place.tenant, &new, e);
    if (r == 0 && old.network != NETWORK_HOST)
        r = check_host_network(&new, e);
    if (r == 0)
        r = layerdir_allot(&d->place, &new, e);
    if (r == 0)
        r = tell_audit(d, &old, &new, e);
    if (r < 0)
        return r;
    policy_write(&new, &text);
    own_fd dir = open(d->place.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (text.failed || dir < 0)
        return err_set(e, PALE_LIMIT, "the policy is too long, or its folder cannot be opened");
    return fd_replace_file(dir, "policy", text.data, text.len, 0600, true, e);
}

/* The command says it all already. */
static int do_doctor(struct deed *d, struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int out[2], status = 0;
    int r = place_command(program, sizeof(program), e);
    if (r < 0)
        return r;
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_os(e, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        /* This host, whatever PALE_HOST says: else it might ask us. */
        char *argv[] = {(char *)"pale", (char *)"doctor", (char *)"--json", (char *)"--host", (char *)"", NULL};
        execv(program, argv);
        _exit(125);
    }
    close(out[1]);
    own_fd in = out[0];
    if (pid < 0)
        return err_os(e, "start %s", program);
    r = fd_read_all(in, d->printed, e);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    /* Its status says how the host does; what it printed is the answer either way. */
    return r == 0 && d->printed->len == 0 ? err_set(e, PALE_OS, "pale doctor said nothing") : r;
}

static int do_sweep(struct deed *d, struct pale_err *e)
{
    unsigned gone = 0;
    int r = life_sweep_all(false, &gone, e);
    if (r == 0)
        buf_addf(d->printed, "%u", gone);
    return r;
}

static int do_checkpoint(struct deed *d, struct pale_err *e)
{
    unsigned taken = 0;
    int r = checkpoint_take(&taken, e);
    if (r == 0)
        buf_addf(d->printed, "%u", taken);
    return r;
}

static const struct {
    bool on_box; /* the order names one by its id */
    int (*run)(struct deed *d, struct pale_err *e);
} deeds[DEED_KIND_END] = {
    [DEED_MAKE] = {false, do_make},
    [DEED_START] = {true, do_start},
    [DEED_STOP] = {true, do_stop},
    [DEED_REMOVE] = {true, do_remove},
    [DEED_RENAME] = {true, do_rename},
    [DEED_POLICY] = {true, do_policy},
    [DEED_DOCTOR] = {false, do_doctor},
    [DEED_SWEEP] = {false, do_sweep},
    [DEED_CHECKPOINT] = {false, do_checkpoint},
    [DEED_SNAPSHOT] = {true, do_snapshot},
    [DEED_RESTORE] = {true, do_restore},
    [DEED_FORGET] = {true, do_forget},
    [DEED_FORK] = {true, do_fork},
    [DEED_GC] = {false, do_gc},
    [DEED_DIFF] = {true, do_diff},
    [DEED_APPLY] = {true, do_apply},
    [DEED_DISCARD] = {true, do_discard},
    [DEED_IMAGE_LIST] = {false, do_image_list},
    [DEED_IMAGE_SHOW] = {false, do_image_show},
    [DEED_IMAGE_VERIFY] = {false, do_image_verify},
    [DEED_IMAGE_REMOVE] = {false, do_image_remove},
    [DEED_IMAGE_BUILD] = {false, do_image_build},
    [DEED_GUARD_LIST] = {true, do_guard_list},
    [DEED_GUARD_RELEASE] = {true, do_guard_release},
    [DEED_GUARD_DROP] = {true, do_guard_drop},
    [DEED_VERDICT] = {true, do_verdict},
};

static int do_deed(struct deed *d, struct pale_err *e)
{
    uint64_t kind = d->order->kind;
    if (kind >= DEED_KIND_END || !deeds[kind].run)
        return err_set(e, PALE_UNSUPPORTED, "there is no such deed");
    int r = deeds[kind].on_box ? place_by_id(d->order->id, &d->place, e) : 0;
    if (r == 0 && deeds[kind].on_box && d->order->born && life_born(&d->place) != d->order->born)
        r = err_set(e, PALE_NOT_FOUND, "that box is gone; there is another of its name");
    return r < 0 ? r : deeds[kind].run(d, e);
}

/* --- the order and the answer --- */

static int read_order(int fd, struct buf *in, struct msg_deed *ret, struct pale_err *e)
{
    struct frame f;
    int r = inlet_frame(fd, in, &f, e);
    if (r == 0 && (f.type != DEED_ASK || !msg_deed_parse(f.data, f.len, ret)))
        r = err_set(e, PALE_PROTOCOL, "this is no order");
    return r;
}

static void answer(int fd, const struct deed *d, int code, const char *text)
{
    static uint8_t mem[FRAME_HEAD + FRAME_PAYLOAD_MAX];
    struct record_writer w;
    struct msg_deed_done m = {.code = (uint64_t)code, .text = text, .id = d->place.id, .name = d->place.name};
    record_start(&w, mem + FRAME_HEAD, FRAME_PAYLOAD_MAX);
    msg_deed_done_write(&m, &w);
    frame_put_head(mem, DEED_DONE, 0, (uint32_t)w.len);
    (void)fd_write_full(fd, mem, FRAME_HEAD + w.len);
}

void deed_serve(int fd, int home_fd)
{
    struct msg_deed order;
    struct pale_err e = {0};
    own_buf in = {0}, printed = {0};
    buf_init(&in, FRAME_HEAD + FRAME_PAYLOAD_MAX + 65536);
    buf_init(&printed, PRINTED_MAX);
    struct deed d = {.order = &order, .fd = fd, .home_fd = home_fd, .printed = &printed};
    int r = read_order(fd, &in, &order, &e);
    if (r == 0)
        r = do_deed(&d, &e);
    answer(fd, &d, -r, r < 0 ? e.text : buf_text(&printed));
}

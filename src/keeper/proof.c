/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the proof of a box: what the prober is asked to try, what is looked at from outside, the receipt, and what becomes of it.
 *
 * How it works: proof_plan, while the builder is at work, sees whether this kind of box was proved since boot, and so which probe it
 * gets; for a full one it plants two listeners on the host and starts pale-seal, which signs. proof_start sends the
 * question to init. proof_take has the report, which is hostile like all that comes over the wire, judges it, and writes the receipt
 * into the audit log before any command is let in. A bad receipt destroys the box. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "box/receipt.h"
#include "confine/landlock.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"
#include "tier/root.h"
#include "wire/frame.h"

#define PROBE_TIMEOUT_MS 30000
#define DEMAND_TIMEOUT_MS 10000

/* Something of the host's that a box must not reach: a loopback port, an abstract socket. The file that it must not find is its own
 * audit log, which is there anyway: one made for the purpose would be litter should we be killed. */
static int plant(struct keeper *k, struct pale_err *e)
{
    struct proof *p = &k->proof;
    struct sockaddr in = {.sa_family = AF_INET};
    static const unsigned char any_port[14] = {0, 0, 127, 0, 0, 1};
    unsigned char port[14];
    socklen_t len = sizeof(in);
    memcpy(in.sa_data, any_port, sizeof(any_port));
    p->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->tcp_fd < 0 || bind(p->tcp_fd, &in, sizeof(in)) < 0 || listen(p->tcp_fd, 1) < 0 || getsockname(p->tcp_fd, &in, &len) < 0)
        /* A host without a loopback has no port to be reached either. */
        return errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT ? 0 : err_os(e, "listen for a probe");
    memcpy(port, in.sa_data, sizeof(port));
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    uint64_t word = 0;
    (void)!getrandom(&word, sizeof(word), GRND_NONBLOCK);
    snprintf(p->abstract, sizeof(p->abstract), "pale-%s-%016llx", k->id, (unsigned long long)word);
    memcpy(un.sun_path + 1, p->abstract, strlen(p->abstract));
    p->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->unix_fd < 0 ||
        bind(p->unix_fd, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(p->abstract))) < 0 ||
        listen(p->unix_fd, 1) < 0)
        return err_os(e, "plant a socket");
    p->port = (uint32_t)(port[0] << 8 | port[1]);
    return 0;
}

static void uproot(struct proof *p)
{
    p->port = 0;
    own_close(&p->tcp_fd);
    own_close(&p->unix_fd);
}

void proof_done(struct keeper *k)
{
    uproot(&k->proof);
    sealer_done(&k->proof.sealer);
}

void proof_init(struct proof *p)
{
    *p = (struct proof){.tcp_fd = -1, .unix_fd = -1};
    sealer_init(&p->sealer);
}

/* What stands there is of another start. */
static void forget_receipt(const struct keeper *k)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/receipt", k->state_dir ? k->state_dir : "");
    if (k->state_dir)
        unlink(path);
}

/* The audit log, unless the box has a place of its own on the way there and could make something that looks like it. */
static const char *planted(const struct keeper *k)
{
    return root_in_scratch(k->audit_path) ? "" : k->audit_path;
}

void proof_survey(struct keeper *k)
{
    struct landlock_count count;
    receipt_spaces(k->proof.host_space);
    landlock_count_start(&count);
    k->proof.landlock_left = landlock_count_end(&count);
    k->proof.surveyed = true;
}

int proof_plan(struct keeper *k, struct pale_err *e)
{
    struct proof *p = &k->proof;
    char init[PATH_BYTES_MAX], self[PATH_BYTES_MAX];
    struct utsname u;
    if (!p->surveyed)
        proof_survey(k);
    forget_receipt(k);
    if (is_weak(k->weaken, WEAKEN_RECEIPT))
        return 0;
    int r = place_program("pale-init", init, sizeof(init), e);
    if (r == 0)
        r = place_program("pale-keeper", self, sizeof(self), e);
    if (r < 0)
        return r;
    uname(&u);
    snprintf(p->kernel, sizeof(p->kernel), "%s", u.release);
    const struct proved_kind kind = {
        .kernel = u.version,
        .tier = "native",
        .policy_digest = k->policy_digest,
        .build = PALE_VERSION,
        .programs = {init, self},
        .ids_kind = k->ids.kind,
        .limits_kind = (unsigned)k->cgroup.version | (k->limits_by_watchdog ? 4u : 0),
    };
    if ((r = proved_find(&kind, &p->proved, e)) < 0)
        return r;
    p->at_start = true;
    p->full = !p->proved.digest[0];
    if (p->full && (r = plant(k, e)) == 0)
        r = sealer_start(&p->sealer, e);
    return r;
}

void proof_start(struct keeper *k)
{
    uint8_t mem[PATH_BYTES_MAX + 256];
    struct record_writer w;
    struct proof *p = &k->proof;
    const struct msg_probe m = {.full = p->full, .port = p->port, .planted = planted(k), .abstract = p->abstract};
    p->asked = true;
    k->wayout.probes += k->wayout.meters != NULL; /* it dials an address that nobody has, which is no deed of the box's */
    record_start(&w, mem, sizeof(mem));
    msg_probe_write(&m, &w);
    wire_send(k, TO_PROBE, 0, mem, w.len);
}

/* --- what is to be seen from outside --- */

static void see_number(struct receipt_facts *f, const char *name, const char *defence, uint64_t expected, bool seen, uint64_t observed)
{
    char want[32], is[32];
    snprintf(want, sizeof(want), "%llu", (unsigned long long)expected);
    snprintf(is, sizeof(is), "%llu", (unsigned long long)observed);
    receipt_outside(f, name, defence, want, seen ? is : "none");
}

/* A default that nothing holds is told, so that nobody takes it for a limit. */
static void see_unheld(const struct keeper *k, struct receipt_facts *f)
{
    static const struct {
        enum policy_limit_kind which;
        const char *name, *defence;
    } rows[] = {{LIMIT_TOKENS, "token-limit", "no limit on model tokens: the default is not held"},
                {LIMIT_COST, "cost-limit", "no limit on cost: the default is not held"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (policy_limit_is_unheld(&k->policy, rows[i].which))
            receipt_outside(f, rows[i].name, rows[i].defence, "not held", "not held");
}

static void see_limits(struct keeper *k, struct receipt_facts *f)
{
    static const char *const group = "the limit on memory (cgroup)";
    const struct policy_limit *lim = k->policy.limits;
    struct cgroup_limits is;
    bool member = cgroup_look(&k->cgroup, k->id, k->wall.pid, &is);
    uint64_t page = (uint64_t)k->page_bytes;
    if (lim[LIMIT_MEMORY].value && k->limits_by_watchdog)
        receipt_outside(f, "memory-limit", "the limit on memory (watchdog)", "watchdog", k->watchdog_on ? "watchdog" : "none");
    else if (lim[LIMIT_MEMORY].value)
        see_number(f, "memory-limit", group, lim[LIMIT_MEMORY].value / page * page, member && is.memory_bytes, is.memory_bytes);
    /* Where the kernel tells the most that was ever held, what the prober touched must be in it. */
    uint64_t peak = f->full && k->proof.at_start && k->cgroup.used[CGROUP_MEMORY] ? cgroup_peak_bytes(&k->cgroup) : 0;
    if (peak)
        receipt_outside(f, "memory-counted", group, "yes", peak >= PROBE_TOUCH_BYTES ? "yes" : "no");
    if (k->cgroup.used[CGROUP_PIDS])
        see_number(f, "processes-of-the-group", "the limit on processes (cgroup)", k->group_processes, member && is.processes,
                   is.processes);
    if (lim[LIMIT_CPU_SHARE].value)
        see_number(f, "cpu-share", "the limit on CPU share (cgroup)", cgroup_cpu_milli(lim[LIMIT_CPU_SHARE].value), member && is.cpu_milli,
                   is.cpu_milli);
    if (lim[LIMIT_OUTPUT].value && f->full)
        receipt_outside(f, "output-limit", "the limit on output", "held", work_holds_output(k) ? "held" : "open");
    see_unheld(k, f);
}

/* The kernel shows a folder with a limit of its own as a disk of that size; one that is smaller anyway holds no less. */
static void see_disk(const struct keeper *k, struct receipt_facts *f)
{
    const struct policy_limit *lim = &k->policy.limits[LIMIT_DISK];
    struct statfs st;
    if (k->disk_fd < 0 || !lim->asked)
        return;
    bool held = fstatfs(k->disk_fd, &st) == 0 && (uint64_t)st.f_blocks * (uint64_t)st.f_bsize <= lim->value;
    receipt_outside(f, "disk-limit", "the limit on disk (project quota)", "held", held ? "held" : "open");
}

static void gather(struct keeper *k, struct receipt_facts *f)
{
    struct proof *p = &k->proof;
    *f = (struct receipt_facts){
        .uid = k->ids.uid,
        .processes = k->policy.limits[LIMIT_PROCESSES].value,
        .init_user_space = k->wall.user_space,
        .full = p->full,
        .image = k->policy.image,
        .network = k->policy.network,
        .has_planted = planted(k)[0],
        .has_listeners = p->port != 0,
        .landlock_left = p->landlock_left,
        .scratch_bytes = k->scratch_bytes,
    };
    memcpy(f->host_space, p->host_space, sizeof(f->host_space));
    see_limits(k, f);
    see_disk(k, f);
}

/* --- the receipt --- */

static void write_receipt(struct keeper *k, const struct receipt *r, struct buf *out)
{
    char stamp[40];
    struct json j;
    const struct receipt_head h = {
        .box = k->name,
        .id = k->id,
        .time = clock_stamp(stamp, sizeof(stamp)),
        .tier = "native",
        .kernel = k->proof.kernel,
        .boot = k->proof.proved.boot,
        .build = PALE_VERSION,
        .policy_digest = k->policy_digest,
        .proved = r->full ? NULL : k->proof.proved.digest,
    };
    json_start(&j, out);
    receipt_json(r, &h, &j, NULL);
}

/* The receipt of the last start, for who looks at the box. */
static int keep_receipt(const struct keeper *k, const char *text, size_t n, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], tmp[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/receipt", k->state_dir);
    snprintf(tmp, sizeof(tmp), "%s/receipt.new", k->state_dir);
    own_fd fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || !fd_write_full(fd, text, n) || rename(tmp, path) < 0)
        return err_os(e, "write %s", path);
    return 0;
}

static int audit_receipt(struct keeper *k, const struct receipt *r, const char *digest, const struct sealed *sealed, const char *complaint,
                         struct pale_err *e)
{
    char mem[4096];
    struct buf brief;
    buf_init_lent(&brief, AUDIT_RECORD_MAX / 2, mem, sizeof(mem));
    receipt_brief(r, &brief);
    struct json *j = audit_begin(&k->audit, "box.receipt");
    json_text(j, "probe", r->full ? "full" : "short");
    json_bool(j, "good", r->bad == 0);
    json_u64(j, "attempts", r->count);
    json_u64(j, "took_us", r->took_us);
    if (!r->full)
        json_text(j, "proved_by", k->proof.proved.digest);
    json_text(j, "observed", buf_text(&brief));
    if (complaint[0])
        json_text(j, "reason", complaint);
    if (sealed) {
        json_text(j, "receipt", digest);
        json_text(j, "key", sealed->key);
        json_text(j, "signature", sealed->signature);
    }
    buf_done(&brief);
    return audit_commit(&k->audit, e);
}

/* A good receipt of a start: sealed and remembered if it is a full one. */
static int file_receipt(struct keeper *k, const struct receipt *r, struct pale_err *e)
{
    struct proof *p = &k->proof;
    char mem[16384], digest[SHA256_HEX] = "";
    struct sealed sealed;
    struct buf text;
    int res = 0;
    if (k->once && !r->full)
        return audit_receipt(k, r, NULL, NULL, "", e);
    buf_init_lent(&text, 1 << 20, mem, sizeof(mem));
    write_receipt(k, r, &text);
    if (text.failed)
        res = err_nomem(e);
    if (res == 0 && r->full) {
        sha256_hex(text.data, text.len, digest);
        res = sealer_sign(&p->sealer, text.data, text.len, &sealed, e);
    }
    if (res == 0)
        res = audit_receipt(k, r, digest, r->full ? &sealed : NULL, "", e);
    /* Not to be remembered costs the next box a full probe, and no more. */
    if (res == 0 && r->full)
        (void)!proved_store(&p->proved, (const char *)text.data, text.len, &sealed, NULL);
    if (res == 0 && !k->once)
        res = keep_receipt(k, (const char *)text.data, text.len, e);
    buf_done(&text);
    return res;
}

static int refuse(struct keeper *k, const struct receipt *r, struct pale_err *e)
{
    char complaint[PALE_ERR_TEXT_MAX - 120];
    receipt_complaint(r, complaint, sizeof(complaint));
    (void)!audit_receipt(k, r, NULL, NULL, complaint, NULL);
    if (!k->once) {
        own_buf text = {0};
        buf_init(&text, 1 << 20);
        write_receipt(k, r, &text);
        (void)!keep_receipt(k, buf_text(&text), text.len, NULL);
    }
    return err_set(e, PALE_UNSUPPORTED, "the box was destroyed because it does not hold what it promises: %s", complaint);
}

static int judge_start(struct keeper *k, const void *report, size_t n, struct pale_err *e)
{
    struct receipt_facts f;
    struct receipt r;
    gather(k, &f);
    int res = receipt_judge(&f, report, n, &r, e);
    if (res < 0)
        return res;
    if (r.bad)
        return refuse(k, &r, e);
    return file_receipt(k, &r, e);
}

/* --- on demand --- */

static void demand_failed(struct keeper *k, enum pale_code code, const char *why)
{
    struct client *c = k->proof.client;
    struct json *j = audit_begin(&k->audit, "proof.failed");
    json_text(j, "reason", why);
    (void)!audit_commit(&k->audit, NULL);
    k->proof.client = NULL;
    if (c)
        client_error(c, code, why);
}

/* Something in the box keeps the prober from running. That is no leak, but it is no proof either. */
static void out_of_patience(struct loop_timer *t)
{
    struct keeper *k = (struct keeper *)((char *)t - offsetof(struct keeper, proof.timer));
    k->proof.asked = false;
    k->proof.stale++;
    k->audit.caller = k->proof.caller;
    demand_failed(k, PALE_TIMEOUT, "the prober did not answer in time; something in the box keeps it from running");
    k->audit.caller = NULL;
}

void proof_ask(struct client *c, bool full)
{
    struct keeper *k = c->k;
    struct proof *p = &k->proof;
    if (k->freeze.state != FREEZE_NOT) {
        client_error(c, PALE_BUSY, "nothing can be tried in a frozen box; `pale thaw` it first");
        return;
    }
    if (p->asked) {
        client_error(c, PALE_BUSY, "another proof of this box is under way; try again in a moment");
        return;
    }
    p->full = full;
    p->abstract[0] = 0;
    p->client = c;
    memcpy(p->caller, c->caller, sizeof(p->caller));
    p->timer.fire = out_of_patience;
    loop_arm(&k->loop, &p->timer, clock_ms() + DEMAND_TIMEOUT_MS);
    proof_start(k);
}

void proof_client_left(struct client *c)
{
    if (c->k->proof.client == c)
        c->k->proof.client = NULL;
}

/* Lines for people, an empty line, and the JSON. */
static void tell_receipt(struct client *c, struct keeper *k, const struct receipt *r)
{
    own_buf text = {0};
    buf_init(&text, FRAME_PAYLOAD_MAX);
    for (size_t i = 0; i < r->count; i++)
        buf_addf(&text, "%s\t%s\t%s\t%s\n", r->row[i].name, r->row[i].expected, r->row[i].observed, r->row[i].good ? "ok" : "LEAK");
    buf_add_text(&text, "\n");
    write_receipt(k, r, &text);
    if (text.failed) {
        client_error(c, PALE_NO_MEMORY, "out of memory");
        return;
    }
    client_send(c, TELL_RECEIPT, text.data, text.len);
    client_finish(c);
}

static void answer_demand(struct keeper *k, const void *report, size_t n)
{
    struct proof *p = &k->proof;
    struct client *c = p->client;
    struct receipt_facts f;
    struct receipt r;
    struct pale_err e = {0};
    gather(k, &f);
    if (receipt_judge(&f, report, n, &r, &e) < 0) {
        demand_failed(k, e.code, e.text);
        return;
    }
    p->client = NULL;
    if (c)
        tell_receipt(c, k, &r);
    if (r.bad && refuse(k, &r, &e) < 0)
        keeper_box_died(k, e.text);
    else if (!r.bad)
        (void)!audit_receipt(k, &r, NULL, NULL, "", NULL);
}

bool proof_take(struct keeper *k, const void *report, size_t n)
{
    struct proof *p = &k->proof;
    if (n != 0 && n != sizeof(p->report))
        return false;
    if (p->stale > 0) {
        p->stale--;
        return true;
    }
    if (!p->asked)
        return false;
    p->asked = false;
    loop_disarm(&k->loop, &p->timer);
    if (p->at_start) {
        memcpy(p->report, report, n);
        p->report_len = n;
        p->reported = true;
        return true;
    }
    uproot(p);
    k->audit.caller = p->caller;
    answer_demand(k, report, n);
    k->audit.caller = NULL;
    return true;
}

int proof_await(struct keeper *k, struct pale_err *e)
{
    struct proof *p = &k->proof;
    int64_t until = clock_ms() + PROBE_TIMEOUT_MS;
    if (is_weak(k->weaken, WEAKEN_RECEIPT))
        return 0;
    while (!p->reported && !k->died) {
        short out = k->wire_out.len > 0 ? POLLOUT : 0; /* the question itself may not have gone out yet */
        struct pollfd ready[2] = {{.fd = k->wire.fd, .events = (short)(POLLIN | out)}, {.fd = k->wall.pidfd, .events = POLLIN}};
        int n = poll(ready, 2, (int)(until - clock_ms() > 0 ? until - clock_ms() : 0));
        if (n == 0)
            return err_set(e, PALE_TIMEOUT, "the box's prober did not answer within %d s", PROBE_TIMEOUT_MS / 1000);
        if (n < 0 && errno != EINTR)
            return err_os(e, "wait for the box's prober");
        if (n > 0 && !ready[0].revents && ready[1].revents)
            return err_set(e, PALE_GONE, "the box's init ended before the box was proved");
        if (n > 0 && ready[0].revents & POLLOUT)
            k->wire.ready(&k->wire, EPOLLOUT);
        if (n > 0 && !k->died && ready[0].revents & ~POLLOUT)
            k->wire.ready(&k->wire, EPOLLIN);
    }
    if (k->died)
        return err_set(e, PALE_GONE, "the box ended before it was proved: %s", k->death);
    int r = judge_start(k, p->report, p->report_len, e);
    p->at_start = false;
    uproot(p);
    sealer_done(&p->sealer);
    return r;
}

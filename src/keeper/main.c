/* SPDX-License-Identifier: Apache-2.0 */
/* pale-keeper: builds the wall of one box, is parent of its init, serves its socket, writes its audit log, holds its limits.
 *
 *     pale-keeper once NAME ID                         a box for one client, on descriptor 3, policy in its first frame
 *     pale-keeper box  NAME ID DATA STATE SOCKET [home]  a lasting box; descriptor 3 is told when it is ready, 4 is a home for its ids
 *     pale-keeper next …                               the same before the box before it is gone (keeper/succession.h)
 *     pale-keeper home                                 makes a home for the ids of many boxes and sends it to descriptor 3
 *
 * main() reads as the list of stages; a stage that fails tells descriptor 3 why and ends the program. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/weak.h"
#include "base/fd.h"
#include "base/handing.h"
#include "base/own.h"
#include "base/path.h"
#include "box/allot.h"
#include "box/cutoff.h"
#include "box/hidden.h"
#include "box/ownplaces.h"
#include "box/identity.h"
#include "box/place.h"
#include "box/policymark.h"
#include "box/rename.h"
#include "box/stack.h"
#include "confine/caps.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"
#include "confine/slice.h"
#include "confine/weaken.h"
#include "keeper/keeper.h"
#include "keeper/strata.h"
#include "keeper/succession.h"
#include "keeper/watchdog.h"
#include "tier/etc.h"
#include "wire/frame.h"

#define FIRST_CLIENT 3
#define IDS_HOME 4
#define LAST_WORDS_MS 2000
#define FILES_LEAST 128u /* open at once while a wall is built; clients come on top */
#define START_STACK_BYTES (112u << 10)

static struct keeper state;
static struct loop_source signals;

static bool tell(int fd, uint8_t type, const void *p, size_t n)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, type, 0, (uint32_t)n);
    return fd_write_full(fd, head, sizeof(head)) && fd_write_full(fd, p, n);
}

static int give_up(const struct pale_err *e)
{
    uint8_t mem[2048];
    struct record_writer w;
    struct msg_error m = {.code = e->code, .text = e->text};
    record_start(&w, mem, sizeof(mem));
    msg_error_write(&m, &w);
    (void)tell(FIRST_CLIENT, TELL_ERROR, mem, w.len);
    return 125;
}

static void loop_to_end(struct loop_timer *t)
{
    (void)t;
    state.loop.stop = true;
}

void keeper_check_done(struct keeper *k)
{
    if (!k->winding_up)
        return;
    for (struct client *c = k->clients; c; c = c->next)
        if (c->out.len > 0)
            return;
    k->loop.stop = true;
}

/* The only client of a one-shot box may take its time with the output; others get two seconds. */
static void wind_up(struct keeper *k)
{
    k->winding_up = true;
    keeper_check_done(k);
    if (!k->loop.stop && !k->once) {
        k->stop_timer.fire = loop_to_end;
        loop_arm(&k->loop, &k->stop_timer, clock_ms() + LAST_WORDS_MS);
    }
}

static void end_wall(struct keeper *k)
{
    if (k->wire.fd >= 0)
        loop_remove(&k->loop, &k->wire);
    if (k->init_watch.fd >= 0)
        loop_remove(&k->loop, &k->init_watch);
    k->wire.fd = k->init_watch.fd = -1;
    freeze_end(k);
    wall_destroy(&k->wall);
    wayout_end(k);
    warding_end(k);
}

void keeper_note(struct keeper *k, const char *event, const char *reason)
{
    struct json *j = audit_begin(&k->audit, event);
    if (reason)
        json_text(j, "reason", reason);
    (void)!audit_commit(&k->audit, NULL);
}

void keeper_box_died(struct keeper *k, const char *why)
{
    if (k->died || k->stopping)
        return;
    k->died = true;
    snprintf(k->death, sizeof(k->death), "%s", why);
    keeper_note(k, "box.died", why);
    client_turn_away(k);
    end_wall(k);
    work_box_died(k, why);
    wind_up(k);
}

void keeper_stop(struct keeper *k)
{
    if (k->died || k->stopping)
        return;
    k->stopping = true;
    keeper_note(k, "box.stop", NULL);
    client_turn_away(k);
    end_wall(k);
    work_box_died(k, "the box was stopped");
    wind_up(k);
}

static void on_signal(struct loop_source *s, uint32_t events)
{
    struct signalfd_siginfo info;
    struct pale_err e = {0};
    (void)events;
    while (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
            keeper_stop(&state);
        else if (info.ssi_signo == SIGUSR1 && reload_now(&state, &e) < 0)
            keeper_note(&state, "net.lost", e.text);
}

/* Needs: nothing. Gives up: the starter's terminal, working folder and signals. */
static int stage_settle(int argc, char **argv, struct keeper *k, struct pale_err *e)
{
    sigset_t mask;
    bool once = argc == 4 && strcmp(argv[1], "once") == 0;
    bool home = argc == 9 && strcmp(argv[8], "home") == 0;
    bool next = (argc == 8 || home) && strcmp(argv[1], "next") == 0;
    bool box = next || ((argc == 8 || home) && strcmp(argv[1], "box") == 0);
    if (!once && !box)
        return err_set(e, PALE_BAD_INPUT, "pale-keeper is started by pale, not by hand");
    if (!path_is_box_name(argv[2]) || !identity_is_id(argv[3]) || (box && !client_is_caller(argv[7])))
        return err_set(e, PALE_BAD_INPUT, "pale-keeper: bad name, id or caller");
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_LEAST) {
        files.rlim_cur = files.rlim_max < FILES_LEAST ? files.rlim_max : FILES_LEAST;
        if (files.rlim_cur < FILES_LEAST || setrlimit(RLIMIT_NOFILE, &files) < 0)
            return err_set(e, PALE_LIMIT, "no more than %llu files may be open (ulimit -n), and a box needs %u",
                           (unsigned long long)files.rlim_max, FILES_LEAST);
    }
    slice_shorten();
    k->page_bytes = sysconf(_SC_PAGESIZE);
    k->once = once;
    k->next = next;
    k->wire.fd = k->init_watch.fd = k->listener.fd = k->warding.source.fd = k->wayout.source.fd = -1;
    k->wall = (struct wall){.pid = -1, .pidfd = -1, .wire_fd = -1, .report_fd = -1, .go_fd = -1, .user_ns = -1, .mount_ns = -1};
    k->etc_lock = k->image_lock = k->policy_fd = k->disk_fd = k->box_lock = k->folder_lock = -1;
    k->claims = (struct claims)CLAIMS_NONE;
    k->ids_home = home && fcntl(IDS_HOME, F_SETFD, FD_CLOEXEC) == 0 ? IDS_HOME : -1;
    proof_init(&k->proof);
    scope_init(&k->scope);
    cgroup_init(&k->cgroup);
    snprintf(k->name, sizeof(k->name), "%s", argv[2]);
    snprintf(k->id, sizeof(k->id), "%s", argv[3]);
    if (box) {
        k->data_dir = argv[4];
        k->state_dir = argv[5];
        k->socket_path = argv[6];
    }
    k->starter = box ? argv[7] : "local";
    k->weaken = weaken_from_env();
    k->started_unix_ms = (uint64_t)time(NULL) * 1000;
    k->memory_by = "nothing: there is no limit";
    sigfillset(&mask);
    if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0 || chdir("/") < 0)
        return err_os(e, "settle");
    signal(SIGPIPE, SIG_IGN);
    return loop_open(&k->loop, e);
}

/* The data folder, too: a state folder that is a copy of another's has a lock of its own. And the folder must be the box's: what we are
 * told by path alone is nothing. */
static int lock_folder(struct keeper *k, struct pale_err *e)
{
    char id[BOX_ID_LEN + 1];
    own_fd fd = open(k->data_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(e, "open %s", k->data_dir);
    if (!identity_read(fd, IDENTITY_ID, id) || strcmp(id, k->id) != 0)
        return err_set(e, PALE_CONFLICT, "%s is not the folder of box %s (%s); `pale ls` says where that is", k->data_dir, k->name, k->id);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, PALE_CONFLICT, "a keeper that goes by another state folder has %s; `pale stop` it there", k->data_dir)
                   : err_os(e, "lock %s", k->data_dir);
    k->folder_lock = take_fd(&fd);
    return 0;
}

/* Held until the process ends. */
static int lock_box(struct keeper *k, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    struct stat st;
    if (lstat(k->state_dir, &st) < 0)
        return err_os(e, "look at %s", k->state_dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(
            e, PALE_DENIED,
            "%s must be a folder of yours that nobody else writes to: its policy may be anybody's; look at it, then `chmod 700` it",
            k->state_dir);
    snprintf(path, sizeof(path), "%s/lock", k->state_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(e, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? err_set(e, PALE_BUSY, "another keeper has this box") : err_os(e, "lock %s", path);
    k->box_lock = fd;
    int r = lock_folder(k, e);
    /* Whoever made or renamed it may have been killed before the last step: from now on it is at one place for everybody. */
    own_fd dir = r < 0 || weak_word("half-made") ? -1 : open(k->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? r : rename_settle(k->state_dir, k->id, dir, e);
}

/* Needs: the state folder. Gives up: nothing. A second keeper of the same box stops here; one that comes next waits for its turn below. */
static int stage_lock(struct keeper *k, struct pale_err *e)
{
    if (k->once || k->next)
        return 0;
    int r = lock_box(k, e);
    if (r == 0)
        handover_read(k);
    return r;
}

/* Asks systemd for a group, where it hands them out. It does its work while we do ours; stage_limits takes the answer. */
static void ask_scope(struct keeper *k)
{
    char description[16 + sizeof(k->name)];
    if (is_weak(k->weaken, WEAKEN_LIMITS) || !scope_is_needed())
        return;
    snprintf(description, sizeof(description), "pale box %s", k->name);
    scope_ask(&k->scope, k->id, description);
}

/* Needs: the box is ours, or will be: a scope is its keeper's own, and goes with it. */
static int stage_scope(struct keeper *k, struct pale_err *e)
{
    (void)e;
    ask_scope(k);
    return 0;
}

/* The canonical policy: from the state folder, or the first frame of the only client. */
static int stage_policy(struct keeper *k, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    if (k->once) {
        uint8_t head[FRAME_HEAD];
        struct frame f = {0};
        size_t used;
        if (fd_read_full(FIRST_CLIENT, head, sizeof(head)) != (ssize_t)sizeof(head) || frame_parse(head, sizeof(head), &f, &used) < 0 ||
            head[4] != ASK_POLICY)
            return err_set(e, PALE_PROTOCOL, "the first message must be the policy");
        size_t n = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
        if (!buf_reserve(&text, n + 1) || fd_read_full(FIRST_CLIENT, text.data, n) != (ssize_t)n)
            return err_set(e, PALE_PROTOCOL, "the policy ended early");
        text.len = n;
    } else {
        char path[PATH_BYTES_MAX];
        snprintf(path, sizeof(path), "%s/policy", k->state_dir);
        own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_os(e, "open %s", path);
        int r = fd_read_all(fd, &text, e);
        if (r < 0)
            return err_prefix(e, "%s", path);
        k->policy_fd = take_fd(&fd);
    }
    sha256_hex(text.data, text.len, k->policy_digest); /* what is parsed is canonical: its digest is the policy's */
    int r = k->once ? 0 : policymark_check(k->state_dir, k->policy_digest, k->name, e);
    if (r == 0)
        r = policy_parse(buf_text(&text), text.len, &k->policy, e);
    if (r == 0)
        r = policy_held(&k->policy, e);
    return r;
}

/* With ids of its own a box has the user's own group and none of the others. */
static int refuse_group_only(const struct keeper *k, const char *path, struct pale_err *e)
{
    struct stat st;
    if (!path || k->ids.kind != IDS_RANGE || !k->ids.by_helper || stat(path, &st) < 0)
        return 0;
    unsigned others = st.st_mode & (S_ISDIR(st.st_mode) ? S_IXOTH : S_IROTH);
    if (st.st_uid == geteuid() || st.st_gid == getegid() || others)
        return 0;
    return err_set(
        e, PALE_DENIED,
        "%s is open to you by its group (%u) alone, and a lasting box has none of your groups but your own: its commands could not open "
        "it; give it to you or to your own group (chown, chgrp), or use `pale run`, which keeps them",
        path, (unsigned)st.st_gid);
}

static int refuse_groups(const struct keeper *k, struct pale_err *e)
{
    const struct policy *p = &k->policy;
    int r = p->project == PROJECT_NONE ? 0 : refuse_group_only(k, p->project_path, e);
    for (size_t i = 0; r == 0 && i < p->write.count; i++)
        r = refuse_group_only(k, p->write.item[i], e);
    for (size_t i = 0; r == 0 && i < p->read.count; i++)
        r = refuse_group_only(k, p->read.item[i], e);
    for (size_t i = 0; r == 0 && i < p->volume_count; i++)
        r = refuse_group_only(k, p->volumes[i].host, e);
    return r;
}

/* What every wall needs and no box owns. */
static int find_ground(struct keeper *k, struct pale_err *e)
{
    uint64_t seed = 0;
    int r = k->runtime_dir[0] ? 0 : place_runtime_dir(k->runtime_dir, sizeof(k->runtime_dir), e);
    for (int i = 0; i < 8; i++)
        seed = seed * 31 + (uint64_t)k->id[i + 8];
    if (r < 0 ||
        (r = ids_choose(&k->ids, seed,
                        k->policy.image ? IDS_WANT_ROOT
                        : k->once       ? IDS_WANT_ONE
                                        : IDS_WANT_MANY,
                        e)) < 0 ||
        (r = refuse_groups(k, e)) < 0)
        return r;
    /* Kept for the next keeper of the box (client.c, stop): the two set-id programs take a quarter of a start's time. */
    if (!k->once && k->ids.by_helper && k->ids_home < 0 && (k->ids_home = ids_make_home(&k->ids, e)) < 0)
        return k->ids_home;
    return etc_prepare(k->runtime_dir, &k->ids, &k->policy, k->etc_dir, sizeof(k->etc_dir), &k->etc_lock, e);
}

/* Whoever changes a policy gives another file its name; ours is open, so no other has its number. */
static bool is_policy_of_now(const struct keeper *k)
{
    char path[PATH_BYTES_MAX];
    struct stat now, then;
    snprintf(path, sizeof(path), "%s/policy", k->state_dir);
    return lstat(path, &now) == 0 && fstat(k->policy_fd, &then) == 0 && now.st_ino == then.st_ino && now.st_dev == then.st_dev;
}

static int admit(void *arg, pid_t pid, struct pale_err *e)
{
    return cgroup_admit(arg, pid, e);
}

/* Builds the wall and starts init behind it. list: by which layers; NULL: those that the box has. */
static int start_wall(struct keeper *k, const struct buf *list, struct pale_err *e)
{
    char init[PATH_BYTES_MAX], hex[SHA256_HEX], machine[33];
    int r = place_program("pale-init", init, sizeof(init), e);
    if (r < 0)
        return r;
    sha256_hex(k->id, strlen(k->id), hex);
    snprintf(machine, sizeof(machine), "%.32s", hex);
    k->scratch_bytes = k->policy.limits[LIMIT_DISK].value ? k->policy.limits[LIMIT_DISK].value : k->policy.limits[LIMIT_MEMORY].value;
    own_strata strata = {0};
    if ((r = strata_find(k, list, &strata, e)) < 0)
        return r;
    own_hidden hidden = {0};
    if ((r = hidden_find(&k->policy, &hidden, e)) < 0)
        return r;
    own_fd hand = -1;
    if (wayout_is_needed(k) && (r = wayout_start(k, &hand, e)) < 0)
        return r;
    struct wall_plan plan = {
        .policy = &k->policy,
        .ids = k->ids,
        .ids_home = k->ids.by_helper ? k->ids_home : -1,
        .hostname = k->name,
        .machine_id = machine,
        .layers = strata.paths,
        .layer_count = strata.count,
        .project_from = strata.project_from,
        .open_layer = strata.open[0] ? strata.open : NULL,
        .image_root = strata.image[0] ? strata.image : NULL,
        .gateway_fd = hand,
        .etc_dir = k->etc_dir,
        .init_path = init,
        .scratch_bytes = k->scratch_bytes,
        .weaken = k->weaken,
        .hidden = hidden.path,
        .hidden_count = hidden.count,
        .ahead = list,
        .admit = admit,
        .admit_arg = &k->cgroup,
    };
    /* Where the box has one id its first process cannot put off the host's groups any more. */
    if (plan.image_root && geteuid() == 0 && setgroups(0, NULL) < 0 && errno != EPERM)
        return err_os(e, "put off the host's groups");
    r = native_start(&plan, &k->wall, e);
    /* Not earlier: the builder's /proc entries must be ours until its maps are written. */
    if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = err_os(e, "hide the keeper's memory");
    return r;
}

/* Is nothing of the wall such that two boxes of one id cannot have it at once? A gateway may publish ports, a quota counts both, and a
 * group that the first process must be in from the beginning is one. */
static bool can_build_ahead(const struct keeper *k)
{
    bool grouped = false;
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        grouped = grouped || k->host.has[i];
    return (!grouped || wall_admits_late(k->host.version)) && !wayout_is_needed(k) && !allot_is_wanted(&k->policy);
}

/* Needs: nothing of the box was touched. Who started us early lets us go when the box is ours, or hangs up, and we are not needed. The wall
 * is built meanwhile up to where the layers are joined: until then it is nobody's, and holds nothing that the box has written. */
static int stage_await(struct keeper *k, struct pale_err *e)
{
    own_buf list = {0};
    if (!k->next)
        return 0;
    int r = find_ground(k, e);
    if (r < 0)
        return r;
    cgroup_find(&k->scope, &k->host);
    k->host_found = true;
    buf_init(&list, FRAME_PAYLOAD_MAX + 1);
    if ((r = succession_list(&list, e)) < 0)
        return r;
    if (list.len > 0 && can_build_ahead(k)) {
        k->ahead = true;
        sha256_hex(list.data, list.len, k->list_digest);
        if ((r = start_wall(k, &list, e)) < 0)
            return r;
    }
    proof_survey(k);
    if ((r = succession_lock(k, &k->box_lock, e)) < 0 || (r = lock_folder(k, e)) < 0)
        return r;
    if (k->ahead && (r = wall_take_layers(&k->wall, e)) < 0)
        return r;
    /* It was read before. */
    if (!is_policy_of_now(k))
        return err_set(e, PALE_BUSY, "the policy of box %s has changed while it was started; try again", k->name);
    handover_read(k);
    return k->ahead ? 0 : succession_saved(k, e);
}

/* Before the effect: that this box is about to exist, with which policy. */
static int stage_audit(struct keeper *k, struct pale_err *e)
{
    char path[PATH_BYTES_MAX + 16];
    int r = place_state_dir(k->user_dir, sizeof(k->user_dir), e);
    if (r < 0)
        return r;
    int cut = reload_init(k, e);
    snprintf(path, sizeof(path), "%s/%s", k->once ? k->user_dir : k->state_dir, k->once ? "runs.audit" : "audit");
    snprintf(k->audit_path, sizeof(k->audit_path), "%s", path);
    r = audit_open(&k->audit, path, k->once ? AUDIT_SHARED : AUDIT_BOX, k->name, k->id, e);
    if (r < 0)
        return r;
    struct utsname u;
    uname(&u);
    if (!k->once && k->audit.running)
        keeper_note(k, "box.lost", "the keeper before this one ended without a word: it was killed, or the machine went down");
    k->audit.caller = k->starter;
    struct json *j = audit_begin(&k->audit, "box.start");
    json_text(j, "tier", "native");
    json_text(j, "policy", k->policy_digest);
    json_text(j, "kernel", u.release);
    json_text(j, "build", PALE_VERSION);
    if (k->wayout.cut)
        json_text(j, "cut", cutoff_name(k->wayout.cut));
    r = audit_commit(&k->audit, e);
    return r < 0 ? r : cut;
}

/* A limit that was asked for holds or the box does not start; a default may fall to the watchdog. */
static int stage_limits(struct keeper *k, struct pale_err *e)
{
    const struct policy_limit *lim = k->policy.limits;
    struct cgroup_limits want = {0};
    if (is_weak(k->weaken, WEAKEN_LIMITS))
        return 0;
    if (!k->host_found)
        cgroup_find(&k->scope, &k->host);
    if (lim[LIMIT_MEMORY].value && (k->host.has[CGROUP_MEMORY] || lim[LIMIT_MEMORY].asked))
        want.memory_bytes = lim[LIMIT_MEMORY].value;
    k->limits_by_watchdog = lim[LIMIT_MEMORY].value && !want.memory_bytes;
    if (lim[LIMIT_MEMORY].value)
        k->memory_by = want.memory_bytes ? k->host.version == 2 ? "cgroup v2" : "cgroup v1" : "the keeper's watchdog";
    if (lim[LIMIT_PROCESSES].value && k->host.has[CGROUP_PIDS])
        want.processes = 2 * lim[LIMIT_PROCESSES].value + 4; /* a second lock; our own processes count in it */
    k->group_processes = want.processes;
    want.cpu_milli = lim[LIMIT_CPU_SHARE].value;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    k->cpus = cpus > 0 ? (uint64_t)cpus : 1;
    want.count_cpu = lim[LIMIT_CPU_TIME].value && k->host.has[CGROUP_CPUACCT];
    want.freezer = !k->once && k->host.has[CGROUP_FREEZER];
    int r = cgroup_create(&k->host, k->id, &want, &k->cgroup, e);
    return r < 0 ? err_prefix(e, "the policy asks for a limit that cannot be held here (`pale doctor` says what is missing)") : 0;
}

/* No two boxes share a writable folder: ours are claimed before anybody can use them. */
static int stage_claim(struct keeper *k, struct pale_err *e)
{
    const struct policy *p = &k->policy;
    const char *paths[2 * POLICY_LIST_MAX + 2];
    size_t n = 0;
    int r = place_runtime_dir(k->runtime_dir, sizeof(k->runtime_dir), e);
    if (r < 0)
        return r;
    if (p->project == PROJECT_LIVE && p->project_path)
        paths[n++] = p->project_path;
    for (size_t i = 0; i < p->write.count && n < POLICY_LIST_MAX; i++)
        paths[n++] = p->write.item[i];
    for (size_t i = 0; i < p->volume_count && n < 2 * POLICY_LIST_MAX; i++)
        if (p->volumes[i].writable)
            paths[n++] = p->volumes[i].host;
    if (r == 0)
        r = ownplaces_refuse(p, e);
    if (r < 0)
        return r;
    return claiming_take(k, paths, n, e);
}

static int stage_ground(struct keeper *k, struct pale_err *e)
{
    return k->next ? 0 : find_ground(k, e);
}

/* Needs: the starter's view of the host. */
static int stage_wall(struct keeper *k, struct pale_err *e)
{
    return k->ahead ? wall_admit(&k->wall, admit, &k->cgroup, e) : start_wall(k, NULL, e);
}

/* Needs: the box's namespaces and the host in full view. A live project is walked while the builder is at work. */
static int stage_ward(struct keeper *k, struct pale_err *e)
{
    int r = warding_is_needed(k) ? warding_start(k, e) : 0;
    /* None else needs them, and held open they would outlive the box. */
    own_close(&k->wall.user_ns);
    own_close(&k->wall.mount_ns);
    return r;
}

/* Needs: the host in full view, while the builder is at work. What the prober will be asked. */
static int stage_proof(struct keeper *k, struct pale_err *e)
{
    return proof_plan(k, e);
}

/* Needs: what the prober will be asked. It waits on the wire for whoever comes out at the other end of the wall. */
static int stage_question(struct keeper *k, struct pale_err *e)
{
    return wire_open(k, e);
}

static int stage_serve(struct keeper *k, struct pale_err *e)
{
    sigset_t mask;
    int r = k->once ? 0 : client_listen(k, e);
    if (r < 0)
        return r;
    /* Who cuts boxes off tells those that listen. */
    if (!k->once && !reload_is_now(k))
        return err_set(e, PALE_BUSY, "box %s was cut off, or let out again, while it was started; try again", k->name);
    if (!k->once)
        handover_done(k);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGUSR1);
    signals = (struct loop_source){.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    if (signals.fd < 0)
        return err_os(e, "signalfd");
    if ((r = loop_add(&k->loop, &signals, EPOLLIN, e)) < 0)
        return r;
    if (k->limits_by_watchdog)
        watchdog_start(k);
    return 0;
}

/* Who hears that a box is ready may count on finding it again after a power cut: its policy, and a list of layers that has just become
 * another, go to the disk, which takes its time, while the wall is built. For one that comes next the policy has lain there long. */
static int stage_keep(struct keeper *k, struct pale_err *e)
{
    int r = k->ahead ? succession_saved(k, e) : 0;
    if (r == 0)
        r = audit_keep_young(&k->audit, e);
    if (r == 0 && k->next)
        r = succession_kept(e);
    else if (r == 0 && k->policy_fd >= 0)
        r = fsync(k->policy_fd) < 0 ? err_os(e, "write the policy of %s to the disk", k->name) : stack_keep(k->state_dir, k->policy_fd, e);
    own_close(&k->policy_fd);
    return r;
}

/* Needs: the wall stands, and nothing foreign has run. What its building was allowed beyond the box's limit on disk is taken back. */
static int stage_allot(struct keeper *k, struct pale_err *e)
{
    uint32_t project;
    if (k->disk_fd < 0)
        return 0;
    int r = wall_await(&k->wall, e);
    k->stands = r == 0;
    return r < 0 ? r : allot_give(k->disk_fd, &k->policy, &project, e);
}

/* Needs: everything is open. Gives up: writing outside the folders of this box, new privileges, root's capabilities but the one to end
 * processes, and every system call that a running keeper does not need; all before the first byte from the box is read. */
static int stage_lock_up(struct keeper *k, struct pale_err *e)
{
    const char *paths[3 + CGROUP_CONTROLLERS];
    size_t n = 0;
    int r;
    paths[n++] = k->once ? k->user_dir : k->state_dir;
    paths[n++] = k->runtime_dir;
    if (k->proof.full)
        paths[n++] = k->proof.proved.dir;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        if (k->cgroup.used[c])
            paths[n++] = k->host.base[c];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_os(e, "give up new privileges");
    if (landlock_abi() != 0 && (r = landlock_restrict_writes(paths, n, false, e)) < 0)
        return r;
    /* Root's keeper ends processes that are not root's; all that it opens is root's own. */
    if (!is_weak(k->weaken, WEAKEN_CAPS) && (r = caps_drop_but(CAP_KILL, e)) < 0)
        return r;
    return seccomp_load(seccomp_for_program(OWN_KEEPER), e);
}

/* Needs: nothing foreign has run in the box. It is handed over only with a good receipt. */
static int stage_receipt(struct keeper *k, struct pale_err *e)
{
    int r = k->stands ? 0 : wall_await(&k->wall, e);
    if (r < 0)
        return r;
    warding_stand(k);
    if ((r = proof_await(k, e)) == 0)
        r = warding_await(k, e);
    return r == 0 ? wayout_await(k, e) : r;
}

/* The only client of a one-shot box has sent its request already; a lasting box says that it is ready. */
static int stage_first_client(struct keeper *k, struct pale_err *e)
{
    struct client *c = client_add(k, FIRST_CLIENT);
    if (!c)
        return err_nomem(e);
    c->greeted = true; /* whoever started us has said which box he means */
    if (k->once)
        client_take(c);
    /* The last thing that can fail: whoever waits for it would wait for ever, and who has heard it counts on the box. A starter that
     * was killed waits no more; others may be at the socket already, and the box is as good as any. */
    if (k->once || tell(FIRST_CLIENT, TELL_DONE, NULL, 0) || errno == EPIPE || errno == ECONNRESET)
        return 0;
    return err_os(e, "tell that the box is ready");
}

static void clean_up(struct keeper *k)
{
    freeze_end(k);
    wall_destroy(&k->wall);
    warding_end(k);
    proof_done(k);
    cgroup_destroy(&k->cgroup);
    scope_done(&k->scope);
    /* Who takes over has the log written to the disk before he does anything. */
    if (k->yields)
        own_close(&k->audit.fd);
    if (k->audit.fd >= 0)
        audit_close(&k->audit);
    claiming_drop(k);
    if (k->socket_path && k->listener.fd >= 0)
        unlink(k->socket_path); /* still ours only if nobody was turned away */
}

/* The stages need some tens of KiB of stack that serving does not; of a thousand keepers most only wait. */
static void give_back_stack(void)
{
    char here;
    uintptr_t below = ((uintptr_t)&here & ~(uintptr_t)4095) - 4096;
    (void)!madvise((void *)(below - START_STACK_BYTES), START_STACK_BYTES, MADV_DONTNEED);
}

/* TELL_DONE, with the home's descriptor where boxes need one. */
static int send_home(int home)
{
    uint8_t head[FRAME_HEAD];
    frame_put_head(head, TELL_DONE, 0, 0);
    return handing_send(FIRST_CLIENT, head, sizeof(head), home, 0) == (ssize_t)sizeof(head) ? 0 : 125;
}

static int home_main(void)
{
    struct pale_err e = {0};
    struct ids ids;
    own_fd home = -1;
    int r = ids_choose(&ids, 0, IDS_WANT_MANY, &e);
    if (r == 0 && ids.by_helper && (home = ids_make_home(&ids, &e)) < 0)
        r = home;
    return r < 0 ? give_up(&e) : send_home(home);
}

int main(int argc, char **argv)
{
    static int (*const stages[])(struct keeper * k, struct pale_err * e) = {
        stage_lock, stage_scope, stage_policy, stage_await,    stage_audit, stage_claim, stage_limits,  stage_ground,  stage_wall,
        stage_ward, stage_proof, stage_allot,  stage_question, stage_keep,  stage_serve, stage_lock_up, stage_receipt, stage_first_client};
    struct pale_err e = {0};
    if (argc == 2 && strcmp(argv[1], "home") == 0)
        return home_main();
    state.audit.fd = -1;
    int r = stage_settle(argc, argv, &state, &e);
    for (size_t i = 0; r == 0 && i < sizeof(stages) / sizeof(stages[0]); i++)
        r = stages[i](&state, &e);
    if (r < 0) {
        if (state.audit.fd >= 0)
            keeper_note(&state, "box.refused", e.text);
        clean_up(&state);
        return give_up(&e);
    }
    give_back_stack();
    state.audit.caller = NULL; /* from here on whoever asks is known by his connection */
    r = loop_run(&state.loop, &e);
    if (r < 0)
        keeper_note(&state, "box.died", e.text);
    clean_up(&state);
    return r < 0 ? 125 : 0;
}

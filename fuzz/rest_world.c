/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the daemon that is fuzzed finds around it: boxes on a disk, their keepers, and a steward who does what he is told. */
#include <assert.h>
#include <stdio.h>

#include "base/path.h"
#include "fresh.h"
#include "rest_rig.h"

/* --- the disk --- */

UNSEEN static int place_is(const struct rig_box *b, struct place *ret, struct pale_err *e)
{
    if (!b)
        return err_set(e, PALE_NOT_FOUND, "there is no such box");
    *ret = (struct place){.project = b->project};
    memcpy(ret->tenant, b->tenant, sizeof(ret->tenant));
    memcpy(ret->name, b->name, sizeof(ret->name));
    memcpy(ret->id, b->id, sizeof(ret->id));
    snprintf(ret->state, sizeof(ret->state), "/rig/%s", b->id);
    return 0;
}

UNSEEN static struct rig_box *box_by_id(const char *id)
{
    for (int i = 0; i < RIG_BOXES; i++)
        if (rig.boxes[i].there && strcmp(rig.boxes[i].id, id) == 0)
            return &rig.boxes[i];
    return NULL;
}

UNSEEN static struct rig_box *box_of(const char *tenant, const char *name)
{
    for (int i = 0; i < RIG_BOXES; i++) {
        struct rig_box *b = &rig.boxes[i];
        if (b->there && !b->project && strcmp(b->tenant, tenant) == 0 && strcmp(b->name, name) == 0)
            return b;
    }
    return NULL;
}

int rig_place_by_id(const char *id, struct place *ret, struct pale_err *e)
{
    return place_is(box_by_id(id), ret, e);
}

int rig_place_owned(const char *tenant, const char *name, struct place *ret, struct pale_err *e)
{
    return place_is(box_of(tenant, name), ret, e);
}

int rig_place_each(int (*fn)(void *arg, const struct place *p), void *arg, struct pale_err *e)
{
    struct place p;
    for (int i = 0; i < RIG_BOXES; i++)
        if (rig.boxes[i].there && place_is(&rig.boxes[i], &p, e) == 0 && fn(arg, &p) < 0)
            return -1;
    return 0;
}

int rig_daemon_state(const char *dir, char *ret, struct pale_err *e)
{
    assert(strcmp(dir, "/rig") == 0);
    (void)e;
    snprintf(ret, DAEMON_STATE_MAX, "1-2");
    return 0;
}

int rig_place_dir(char *ret, size_t cap, struct pale_err *e)
{
    (void)e;
    snprintf(ret, cap, "/rig");
    return 0;
}

uint64_t rig_born(const struct place *p)
{
    const struct rig_box *b = box_by_id(p->id);
    return b ? b->born : 0;
}

int rig_policy(const struct place *p, struct policy *ret, struct pale_err *e)
{
    (void)p, (void)e;
    fresh_policy(ret);
    return 0;
}

int rig_stack(const struct place *p, struct stack *ret, struct pale_err *e)
{
    (void)p;
    stack_init(ret);
    return stack_add_snapshot(ret, "s", STACK_NONE, RIG_UNIX_MS, false, e);
}

UNSEEN static struct rig_box *add_box(const char *tenant, const char *name, bool project, bool runs)
{
    for (int i = 0; i < RIG_BOXES; i++)
        if (!rig.boxes[i].there) {
            struct rig_box *b = &rig.boxes[i];
            *b = (struct rig_box){.there = true, .runs = runs, .project = project, .born = ++rig.made};
            snprintf(b->tenant, sizeof(b->tenant), "%s", tenant);
            snprintf(b->name, sizeof(b->name), "%s", name);
            snprintf(b->id, sizeof(b->id), "%030llxb%d", (unsigned long long)(b->born < 5 ? 0 : b->born), i);
            return b;
        }
    return NULL;
}

UNSEEN void rig_kill_keeper(int box)
{
    rig.boxes[box].runs = false;
    for (int i = 0; i < RIG_CONNS; i++)
        if (rig.conns[i].kind == RIG_KEEPER && rig.conns[i].held && rig.conns[i].box == box)
            rig.conns[i].gone = true;
}

void world_fill(void)
{
    add_box("", "a", false, true);
    add_box("", "b", false, false);
    add_box("t", "c", false, true);
    add_box("", "p", true, true);
}

/* --- the steward --- */

UNSEEN void rig_answer_deed(struct rig_conn *c, uint64_t code, const char *text, const char *id)
{
    uint8_t mem[1024];
    struct record_writer w;
    struct msg_deed_done d = {.code = code, .text = text, .id = id, .name = c->deed.name};
    record_start(&w, mem, sizeof(mem));
    msg_deed_done_write(&d, &w);
    rig_frame(c, DEED_DONE, mem, w.full ? 0 : w.len);
}

UNSEEN void rig_do_deed(struct rig_conn *c)
{
    const struct msg_deed *m = &c->deed;
    struct rig_box *b = m->kind == DEED_MAKE ? NULL : box_by_id(m->id);
    if (m->kind == DEED_DOCTOR || m->kind == DEED_SWEEP || m->kind == DEED_GC)
        return rig_answer_deed(c, 0, "{\"good\":true}\n", "");
    if (m->kind == DEED_MAKE) {
        if (box_of(m->tenant, m->name))
            return rig_answer_deed(c, PALE_EXISTS, "there is one", "");
        b = add_box(m->tenant, m->name, false, m->start);
        return rig_answer_deed(c, b ? 0 : PALE_LIMIT, b ? "" : "too many", b ? b->id : "");
    }
    if (!b || (m->born && b->born != m->born))
        return rig_answer_deed(c, PALE_NOT_FOUND, "there is no such box", "");
    switch (m->kind) {
    case DEED_START:
        b->runs = true;
        break;
    case DEED_REMOVE:
    case DEED_STOP:
        rig_kill_keeper((int)(b - rig.boxes));
        b->there = m->kind == DEED_STOP;
        break;
    case DEED_RENAME:
        if (b->runs || box_of(b->tenant, m->name))
            return rig_answer_deed(c, PALE_BUSY, "it runs, or the name is taken", "");
        snprintf(b->name, sizeof(b->name), "%s", m->name);
        snprintf(b->id, sizeof(b->id), "%030llxc%d", (unsigned long long)++rig.made, (int)(b - rig.boxes));
        break;
    case DEED_SNAPSHOT: /* its keeper ends, and there is another at once */
    case DEED_RESTORE: {
        bool ran = b->runs;
        rig_kill_keeper((int)(b - rig.boxes));
        b->runs = ran;
        return rig_answer_deed(c, 0, "{\"snapshot\":\"s\",\"changed\":true,\"pause_us\":1}", b->id);
    }
    case DEED_FORK: {
        char told[80];
        const struct rig_box *fork = box_of(b->tenant, m->name) ? NULL : add_box(b->tenant, m->name, false, false);
        snprintf(told, sizeof(told), "{\"items\":[{\"name\":\"f\",\"id\":\"%s\"}]}", fork ? fork->id : "");
        return rig_answer_deed(c, fork ? 0 : PALE_EXISTS, told, b->id);
    }
    default:
        break;
    }
    rig_answer_deed(c, 0, "", b->id);
}

/* --- what keepers and the steward hear --- */

UNSEEN void rig_tell_info(struct rig_conn *c, const char *state, uint64_t jobs)
{
    uint8_t mem[512];
    struct record_writer w;
    struct msg_info m = {.version = WIRE_VERSION,
                         .keeper_pid = 7,
                         .init_pid = 8,
                         .started_unix_ms = RIG_UNIX_MS,
                         .jobs = jobs,
                         .name = "a",
                         .id = "b",
                         .state = state,
                         .policy_digest = "d",
                         .memory_by = "m"};
    record_start(&w, mem, sizeof(mem));
    msg_info_write(&m, &w);
    rig_frame(c, TELL_INFO, mem, w.len);
}

/* The very first: which box is meant. */
UNSEEN static void heard_hello(struct rig_conn *c, const struct frame *f)
{
    assert(f->type == ASK_HELLO && f->len == BOX_ID_LEN && memcmp(f->data, rig.boxes[c->box].id, BOX_ID_LEN) == 0);
    c->greeted = true;
}

/* The first words of a connection to a keeper. */
UNSEEN static void heard_request(struct rig_conn *c, const struct frame *f)
{
    static struct msg_exec m;
    struct msg_job_ref ref;
    struct msg_attach attach;
    struct msg_preface preface;
    if (f->type == ASK_PREFACE) {
        assert(!c->prefaced && msg_preface_parse(f->data, f->len, &preface) && path_is_box_name(preface.caller));
        c->prefaced = true;
        return;
    }
    c->asked = f->type;
    switch (f->type) {
    case ASK_EXEC:
        assert(msg_exec_parse(f->data, f->len, &m) && m.argc > 0 && !(m.flags & ~(uint64_t)EXEC_FLAGS_ALL));
        c->last = m.flags & EXEC_LAST;
        break;
    case ASK_JOB_WAIT:
    case ASK_JOB_LOGS:
    case ASK_JOB_KILL:
    case ASK_JOB_INPUT:
        assert(msg_job_ref_parse(f->data, f->len, &ref) && ref.id > 0 && ref.signal <= 64);
        break;
    case ASK_ATTACH:
        assert(msg_attach_parse(f->data, f->len, &attach) && attach.id > 0);
        break;
    case ASK_PROVE:
        assert(f->len == 1 && f->data[0] <= 1);
        break;
    default:
        assert((f->type == ASK_WATCH || f->type == ASK_JOBS || f->type == ASK_FREEZE || f->type == ASK_THAW) && f->len == 0);
        if (f->type == ASK_WATCH && !rig.watch_by_hand)
            rig_tell_info(c, "ready", 0);
    }
}

UNSEEN static void heard_by_keeper(struct rig_conn *c, const struct frame *f)
{
    uint64_t v = 0;
    /* After the end of its input nothing comes, unless a client says so or it has confused us. */
    bool more = c->asked == ASK_ATTACH || !c->input_ended || c->wild;
    if (!c->greeted)
        return heard_hello(c, f);
    if (!c->asked)
        return heard_request(c, f);
    assert(c->asked == ASK_EXEC || c->asked == ASK_ATTACH || c->asked == ASK_JOB_INPUT);
    switch (f->type) {
    case ASK_STDIN:
        assert(f->len > 0 && f->len <= STDIN_WINDOW && more);
        break;
    case ASK_STDIN_END:
        assert(f->len == 0 && c->asked != ASK_JOB_INPUT && more);
        c->input_ended = true;
        break;
    case ASK_INPUT_END:
        assert(f->len == 1 && (c->asked == ASK_JOB_INPUT || c->last) && more);
        c->input_ended = true;
        break;
    case ASK_SIGNAL:
        assert(c->asked == ASK_ATTACH && msg_u64_parse(f->data, f->len, &v) && v >= 1 && v <= 64);
        break;
    default:
        assert(f->type == ASK_RESIZE && c->asked == ASK_ATTACH && msg_u64_parse(f->data, f->len, &v) && v <= UINT32_MAX);
    }
}

UNSEEN static const char *keep(char *ret, const char *text)
{
    snprintf(ret, BOX_NAME_MAX + 1, "%s", text);
    return ret;
}

UNSEEN static void heard_by_steward(struct rig_conn *c, const struct frame *f)
{
    assert(f->type == DEED_ASK && f->chan == 0 && !c->asked && msg_deed_parse(f->data, f->len, &c->deed));
    assert(c->deed.kind > 0 && c->deed.kind < DEED_KIND_END);
    c->asked = f->type;
    c->deed.id = keep(c->deed_mem[0], c->deed.id);
    c->deed.name = keep(c->deed_mem[1], c->deed.name);
    c->deed.tenant = keep(c->deed_mem[2], c->deed.tenant);
    assert(path_is_box_name(c->deed.caller));
    c->deed.policy = c->deed.sets = c->deed.caller = "";
    if (!rig.deeds_by_hand)
        rig_do_deed(c);
}

UNSEEN void world_heard(struct rig_conn *c, const struct frame *f)
{
    assert(f->chan == 0);
    (c->kind == RIG_KEEPER ? heard_by_keeper : heard_by_steward)(c, f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the messages: one field table per struct, one writer and one strict parser driven by it. Pure, no allocation.
 *
 * A field is a number, a flag or a text at an offset of its struct; the tag is its place in the table plus one. Texts travel
 * with their final NUL, so that a parsed struct can point at them. Lists (arguments, environment) have a tag of their own and
 * may repeat; nothing else may. */
#include "wire/message.h"

#include <string.h>

enum field_kind { F_U64, F_U32, F_U16, F_BOOL, F_TEXT };

struct field {
    enum field_kind kind;
    size_t offset;
};

#define FIELD(kind, type, member)                                                                                                          \
    {                                                                                                                                      \
        kind, offsetof(struct type, member)                                                                                                \
    }
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TAG_ARG 100
#define TAG_ENV 101
#define TAG_HELD 102

static void put_fields(const void *m, const struct field *f, size_t count, struct record_writer *w)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)m + f[i].offset;
        uint8_t tag = (uint8_t)(i + 1);
        switch (f[i].kind) {
        case F_U64:
            record_put_u64(w, tag, *(const uint64_t *)at);
            break;
        case F_U32:
            record_put_u64(w, tag, *(const uint32_t *)at);
            break;
        case F_U16:
            record_put_u64(w, tag, *(const uint16_t *)at);
            break;
        case F_BOOL:
            record_put_u64(w, tag, *(const bool *)at);
            break;
        case F_TEXT: {
            const char *s = *(const char *const *)at;
            record_put(w, tag, s ? s : "", (s ? strlen(s) : 0) + 1);
            break;
        }
        }
    }
}

/* A text field with its final NUL and no other. */
static const char *text_of(const struct record_field *f)
{
    return f->len > 0 && memchr(f->data, 0, f->len) == f->data + f->len - 1 ? (const char *)f->data : NULL;
}

static bool take_field(void *m, const struct field *def, const struct record_field *f)
{
    char *at = (char *)m + def->offset;
    uint64_t v = 0;
    if (def->kind == F_TEXT)
        return (*(const char **)at = text_of(f)) != NULL;
    if (!record_u64(f, &v))
        return false;
    switch (def->kind) {
    case F_U64:
        *(uint64_t *)at = v;
        return true;
    case F_U32:
        *(uint32_t *)at = (uint32_t)v;
        return v <= UINT32_MAX;
    case F_U16:
        *(uint16_t *)at = (uint16_t)v;
        return v <= UINT16_MAX;
    case F_BOOL:
        *(bool *)at = v == 1;
        return v <= 1;
    case F_TEXT:
        break;
    }
    return false;
}

/* Every field exactly once and in order; list items (exec only) come after. */
static bool take_fields(void *m, const struct field *defs, size_t count, struct record_reader *r)
{
    for (size_t i = 0; i < count; i++) {
        struct record_field f;
        if (record_next(r, &f) != 1 || f.tag != i + 1 || !take_field(m, &defs[i], &f))
            return false;
    }
    return true;
}

static bool at_end(const struct record_reader *r)
{
    return r->at == r->end;
}

static const struct field exec_fields[] = {
    FIELD(F_U64, msg_exec, flags), FIELD(F_U16, msg_exec, rows),   FIELD(F_U16, msg_exec, cols),       FIELD(F_TEXT, msg_exec, user),
    FIELD(F_U32, msg_exec, uid),   FIELD(F_U32, msg_exec, gid),    FIELD(F_U64, msg_exec, timeout_ms), FIELD(F_U64, msg_exec, cpu_ms),
    FIELD(F_TEXT, msg_exec, cwd),  FIELD(F_TEXT, msg_exec, label), FIELD(F_TEXT, msg_exec, key),
};

void msg_exec_write(const struct msg_exec *m, struct record_writer *w)
{
    put_fields(m, exec_fields, COUNT(exec_fields), w);
    for (size_t i = 0; i < m->argc; i++)
        record_put(w, TAG_ARG, m->argv[i], strlen(m->argv[i]) + 1);
    for (size_t i = 0; i < m->envc; i++)
        record_put(w, TAG_ENV, m->env[i], strlen(m->env[i]) + 1);
    for (size_t i = 0; i < m->heldc; i++)
        record_put(w, TAG_HELD, m->held[i], strlen(m->held[i]) + 1);
}

static bool take_exec_head(struct record_reader *r, struct msg_exec *ret)
{
    ret->argc = ret->envc = ret->heldc = 0;
    return take_fields(ret, exec_fields, COUNT(exec_fields), r) && !(ret->flags & ~(uint64_t)EXEC_FLAGS_ALL);
}

bool msg_exec_parse_head(const void *p, size_t n, struct msg_exec *ret)
{
    struct record_reader r;
    record_open(&r, p, n);
    return take_exec_head(&r, ret);
}

static bool is_env_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= ENV_NAME_MAX && !s[n];
}

bool msg_exec_parse(const void *p, size_t n, struct msg_exec *ret)
{
    struct record_reader r;
    struct record_field f;
    int got;
    record_open(&r, p, n);
    if (!take_exec_head(&r, ret))
        return false;
    while ((got = record_next(&r, &f)) == 1) {
        const char *s = text_of(&f);
        if (!s)
            return false;
        if (f.tag == TAG_ARG && ret->argc < EXEC_STRINGS_MAX && ret->envc + ret->heldc == 0)
            ret->argv[ret->argc++] = s;
        else if (f.tag == TAG_ENV && ret->envc < EXEC_STRINGS_MAX && ret->heldc == 0 && strchr(s, '=') && s[0] != '=')
            ret->env[ret->envc++] = s;
        else if (f.tag == TAG_HELD && ret->heldc < ENV_HELD_MAX && is_env_name(s))
            ret->held[ret->heldc++] = s;
        else
            return false;
    }
    ret->argv[ret->argc] = ret->env[ret->envc] = NULL;
    return got == 0 && ret->argc > 0;
}

#define SIMPLE_MESSAGE(name, ...)                                                                                                          \
    static const struct field name##_fields[] = {__VA_ARGS__};                                                                             \
    void msg_##name##_write(const struct msg_##name *m, struct record_writer *w)                                                           \
    {                                                                                                                                      \
        put_fields(m, name##_fields, COUNT(name##_fields), w);                                                                             \
    }                                                                                                                                      \
    bool msg_##name##_parse(const void *p, size_t n, struct msg_##name *ret)                                                               \
    {                                                                                                                                      \
        struct record_reader r;                                                                                                            \
        record_open(&r, p, n);                                                                                                             \
        return take_fields(ret, name##_fields, COUNT(name##_fields), &r) && at_end(&r);                                                    \
    }

SIMPLE_MESSAGE(config, FIELD(F_U64, msg_config, version), FIELD(F_U32, msg_config, uid), FIELD(F_U32, msg_config, gid),
               FIELD(F_BOOL, msg_config, one_id), FIELD(F_BOOL, msg_config, pretence), FIELD(F_U32, msg_config, seccomp),
               FIELD(F_U64, msg_config, nofile), FIELD(F_U64, msg_config, processes), FIELD(F_BOOL, msg_config, spare),
               FIELD(F_BOOL, msg_config, solo), FIELD(F_U64, msg_config, weaken))

SIMPLE_MESSAGE(deed, FIELD(F_U64, msg_deed, kind), FIELD(F_TEXT, msg_deed, id), FIELD(F_TEXT, msg_deed, name),
               FIELD(F_TEXT, msg_deed, tenant), FIELD(F_TEXT, msg_deed, policy), FIELD(F_TEXT, msg_deed, sets),
               FIELD(F_BOOL, msg_deed, start), FIELD(F_BOOL, msg_deed, narrower), FIELD(F_BOOL, msg_deed, only_idle),
               FIELD(F_U64, msg_deed, born), FIELD(F_TEXT, msg_deed, caller), FIELD(F_TEXT, msg_deed, snapshot),
               FIELD(F_U64, msg_deed, count), FIELD(F_BOOL, msg_deed, force), FIELD(F_BOOL, msg_deed, again),
               FIELD(F_BOOL, msg_deed, automatic), FIELD(F_BOOL, msg_deed, by_hand), FIELD(F_TEXT, msg_deed, paths),
               FIELD(F_TEXT, msg_deed, until), FIELD(F_TEXT, msg_deed, form), FIELD(F_BOOL, msg_deed, guarded),
               FIELD(F_BOOL, msg_deed, dry), FIELD(F_BOOL, msg_deed, images), FIELD(F_U64, msg_deed, for_ms))

SIMPLE_MESSAGE(deed_done, FIELD(F_U64, msg_deed_done, code), FIELD(F_TEXT, msg_deed_done, text), FIELD(F_TEXT, msg_deed_done, id),
               FIELD(F_TEXT, msg_deed_done, name))

SIMPLE_MESSAGE(probe, FIELD(F_BOOL, msg_probe, full), FIELD(F_U32, msg_probe, port), FIELD(F_TEXT, msg_probe, planted),
               FIELD(F_TEXT, msg_probe, abstract))

SIMPLE_MESSAGE(exit, FIELD(F_U64, msg_exit, flags), FIELD(F_U64, msg_exit, value), FIELD(F_U64, msg_exit, stage),
               FIELD(F_U64, msg_exit, cpu_us), FIELD(F_U64, msg_exit, peak_kib))

const struct msg_result_name msg_result_names[] = {
    {RESULT_TIMEOUT, "timed_out"},   {RESULT_CPU_LIMIT, "cpu_limit"}, {RESULT_OOM, "out_of_memory"},   {RESULT_TRUNCATED, "truncated"},
    {RESULT_NOT_STARTED, "started"}, {RESULT_KILLED, "killed"},       {RESULT_DISK_FULL, "disk_full"}, {0, NULL},
};

SIMPLE_MESSAGE(result, FIELD(F_U64, msg_result, flags), FIELD(F_U64, msg_result, status), FIELD(F_U64, msg_result, signal),
               FIELD(F_U64, msg_result, time_us), FIELD(F_U64, msg_result, cpu_us), FIELD(F_U64, msg_result, peak_kib),
               FIELD(F_U64, msg_result, out_bytes), FIELD(F_U64, msg_result, dropped_bytes), FIELD(F_TEXT, msg_result, message))

SIMPLE_MESSAGE(error, FIELD(F_U64, msg_error, code), FIELD(F_TEXT, msg_error, text))

SIMPLE_MESSAGE(job, FIELD(F_U64, msg_job, id), FIELD(F_U64, msg_job, pid), FIELD(F_U64, msg_job, state),
               FIELD(F_U64, msg_job, started_unix_ms), FIELD(F_U64, msg_job, time_us), FIELD(F_U64, msg_job, status),
               FIELD(F_U64, msg_job, signal), FIELD(F_U64, msg_job, flags), FIELD(F_U64, msg_job, cpu_us), FIELD(F_U64, msg_job, peak_kib),
               FIELD(F_U64, msg_job, out_bytes), FIELD(F_U64, msg_job, dropped_bytes), FIELD(F_BOOL, msg_job, detached),
               FIELD(F_BOOL, msg_job, lasts), FIELD(F_BOOL, msg_job, tty), FIELD(F_U64, msg_job, in_bytes), FIELD(F_TEXT, msg_job, key),
               FIELD(F_TEXT, msg_job, command), FIELD(F_TEXT, msg_job, message))

const char *msg_job_state(const struct msg_job *m)
{
    static const char *const names[JOB_STATE_COUNT] = {"queued", "running", "ended"};
    return m->state < JOB_STATE_COUNT ? names[m->state] : "unknown";
}

struct msg_result msg_job_result(const struct msg_job *m)
{
    return (struct msg_result){.flags = m->flags,
                               .status = m->status,
                               .signal = m->signal,
                               .time_us = m->time_us,
                               .cpu_us = m->cpu_us,
                               .peak_kib = m->peak_kib,
                               .out_bytes = m->out_bytes,
                               .dropped_bytes = m->dropped_bytes,
                               .message = m->message};
}

SIMPLE_MESSAGE(job_ref, FIELD(F_U64, msg_job_ref, id), FIELD(F_U64, msg_job_ref, signal), FIELD(F_BOOL, msg_job_ref, follow),
               FIELD(F_U64, msg_job_ref, offset))

SIMPLE_MESSAGE(preface, FIELD(F_TEXT, msg_preface, caller), FIELD(F_TEXT, msg_preface, input))

SIMPLE_MESSAGE(note, FIELD(F_TEXT, msg_note, event), FIELD(F_TEXT, msg_note, what))

SIMPLE_MESSAGE(question, FIELD(F_TEXT, msg_question, id), FIELD(F_U64, msg_question, state), FIELD(F_TEXT, msg_question, host),
               FIELD(F_TEXT, msg_question, name), FIELD(F_U64, msg_question, port), FIELD(F_TEXT, msg_question, rule),
               FIELD(F_U64, msg_question, job), FIELD(F_U64, msg_question, asked_unix_ms), FIELD(F_U64, msg_question, expires_unix_ms),
               FIELD(F_TEXT, msg_question, by), FIELD(F_TEXT, msg_question, scope))

const char *msg_question_state(const struct msg_question *m)
{
    static const char *const names[QUESTION_STATE_COUNT] = {"open", "allowed", "denied", "withdrawn"};
    return m->state < QUESTION_STATE_COUNT ? names[m->state] : "unknown";
}

const char *const msg_verdict_scopes[APPLIES_COUNT] = {"once", "box", "project", "always"};

SIMPLE_MESSAGE(verdict, FIELD(F_TEXT, msg_verdict, question), FIELD(F_TEXT, msg_verdict, box), FIELD(F_TEXT, msg_verdict, host),
               FIELD(F_U64, msg_verdict, port), FIELD(F_BOOL, msg_verdict, allow), FIELD(F_U64, msg_verdict, scope),
               FIELD(F_U64, msg_verdict, until_unix))

SIMPLE_MESSAGE(attach, FIELD(F_U64, msg_attach, id), FIELD(F_U64, msg_attach, offset))

SIMPLE_MESSAGE(info, FIELD(F_U64, msg_info, version), FIELD(F_U64, msg_info, keeper_pid), FIELD(F_U64, msg_info, init_pid),
               FIELD(F_U64, msg_info, started_unix_ms), FIELD(F_U64, msg_info, jobs), FIELD(F_U64, msg_info, clients),
               FIELD(F_U64, msg_info, ended), FIELD(F_TEXT, msg_info, name), FIELD(F_TEXT, msg_info, id), FIELD(F_TEXT, msg_info, state),
               FIELD(F_TEXT, msg_info, policy_digest), FIELD(F_TEXT, msg_info, memory_by), FIELD(F_U64, msg_info, cut),
               FIELD(F_BOOL, msg_info, has_network), FIELD(F_U64, msg_info, net_open), FIELD(F_U64, msg_info, net_connections),
               FIELD(F_U64, msg_info, net_refused), FIELD(F_U64, msg_info, net_in), FIELD(F_U64, msg_info, net_out))

SIMPLE_MESSAGE(host, FIELD(F_TEXT, msg_host, name), FIELD(F_U16, msg_host, port), FIELD(F_U64, msg_host, connections),
               FIELD(F_U64, msg_host, refused), FIELD(F_U64, msg_host, in), FIELD(F_U64, msg_host, out))

bool msg_u64_parse(const void *p, size_t n, uint64_t *ret)
{
    struct record_field f = {.data = p, .len = n};
    return record_u64(&f, ret);
}

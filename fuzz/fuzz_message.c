/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: frames and every message of wire/. The first byte chooses. A message that is taken writes back to the same bytes,
 * and a frame is cut alike whatever pieces it comes in. */
#include <assert.h>

#include "input.h"
#include "wire/frame.h"
#include "wire/message.h"

static uint8_t again[65536];

static void same(const struct input *in, const struct record_writer *w)
{
    assert(!w->full && w->len == in->left && memcmp(again, in->at, in->left) == 0);
}

#define TRY(name)                                                                                                                          \
    static void try_##name(const struct input *in)                                                                                         \
    {                                                                                                                                      \
        struct msg_##name m, part;                                                                                                         \
        struct record_writer w;                                                                                                            \
        if (!msg_##name##_parse(in->at, in->left, &m))                                                                                     \
            return;                                                                                                                        \
        record_start(&w, again, sizeof(again));                                                                                            \
        msg_##name##_write(&m, &w);                                                                                                        \
        same(in, &w);                                                                                                                      \
        assert(!msg_##name##_parse(in->at, in->left - 1, &part));                                                                          \
    }
TRY(config)
TRY(exit)
TRY(result)
TRY(error)
TRY(job)
TRY(job_ref)
TRY(info)
TRY(question)
TRY(verdict)

static void try_exec(const struct input *in)
{
    static struct msg_exec m, head;
    struct record_writer w;
    bool whole = msg_exec_parse(in->at, in->left, &m);
    bool top = msg_exec_parse_head(in->at, in->left, &head);
    assert(top || !whole);
    if (!whole)
        return;
    assert(m.argc > 0 && m.argc <= EXEC_STRINGS_MAX && m.envc <= EXEC_STRINGS_MAX && !m.argv[m.argc] && !m.env[m.envc]);
    assert(!(m.flags & ~(uint64_t)EXEC_FLAGS_ALL) && m.uid == head.uid && m.timeout_ms == head.timeout_ms);
    record_start(&w, again, sizeof(again));
    msg_exec_write(&m, &w);
    same(in, &w);
}

static void try_frames(const struct input *in)
{
    struct input rest = *in;
    struct frame f, part;
    size_t used = 0, got = 0;
    while (frame_parse(rest.at, rest.left, &f, &used) == 1) {
        uint8_t head[FRAME_HEAD];
        assert(used <= rest.left && f.len <= FRAME_PAYLOAD_MAX && used == FRAME_HEAD + f.len);
        frame_put_head(head, f.type, f.chan, f.len);
        assert(memcmp(head, rest.at, sizeof(head)) == 0);
        assert(frame_parse(rest.at, used - 1, &part, &got) == 0 && frame_parse(rest.at, used / 2, &part, &got) == 0);
        rest.at += used;
        rest.left -= used;
    }
}

static void try_number(const struct input *in)
{
    uint64_t v = 0;
    if (!msg_u64_parse(in->at, in->left, &v))
        return;
    assert(in->left == 8);
    for (int i = 0; i < 8; i++)
        assert(in->at[i] == (uint8_t)(v >> (8 * i)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const struct input *) = {try_frames, try_number, try_exec,    try_config, try_exit,     try_result,
                                                          try_error,  try_job,    try_job_ref, try_info,   try_question, try_verdict};
    struct input in = {data, size};
    tries[input_byte(&in) % (sizeof(tries) / sizeof(tries[0]))](&in);
    return 0;
}

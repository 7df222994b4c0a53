/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what the host's own files and the kernel's tables say (subordinate ids, mountinfo, cgroup files, id maps, process
 * states), and the answers of D-Bus. The first byte chooses. Readers that are static in their file are reached by including it. */
#include <assert.h>
#include <sys/mman.h>

/* clang-format off: each file needs its own names */
#define set cgroup_set
#include "confine/cgroup.c"
#undef set
#include "confine/census.c"
#include "confine/ids.c"
#include "init/tree.c"
/* clang-format on */
#include "confine/dbus.h"
#include "confine/subid.h"
#include "input.h"

#define TEXT_MAX 4096
static char text[TEXT_MAX], second[TEXT_MAX];

static void try_subid(struct input *in)
{
    uint32_t start = 0;
    input_text(in, text, sizeof(text));
    input_text(in, second, sizeof(second));
    const char *const texts[] = {text, second};
    (void)subid_has(text, "agent", 1000);
    if (!subid_free(texts, 2, "root:x:0:0\nu:x:100007:1\n", &start))
        return;
    assert(start >= 100000 && start + SUBID_COUNT <= 0x40000000);
    /* What it gave is then taken. */
    char more[64];
    uint32_t next = 0;
    snprintf(more, sizeof(more), "z:%u:%u\n", start, SUBID_COUNT);
    const char *const with[] = {text, second, more};
    assert(subid_has(more, "z", 1));
    if (subid_free(with, 3, "u:x:100007:1\n", &next))
        assert(next >= start + SUBID_COUNT || next + SUBID_COUNT <= start);
}

static void try_mountinfo(struct input *in)
{
    char small[16], place[PATH_BYTES_MAX / 4];
    input_text(in, text, sizeof(text));
    for (int c = -1; c < CGROUP_CONTROLLERS; c++) {
        const char *name = c < 0 ? NULL : controller_names[c];
        if (mount_of(text, name, place, sizeof(place)))
            assert(strlen(place) < sizeof(place) && !strchr(place, ' ') && !strchr(place, '\n') && strstr(text, place));
        (void)mount_of(text, name, small, sizeof(small));
    }
}

static void try_words(struct input *in)
{
    uint64_t v = 0;
    input_text(in, second, 32);
    input_text(in, text, sizeof(text));
    if (value_in(text, second))
        assert(strpbrk(text, "123456789"));
    if (second[0] && has_word(text, second))
        assert(strstr(text, second));
    if (second[0] && listed(text, second))
        assert(strstr(text, second));
    if (leading_number(text, 1000, &v))
        assert(v <= 1000);
    for (int i = 1; i < 16; i++)
        (void)stat_field(text, i, &v);
}

/* Files that are named, not given: through a file in memory. */
static void try_files(struct input *in)
{
    static int fd = -1;
    static char path[32];
    size_t n;
    uint32_t from = (uint32_t)input_number(in, 4), start, count;
    const uint8_t *p = input_bytes(in, TEXT_MAX, &n);
    if (fd < 0) {
        fd = memfd_create("host", MFD_CLOEXEC);
        assert(fd >= 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    assert(ftruncate(fd, 0) == 0 && pwrite(fd, p, n, 0) == (ssize_t)n);
    (void)available(path, from, 65536);
    if (subordinate(path, "agent", 1000, &start, &count))
        assert(count >= RANGE_IDS);
}

static void try_dbus(struct input *in)
{
    struct dbus_message m, part;
    size_t used = 0, got = 0;
    while (dbus_parse(in->at, in->left, &m, &used) == 1) {
        assert(used <= in->left && used <= DBUS_MESSAGE_MAX && m.body >= in->at && m.body + m.body_len <= in->at + used);
        assert(dbus_parse(in->at, used - 1, &part, &got) == 0);
        const char *const texts[] = {m.path, m.interface, m.member, m.error, m.destination, m.sender, m.signature};
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
            assert(texts[i] && strlen(texts[i]) < used);
        struct dbus_reader r = dbus_body(&m);
        while (!r.bad && r.at < r.end) {
            (void)dbus_take_u32(&r);
            assert(dbus_take_text(&r));
        }
        in->at += used;
        in->left -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(struct input *) = {try_subid, try_mountinfo, try_words, try_files, try_dbus};
    struct input in = {data, size};
    tries[input_byte(&in) % (sizeof(tries) / sizeof(tries[0]))](&in);
    return 0;
}

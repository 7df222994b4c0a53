/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the second statement of the argument rules. It shares nothing with the tables but the names of the calls. */
#include "confine/seccomp_want.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static uint32_t want_mode(uint64_t mode)
{
    unsigned type = ((uint32_t)mode >> 12) & 15;
    return type == 2 || type == 6 || mode & 06000 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_mode_at_1(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[1] & 06000 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_mode_at_2(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[2] & 06000 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_open(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[1] & 020000100 && arg[2] & 06000 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_openat(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[2] & 020000100 && arg[3] & 06000 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_mknod(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return want_mode(arg[1]);
}

static uint32_t want_mknodat(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return want_mode(arg[2]);
}

static uint32_t want_clone(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    static const uint32_t forbidden[] = {0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000};
    for (size_t i = 0; i < COUNT(forbidden); i++)
        if ((uint32_t)arg[0] & forbidden[i])
            return FAILS(EPERM);
    return ALLOWED;
}

static uint32_t want_own_limits(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (int)arg[0] == 0 ? ALLOWED : FAILS(EPERM);
}

static uint32_t want_futex(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    unsigned op = (unsigned)(arg[1] % 128);
    return op == 11 || op == 12 ? FAILS(ENOSYS) : ALLOWED;
}

static uint32_t want_prctl(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    int option = (int)arg[0];
    return option == 35 || option == 62 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_personality(unsigned profiles, const __u64 *arg)
{
    uint32_t p = (uint32_t)arg[0];
    bool may = p == 0 || p + 1 == 0 || ((profiles & IN_DEBUG) && p == 0x0040000);
    return may ? ALLOWED : FAILS(EPERM);
}

static uint32_t want_socket(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    int family = (int)arg[0], type = (int)arg[1], protocol = (int)arg[2];
    type &= ~02004000;
    bool may = family == 1 || (family == 16 && protocol == 0);
    if (family == 2 || family == 10)
        may = (type == 1 || type == 2) && (protocol == 0 || protocol == 1 || protocol == 6 || protocol == 17 || protocol == 58);
    return may ? ALLOWED : FAILS(EAFNOSUPPORT);
}

static uint32_t want_socketpair(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (int)arg[0] == 1 ? ALLOWED : FAILS(EAFNOSUPPORT);
}

static uint32_t want_setsockopt(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    static const int refused[][2] = {{6, 19}, {6, 31}, {1, 26}, {1, 50}, {1, 51}, {1, 52}, {17, 100}};
    for (size_t i = 0; i < COUNT(refused); i++)
        if ((int)arg[1] == refused[i][0] && (int)arg[2] == refused[i][1])
            return FAILS(ENOPROTOOPT);
    return ALLOWED;
}

static uint32_t want_flags_at_3(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[3] & (1u << 29 | 1u) ? FAILS(EOPNOTSUPP) : ALLOWED;
}

static uint32_t want_flags_at_2(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[2] & (1u << 29 | 1u) ? FAILS(EOPNOTSUPP) : ALLOWED;
}

static uint32_t want_plain_pipe(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[1] & 0200 ? FAILS(ENOPKG) : ALLOWED;
}

static uint32_t want_ioctl(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    unsigned command = (unsigned)arg[1];
    return command == 0x5412 || command == 0x541c || command == 0x5423 ? FAILS(EPERM) : ALLOWED;
}

static uint32_t want_local_socket(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (int)arg[0] == 1 ? ALLOWED : KILLED;
}

static uint32_t want_data_map(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[2] & 4 ? KILLED : ALLOWED;
}

static uint32_t want_memory_map(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return !(arg[2] & 4) && (arg[3] & 0x20) ? ALLOWED : KILLED;
}

static uint32_t want_own_stat(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return arg[3] & 0x1000 ? ALLOWED : KILLED;
}

static uint32_t want_terminal_question(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    unsigned command = (unsigned)arg[1];
    return command == 0x5401 || command == 0x5413 ? ALLOWED : KILLED;
}

static uint32_t want_copy_or_terminal_question(unsigned profiles, const __u64 *arg)
{
    return (unsigned)arg[1] == 0x40049409 ? ALLOWED : want_terminal_question(profiles, arg);
}

static uint32_t want_harmless_node(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    unsigned type = ((uint32_t)arg[2] >> 12) & 15;
    return type == 1 || type == 12 || (type == 2 && (uint32_t)arg[3] == 0) ? ALLOWED : KILLED;
}

static uint32_t want_owner_only_at_1(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (uint32_t)arg[1] == 0700 ? ALLOWED : KILLED;
}

static uint32_t want_owner_only_at_2(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (uint32_t)arg[2] == 0700 ? ALLOWED : KILLED;
}

static uint32_t want_not_followed(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (uint32_t)arg[4] == 0x100 ? ALLOWED : KILLED;
}

static uint32_t want_internet_socket(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    return (uint32_t)arg[0] == 2 || (uint32_t)arg[0] == 10 ? ALLOWED : KILLED;
}

static uint32_t want_flow_option(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    uint32_t level = (uint32_t)arg[1], name = (uint32_t)arg[2];
    return (level == 1 && (name == 18 || name == 13 || name == 9)) || (level == 6 && name == 1) ? ALLOWED : KILLED;
}

static uint32_t want_pipe_flag(unsigned profiles, const __u64 *arg)
{
    (void)profiles;
    uint32_t what = (uint32_t)arg[1];
    return what == 1031 || what == 2 || what == 4 ? ALLOWED : KILLED;
}

struct rule {
    const char *name;
    want_rule *want;
};

static const struct rule payload_rules[] = {
    {"mknod", want_mknod},           {"mknodat", want_mknodat},         {"clone", want_clone},        {"futex", want_futex},
    {"prctl", want_prctl},           {"personality", want_personality}, {"socket", want_socket},      {"socketpair", want_socketpair},
    {"setsockopt", want_setsockopt}, {"sendto", want_flags_at_3},       {"sendmsg", want_flags_at_2}, {"sendmmsg", want_flags_at_3},
    {"ioctl", want_ioctl},           {"chmod", want_mode_at_1},         {"fchmod", want_mode_at_1},   {"creat", want_mode_at_1},
    {"fchmodat", want_mode_at_2},    {"fchmodat2", want_mode_at_2},     {"open", want_open},          {"openat", want_openat},
    {"prlimit64", want_own_limits},  {"pipe2", want_plain_pipe},
};
static const struct rule keeper_rules[] = {{"socket", want_local_socket}, {"mmap", want_data_map}, {"mprotect", want_data_map}};
static const struct rule reader_rules[] = {
    {"mmap", want_memory_map}, {"mprotect", want_data_map}, {"newfstatat", want_own_stat}, {"ioctl", want_terminal_question}};

static const struct rule dial_rules[] = {{"mmap", want_data_map}, {"mprotect", want_data_map}};
static const struct rule daemon_rules[] = {
    {"socket", want_local_socket}, {"socketpair", want_local_socket}, {"mmap", want_data_map}, {"mprotect", want_data_map}};

static const struct rule gateway_rules[] = {{"socket", want_internet_socket},
                                            {"setsockopt", want_flow_option},
                                            {"fcntl", want_pipe_flag},
                                            {"mmap", want_data_map},
                                            {"mprotect", want_data_map}};

static const struct rule tree_reader_rules[] = {{"mmap", want_data_map}, {"mprotect", want_data_map}, {"ioctl", want_terminal_question}};
static const struct rule tree_writer_rules[] = {
    {"mmap", want_data_map},         {"mprotect", want_data_map},     {"ioctl", want_copy_or_terminal_question},
    {"mknodat", want_harmless_node}, {"chmod", want_owner_only_at_1}, {"fchmodat", want_owner_only_at_2},
    {"fchownat", want_not_followed},
};

static const struct {
    const struct rule *rules;
    size_t count;
} lists[] = {
    [WANT_PAYLOAD] = {payload_rules, COUNT(payload_rules)},
    [WANT_KEEPER] = {keeper_rules, COUNT(keeper_rules)},
    [WANT_READER] = {reader_rules, COUNT(reader_rules)},
    [WANT_DAEMON] = {daemon_rules, COUNT(daemon_rules)},
    [WANT_DIAL] = {dial_rules, COUNT(dial_rules)},
    [WANT_WARDEN] = {dial_rules, COUNT(dial_rules)},
    [WANT_MANTLE] = {NULL, 0},
    [WANT_GATEWAY] = {gateway_rules, COUNT(gateway_rules)},
    [WANT_TREE_READER] = {tree_reader_rules, COUNT(tree_reader_rules)},
    [WANT_TREE_WRITER] = {tree_writer_rules, COUNT(tree_writer_rules)},
};

want_rule *want_for(enum want_list list, const char *call)
{
    for (size_t i = 0; i < lists[list].count; i++)
        if (strcmp(lists[list].rules[i].name, call) == 0)
            return lists[list].rules[i].want;
    return NULL;
}

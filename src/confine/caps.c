/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the dropping of capabilities. */
#include "confine/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_drop_bounding(struct pale_err *e)
{
    for (int cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break; /* past the last one this kernel knows */
        return err_os(e, "drop capability %d from the bounding set", cap);
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return err_os(e, "clear ambient capabilities");
    return 0;
}

static bool read_caps(struct __user_cap_data_struct d[2])
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &h, d) == 0;
}

bool caps_has(int cap)
{
    struct __user_cap_data_struct d[2] = {{0}};
    if (!read_caps(d))
        return true; /* in doubt, assume it is there */
    if (cap >= 0)
        return d[cap / 32].effective & (1u << (cap % 32));
    return d[0].effective || d[0].permitted || d[0].inheritable || d[1].effective || d[1].permitted || d[1].inheritable;
}

int caps_drop_all(struct pale_err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &h, none) < 0)
        return err_os(e, "drop capabilities");
    if (caps_has(-1))
        return err_set(e, PALE_INTERNAL, "capabilities are still there after dropping them");
    return 0;
}

int caps_drop_but(int cap, struct pale_err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}}, now[2] = {{0}};
    int r = caps_has(CAP_SETPCAP) ? caps_drop_bounding(e) : 0;
    if (r < 0)
        return r;
    if (!read_caps(d))
        return err_os(e, "read capabilities");
    struct __user_cap_data_struct most[2] = {d[0], d[1]};
    for (int i = 0; i < 2; i++) {
        unsigned bit = cap / 32 == i ? 1u << (cap % 32) : 0;
        d[i] = (struct __user_cap_data_struct){.effective = d[i].effective & bit, .permitted = d[i].permitted & bit};
    }
    if (syscall(SYS_capset, &h, d) < 0)
        return err_os(e, "drop capabilities");
    /* Whoever could take one back has not given it up. */
    bool more = most[0].permitted != d[0].permitted || most[1].permitted != d[1].permitted;
    if (more && syscall(SYS_capset, &h, most) == 0)
        return err_set(e, PALE_INTERNAL, "capabilities that were dropped could be taken back");
    if (!read_caps(now) || now[0].permitted != d[0].permitted || now[1].permitted != d[1].permitted)
        return err_set(e, PALE_INTERNAL, "capabilities are still there after dropping them");
    return 0;
}

int caps_use(int cap, bool on, struct pale_err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}};
    unsigned bit = 1u << (cap % 32);
    if (!read_caps(d))
        return err_os(e, "read capabilities");
    struct __user_cap_data_struct *at = &d[cap / 32];
    at->effective = on ? at->effective | (at->permitted & bit) : at->effective & ~bit;
    return syscall(SYS_capset, &h, d) < 0 ? err_os(e, on ? "take up capability %d" : "lay aside capability %d", cap) : 0;
}

#ifdef PALE_WEAKEN
void caps_keep(void)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}};
    if (!read_caps(d))
        return;
    for (int i = 0; i < 2; i++)
        d[i].inheritable = d[i].effective = d[i].permitted;
    syscall(SYS_capset, &h, d);
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    for (int cap = 0; cap < 64; cap++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}
#endif

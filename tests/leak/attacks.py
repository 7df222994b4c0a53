# SPDX-License-Identifier: Apache-2.0
"""Attempts that a case makes from inside a box. Each prints one word, so that a case sees whether the attempt got through."""

# Calls the kernel directly, so that no library stands between the attempt and the wall.
SYSCALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(nr, *a):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    return r, ctypes.get_errno()
import platform
X86 = platform.machine() == 'x86_64'
"""

# name: (x86-64, arm64)
NUMBERS = {
    "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268), "pivot_root": (155, 41), "chroot": (161, 51),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "ptrace": (101, 117), "process_vm_readv": (310, 270), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224),
    "sethostname": (170, 161), "settimeofday": (164, 170), "syslog": (103, 116), "fsopen": (430, 430), "fsmount": (432, 432),
    "open_tree": (428, 428), "move_mount": (429, 429), "mount_setattr": (442, 442), "clone3": (435, 435), "acct": (163, 89),
    "quotactl": (179, 60), "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "mbind": (237, 235), "vmsplice": (278, 75),
    "splice": (275, 76), "tee": (276, 77),
}


def tries(calls):
    """A program that makes each call with plain arguments and prints name, result and errno."""
    rows = ",".join(f"({n!r},{NUMBERS[n][0]},{NUMBERS[n][1]},{tuple(a)!r})" for n, a in calls)
    return SYSCALL + f"""
for name, x, a, args in [{rows}]:
    r, e = call(x if X86 else a, *[ctypes.c_char_p(v) if isinstance(v, bytes) else v for v in args])
    print(name, 'open' if r >= 0 else 'refused', e, flush=True)
"""

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
    "splice": (275, 76), "tee": (276, 77), "io_setup": (206, 0),
}


def tries(calls):
    """A program that makes each call with plain arguments and prints name, result and errno."""
    rows = ",".join(f"({n!r},{NUMBERS[n][0]},{NUMBERS[n][1]},{tuple(a)!r})" for n, a in calls)
    return SYSCALL + f"""
for name, x, a, args in [{rows}]:
    r, e = call(x if X86 else a, *[ctypes.c_char_p(v) if isinstance(v, bytes) else v for v in args])
    print(name, 'open' if r >= 0 else 'refused', e, flush=True)
"""


# Every call that can give a file a setuid or setgid bit, on files of its own below the folder named by the first word.
SETID = SYSCALL + """
import struct
os.chdir(sys.argv[1])
names = iter('s%d' % i for i in range(1000))
def fresh():
    n = next(names)
    os.close(os.open(n, os.O_WRONLY | os.O_CREAT, 0o755))
    return n.encode()
def path():
    return next(names).encode()
CREATE = os.O_CREAT | os.O_WRONLY
for bits in (0o4755, 0o2755, 0o6755, 0o104755, (1 << 32) | 0o6755):
    if X86:
        call(90, fresh(), bits)
        call(85, path(), bits)
        call(2, path(), CREATE, bits)
        call(133, path(), 0o100000 | bits, 0)
    call(91 if X86 else 52, os.open(fresh(), os.O_RDONLY), bits)
    call(268 if X86 else 53, -100, fresh(), bits)
    call(452, -100, fresh(), bits, 0)
    call(452, os.open(fresh(), os.O_RDONLY), b'', bits, 0x1000)
    call(257 if X86 else 56, -100, path(), CREATE, bits)
    call(259 if X86 else 33, -100, path(), 0o100000 | bits, 0)
    call(437, -100, path(), struct.pack('QQQ', CREATE, bits & 0o7777, 0), 24)
    fd, e = call(257 if X86 else 56, -100, b'.', os.O_TMPFILE | os.O_WRONLY, bits)
    if fd >= 0:
        call(265 if X86 else 37, -100, b'/proc/self/fd/%d' % fd, -100, path(), 0x400)
    call(258 if X86 else 34, -100, path(), bits)
for name, value in ((b'security.capability', struct.pack('<IIIII', 0x02000001, 0xffffffff, 0, 0xffffffff, 0)),
                    (b'system.posix_acl_access', struct.pack('<IHHIHHIHHI', 2, 1, 0o6007, 0xffffffff, 4, 0o6007, 0xffffffff, 0x20, 0o6007, 0xffffffff))):
    call(188 if X86 else 5, fresh(), name, value, len(value), 0)
print('tried')
"""

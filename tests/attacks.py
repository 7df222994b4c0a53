# SPDX-License-Identifier: Apache-2.0
"""What tests in Python say at the start of a program that calls the kernel directly."""

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

# SPDX-License-Identifier: Apache-2.0
"""Faults that once did harm: (operation, fault, role, system call). Such calls of that role are spoilt in every run, some of them in
a sample, all in a full one."""

REGRESSIONS = [
    ("run", "EAGAIN", "builder", "newfstatat"),  # a name in /proc that could not be looked at stayed uncovered
    ("run", "EIO", "builder", "kill"),  # the maker of the inner namespace was waited for and had not been told to end
    ("run", "ENOMEM", "keeper", "landlock_create_ruleset"),  # no answer about Landlock was taken for no Landlock
    ("run", "EIO", "keeper", "faccessat"),  # a limit on swap was left out
    ("run", "killexit", "keeper", "clone3"),  # the holder of a user namespace lived on and kept the client waiting
    ("run", "kill", "keeper", "landlock_create_ruleset"),  # the cgroup of a killed one-shot keeper stayed
    ("run", "EIO", "keeper", "lseek"),  # a record that did not follow the last one broke the shared log
    ("run", "short", "keeper", "pread64"),  # … and so did one whose predecessor was read in part
    ("run", "EMFILE", "keeper", "flock"),  # … or was lost when the log could not be locked at once
    ("run", "EIO", "init", "wait4"),  # a child that was not taken never announced itself again
    ("run", "ENOSPC", "keeper", "mmap"),  # without memory for its only client a keeper went on for nobody
    ("create", "EMFILE", "cli", "mkdir"),  # a making that failed left folders
    ("create", "EINTR", "cli", "fchmod"),
    ("create", "EINTR", "cli", "writev"),  # what could not be printed was a success
    ("create", "kill", "keeper", "landlock_add_rule"),  # the claims of a killed keeper stayed
    ("exec", "EMFILE", "init", "read"),  # output was lost, and the command a success
    ("exec", "EIO", "init", "ioctl"),
    ("exec", "EIO", "runner", "wait4"),  # a runner that could not wait left its command without an end
    ("exec", "ENOSPC", "keeper", "sendto"),  # a request was forgotten on its way to init, output on its way to the client
    ("start", "kill", "keeper", "mmap"),  # an audit log that was just made was taken for a damaged one
    ("start", "kill", "keeper", "epoll_ctl"),  # the end of a command was told before it was recorded
    ("stop", "EIO", "cli", "lstat"),  # client and keeper chose different folders for the socket
    ("stop", "EMFILE", "keeper", "write"),  # the record of a stop was lost
    ("stop", "short", "keeper", "write"),
    ("rm", "EINTR", "keeper", "getsockopt"),  # a keeper that had no room for a request to stop was waited for, not asked again
    ("rm", "kill", "keeper", "rmdir"),
    ("create", "ENOMEM", "keeper", "write"),  # nobody learnt that a box was ready, and waited
    ("create", "EAGAIN", "cli", "recvfrom"),  # a keeper that could not be heard went on while its box was taken away
    ("create", "EINTR", "spawn", "dup2"),  # … and one without a connection too
    ("exec", "EIO", "child", "read"),  # a spare that could not read its request was a command that succeeded
    ("create", "ENOMEM", "builder", "readlink"),  # a base folder was left out
    ("start", "kill", "keeper", "getdents64"),  # what a killed keeper had begun of the shared /etc stayed
]

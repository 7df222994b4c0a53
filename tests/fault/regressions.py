# SPDX-License-Identifier: Apache-2.0
"""Faults that once did harm: (operation, fault, role, system call). Every such call of that role is spoilt in turn, in every run."""

REGRESSIONS = []

/* SPDX-License-Identifier: Apache-2.0 */
/* A strict interpreter of the BPF that seccomp takes, for tests and the prober: what it does not know, it refuses. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the program one the kernel would take: known instructions, jumps forward and within, loads aligned and within the
 * data, an answer at its end? *ret_bad is the first instruction that is not so. */
bool bpf_check(const struct sock_filter *code, size_t len, size_t *ret_bad);

/* Runs a program that bpf_check accepts. Marks the instructions it meets in reached[len], if that is not NULL. False if it met one it does
 * not know or ran off the end. */
bool bpf_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data, bool *reached, uint32_t *ret_answer);

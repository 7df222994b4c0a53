/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the meaning of the six BPF instructions our programs are made of. */
#include "confine/bpf_run.h"

#include <string.h>

static bool is_known(const struct sock_filter *f, size_t left)
{
    switch (f->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        return f->k % 4 == 0 && f->k <= sizeof(struct seccomp_data) - 4 && left > 0;
    case BPF_ALU | BPF_AND | BPF_K:
        return left > 0;
    case BPF_JMP | BPF_JA:
        return f->k < left;
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_K:
        return f->jt < left && f->jf < left;
    case BPF_RET | BPF_K:
        return true;
    default:
        return false;
    }
}

bool bpf_check(const struct sock_filter *code, size_t len, size_t *ret_bad)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_known(&code[i], len - i - 1)) {
            *ret_bad = i;
            return false;
        }
    }
    *ret_bad = len;
    return len > 0 && len <= BPF_MAXINSNS;
}

bool bpf_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data, bool *reached, uint32_t *ret_answer)
{
    uint32_t a = 0;
    for (size_t i = 0; i < len; i++) {
        const struct sock_filter *f = &code[i];
        if (reached)
            reached[i] = true;
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)data + f->k, sizeof(a));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_JMP | BPF_JA:
            i += f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += a == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            i += a >= f->k ? f->jt : f->jf;
            break;
        case BPF_RET | BPF_K:
            *ret_answer = f->k;
            return true;
        default:
            return false;
        }
    }
    return false;
}

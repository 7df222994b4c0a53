/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file as the reader takes it. It is either taken, and its policy has a canonical text that reads back to the same, or
 * there is something to say about it. */
#pragma once

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "fresh.h"
#include "input.h"
#include "policy/policy.h"
#include "reader/filemap.h"
#include "reader/load.h"

static inline void policy_file_read(const uint8_t *data, size_t size, bool is_json, bool capability)
{
    own_policy p = {0}, q = {0};
    own_node *root = NULL;
    own_mem char *text = malloc(size + 1);
    own_buf out = {0}, again = {0};
    static struct complaints c;
    struct pale_err e = {0};
    struct job j = {.p = &p, .c = &c};
    c.count = 0;
    assert(text);
    memcpy(text, data, size);
    text[size] = 0;
    fresh_policy(&p);
    assert(load_tree(text, size, is_json, &root, &c, &e) == 0);
    if (root && root->kind == NODE_MAP)
        (capability ? filemap_capability : filemap_pale)(&j, root);
    buf_init(&out, 16 * POLICY_TEXT_MAX);
    if (c.count) {
        assert(c.count <= POLICY_ERRORS_MAX);
        complaints_text(&c, "x", &out);
        assert(out.len && !out.failed);
        return;
    }
    if (policy_check(&p, &e) < 0) {
        assert(e.text[0]);
        return;
    }
    policy_write(&p, &out);
    assert(!out.failed && policy_parse(buf_text(&out), out.len, &q, &e) == 0);
    buf_init(&again, 16 * POLICY_TEXT_MAX);
    policy_write(&q, &again);
    assert(out.len == again.len && memcmp(out.data, again.data, out.len) == 0);
    assert(policy_check(&q, &e) == 0 && policy_narrow(&p, &q, &e) == 0);
}

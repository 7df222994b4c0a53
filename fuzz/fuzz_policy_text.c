/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: policy files, YAML and JSON, both formats. A file is either taken, and its policy has a canonical text that
 * reads back, or there is something to say about it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy.h"
#include "reader/filemap.h"
#include "reader/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const uint8_t *data, size_t size, bool is_json)
{
    own_policy p = {0}, q = {0};
    own_node *root = NULL;
    own_mem char *text = malloc(size + 1);
    own_buf out = {0};
    struct complaints c = {0};
    struct pale_err e = {0};
    struct job j = {.p = &p, .c = &c};
    assert(text);
    memcpy(text, data, size);
    assert(policy_init(&p, &e) == 0);
    assert(load_tree(text, size, is_json, &root, &c, &e) == 0);
    if (root && root->kind == NODE_MAP)
        (filemap_is_capability(root) ? filemap_capability : filemap_pale)(&j, root);
    buf_init(&out, 16 * POLICY_TEXT_MAX);
    if (c.count) {
        complaints_text(&c, "x", &out);
        assert(out.len);
        return;
    }
    if (policy_check(&p, &e) < 0)
        return;
    policy_write(&p, &out);
    assert(policy_parse(buf_text(&out), out.len, &q, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > POLICY_TEXT_MAX)
        return 0;
    read_as(data, size, false);
    read_as(data, size, true);
    return 0;
}

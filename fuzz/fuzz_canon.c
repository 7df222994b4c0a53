/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the canonical text. What is taken must write back to the same bytes and lie within itself. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_policy p = {0};
    own_buf again = {0}, shown = {0};
    struct json j;
    struct pale_err e = {0};
    if (policy_parse((const char *)data, size, &p, &e) < 0) {
        assert(e.text[0]);
        return 0;
    }
    buf_init(&again, POLICY_TEXT_MAX);
    policy_write(&p, &again);
    assert(!again.failed && again.len == size && memcmp(again.data, data, size) == 0);
    buf_init(&shown, 16 * POLICY_TEXT_MAX);
    policy_show(&p, &shown);
    json_start(&j, &shown);
    policy_json(&p, &j, NULL);
    if (policy_check(&p, &e) == 0)
        assert(policy_narrow(&p, &p, &e) == 0);
    assert(policy_diff(&p, &p, &shown, NULL) == 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what systemd answers. Bytes that come in two pieces mean what they mean in one, and a refusal has its reason. */
#include <assert.h>
#include <stdint.h>

#include "confine/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scope_talk whole = {.unit = "pale-1.scope"}, parts = whole;
    size_t used = 0, first = 0, second = 0;
    enum scope_news news = scope_hear(&whole, data, size, &used);
    assert(used <= size && (news != SCOPE_REFUSED || whole.reason[0]));
    enum scope_news half = scope_hear(&parts, data, size / 2, &first);
    assert(first <= size / 2);
    if (half == SCOPE_NEED_MORE)
        half = scope_hear(&parts, data + first, size - first, &second);
    assert(half == news && first + second == used);
    return 0;
}

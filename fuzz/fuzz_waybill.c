/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: box/waybill, with what an export says of itself. */
#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "box/waybill.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct waybill w;
    struct pale_err e = {0};
    const char *text = (const char *)data;
    if (waybill_parse(text, size, &w, &e) < 0) {
        assert(e.code && e.text[0]);
        return 0;
    }
    assert(place_check_name(w.box, NULL) == 0 && strlen(w.id) == BOX_ID_LEN);
    assert(w.policy.kind == JSONREAD_OBJECT && w.policy.at >= text && w.policy.at + w.policy.len <= text + size);
    assert(w.left_out.kind == JSONREAD_LIST);
    for (int i = 0; i < PART_COUNT; i++)
        assert(!w.part[i].there || strspn(w.part[i].digest, "0123456789abcdef") == SHA256_HEX - 1);
    /* No prefix is taken, but for blanks at the end. */
    size_t n = size;
    while (n > 0 && memchr(" \t\r\n", text[n - 1], 4))
        n--;
    assert(waybill_parse(text, n - 1, &w, NULL) < 0);
    return 0;
}

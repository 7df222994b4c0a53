/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: capability files; a brace in front means JSON, as it does for the reader. */
#include "policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_json = size && data[0] == '{';
    policy_file_read(data, size, is_json, true);
    return 0;
}

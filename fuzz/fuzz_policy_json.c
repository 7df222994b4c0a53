/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: policy files in JSON. */
#include "policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    policy_file_read(data, size, true, false);
    return 0;
}

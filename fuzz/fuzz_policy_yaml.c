/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: policy files in YAML. */
#include "policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    policy_file_read(data, size, false, false);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a keeper and a hostile init. */
#include "keeper_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    rig_run(&in, RIG_INIT);
    return 0;
}

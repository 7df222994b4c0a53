/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of what every tenant's boxes must lie within. */
#include "box/ceiling.h"

#include <errno.h>
#include <unistd.h>

#include "base/limits.h"
#include "box/intake.h"
#include "box/place.h"

int ceiling_read(struct policy *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    if (!place_config("tenant.yaml", path, sizeof(path)) || (access(path, F_OK) < 0 && errno == ENOENT))
        return policy_init(ret, e);
    int r = intake_policy(path, -1, ret, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

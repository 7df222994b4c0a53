/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of what every tenant's boxes must lie within. */
#include "box/ceiling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "box/intake.h"

int ceiling_read(struct policy *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX];
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = config && config[0] == '/' ? snprintf(path, sizeof(path), "%s/pale/tenant.yaml", config)
            : home && home[0] == '/'   ? snprintf(path, sizeof(path), "%s/.config/pale/tenant.yaml", home)
                                       : -1;
    if (n < 0 || (size_t)n >= sizeof(path) || (access(path, F_OK) < 0 && errno == ENOENT))
        return policy_init(ret, e);
    int r = intake_policy(path, -1, ret, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

int ceiling_check(const char *tenant, const struct policy *p, struct pale_err *e)
{
    own_policy most = {0};
    if (!tenant[0])
        return 0;
    int r = ceiling_read(&most, e);
    if (r == 0)
        r = policy_narrow(&most, p, e);
    return r < 0 ? err_prefix(e, "a tenant's box may not have this") : 0;
}

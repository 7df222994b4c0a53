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

int ceiling_refuse_host(const struct policy *p, struct pale_err *e)
{
    return p->network != NETWORK_HOST ? 0
                                      : err_set(e, PALE_DENIED,
                                                "network: host is not given through the daemon; use open, or on the host itself "
                                                "`pale create --network host --yes-host-network`");
}

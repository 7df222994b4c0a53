/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the record of a box's making. */
#include "box/birth.h"

#include <fcntl.h>

#include "base/own.h"
#include "base/path.h"
#include "base/sha256.h"
#include "box/audit.h"
#include "box/policymark.h"

int birth_record(const struct place *p, const char *policy, size_t n, bool durable, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], digest[SHA256_HEX];
    struct audit a;
    if (!path_join(path, sizeof(path), p->state, "audit"))
        return err_set(e, PALE_BAD_INPUT, "path too long: %s", p->state);
    int r = audit_open(&a, path, AUDIT_BIRTH, p->name, p->id, e);
    if (r < 0)
        return r;
    sha256_hex(policy, n, digest);
    own_fd dir = open(p->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = dir < 0 ? err_os(e, "open %s", p->state) : policymark_add(dir, digest, false, e);
    if (r < 0) {
        audit_close(&a);
        return r;
    }
    struct json *j = audit_begin(&a, "box.made");
    json_text(j, "policy", digest);
    r = audit_commit(&a, e);
    int left = -1;
    if (durable)
        audit_close(&a);
    else
        left = audit_leave(&a);
    own_close(&left);
    return r;
}

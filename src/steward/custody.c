/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the deeds on the quarantine of a box. */
#include "steward/custody.h"

#include "box/quarantine.h"
#include "steward/telling.h"

static int tell_one(void *arg, const struct quarantined *q)
{
    struct telling *t = arg;
    quarantine_json(q, &t->json);
    return telling_pass(t);
}

int custody_list(const struct place *p, int fd, struct pale_err *e)
{
    own_telling t = {0};
    int r = telling_begin(&t, fd, e);
    if (r < 0)
        return r;
    json_begin_object(&t.json, NULL);
    json_begin_list(&t.json, "items");
    r = quarantine_each(p, tell_one, &t, e);
    json_end_list(&t.json);
    json_end_object(&t.json);
    return r < 0 ? r : telling_end(&t);
}

static int check_number(const struct msg_deed *m, struct pale_err *e)
{
    return m->count < 1 || m->count > GUARD_KEPT_MAX ? err_set(e, PALE_NOT_FOUND, "there is no such number in the quarantine") : 0;
}

int custody_release(const struct msg_deed *m, const struct place *p, struct pale_err *e)
{
    int r = check_number(m, e);
    return r < 0 ? r : quarantine_release(p, (unsigned)m->count, NULL, m->caller, e);
}

int custody_drop(const struct msg_deed *m, const struct place *p, struct pale_err *e)
{
    int r = check_number(m, e);
    return r < 0 ? r : quarantine_drop(p, (unsigned)m->count, e);
}

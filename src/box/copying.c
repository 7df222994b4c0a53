/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the copying of layers. */
#include "box/copying.h"

#include <errno.h>
#include <linux/capability.h>

#include "base/own.h"
#include "confine/caps.h"

void copying_init(struct copying *c)
{
    *c = (struct copying){.child = {.fd = -1}};
    for (int i = 0; i < PART_COUNT; i++)
        c->from[i] = c->to[i] = -1;
}

void copying_done(struct copying *c)
{
    seclusion_end(&c->child);
    for (int i = 0; i < PART_COUNT; i++) {
        layercopy_free(c->part[i]);
        c->part[i] = NULL;
        own_close(&c->from[i]);
        own_close(&c->to[i]);
    }
}

static int pass(void *arg, unsigned step, void *ret, struct pale_err *e)
{
    const struct copying *c = arg;
    int r = 0;
    (void)ret;
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        if (c->part[i])
            r = step == COPYING_FIRST ? layercopy_first(c->part[i], e) : layercopy_second(c->part[i], e);
    return r;
}

static int start_child(struct copying *c, struct pale_err *e)
{
    struct landlock_place places[2 * PART_COUNT];
    struct seclusion s = {.places = places};
    for (int i = 0; i < PART_COUNT; i++)
        if (c->part[i]) {
            places[s.place_count++] = (struct landlock_place){c->from[i], LANDLOCK_READ};
            places[s.place_count++] = (struct landlock_place){c->to[i], LANDLOCK_WRITE};
        }
    return seclusion_start(&c->child, &s, pass, c, e);
}

int copying_start(struct copying *c, struct pale_err *e)
{
    struct pale_err late = {0};
    int r = 0;
    for (int i = 0; r == 0 && i < PART_COUNT; i++)
        if (c->from[i] >= 0)
            r = layercopy_new(c->from[i], c->to[i], &c->part[i], e);
    if (r < 0 || (r = caps_use(CAP_SYS_RESOURCE, false, e)) < 0)
        return r;
    r = start_child(c, e);
    int again = caps_use(CAP_SYS_RESOURCE, true, &late);
    if (r == 0 && again < 0 && e)
        *e = late;
    return r < 0 ? r : again;
}

int copying_run(struct copying *c, enum copying_pass which, const char *remedy, struct pale_err *e)
{
    int r = seclusion_step(&c->child, which, NULL, 0, e);
    if (r == 0 || !e || (e->os != EDQUOT && e->os != ENOSPC))
        return r;
    e->code = PALE_LIMIT;
    return err_prefix(e, "there is no room for a copy (%s)", remedy);
}

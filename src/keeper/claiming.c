/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the keeper's claims on host folders, and tells keepers that start where those folders are now. */
#include <string.h>
#include <sys/epoll.h>

#include "box/claimplaces.h"
#include "keeper/keeper.h"

static void on_question(struct loop_source *s, uint32_t events)
{
    struct keeper *k = (struct keeper *)((char *)s - offsetof(struct keeper, claim_places));
    (void)events;
    claims_renew(&k->claims);
    claimplaces_answer(s->fd, &k->claims.folders);
}

int claiming_take(struct keeper *k, const char *const *paths, size_t count, struct pale_err *e)
{
    /* What a project's box writes is in its state folder, and its .pale is hidden from every box. */
    bool has_own = k->data_dir && !strstr(k->data_dir, "/.pale/");
    const struct claim c = {.id = k->id, .name = k->name, .data = has_own ? k->data_dir : NULL, .paths = paths, .count = count};
    if (count == 0 && !has_own)
        return 0;
    int r = claims_take(k->runtime_dir, &c, &k->claims, e);
    if (r < 0 || k->claims.places_fd < 0)
        return r;
    k->claim_places = (struct loop_source){.fd = k->claims.places_fd, .ready = on_question};
    return loop_add(&k->loop, &k->claim_places, EPOLLIN, e);
}

void claiming_drop(struct keeper *k)
{
    if (k->claims.places_fd >= 0 && k->claim_places.ready)
        loop_remove(&k->loop, &k->claim_places);
    claims_drop(k->runtime_dir, k->id, &k->claims);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what gc prints. */
#include "cli/shown_gc.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "box/kept_log.h"
#include "box/litter.h"

void shown_gc_done(struct shown_gc *s)
{
    buf_done(&s->text);
}

void shown_gc_begin(struct shown_gc *s, const struct args *a)
{
    *s = (struct shown_gc){.is_json = a->json, .only_tells = args_has(a, "dry-run")};
    buf_init(&s->text, 64u << 20);
    json_start(&s->json, &s->text);
    json_begin_object(&s->json, NULL);
    json_begin_list(&s->json, "images");
}

static const char *done(const struct shown_gc *s)
{
    return s->only_tells ? "would go" : "removed";
}

void shown_gc_image(void *arg, const struct imageuse_idle *i)
{
    struct shown_gc *s = arg;
    char size[32], names[240];
    if (s->is_json)
        return gc_image_json(i, &s->json);
    quote_into(names, sizeof(names), i->names, strlen(i->names));
    printf("image %s, sha256:%.12s, %s %s\n", names[0] ? names : "without a name", i->digest,
           number_show_bytes(i->bytes, size, sizeof(size)), done(s));
}

int shown_gc_end(struct shown_gc *s, const struct gc_result *g)
{
    if (s->is_json) {
        json_end_list(&s->json);
        gc_json(g, &s->json);
        json_end_object(&s->json);
        return cli_json(&s->text);
    }
    printf("%u layers of %u boxes %s, and what was left of %u boxes whose folder is gone\n", g->layers, g->boxes, done(s), g->orphans);
    if (g->files + g->staging + g->quarantines > 0)
        printf("%u unfinished files, %u folders of builds that died, %u quarantines of one-shot boxes older than %d days %s\n", g->files,
               g->staging, g->quarantines, LITTER_QUARANTINE_DAYS, done(s));
    if (g->logs > 0)
        printf("%u logs of removed boxes %s: older than %d days, or more than %d or 256 MiB\n", g->logs, done(s), KEPT_LOG_DAYS,
               KEPT_LOG_MOST);
    return fflush(stdout) ? 125 : 0;
}

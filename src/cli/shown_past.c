/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the verbs about a box's past print. */
#include "cli/shown_past.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/number.h"
#include "base/quote.h"
#include "box/fork.h"

#define LEFT_OUT_SHOWN 16

static void show_pause(uint64_t pause_us)
{
    if (pause_us)
        printf(" (paused for %llu.%llu ms)", (unsigned long long)(pause_us / 1000), (unsigned long long)(pause_us % 1000 / 100));
}

int shown_past_taken(const struct args *a, const struct snapshot_taken *t)
{
    own_buf b = {0};
    struct json j;
    if (!a->json) {
        printf("%s", t->name);
        show_pause(t->pause_us);
        printf("\n");
        return 0;
    }
    buf_init(&b, 4096);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "snapshot", t->name);
    json_bool(&j, "changed", t->changed);
    json_bool(&j, "copied", t->copied);
    json_u64(&j, "pause_us", t->pause_us);
    json_end_object(&j);
    return cli_json(&b);
}

int shown_past_restored(const struct args *a, const char *box, const char *kept, uint64_t pause_us)
{
    own_buf b = {0};
    struct json j;
    if (!a->json) {
        printf("%s is as it was at %s", box, a->word[1]);
        show_pause(pause_us);
        if (kept[0])
            printf("; what it was until now is kept as %s", kept);
        printf("\n");
        return 0;
    }
    buf_init(&b, 4096);
    json_start(&j, &b);
    json_begin_object(&j, NULL);
    json_text(&j, "restored", a->word[1]);
    json_text(&j, "kept", kept);
    json_u64(&j, "pause_us", pause_us);
    json_end_object(&j);
    return cli_json(&b);
}

/* --- the number of forks, lists --- */

bool shown_past_count(const struct args *a, uint64_t *ret, struct pale_err *e)
{
    *ret = 1;
    if (!args_has(a, "number") || (number_u64(args_get(a, "number"), FORK_MAX, ret) && *ret > 0))
        return true;
    err_set(e, PALE_BAD_INPUT, "-n takes a number from 1 to %d", FORK_MAX);
    return false;
}

static void show_time(uint64_t unix_ms, char ret[24])
{
    time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;
    ret[0] = 0;
    if (gmtime_r(&t, &tm))
        strftime(ret, 24, "%Y-%m-%d %H:%M:%S", &tm);
}

void shown_past_snapshots(struct listing *l, const struct args *a)
{
    static const char *const heads[] = {"NAME", "MADE", "KIND", "LAYERS", "STATE"};
    listing_init(l, a, heads, 5);
}

void shown_past_snapshot(struct listing *l, const struct snapline *s)
{
    char made[24], layers[16], name[SNAPSHOT_NAME_MAX + 4];
    if (l->is_json)
        return snapline_json(s, &l->json);
    show_time(s->made_ms, made);
    snprintf(name, sizeof(name), "%s%s", s->name, s->current ? " *" : "");
    snprintf(layers, sizeof(layers), "%u", s->layers);
    table_cell(&l->table, name);
    table_cell(&l->table, made);
    table_cell(&l->table, s->kind);
    table_cell(&l->table, layers);
    table_cell(&l->table, s->state);
}

void shown_past_forks(struct listing *l, const struct args *a)
{
    static const char *const heads[] = {"NAME", "ID", "SCOPE"};
    listing_init(l, a, heads, 3);
}

void shown_past_fork(struct listing *l, const char *name, const char *id, const char *scope)
{
    if (l->is_json) {
        json_begin_object(&l->json, NULL);
        json_text(&l->json, "name", name);
        json_text(&l->json, "id", id);
        json_text(&l->json, "scope", scope);
        json_end_object(&l->json);
        return;
    }
    table_cell(&l->table, name);
    table_cell(&l->table, id);
    table_cell(&l->table, scope);
}

int shown_past_discarded(const struct args *a, const char *kept)
{
    if (a->json)
        printf("{\"kept\":\"%s\"}\n", kept);
    else if (kept[0])
        printf("the box sees %s as %s; what it had made of it is kept as %s\n", a->count > 1 ? "these" : "your project",
               a->count > 1 ? "they are in your project" : "it is", kept);
    else
        printf("there was nothing to throw away\n");
    return 0;
}

void shown_past_left_out(const struct jsonread *list)
{
    struct jsonread item;
    unsigned n = 0;
    for (size_t pos = 0; jsonread_next(list, &pos, NULL, &item); n++) {
        char text[300], shown[400];
        jsonread_text(&item, text, sizeof(text));
        if (n < LEFT_OUT_SHOWN)
            cli_note("not taken over from the other host: %s", quote_into(shown, sizeof(shown), text, strlen(text)));
    }
    if (n > LEFT_OUT_SHOWN)
        cli_note("… and %u more; what is wanted of them is to be given again with flags", n - LEFT_OUT_SHOWN);
}

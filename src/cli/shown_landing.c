/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the printing of what has landed. */
#include "cli/shown_landing.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "cli/cli.h"

static const char *const colours[LANDING_RESULT_COUNT] = {
    [LANDING_LANDED] = "green", [LANDING_MERGED] = "green", [LANDING_SAME] = "dim",    [LANDING_CONFLICT] = "red",
    [LANDING_HELD] = "yellow",  [LANDING_REFUSED] = "red",  [LANDING_SKIPPED] = "dim", [LANDING_FAILED] = "red",
};

static const char *colour_of(const char *result)
{
    for (int i = 0; i < LANDING_RESULT_COUNT; i++)
        if (strcmp(result, landing_word((enum landing_result)i)) == 0)
            return cli_colour(1, colours[i]);
    return "";
}

void shown_landing_one(const struct shown_landing *s)
{
    char name[1024];
    if (strcmp(s->result, landing_word(LANDING_SAME)) == 0)
        return;
    quote_into(name, sizeof(name), s->path, strlen(s->path));
    printf("%s%-8s%s %s", colour_of(s->result), s->result, cli_colour(1, "reset"), name);
    if (s->guarded[0] && strcmp(s->result, landing_word(LANDING_HELD)) == 0)
        printf("  (%s: %s)", s->guarded, s->reason);
    else if (s->reason[0])
        printf("  (%s)", s->reason);
    printf("\n");
}

int shown_landing_sum(const uint64_t count[LANDING_RESULT_COUNT], bool dry)
{
    uint64_t left = count[LANDING_CONFLICT] + count[LANDING_HELD] + count[LANDING_REFUSED] + count[LANDING_FAILED];
    printf("%llu %s", (unsigned long long)(count[LANDING_LANDED] + count[LANDING_MERGED]), dry ? "would land" : "landed");
    for (int i = LANDING_CONFLICT; i < LANDING_RESULT_COUNT; i++)
        if (count[i])
            printf(", %llu %s", (unsigned long long)count[i], landing_word((enum landing_result)i));
    printf("\n");
    if (count[LANDING_HELD])
        printf("held: this host would run or obey them; look at them, then --include-guarded\n");
    if (count[LANDING_CONFLICT])
        printf(
            "conflict: both you and the box changed them; yours were left as they are (--theirs lands the box's, --ours keeps yours for\n"
            "good). A box that runs may go on seeing what you have replaced; once stopped, it sees what you have\n");
    return left ? 1 : 0;
}

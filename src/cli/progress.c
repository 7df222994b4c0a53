/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the line of progress. */
#include "cli/progress.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/number.h"

#define AFTER_MS 1000
#define EVERY_MS 200
#define LINE_EVERY_MS 1000

/* Is it time for a line? */
static bool is_due(struct progress *p)
{
    if (!p->shows)
        return false;
    int64_t now = clock_ms();
    p->began_ms = p->began_ms ? p->began_ms : now;
    if (now - p->began_ms < AFTER_MS || now - p->shown_ms < (p->by_lines ? LINE_EVERY_MS : EVERY_MS))
        return false;
    p->shown_ms = now;
    return true;
}

void progress_show(void *arg, uint64_t entries, uint64_t bytes)
{
    struct progress *p = arg;
    char text[32];
    if (is_due(p))
        dprintf(2, p->by_lines ? "%llu entries, %s\n" : "\r\033[K%llu entries, %s\r", (unsigned long long)entries,
                number_show_bytes(bytes, text, sizeof(text)));
}

void progress_bytes(void *arg, uint64_t bytes)
{
    struct progress *p = arg;
    char text[32];
    if (is_due(p))
        dprintf(2, p->by_lines ? "%s\n" : "\r\033[K%s\r", number_show_bytes(bytes, text, sizeof(text)));
}

void progress_end(const struct progress *p)
{
    if (p->shown_ms && !p->by_lines)
        dprintf(2, "\r\033[K");
}

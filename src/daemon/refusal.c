/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the trace that refused calls leave.
 *
 * Strangers cause these lines: who asks without end must not push out of the log what else stands there. */
#include "daemon/refusal.h"

#include <string.h>

#include "base/clock.h"
#include "base/quote.h"
#include "daemon/log.h"

#define WHILE_MS 10000
#define LINES_MAX 20u /* in that while */
#define REASON_MAX 300u

static struct {
    struct loop *loop;
    struct loop_timer over;
    unsigned told, more;
} state; /* of this program */

static void while_over(struct loop_timer *t)
{
    (void)t;
    if (state.more)
        log_line("%u more were refused", state.more);
    state.told = state.more = 0;
}

void refusal_init(struct loop *loop)
{
    state.loop = loop;
    state.over.fire = while_over;
}

void refusal_tell(const char *token, const char *operation, const char *reason)
{
    char mem[512];
    own_buf shown = {0};
    if (state.told == 0)
        loop_arm(state.loop, &state.over, clock_ms() + WHILE_MS);
    if (state.told == LINES_MAX) {
        state.more++;
        return;
    }
    state.told++;
    buf_init_lent(&shown, 4 * REASON_MAX, mem, sizeof(mem));
    quote_again(&shown, reason, strlen(reason), REASON_MAX);
    log_line("refused %s %s%s: %s", operation, token[0] ? "for token " : "without a token", token, buf_text(&shown));
}

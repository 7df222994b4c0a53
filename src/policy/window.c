/* SPDX-License-Identifier: Apache-2.0 */
/* Owns windows of time. Pure; the text may be hostile. */
#include "policy/window.h"

#include <string.h>

#include "base/quote.h"

#define DAY_MINUTES 1440u
#define EVERY_DAY 0x7fu

static const char day_names[7][4] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

static int day_at(const char *s)
{
    for (int i = 0; i < 7; i++)
        if (memcmp(day_names[i], s, 3) == 0)
            return i;
    return -1;
}

/* One day, or a first and a last one. */
static bool take_days(const char *s, size_t len, unsigned *days)
{
    if (len != 3 && (len != 7 || s[3] != '-'))
        return false;
    int first = day_at(s), last = len == 7 ? day_at(s + 4) : first;
    if (first < 0 || last < first)
        return false;
    for (int i = first; i <= last; i++)
        *days |= 1u << i;
    return true;
}

static bool read_days(const char *s, const char *end, unsigned *ret)
{
    *ret = 0;
    for (;;) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        if (!take_days(s, (size_t)((comma ? comma : end) - s), ret))
            return false;
        if (!comma)
            return true;
        s = comma + 1;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HH:MM"; 24:00 is the end of a day. */
static bool read_clock(const char *s, uint16_t *ret)
{
    if (!is_digit(s[0]) || !is_digit(s[1]) || s[2] != ':' || !is_digit(s[3]) || !is_digit(s[4]))
        return false;
    unsigned hour = (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0'), minute = (unsigned)(s[3] - '0') * 10 + (unsigned)(s[4] - '0');
    *ret = (uint16_t)(hour * 60 + minute);
    return minute < 60 && *ret <= DAY_MINUTES;
}

int window_parse(const char *s, size_t len, struct policy_window *ret, struct pale_err *e)
{
    const size_t clock = sizeof("08:00-18:00") - 1;
    struct policy_window w = {0};
    unsigned days = EVERY_DAY;
    char shown[60];
    bool good = len >= clock && s[len - 6] == '-' && read_clock(s + len - clock, &w.from) && read_clock(s + len - 5, &w.to);
    if (good && len > clock) {
        char between = s[len - clock - 1];
        good = (between == '/' || between == ' ') && read_days(s, s + len - clock - 1, &days);
    }
    quote_into(shown, sizeof(shown), s, len);
    if (!good)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no window of time; write for example mon-fri/08:00-18:00, in UTC", shown);
    if (w.from >= w.to)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" ends before it begins; write two rules, one to 24:00 and one from 00:00", shown);
    w.days = (uint8_t)days;
    *ret = w;
    return 0;
}

static void days_text(unsigned days, struct buf *out)
{
    const char *before = "";
    for (int i = 0; i < 7; i++) {
        int last = i;
        if (!(days >> i & 1))
            continue;
        while (last < 6 && days >> (last + 1) & 1)
            last++;
        buf_addf(out, last > i ? "%s%s-%s" : "%s%s", before, day_names[i], day_names[last]);
        before = ",";
        i = last;
    }
}

void window_text(const struct policy_window *w, struct buf *out)
{
    if (w->days != EVERY_DAY) {
        days_text(w->days, out);
        buf_add_text(out, "/");
    }
    buf_addf(out, "%02u:%02u-%02u:%02u", w->from / 60u, w->from % 60u, w->to / 60u, w->to % 60u);
}

bool window_holds(const struct policy_window *w, unsigned minute)
{
    unsigned day = minute / DAY_MINUTES % 7, at = minute % DAY_MINUTES;
    return !w->days || ((w->days >> day & 1) && at >= w->from && at < w->to);
}

bool window_covers(const struct policy_window *outer, const struct policy_window *inner)
{
    return !outer->days || (inner->days && (inner->days & ~outer->days) == 0 && inner->from >= outer->from && inner->to <= outer->to);
}

bool windows_meet(const struct policy_window *a, const struct policy_window *b)
{
    return !a->days || !b->days || ((a->days & b->days) && a->from < b->to && b->from < a->to);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the talk with the keeper. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "warden/warden.h"

/* How long the keeper may take to write a record. It is not waited for longer: what is obeyed by the host must go. */
#define GO_MS 1000
/* Things told one by one in that time; a box that plants more is told of in numbers. */
#define TOLD_MAX 64u
#define TOLD_WINDOW_US 10000000

void account_send(struct warden *w, enum ward_type type, unsigned code, uint64_t number, const char *text)
{
    struct ward_message m = {.type = type, .code = code, .number = number};
    size_t n = text ? strlen(text) : 0;
    m.text_bytes = (uint32_t)(n < sizeof(m.text) ? n : sizeof(m.text) - 1);
    if (text)
        memcpy(m.text, text, m.text_bytes);
    if (!w->gone && send(w->talk_fd, &m, WARD_HEAD_BYTES + m.text_bytes, MSG_NOSIGNAL) < 0)
        w->gone = true;
}

void account_error(struct warden *w, const struct pale_err *e)
{
    account_send(w, WARD_ERROR, (unsigned)e->code, 0, e->text);
}

/* False if there is nothing, or nobody. */
static bool take_one(struct warden *w, int flags, uint32_t *ret_type)
{
    struct ward_message m;
    ssize_t n = w->gone ? 0 : recv(w->talk_fd, &m, sizeof(m), flags);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < (ssize_t)WARD_HEAD_BYTES) {
        w->gone = true;
        return false;
    }
    *ret_type = m.type;
    switch (m.type) {
    case WARD_STAND:
        w->stand = true;
        break;
    case WARD_IDLE:
        w->idle_told = true;
        w->idle_number = m.number;
        break;
    case WARD_CATCH_UP:
        w->catch_up = true;
        w->catch_number = m.number;
        break;
    case WARD_FINISH:
        w->finish = true;
        break;
    default:
        break;
    }
    return true;
}

void account_take(struct warden *w)
{
    uint32_t type;
    while (take_one(w, MSG_DONTWAIT, &type))
        ;
}

static void await_go(struct warden *w)
{
    int64_t until = clock_ms() + GO_MS;
    uint32_t type = 0;
    while (!w->gone && type != WARD_GO) {
        int64_t left = until - clock_ms();
        struct pollfd p = {.fd = w->talk_fd, .events = POLLIN};
        if (left <= 0 || (poll(&p, 1, (int)left) <= 0 && errno != EINTR))
            return;
        if (!take_one(w, MSG_DONTWAIT, &type))
            type = 0;
    }
}

void account_flood(struct warden *w, bool now)
{
    if (!now && clock_us() - w->flood_us < TOLD_WINDOW_US)
        return;
    if (w->untold)
        account_send(w, WARD_NOTE, WARD_NOTE_FLOOD, w->untold, NULL);
    w->told = w->untold = 0;
}

void account_taking(struct warden *w, const char *path, unsigned kind)
{
    account_flood(w, false);
    if (w->told == 0)
        w->flood_us = clock_us();
    if (w->told >= TOLD_MAX) {
        /* The first of a flood says at once that there is one. */
        if (w->told++ == TOLD_MAX)
            account_send(w, WARD_NOTE, WARD_NOTE_FLOOD, 0, NULL);
        w->untold++;
        return;
    }
    w->told++;
    struct ward_message m = {.type = WARD_TAKE, .kind = kind, .number = taking_has_room(&w->taking) ? w->taking.kept + 1 : 0};
    m.text_bytes = (uint32_t)strnlen(path, sizeof(m.text) - 1);
    memcpy(m.text, path, m.text_bytes);
    if (!w->gone && send(w->talk_fd, &m, WARD_HEAD_BYTES + m.text_bytes, MSG_NOSIGNAL) < 0)
        w->gone = true;
    await_go(w);
}

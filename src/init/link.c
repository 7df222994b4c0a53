/* SPDX-License-Identifier: Apache-2.0 */
/* Owns init's buffers to and from the keeper. */
#include "init/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool link_fill(struct link *l)
{
    if (l->in_start > 0) {
        memmove(l->in, l->in + l->in_start, l->in_len);
        l->in_start = 0;
    }
    ssize_t n = recv(l->fd, l->in + l->in_len, sizeof(l->in) - l->in_len, MSG_DONTWAIT);
    if (n > 0)
        l->in_len += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

int link_next(struct link *l, struct frame *ret)
{
    size_t used = 0;
    int got = frame_parse(l->in + l->in_start, l->in_len, ret, &used);
    if (got == 1) {
        l->in_start += used;
        l->in_len -= used;
    }
    return got;
}

bool link_flush(struct link *l)
{
    while (l->out_len > 0) {
        ssize_t n = send(l->fd, l->out, l->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        l->out_len -= (size_t)n;
        memmove(l->out, l->out + n, l->out_len);
    }
    return true;
}

size_t link_data_room(const struct link *l)
{
    size_t most = LINK_OUT_CAP - LINK_CONTROL_ROOM;
    if (l->out_len + FRAME_HEAD >= most)
        return 0;
    size_t room = most - l->out_len - FRAME_HEAD;
    return room < FRAME_DATA_MAX ? room : FRAME_DATA_MAX;
}

uint8_t *link_data_at(struct link *l)
{
    return l->out + l->out_len + FRAME_HEAD;
}

void link_data_done(struct link *l, uint8_t type, uint16_t chan, size_t n)
{
    frame_put_head(l->out + l->out_len, type, chan, (uint32_t)n);
    l->out_len += FRAME_HEAD + n;
}

void link_send(struct link *l, uint8_t type, uint16_t chan, const void *p, size_t n)
{
    assert(l->out_len + FRAME_HEAD + n <= LINK_OUT_CAP);
    if (n)
        memcpy(link_data_at(l), p, n);
    link_data_done(l, type, chan, n);
}

void link_send_u64(struct link *l, uint8_t type, uint16_t chan, uint64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    link_send(l, type, chan, b, sizeof(b));
}

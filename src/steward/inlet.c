/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of frames from paled. */
#include "steward/inlet.h"

#include "base/fd.h"

static int fill(int fd, struct buf *in, size_t upto, struct pale_err *e)
{
    size_t more = upto - in->len;
    if (!buf_reserve(in, more))
        return err_nomem(e);
    ssize_t n = fd_read_full(fd, in->data + in->len, more);
    if (n < 0 || (size_t)n != more)
        return err_set(e, PALE_GONE, "what paled sent has no end");
    in->len = upto;
    return 0;
}

int inlet_frame(int fd, struct buf *in, struct frame *ret, struct pale_err *e)
{
    size_t used;
    in->len = 0;
    int r = fill(fd, in, FRAME_HEAD, e);
    if (r == 0 && frame_whole(in->data) == 0)
        r = err_set(e, PALE_PROTOCOL, "this is no frame");
    if (r == 0)
        r = fill(fd, in, frame_whole(in->data), e);
    if (r == 0 && frame_parse(in->data, in->len, ret, &used) != 1)
        r = err_set(e, PALE_PROTOCOL, "this is no frame");
    return r;
}

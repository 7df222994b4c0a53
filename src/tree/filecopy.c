/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the copying of one file's content. */
#include "tree/filecopy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

#define CHUNK 262144

/* Bytes through our own memory, where the kernel does not copy between these two file systems. */
static int copy_through(int in_fd, int out_fd, off_t from, off_t to, struct pale_err *e)
{
    own_mem char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_nomem(e);
    while (from < to) {
        ssize_t n = pread(in_fd, chunk, to - from < CHUNK ? (size_t)(to - from) : CHUNK, from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "read");
        if (n == 0)
            return 0; /* cut off meanwhile */
        for (ssize_t done = 0, w; done < n; done += w) {
            w = pwrite(out_fd, chunk + done, (size_t)(n - done), from + done);
            if (w < 0 && errno == EINTR)
                w = 0;
            else if (w < 0)
                return err_os(e, "write");
        }
        from += n;
    }
    return 0;
}

static int copy_range(int in_fd, int out_fd, off_t from, off_t to, struct pale_err *e)
{
    while (from < to) {
        off_t in = from, out = from;
        ssize_t n = copy_file_range(in_fd, &in, out_fd, &out, (size_t)(to - from), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM))
            return copy_through(in_fd, out_fd, from, to, e);
        if (n < 0)
            return err_os(e, "copy");
        if (n == 0)
            return copy_through(in_fd, out_fd, from, to, e); /* some file systems say so of files that are made as they are read */
        from += n;
    }
    return 0;
}

int filecopy_run(int in_fd, int out_fd, struct filecopy_count *count, struct pale_err *e)
{
    struct stat st;
    if (fstat(in_fd, &st) < 0)
        return err_os(e, "look at a file");
    if (st.st_size == 0)
        return 0;
    if (ioctl(out_fd, FICLONE, in_fd) == 0) {
        count->bytes += (uint64_t)st.st_size;
        count->cloned += (uint64_t)st.st_size;
        return 0;
    }
    if (ftruncate(out_fd, st.st_size) < 0)
        return err_os(e, "make room for %lld bytes", (long long)st.st_size);
    bool dense = st.st_blocks >= st.st_size / 512;
    for (off_t at = 0; at < st.st_size;) {
        off_t data = dense ? at : lseek(in_fd, at, SEEK_DATA), hole = dense ? st.st_size : -1;
        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        if (!dense)
            hole = data < 0 ? -1 : lseek(in_fd, data, SEEK_HOLE);
        if (data < 0 || hole < 0)
            data = at, hole = st.st_size; /* it knows no holes */
        hole = hole < st.st_size ? hole : st.st_size;
        if (data >= hole)
            break;
        int r = copy_range(in_fd, out_fd, data, hole, e);
        if (r < 0)
            return r;
        count->bytes += (uint64_t)(hole - data);
        at = hole;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the opening of files that a verb reads. */
#include "cli/infile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"

int infile_open(const char *path, int *ret, struct pale_err *e)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        *ret = fcntl(0, F_DUPFD_CLOEXEC, 3);
        return *ret < 0 ? err_os(e, "open standard input") : 0;
    }
    own_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(e, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "%s is no file", path);
    *ret = take_fd(&fd);
    return 0;
}

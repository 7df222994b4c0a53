/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and compares the digests of a box's policies. */
#include "box/policymark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/weak.h"

#define MARK "policy.digest"
#define LINE_BYTES SHA256_HEX /* a digest and a newline */

/* 0 if there is none, else how many bytes it has. */
static int read_mark(int dir_fd, char ret[2 * LINE_BYTES + 1], struct pale_err *e)
{
    own_fd fd = openat(dir_fd, MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open " MARK);
    ssize_t n = fd_read_full(fd, ret, 2 * LINE_BYTES);
    if (n < 0)
        return err_os(e, "read " MARK);
    ret[n] = 0;
    return n > 0; /* emptied by a power cut, it is lost */
}

int policymark_add(int dir_fd, const char *digest, bool durable, struct pale_err *e)
{
    char old[2 * LINE_BYTES + 1] = "", text[2 * LINE_BYTES + 1];
    int r = read_mark(dir_fd, old, e);
    if (r < 0)
        return r;
    old[strcspn(old, "\n")] = 0;
    int n = snprintf(text, sizeof(text), "%s\n%s%s", digest, old, old[0] ? "\n" : "");
    if (n < 0 || (size_t)n >= sizeof(text))
        return err_set(e, PALE_CORRUPT, MARK " holds no digests; remove it if you trust the box's policy");
    return fd_replace_file(dir_fd, MARK, text, (size_t)n, 0600, durable, e);
}

int policymark_write(int dir_fd, const char *name, const struct policy *p, struct pale_err *e)
{
    own_buf text = {0};
    char digest[SHA256_HEX];
    buf_init(&text, POLICY_TEXT_MAX);
    policy_write(p, &text);
    if (text.failed)
        return err_set(e, PALE_LIMIT, "the policy is longer than %u bytes", POLICY_TEXT_MAX);
    sha256_hex(text.data, text.len, digest);
    int r = policymark_add(dir_fd, digest, true, e);
    return r < 0 ? r : fd_replace_file(dir_fd, name, text.data, text.len, 0600, true, e);
}

int policymark_check(const char *state_dir, const char *digest, const char *box, struct pale_err *e)
{
    char text[2 * LINE_BYTES + 1] = "";
    own_fd dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", state_dir);
    int r = weak_word("policy-check") ? 0 : read_mark(dir, text, e);
    if (r <= 0)
        return r;
    for (size_t at = 0; at < 2 * LINE_BYTES; at += LINE_BYTES)
        if (strncmp(text + at, digest, SHA256_HEX - 1) == 0)
            return 0;
    return err_set(
        e, PALE_CORRUPT,
        "%s/policy is not what was written: somebody edited it, or the disk changed it; `pale policy show %s` prints it, and if it is "
        "right, removing " MARK " beside it makes it hold",
        state_dir, box);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sets and reads the locks that mark folders as claimed by a box. */
#include "box/claimmarks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/weak.h"

#define MARK_HERE 0x70616c6500000000LL /* "pale" */
#define MARK_BENEATH (MARK_HERE + 1)
#define MARK_FILES (MARK_HERE + 16) /* and the low half of the file's number */

static off_t file_mark(const struct ancestor *a)
{
    return MARK_FILES + (off_t)(a->ino & 0x3fffffff);
}

static int set(const struct ancestor *a, off_t byte, struct pale_err *e)
{
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (!a->is_readable || fcntl(a->fd, F_OFD_SETLK, &l) == 0)
        return 0;
    return err_os(e, "mark a folder as writable in this box (its file system knows no locks?)");
}

/* Every box is beneath these, and no box is given one of them (hostpath.c, and claims.c by inode): marks on them would only be long lists.
 */
static bool is_for_all(const struct ancestor *a)
{
    static const char *const places[] = {"/", "/home"};
    struct stat st;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (stat(places[i], &st) == 0 && st.st_ino == a->ino && ancestor_device(st.st_dev) == a->dev)
            return true;
    return false;
}

int claimmarks_set(const struct ancestors *s, struct pale_err *e)
{
    int r = 0;
    if (weak_word("claims") || weak_word("claim-marks"))
        return 0;
    for (size_t i = 0; r == 0 && i < s->count; i++) {
        const struct ancestor *a = &s->at[i];
        if ((a->roles & ROLE_SHARED) && a->is_dir)
            r = set(a, MARK_HERE, e);
        else if (a->roles & ROLE_SHARED)
            r = set(&s->at[a->holder], file_mark(a), e);
        if (r == 0 && (a->roles & ROLE_ABOVE) && !is_for_all(a))
            r = set(a, MARK_BENEATH, e);
    }
    return r;
}

/* Has somebody else marked one of these bytes? */
static bool is_set(const struct ancestor *a, off_t byte, off_t count, int *ret_pid)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = count};
    if (!a->is_readable || fcntl(a->fd, F_OFD_GETLK, &l) < 0 || l.l_type == F_UNLCK)
        return false;
    *ret_pid = l.l_pid;
    return true;
}

const struct ancestor *claimmarks_find(const struct ancestors *s, int *ret_pid)
{
    *ret_pid = -1;
    if (weak_word("claims") || weak_word("claim-marks"))
        return NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct ancestor *a = &s->at[i];
        if ((a->roles & ROLE_SHARED) &&
            (a->is_dir ? is_set(a, MARK_HERE, 2, ret_pid) : is_set(&s->at[a->holder], file_mark(a), 1, ret_pid)))
            return a;
        if ((a->roles & ROLE_ABOVE) && is_set(a, MARK_HERE, 1, ret_pid))
            return a;
    }
    return NULL;
}

long claimmarks_count(void)
{
    own_buf b = {0};
    char word[64];
    long n = 0;
    own_fd fd = open("/proc/locks", O_RDONLY | O_CLOEXEC);
    buf_init(&b, MOUNT_TABLE_BYTES_MAX);
    if (fd < 0 || fd_read_all(fd, &b, NULL) < 0)
        return -1;
    snprintf(word, sizeof(word), " %lld %lld\n", MARK_HERE, MARK_HERE);
    for (const char *at = buf_text(&b); (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sweeping of what the dead have left. */
#include "box/litter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "box/imageref.h"
#include "image/staging.h"

#define WRITING_SECONDS 60 /* nobody writes such a file for so long; who seems to be gone may live where we cannot see him */

/* .NAME.PID.new, as fd_replace_file writes them, of a process that is gone. One whose number was given anew stays for another time. */
static bool is_of_the_dead(int dir, const char *name)
{
    struct stat st;
    static const char end[] = ".new";
    char digits[16] = "";
    uint64_t pid = 0;
    size_t n = strlen(name);
    if (name[0] != '.' || n <= sizeof(end) || strcmp(name + n - strlen(end), end) != 0)
        return false;
    n -= strlen(end);
    size_t from = n;
    while (from > 0 && name[from - 1] != '.')
        from--;
    if (from < 2 || n == from || n - from >= sizeof(digits))
        return false;
    memcpy(digits, name + from, n - from);
    return number_u64(digits, INT32_MAX, &pid) && pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
           fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime < time(NULL) - WRITING_SECONDS;
}

int litter_files(const struct place *p, bool only_counts, unsigned *ret, struct pale_err *e)
{
    int r = 0;
    DIR *d = opendir(p->state);
    if (!d)
        return errno == ENOENT ? 0 : err_os(e, "list %s", p->state);
    for (const struct dirent *en; r == 0 && (en = readdir(d));) {
        if (!is_of_the_dead(dirfd(d), en->d_name))
            continue;
        if (!only_counts && unlinkat(dirfd(d), en->d_name, 0) < 0 && errno != ENOENT)
            r = err_os(e, "remove %s/%s", p->state, en->d_name);
        *ret += r == 0;
    }
    closedir(d);
    return r;
}

int litter_staging(bool only_counts, unsigned *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], data[PATH_BYTES_MAX - 16];
    own_store s = STORE_NONE;
    int r = place_data_dir(data, sizeof(data), e);
    snprintf(path, sizeof(path), "%s-staging", data);
    if (r < 0 || access(path, F_OK) < 0)
        return r; /* no image was ever built */
    if ((r = imageref_store(&s, e)) == 0)
        *ret += staging_sweep(&s, only_counts);
    return r;
}

/* --- quarantines --- */

/* Nothing was taken into it for so long, and its keeper, which holds it, is gone. */
static bool is_old(int base, const char *name)
{
    struct stat st;
    own_fd fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_mtime < time(NULL) - LITTER_QUARANTINE_DAYS * 86400ll &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

int litter_quarantines(bool only_counts, unsigned *ret, struct pale_err *e)
{
    char path[PATH_BYTES_MAX], state[PATH_BYTES_MAX - 16];
    int r = place_state_dir(state, sizeof(state), e);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/quarantine", state);
    int base = fd_open_real_dir(path);
    own_fd list = base < 0 ? -1 : openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_close(&base);
    if (list < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    DIR *d = fdopendir(fcntl(list, F_DUPFD_CLOEXEC, 3));
    if (!d)
        return err_os(e, "list %s", path);
    for (const struct dirent *en; r == 0 && (en = readdir(d));) {
        if (en->d_name[0] == '.' || !is_old(list, en->d_name))
            continue;
        r = only_counts ? 0 : fd_remove_tree(list, en->d_name, e);
        *ret += r == 0;
    }
    closedir(d);
    return r;
}

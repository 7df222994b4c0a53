/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verb cp. A tree from a box is received through base/bundle, which never follows a symlink and never leaves the folder it
 * was given. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/limits.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/chore.h"
#include "cli/lookup.h"
#include "cli/verbs.h"

static struct chore chore;

#define BUNDLE_CUT 2 /* exit status of the child */

/* BOX:PATH, where BOX is a box name and PATH is not empty. */
static bool split_box(const char *word, char box[BOX_NAME_MAX + 1], const char **ret_path)
{
    const char *colon = strchr(word, ':');
    size_t n = colon ? (size_t)(colon - word) : 0;
    if (n == 0 || n > BOX_NAME_MAX || !colon[1])
        return false;
    memcpy(box, word, n);
    box[n] = 0;
    *ret_path = colon + 1;
    return path_is_box_name(box);
}

/* Bundles go through a child that reads or writes files while we carry bytes. */
static pid_t start_bundle(int *fd, bool sending, int dirfd, const char *name)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        struct bundle_count count;
        struct pale_err e;
        close(sending ? p[0] : p[1]);
        int r = sending ? bundle_send(p[1], dirfd, name, true, &count, &e) : bundle_receive(p[0], dirfd, name, true, &count, &e);
        bool said_there = sending ? e.os == EPIPE : e.code == PALE_GONE; /* the other side has stopped, and says why */
        if (r < 0 && !said_there)
            cli_complain(e.text);
        else if (r == 0 && count.skipped)
            fprintf(stderr, "pale: %llu entries were left out: no files, folders or symlinks, or links that lead out\n",
                    (unsigned long long)count.skipped);
        if (r == 0 && count.changed)
            fprintf(stderr, "pale: %llu files grew or shrank while they were read\n", (unsigned long long)count.changed);
        fflush(stderr);
        _exit(r == 0 ? 0 : said_there ? BUNDLE_CUT : 1);
    }
    close(sending ? p[1] : p[0]);
    *fd = sending ? p[0] : p[1];
    return pid;
}

static int end_bundle(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The folder and name that a host destination means, as cp does: into an existing folder, else as that name. */
static int host_target(const char *path, const char *source_name, int *ret_dir, char *ret_name, size_t cap, struct pale_err *e)
{
    struct stat st;
    char dir[PATH_BYTES_MAX];
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(dir, sizeof(dir), "%s", path);
        snprintf(ret_name, cap, "%s", source_name);
    } else {
        const char *slash = strrchr(path, '/');
        snprintf(dir, sizeof(dir), "%.*s", slash ? slash == path ? 1 : (int)(slash - path) : 1, slash ? path : ".");
        snprintf(ret_name, cap, "%s", slash ? slash + 1 : path);
    }
    *ret_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_dir < 0)
        return err_os(e, "open folder %s", dir);
    return ret_name[0] ? 0 : err_set(e, PALE_BAD_INPUT, "%s names no file", path);
}

/* Runs the chore while a child moves the files of our side; both must end well. */
static int carry(struct args *a, bool in, int dirfd, const char *name)
{
    struct pale_err e;
    own_fd fd = -1;
    pid_t pid = start_bundle(&fd, in, dirfd, name);
    if (pid < 0)
        return err_os(&e, "start the copy"), cli_fail(a, &e);
    if (in) {
        chore.exec.flags |= EXEC_STDIN;
        chore.session.forward_input = true;
        chore.session.in_fd = fd;
    } else {
        chore.session.out_fd = fd;
    }
    chore.session.shows_progress = !a->json && isatty(2);
    int r = chore_run(&chore, &e);
    own_close(&fd);
    int child = end_bundle(pid);
    if (r < 0)
        return cli_fail(a, &e);
    if (child == BUNDLE_CUT)
        return err_set(&e, PALE_GONE, "the copy was cut off before its end, and nobody said why"), cli_fail(a, &e);
    return child ? 125 : 0;
}

static int copy_out(struct args *a, const char *box, const char *path, const char *to)
{
    struct pale_err e;
    char name[PATH_BYTES_MAX];
    own_fd dir = -1;
    if (host_target(to, chore_last_name(path), &dir, name, sizeof(name), &e) < 0 || chore_open(&chore, a, box, &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, (const char *const[]){"pack", path, NULL});
    return carry(a, false, dir, name);
}

static int copy_in(struct args *a, const char *from, const char *box, const char *path)
{
    struct pale_err e;
    char target[PATH_BYTES_MAX];
    struct stat st;
    if (stat(from, &st) < 0)
        return err_os(&e, "%s", from), cli_fail(a, &e);
    if (!chore_is_folder(&chore, a, box, path))
        snprintf(target, sizeof(target), "%s", path);
    else if (!path_join(target, sizeof(target), path, chore_last_name(from)))
        return err_set(&e, PALE_BAD_INPUT, "%s: the path in the box is too long", path), cli_fail(a, &e);
    if (chore_open(&chore, a, box, &e) < 0)
        return cli_fail(a, &e);
    chore_set(&chore, (const char *const[]){"unpack", target, NULL});
    return carry(a, true, AT_FDCWD, from);
}

static int run_cp(struct args *a)
{
    struct pale_err e;
    char box[2][BOX_NAME_MAX + 1];
    const char *path[2];
    bool from_box = split_box(a->word[0], box[0], &path[0]), to_box = split_box(a->word[1], box[1], &path[1]);
    if (from_box == to_box) {
        err_set(&e, PALE_BAD_INPUT,
                "one of the two must be BOX:PATH and the other a path of the host (write ./a:b for a name with a colon)");
        return cli_fail(a, &e);
    }
    return from_box ? copy_out(a, box[0], path[0], a->word[1]) : copy_in(a, a->word[0], box[1], path[1]);
}

static const struct option *const cp_tables[] = {scope_options, common_options, NULL};

const struct verb verb_cp = {
    "cp",
    "Files",
    "copy files and folders in or out",
    "BOX:PATH HOSTPATH | HOSTPATH BOX:PATH",
    "Copies a file or a whole tree. Symlinks are copied as links and never followed; links that lead out of the tree\n"
    "are left out on the way to the host; setuid bits are dropped.",
    cp_tables,
    2,
    2,
    -1,
    run_cp};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a project's instructions. The project is a tree that a box can change. */
#include "agents/instructions.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/own.h"

void instructions_preface(const char *project, const char *box, const char *hint, struct buf *out)
{
    buf_addf(
        out,
        "The project is the folder %s. It is in the box \"%s\", together with every command you run. Your own process is outside of "
        "it and its working folder is empty and of no interest.\n"
        "Reach the project with the tools of the MCP server `pale`, and with these alone: exec runs commands, read, write, edit, "
        "apply_patch, list, glob and grep work on files, job follows commands in the background, policy says what the box may do and why "
        "something was refused, diff shows what has changed in the box, snapshot and restore keep the box's own files and bring them back. "
        "Relative paths start at %s. Give paths "
        "as they are in the box.\n%s%s",
        project, box, project, hint ? hint : "", hint ? "\n" : "");
}

/* 1: appended; 0: there is none, or it is left out. */
static int read_one(int dir, const char *name, struct buf *out, void (*note)(const char *fmt, ...), struct pale_err *e)
{
    struct stat st;
    own_buf text = {0};
    own_fd fd = fd_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0) {
        note("note: %s is not passed on: %s", name,
             errno == ELOOP || errno == EXDEV ? "it is a link, or lies behind one" : strerror(errno));
        return 0;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > INSTRUCTIONS_FILE_MAX) {
        note("note: %s is not passed on: it is no file, or longer than %u KiB", name, INSTRUCTIONS_FILE_MAX / 1024);
        return 0;
    }
    buf_init(&text, INSTRUCTIONS_FILE_MAX);
    int r = fd_read_all(fd, &text, e);
    if (r < 0)
        return err_prefix(e, "%s", name);
    const char *p = buf_text(&text);
    if (memmem(buf_text(out), out->len, p, strlen(p)))
        return 0; /* the same words under another name */
    buf_addf(out, "\nThe project's %s:\n\n%s\n", name, p);
    return out->failed ? err_set(e, PALE_LIMIT, "the project's instructions are longer than %u KiB in all", INSTRUCTIONS_MAX / 1024) : 1;
}

int instructions_read(const char *folder, const char *const *names, struct buf *out, void (*note)(const char *fmt, ...), struct pale_err *e)
{
    own_fd dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;
    if (dir < 0)
        return err_os(e, "open %s", folder);
    for (const char *const *name = names; r >= 0 && *name; name++)
        r = read_one(dir, *name, out, note, e);
    return r < 0 ? r : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the daemon's log. */
#include "daemon/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/own.h"

#define LOG_BYTES_MAX (1 << 20)

static struct {
    char path[PATH_BYTES_MAX], old[PATH_BYTES_MAX];
    struct listener listener;
} state; /* of this program, which has one log */

void log_init(const char *path)
{
    snprintf(state.path, sizeof(state.path), "%s", path);
    snprintf(state.old, sizeof(state.old), "%.*s.1", (int)sizeof(state.old) - 3, path);
}

/* The newest two pieces are kept. Standard error that is not this file is somebody else's to keep short. */
static void rotate(void)
{
    struct stat ours, named;
    if (fstat(2, &ours) < 0 || ours.st_size < LOG_BYTES_MAX || stat(state.path, &named) < 0 || ours.st_ino != named.st_ino ||
        ours.st_dev != named.st_dev || rename(state.path, state.old) < 0)
        return;
    own_fd fd = open(state.path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)dup2(fd, 2);
}

void log_line(const char *fmt, ...)
{
    char line[1024], stamp[40];
    va_list ap;
    int n = snprintf(line, sizeof(line), "%s paled: ", clock_stamp(stamp, sizeof(stamp)));
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if ((size_t)n > sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    rotate();
    (void)!write(2, line, (size_t)n);
}

static void heard(struct listener *l, const struct event *ev)
{
    (void)l;
    if (strncmp(ev->kind, "box.", 4) == 0)
        log_line("%s", ev->text);
}

void log_events(struct events *e)
{
    state.listener.heard = heard;
    events_listen(e, &state.listener);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals: bytes into an input queue, consoles, line disciplines. On a terminal of our own making. */
#include "attack.h"

#include <sys/ioctl.h>

static int own_terminal(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0;
    char path[32];
    unsigned n = 0;
    if (master < 0 || ioctl(master, TIOCSPTLCK, &zero) < 0 || ioctl(master, TIOCGPTN, &n) < 0)
        broken("terminal: %s", strerror(errno));
    snprintf(path, sizeof(path), "/dev/pts/%u", n);
    setsid(); /* the caller is a child, so it leads no group yet; the other side stays open here */
    int fd = open(path, O_RDWR);
    if (fd < 0)
        broken("%s: %s", path, strerror(errno));
    ioctl(fd, TIOCSCTTY, 0);
    return fd;
}

/* ioctl REQUEST: success, or an answer that only the terminal's own code gives, is a leak. */
static void terminal_ioctl(int argc, char **argv)
{
    unsigned long request = strtoul(word(argc, argv, 1), NULL, 0);
    int p[2], discipline = 0;
    char text[512];
    (void)!pipe(p);
    if (fork() == 0) {
        dup2(p[1], 1);
        static const int refusals[] = {EPERM, 0};
        int fd = own_terminal();
        /* TIOCSTI takes a byte, TIOCSETD a number, TIOCLINUX a byte: one zero serves all. */
        judge("ioctl", CALL(__NR_ioctl, fd, request, &discipline), refusals);
    }
    close(p[1]);
    ssize_t n = read(p[0], text, sizeof(text));
    if (n <= 0)
        broken("no answer");
    (void)!write(1, text, (size_t)n);
    _exit(0);
}

const struct attack tty_attacks[] = {{"ioctl", terminal_ioctl}, {0}};

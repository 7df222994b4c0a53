/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp-run PROFILE -- COMMAND …: runs a command under one filter and nothing else. For tests; never installed. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "confine/seccomp.h"

/* "init+X" loads init's own list first, as a command in a box has it below its profile. */
static const struct {
    const char *name;
    enum policy_seccomp profile;
} profiles[] = {{"strict", SECCOMP_STRICT}, {"debug", SECCOMP_DEBUG}, {"image-build", SECCOMP_IMAGE_BUILD}};

static int lock_up(const char *name, struct pale_err *e)
{
    static const char below[] = "init+";
    bool with_init = strncmp(name, below, sizeof(below) - 1) == 0;
    if (with_init)
        name += sizeof(below) - 1;
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (strcmp(profiles[i].name, name) != 0)
            continue;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
            return err_os(e, "give up new privileges");
        int r = with_init ? seccomp_load(seccomp_for_program(OWN_INIT), e) : 0;
        return r < 0 ? r : seccomp_load(seccomp_for(profiles[i].profile), e);
    }
    return err_set(e, PALE_BAD_INPUT, "no profile %s: strict, debug or image-build, with or without init+ before it", name);
}

int main(int argc, char **argv)
{
    struct pale_err e = {0};
    if (argc < 4 || strcmp(argv[2], "--") != 0) {
        fprintf(stderr, "use: seccomp-run PROFILE -- COMMAND [ARGUMENT …]\n");
        return 125;
    }
    if (lock_up(argv[1], &e) < 0) {
        fprintf(stderr, "seccomp-run: %s\n", e.text);
        return 125;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}

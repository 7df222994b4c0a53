/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look at what room is left. */
#include "init/room.h"

#include <stddef.h>
#include <sys/statfs.h>

#include "base/limits.h"
#include "wire/message.h"

/* A place for each of the two that a box writes to: its layers, all parts of which count together, and a scratch in memory. Where there
 * are no layers both are in memory, and the first tells. Names and not descriptors: a box can put nothing of its own at them but on an
 * image, and then it deceives only itself. */
static const struct {
    const char *path;
    uint64_t flag;
} places[] = {{"/home/agent", 0}, {"/run", EXIT_IN_MEMORY}};

uint64_t room_missing(void)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct statfs st;
        if (statfs(places[i].path, &st) < 0)
            continue;
        /* What counts neither blocks nor files has no end that could be seen. */
        if (st.f_blocks > 0 && (uint64_t)st.f_bavail * (uint64_t)st.f_bsize < ROOM_BYTES_LEAST)
            return EXIT_NO_ROOM | places[i].flag;
        if (st.f_files > 0 && st.f_ffree == 0)
            return EXIT_NO_FILES | places[i].flag;
    }
    return 0;
}

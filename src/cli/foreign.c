/* SPDX-License-Identifier: Apache-2.0 */
/* Translates options of other sandboxes. docs/decisions/0049-words-of-the-command-line.md says which and why. */
#include "cli/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAKING " run create claude codex gemini qwen opencode copilot agent "
#define EPHEMERAL                                                                                                                          \
    "does not say what is to go: --project ro shows the folder read-only, --scratch memory keeps the box's own writes in memory, and a "   \
    "box of `pale run` is gone after its command"

static const struct foreign rows[] = {
    {"no-net", MAKING, "network", "none", NULL},
    {"no-network", MAKING, "network", "none", NULL},
    {"filtered", MAKING, "network", "filtered", NULL},
    {"allow-host", MAKING, "allow", NULL, NULL},
    {"config", " run create ", "policy", NULL, NULL},
    {"workdir", NULL, "cwd", NULL, NULL},
    {"ephemeral", MAKING, NULL, NULL, EPHEMERAL},
    {"force-memory", MAKING, NULL, NULL, "is not needed: say --scratch memory, and --memory SIZE bounds it"},
    {"read-only", MAKING, NULL, NULL, "is not needed: the box sees the host's programs read-only anyway; --project ro shows the folder so"},
    {"mount", MAKING, NULL, NULL, "is --volume HOST:TARGET[:ro|rw] here, or --read PATH and --write PATH at the same place"},
    {"bind", MAKING, NULL, NULL, "is --write PATH here, or --volume HOST:TARGET[:ro|rw]"},
    {"ro-bind", MAKING, NULL, NULL, "is --read PATH here, or --volume HOST:TARGET:ro"},
    {"privileged", MAKING, NULL, NULL, "does not exist here: a box has no capability of the host; --seccomp debug allows tracing"},
    {"gpus", MAKING, NULL, NULL, "does not exist here: no device of the host can be given to a box"},
    {"name", " create ", NULL, NULL, "is not needed: pale create NAME"},
    {"config", " validate ", NULL, NULL, "is not needed: pale validate FILE"},
    {"output", " validate ", NULL, NULL, "is --json here"},
    {"sandbox-id", " inspect ", NULL, NULL, "is not needed: pale inspect BOX"},
    {"mirror", " image ", NULL, NULL, "does not exist here: mmdebstrap asks the mirrors of this host's apt"},
    {"arch", " image ", NULL, NULL, "does not exist here: an image is for this host's processor"},
};

static bool is_about(const struct foreign *f, const char *verb)
{
    char word[64];
    snprintf(word, sizeof(word), " %s ", verb);
    return !f->verbs || strstr(f->verbs, word);
}

const struct foreign *foreign_find(const char *verb, const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strlen(rows[i].word) == n && memcmp(rows[i].word, word, n) == 0 && is_about(&rows[i], verb))
            return &rows[i];
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A wiring: all that makes one start of a harness (arguments, variables, files), as data, before anything is done. */
#pragma once

#include <sys/types.h>

#include "agents/words.h"
#include "base/buf.h"

#define WIRING_FILES_MAX 12
#define WIRING_FILE_BYTES (2u << 20)

/* The tools of our MCP server, for harnesses that want each by its name. */
#define WIRING_TOOLS "exec", "job", "read", "write", "edit", "list", "glob", "grep", "apply_patch", "policy", "diff", "snapshot", "restore"

struct wiring_file {
    char name[64]; /* below the shadow folder */
    mode_t mode;
    struct buf text;
    bool is_link; /* text is where it leads */
};

struct wiring {
    struct words argv; /* the program's path is the first */
    struct words env;  /* NAME=VALUE, all it gets */
    struct wiring_file file[WIRING_FILES_MAX];
    size_t file_count;
    bool failed;
};

/* What an entry builds from. */
struct wiring_facts {
    const char *program;
    const char *pale; /* our own, by its path */
    const char *box_id, *box_name;
    const char *project; /* where the project is, on the host and in the box alike */
    const char *shadow;  /* the folder that the files go to */
    const char *work;    /* an empty one in it, the harness's working folder */
    const char *instructions;
    const struct words *mcp_env; /* what `pale mcp` must know of our environment */
    const char *home;            /* of a trial; NULL: the user's */
    const char *model_url;       /* of a trial */
};

void wiring_done(struct wiring *w);
#define own_wiring CLEANUP(wiring_done) struct wiring

/* A file of that name in the shadow folder; its text is to be filled in. Never NULL: failure sticks. */
struct buf *wiring_file(struct wiring *w, const char *name, mode_t mode);

/* A link of that name to a file or folder of the user's: what a harness must find in its home though that is another. A folder that is
 * not there is made. */
void wiring_link(struct wiring *w, const char *name, const char *target, bool is_folder);

/* A text in quotes, as JSON and TOML write it. */
void wiring_text(struct buf *b, const char *text);

bool wiring_is_good(const struct wiring *w);

/* The box's MCP server as most harnesses write it: {"command":…,"args":[…],"env":{…}}, without the braces around. */
struct json;
void wiring_server(const struct wiring_facts *f, struct json *j);

/* The variables of it alone, as an object under that key. */
void wiring_environment(const struct wiring_facts *f, struct json *j, const char *key);

/* A word for sh, in single quotes. */
void wiring_quote(struct buf *b, const char *word);

/* The lines of a script that set what `pale` must know: the harness may have a home of its own. */
void wiring_export(const struct wiring_facts *f, struct buf *b);

/* Shells that run in the box, in a folder bin that stands first in PATH, for harnesses whose shell mode starts whatever shell it finds
 * there. SHELL is one of them. */
void wiring_shells(struct wiring *w, const struct wiring_facts *f);

/* Every file into the folder, which is the user's and empty. */
int wiring_write(const struct wiring *w, int dirfd, struct pale_err *e) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb of the command shares: its table row, its parsed arguments, and how it speaks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct args;

struct option {
    const char *name;  /* without dashes */
    char letter;       /* 0: none */
    const char *value; /* what it takes, for the help; NULL: nothing */
    const char *help;
    const char *key; /* the policy key it sets, for box flags; NULL: the verb reads it */
};

struct verb {
    const char *name, *group, *summary;
    const char *usage;                   /* after the verb's name */
    const char *about;                   /* paragraphs of the help text */
    const struct option *const *options; /* NULL-ended list of tables, each ended by a row without name */
    int min, max;                        /* positional arguments; max < 0: no limit */
    int command_after;                   /* a command line follows this many positionals; -1: none does */
    int (*run)(struct args *a);          /* the exit status */
};

#define ARGS_OPTIONS_MAX 256
#define ARGS_OPTIONS_ADDED 4 /* by a verb itself */

struct args {
    const struct verb *verb;
    int count;
    char **word; /* positionals, and the command after them */
    int command; /* index of the command's first word in word; count if there is none */
    bool json;
    const char *host; /* the daemon to ask, by --host or PALE_HOST; NULL: this host does it */
    int given_count;
    struct {
        const struct option *option;
        const char *value; /* "" for an option that takes none */
    } given[ARGS_OPTIONS_MAX + ARGS_OPTIONS_ADDED];
};

extern const struct verb *const cli_verbs[];

/* Where the verb is to be done: --host among its options, else before it (early, may be NULL), else PALE_HOST. An empty one means
 * this host. */
void args_set_host(struct args *a, const char *early);

/* Reads a verb's words. On failure the error says what is wrong and what is near. */
int args_parse(const struct verb *v, int argc, char **argv, struct args *ret, struct pale_err *e) MUST_CHECK;

/* The last value given for an option, or NULL. */
const char *args_get(const struct args *a, const char *name);
bool args_has(const struct args *a, const char *name);

/* --- speaking --- */

/* Prints the error (as JSON with --json) and returns its exit status. */
int cli_fail(const struct args *a, const struct pale_err *e);
/* The same on standard error, whatever its form: of a verb whose standard output is not for what it says. */
int cli_fail_aside(const struct args *a, const struct pale_err *e);
/* One line on standard error; what a box or an argument put into the text is shown, not obeyed. */
void cli_complain(const char *text);
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);
void cli_help(const struct verb *v);
void cli_overview(void);

/* Prints a finished JSON text and a newline. */
int cli_json(struct buf *b);

/* The value of a key in a line of JSON that we wrote: of a text what stands between its quotes, still escaped; "" if it is not there. */
void cli_field(const char *line, const char *key, char *ret, size_t cap);

/* Colour, if the stream is a terminal and nobody said no: name is "bold", "red", "green", "yellow", "dim" or "reset". */
const char *cli_colour(int fd, const char *name);

/* A table on standard output: columns as wide as their widest cell. */
#define TABLE_COLUMNS 8
struct table {
    int columns;
    bool has_head;
    struct buf cells; /* NUL-separated */
    size_t rows;
};
void table_init(struct table *t, const char *const *heads, int columns); /* heads NULL: no first row */
void table_cell(struct table *t, const char *text);                      /* quoted here */
void table_print(struct table *t);

/* What a verb lists: a JSON list with --json, else a table. The verb fills the one that json says. */
struct listing {
    bool is_json;
    struct json json;
    struct table table;
    struct buf text;
};
void listing_init(struct listing *l, const struct args *a, const char *const *heads, int columns);
void listing_done(struct listing *l);
#define own_listing CLEANUP(listing_done) struct listing
int listing_print(struct listing *l); /* the exit status */

extern const struct option common_options[];

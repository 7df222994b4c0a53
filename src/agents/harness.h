/* SPDX-License-Identifier: Apache-2.0 */
/* The harnesses that pale can start with one execution path: the box.
 *
 * An entry says how a program is wired so that its own tools are gone and the box's are there, what passes of the user's words and
 * variables, and what the model may be offered. Always by listing what is good: what is new and unknown is not. */
#pragma once

#include "agents/managed.h"
#include "agents/wiring.h"

enum harness_takes {
    TAKES_NOTHING,
    TAKES_VALUE,   /* the next word, or after '=' */
    TAKES_MAYBE,   /* a value may follow */
    TAKES_SETTING, /* KEY=VALUE; text lists the keys, in which '*' stands for one part between dots */
    TAKES_NO_PART, /* it is refused, and text says why */
};

/* A flag of the harness that the user may give after "--". One that has no row is refused. */
struct harness_flag {
    const char *name; /* with its dashes */
    enum harness_takes takes;
    const char *text; /* the values that pass, separated by blanks; NULL: any */
};

/* A command of the harness that passes as the first word, what is added after it, and a command below it that passes as the second. */
struct harness_command {
    const char *name, *adds, *below;
};

struct harness {
    const char *name, *title, *package;
    const char *oldest, *newest; /* versions that the tests have seen wired so */
    const char *closed;          /* for `pale agents`: what cannot run on the host, and by what */
    const struct harness_flag *flags;
    const struct harness_command *commands; /* ended by a row without name; NULL: none */
    bool needs_command;                     /* without one a word would not be a prompt but, say, a folder */
    const char *const *drops;               /* variables of ours it does not get; one that ends in '*' is the beginning of many */
    const char *const *keeps;               /* … but these */
    const char *const *instructions;        /* files of the project that are passed on as text */
    const char *home_instructions;          /* a file below HOME that would be read, were it not for our wiring; NULL: none */
    const char *const *harmless;            /* its own tools that the model may be offered */
    const char *tool_prefix;                /* of the box's tools, as the model sees them */
    const char *hint;                       /* for the model: how these are to be had; NULL: they are there */
    const char *question;                   /* what it asks a person at a first start, and what is right to say; NULL: nothing */
    const struct managed_file *managed;
    /* Adds what the program is started with. Failure sticks in w. */
    void (*wire)(struct wiring *w, const struct wiring_facts *f);
    /* Adds what lets it ask the model at f->model_url one thing without a person, a login or a terminal. */
    void (*ask_stub)(struct wiring *w, const struct wiring_facts *f);
    /* What the stub answers first, as items of the Responses API: calls that show what a list of tools does not (deferred tools are
     * searched for; native ones that stay listed must fail to make f->work/tripped). NULL: it says "ok". */
    void (*probe)(const struct wiring_facts *f, struct buf *out);
    /* What somebody writes into its settings to have the box's tools beside its own: text, and where it goes. */
    void (*config)(const struct wiring_facts *f, struct buf *out);
    const char *config_place;
};

/* Ended by NULL. */
extern const struct harness *const harness_all[];
extern const struct harness harness_claude, harness_codex, harness_gemini, harness_qwen, harness_opencode, harness_copilot;

const struct harness *harness_find(const char *name);

/* Appends those of the user's words that pass; the error names the first that does not, and why. */
int harness_pass(const struct harness *h, char *const *word, int count, struct words *out, struct pale_err *e) MUST_CHECK;

/* Our environment as the harness gets it: without what the entry drops, and with a PATH that leads nowhere a box may write. */
int harness_env(const struct harness *h, const char *project, struct words *out, struct pale_err *e) MUST_CHECK;

/* Finds its program: in PATH, by absolute folders that do not lie in the project, real path in ret. */
int harness_program(const struct harness *h, const char *project, char *ret, size_t cap, struct pale_err *e) MUST_CHECK;

/* May the model be offered this? */
bool harness_expects(const struct harness *h, const char *tool);

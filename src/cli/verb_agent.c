/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs that start agents: one for each harness that can be closed, agent for all others, and agents, which lists them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/trial.h"
#include "base/own.h"
#include "cli/boxflags.h"
#include "cli/cli.h"
#include "cli/door.h"
#include "cli/ensure.h"
#include "cli/launch.h"
#include "cli/run_in.h"
#include "cli/verbs.h"

static const struct option launch_options[] = {
    {"dry-run", 'n', NULL, "print what would be done, and do nothing", NULL},
    {"check", 0, NULL, "compare the tools it offers with the expected ones again, even if nothing has changed", NULL},
    {0},
};

static void tell_trial(const struct harness *h, const struct trial *t)
{
    bool is_known = trial_compare_versions(t->version, h->oldest) >= 0 && trial_compare_versions(t->version, h->newest) <= 0;
    if (!is_known && !t->is_remembered)
        cli_note("note: %s %s is not among the versions that were verified (%s to %s); the tools it offers are as expected", h->name,
                 t->version, h->oldest, h->newest);
}

static int run_launch(struct args *a)
{
    static struct trial trial;
    static struct launch l = {.shadow = {.dir_fd = -1, .lock_fd = -1}};
    struct pale_err e;
    int status = 0;
    bool dry = args_has(a, "dry-run");
    const struct harness *h = harness_find(a->verb->name);
    int r = door_only_here(a, h->name, "it starts the agent, and its box, where you are", &e);
    if (r == 0)
        r = launch_prepare(&l, a, h, dry, &e);
    if (r == 0 && !dry) {
        struct wiring_facts f = launch_facts(&l);
        r = trial_run(h, &f, &l.site, args_has(a, "check"), &trial, &e);
    }
    if (r == 0 && !dry) {
        tell_trial(h, &trial);
        if (h->question && !trial.is_remembered && isatty(0))
            cli_note("note: %s", h->question);
        r = status = launch_go(&l, &e);
    } else if (r == 0) {
        status = launch_show(&l);
    }
    launch_done(&l);
    return r < 0 ? cli_fail(a, &e) : status;
}

/* --- agent --- */

static int run_agent(struct args *a)
{
    struct pale_err e;
    struct ensured box;
    char project[PATH_BYTES_MAX];
    int r = door_only_here(a, "agent", "it makes the box of the working folder", &e);
    if (r == 0 && a->command >= a->count)
        r = err_set(&e, PALE_BAD_INPUT, "no command: pale agent %s", a->verb->usage);
    if (r == 0 && !realpath(".", project))
        r = err_os(&e, "find the working folder");
    if (r == 0)
        r = ensure_box(a, project, false, &box, &e);
    return r < 0 ? cli_fail(a, &e) : run_in(a, box.place.id, project, a->word + a->command, a->count - a->command);
}

/* --- agents --- */

static void list_one(struct listing *l, const struct harness *h, const char *project)
{
    char program[PATH_BYTES_MAX], version[32] = "", verified[80];
    bool is_there = harness_program(h, project, program, sizeof(program), NULL) == 0;
    if (is_there && trial_version(h, program, project, version, NULL) < 0)
        version[0] = 0;
    snprintf(verified, sizeof(verified), "%s%s%s", h->oldest, strcmp(h->oldest, h->newest) ? " to " : "",
             strcmp(h->oldest, h->newest) ? h->newest : "");
    if (!l->is_json) {
        table_cell(&l->table, h->name);
        table_cell(&l->table, !is_there ? "-" : version[0] ? version : "?");
        table_cell(&l->table, verified);
        table_cell(&l->table, h->closed);
        return;
    }
    json_begin_object(&l->json, NULL);
    json_text(&l->json, "name", h->name);
    json_text(&l->json, "title", h->title);
    json_text(&l->json, "package", h->package);
    if (is_there)
        json_text(&l->json, "program", program);
    else
        json_put_null(&l->json, "program");
    if (version[0])
        json_text(&l->json, "installed", version);
    else
        json_put_null(&l->json, "installed");
    json_text(&l->json, "verified_oldest", h->oldest);
    json_text(&l->json, "verified_newest", h->newest);
    json_text(&l->json, "closed", h->closed);
    json_begin_list(&l->json, "harmless_tools");
    for (const char *const *t = h->harmless; t && *t; t++)
        json_text(&l->json, NULL, *t);
    json_end_list(&l->json);
    json_end_object(&l->json);
}

static int run_agents(struct args *a)
{
    static const char *const heads[] = {"AGENT", "INSTALLED", "VERIFIED", "CLOSED"};
    char project[PATH_BYTES_MAX];
    own_listing l;
    if (!realpath(".", project))
        snprintf(project, sizeof(project), "/nowhere");
    listing_init(&l, a, heads, 4);
    for (const struct harness *const *h = harness_all; *h; h++)
        list_one(&l, *h, project);
    return listing_print(&l);
}

static const struct option *const launch_tables[] = {ensure_options, launch_options, box_options, common_options, NULL};
static const struct option *const agent_tables[] = {ensure_options, run_in_options, box_options, common_options, NULL};
static const struct option *const plain_tables[] = {common_options, NULL};

#define LAUNCHER(variable, verb_name, title)                                                                                               \
    const struct verb variable = {                                                                                                         \
        verb_name,                                                                                                                         \
        "Agents",                                                                                                                          \
        "start " title " with its hands in a box",                                                                                         \
        "[--box NAME] [FLAGS] [--dry-run] [-- WORDS …]",                                                                                   \
        "Starts " title " on this host, where its login is, wired so that all it executes\n"                                               \
        "or edits is in a box of the working folder, which is made by need. Its own tools, the project's and your settings that\n"         \
        "run something, and other servers are off. Before it starts, the tools it offers a model are compared with the expected\n"         \
        "ones. WORDS go to it; flags that are not known to be harmless are refused. docs/agents.md says more.",                            \
        launch_tables,                                                                                                                     \
        0,                                                                                                                                 \
        -1,                                                                                                                                \
        0,                                                                                                                                 \
        run_launch}

LAUNCHER(verb_claude, "claude", "Claude Code");
LAUNCHER(verb_codex, "codex", "Codex");
LAUNCHER(verb_gemini, "gemini", "Gemini CLI");
LAUNCHER(verb_qwen, "qwen", "Qwen Code");
LAUNCHER(verb_opencode, "opencode", "opencode");
LAUNCHER(verb_copilot, "copilot", "GitHub Copilot CLI");

const struct verb verb_agent = {
    "agent",
    "Agents",
    "run an agent that cannot be closed, inside a box",
    "[--box NAME] [FLAGS] [--] COMMAND …",
    "For agents whose own tools cannot be taken away (aider, cursor-agent, anything): the agent itself runs in the\n"
    "box of the working folder, which is made by need, on a terminal if there is one. What it needs there, its\n"
    "program, its key, a way to its model, is the policy's to give.",
    agent_tables,
    1,
    -1,
    0,
    run_agent};
const struct verb verb_agents = {"agents",
                                 "Agents",
                                 "list the agents pale can start",
                                 "",
                                 "With the version that is installed, those that were verified, and what is closed.",
                                 plain_tables,
                                 0,
                                 0,
                                 -1,
                                 run_agents};

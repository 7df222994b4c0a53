/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how Gemini CLI is wired.
 *
 * How it works: it gets a home of its own (GEMINI_CLI_HOME) in the shadow folder, so that no settings of the user's are read, with links
 * to the login and the sessions. Of the native tools one is wanted that does not exist, so that none is there, and a policy of the
 * highest rank denies every tool but the box's (alone it would also hide the box's glob, which has the name of a native one). Its shell
 * mode and the commands in prompts start the bash that is first in PATH, which is one of the box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "agents/usersettings.h"
#include "base/json.h"
#include "base/limits.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"

static const struct harness_flag flags[] = {
    {"-p", TAKES_VALUE, NULL},
    {"--prompt", TAKES_VALUE, NULL},
    {"-i", TAKES_VALUE, NULL},
    {"--prompt-interactive", TAKES_VALUE, NULL},
    {"-m", TAKES_VALUE, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"-r", TAKES_VALUE, NULL},
    {"--resume", TAKES_VALUE, NULL},
    {"--session-id", TAKES_VALUE, NULL},
    {"--list-sessions", TAKES_NOTHING, NULL},
    {"-o", TAKES_VALUE, "text json stream-json"},
    {"--output-format", TAKES_VALUE, "text json stream-json"},
    {"--screen-reader", TAKES_NOTHING, NULL},
    {"-d", TAKES_NOTHING, NULL},
    {"--debug", TAKES_NOTHING, NULL},
    {"-v", TAKES_NOTHING, NULL},
    {"--version", TAKES_NOTHING, NULL},
    {"-h", TAKES_NOTHING, NULL},
    {"--help", TAKES_NOTHING, NULL},
    {"-y", TAKES_NO_PART, "not needed: the box's tools are allowed, and there are no others"},
    {"--yolo", TAKES_NO_PART, "not needed: the box's tools are allowed, and there are no others"},
    {"--approval-mode", TAKES_NO_PART, MINE},
    {"--policy", TAKES_NO_PART, MINE},
    {"--admin-policy", TAKES_NO_PART, MINE},
    {"--allowed-tools", TAKES_NO_PART, MINE},
    {"--allowed-mcp-server-names", TAKES_NO_PART, MINE},
    {"-e", TAKES_NO_PART, "extensions bring servers and hooks that run on the host"},
    {"--extensions", TAKES_NO_PART, "extensions bring servers and hooks that run on the host"},
    {"--include-directories", TAKES_NO_PART, "give folders to the box with --read, --write or --volume before the --"},
    {"--skip-trust", TAKES_NO_PART, MINE},
    {"-s", TAKES_NO_PART, "the box is the sandbox"},
    {"--sandbox", TAKES_NO_PART, "the box is the sandbox"},
    {"-w", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"--worktree", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"--acp", TAKES_NO_PART, "an editor would drive it past the box"},
    {0},
};
static const char *const drops[] = {"GEMINI_*", "SANDBOX*", "SEATBELT_PROFILE", "BUILD_SANDBOX", NULL};
static const char *const keeps[] = {"GEMINI_API_KEY",
                                    "GEMINI_BASE_URL",
                                    "GEMINI_MODEL",
                                    "GEMINI_API_KEY_AUTH_MECHANISM",
                                    "GEMINI_DEFAULT_AUTH_TYPE",
                                    "GEMINI_CLI_CUSTOM_HEADERS",
                                    "GEMINI_CLI_USE_COMPUTE_ADC",
                                    NULL};
static const char *const instructions[] = {"GEMINI.md", "AGENTS.md", NULL};
static const struct managed_key keys[] = {
    {"mcpServers", false, "has MCP servers; those of the site are not among the allowed ones here"},
    {"mcp", false, "says which MCP servers may load; if that leaves out `pale`, the trial says so"},
    {"hooks", false, "has hooks; they run on the host, as the site wants"},
    {"tools", false, "says which tools there are; the trial shows what is left of them"},
    {"admin", false, "says what is allowed; if that leaves out MCP, the trial says so"},
    {0},
};
static const struct managed_file managed[] = {
    {"/etc/gemini-cli/settings.json", keys, false, NULL},
    {"/etc/gemini-cli/system-defaults.json", keys, false, NULL},
    {0},
};

static void server(const struct wiring_facts *f, struct json *j)
{
    json_begin_object(j, "mcpServers");
    json_begin_object(j, "pale");
    wiring_server(f, j);
    json_bool(j, "trust", true);
    json_end_object(j);
    json_end_object(j);
}

static void config(const struct wiring_facts *f, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    server(f, &j);
    json_end_object(&j);
}

static void off(struct json *j, const char *section, const char *key)
{
    json_begin_object(j, section);
    json_bool(j, key, false);
    json_end_object(j);
}

/* The user's way to log in is a setting too, and no other is taken over. */
static void settings(const struct wiring_facts *f, struct buf *out)
{
    static const char *const path[] = {"security", "auth", "selectedType", NULL};
    char type[64];
    struct json j;
    if (f->home)
        snprintf(type, sizeof(type), "gemini-api-key");
    else
        usersettings_text(".gemini/settings.json", path, type, sizeof(type));
    json_start(&j, out);
    json_begin_object(&j, NULL);
    server(f, &j);
    json_begin_object(&j, "tools");
    json_begin_list(&j, "core");
    json_text(&j, NULL, "none");
    json_end_list(&j);
    json_end_object(&j);
    off(&j, "hooksConfig", "enabled");
    off(&j, "telemetry", "enabled");
    off(&j, "privacy", "usageStatisticsEnabled");
    off(&j, "skills", "enabled");
    json_begin_object(&j, "general");
    json_bool(&j, "enableAutoUpdate", false);
    json_bool(&j, "enableAutoUpdateNotification", false);
    json_end_object(&j);
    json_begin_object(&j, "security");
    json_begin_object(&j, "folderTrust");
    json_bool(&j, "enabled", false);
    json_end_object(&j);
    if (type[0]) {
        json_begin_object(&j, "auth");
        json_text(&j, "selectedType", type);
        json_end_object(&j);
    }
    json_end_object(&j);
    json_end_object(&j);
}

static void wire(struct wiring *w, const struct wiring_facts *f)
{
    static const struct {
        const char *name;
        bool is_folder;
    } shared[] = {
        {"oauth_creds.json", false}, {"google_accounts.json", false}, {"installation_id", false}, {"tmp", true}, {"history", true}};
    const char *home = getenv("HOME");
    char name[64], path[PATH_BYTES_MAX];
    words_addf(&w->env, "GEMINI_CLI_HOME=%s/gemini", f->shadow);
    words_addf(&w->env, "GEMINI_CLI_TRUST_WORKSPACE=true"); /* it is empty, and ours */
    words_addf(&w->argv, "--admin-policy=%s/policy.toml", f->shadow);
    words_add(&w->argv, "--allowed-mcp-server-names=pale");
    words_add(&w->argv, "--extensions=none");
    wiring_shells(w, f);
    settings(f, wiring_file(w, "gemini/.gemini/settings.json", 0600));
    buf_add_text(wiring_file(w, "policy.toml", 0600),
                 "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 10\n"
                 "[[rule]]\nmcpName = \"pale\"\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 900\n");
    buf_add_text(wiring_file(w, "work/GEMINI.md", 0600), f->instructions);
    for (size_t i = 0; !f->home && home && i < sizeof(shared) / sizeof(shared[0]); i++) {
        snprintf(path, sizeof(path), "%s/.gemini/%s", home, shared[i].name);
        snprintf(name, sizeof(name), "gemini/.gemini/%s", shared[i].name);
        wiring_link(w, name, path, shared[i].is_folder);
    }
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    words_addf(&w->env, "GOOGLE_GEMINI_BASE_URL=%s", f->model_url);
    words_add(&w->env, "GEMINI_API_KEY=none");
    words_add(&w->argv, "--model=gemini-2.5-pro"); /* by itself it first asks one which to use */
    words_add(&w->argv, "-p");
    words_add(&w->argv, "Say ok.");
}

const struct harness harness_gemini = {
    .name = "gemini",
    .title = "Gemini CLI",
    .package = "@google/gemini-cli",
    .oldest = "0.61.0",
    .newest = "0.61.0",
    .closed = "native tools, settings, hooks, extensions, other servers; ! goes to the box",
    .flags = flags,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".gemini/GEMINI.md",
    .tool_prefix = "mcp_pale_",
    .managed = managed,
    .wire = wire,
    .ask_stub = ask_stub,
    .config = config,
    .config_place = "~/.gemini/settings.json",
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how Qwen Code is wired.
 *
 * How it works: --bare reads no settings, hooks, extensions, skills or files of instructions and starts no agent in the background. The few
 * native tools it leaves are excluded by name, because in this mode it knows no list of those wanted: what a later version adds, the
 * trial finds. Its home (QWEN_HOME) is one of its own, with links to the login and the sessions. The shell mode starts the bash that is
 * first in PATH, which is one of the box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "agents/usersettings.h"
#include "base/json.h"
#include "base/limits.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"
#define ARGUMENT_MAX 120000 /* the kernel's limit for one argument is 131,072 */

static const struct harness_flag flags[] = {
    {"-p", TAKES_VALUE, NULL},
    {"--prompt", TAKES_VALUE, NULL},
    {"-i", TAKES_VALUE, NULL},
    {"--prompt-interactive", TAKES_VALUE, NULL},
    {"-m", TAKES_VALUE, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"--system-prompt", TAKES_VALUE, NULL},
    {"-c", TAKES_NOTHING, NULL},
    {"--continue", TAKES_NOTHING, NULL},
    {"-r", TAKES_MAYBE, NULL},
    {"--resume", TAKES_MAYBE, NULL},
    {"--session-id", TAKES_VALUE, NULL},
    {"--fork-session", TAKES_NOTHING, NULL},
    {"--max-session-turns", TAKES_VALUE, NULL},
    {"--max-wall-time", TAKES_VALUE, NULL},
    {"--max-tool-calls", TAKES_VALUE, NULL},
    {"--auth-type", TAKES_VALUE, NULL},
    {"-o", TAKES_VALUE, "text json stream-json"},
    {"--output-format", TAKES_VALUE, "text json stream-json"},
    {"--input-format", TAKES_VALUE, "text stream-json"},
    {"--include-partial-messages", TAKES_NOTHING, NULL},
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
    {"--mcp-config", TAKES_NO_PART, MINE},
    {"--allowed-mcp-server-names", TAKES_NO_PART, MINE},
    {"--allowed-tools", TAKES_NO_PART, MINE},
    {"--core-tools", TAKES_NO_PART, MINE},
    {"--exclude-tools", TAKES_NO_PART, MINE},
    {"--append-system-prompt", TAKES_NO_PART, "pale uses it for the project's instructions; --system-prompt passes"},
    {"-e", TAKES_NO_PART, "extensions bring servers and hooks that run on the host"},
    {"--extensions", TAKES_NO_PART, "extensions bring servers and hooks that run on the host"},
    {"--include-directories", TAKES_NO_PART, "give folders to the box with --read, --write or --volume before the --"},
    {"--add-dir", TAKES_NO_PART, "give folders to the box with --read, --write or --volume before the --"},
    {"-s", TAKES_NO_PART, "the box is the sandbox"},
    {"--sandbox", TAKES_NO_PART, "the box is the sandbox"},
    {"--worktree", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"--acp", TAKES_NO_PART, "an editor would drive it past the box"},
    {0},
};
static const char *const drops[] = {"QWEN_*", "SANDBOX*", "SEATBELT_PROFILE", "BUILD_SANDBOX", NULL};
static const char *const keeps[] = {"QWEN_MODEL", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_CODE_MAX_OUTPUT_TOKENS", "QWEN_CODE_MODEL", NULL};
static const char *const instructions[] = {"QWEN.md", "AGENTS.md", NULL};
static const struct managed_key keys[] = {
    {"mcpServers", false, "has MCP servers; those of the site are not among the allowed ones here"},
    {"mcp", false, "says which MCP servers may load; if that leaves out `pale`, the trial says so"},
    {"hooks", false, "has hooks; if they run, then on the host, as the site wants"},
    {"tools", false, "says which tools there are; the trial shows what is left of them"},
    {0},
};
static const struct managed_file managed[] = {
    {"/etc/qwen-code/settings.json", keys, false, NULL},
    {"/etc/qwen-code/system-defaults.json", keys, false, NULL},
    {0},
};

static void servers(const struct wiring_facts *f, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_begin_object(&j, "mcpServers");
    json_begin_object(&j, "pale");
    wiring_server(f, &j);
    json_bool(&j, "trust", true);
    json_end_object(&j);
    json_end_object(&j);
    json_end_object(&j);
}

/* The user's way to log in, and the model, are settings too. */
static void settings(const struct wiring_facts *f, struct buf *out)
{
    static const char *const type_path[] = {"security", "auth", "selectedType", NULL}, *const model_path[] = {"model", "name", NULL};
    char type[64], model[128];
    struct json j;
    usersettings_text(".qwen/settings.json", type_path, type, sizeof(type));
    usersettings_text(".qwen/settings.json", model_path, model, sizeof(model));
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_begin_object(&j, "privacy");
    json_bool(&j, "usageStatisticsEnabled", false);
    json_end_object(&j);
    json_begin_object(&j, "general");
    json_bool(&j, "enableAutoUpdate", false);
    json_bool(&j, "disableAutoUpdate", true);
    json_end_object(&j);
    json_bool(&j, "disableAllHooks", true);
    if (model[0] && !f->home) {
        json_begin_object(&j, "model");
        json_text(&j, "name", model);
        json_end_object(&j);
    }
    json_begin_object(&j, "security");
    json_begin_object(&j, "folderTrust");
    json_bool(&j, "enabled", false);
    json_end_object(&j);
    if (type[0] || f->home) {
        json_begin_object(&j, "auth");
        json_text(&j, "selectedType", f->home ? "openai" : type);
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
    } shared[] = {{"oauth_creds.json", false}, {"installation_id", false}, {"projects", true}, {"tmp", true}};
    const char *home = getenv("HOME");
    char name[64], path[PATH_BYTES_MAX];
    words_addf(&w->env, "QWEN_HOME=%s/qwen", f->shadow);
    words_add(&w->env, "QWEN_CODE_DISABLE_WORKFLOWS=1");
    words_add(&w->argv, "--bare");
    words_add(&w->argv, "--exclude-tools=edit,notebook_edit,read_file,run_shell_command,write_file,get_goal,update_goal");
    words_addf(&w->argv, "--mcp-config=%s/mcp.json", f->shadow);
    words_add(&w->argv, "--allowed-mcp-server-names=pale");
    words_addf(&w->argv, "--append-system-prompt=%.*s", ARGUMENT_MAX, f->instructions);
    wiring_shells(w, f);
    servers(f, wiring_file(w, "mcp.json", 0600));
    settings(f, wiring_file(w, "qwen/settings.json", 0600));
    for (size_t i = 0; !f->home && home && i < sizeof(shared) / sizeof(shared[0]); i++) {
        snprintf(path, sizeof(path), "%s/.qwen/%s", home, shared[i].name);
        snprintf(name, sizeof(name), "qwen/%s", shared[i].name);
        wiring_link(w, name, path, shared[i].is_folder);
    }
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    words_addf(&w->env, "OPENAI_BASE_URL=%s", f->model_url);
    words_add(&w->env, "OPENAI_API_KEY=none");
    words_add(&w->env, "OPENAI_MODEL=stub");
    words_add(&w->argv, "-p");
    words_add(&w->argv, "Say ok.");
}

const struct harness harness_qwen = {
    .name = "qwen",
    .title = "Qwen Code",
    .package = "@qwen-code/qwen-code",
    .oldest = "0.24.4",
    .newest = "0.24.4",
    .closed = "native tools, settings, hooks, extensions, other servers; ! goes to the box",
    .flags = flags,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".qwen/QWEN.md",
    .tool_prefix = "mcp__pale__",
    .managed = managed,
    .wire = wire,
    .ask_stub = ask_stub,
    .config = servers,
    .config_place = "~/.qwen/settings.json",
};
